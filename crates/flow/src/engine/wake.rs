//! Wake-ups: which threads to wake after a change.
//!
//! A change that may concern other threads ends with a plan of wake-ups. [`State::plan_wakeups`] makes the plan and
//! changes nothing. [`State::mark`] records the planned wake-ups in the state. The flow's threads carry them out after
//! they have unlocked the mutex. The plan names at most one thread of each kind that now has work. It names none if a
//! thread of that kind already looks for work, because that thread will find the work and then wake the next thread.

use super::crew::post::Post;
use super::crew::wakeups::{Call, EntranceCall, Wakeups};
use super::intake::source_state::SourceState;
use super::pace::WAKE_NS;
use super::state::State;
use super::timers::TimerAction;

impl State {
    /// Decides which threads to wake. `now` determines the age of batches. `gate_is_empty` is called only if the flow
    /// could be over.
    pub(super) fn plan_wakeups(&self, gate_is_empty: impl FnOnce() -> bool, now: u64) -> Wakeups {
        let mut wakeups = Wakeups { entrance: self.plan_entrance(), ..Wakeups::default() };
        if self.crew.threads(Post::Shared).looking(self.crew.shared_busy()) == 0 && self.wants_shared_thread(now) {
            wakeups.acts_on_watch = true;
            wakeups.workers.extend(self.call(Post::Shared));
        }
        for &stage in self.stages.blocking() {
            let post = Post::Stage(stage);
            let looking = self.crew.threads(post).looking(self.stages.at(stage).busy());
            if looking == 0 && self.choose(post, now).is_some() {
                wakeups.workers.extend(self.call(post));
            }
        }
        let next_timer = self.timers.next_at();
        wakeups.clock = self.crew.clock_sleeps_beyond(next_timer).then_some(next_timer);
        wakeups.closes_source = self.is_closed() && !self.intake.source().is_none_or(SourceState::is_closed);
        wakeups.over = (self.is_over() && gate_is_empty()) || (self.life.is_abandoned() && self.no_stage_runs());
        wakeups
    }

    /// How to call a worker of the post, if one can be woken or started.
    fn call(&self, post: Post) -> Option<(Post, Call)> {
        let threads = self.crew.threads(post);
        if threads.has_sleepers() {
            return Some((post, Call::Wake { sleepers: threads.sleepers_to_wake() }));
        }
        self.crew.may_spawn().then_some((post, Call::Start))
    }

    /// Whether a further shared thread would find enough work to be worth a wake-up. A small backlog is left to the
    /// worker that will be back soon.
    fn wants_shared_thread(&self, now: u64) -> bool {
        self.choose(Post::Shared, now).is_some()
            && (self.crew.threads(Post::Shared).has_alert()
                || !self.crew.expects_one_soon()
                || self.crew.watch_has_ended()
                || self.backlog_ns() > WAKE_NS)
    }

    #[inline]
    fn plan_entrance(&self) -> EntranceCall {
        if self.is_closed() {
            return if self.intake.has_sleepers() { EntranceCall::All } else { EntranceCall::None };
        }
        let may_enter = |bytes, is_unticketed: bool| self.has_room(bytes) && (!is_unticketed || self.wants_more());
        if self.intake.head_may_enter(may_enter) { EntranceCall::Head } else { EntranceCall::None }
    }

    /// Whether the flow has ended, provided that no units are at the gate. A flow does not end during a pull that
    /// occupies a worker's slot. A blocked pull soon loses its slot; the end of the flow then waits a little longer for
    /// this pull.
    pub(super) fn is_over(&self) -> bool {
        self.is_closed()
            && self.intake.budget().in_flight() == 0
            && !self.intake.has_pulled()
            && self.intake.pulls_in_place() == 0
    }

    /// Records the planned wake-ups in the state, and fills in the remaining fields of the plan.
    pub(super) fn mark(&mut self, wakeups: &mut Wakeups) {
        for &(post, call) in &wakeups.workers {
            let threads = self.crew.threads_mut(post);
            match call {
                Call::Wake { .. } => threads.mark_woken(),
                Call::Start => threads.count_start(),
            }
        }
        if wakeups.acts_on_watch {
            self.crew.act_on_watch();
        }
        if let Some(at_ns) = wakeups.clock {
            self.crew.set_clock_until(at_ns);
        }
        wakeups.entering = match wakeups.entrance {
            EntranceCall::None => Vec::new(),
            EntranceCall::Head => self.intake.wake_head(),
            EntranceCall::All => self.intake.wake_all(),
        };
        if wakeups.closes_source {
            wakeups.tells_source = self.intake.source_mut().is_some_and(SourceState::close);
        }
    }

    /// Removes submitters from the line. Plans and marks the wake-ups that this makes possible.
    pub(super) fn expel(&mut self, places: &[u64]) -> Wakeups {
        self.intake.expel(places);
        let mut wakeups = Wakeups { entrance: self.plan_entrance(), ..Wakeups::default() };
        self.mark(&mut wakeups);
        wakeups
    }

    // ---- sleepers -------------------------------------------------------------------------------------

    /// Counts the calling thread as asleep. Returns whether the thread should poll for work first. One polling thread
    /// is enough, and a thread polls only if another worker is expected back soon.
    pub(super) fn fall_asleep(&mut self, post: Post, now: u64) -> bool {
        self.crew.watch_sooner(&mut self.timers, now);
        let is_expected = post == Post::Shared && self.crew.expects_one_soon();
        let threads = self.crew.threads_mut(post);
        let alert = is_expected && !threads.has_alert();
        threads.fall_asleep(alert);
        alert
    }

    /// Whether a wake-up was meant for the calling thread, or the flow is joined.
    pub(super) fn has_woken(&mut self, post: Post, was_alert: bool) -> bool {
        let finished = self.life.is_finished();
        let threads = self.crew.threads_mut(post);
        if was_alert {
            threads.stop_polling();
        }
        // The thread that sent the wake-up has already counted this thread as awake.
        if threads.take_signal() {
            return true;
        }
        if finished {
            threads.wake_by_itself();
        }
        finished
    }

    // ---- the timekeeper -------------------------------------------------------------------------------

    /// Runs every timer that is due, and grants the units that can then be granted.
    pub(super) fn fire_timers(&mut self, now: u64) {
        while let Some((at_ns, action)) = self.timers.next_due(now) {
            match action {
                TimerAction::Enqueue(row, stage) => self.stages.enqueue(row, stage, now),
                TimerAction::Batch(stage) => self.stages.at_mut(stage).batch_timer_fired(&mut self.timers, now),
                TimerAction::Memory => self.grants.memory_mut().timer_fired(&mut self.timers, now),
                TimerAction::RetrySpawn => self.crew.resume_spawning(),
                TimerAction::Keys(resource) => self.grants.keys_timer_fired(resource),
                TimerAction::Group(group) => self.close_group(group, now),
                TimerAction::Rate(instance) => self.grants.rate_timer_fired(instance, at_ns),
                TimerAction::Watch => {
                    if self.crew.end_watch(at_ns) {
                        self.displace_long_pull(now);
                        self.take_turns_back(at_ns, now);
                        self.follow_turns();
                    }
                }
            }
        }
        self.grant_all(now);
        self.note_room(now);
    }

    /// Sets another watch after one has ended, if workers are still expected.
    pub(super) fn watch_again(&mut self, now: u64) {
        if self.crew.expects_one_soon() {
            self.crew.watch(&mut self.timers, now);
        }
    }

    /// Counts a thread that the system refused to start, and pauses the start of further threads.
    pub(super) fn spawn_failed(&mut self, post: Post, now: u64) {
        self.crew.spawn_failed(post, &mut self.timers, now);
    }

    /// The time of the next timer. The timekeeper is about to sleep until then.
    pub(super) fn sleep_clock(&mut self) -> u64 {
        let next = self.timers.next_at();
        self.crew.set_clock_until(next);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::claims::{NO_STAGE, Wants};
    use crate::engine::intake::candidate::Candidate;
    use crate::engine::run::settlement::Settlement;
    use crate::engine::settings::{Settings, Workers};
    use crate::engine::stages::stage::StageSetup;
    use crate::policy::Batch;

    /// A flow of stages that need nothing, the last stage nearest to the exit; `true` marks a blocking stage.
    fn flow(stages: &[bool]) -> State {
        let setup = |(number, &blocking): (usize, &bool)| StageSetup {
            name: number.to_string().into(),
            blocking,
            dynamic: false,
            wants: Wants::new(),
            permits: Wants::new(),
            places: [].into(),
            splits: None,
            groups: None,
            batch: Batch::of(1),
            resources: 0,
        };
        let workers = stages.iter().map(|_| Workers { floor: 0, ceiling: 2, follows_shared: true }).collect();
        let settings = Settings { inflight: 10, memory: 100, shared_workers: 2, workers };
        let order = (0..stages.len() as u16).rev().collect();
        let mut state = State::new(&settings, stages.iter().enumerate().map(setup).collect(), &[], &[], order, 0, None);
        state.open(1);
        state
    }

    /// Admits a unit and grants it.
    fn admit(state: &mut State) {
        let mut arrivals = state.units.take_list();
        let plain = state.admit(Candidate::new(0), &mut arrivals, 1, |_| ());
        state.enter(arrivals, plain, 1);
        state.grant_all(1);
    }

    fn plan(state: &State) -> Wakeups {
        state.plan_wakeups(|| true, 1)
    }

    #[test]
    fn an_idle_flow_wakes_no_thread() {
        let wakeups = plan(&flow(&[false]));
        assert!(wakeups.workers.is_empty() && wakeups.clock.is_none() && !wakeups.over);
        assert_eq!(wakeups.entrance, EntranceCall::None);
    }

    #[test]
    fn the_first_unit_starts_a_worker_and_the_next_one_wakes_it() {
        let mut state = flow(&[false]);
        admit(&mut state);
        let mut wakeups = plan(&state);
        assert_eq!(wakeups.workers[..], [(Post::Shared, Call::Start)]);
        state.mark(&mut wakeups);
        assert!(plan(&state).workers.is_empty(), "the new thread will look for work");
        state.crew.threads_mut(Post::Shared).fall_asleep(false);
        let mut wakeups = plan(&state);
        assert_eq!(wakeups.workers[..], [(Post::Shared, Call::Wake { sleepers: 1 })]);
        state.mark(&mut wakeups);
        assert!(plan(&state).workers.is_empty(), "the sleeper counts as awake");
    }

    #[test]
    fn a_plan_changes_nothing() {
        let mut state = flow(&[false]);
        admit(&mut state);
        assert_eq!(plan(&state).workers, plan(&state).workers);
    }

    #[test]
    fn a_blocking_stage_gets_a_thread_of_its_own() {
        let mut state = flow(&[true]);
        admit(&mut state);
        assert_eq!(plan(&state).workers[..], [(Post::Stage(0), Call::Start)]);
    }

    #[test]
    fn no_thread_is_started_after_the_system_has_refused_one() {
        let mut state = flow(&[false]);
        admit(&mut state);
        state.crew.threads_mut(Post::Shared).count_start();
        state.crew.spawn_failed(Post::Shared, &mut state.timers, 1);
        let wakeups = plan(&state);
        assert!(wakeups.workers.is_empty() && wakeups.clock.is_some(), "the timekeeper will try again");
    }

    #[test]
    fn a_closed_flow_is_over_when_its_last_unit_and_the_gate_are_gone() {
        let mut state = flow(&[false]);
        admit(&mut state);
        state.life.drain();
        assert!(!plan(&state).over);
        let batch = state.dispatch(0, None, true, 2).unwrap();
        let mut settlement = Settlement { to: NO_STAGE, plain: true, ..Settlement::default() };
        state.settle(batch, &mut settlement, 3);
        assert!(plan(&state).over && !state.plan_wakeups(|| false, 3).over);
    }

    #[test]
    fn a_flow_that_closes_ends_its_source_once() {
        let mut state = flow(&[false]);
        state.attach_source();
        state.life.stop();
        let mut wakeups = plan(&state);
        assert!(wakeups.closes_source);
        state.mark(&mut wakeups);
        assert!(wakeups.tells_source && !plan(&state).closes_source);
    }
}
