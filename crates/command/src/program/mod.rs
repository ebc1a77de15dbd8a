//! Programs that a command starts: finds them, runs each in a process group of its own, reads their outputs, and ends
//! them with the command.

mod account;
pub mod descriptors;
mod group;
pub mod live;
mod search;
mod status;
pub mod supervise;
mod tail;

use std::time::Duration;

pub use self::account::Account;
pub use self::group::{Group, MAX_LOOK, Pipes};
pub use self::search::find;
pub use self::status::how;
pub use self::tail::{STDERR_TAIL, Tail};

/// The pause between SIGTERM and SIGKILL.
pub const GRACE: Duration = Duration::from_millis(500);

/// While a program writes nothing, the caller checks at this interval whether the output is still needed.
pub const LOOK: Duration = Duration::from_millis(100);
