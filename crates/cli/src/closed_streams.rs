//! Closed standard streams: a shell closes them for a command that is followed by `<&-` or `>&-`.
//!
//! The Rust runtime opens `/dev/null` in place of a closed stream, so that no other file gets the stream's number. But
//! then a missing input looks empty, and output vanishes although the exit status reports success. So this module
//! opens `/dev/null` before the runtime does, in the wrong direction: standard input for writing, standard output for
//! reading. Every read or write of the stream then fails with `EBADF`, as on the closed stream, in this process and in
//! the programs that inherit the stream. A command that does not use the stream is not affected.
//!
//! A closed standard error is left to the runtime: an error in writing to it could not be reported anywhere.

use libc::{EBADF, F_GETFD, O_RDONLY, O_WRONLY, STDIN_FILENO, STDOUT_FILENO, c_int};

/// Replaces closed streams before the runtime starts. Later, a closed stream could not be recognised: the runtime's
/// replacement looks like a stream that the parent process has opened on `/dev/null`.
// SAFETY: the loader calls each function in this section once, before `main`, when the C library is ready. It passes
// arguments, which do no harm to a function without parameters. The function calls only into the C library, and needs
// nothing of the Rust runtime.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = occupy_closed_streams;

extern "C" fn occupy_closed_streams() {
    // `open` returns the lowest free number. So a closed stream must be opened before the next stream is examined.
    for (stream, wrong_direction) in [(STDIN_FILENO, O_WRONLY), (STDOUT_FILENO, O_RDONLY)] {
        if is_closed(stream) {
            // SAFETY: the path is a C string. If the call fails, the runtime deals with the closed stream.
            unsafe { libc::open(c"/dev/null".as_ptr(), wrong_direction) };
        }
    }
}

fn is_closed(stream: c_int) -> bool {
    // SAFETY: `F_GETFD` takes no argument and changes nothing, and the location of this thread's `errno` is valid.
    unsafe { libc::fcntl(stream, F_GETFD) == -1 && *libc::__errno_location() == EBADF }
}
