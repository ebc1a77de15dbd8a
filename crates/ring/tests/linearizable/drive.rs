//! Runs threads that use a ring while they are disturbed, records their operations, and checks the history.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::thread;
use std::time::Duration;

use millstream_history::timeline::Timeline;
use millstream_history::{History, Model, Op, Options, Verdict, check};
use millstream_recorder::{Log, Preemption, Recorder};

use millstream_verify_random::Random;

/// The end of a ring that one thread uses.
pub(crate) enum End<'a> {
    /// Sends a value; `false` if there is no room.
    Sender(Box<dyn FnMut(u64) -> bool + Send + 'a>),
    /// Receives a value, if there is one.
    Receiver(Box<dyn FnMut() -> Option<u64> + Send + 'a>),
}

/// The meaning of "full" and "empty".
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// Both are answers, which must be true at some moment of the call.
    Answers,
    /// "Empty" is such an answer. "Full" promises nothing: the operation fails without effect.
    FullFails,
    /// Neither promises anything: the operation fails without effect.
    Fails,
}

/// The number of refusals in a row after which a sender gives up.
const MAX_REFUSALS: u64 = 20_000;

/// Each sender sends `numbers` values. The receivers receive until all senders have ended and no value is left.
pub(crate) fn hand_over(ends: Vec<End<'_>>, numbers: u64, refused: Refused, random: &mut Random) -> History {
    run(ends, numbers, refused, [Op::ENQUEUE, Op::DEQUEUE], random)
}

/// Like [`hand_over`], but every receiver must see every value.
pub(crate) fn broadcast(ends: Vec<End<'_>>, numbers: u64, random: &mut Random) -> History {
    run(ends, numbers, Refused::Answers, [Op::PUBLISH, Op::CONSUME], random)
}

fn run(ends: Vec<End<'_>>, numbers: u64, refused: Refused, [put, get]: [Op; 2], random: &mut Random) -> History {
    let recorder = Recorder::new().room(1 << 10);
    let senders = ends.iter().filter(|end| matches!(end, End::Sender(_))).count();
    let sending = AtomicUsize::new(senders);
    let conditions = if refused == Refused::Answers { Conditions::quiet() } else { Conditions::stopping() };
    thread::scope(|scope| {
        for end in ends {
            let (mut log, mut random) = (recorder.log(), random.fork());
            let sending = &sending;
            scope.spawn(move || match end {
                End::Sender(mut send) => {
                    let first = u64::from(log.process()) * numbers;
                    let mut sent = 0;
                    // Some twins lose free slots, and would keep their senders waiting without end.
                    let mut refusals = 0;
                    while sent < numbers && refusals < MAX_REFUSALS {
                        disturb(&mut random);
                        if put_once(&mut log, put, first + sent, refused, &mut send) {
                            (sent, refusals) = (sent + 1, 0);
                        } else {
                            refusals += 1;
                            thread::yield_now();
                        }
                    }
                    sending.fetch_sub(1, Ordering::Release);
                }
                End::Receiver(mut receive) => loop {
                    disturb(&mut random);
                    let ended = sending.load(Ordering::Acquire) == 0;
                    if !get_once(&mut log, get, refused, &mut receive) {
                        if ended {
                            return;
                        }
                        thread::yield_now();
                    }
                },
            });
        }
    });
    conditions.afterwards(|| recorder.finish())
}

fn put_once(log: &mut Log, op: Op, value: u64, refused: Refused, send: &mut impl FnMut(u64) -> bool) -> bool {
    log.begin(op, value);
    let accepted = send(value);
    match refused {
        _ if accepted => log.end(()),
        Refused::Answers => log.end(false),
        Refused::FullFails | Refused::Fails => log.fail(),
    }
    accepted
}

fn get_once(log: &mut Log, op: Op, refused: Refused, receive: &mut impl FnMut() -> Option<u64>) -> bool {
    log.begin(op, ());
    let value = receive();
    match refused {
        Refused::Fails if value.is_none() => log.fail(),
        _ => log.end(value),
    }
    value.is_some()
}

/// Whether a run's threads are stopped by signals. Signals go to all threads of the process, so a test that uses them
/// runs alone.
///
/// If "full" and "empty" are answers, the checker must search for an order. No search copes with operations that were
/// stopped while hundreds of others ran, or with a clock skew that was measured while threads were stopped.
pub(crate) enum Conditions {
    Quiet(RwLockReadGuard<'static, ()>),
    Stopping(Preemption, RwLockWriteGuard<'static, ()>),
}

static ALONE: RwLock<()> = RwLock::new(());

impl Conditions {
    /// No thread is stopped.
    pub(crate) fn quiet() -> Self {
        Conditions::Quiet(ALONE.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Threads are stopped at arbitrary instructions.
    pub(crate) fn stopping() -> Self {
        let alone = ALONE.write().unwrap_or_else(PoisonError::into_inner);
        Conditions::Stopping(Preemption::start().expect("SIGURG is free"), alone)
    }

    /// Lets all threads continue, then runs `then`.
    pub(crate) fn afterwards<T>(self, then: impl FnOnce() -> T) -> T {
        match self {
            Conditions::Quiet(_others) => then(),
            Conditions::Stopping(preemption, _alone) => {
                drop(preemption);
                then()
            }
        }
    }
}

/// Yields the core, sleeps, or pauses for longer than the skew between the clocks of two cores.
pub(crate) fn disturb(random: &mut Random) {
    match random.below(256) {
        0..4 => thread::yield_now(),
        4 => thread::sleep(Duration::from_micros(random.below(50))),
        5..64 => (0..random.below(100)).for_each(|_| std::hint::spin_loop()),
        _ => (),
    }
}

pub(crate) fn verdict(history: &History, model: &Model, explain: bool) -> Verdict {
    let options = Options { time: Some(Duration::from_secs(60)), explain, ..Options::default() };
    check(history, model, &options).expect("the operations are the model's")
}

pub(crate) fn holds(history: &History, model: &Model) {
    match verdict(history, model, true) {
        Verdict::Holds(_) => (),
        Verdict::Unknown(progress) => panic!("{model}: not decided: {progress:?}"),
        failed @ Verdict::Fails(_) => {
            let page = std::env::temp_dir().join(format!("not-a-{}-{}.html", model.kind, std::process::id()));
            fs::write(&page, Timeline::new(model.kind.name(), history, &failed).html()).unwrap();
            panic!("{model}: {failed:?}: see {}", page.display());
        }
    }
}

/// Asserts that one of a few histories can be decided, and is linearizable. On a busy machine the clocks of its cores
/// sometimes differ so much that the checker would have to try too many orders.
pub(crate) fn holds_once_decided(model: &Model, mut record: impl FnMut() -> History) {
    const HISTORIES: usize = 5;
    let options = Options { time: Some(Duration::from_secs(10)), explain: false, ..Options::default() };
    let is_decided = |history: &History| {
        let verdict = check(history, model, &options).expect("the operations are the model's");
        !matches!(verdict, Verdict::Unknown(_))
    };
    let decided = (0..HISTORIES).map(|_| record()).find(is_decided);
    holds(&decided.unwrap_or_else(|| panic!("{model}: none of {HISTORIES} histories was decided")), model);
}

/// Asserts that the history is not linearizable, with a small counter-example, which is drawn if pictures are
/// requested.
pub(crate) fn caught(name: &str, title: &str, history: &History, model: &Model) {
    let verdict = verdict(history, model, true);
    let Verdict::Fails(found) = &verdict else { panic!("{title} was not caught: {verdict:?}") };
    assert!((1..=10).contains(&found.operations.len()), "{title}: {found:?}");
    if let Some(folder) = std::env::var_os("MILLSTREAM_PICTURES").map(PathBuf::from) {
        fs::write(folder.join(format!("{name}.svg")), Timeline::new(title, history, &verdict).svg()).unwrap();
    }
}
