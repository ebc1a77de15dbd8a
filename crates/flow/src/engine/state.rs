//! The scheduler's state: everything behind the flow's one mutex.
//!
//! The state is a plain state machine that uses neither threads nor clocks. Every method takes the time as an argument,
//! so tests drive it step by step. The state only composes its parts, and each part keeps its fields private. The steps
//! on a unit's path (`admit`, `pulling`, `grant`, `dispatch`, `wake`, `settle`) call the methods of several parts.
//!
//! Each step costs O(units it moves + stages), however many units wait elsewhere. A unit that leaves the middle of a
//! line may cost up to the logarithm of the line's length. Only `drop_oldest` costs more: it inspects the head of every
//! line, and so all resources and keys. It is called only in a flow that drops units when it is full.
//!
//! # Why one mutex
//! A grant checks several resources and the line of each, and takes all resources or none. So it needs one consistent
//! view. With lock-free queues, a grant would need an additional protocol, as serial as a mutex and harder to prove
//! correct.
//!
//! To keep the mutex from becoming a bottleneck, a worker takes it rarely: once for a turn of several batches through
//! several stages. Little happens under it: rows change owners, and no payload is touched. The cost becomes visible if
//! a stage's units take a microsecond and must run in batches of one.

use std::sync::Arc;

use super::crew::crew::Crew;
use super::crew::post::Post;
use super::crew::turn_slot::TurnSlot;
use super::grants::grants::Grants;
use super::intake::budget::Budget;
use super::intake::intake::Intake;
use super::ledger::ledger::Ledger;
use super::life::Life;
use super::settings::Settings;
use super::stages::open::OpenStages;
use super::stages::stage::StageSetup;
use super::stages::stages::Stages;
use super::timers::Timers;
use super::units::column::{Column, Row};
use super::units::pocket::Pocket;
use super::units::record::Record;
use super::units::stamp::Stamp;
use super::units::table::Units;
use crate::resource::{ResourceSpec, Supply};

pub(crate) struct State {
    pub(super) units: Units,
    pub(super) stages: Stages,
    pub(super) grants: Grants,
    pub(super) intake: Intake,
    pub(super) crew: Crew,
    pub(super) ledger: Ledger,
    pub(super) timers: Timers,
    pub(super) life: Life,
}

impl State {
    /// The state of a flow before its first unit. Units enter at the stage `entry`. If the queue of that stage is
    /// bounded, the resource `entry_place` bounds it. `order` lists the stages by their distance to the exit.
    pub(crate) fn new(
        settings: &Settings,
        stages: Vec<StageSetup>,
        resources: &[ResourceSpec],
        ranks: &[u16],
        order: Vec<u16>,
        entry: u16,
        entry_place: Option<u16>,
    ) -> Self {
        let mut state = State {
            units: Units::new(),
            grants: Grants::new(resources, ranks),
            intake: Intake::new(Budget::new(settings.inflight, settings.memory), entry, entry_place),
            crew: Crew::new(settings.shared_workers, stages.len()),
            stages: Stages::new(stages, order, &settings.workers),
            ledger: Ledger::new(),
            timers: Timers::default(),
            life: Life::new(),
        };
        let splits = state.stages.splitting();
        state.intake.budget_mut().share_with_splits(splits);
        state.resize();
        state
    }

    /// The columns of records and stamps, for threads that own a row.
    pub(crate) fn columns(&self) -> (Arc<Column<Record>>, Arc<Column<Stamp>>) {
        self.units.columns()
    }

    pub(crate) fn open_stages(&self) -> OpenStages {
        self.stages.open_stages()
    }

    /// The number that the next unit will get.
    pub(crate) fn next_id(&self) -> u64 {
        self.intake.budget().next_id()
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.life.is_closed()
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.life.is_finished()
    }

    /// Whether no stage's code is running.
    pub(crate) fn no_stage_runs(&self) -> bool {
        self.stages.busy() == 0
    }

    /// Opens admission.
    pub(crate) fn open(&mut self, now: u64) {
        self.life.open();
        self.ledger.start(now);
    }

    /// Adds a new shared worker.
    pub(crate) fn join_crew(&mut self, turn: Arc<TurnSlot>) {
        self.crew.add_turn(turn);
    }

    /// Counts the calling worker as ended if the flow is finished. Returns whether the flow is finished.
    pub(super) fn end_if_finished(&mut self, post: Post) -> bool {
        let ends = self.life.is_finished();
        if ends {
            self.crew.threads_mut(post).count_end();
        }
        ends
    }

    /// Exchanges the current pocket for the pocket of the thread that holds the mutex.
    #[inline]
    pub(crate) fn swap_pocket(&mut self, pocket: &mut Pocket) {
        self.units.swap_pocket(pocket);
    }

    /// Adopts settings, and updates everything that depends on them.
    pub(crate) fn follow(&mut self, settings: &Settings) {
        self.intake.budget_mut().follow(settings.inflight, settings.memory);
        self.crew.follow(settings.shared_workers);
        self.stages.follow(&settings.workers);
    }

    /// Sizes batches and turns after settings, resources or the source have changed.
    pub(crate) fn resize(&mut self) {
        let State { stages, grants, intake, crew, .. } = self;
        let in_flight = intake.budget().max_in_flight();
        stages.resize(intake.source().is_some(), in_flight, crew.shared_workers(), |stage| {
            grants.most_at_once(stage.wants().iter().chain(stage.permits()))
        });
    }

    /// The resources.
    pub(crate) fn resources(&self) -> impl ExactSizeIterator<Item = &ResourceSpec> {
        self.grants.specs()
    }

    /// Changes the supply of a resource.
    pub(crate) fn set_supply(&mut self, resource: u16, supply: Supply, now: u64) {
        self.grants.set_supply(resource, supply, now);
    }

    /// Empties all queues and lines at the end of the flow. Returns every unit that no worker has in hand.
    pub(crate) fn empty_queues(&mut self) -> Vec<Row> {
        let mut remaining = self.units.take_left_behind();
        self.stages.empty(&mut remaining);
        self.grants.empty(&mut remaining);
        remaining.extend(self.timers.clear());
        remaining
    }
}
