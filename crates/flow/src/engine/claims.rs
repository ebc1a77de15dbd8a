//! The forms that a need takes on its way from a stage's declaration to a grant. They are plain values that the parts
//! of the engine pass to each other.
//!
//! | form | meaning | made by |
//! | --- | --- | --- |
//! | [`Need`](crate::need::Need) | the program's declaration for a stage: resource, amount, key function, hold | the flow's builder |
//! | [`Ask`] | a need of one unit, if needs differ by unit: the amount and the key are computed | the stage's entry, before the unit comes to the stage |
//! | [`Want`] | a need whose instance (the resource, or one key of it) is known | the build, if the need is the same for all units; otherwise the look-up of keys |
//! | [`Step`] | a need of a unit that acquires its needs one after the other | a unit that too often failed to get all of them at once |
//! | [`Grant`] | what a unit or a batch holds: an amount of an instance | taking a want |

use smallvec::SmallVec;

/// The stage number that means "no stage". As a destination, it means retirement.
pub(crate) const NO_STAGE: u16 = u16::MAX;

/// The destination of a batch while none of its units has gone on.
pub(crate) const UNDECIDED: u16 = NO_STAGE - 1;

/// The destination of units that have joined groups.
pub(crate) const GATHERED: u16 = NO_STAGE - 2;

/// The index of an instance of a resource: the resource itself, or one of its keys.
pub(crate) type InstanceId = u32;

/// A need of one unit, computed by its stage's need functions. The key has not been looked up yet.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) resource: u16,
    pub(crate) until: u16,
    pub(crate) amount: u64,
    pub(crate) key: Option<Box<str>>,
}

impl Ask {
    pub(crate) fn want(&self, instance: InstanceId) -> Want {
        Want { instance, until: self.until, for_batch: false, amount: self.amount }
    }
}

/// A need with its key looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Want {
    pub(crate) instance: InstanceId,
    /// The stage after which the grant is released; [`NO_STAGE`] means after this run.
    pub(crate) until: u16,
    /// The need is a permit for a batch, not a need of the unit itself.
    pub(crate) for_batch: bool,
    pub(crate) amount: u64,
}

impl Want {
    pub(crate) fn grant(&self, from: u16) -> Grant {
        Grant { instance: self.instance, until: self.until, from, amount: self.amount }
    }

    /// The combined need of this many units.
    pub(crate) fn times(&self, units: usize) -> Want {
        Want { amount: self.amount * units as u64, ..*self }
    }
}

/// A grant that a unit or a batch holds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grant {
    pub(crate) instance: InstanceId,
    pub(crate) until: u16,
    /// The stage whose queue granted it.
    pub(crate) from: u16,
    pub(crate) amount: u64,
}

pub(crate) type Wants = SmallVec<[Want; 2]>;
pub(crate) type GrantList = SmallVec<[Grant; 2]>;

/// A need of a unit that acquires its needs in order.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) resource: u16,
    pub(crate) key: Option<Box<str>>,
    /// The need's instance; `None` until the key is looked up. A need without a key has an instance from the start.
    pub(crate) instance: Option<InstanceId>,
    pub(crate) until: u16,
    pub(crate) for_batch: bool,
    pub(crate) amount: u64,
}

impl Step {
    /// The step for a need without a key.
    pub(crate) fn constant(want: &Want) -> Self {
        Step {
            // The first instances are the resources themselves, each at its own index. So this instance's index is its
            // resource's index.
            resource: want.instance as u16,
            key: None,
            instance: Some(want.instance),
            until: want.until,
            for_batch: want.for_batch,
            amount: want.amount,
        }
    }

    /// The step for a need that differs by unit.
    pub(crate) fn asked(ask: &Ask) -> Self {
        Step {
            resource: ask.resource,
            key: ask.key.clone(),
            instance: if ask.key.is_none() { Some(u32::from(ask.resource)) } else { None },
            until: ask.until,
            for_batch: false,
            amount: ask.amount,
        }
    }

    /// The step's need, once its instance is known.
    pub(crate) fn want(&self) -> Option<Want> {
        let Step { until, for_batch, amount, .. } = *self;
        self.instance.map(|instance| Want { instance, until, for_batch, amount })
    }
}
