//! A test of `Completion` where the kernel refuses io_uring, as in many containers: it acts as `Readiness`.

#[path = "support/refused.rs"]
mod refused;

use std::io::{Read, Write};

use millstream_fiber::fs::File;
use millstream_fiber::net::UnixStream;
use millstream_fiber::{IoModel, Options, Runtime, Threads};
use refused::refuse;

#[test]
fn without_a_ring_completion_is_readiness() {
    refuse(libc::SYS_io_uring_setup);
    assert!(!IoModel::has_completion());
    let runtime = Runtime::start(Options::new(Threads::One).io(IoModel::Completion)).unwrap();
    let (mut one, mut other) = UnixStream::pair().unwrap();
    let reader = runtime.spawn(move || {
        let mut text = [0; 5];
        one.read_exact(&mut text).unwrap();
        text
    });
    let writer = runtime.spawn(move || {
        let mut zeros = [1; 5];
        File::open("/dev/zero").unwrap().read_exact(&mut zeros).unwrap();
        other.write_all(&zeros).unwrap();
    });
    writer.join().unwrap();
    assert_eq!(reader.join().unwrap(), [0; 5]);
}
