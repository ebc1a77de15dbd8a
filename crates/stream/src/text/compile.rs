//! Compiles a parsed text to a program of streams.

use std::collections::HashMap;
use std::ops::Range;

use crate::clock::WordError;
use crate::fuse::{UncountedSteps, Whole};
use crate::graph::{MAX_NODES, NodeId};
use crate::{Chain, Program, Stream};

use super::MAX_KEYS;
use super::formula::Formula;
use super::input::{Form, Inputs, Position, Source, check_record};
use super::parser::{Expr, Kind, Written};
use super::place::Place;
use super::problem::Problem;
use super::value::Value;

/// The functions that return streams, with their arguments.
const FUNCTIONS: [(&str, &str); 23] = [
    ("align", "align(x, y)"),
    ("buffer", "buffer(x, 1000)"),
    ("csv", "csv() or csv(\"FILE\")"),
    ("every", "every(x, 2) or every(x, 2, 1)"),
    ("filter", "filter(x, it > 3)"),
    ("group", "group(x, it.key, 0, acc + 1)"),
    ("hold", "hold(x, y)"),
    ("json", "json() or json(\"FILE\")"),
    ("keep", "keep(x, \"0(10)\")"),
    ("lines", "lines() or lines(\"FILE\")"),
    ("map", "map(x, length(it))"),
    ("merge", "merge(x, y)"),
    ("numbers", "numbers(1, 10)"),
    ("prefix", "prefix(x, 0)"),
    ("records", "records(64) or records(64, \"FILE\")"),
    ("reduce", "reduce(x, 0, acc + it)"),
    ("repeat", "repeat(x, 2)"),
    ("reread", "reread(x)"),
    ("scan", "scan(x, 0, acc + it)"),
    ("skip", "skip(x, 1)"),
    ("spill", "spill(x, \"FOLDER\")"),
    ("window", "window(x, 10) or window(x, 10, 1)"),
    ("zip", "zip(x, y)"),
];

/// The functions with one stream as an argument that may produce a value late, after the source has read further. An error in a
/// formula after such a function cannot name the position in the source.
const AWAY: [&str; 6] = ["buffer", "prefix", "reduce", "repeat", "spill", "window"];

/// The maximum length of a label, in characters.
const MAX_LABEL: usize = 48;

/// An upper limit on the number of nodes that one call adds to the graph, including the sink.
const MAX_NODES_OF_A_CALL: usize = 8;

/// The maximum number of values in a window.
const MAX_WINDOW: u64 = 1 << 24;

/// The maximum number of copies of a value.
const MAX_COPIES: u64 = 1 << 32;

/// A stream of values: a chain, unless it is shared.
enum Flow {
    Chain(Chain<Box<dyn Whole<Value>>>),
    Shared(Stream<Value>),
}

/// The fields of a stream's values that the program may use; `None` for the whole values.
type Fields = Option<Vec<String>>;

/// Calls the same method on a chain or on a shared stream.
macro_rules! derived {
    ($x:expr, $($calls:tt)*) => {
        match $x {
            Flow::Chain(x) => Flow::Chain(x $($calls)* .boxed()),
            Flow::Shared(x) => Flow::Shared(x $($calls)*),
        }
    };
}

impl Flow {
    fn node(&self) -> usize {
        match self {
            Self::Chain(chain) => chain.node(),
            Self::Shared(stream) => stream.node(),
        }
    }

    fn share(self) -> Stream<Value> {
        match self {
            Self::Chain(chain) => chain.share(),
            Self::Shared(stream) => stream,
        }
    }
}

/// Returns the stream of a program, and whether all its inputs can be read again.
pub(super) fn compile(text: &str, written: &Written, inputs: &Inputs) -> Result<(Stream<Value>, bool), Problem> {
    let mut compiler = Compiler {
        text,
        written,
        inputs,
        program: Program::new(),
        flows: HashMap::new(),
        places: HashMap::new(),
        positions: HashMap::new(),
        taken: 0,
        rereading: false,
    };
    for definition in &written.definitions {
        let stream = compiler.stream(&definition.value, None)?;
        if !matches!(definition.value.kind, Kind::Name(_)) {
            compiler.program.rename(stream.node(), &definition.name);
        }
        compiler.define(&definition.name, stream);
    }
    let out = compiler.stream(&written.result, None)?.share();
    if compiler.taken < inputs.count() && !compiler.inputs.may_be_unread() {
        let message =
            format!("got {} input(s), but the program has {} source(s) without a file", inputs.count(), compiler.taken);
        return Err(Problem::new(message, 0..text.len(), "reads no more")
            .help("each `lines()`, `json()`, `csv()` or `records(…)` reads one"));
    }
    let rereadable = compiler.places.values().all(Place::can_be_read_again);
    Ok((out, rereadable))
}

struct Compiler<'a> {
    text: &'a str,
    written: &'a Written,
    inputs: &'a Inputs,
    program: Program,
    /// The streams by name. A chain is moved out when its only reader is compiled.
    flows: HashMap<String, Option<Flow>>,
    /// For each source, by its offset in the text: its input.
    places: HashMap<usize, Place>,
    /// For each node that processes values as they are read, the position of their source.
    positions: HashMap<NodeId, Position>,
    /// The number of inputs taken so far.
    taken: usize,
    /// Whether the compiler is inside a `reread`. Sources then read the inputs that they have taken before.
    rereading: bool,
}

/// A call with its arguments.
struct Call<'a> {
    name: &'a str,
    usage: &'a str,
    span: Range<usize>,
    label: String,
    arguments: &'a [Expr],
}

/// The number of bytes of a value that count as one step.
const BYTES_OF_A_STEP: usize = 4096;

/// The position that an error of a formula names, and the counter for the formula's steps.
#[derive(Clone)]
struct At {
    /// The position of the source, if the formula computes from the value just read.
    position: Option<Position>,
    uncounted: UncountedSteps,
}

impl At {
    /// Counts the steps of a long value.
    #[inline]
    fn count(&self, value: &Value) {
        count(&self.uncounted, value.bytes());
    }

    #[cold]
    fn error(&self, message: String) -> String {
        match &self.position {
            Some(position) => format!("{position}: {message}"),
            None => message,
        }
    }
}

impl<'a> Compiler<'a> {
    /// Binds a stream to a name. The stream stays a chain if the program uses the name only once.
    fn define(&mut self, name: &str, flow: Flow) {
        let exprs = self.written.definitions.iter().map(|definition| &definition.value).chain([&self.written.result]);
        let flow =
            if exprs.map(|expr| uses(expr, name)).sum::<usize>() > 1 { Flow::Shared(flow.share()) } else { flow };
        self.flows.insert(name.to_owned(), Some(flow));
    }

    /// Compiles a stream. The program uses at most the `wanted` fields of its values.
    fn stream(&mut self, expr: &'a Expr, wanted: Fields) -> Result<Flow, Problem> {
        match &expr.kind {
            Kind::Name(name) => self.named(name, expr),
            Kind::Call(name, arguments) => {
                let mut known = FUNCTIONS.iter();
                let Some((_, usage)) = known.find(|(known, _)| known == name) else {
                    let names: Vec<&str> = FUNCTIONS.iter().map(|(name, _)| *name).collect();
                    let message = format!("`{name}` is not a function that returns a stream");
                    return Err(Problem::new(message, expr.span.clone(), "unknown")
                        .help(format!("there are: {}", names.join(", "))));
                };
                if self.program.nodes() + MAX_NODES_OF_A_CALL > MAX_NODES {
                    let message = format!("the program has more than {MAX_NODES} operators, which is the limit");
                    return Err(Problem::new(message, expr.span.clone(), "one too many")
                        .help("each `reread(x)` counts everything that leads to `x` once more"));
                }
                let call = Call { name, usage, span: expr.span.clone(), label: self.label(&expr.span), arguments };
                let stream = self.call(&call, wanted)?;
                let spans = arguments.iter().map(|argument| argument.span.clone()).collect();
                self.program.describe(stream.node(), &call.label, expr.span.clone(), spans);
                Ok(stream)
            }
            _ => {
                let help =
                    "a stream is a name or a call such as `lines()`; values are computed inside `map(x, it + 1)`";
                Err(Problem::new("expected a stream, found a value", expr.span.clone(), "here").help(help))
            }
        }
    }

    /// Returns a piece of the text, cut to the length of a label.
    fn label(&self, span: &Range<usize>) -> String {
        let text = &self.text[span.clone()];
        if text.chars().count() <= MAX_LABEL {
            return text.split_whitespace().collect::<Vec<_>>().join(" ");
        }
        let start: String = text.chars().take(MAX_LABEL - 1).collect();
        format!("{}…", start.split_whitespace().collect::<Vec<_>>().join(" "))
    }

    fn named(&mut self, name: &str, expr: &Expr) -> Result<Flow, Problem> {
        match self.flows.get_mut(name) {
            Some(Some(Flow::Shared(stream))) => return Ok(Flow::Shared(stream.clone())),
            Some(chain) => return Ok(chain.take().expect("a chain has one reader")),
            None => {}
        }
        // Inside a `reread`, the definition of a name is compiled again at each use, so its sources are separate from the first
        // reading.
        let before = self.written.definitions.iter().find(|definition| {
            definition.name == name && definition.value.span.end <= expr.span.start && self.rereading
        });
        let Some(definition) = before else {
            let known: Vec<String> = self.flows.keys().map(|name| format!("`{name}`")).collect();
            let help = if known.is_empty() {
                "define it before: `x = lines();`".to_owned()
            } else {
                format!("there are: {}", known.join(", "))
            };
            return Err(Problem::new(format!("`{name}` is not defined here"), expr.span.clone(), "unknown").help(help));
        };
        let stream = self.stream(&definition.value, None)?.share();
        self.flows.insert(name.to_owned(), Some(Flow::Shared(stream.clone())));
        Ok(Flow::Shared(stream))
    }

    fn call(&mut self, call: &Call<'a>, wanted: Fields) -> Result<Flow, Problem> {
        match call.name {
            "lines" | "json" | "csv" | "records" => return self.source(call, wanted),
            "numbers" => {
                call.takes(2..=2)?;
                let (first, last) = (call.whole(0)?, call.whole(1)?);
                return Ok(Flow::Chain(self.program.iter("numbers", (first..=last).map(Value::Whole)).boxed()));
            }
            "reread" => {
                call.takes(1..=1)?;
                return self.reread(&call.arguments[0]);
            }
            "zip" | "merge" => {
                call.takes(1..=64)?;
                let streams = call.arguments.iter().map(|argument| self.stream(argument, None).map(Flow::share));
                let streams: Vec<_> = streams.collect::<Result<_, _>>()?;
                return Ok(Flow::Shared(if call.name == "merge" {
                    Stream::merge_by(&streams, &(0..streams.len()).collect::<Vec<_>>())
                } else {
                    zip(&streams)
                }));
            }
            "hold" | "align" => {
                call.takes(2..=2)?;
                let (x, clock) = (&call.arguments[0], &call.arguments[1]);
                let (x, clock) = (self.stream(x, None)?.share(), self.stream(clock, None)?.share());
                let held = if call.name == "hold" { x.hold(&clock, Value::Empty) } else { align(&x, &clock) };
                return Ok(Flow::Shared(held));
            }
            _ => {}
        }
        if call.name == "spill" && self.inputs.is_content() {
            let message = "this program keeps nothing on disk";
            return Err(Problem::new(message, call.span.clone(), "would write files")
                .help("use `reread(x)`: the content can be read a second time"));
        }
        call.takes(1..=usize::MAX)?;
        let x = self.stream(&call.arguments[0], call.wanted(wanted))?;
        let position = self.positions.get(&x.node()).cloned();
        let at = match (call.name, &x) {
            // A reduce of a shared stream is an actor: values may wait in front of it while the source reads further.
            ("reduce", Flow::Shared(_)) => At { position: None, uncounted: self.program.uncounted() },
            _ => At { position: position.clone(), uncounted: self.program.uncounted() },
        };
        let flow = call.on(x, at)?;
        if let (false, Some(position)) = (AWAY.contains(&call.name), position) {
            self.positions.insert(flow.node(), position);
        }
        Ok(flow)
    }

    fn source(&mut self, call: &Call<'a>, wanted: Fields) -> Result<Flow, Problem> {
        let sized = usize::from(call.name == "records");
        call.takes(sized..=sized + 1)?;
        let form = match call.name {
            "lines" => Form::Lines,
            "json" => Form::Json,
            "csv" => Form::Csv,
            _ => Form::Records(check_record(call.whole(0)?).ok_or_else(|| {
                Problem::new("a record has 1 byte to 64 MiB", call.arguments[0].span.clone(), "out of range")
            })?),
        };
        let place = match (self.places.get(&call.span.start), call.arguments.get(sized)) {
            (Some(place), _) => place.clone(),
            (None, Some(file)) if self.inputs.is_content() => {
                let message = "this program reads one content, and no file";
                return Err(Problem::new(message, file.span.clone(), "names a file")
                    .help(format!("write `{}` for the content", call.usage.split(" or ").next().unwrap_or_default())));
            }
            (None, Some(_)) => Place::of(call.text(sized)?),
            (None, None) => {
                let place = self.inputs.place(self.taken).ok_or_else(|| {
                    let message = format!("there is no input left for this source: {} given", self.inputs.count());
                    let help = format!("name a file: {}; standard input is read by one source", call.usage);
                    Problem::new(message, call.span.clone(), "reads nothing").help(help)
                })?;
                self.taken += 1;
                place
            }
        };
        if self.rereading && !place.can_be_read_again() {
            let message = "an input that is not a file cannot be read a second time";
            return Err(Problem::new(message, call.span.clone(), "read twice")
                .help("give the program a file, or use `spill(x, \"FOLDER\")` instead of `reread(x)`"));
        }
        if place.is_standard() && self.places.iter().any(|(&at, other)| at != call.span.start && other.is_standard()) {
            let message = "standard input is read by one source";
            return Err(Problem::new(message, call.span.clone(), "would take values of the other source")
                .help("read it once, and use its name twice: `x = lines(); zip(x, x)`"));
        }
        self.places.insert(call.span.start, place.clone());
        let mut source = Source::new(place, form, self.inputs.before_wait()).with_fields(wanted);
        let position = source.position();
        let uncounted = self.program.uncounted();
        let read = move |value: &mut Value| {
            let read = source.read(value)?;
            count(&uncounted, source.bytes(value));
            Ok::<bool, String>(read)
        };
        let chain = self.program.read(&call.label, read).boxed();
        self.positions.insert(chain.node(), position);
        Ok(Flow::Chain(chain))
    }

    fn reread(&mut self, expr: &'a Expr) -> Result<Flow, Problem> {
        let flows = std::mem::take(&mut self.flows);
        let rereading = std::mem::replace(&mut self.rereading, true);
        let again = self.stream(expr, None);
        self.flows = flows;
        self.rereading = rereading;
        again
    }
}

impl Call<'_> {
    fn takes(&self, count: std::ops::RangeInclusive<usize>) -> Result<(), Problem> {
        if count.contains(&self.arguments.len()) {
            return Ok(());
        }
        let message =
            format!("`{}` does not take {} argument(s); expected {}", self.name, self.arguments.len(), self.usage);
        Err(Problem::new(message, self.span.clone(), "here"))
    }

    /// If the program uses the `wanted` fields of the call's output, returns the fields that it uses of the call's input.
    fn wanted(&self, wanted: Fields) -> Fields {
        let (formulas, mut fields) = match self.name {
            "map" => (&[1][..], Vec::new()),
            "scan" | "reduce" => (&[2][..], Vec::new()),
            "group" => (&[1, 3][..], Vec::new()),
            "filter" => (&[1][..], wanted?),
            "every" | "skip" | "keep" => return wanted,
            _ => return None,
        };
        let formulas = formulas.iter().filter_map(|at| self.arguments.get(*at));
        for formula in formulas {
            add_fields(formula, &mut fields)?;
        }
        Some(fields)
    }

    fn whole(&self, at: usize) -> Result<i64, Problem> {
        let expr = &self.arguments[at];
        match &expr.kind {
            Kind::Number(number) => Ok(*number),
            Kind::Unary("-", inner) => match inner.kind {
                Kind::Number(number) => Ok(-number),
                _ => Err(self.wrong(expr, "a number")),
            },
            _ => Err(self.wrong(expr, "a number")),
        }
    }

    /// Returns an argument as a number within a range.
    fn number(&self, at: usize, range: std::ops::RangeInclusive<u64>) -> Result<u64, Problem> {
        let whole = self.whole(at)?;
        u64::try_from(whole).ok().filter(|number| range.contains(number)).ok_or_else(|| {
            self.wrong(&self.arguments[at], &format!("a number from {} to {}", range.start(), range.end()))
        })
    }

    fn text(&self, at: usize) -> Result<&str, Problem> {
        match &self.arguments[at].kind {
            Kind::Text(text) => Ok(text),
            _ => Err(self.wrong(&self.arguments[at], "a text in quotes")),
        }
    }

    fn wrong(&self, expr: &Expr, expected: &str) -> Problem {
        Problem::new(
            format!("`{}` expects {expected} here: {}", self.name, self.usage),
            expr.span.clone(),
            "found this",
        )
    }

    /// Returns an argument as a value that does not depend on `it`.
    fn constant(&self, at: usize) -> Result<Value, Problem> {
        let expr = &self.arguments[at];
        let mut value = Value::Empty;
        match Formula::of(expr, false) {
            Ok(formula) if uses(expr, "it") == 0 => formula
                .write(&Value::Empty, &Value::Empty, &mut value)
                .map_err(|message| Problem::new(message, expr.span.clone(), "here"))?,
            Ok(_) => return Err(self.wrong(expr, "a value that does not depend on `it`")),
            Err(problem) => return Err(problem),
        }
        Ok(value)
    }

    fn formula(&self, at: usize, acc: bool) -> Result<Formula, Problem> {
        Formula::of(&self.arguments[at], acc)
    }

    /// Returns the stream of an operator with one input.
    fn on(&self, x: Flow, at: At) -> Result<Flow, Problem> {
        let label = &self.label;
        Ok(match self.name {
            "map" => {
                self.takes(2..=2)?;
                let formula = self.formula(1, false)?;
                derived!(x, .map_into(label, move |it, into: &mut Value| {
                    formula.write(it, &Value::Empty, into).map_err(|message| at.error(message))?;
                    at.count(into);
                    Ok(())
                }))
            }
            "filter" => {
                self.takes(2..=2)?;
                let formula = self.formula(1, false)?;
                derived!(x, .try_filter(label, move |it| formula.is_true(it).map_err(|message| at.error(message))))
            }
            "every" => {
                self.takes(2..=3)?;
                let offset = if self.arguments.len() == 3 { self.number(2, 0..=MAX_COPIES)? } else { 0 };
                let n = self.number(1, 1..=MAX_COPIES)?;
                derived!(x, .every_from(n, offset))
            }
            "skip" => {
                self.takes(2..=2)?;
                let n = self.number(1, 0..=MAX_COPIES)?;
                derived!(x, .skip(n))
            }
            "keep" => {
                self.takes(2..=2)?;
                let word = self.text(1)?;
                let problem =
                    |error: WordError| Problem::new(error.to_string(), self.arguments[1].span.clone(), "no word");
                derived!(x, .keep(word).map_err(problem)?)
            }
            "repeat" => {
                self.takes(2..=2)?;
                Flow::Shared(x.share().repeat(self.number(1, 1..=MAX_COPIES)?))
            }
            "prefix" => {
                self.takes(2..=usize::MAX)?;
                let values = (1..self.arguments.len()).map(|at| self.constant(at)).collect::<Result<Vec<_>, _>>()?;
                Flow::Shared(x.share().prefix(values))
            }
            "window" => {
                self.takes(2..=3)?;
                let n = self.number(1, 1..=MAX_WINDOW)?;
                let step = if self.arguments.len() == 3 { self.number(2, 1..=MAX_COPIES)? } else { n };
                derived!(x, .window_with(n as usize, step as usize, |values, into: &mut Value| {
                    let list = into.list();
                    list.resize_with(values.len(), Value::default);
                    list.iter_mut().zip(values).for_each(|(into, value)| into.clone_from(value));
                }))
            }
            "scan" => {
                self.takes(3..=3)?;
                let (mut acc, mut next, formula) = (self.constant(1)?, Value::Empty, self.formula(2, true)?);
                derived!(x, .map_into(label, move |it, into: &mut Value| {
                    formula.write(it, &acc, &mut next).map_err(|message| at.error(message))?;
                    std::mem::swap(&mut acc, &mut next);
                    into.clone_from(&acc);
                    at.count(into);
                    Ok(())
                }))
            }
            "reduce" => {
                self.takes(3..=3)?;
                reduce(x, label, at, self.constant(1)?, self.formula(2, true)?)
            }
            "group" => {
                self.takes(4..=5)?;
                let keys = if self.arguments.len() == 5 { self.number(4, 1..=1 << 32)? as usize } else { MAX_KEYS };
                let mut step = group(self.formula(1, false)?, self.constant(2)?, self.formula(3, true)?, keys);
                derived!(x, .map_into(label, move |it, into: &mut Value| {
                    step(it, into).map_err(|message| at.error(message))?;
                    at.count(into);
                    Ok(())
                }))
            }
            "buffer" => {
                self.takes(2..=2)?;
                Flow::Shared(x.share().buffer(self.number(1, 1..=1 << 48)?))
            }
            _ => {
                self.takes(2..=2)?;
                Flow::Shared(x.share().spill(self.text(1)?))
            }
        })
    }
}

/// Adds the steps for a value of this many bytes.
#[inline]
fn count(uncounted: &UncountedSteps, bytes: usize) {
    if bytes >= BYTES_OF_A_STEP {
        uncounted.set(uncounted.get().saturating_add((bytes / BYTES_OF_A_STEP) as u64));
    }
}

/// Returns how many times an expression uses a name.
fn uses(expr: &Expr, name: &str) -> usize {
    match &expr.kind {
        Kind::Name(used) => usize::from(used == name),
        Kind::Number(_) | Kind::Decimal(_) | Kind::Text(_) => 0,
        Kind::Call(_, arguments) => arguments.iter().map(|argument| uses(argument, name)).sum(),
        Kind::Field(value, _) | Kind::Unary(_, value) => uses(value, name),
        Kind::Index(left, right) | Kind::Binary(_, left, right) => uses(left, name) + uses(right, name),
    }
}

/// Adds the fields of `it` that an expression uses; returns `None` if it uses the whole value.
fn add_fields(expr: &Expr, fields: &mut Vec<String>) -> Option<()> {
    match &expr.kind {
        Kind::Name(name) => (name != "it").then_some(()),
        Kind::Number(_) | Kind::Decimal(_) | Kind::Text(_) => Some(()),
        Kind::Field(value, field) if matches!(&value.kind, Kind::Name(name) if name == "it") => {
            fields.push(field.clone());
            Some(())
        }
        Kind::Field(value, _) | Kind::Unary(_, value) => add_fields(value, fields),
        Kind::Index(left, right) | Kind::Binary(_, left, right) => {
            add_fields(left, fields)?;
            add_fields(right, fields)
        }
        Kind::Call(_, arguments) => arguments.iter().try_for_each(|argument| add_fields(argument, fields)),
    }
}

fn zip(streams: &[Stream<Value>]) -> Stream<Value> {
    let width = streams.len();
    Stream::zip_all(streams, move |input, value, into: &mut Value| {
        let list = into.list();
        list.resize_with(width, Value::default);
        std::mem::swap(&mut list[input], value);
    })
}

fn align(x: &Stream<Value>, clock: &Stream<Value>) -> Stream<Value> {
    x.align(clock).map_into("align", |value, into: &mut Value| {
        match value {
            Some(value) => into.clone_from(value),
            None => *into = Value::Empty,
        }
        Ok(())
    })
}

fn reduce(x: Flow, label: &str, at: At, first: Value, formula: Formula) -> Flow {
    let step = move |(acc, next): &mut (Value, Value), it: &Value| {
        formula.write(it, acc, next).map_err(|message| at.error(message))?;
        std::mem::swap(acc, next);
        at.count(acc);
        Ok(())
    };
    let last = |(acc, _): &(Value, Value), into: &mut Value| {
        into.clone_from(acc);
        Ok(())
    };
    derived!(x, .try_reduce(label, (first, Value::Empty), step).map_into(label, last))
}

/// Returns the code that computes the state of each value's key.
fn group(
    key: Formula,
    first: Value,
    formula: Formula,
    max_keys: usize,
) -> impl FnMut(&Value, &mut Value) -> Result<(), String> {
    let mut states: HashMap<Value, Value> = HashMap::new();
    let (mut own, mut next) = (Value::Empty, Value::Empty);
    move |it: &Value, into: &mut Value| {
        key.write(it, &Value::Empty, &mut own)?;
        own.unify()?;
        if !states.contains_key(&own) {
            if states.len() >= max_keys {
                return Err(format!(
                    "more than {max_keys} keys, which is the limit; expected a fifth argument with a higher limit"
                ));
            }
            states.insert(own.clone(), first.clone());
        }
        let state = states.get_mut(&own).expect("it was put there");
        formula.write(it, state, &mut next)?;
        std::mem::swap(state, &mut next);
        let pair = into.list();
        pair.resize_with(2, Value::default);
        pair[0].clone_from(&own);
        pair[1].clone_from(state);
        Ok(())
    }
}
