"""Weakened orderings and missing checks in rings and channels, each of which a loom model or a test must find."""

PACKAGE = "millstream-ring"
FOLDER = "crates/ring"
# The tests to build and run, with their RUSTFLAGS: the models, and tests on the machine for mistakes that no model finds.
RUNS = [
    (["--release", "--lib"], "--cfg loom"),
    (["--lib", "--test", "channel", "--test", "discard", "--test", "graph", "--test", "pool", "--test", "shutdown", "--test", "shared", "--test", "linearizable"], ""),
]


def relaxed(name, old, what):
    """The mistake of a missing ordering."""
    new = old
    for ordering in ("Acquire", "Release", "AcqRel"):
        new = new.replace(f"Ordering::{ordering}", "Ordering::Relaxed")
    return name, old, new, what


# File, source text, its replacement, the mistake.
MUTANTS = [
    # One producer, one consumer.
    relaxed("sequencer/single.rs", "self.cursor.store(end, Ordering::Release)", "one producer completes relaxed"),
    relaxed("sequencer/single.rs", "self.cursor.load(Ordering::Acquire)", "one producer's completions are read relaxed"),
    relaxed("graph/party.rs", "self.has_left.store(true, Ordering::Release)", "a party announces relaxed that it has left"),
    relaxed("graph/party.rs", "self.has_left.load(Ordering::Acquire)", "the departure of a party is read relaxed"),
    relaxed("graph/party.rs", "self.members.fetch_sub(1, Ordering::AcqRel)", "the last member of a pool does not pass on the others' work"),
    ("graph/consumer.rs", "            self.core.arrivals.notify_all(|| ());\n", "", "a leaving consumer does not wake its followers"),
    ("graph/consumer.rs", "            self.core.free_space.wake_all();\n", "", "a leaving consumer does not wake producers that wait for its room"),
    ("graph/consumer.rs", "            self.core.leaves.forget_departed();\n", "", "the leaves keep all consumers that have left"),
    ("sequencer/single.rs", "if free < least {\n                return None;", "if free + 1 < least {\n                return None;",
     "a producer takes a slot more than is free"),
    # Many producers.
    relaxed("sequencer/multi.rs", "take_while(|flag| flag.load(Ordering::Acquire) &", "flags are read relaxed"),
    relaxed("sequencer/multi.rs", "self.flag(position).load(Ordering::Acquire) & LAP", "a glance at a flag is relaxed"),
    relaxed("sequencer/multi.rs", "let next = claims.cursor.load(Ordering::Acquire);", "a claim reads the cursor relaxed"),
    relaxed("sequencer/multi.rs", "claims.limit.load(Ordering::Acquire);", "a claim reads the limit relaxed"),
    relaxed("sequencer/multi.rs", "claims.limit.store(limit, Ordering::Release);", "the limit is passed on relaxed"),
    relaxed("sequencer/multi.rs", "compare_exchange(next, end, Ordering::Release,", "a claim is made relaxed"),
    relaxed("sequencer/multi.rs", "let next = self.claims.cursor.load(Ordering::Acquire);", "the available positions are computed from a stale cursor"),
    relaxed("sequencer/multi.rs", "self.claims.limit.load(Ordering::Acquire).max(next)", "the available positions are computed from a stale limit"),
    relaxed("sequencer/multi.rs", "flag.store(lap, Ordering::Release);", "one of many completes relaxed"),
    relaxed("sequencer/multi.rs", "self.lap(position) | SKIPPED, Ordering::Release", "a place is given up relaxed"),
    ("sequencer/multi.rs", "if claims.cursor.load(Ordering::Relaxed) == next {\n                        return None;\n                    }\n"
     "                    continue;", "return None;", "a ring is taken for full although the cursor has moved on meanwhile"),
    ("sequencer/multi.rs", "frontier(limit.max(next))", "frontier(limit)", "flags are read for a lap that is long over"),
    ("sequencer/multi.rs", "self.has_skipped.store(true, Ordering::Relaxed);", "", "receivers do not learn that a place was given up"),
    # Channels: ends.
    relaxed("channel/core.rs", "let senders = self.ends.senders.load(Ordering::Acquire);", "the end of the senders is read relaxed"),
    relaxed("channel/core.rs", "self.ends.senders.fetch_sub(1, Ordering::AcqRel)", "a sender leaves relaxed"),
    relaxed("channel/core.rs", "self.ends.receivers.fetch_sub(1, Ordering::AcqRel)", "a receiver leaves relaxed"),
    relaxed("channel/core.rs", "fetch_or(CLOSED, Ordering::Release)", "a channel is closed relaxed"),
    ("channel/core.rs", "        fence(Ordering::Acquire);\n        false\n", "        false\n", "the end of the receivers is read relaxed"),
    ("channel/core.rs", "            fence(Ordering::Acquire);\n            return false;\n", "            return false;\n",
     "the closing of a channel is read relaxed"),
    relaxed("sequencer/multi.rs", "fetch_or(CLOSED, Ordering::Release)", "a channel's claims end relaxed"),
    ("channel/core.rs", "fetch_or(CLOSED, Ordering::Release);\n        heavy();", "fetch_or(CLOSED, Ordering::Release);",
     "a channel is closed without a heavy fence"),
    ("channel/core.rs", "C::MANY && self.producers.is_closed()", "false", "the last value of a closed channel ends one receiver's wait only"),
    ("channel/core.rs", "            self.discard(&mut panic);\n", "", "a sender leaves its value in a channel without receivers"),
    ("channel/discard.rs", "            self.arrivals.notifier.stay_registered();\n", "", "the last receiver leaves no waiter registered"),
    ("channel/discard.rs", "            self.arrivals.notifier.stay_registered();\n            self.discard(&mut panic);\n", "            self.arrivals.notifier.stay_registered();\n",
     "the last receiver does not look again once senders see a waiter"),
    relaxed("channel/discard.rs", "self.discarding.requests.fetch_add(1, Ordering::AcqRel)", "a discarding thread does not see its predecessor's work"),
    ("channel/discard.rs", "if self.producers.is_complete(position) {", "if true {", "a value that was never written is dropped"),
    ("channel/wait.rs", "0 if available() == 0 =>", "0 =>", "no second look after the last sender has left"),
    ("channel/wait.rs", "                    self.notify(1, || ());\n", "", "a receiver that saw several values wakes no other one"),
    ("channel/wait.rs", "!C::MANY, || self", "true, || self", "each of many receivers stays registered as if it were alone"),
    # Graphs.
    relaxed("graph/leaves.rs", "self.0.load(Ordering::Acquire)", "the leaves' floor is read relaxed"),
    relaxed("graph/leaves.rs", "fetch_update(Ordering::Release,", "the leaves' floor is raised relaxed"),
    relaxed("graph/core.rs", "self.open.fetch_sub(1, Ordering::AcqRel)", "a producer of a graph leaves relaxed"),
    relaxed("graph/core.rs", "self.open.load(Ordering::Acquire)", "the end of a graph's producers is read relaxed"),
    # Sleeping.
    ("wait/notifier.rs", "pub(crate) fn has_waiters(&self) -> bool {\n        light();", "pub(crate) fn has_waiters(&self) -> bool {",
     "a notifying thread looks for waiters without a light fence"),
    ("wait/notifier.rs", "let registration = self.register_unfenced();\n        heavy();\n        registration", "self.register_unfenced()",
     "a waiter registers without a heavy fence"),
    ("wait/notifier.rs", "announce();\n        heavy();", "announce();", "a task registers without a heavy fence"),
    ("wait/notifier.rs", "            let key = self.key();\n            if let Some(found) = look() {\n                return Some(found);\n            }\n",
     "            if let Some(found) = look() {\n                return Some(found);\n            }\n            let key = self.key();\n",
     "a sleeper takes its key after the look"),
    ("wait/notifier.rs", "            let key = registration.key();\n            if let Some(found) = look() {\n                return found;\n            }\n",
     "            if let Some(found) = look() {\n                return found;\n            }\n            let key = registration.key();\n",
     "a task takes its key after the look"),
    ("wait/notifier.rs", "std::mem::forget(self.register());", "std::mem::forget(self.register_unfenced());", "a consumer that stays registered passes no heavy fence"),
    ("wait/arrivals.rs", "            self.notifier.stay_registered();\n", "", "a consumer that should stay registered is not registered"),
    ("wait/arrivals.rs", "            self.stays_registered.store(false, Ordering::Relaxed);\n", "", "a consumer that unregisters believes that it is registered"),
    ("wait/free_space.rs", "-> bool {\n        light();\n", "-> bool {\n", "a consumer looks for waiting tasks without a light fence"),
    relaxed("wait/free_space.rs", "self.alarm.is_set.swap(false, Ordering::AcqRel)", "the alarm is taken back relaxed"),
    relaxed("wait/free_space.rs", "self.alarm.is_set.store(true, Ordering::Release)", "the alarm is set relaxed"),
    ("wait/free_space.rs", "                self.set_alarm();\n                heavy();\n", "                self.set_alarm();\n",
     "a task that registered in between is woken without a heavy fence"),
    ("wait/free_space.rs", "                self.set_alarm();\n                heavy();\n", "                heavy();\n",
     "a task that registered in between has no alarm any more"),
    ("wait/free_space.rs", "self.looker.is_there.swap(true, Ordering::Relaxed)", "false", "all producers look at once"),
    ("wait/free_space.rs", "level() <= self.portion", "true", "a starved consumer wakes producers although much is on its way"),
    ("wait/free_space.rs", " && !self.line.is_waking()", "", "a poll wakes a second producer before the first is awake"),
    ("wait/free_space.rs", " && !self.looker.is_there.load(Ordering::Relaxed) && !self.line", " && !self.line",
     "a poll wakes a producer while another one looks"),
    ("wait/line.rs", "        self.line.is_waking.store(false, Ordering::Relaxed);\n", "", "polls wake one producer and then none"),
    ("wait/free_space.rs", "            self.line.wake_first();\n        }\n        found\n", "        }\n        found\n",
     "a producer whose deadline passes keeps the wake-up of the next one"),
    ("wait/line.rs", "self.enqueue(VecDeque::push_front);", "self.enqueue(VecDeque::push_back);", "a sleeper that was woken in vain goes to the end of the line"),
    # Looking.
    ("wait/arrivals.rs", "if is_interchangeable { look().or(Some(found)) } else { Some(found) }", "Some(found)",
     "a looker does not look for what was left to it"),
    ("wait/arrivals.rs", "            fence(Ordering::SeqCst);\n            if self.lookers", "            if self.lookers", "a waker reads the lookers without a fence"),
    ("wait/arrivals.rs", "        self.lookers.fetch_sub(1, Ordering::Relaxed);\n        // Pairs with the fence in `wake`: the waiter sees the event of each waker that has seen it look.\n        fence(Ordering::SeqCst);\n",
     "        self.lookers.fetch_sub(1, Ordering::Relaxed);\n", "a looker stops without a fence"),
    ("wait/arrivals.rs", "            if self.lookers.load(Ordering::Relaxed) == 0 {\n", "            if false {\n", "no interchangeable waiter is woken"),
    ("wait/spin.rs", "took_ns / events.saturating_add(1)", "took_ns", "a sleeper learns from a sleep in which others took the events"),
    ("wait/spin.rs", "if before > 0 && (before..before + u64::from(cost::of_sleep())).contains(&woken_ns) {", "if false {", "a waiter that sleeps at once never looks again"),
    ("wait/free_space.rs", "            self.wake_tasks(places);\n", "", "a completion wakes no task"),
    ("wait/free_space.rs", "            self.wake_tasks(places);\n", "            self.tasks.wake(usize::MAX);\n", "a completion wakes all tasks"),
    ("wait/free_space.rs", "        self.tasks.wake(1);\n        self.tasks.catch_up();\n        let more = (places.number)() - 1;",
     "        let more = (places.number)();", "a consumer counts the places it freed before it wakes"),
    ("channel/core.rs", "self.consumers.completed(start).max(end) - start;", "end - start;", "a consumer that closes a gap wakes a task for its own place only"),
    ("channel/core.rs", "if self.consumers.claimed() > start + capacity { capacity } else { run }", "run",
     "a consumer that closes a gap and is lapped wakes too few tasks"),
    ("graph/consumer.rs", "                    core.arrivals.pass_on();\n", "", "a pool's member that saw several events wakes no other one"),
    ("graph/builder.rs", "if !(C::MANY && self.plan.is_empty()) {\n            core.arrivals.set_distinct();", "if false {\n            core.arrivals.set_distinct();",
     "consumers of a graph are taken for a pool"),
    ("graph/running.rs", "        self.core.arrivals.become_distinct();\n", "", "a newcomer is taken for a member of the pool"),
    ("wait/arrivals.rs", "            self.notifier.wake(events);\n", "            self.notifier.wake(usize::MAX);\n", "an event wakes a whole pool"),
    ("wait/arrivals.rs", "            light();\n            if self.are_interchangeable() {\n                return;\n            }\n", "            return;\n",
     "a thread that wakes one waiter does not check again whether all are interchangeable"),
    ("wait/arrivals.rs", "if has_waiters && !self.are_interchangeable() {", "if false {", "a completion wakes no followers"),
    ("wait/arrivals.rs", "if has_waiters && !self.are_interchangeable() {", "if has_waiters {", "a completion wakes a pool without followers"),
    # Between processes.
    relaxed("shared/consumer.rs", "self.limit = self.segment.header().published.0.load(Ordering::Acquire)",
            "between processes: the published position is read relaxed"),
    relaxed("shared/consumer.rs", "header().consumed.0.store(end, Ordering::Release)", "between processes: the consumed position is stored relaxed"),
    relaxed("shared/producer.rs", "self.limit = self.segment.header().consumed.0.load(Ordering::Acquire)",
            "between processes: the consumed position is read relaxed"),
    relaxed("shared/producer.rs", "header().published.0.store(end, Ordering::Release)", "between processes: the published position is stored relaxed"),
    ("shared/consumer.rs", "        self.segment.header().room.0.wake();\n    }\n\n    /// The same", "    }\n\n    /// The same",
     "between processes: the consumer does not wake the producer"),
    ("shared/producer.rs", "        self.segment.header().arrivals.0.wake();\n        sent", "        sent", "between processes: the producer does not wake the consumer"),
    ("shared/consumer.rs", "        segment.header().room.0.wake();\n        Consumer {", "        Consumer {",
     "between processes: an attaching consumer does not wake the producer"),
    ("shared/producer.rs", "        segment.header().arrivals.0.wake();\n        Producer {", "        Producer {",
     "between processes: an attaching producer does not wake the consumer"),
]
