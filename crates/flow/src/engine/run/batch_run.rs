//! The run of a batch, as a lane sees it.

use super::advance::Advance;
use super::brood::Brood;
use super::settlement::Settlement;
use super::site::Site;

/// The run of one batch on one worker.
pub struct Run<'a> {
    pub(crate) site: &'a Site,
    pub(crate) advance: &'a Advance<'a>,
    pub(crate) stage: u16,
    /// All its units are plain (see `Record`).
    pub(crate) plain: bool,
    pub(crate) time_each: bool,
    pub(crate) started_ns: u64,
    pub(crate) settlement: &'a mut Settlement,
    /// The room for children, if the stage splits its units.
    pub(crate) brood: Option<&'a mut Brood>,
}
