//! The facts about a unit before it is admitted.

use crate::engine::claims::Ask;
use crate::engine::units::record::Record;

pub(crate) struct Candidate {
    bytes: u64,
    /// Facts that most units do not have. They are boxed to keep the candidate small, because candidates pass between
    /// cores.
    extra: Option<Box<Extra>>,
}

struct Extra {
    /// The unit's needs in the entry stage, if needs there differ by unit.
    asks: Vec<Ask>,
    ticketed: bool,
    /// The earliest time at which the unit may enter its first queue.
    not_before_ns: u64,
    /// The reason why the entry stage cannot run the unit.
    refused: Option<Box<str>>,
}

impl Candidate {
    /// A unit that weighs `bytes`, and has no ticket, no needs of its own and no start time.
    #[inline]
    pub(crate) fn new(bytes: u64) -> Self {
        Candidate { bytes, extra: None }
    }

    /// A unit with its needs in the entry stage, or the reason why that stage cannot run it.
    pub(crate) fn with(
        bytes: u64,
        asks: Vec<Ask>,
        refused: Option<Box<str>>,
        ticketed: bool,
        not_before_ns: u64,
    ) -> Self {
        Candidate { bytes, extra: Some(Box::new(Extra { asks, ticketed, not_before_ns, refused })) }
    }

    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.bytes == 0 && self.extra.is_none()
    }

    /// Writes the facts into the unit's record. Returns the earliest time at which the unit may enter its first queue.
    pub(crate) fn write_to(self, record: &mut Record) -> u64 {
        record.weigh(self.bytes);
        let Some(extra) = self.extra else { return 0 };
        record.set_ticketed(extra.ticketed);
        record.set_asks(extra.asks, extra.refused);
        extra.not_before_ns
    }
}
