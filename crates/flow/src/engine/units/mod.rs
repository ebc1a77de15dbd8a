//! Units in flight: a row for each, with its payload, record and stamp in columns.
//!
//! | file | idea |
//! | --- | --- |
//! | `column` | the table: rows, and a column for each type of data |
//! | `record` | the engine's record of a unit that is not plain |
//! | `stamp` | the number and time of a unit's admission |
//! | `families` | units that were split, kept until their last child has left |
//! | `groups` | units that hold a group open, and rest until it is closed |
//! | `pocket` | rows and lists that a worker keeps for reuse |
//! | `table` | the interface of the part: free rows, records and stamps |
//! | `walk` | a walk over all units that no worker has in hand, in bounded steps |

pub(crate) mod column;
pub(crate) mod families;
pub(crate) mod groups;
pub(crate) mod pocket;
pub(crate) mod record;
pub(crate) mod stamp;
pub(crate) mod table;
pub(crate) mod walk;
