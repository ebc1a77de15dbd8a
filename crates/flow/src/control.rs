//! Inspecting and steering a flow while it runs.

use std::ops::RangeInclusive;
use std::sync::Arc;
#[cfg(feature = "fibers")]
use std::time::Duration;

use crate::engine::settings::Workers;
use crate::engine::threads::shared::Shared;
use crate::engine::units::column::Column;
use crate::explain::{FoundUnits, LineState, NoLine, NoUnit, UnitState};
#[cfg(feature = "fibers")]
use crate::fibers::Fibers;
use crate::limits::{MAX_FIBERS, MAX_WORKERS};
use crate::resource::{Rate, Supply};
use crate::snapshot::{KeySnapshot, Snapshot};

/// The reason why a setting was refused. The flow is unchanged.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SetError {
    /// The flow has no stage of this name.
    #[error("there is no stage `{stage}`: the stages are {known}")]
    #[expect(missing_docs, reason = "the message says what the fields are")]
    UnknownStage { stage: String, known: String },
    /// The flow has no resource of this name.
    #[error("there is no resource `{resource}`: the resources are {known}")]
    #[expect(missing_docs, reason = "the message says what the fields are")]
    UnknownResource { resource: String, known: String },
    /// A rate cannot be set as tokens, nor tokens as a rate.
    #[error("resource `{resource}` is {is}: set its {settable}")]
    #[expect(missing_docs, reason = "the message says what the fields are")]
    WrongKind { resource: String, is: &'static str, settable: &'static str },
    /// The resource is a pool, whose capacity is the number of its objects.
    #[error("resource `{resource}` is a pool of {objects} objects, which cannot be changed")]
    #[expect(missing_docs, reason = "the message says what the fields are")]
    Pool { resource: String, objects: u64 },
    /// The value is out of range.
    #[error("{what} cannot be {value}: {must}")]
    #[expect(missing_docs, reason = "the message says what the fields are")]
    BadValue { what: String, value: String, must: String },
}

/// A handle for inspecting and steering a flow, before, while and after it runs. Clones are cheap.
///
/// Lowering a cap never loses or stops a unit. Units in excess of the cap continue, and no new unit is admitted until
/// there is room.
///
/// Changing a cap or the workers uses [`epoch`](millstream_sync::reclaim::epoch), which may run destructors of values
/// that the calling thread has retired. So do not hold a lock that such a destructor acquires.
#[derive(Debug, Clone)]
pub struct Control {
    pub(crate) shared: Arc<Shared>,
}

impl Control {
    /// The state of the flow at this moment. Takes a few microseconds per stage, under the flow's lock.
    pub fn snapshot(&self) -> Snapshot {
        self.shared.snapshot()
    }

    /// An explanation names at most this many holders, and at most this many units at the head of the line.
    pub const EXPLAINED: usize = 10;

    /// Explains a unit in flight: where the unit is, how long it has been there, what it waits for, and which units
    /// hold the resource that it waits for.
    ///
    /// The call searches all units in flight, so it costs O(units in flight). The search works in steps of 4,096
    /// units under the flow's lock, and pauses after each step for as long as the step took. The example `watching`
    /// measures how this affects the flow. The search skips batches that end within a fraction of a millisecond,
    /// because their units would be gone before their state could be read.
    ///
    /// ```
    /// # use millstream_flow::{Doing, Flow, Need, WaitsFor};
    /// # use std::sync::mpsc::channel;
    /// let mut flow = Flow::builder::<()>("explained");
    /// let disk = flow.tokens("disk", 1);
    /// let (work, done) = (flow.inlet::<u64>("work"), flow.retire());
    /// let (began, begins) = channel();
    /// let (open, gate) = channel::<()>();
    /// let gate = std::sync::Mutex::new(gate);
    /// flow.stage(work, move |_, _| {
    ///     began.send(()).unwrap();
    ///     let _ = gate.lock().unwrap().recv();
    ///     Ok(())
    /// })
    /// .blocking()
    /// .need(Need::tokens(disk, 1))
    /// .to(done);
    /// let service = flow.build(work)?.start();
    /// let (control, tickets) = (service.control(), [service.submit(1).unwrap(), service.submit(2).unwrap()]);
    /// begins.recv().unwrap();
    /// assert_eq!(control.explain_unit(0).unwrap().doing, Doing::Running);
    /// let Some(WaitsFor::Resource { line, .. }) = control.explain_unit(1).unwrap().waits_for else { panic!() };
    /// assert_eq!((line.resource.as_str(), line.holders[0].unit), ("disk", 0));
    /// assert!(control.explain_unit(7).is_err());
    /// drop(open);
    /// tickets.into_iter().for_each(|ticket| ticket.wait().unwrap());
    /// # Ok::<(), millstream_flow::BuildError>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if no unit in flight has this number.
    pub fn explain_unit(&self, number: u64) -> Result<UnitState, NoUnit> {
        self.shared.explain_unit(number, Self::EXPLAINED)
    }

    /// Finds up to `most` waiting units by their payloads: those of type `T` for which `label` returns a label. Units
    /// that are not waiting cannot be searched, because workers have their payloads.
    ///
    /// The call searches all waiting units, in steps of 1,024 under the flow's lock, and pauses after each step for as
    /// long as the step took. `label` runs under that lock, so it must be quick, and must not use the flow, because
    /// that would deadlock. If `label` panics, this call panics as well, and the flow continues.
    ///
    /// ```
    /// # use millstream_flow::{Flow, Need};
    /// let mut flow = Flow::builder("mail");
    /// let door = flow.tokens("door", 1);
    /// let (sort, done) = (flow.inlet("sort"), flow.retire());
    /// flow.update(sort, |_: &mut String, _| Ok(())).need(Need::tokens(door, 1)).to(done);
    /// let service = flow.build(sort)?.start();
    /// let control = service.control();
    /// control.set_capacity("door", 0)?;
    /// let tickets = ["to Ada", "to Eve", "to Adam"].map(|letter| service.submit(letter.to_owned()).unwrap());
    /// let ours = |letter: &String| letter.contains("Ada").then(|| letter.clone());
    /// let found = control.find_units(10, ours);
    /// let mut numbers: Vec<u64> = found.units.iter().map(|(place, _)| place.unit).collect();
    /// numbers.sort();
    /// assert_eq!((numbers, found.in_all), (vec![0, 2], 2));
    /// control.set_capacity("door", 1)?;
    /// tickets.into_iter().for_each(|ticket| drop(ticket.wait()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Panics
    /// Panics if `label` panics.
    pub fn find_units<T: 'static, L>(&self, most: usize, label: impl FnMut(&T) -> Option<L>) -> FoundUnits<L> {
        self.shared.find_units(most, label)
    }

    /// Explains a resource, or one of its keys: how much of it is in use, and which units hold it or wait for it.
    ///
    /// To find the holders of tokens, the call searches the units in flight, as [`explain_unit`](Self::explain_unit)
    /// does, until it knows all holders.
    ///
    /// # Errors
    /// Returns an error if there is no such resource, or no unit uses the key at present.
    pub fn explain_line(&self, resource: &str, key: Option<&str>) -> Result<LineState, NoLine> {
        self.shared.explain_line(resource, key, Self::EXPLAINED)
    }

    /// Returns the keys for which the most units wait: up to `most` keys of each keyed resource, the busiest key first.
    /// The resources are in the order of declaration.
    ///
    /// The call takes O(keys) time, in steps of 4,096 keys under the flow's lock.
    pub fn busiest_keys(&self, most: usize) -> Vec<KeySnapshot> {
        self.shared.busiest_keys(most)
    }

    /// Reports the [fibers](crate::StageBuilder::fibers) of the flow, grouped by stage and by the call in which they wait.
    ///
    /// Costs about a microsecond for each fiber, and does not take the flow's lock. The fibers continue in the
    /// meantime.
    #[cfg(feature = "fibers")]
    pub fn fibers(&self) -> Fibers {
        self.shared.fibers().look(None)
    }

    /// Like [`fibers`](Self::fibers), but also groups waiting fibers by their backtraces. Waits at most `limit` for the
    /// backtraces.
    ///
    /// Each fiber is woken, takes its own backtrace, and waits again. This costs its thread tens of microseconds, and a
    /// few KiB of the fiber's stack. The names of functions are then resolved for the largest
    /// [`FiberGroup::BACKTRACES`](crate::FiberGroup::BACKTRACES) groups, which can take seconds in a large program with
    /// debug information. The memory used for this is freed afterwards.
    #[cfg(feature = "fibers")]
    pub fn fibers_with_backtraces(&self, limit: Duration) -> Fibers {
        self.shared.fibers().look(Some(limit))
    }

    /// Closes admission; units in flight drain.
    pub fn stop(&self) {
        self.shared.stop();
    }

    /// Closes admission, starts no more runs, and tells running code to end ([`Cx::cancelled`](crate::Cx::cancelled)).
    pub fn abandon(&self) {
        self.shared.abandon();
    }

    /// Sets the cap on units in flight.
    ///
    /// # Errors
    /// Returns an error if `units` is zero.
    pub fn set_inflight(&self, units: u64) -> Result<(), SetError> {
        let most = Column::<u8>::MAX_ROWS as u64;
        if units == 0 || units > most {
            let must = format!("it must be from 1 to {most} units");
            return Err(SetError::BadValue { what: "inflight".into(), value: units.to_string(), must });
        }
        self.shared.steer(|settings| settings.inflight = units);
        Ok(())
    }

    /// Sets the cap on payload bytes in flight; `u64::MAX` removes it.
    ///
    /// # Errors
    /// Returns an error if `bytes` is zero.
    pub fn set_memory(&self, bytes: u64) -> Result<(), SetError> {
        if bytes == 0 {
            let must = "it must be at least one byte".to_owned();
            return Err(SetError::BadValue { what: "memory".into(), value: "0".into(), must });
        }
        self.shared.steer(|settings| settings.memory = bytes);
        Ok(())
    }

    /// Sets the number of tokens of a resource, or of each of its keys. Zero pauses all units that need it.
    ///
    /// # Errors
    /// Returns an error if there is no such resource, or it is a rate or a pool.
    pub fn set_capacity(&self, resource: &str, tokens: u64) -> Result<(), SetError> {
        self.set_supply(resource, Supply::Tokens(tokens))
    }

    /// Sets the rate of a resource, or of each of its keys.
    ///
    /// # Errors
    /// Returns an error if there is no such resource, it is not a rate, or the rate is not positive.
    pub fn set_rate(&self, resource: &str, rate: Rate) -> Result<(), SetError> {
        if !rate.is_valid() {
            let must = "a rate and its burst must be more than zero".to_owned();
            return Err(SetError::BadValue { what: format!("rate `{resource}`"), value: rate.to_string(), must });
        }
        self.set_supply(resource, Supply::Rate(rate))
    }

    fn set_supply(&self, resource: &str, supply: Supply) -> Result<(), SetError> {
        let now = self.shared.now();
        self.shared.try_change(|state| {
            let Some((index, spec)) = state.resources().enumerate().find(|(_, spec)| spec.name == resource) else {
                let known = names(state.resources().map(|spec| spec.name.as_str()));
                return Err(SetError::UnknownResource { resource: resource.into(), known });
            };
            match (spec.supply, supply) {
                (Supply::Tokens(objects), _) if spec.pool => {
                    return Err(SetError::Pool { resource: resource.into(), objects });
                }
                (Supply::Tokens(_), Supply::Tokens(_)) | (Supply::Rate(_), Supply::Rate(_)) => {}
                (Supply::Tokens(_), _) => {
                    let (is, settable) = ("a number of tokens", "capacity, as in 4");
                    return Err(SetError::WrongKind { resource: resource.into(), is, settable });
                }
                (Supply::Rate(_), _) => {
                    let (is, settable) = ("a rate", "rate, as in 20/s");
                    return Err(SetError::WrongKind { resource: resource.into(), is, settable });
                }
            }
            state.set_supply(index as u16, supply, now);
            Ok(())
        })
    }

    /// Sets a stage's floor and ceiling of workers.
    ///
    /// A non-blocking stage can use the workers of its floor and the shared workers. A ceiling above the sum of these
    /// has no effect until [`set_shared_workers`](Self::set_shared_workers) raises the sum.
    ///
    /// # Errors
    /// Returns an error if there is no such stage, if the floor exceeds the ceiling, or if the ceiling is zero or more
    /// than [`MAX_WORKERS`] ([`MAX_FIBERS`] if the workers are fibers).
    pub fn set_workers(&self, stage: &str, floor_to_ceiling: RangeInclusive<usize>) -> Result<(), SetError> {
        let (floor, ceiling) = (*floor_to_ceiling.start(), *floor_to_ceiling.end());
        let stages = self.shared.site().stages();
        let Some(index) = stages.iter().position(|s| &*s.name == stage) else {
            let known = names(stages.iter().map(|s| &*s.name));
            return Err(SetError::UnknownStage { stage: stage.into(), known });
        };
        let most = if self.shared.runs_on_fibers(index as u16) { MAX_FIBERS } else { MAX_WORKERS };
        if ceiling == 0 || floor > ceiling || ceiling > most {
            return Err(SetError::BadValue {
                what: format!("workers of stage `{stage}`"),
                value: format!("{floor}..={ceiling}"),
                must: format!("the ceiling must be from 1 to {most} and at least the floor"),
            });
        }
        self.shared.steer(|settings| settings.workers[index] = Workers { floor, ceiling, follows_shared: false });
        Ok(())
    }

    /// Sets the number of shared workers, which are the threads that all non-blocking stages share.
    ///
    /// The default ceiling of a stage follows this number. Additional threads start when there is work for them.
    /// Surplus threads finish their batches, then sleep until the number rises or the flow ends.
    ///
    /// ```
    /// # use millstream_flow::Flow;
    /// let mut flow = Flow::builder::<()>("steered");
    /// let (work, done) = (flow.inlet::<u64>("work"), flow.retire());
    /// flow.stage(work, |_, _| Ok(())).to(done);
    /// let control = flow.build(work)?.control();
    /// control.set_shared_workers(8).unwrap();
    /// assert_eq!(control.snapshot().workers, 8);
    /// assert_eq!(control.snapshot().stages[0].workers_max, 8);
    /// # Ok::<(), millstream_flow::BuildError>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if `threads` is zero or more than [`MAX_WORKERS`].
    pub fn set_shared_workers(&self, threads: usize) -> Result<(), SetError> {
        if threads == 0 || threads > MAX_WORKERS {
            let must = format!("it must be from 1 to {MAX_WORKERS} threads");
            return Err(SetError::BadValue { what: "workers".into(), value: threads.to_string(), must });
        }
        self.shared.steer(|settings| settings.set_shared_workers(threads));
        Ok(())
    }
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let list: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    if list.is_empty() { "none".into() } else { list.join(", ") }
}
