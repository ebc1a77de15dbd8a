//! Completion where the kernel refuses io_uring, as in many containers: readiness takes its place.

use std::io::{Read, Write};

use millstream_fiber::fs::File;
use millstream_fiber::net::UnixStream;
use millstream_fiber::{IoModel, Options, Runtime, Threads};

/// Makes `io_uring_setup` fail in this thread and those that it starts.
fn refuse_rings() {
    const LOAD_NUMBER: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const JUMP_IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut filter = [
        step(LOAD_NUMBER, 0, 0, 0),
        step(JUMP_IF_EQUAL, 0, 1, libc::SYS_io_uring_setup as u32),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM as u32),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
    // SAFETY: the first call takes no pointer; the second reads the program, which lives until it returns.
    let refused = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
    };
    assert!(refused, "{}", std::io::Error::last_os_error());
}

#[test]
fn without_a_ring_completion_is_readiness() {
    refuse_rings();
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
