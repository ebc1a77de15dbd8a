//! Chains: streams with one reader.

use std::cell::{Cell, RefCell};
use std::hash::Hash;
use std::ops::ControlFlow;
use std::rc::Rc;

use crate::check::{CheckError, Proof};
use crate::clock::{Pass, WordError};
use crate::fuse::{ArrayWindows, Each, Filter, Fused, Map, Reduce, Stop, Then, Whole, Windows};
use crate::graph::{Graph, NodeId, Operator};
use crate::run::{Draw, Report, RunError, Running, Work};

use super::draft::{Error, Program};
use super::stream::{Stream, fold, result_of, scanned};
use super::window::window_label;

/// A stream that has one reader: a source and the operators that follow it, compiled to one loop.
///
/// Each method consumes the chain and returns a longer chain. Between the operators there is neither a queue nor a call. The
/// methods are those of [`Stream`], with the same clocks. [`share`](Self::share) turns the chain into a stream that any number of
/// operators may read, so a program shows where it forks.
///
/// ```
/// use millstream_stream::Program;
///
/// let squares = Program::new().iter("x", 1..=5_u64).map(|n| n * n).filter(|n| n % 2 == 1);
/// let squares: Result<Vec<u64>, _> = squares.run()?.values().collect();
/// assert_eq!(squares?, [1, 9, 25]);
///
/// let x = Program::new().iter("x", 1..=5_u64).map(|n| n * n).share();
/// let steps: Result<Vec<u64>, _> = x.skip(1).zip_with(&x, |next, this| next - this).run()?.values().collect();
/// assert_eq!(steps?, [3, 5, 7, 9]);
/// # Ok::<(), millstream_stream::Error>(())
/// ```
#[must_use = "a chain does nothing until it runs"]
pub struct Chain<C> {
    program: Program,
    node: NodeId,
    code: C,
}

/// The loop of a chain. It is moved out when the run begins.
pub(super) type Held<T> = Cell<Option<Box<dyn Whole<T>>>>;

impl<C: Fused> Chain<C> {
    pub(super) fn new(program: &Program, node: NodeId, code: C) -> Self {
        Self { program: program.clone(), node, code }
    }

    /// Returns the number of the last operator's node in the graph.
    #[must_use]
    pub fn node(&self) -> NodeId {
        self.node
    }

    fn node_behind(&self, operator: Operator, label: &str, size: usize) -> NodeId {
        self.program.add(operator, &[self.node], label, size, Work::Fused)
    }

    fn then<S>(self, operator: Operator, label: &str, size: usize, step: S) -> Chain<Then<C, S>> {
        let node = self.node_behind(operator, label, size);
        Chain { program: self.program, node, code: Then { before: self.code, step } }
    }

    fn each<U, F>(self, label: &str, size: usize, compute: F) -> Chain<Then<C, Each<U, F>>>
    where
        F: FnMut(&C::Value, &mut Option<U>) -> Result<(), RunError> + 'static,
    {
        self.then(Operator::Each, label, size, Each { result: None, compute })
    }

    fn passed<F>(self, pass: Pass, label: &str, keep: F) -> Chain<Then<C, Filter<F>>>
    where
        F: FnMut(&C::Value) -> Result<bool, RunError> + 'static,
    {
        self.then(Operator::Pass(pass), label, size_of::<C::Value>(), Filter(keep))
    }

    fn clocked(self, pass: Pass, label: &str) -> Chain<impl Fused<Value = C::Value> + use<C>> {
        let (clock, mut state) = (pass.clone(), pass.start());
        self.passed(pass, label, move |_| {
            let passes = clock.may_pass(state);
            state = clock.after(state);
            Ok(passes)
        })
    }

    /// Computes a value from each value.
    pub fn map<U, F>(self, map: F) -> Chain<impl Fused<Value = U>>
    where
        U: Clone + 'static,
        F: FnMut(&C::Value) -> U + 'static,
    {
        self.then(Operator::Each, "map", size_of::<U>(), Map(map))
    }

    /// Computes a value from each value. `map` overwrites its last result; see [`Stream::map_into`].
    pub fn map_into<U, F>(self, label: &str, mut map: F) -> Chain<impl Fused<Value = U> + use<C, U, F>>
    where
        U: Clone + Default + 'static,
        F: FnMut(&C::Value, &mut U) -> Result<(), String> + 'static,
    {
        let name = label.to_owned();
        self.each(label, size_of::<U>(), move |value, into| {
            map(value, into.get_or_insert_with(U::default)).map_err(|message| result_of(&name, message))
        })
    }

    /// Produces the state after each value.
    pub fn scan<S, F>(self, first: S, step: F) -> Chain<impl Fused<Value = S>>
    where
        S: Clone + 'static,
        F: FnMut(&mut S, &C::Value) + 'static,
    {
        self.each("scan", size_of::<S>(), scanned(first, step))
    }

    /// For each value, updates the state of the value's key, and produces the key and the state; see [`Stream::fold_by_key`].
    pub fn fold_by_key<K, S, G, F>(
        self,
        max_keys: usize,
        key: G,
        first: S,
        step: F,
    ) -> Chain<impl Fused<Value = (K, S)>>
    where
        K: Hash + Eq + Clone + 'static,
        S: Clone + 'static,
        G: FnMut(&C::Value) -> K + 'static,
        F: FnMut(&mut S, &C::Value) + 'static,
    {
        self.each("fold_by_key", size_of::<(K, S)>(), fold(max_keys, key, first, step))
    }

    /// Keeps the values for which `keep` returns `true`.
    pub fn filter<F>(self, mut keep: F) -> Chain<impl Fused<Value = C::Value>>
    where
        F: FnMut(&C::Value) -> bool + 'static,
    {
        self.passed(Pass::Data, "filter", move |value| Ok(keep(value)))
    }

    /// Keeps the values for which `keep` returns `true`. `keep` may fail.
    pub fn try_filter<F>(self, label: &str, mut keep: F) -> Chain<impl Fused<Value = C::Value> + use<C, F>>
    where
        F: FnMut(&C::Value) -> Result<bool, String> + 'static,
    {
        let name = label.to_owned();
        self.passed(Pass::Data, label, move |value| keep(value).map_err(|message| result_of(&name, message)))
    }

    /// Keeps the first of every `n` values.
    pub fn every(self, n: u64) -> Chain<impl Fused<Value = C::Value>> {
        self.every_from(n, 0)
    }

    /// Keeps one of every `n` values, beginning with number `offset`, counted from 0.
    pub fn every_from(self, n: u64, offset: u64) -> Chain<impl Fused<Value = C::Value>> {
        self.clocked(Pass::Every { first: offset, step: n }, &format!("every({n})"))
    }

    /// Drops the first `n` values.
    pub fn skip(self, n: u64) -> Chain<impl Fused<Value = C::Value>> {
        self.clocked(Pass::Every { first: n, step: 1 }, &format!("skip({n})"))
    }

    /// Keeps the values whose positions have a 1 in a word; see [`Stream::keep`].
    ///
    /// # Errors
    /// Returns an error if the text is not such a word.
    pub fn keep(self, word: &str) -> Result<Chain<impl Fused<Value = C::Value> + use<C>>, WordError> {
        Ok(self.clocked(Pass::word(word)?, &format!("keep({word})")))
    }

    /// Groups the values into windows of `n` without overlap. Values after the last full window are dropped.
    pub fn tumbling(self, n: usize) -> Chain<impl Fused<Value = Vec<C::Value>>> {
        self.windows(n, n)
    }

    /// Groups the values into windows of `n`. Each window begins `step` values after the previous one.
    ///
    /// # Panics
    /// Panics if `n` or `step` is 0, or `n` is more than 2^24.
    pub fn windows(self, n: usize, step: usize) -> Chain<impl Fused<Value = Vec<C::Value>>> {
        self.gathered(n, step, size_of::<Vec<C::Value>>(), Windows::new(n, step))
    }

    /// Groups the values into windows of `N`, as arrays. Each window begins `STEP` values after the previous one. A small
    /// window costs a few instructions for each value. A large one is slow, because each value shifts the `N - 1` values before
    /// it; use [`windows`](Self::windows) instead.
    ///
    /// ```
    /// use millstream_stream::Program;
    ///
    /// let sums = Program::new().iter("x", 1..=6_u64).array_windows::<3, 2>().map(|[a, b, c]| a + b + c);
    /// let sums: Result<Vec<u64>, _> = sums.run()?.values().collect();
    /// assert_eq!(sums?, [6, 12]);
    /// # Ok::<(), millstream_stream::Error>(())
    /// ```
    ///
    /// A program with an `N` or a `STEP` of 0 does not compile.
    pub fn array_windows<const N: usize, const STEP: usize>(self) -> Chain<impl Fused<Value = [C::Value; N]>> {
        self.gathered(N, STEP, 0, ArrayWindows::<_, N, STEP>::new())
    }

    /// Computes a value from each window of `n` values. `fold` overwrites its last result; see [`Stream::window_with`].
    ///
    /// # Panics
    /// Panics if `n` or `step` is 0, or `n` is more than 2^24.
    pub fn window_with<U, F>(self, n: usize, step: usize, mut fold: F) -> Chain<impl Fused<Value = U>>
    where
        U: Clone + Default + 'static,
        F: FnMut(&mut dyn ExactSizeIterator<Item = &C::Value>, &mut U) + 'static,
    {
        let Chain { program, node, code } = self.gathered(n, step, size_of::<U>(), Windows::new(n, step));
        let compute = move |window: &Vec<C::Value>, into: &mut Option<U>| {
            fold(&mut window.iter(), into.get_or_insert_with(U::default));
            Ok(())
        };
        Chain { program, node, code: Then { before: code, step: Each { result: None, compute } } }
    }

    /// Adds the graph's nodes for windows with results of `size` bytes, and the code that gathers the windows.
    fn gathered<S>(self, n: usize, step: usize, size: usize, code: S) -> Chain<Then<C, S>> {
        let label = window_label(n, step);
        let size = size + n * size_of::<C::Value>();
        let pass = Operator::Pass(Pass::Every { first: n as u64 - 1, step: step as u64 });
        let Self { program, node, code: before } = self;
        let of_value = size_of::<C::Value>();
        let node = program.add(Operator::Each, &[node], &label, of_value, Work::Fused);
        let node = program.add(pass, &[node], &label, of_value, Work::Fused);
        let node = program.add(Operator::Each, &[node], &label, size, Work::Fused);
        Chain { program, node, code: Then { before, step: code } }
    }

    /// Produces the final state, at the end of the stream.
    pub fn reduce<S, F>(self, first: S, mut step: F) -> Chain<impl Fused<Value = S>>
    where
        S: Clone + 'static,
        F: FnMut(&mut S, &C::Value) + 'static,
    {
        let step = move |state: &mut S, value: &C::Value| {
            step(state, value);
            Ok(())
        };
        self.reduced("reduce", first, step)
    }

    /// Produces the final state, at the end of the stream. `step` may fail.
    pub fn try_reduce<S, F>(self, label: &str, first: S, mut step: F) -> Chain<impl Fused<Value = S> + use<C, S, F>>
    where
        S: Clone + 'static,
        F: FnMut(&mut S, &C::Value) -> Result<(), String> + 'static,
    {
        let name = label.to_owned();
        self.reduced(label, first, move |state, value| step(state, value).map_err(|message| result_of(&name, message)))
    }

    fn reduced<S, F>(self, label: &str, first: S, step: F) -> Chain<Reduce<C, S, F>>
    where
        S: Clone + 'static,
        F: FnMut(&mut S, &C::Value) -> Result<(), RunError> + 'static,
    {
        let node = self.node_behind(Operator::Reduce, label, size_of::<S>());
        let code = Reduce { before: self.code, state: first, step, is_over: false };
        Chain { program: self.program, node, code }
    }

    /// Pairs the values of this stream with those of another; see [`Stream::zip`].
    #[must_use]
    pub fn zip<U: Clone + 'static>(self, other: &Stream<U>) -> Stream<(C::Value, U)> {
        self.share().zip(other)
    }

    /// Computes a value from each pair of values of this stream and another; see [`Stream::zip_with`].
    pub fn zip_with<U: Clone + 'static, V: Clone + 'static>(
        self,
        other: &Stream<U>,
        join: impl FnMut(&C::Value, &U) -> V + 'static,
    ) -> Stream<V> {
        self.share().zip_with(other, join)
    }

    /// Turns the chain into a stream that any number of operators may read.
    #[must_use]
    pub fn share(self) -> Stream<C::Value> {
        let slot = Rc::new(RefCell::new(None));
        let code: Box<dyn Whole<C::Value>> = Box::new(self.code);
        let code: Rc<Held<C::Value>> = Rc::new(Cell::new(Some(code)));
        let (whole, into) = (Rc::downgrade(&code), Rc::clone(&slot));
        let begin = move || -> Draw {
            let mut code = code.take().expect("a program runs once");
            Box::new(move |steps: &mut u64| code.draw_one(steps, &mut into.borrow_mut()))
        };
        self.program.set_work(self.node, Work::Source(Box::new(begin)));
        Stream::of_chain(&self.program, self.node, slot, whole)
    }

    /// Hides the types of the chain's operators. This costs a dynamic call for each value that leaves the chain.
    pub(crate) fn boxed(self) -> Chain<Box<dyn Whole<C::Value>>> {
        Chain { program: self.program, node: self.node, code: Box::new(self.code) }
    }

    /// Proves the bounds of this stream's program, without running it.
    ///
    /// # Errors
    /// Returns a refusal; see [`CheckError`].
    pub fn check(&self) -> Result<Proof, CheckError> {
        crate::check::check(&self.graph())
    }

    /// Returns the graph of this stream's program.
    #[must_use]
    pub fn graph(&self) -> Graph {
        self.program.graph_to(self.node)
    }

    /// Checks the program. The caller then pulls the values from the returned [`Running`].
    ///
    /// # Errors
    /// Returns [`Error::Check`] for a program without bounds, and [`Error::RanBefore`] for a program that has run.
    pub fn run(self) -> Result<Running<C::Value>, Error> {
        self.share().run()
    }

    /// Checks the program, runs it to its end, and calls `each` with every value. The source, the operators and `each` become one
    /// loop without calls, so this is faster than a [`Running`].
    ///
    /// ```
    /// use millstream_stream::Program;
    ///
    /// let mut sum = 0;
    /// let report = Program::new().iter("x", 1..=4_u64).map(|n| n * n).for_each(|n| sum += n)?;
    /// assert_eq!((sum, report.values), (30, 4));
    /// # Ok::<(), millstream_stream::Error>(())
    /// ```
    ///
    /// # Errors
    /// Returns [`Error::Check`] for a program without bounds, [`Error::RanBefore`] for a program that has run, and the errors of
    /// the run.
    pub fn for_each(self, mut each: impl FnMut(&C::Value)) -> Result<Report, Error> {
        self.program.begin()?;
        let edges = self.check()?.edges().len();
        let mut values = 0;
        let stop = self.code.push_to_the_end(|value| {
            values += 1;
            each(value);
            ControlFlow::Continue(())
        });
        match stop {
            Stop::Failed(error) => Err(Error::Run(*error)),
            _ => Ok(Report { values, peaks: vec![0; edges] }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow::{Break, Continue};

    use millstream_verify_random::{Random, stress};

    use super::*;
    use crate::Part;

    type Boxed = Chain<Box<dyn Whole<u64>>>;

    /// Applies random operators, the same ones to a chain and to a shared stream.
    fn grown(random: &mut Random, mut chain: Boxed, mut stream: Stream<u64>) -> (Boxed, Stream<u64>) {
        macro_rules! both {
            ($($calls:tt)*) => {
                (chain, stream) = (chain $($calls)* .boxed(), stream $($calls)*)
            };
        }
        for _ in 0..random.below(6) {
            let (a, b) = (random.below(4), random.below(4) + 1);
            match random.below(11) {
                0 => both!(.map(move |n| n.wrapping_mul(b) ^ a)),
                1 => both!(.map_into("map", move |n, into: &mut u64| {
                    *into = n ^ a;
                    Ok(())
                })),
                2 => both!(.filter(move |n| n % (b + 1) != a)),
                3 => both!(.try_filter("filter", move |n| Ok(n % (b + 1) != a))),
                4 => both!(.every_from(b, a)),
                5 => both!(.skip(a)),
                6 => both!(.keep("01(101)").unwrap()),
                7 => both!(.scan(a, |sum, n| *sum = sum.wrapping_add(*n))),
                8 => both!(.windows(b as usize, a as usize + 1).map(|window| {
                    window.iter().fold(0, |all: u64, n| all.wrapping_mul(31).wrapping_add(*n))
                })),
                9 => both!(.window_with(b as usize, a as usize + 1, |window, into: &mut u64| {
                    *into = window.fold(0, |all: u64, n| all.wrapping_mul(37).wrapping_add(*n));
                })),
                _ if random.below(4) == 0 => both!(.reduce(a, |sum, n| *sum = sum.wrapping_add(*n))),
                _ => {
                    let sums = |sum: &mut u64, n: &u64| *sum = sum.wrapping_add(*n);
                    both!(.fold_by_key(1000, |n| n % 8, 0, sums).map(|(key, sum)| key ^ sum));
                }
            }
        }
        (chain, stream)
    }

    fn source(values: u64, pulled: &Rc<Cell<u64>>) -> Boxed {
        let count = Rc::clone(pulled);
        Program::new().iter("x", (0..values).inspect(move |_| count.set(count.get() + 1))).boxed()
    }

    /// Returns the values. Each comes with the number of values that had been pulled from the source when it arrived.
    fn pulled(mut running: Running<u64>, steps: u64, pulled: &Cell<u64>) -> Vec<(u64, u64)> {
        let mut values = Vec::new();
        loop {
            match running.next_within(&mut { steps }).unwrap() {
                Part::Value(value) => values.push((*value, pulled.get())),
                Part::Pause => {}
                Part::End => return values,
            }
        }
    }

    #[test]
    fn a_chain_gives_the_values_of_a_shared_stream_and_reads_its_source_no_further() {
        let mut random = Random::seeded();
        for _ in 0..300 * stress() {
            let (seed, values, steps) = (random.below(u64::MAX), random.below(60), 1 + random.below(20));
            let count = Rc::new(Cell::new(0));
            let program = || {
                let grower = &mut Random::new(seed);
                count.set(0);
                grown(grower, source(values, &count), source(values, &count).share())
            };
            let expected = pulled(program().1.run().unwrap(), u64::MAX, &count);
            assert_eq!(pulled(program().0.run().unwrap(), steps, &count), expected, "drawn from {seed}");
            // A prefix is an actor. In front of an actor, the chain is a source of the machine.
            let behind = program().0.share().prefix(Vec::new());
            assert_eq!(pulled(behind.run().unwrap(), steps, &count), expected, "drawn from {seed}");
            let mut looped = Vec::new();
            let report = program().0.run().unwrap().for_each(|value| looped.push(*value)).unwrap();
            assert!(looped.iter().eq(expected.iter().map(|(value, _)| value)), "drawn from {seed}");
            assert_eq!(report.values, looped.len() as u64);
            let mut whole = Vec::new();
            assert_eq!(program().0.for_each(|value| whole.push(*value)).unwrap(), report);
            assert_eq!(whole, looped, "drawn from {seed}");
            assert_eq!(program().0.graph().nodes().len(), program().1.graph().nodes().len());
        }
    }

    #[test]
    fn windows_of_a_known_size_are_those_of_any_size() {
        fn agree<const N: usize, const STEP: usize>() {
            for values in 0..20 {
                let texts = || Program::new().iter("x", (0..values).map(|n: u64| n.to_string()));
                let arrays = texts().array_windows::<N, STEP>().map(|window| window.to_vec());
                let expected: Vec<Vec<String>> =
                    texts().windows(N, STEP).run().unwrap().values().map(Result::unwrap).collect();
                let found: Vec<Vec<String>> = arrays.run().unwrap().values().map(Result::unwrap).collect();
                assert_eq!(found, expected, "windows of {N}, {STEP} apart, of {values} values");
            }
        }
        agree::<1, 1>();
        agree::<3, 1>();
        agree::<3, 2>();
        agree::<3, 3>();
        agree::<4, 2>();
        agree::<5, 2>();
        agree::<2, 5>();
        let (arrays, any) = (Program::new().iter("x", 0..9_u64), Program::new().iter("x", 0..9_u64));
        let [arrays, any] = [arrays.array_windows::<4, 2>().graph(), any.windows(4, 2).graph()];
        assert_eq!(arrays.nodes().len(), any.nodes().len());
    }

    #[test]
    fn a_loop_stops_where_its_sink_asks_and_goes_on_with_the_next_value() {
        let mut chain = source(20, &Rc::default()).filter(|n| n % 2 == 0).windows(2, 1).boxed();
        let mut steps = u64::MAX;
        for first in [0, 2, 4] {
            let stop = chain.code.push(&mut steps, |window: &Vec<u64>| {
                assert_eq!(*window, [first, first + 2]);
                Break(Stop::Value)
            });
            assert!(matches!(stop, Stop::Value));
        }
        let mut rest = 0;
        let stop = chain.code.push(&mut steps, |_: &Vec<u64>| {
            rest += 1;
            Continue(())
        });
        assert!(matches!(stop, Stop::End) && rest == 6);
    }
}
