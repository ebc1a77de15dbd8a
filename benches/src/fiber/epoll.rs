//! A handwritten loop over epoll: only the system calls of an echo server.

use std::io::{Read, Write};
use std::net::TcpListener;

use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};

pub(super) fn serve(listener: &TcpListener) {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).expect("a descriptor");
    listener.set_nonblocking(true).expect("a listener");
    epoll::add(&epoll, listener, EventData::new_u64(u64::MAX), EventFlags::IN).expect("memory");
    let (mut streams, mut events) = (Vec::new(), Vec::with_capacity(512));
    loop {
        events.clear();
        epoll::wait(&epoll, spare_capacity(&mut events), None).expect("a wait");
        for event in events.drain(..) {
            let number = event.data.u64();
            if number == u64::MAX {
                while let Ok((stream, _)) = listener.accept() {
                    stream.set_nodelay(true).expect("a connection");
                    stream.set_nonblocking(true).expect("a connection");
                    let mark = EventData::new_u64(streams.len() as u64);
                    epoll::add(&epoll, &stream, mark, EventFlags::IN).expect("memory");
                    streams.push(Some(stream));
                }
                continue;
            }
            let (mut buf, slot) = ([0; 4096], &mut streams[number as usize]);
            let Some(stream) = slot.as_mut() else { continue };
            match stream.read(&mut buf) {
                Ok(bytes @ 1..) if stream.write_all(&buf[..bytes]).is_ok() => {}
                _ => *slot = None,
            }
        }
    }
}
