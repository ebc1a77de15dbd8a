//! Grants: resources, the amounts held of them, and the lines of waiters.
//!
//! | file | idea |
//! | --- | --- |
//! | `resource` | a resource: its supply, its keys |
//! | `instance` | a resource without keys, or one key: what is in use, and the line for it |
//! | `waiters` | the line itself, which counts its units and its stages apart |
//! | `line` | taking and releasing; first come, first served |
//! | `key` | keys, made on demand and forgotten when they have no users |
//! | `look` | read-only views of the lines, for explanations |
//! | `memory` | the line of units that were cancelled to stay within the byte budget |
//! | `room` | the line of units that wait for room for their children |
//! | `grants` | the interface of the part |

#[expect(clippy::module_inception, reason = "the interface of a part has the name of the part")]
pub(crate) mod grants;
pub(crate) mod instance;
pub(crate) mod key;
pub(crate) mod line;
pub(crate) mod look;
pub(crate) mod memory;
pub(crate) mod resource;
pub(crate) mod room;
pub(crate) mod waiters;
