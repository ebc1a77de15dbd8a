"""Mistakes in the waits and wake-ups of fibers, each of which a loom model or a test must find."""

PACKAGE = "millstream-fiber"
FOLDER = "crates/fiber"
# The tests to build and run, with their RUSTFLAGS: the models, and tests on the machine for mistakes that no model finds.
RUNS = [
    (["--release", "--lib"], "--cfg loom"),
    (["--lib", "--test", "cancel", "--test", "fibers", "--test", "io", "--test", "io_races", "--test", "scope", "--test", "watched"], ""),
]

# File, source text, its replacement, the mistake.
MUTANTS = [
    ("scheduler/wait_state.rs", "swap(WOKEN, AcqRel) == ASLEEP", "swap(WOKEN, Relaxed) == ASLEEP", "a wake-up is relaxed"),
    ("scheduler/wait_state.rs", "compare_exchange(AWAKE, ASLEEP, Release, Relaxed)", "compare_exchange(AWAKE, ASLEEP, Relaxed, Relaxed)",
     "a fiber falls asleep relaxed"),
    ("scheduler/wait_state.rs", "self.0.swap(AWAKE, Acquire);", "self.0.swap(AWAKE, Relaxed);", "a wait ends relaxed"),
    ("scheduler/wait_state.rs", "self.0.swap(WOKEN, AcqRel) == ASLEEP", "self.0.compare_exchange(ASLEEP, WOKEN, AcqRel, Relaxed).is_ok()",
     "a wake-up that comes before the wait is forgotten"),
    ("scheduler/inbox.rs", "compare_exchange_weak(newest, item, Release, Relaxed)", "compare_exchange_weak(newest, item, Relaxed, Relaxed)",
     "an arrival is relaxed"),
    ("scheduler/inbox.rs", "swap(ptr::null_mut(), Acquire)", "swap(ptr::null_mut(), Relaxed)", "arrivals are taken relaxed"),
    ("scheduler/inbox.rs", "            self.bell.ring();\n", "", "an arrival does not wake the worker"),
    ("scheduler/inbox.rs", "if self.push(item) {", "if !self.push(item) {", "only an arrival in an inbox with others wakes the worker"),
    ("scheduler/bell.rs", "        // Pairs with the fence in `sleep_in_poller`.\n        fence(SeqCst);\n", "",
     "a ring asks without a fence whether the worker sleeps in its poller"),
    ("scheduler/bell.rs", "        // Pairs with the fence in `ring`.\n        fence(SeqCst);\n", "",
     "a worker sleeps in its poller without a fence"),
    ("scheduler/bell.rs", "poll(self.has_rung(key));", "poll(false);", "a worker sleeps in its poller though the bell has rung"),
    ("sync/channel/queue.rs", "if self.values.len() > self.promises {\n            Ok(self.take())", "if !self.values.is_empty() {\n            Ok(self.take())",
     "a newcomer takes a value that is promised to a receiver"),
    ("sync/channel/queue.rs", "        self.promises -= 1;\n        self.promise()\n", "        self.promises -= 1;\n        None\n",
     "a receiver that gives up passes no promise on"),
    ("sync/channel/queue.rs", "let receiver = self.promise();", "let receiver = None;", "a value from the line of senders wakes no receiver"),
    ("sync/channel/queue.rs", "self.senders == 0 && self.values.is_empty()", "self.senders == 0", "a channel ends before its last value is taken"),
    ("sync/channel/queue.rs", "last: self.receivers_at_the_end()", "last: Vec::new()", "the last value wakes no receiver that waits for another"),
    ("sync/channel/queue.rs", "|(waiter, _)| waiter.clone()).collect()", "|(waiter, _)| waiter.clone()).take(1).collect()",
     "the last receiver wakes one sender only"),
    ("io/poller.rs", "                        if flags.intersects(interest.events()) {\n", "                        if interest == Interest::Read {\n",
     "a descriptor that is writable wakes no writer"),
    ("io/poller.rs", "flags & Interest::Read.events() == EventFlags::IN", "flags.contains(EventFlags::IN)",
     "an end that was reported with bytes is waited for"),
    ("io/poller.rs", "if waiters.registration == (mark >> 32) as u32 {", "{", "an event of an earlier owner of a number speaks for the later one"),
    ("io/poller.rs", "        self.turn = self.turn.next();\n", "", "all questions to the kernel are one turn"),
    ("io/source.rs", "(1..length).contains(&bytes)", "(1..=length).contains(&bytes)", "a read that fills its buffer passes for one that emptied the stream"),
    ("io/source.rs", "    if is_due == Some(true) {\n        yield_fiber();\n    }\n", "    let _ = is_due;\n", "a fiber that never waits keeps its worker"),
    ("io/ring.rs", "(is_late(deadline) || is_ended)", "is_late(deadline)", "a cancelled fiber's operation is not cut short"),
    ("spawn.rs", "payload.is::<Unwound>() && is_cancelled()", "payload.is::<Unwound>()", "a payload passes for a cancellation elsewhere"),
    ("scheduler/worker.rs", "if fiber.is_cancelled() { Start::Cancelled } else { Start::Run }", "Start::Run",
     "a fiber that was cancelled before its start runs"),
    ("waiter.rs", "|| is_unwinding ||", "||", "a fiber that unwinds is cancelled again"),
    ("scheduler/joiner.rs", "is_found = std::ptr::eq(next, target);", "is_found = false;", "cycles of joins are not found"),
    ("join.rs", "let _place = Place(&target.joiner);", "let _place = ();", "a joiner that unwinds stays in its place"),
    ("outcome.rs", "if let (Some(scope), Some(Err(JoinError::Panicked(_)))) = (&self.outcome.scope, &self.result) {", "if let (Some(scope), Some(Ok(_))) = (&self.outcome.scope, &self.result) {",
     "a panic that nothing joins is not one of its scope"),
    ("scheduler/watch.rs", "    if post.seems_to_have_unstarted() {\n        shared.wake_idle();\n    }\n", "",
     "unstarted fibers stay with a worker that is kept"),
]
