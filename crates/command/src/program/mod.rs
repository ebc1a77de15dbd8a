//! Programs that a command starts: found, run in a group of their own, listened to, and ended with the command.

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

/// Pause between SIGTERM and SIGKILL.
pub const GRACE: Duration = Duration::from_millis(500);

/// The pause between two checks of whether the output of a silent program is still wanted.
pub const LOOK: Duration = Duration::from_millis(100);
