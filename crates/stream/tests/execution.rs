//! Tests that programs produce the values that their definition says, and that their memory does not grow.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ops::ControlFlow;
use std::rc::Rc;

use millstream_stream::check::{Cause, CheckError, Guarantee, Way};
use millstream_stream::{Error, Part, Program, RunError, Stream};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// Counts the allocations of each thread.
struct Counting;

// SAFETY: all calls are passed to the system's allocator unchanged. Counting only changes a thread-local number.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the memory came from `alloc` above, with this layout.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

fn all<T: Clone + 'static>(stream: &Stream<T>) -> Vec<T> {
    stream.run().unwrap().values().collect::<Result<_, _>>().unwrap()
}

fn refusal<T: Clone + 'static>(stream: &Stream<T>) -> millstream_stream::check::Refusal {
    match stream.run() {
        Err(Error::Check(CheckError::Refused(refusal))) => *refusal,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was accepted"),
    }
}

fn source(n: u64) -> Stream<u64> {
    Program::new().iter("x", 0..n).share()
}

#[test]
fn operators_give_the_values_of_their_definitions() {
    assert_eq!(all(&source(5).map(|n| n * 2)), [0, 2, 4, 6, 8]);
    assert_eq!(all(&source(6).filter(|n| n % 3 == 0)), [0, 3]);
    assert_eq!(all(&source(4).scan(0, |sum, n| *sum += n)), [0, 1, 3, 6]);
    assert_eq!(all(&source(10).every_from(4, 2)), [2, 6]);
    assert_eq!(all(&source(7).keep("0(110)").unwrap()), [1, 2, 4, 5]);
    assert_eq!(all(&source(3).repeat(2)), [0, 0, 1, 1, 2, 2]);
    assert_eq!(all(&source(2).prefix(vec![8, 9])), [8, 9, 0, 1]);
    assert_eq!(all(&source(7).tumbling(3)), [[0, 1, 2], [3, 4, 5]]);
    assert_eq!(all(&source(6).windows(3, 2)), [[0, 1, 2], [2, 3, 4]]);
    assert_eq!(all(&source(5).reduce(0, |sum, n| *sum += n)), [10]);
    assert_eq!(all(&source(0).reduce(7, |sum, n| *sum += n)), [7]);
    assert_eq!(
        all(&source(5).fold_by_key(2, |n| n % 2, 0, |sum, n| *sum += n)),
        [(0, 0), (1, 1), (0, 2), (1, 4), (0, 6)]
    );
    let (even, odd) = source(6).split(|n| n % 2 == 0);
    assert_eq!(all(&even), [0, 2, 4]);
    assert!(matches!(odd.run(), Err(Error::RanBefore)));
}

#[test]
fn joins_end_with_the_stream_that_ends_first() {
    let program = Program::new();
    let (a, b) = (program.iter("a", 0..3_u64).share(), program.iter("b", 10..20_u64).share());
    assert_eq!(all(&a.zip(&b)), [(0, 10), (1, 11), (2, 12)]);
    let program = Program::new();
    let (a, b) = (program.iter("a", 0..3_u64).share(), program.iter("b", 10..20_u64).share());
    assert_eq!(all(&Stream::merge_by(&[a, b], &[1, 0, 1])), [10, 0, 11, 12, 1, 13, 14, 2, 15, 16]);
}

#[test]
fn hold_gives_the_latest_value_and_align_the_simultaneous_one() {
    let x = source(7);
    let third = x.filter(|n| n % 3 == 1);
    assert_eq!(all(&third.hold(&x, 99)), [99, 1, 1, 1, 4, 4, 4]);
    let x = source(7);
    // The clock's node comes before the held stream's node. Nevertheless the hold sees the value of the same moment.
    let clock = x.every(2);
    assert_eq!(all(&x.hold(&clock, 99)), [0, 2, 4, 6]);
    let x = source(5);
    let odd = x.filter(|n| n % 2 == 1);
    assert_eq!(all(&odd.align(&x)), [None, Some(1), None, Some(3), None]);
    let x = source(9);
    let (even, third) = (x.every(2), x.every(3));
    assert_eq!(all(&even.align(&third)), [Some(0), None, Some(6)]);
}

#[test]
fn values_of_the_same_filter_may_be_joined() {
    let x = source(10);
    let odd = x.filter(|n| n % 2 == 1);
    assert_eq!(all(&odd.skip(1).zip(&odd)), [(3, 1), (5, 3), (7, 5), (9, 7)]);
    let x = source(10);
    let (a, b) = (x.filter(|n| n % 2 == 1), x.filter(|n| n % 2 == 1));
    assert_eq!(refusal(&a.zip(&b)).cause, Cause::Data);
}

#[test]
fn several_reduces_of_one_stream_may_be_joined_and_one_with_its_stream_may_not() {
    let x = source(5);
    let (sum, count) = (x.reduce(0, |sum, n| *sum += n), x.every(2).reduce(0, |count, _| *count += 1));
    assert_eq!(all(&sum.zip(&count)), [(10, 3)]);
    let x = source(5);
    let refused = refusal(&x.zip(&x.reduce(0, |sum, n| *sum += n)));
    assert_eq!((refused.cause, refused.growing), (Cause::End, 0));
    assert_eq!(refused.overflows_at(100), Some(101));
    // The cycle leads through two reduces.
    let x = source(5);
    let twice = x.reduce(0, |sum, n| *sum += n).reduce(0, |sum, n| *sum += n);
    assert_eq!(refusal(&twice.zip(&x)).cause, Cause::End);
}

#[test]
fn a_buffer_lets_a_refused_program_run_until_it_is_full() {
    for buffer in [1, 2, 10, 1000] {
        let pulled = Rc::new(Cell::new(0));
        let count = Rc::clone(&pulled);
        let x = Program::new().iter("x", (0_u64..).inspect(move |_| count.set(count.get() + 1))).share();
        let refused = refusal(&x.every(2).zip(&x));
        let proof = x.every(2).zip(&x.buffer(buffer)).check().unwrap();
        assert!(proof.edges().iter().any(|bound| bound.guarantee == Guarantee::Buffer && bound.values == buffer));
        let mut running = x.every(2).zip(&x.buffer(buffer)).run().unwrap();
        let error = loop {
            match running.next() {
                Ok(value) => assert!(value.is_some()),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, RunError::BufferFull { values, .. } if values == buffer), "{error}");
        // The last value that was pulled from the source is the first one for which there is no room.
        assert_eq!(Some(pulled.get()), refused.overflows_at(buffer), "{buffer}");
    }
}

#[test]
fn a_buffer_of_as_many_values_as_wait_at_the_end_is_large_enough() {
    let pairs = |values: u64, buffer: u64| {
        let x = Program::new().iter("x", 1..=values).share();
        x.reduce(0, |sum, n| *sum += n).zip(&x.buffer(buffer)).run().unwrap().values().next().unwrap()
    };
    for n in [1, 2, 7] {
        assert_eq!(pairs(n, n).unwrap(), ((1..=n).sum(), 1));
        assert!(matches!(pairs(n + 1, n), Err(RunError::BufferFull { values, .. }) if values == n));
    }
    // A value that a filter drops needs no room.
    let x = Program::new().iter("x", 1..=100_u64).share();
    let pair = x.reduce(0, |sum, n| *sum += n).zip(&x.filter(|n| n % 50 == 1).buffer(2));
    assert_eq!(all(&pair), [(5050, 1)]);
}

#[test]
fn a_full_buffer_that_does_not_help_leaves_the_others_their_readers() {
    let program = Program::new();
    let x = program.iter("x", 0..30_u64).share();
    let part = |from: u64, to: u64, room: u64| x.filter(move |n| (from..to).contains(n)).buffer(room);
    // After the values 0 and 1, the first buffer is full until value 10. The values in between enter another buffer, whose reader
    // continues.
    let first = part(0, 2, 2).zip(&part(10, 12, 2)).reduce(0, |sum, (a, b)| *sum += a * b);
    let other = part(2, 10, 2).zip(&program.iter("y", 0..100_u64).share()).reduce(0, |sum, (a, b)| *sum += a * b);
    assert_eq!(all(&first.zip(&other)), [(11, (2..10).map(|n| n * (n - 2)).sum())]);
}

#[test]
fn a_buffer_on_the_slower_path_is_useless_and_refused() {
    let x = source(10);
    assert_eq!(refusal(&x.every(2).buffer(100).zip(&x)).cause, Cause::Rates);
    let x = source(10);
    assert_eq!(refusal(&x.filter(|n| n % 2 == 0).buffer(100).zip(&x)).cause, Cause::Data);
    let x = source(10);
    assert_eq!(refusal(&x.filter(|n| n % 2 == 0).zip(&x.skip(3).buffer(100))).cause, Cause::Data);
}

#[test]
fn each_way_out_is_accepted_and_gives_the_promised_values() {
    let folder = tempfile::tempdir().unwrap();
    let even = |x: &Stream<u64>| x.filter(|n| n % 2 == 0);
    let x = source(7);
    let refused = refusal(&even(&x).zip(&x));
    assert_eq!(refused.ways(), [Way::Buffer(100_000), Way::Reread, Way::Spill, Way::Align, Way::Hold]);
    let expected = [(0, 0), (2, 1), (4, 2), (6, 3)];
    let x = source(7);
    assert_eq!(all(&even(&x).zip(&x.buffer(10))), expected);
    let x = source(7);
    assert_eq!(all(&even(&x).zip(&x.spill(folder.path()))), expected);
    let program = Program::new();
    let (x, again) = (program.iter("x", 0..7).share(), program.iter("x", 0..7).share());
    assert_eq!(all(&even(&x).zip(&again)), expected);
    let x = source(3);
    assert_eq!(all(&even(&x).align(&x).zip(&x)), [(Some(0), 0), (None, 1), (Some(2), 2)]);
    let x = source(3);
    assert_eq!(all(&even(&x).hold(&x, 9).zip(&x)), [(0, 0), (0, 1), (2, 2)]);
}

#[test]
fn a_spill_holds_any_lag() {
    let folder = tempfile::tempdir().unwrap();
    let x = source(300_000);
    let pairs = x.every(3).zip(&x.spill(folder.path()));
    let mut running = pairs.run().unwrap();
    let mut n = 0;
    while let Some(pair) = running.next().unwrap() {
        assert_eq!(*pair, (3 * n, n));
        n += 1;
    }
    assert_eq!(n, 100_000);
}

#[test]
fn values_that_wait_on_disk_for_a_reduce_come_back() {
    let folder = tempfile::tempdir().unwrap();
    let x = source(50_000);
    let sum = x.reduce(0, |sum, n| *sum += n);
    let mut running = sum.repeat(30_000).zip(&x.every(2).spill(folder.path())).run().unwrap();
    for n in 0..25_000 {
        assert_eq!(running.next().unwrap(), Some(&(1_249_975_000, 2 * n)));
    }
    assert!(running.next().unwrap().is_none());
    assert_eq!(running.report().peaks.iter().max(), Some(&25_000));
}

#[test]
fn hold_across_a_join_is_refused_with_the_origins() {
    let program = Program::new();
    let (a, b) = (program.iter("a", 0..3_u64).share(), program.iter("b", 0..3_u64).share());
    let error = a.hold(&b, 0).check().unwrap_err();
    assert!(matches!(&error, CheckError::Apart { from, .. } if *from == ["a", "b"]), "{error}");
}

#[test]
fn too_many_keys_are_an_error_with_the_limit() {
    let keyed = source(5).fold_by_key(3, |n| *n, 0, |sum, n| *sum += n);
    let mut running = keyed.run().unwrap();
    assert!((0..3).all(|_| running.next().unwrap().is_some()));
    assert!(matches!(running.next(), Err(RunError::TooManyKeys { limit: 3, .. })));
    assert!(matches!(running.next(), Ok(None)));
}

#[test]
fn the_error_of_a_source_names_the_source() {
    let x = Program::new().read("broken", |_: &mut u64| Err::<bool, _>("no such tape"));
    let error = x.map(|n| n + 1).run().unwrap().values().next().unwrap().unwrap_err();
    assert_eq!(error.to_string(), "cannot read `broken`: no such tape");
}

#[test]
fn a_program_ends_when_its_code_panics() {
    let mut running = source(5).map(|n| assert_ne!(*n, 2)).run().unwrap();
    assert!((0..2).all(|_| running.next().unwrap().is_some()));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| running.next().map(|_| ())));
    assert!(panicked.is_err());
    assert!(matches!(running.next(), Ok(None)));
}

#[test]
fn a_panic_or_an_error_in_a_chain_ends_the_run() {
    let chain = || Program::new().iter("x", 0..5_u64);
    let mut running = chain().map(|n| assert_ne!(*n, 2)).run().unwrap();
    assert!((0..2).all(|_| running.next().unwrap().is_some()));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| running.next().map(|_| ())));
    assert!(panicked.is_err());
    assert!(matches!(running.next(), Ok(None)));

    let odd = |n: &u64, into: &mut u64| {
        *into = *n;
        if *n < 3 { Ok(()) } else { Err("too large".to_owned()) }
    };
    let mut running = chain().map_into("odd", odd).filter(|n| n % 2 == 1).run().unwrap();
    assert_eq!(running.next().unwrap(), Some(&1));
    let error = running.next().unwrap_err();
    assert_eq!(error.to_string(), "`odd`: too large");
    assert!(matches!(running.next(), Ok(None)));
    let mut seen = Vec::new();
    let error = chain().map_into("odd", odd).run().unwrap().for_each(|n| seen.push(*n)).unwrap_err();
    assert!(seen == [0, 1, 2] && matches!(error, RunError::Value { .. }));

    let keyed = chain().fold_by_key(3, |n| *n, 0, |sum, n| *sum += n).reduce(0, |count, _| *count += 1);
    assert!(matches!(keyed.run().unwrap().next(), Err(RunError::TooManyKeys { limit: 3, .. })));
    let broken = Program::new().read("broken", |_: &mut u64| Err::<bool, _>("no such tape")).map(|n| n + 1);
    let error = broken.run().unwrap().next().unwrap_err();
    assert_eq!(error.to_string(), "cannot read `broken`: no such tape");
}

#[test]
fn the_values_of_two_chains_may_be_joined_and_their_bounds_count_what_leaves_them() {
    let program = Program::new();
    let a = program.iter("a", 0..10_u64).filter(|n| n % 2 == 1).share();
    let b = program.iter("b", 0..10_u64).every(3).windows(2, 1).map(|window| window[0] + window[1]);
    let pairs = b.zip(&a).zip(&a.skip(2));
    assert_eq!(pairs.check().unwrap().edges().iter().map(|bound| bound.values).max(), Some(2));
    let mut running = pairs.run().unwrap();
    let mut values = Vec::new();
    while let Some(value) = running.next().unwrap() {
        values.push(*value);
    }
    assert_eq!(values, [((3, 1), 5), ((9, 3), 7), ((15, 5), 9)]);
    let bounds: Vec<u64> = running.proof().edges().iter().map(|bound| bound.values).collect();
    assert!(running.report().peaks.iter().zip(&bounds).all(|(peak, bound)| peak <= bound));
}

#[test]
fn a_program_that_has_run_has_dropped_its_sources() {
    let kept = Rc::new(());
    let held = Rc::clone(&kept);
    let x = Program::new().iter("x", (0..3_u64).inspect(move |_| drop(Rc::clone(&held)))).share();
    let other = x.map(|n| n + 1);
    let running = x.run().unwrap();
    assert_eq!(Rc::strong_count(&kept), 2);
    drop(running);
    assert_eq!(Rc::strong_count(&kept), 1);
    assert!(matches!(other.run(), Err(Error::RanBefore)));
}

#[test]
fn sources_are_read_no_further_than_needed() {
    let pulled = Rc::new(Cell::new(0));
    let count = Rc::clone(&pulled);
    let x = Program::new().iter("x", (0_u64..).inspect(move |_| count.set(count.get() + 1))).share();
    let mut running = x.skip(5).zip(&x).run().unwrap();
    for n in 0..10 {
        assert_eq!(*running.next().unwrap().unwrap(), (n + 5, n));
        assert_eq!(pulled.get(), n + 6);
    }
}

#[test]
fn values_lent_within_steps_are_those_pulled_one_by_one() {
    for is_shared in [false, true] {
        for (steps, pulled_at_once) in [(1, 1), (7, 3), (1000, 1000)] {
            let chain = || Program::new().iter("x", 0..500_u64).filter(|n| n % 3 != 0);
            let stream = || {
                let x = chain().share();
                x.skip(1).zip_with(&x, |next, this| next + this)
            };
            let mut running = if is_shared { stream().run().unwrap() } else { chain().run().unwrap() };
            let (mut found, mut pauses) = (Vec::new(), 0);
            loop {
                let mut left = pulled_at_once;
                let ended = running.for_each_within(&mut { steps }, |value| {
                    found.push(*value);
                    left -= 1;
                    if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
                });
                if ended.unwrap() {
                    break;
                }
                pauses += 1;
            }
            let expected = if is_shared { stream().run() } else { chain().run() }.unwrap().values();
            assert_eq!(found, expected.map(Result::unwrap).collect::<Vec<_>>());
            assert_eq!(running.report().values, found.len() as u64);
            assert!(running.for_each_within(&mut 9, |_| unreachable!("it is at its end")).unwrap());
            assert!(pauses > 0 || steps == 1000, "{pauses}");
        }
    }
}

#[test]
fn a_window_takes_as_many_steps_as_it_has_values() {
    const VALUES: u64 = 4000;
    const WINDOW: usize = 1000;
    for is_shared in [false, true] {
        for (steps, most) in [(1, 5), (2500, 5), (5000, 6), (20_000, 25)] {
            let pulled = Rc::new(Cell::new(0));
            let count = Rc::clone(&pulled);
            let x = Program::new().iter("x", (0..VALUES).inspect(move |_| count.set(count.get() + 1)));
            let length = |values: &mut dyn ExactSizeIterator<Item = &u64>, into: &mut u64| *into = values.len() as u64;
            let add = |sum: &mut u64, n: &u64| *sum += n;
            let mut running = if is_shared {
                x.share().window_with(WINDOW, 1, length).reduce(0, add).run()
            } else {
                x.window_with(WINDOW, 1, length).reduce(0, add).run()
            }
            .unwrap();
            let (mut sums, mut windows) = (Vec::new(), 0);
            loop {
                let before = pulled.get().max(WINDOW as u64);
                match running.next_within(&mut { steps }).unwrap() {
                    Part::Value(sum) => sums.push(*sum),
                    Part::Pause => windows = windows.max(pulled.get().saturating_sub(before)),
                    Part::End => break,
                }
            }
            assert_eq!(sums, [(VALUES - WINDOW as u64 + 1) * WINDOW as u64]);
            assert!((1..=most).contains(&windows), "{windows} windows in {steps} steps, shared: {is_shared}");
        }
    }
    // The steps of the values that are pulled count as well.
    let mut running = Program::new().iter("x", 0..VALUES).windows(WINDOW, 1).run().unwrap();
    let mut left = 5000;
    let mut windows = 0;
    while matches!(running.next_within(&mut left).unwrap(), Part::Value(_)) {
        windows += 1;
    }
    assert_eq!((windows, left), (4, 0));
}

#[test]
fn no_value_of_a_chain_costs_an_allocation() {
    let mut number = 0_u64;
    let line = Program::new().read("lines", move |line: &mut String| {
        use std::fmt::Write;
        line.clear();
        number += 1;
        write!(line, "line {number:>20}").map(|()| number < 50_000)
    });
    let upper = line.filter(|line| !line.ends_with('7')).skip(3).map_into("upper", |line, upper: &mut String| {
        upper.clear();
        upper.extend(line.chars().map(|letter| letter.to_ascii_uppercase()));
        Ok(())
    });
    let first = upper.windows(5, 2).map_into("first", |window: &Vec<String>, first: &mut String| {
        first.clone_from(&window[0]);
        Ok(())
    });
    let mut running = first.run().unwrap();
    for _ in 0..100 {
        running.next().unwrap().unwrap();
    }
    let before = ALLOCATIONS.get();
    let mut bytes = 0;
    let report = running.for_each(|line| bytes += line.len()).unwrap();
    assert!(report.values > 20_000 && bytes > 400_000);
    assert!(ALLOCATIONS.get() - before < 10, "{} allocations", ALLOCATIONS.get() - before);
}

#[test]
fn no_value_costs_an_allocation_once_the_queues_are_full() {
    let lines = Program::new();
    let mut number = 0_u64;
    let line = lines.read("lines", move |line: &mut String| {
        use std::fmt::Write;
        line.clear();
        number += 1;
        write!(line, "line {number:>20}").map(|()| number < 200_000)
    });
    let line = line.share();
    let lengths = line.map_into("length", |line, length: &mut u64| {
        *length = line.len() as u64;
        Ok(())
    });
    let late = line.skip(50).repeat(3).every(3).windows(4, 2).map_into("first", |window, first: &mut String| {
        first.clone_from(&window[0]);
        Ok(())
    });
    let held = line.filter(|line| line.ends_with('7')).hold(&line, String::new());
    let even = lengths.every_from(2, 1);
    let all = Stream::zip_all(
        &[late, line.every_from(2, 1), held.every_from(2, 0)],
        |_, part: &mut String, out: &mut String| {
            out.clone_from(part);
        },
    );
    let mut running = all.zip_with(&even, |text, length| text.len() as u64 + length).run().unwrap();
    for _ in 0..1000 {
        running.next().unwrap().unwrap();
    }
    let before = ALLOCATIONS.get();
    let mut values = 0;
    while running.next().unwrap().is_some() {
        values += 1;
    }
    assert!(values > 90_000);
    // Allocations at the end of a stream are allowed; allocations for each value are not.
    assert!(ALLOCATIONS.get() - before < 100, "{} allocations for {values} values", ALLOCATIONS.get() - before);
}

#[test]
fn a_run_meets_more_states_and_decisions_than_it_keeps() {
    // Each value passes through 13 filters, and most of the 2^13 combinations of decisions occur.
    let mixed = || (0..20_000_u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40);
    let x = Program::new().iter("x", mixed()).share();
    let held: Vec<Stream<u64>> = (0..13).map(|bit| x.filter(move |n| n >> bit & 1 == 1).hold(&x, 0)).collect();
    let fold = |all: u64, part: u64| all.wrapping_mul(31).wrapping_add(part);
    let all = Stream::zip_all(&held, move |_, part, out: &mut u64| *out = fold(*out, *part));
    let (mut last, mut out) = ([0; 13], 0);
    let expected: Vec<u64> = mixed()
        .map(|n| {
            (0..13).filter(|bit| n >> bit & 1 == 1).for_each(|bit| last[bit] = n);
            out = last.into_iter().fold(out, fold);
            out
        })
        .collect();
    assert_eq!(all.run().unwrap().values().collect::<Result<Vec<_>, _>>().unwrap(), expected);

    // After every four values, the buffer contains three more values.
    let x = Program::new().iter("x", 0..20_000_u64).share();
    let pairs = x.filter(|n| n % 4 == 0).zip(&x.buffer(100_000));
    let pairs: Vec<_> = pairs.run().unwrap().values().map(Result::unwrap).collect();
    assert_eq!(pairs, (0..5000).map(|n| (4 * n, n)).collect::<Vec<_>>());
}
