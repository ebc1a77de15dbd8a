//! The entry of a stage: the column for its payloads, and the functions that compute their needs and weight.
//!
//! The thread that moves a unit into the stage computes the unit's needs and weight here, never under the flow's mutex.
//! That thread is the worker of the previous stage, the worker that pulls the source, or the submitter.

use std::sync::{Arc, OnceLock};

use crate::engine::claims::{Ask, NO_STAGE};
use crate::engine::units::column::Column;
use crate::engine::units::record::UnitRef;
use crate::need::{Hold, MAX_AMOUNT, Need};

/// The receiving side of a stage.
pub(crate) struct Entry<T> {
    pub(crate) index: u16,
    pub(crate) column: Arc<Column<T>>,
    pub(crate) needs: OnceLock<EntryNeeds<T>>,
}

pub(crate) struct EntryNeeds<T> {
    /// The needs that differ from unit to unit.
    pub(crate) dynamic: Vec<Need<T>>,
    /// The names of the resources of `dynamic`, in the same order.
    pub(crate) resources: Vec<String>,
    pub(crate) bytes: Option<BytesFn<T>>,
}

/// A function that weighs a payload.
pub(crate) type BytesFn<T> = Box<dyn Fn(&T) -> u64 + Send + Sync>;

impl<T> Entry<T> {
    fn needs(&self) -> &EntryNeeds<T> {
        self.needs.get().expect("build() checks that every stage is defined")
    }

    /// Computes the needs of `value` in this stage, and its weight if the stage has a function for it. Runs the user's
    /// functions.
    ///
    /// An `Err` names a number that exceeds [`MAX_AMOUNT`].
    #[inline]
    pub(crate) fn demand(&self, value: &T, asks: &mut Vec<Ask>) -> Result<Option<u64>, Box<str>> {
        let EntryNeeds { dynamic, bytes, .. } = self.needs();
        if !dynamic.is_empty() {
            self.ask(value, asks)?;
        }
        let Some(weigh) = bytes else { return Ok(None) };
        match weigh(value) {
            bytes if bytes > MAX_AMOUNT => {
                Err(format!("it weighs {bytes} bytes: at most {MAX_AMOUNT} are possible").into())
            }
            bytes => Ok(Some(bytes)),
        }
    }

    /// Stores the needs of `value` in its unit's `next_asks`, or the reason why this stage cannot run the unit. Returns
    /// the weight, if the stage has a function for it. Runs the user's functions.
    #[inline]
    pub(crate) fn note_demand(&self, value: &T, unit: &mut UnitRef<'_>) -> Option<u64> {
        let mut none = Vec::new();
        let asks = if self.is_dynamic() { unit.change().next_asks() } else { &mut none };
        self.demand(value, asks).unwrap_or_else(|refused| {
            unit.change().refuse_next(refused);
            None
        })
    }

    fn ask(&self, value: &T, asks: &mut Vec<Ask>) -> Result<(), Box<str>> {
        asks.clear();
        let EntryNeeds { dynamic, resources, .. } = self.needs();
        for (need, resource) in dynamic.iter().zip(resources) {
            let amount = need.amount_with.as_ref().map_or(need.amount, |amount| amount(value));
            // A constant amount needs no check: the build has compared it with the capacity.
            if amount > MAX_AMOUNT && need.amount_with.is_some() {
                asks.clear();
                return Err(format!("it needs {amount} of `{resource}`: at most {MAX_AMOUNT} are possible").into());
            }
            if amount > 0 {
                asks.push(Ask {
                    resource: need.resource.index,
                    until: if let Hold::Until(stage) = need.hold { stage } else { NO_STAGE },
                    amount,
                    key: need.key.as_ref().map(|key| key(value).into_boxed_str()),
                });
            }
        }
        Ok(())
    }

    /// Whether the needs and the weight here are the same for every unit.
    pub(crate) fn is_plain(&self) -> bool {
        !self.is_dynamic() && self.needs().bytes.is_none()
    }

    pub(crate) fn is_dynamic(&self) -> bool {
        !self.needs().dynamic.is_empty()
    }
}
