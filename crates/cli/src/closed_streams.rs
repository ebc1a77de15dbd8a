//! Closed standard streams, as a shell starts a command by `<&-` or `>&-`.
//!
//! The Rust runtime opens `/dev/null` in place of a closed stream, so that no file gets its number. Then, however, a
//! missing input looks empty, and output vanishes while the exit status says that all is well. So this module opens
//! `/dev/null` first, in the wrong direction. The number is taken, and a read or write fails with `EBADF`, here and in
//! the programs that inherit the stream, as it would on the closed stream. A command that does not use the stream
//! notices nothing.
//!
//! Standard error keeps the runtime's way, since a message that it cannot take could not be reported anywhere.

use libc::{EBADF, F_GETFD, O_RDONLY, O_WRONLY, STDIN_FILENO, STDOUT_FILENO, c_int};

/// Takes the place of closed streams. It runs before the runtime, which can no longer be told apart from a parent that
/// has opened `/dev/null` for both directions.
// SAFETY: the loader calls each function in this section once, before `main`, with the C library ready, and ignores
// that it takes no arguments. The function calls only into the C library, and needs nothing of the Rust runtime.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = occupy_closed_streams;

extern "C" fn occupy_closed_streams() {
    // `open` returns the lowest free number, so a stream is open before the next one is examined.
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
