//! The entry of a stage: the column of its payloads, and their needs there.
//!
//! The thread that hands a unit over (the worker that finished the stage before, the puller, or the submitter) computes
//! what the unit weighs and needs here, and never under the flow's mutex.

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
    /// The needs that differ by unit.
    pub(crate) dynamic: Vec<Need<T>>,
    /// The names of their resources.
    pub(crate) resources: Vec<String>,
    pub(crate) bytes: Option<BytesFn<T>>,
}

/// A function that weighs a payload.
pub(crate) type BytesFn<T> = Box<dyn Fn(&T) -> u64 + Send + Sync>;

impl<T> Entry<T> {
    fn needs(&self) -> &EntryNeeds<T> {
        self.needs.get().expect("build() checks that every stage is defined")
    }

    /// Computes the weight of `value` here, if the stage has a function for it, and the needs. Runs the user's
    /// functions.
    ///
    /// An `Err` names the number that is more than [`MAX_AMOUNT`].
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

    /// Notes the needs of `value` here in its unit's `next_asks`, or the reason why this stage cannot run it. Returns
    /// its weight, if the stage has a function for it. Runs the user's functions.
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
            // The build has compared a constant with the capacity.
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

    /// Whether units need and weigh nothing of their own here.
    pub(crate) fn is_plain(&self) -> bool {
        !self.is_dynamic() && self.needs().bytes.is_none()
    }

    pub(crate) fn is_dynamic(&self) -> bool {
        !self.needs().dynamic.is_empty()
    }
}
