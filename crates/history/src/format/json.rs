//! JSON lines: an operation per line.

use std::fmt;
use std::io::{self, BufRead, Write};

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::blocks;
use super::error::{FormatError, Problem};
use super::lines::LineTable;
use crate::builder::{Builder, Contradiction};
use crate::history::History;
use crate::model::Kind;
use crate::operation::{Op, Operation, Status};
use crate::quoted::Quoted;
use crate::spec::accept;
use crate::value::{Value, Values};

pub(super) fn read(input: impl BufRead, kind: Option<Kind>) -> Result<History, FormatError> {
    let mut lines = 0;
    let mut table = LineTable::default();
    let mut builder = Builder::new();
    let read = blocks::in_order(
        input,
        |bytes| Block::parse(&bytes, kind),
        |block| {
            let block = block.map_err(|error| error.after(lines, builder.len()))?;
            table.append(builder.len(), lines, &block.table);
            lines += block.lines;
            builder.append(block.builder).map_err(|contradiction| {
                let line = table.line(contradiction.operation());
                Problem::Contradiction(contradiction).at(line)
            })
        },
    )?;
    read.map_err(|error| Problem::Io(error).at(lines + 1))?;
    builder.finish().map_err(|contradiction| {
        let problem = match contradiction {
            Contradiction::TwoAtOnce { process, earlier, .. } => {
                Problem::TwoAtOnce { process, earlier: table.line(earlier) }
            }
            other => Problem::Contradiction(other),
        };
        problem.at(table.line(contradiction.operation()))
    })
}

/// The operations of some lines.
struct Block {
    builder: Builder,
    table: LineTable,
    lines: u64,
}

impl Block {
    fn parse(bytes: &[u8], kind: Option<Kind>) -> Result<Self, FormatError> {
        let mut builder = Builder::new();
        let mut table = LineTable::default();
        let mut lines = 0;
        for bytes in bytes.split_inclusive(|&byte| byte == b'\n') {
            lines += 1;
            let bytes = bytes.trim_ascii();
            if bytes.is_empty() {
                continue;
            }
            if bytes.starts_with(SKEW) {
                let Skew { skew } = serde_json::from_slice(bytes).map_err(|error| syntax(&error).at(lines))?;
                builder.skew(skew);
                continue;
            }
            let operation = parse(bytes, &mut builder).map_err(|error| syntax(&error).at(lines))?;
            if let Some(kind) = kind {
                builder.accept(kind, &operation).map_err(|misuse| Problem::Misuse(misuse).at(lines))?;
            }
            table.note(builder.len(), lines);
            builder.push(operation).map_err(|contradiction| Problem::Contradiction(contradiction).at(lines))?;
        }
        Ok(Block { builder, table, lines })
    }
}

/// A line with the maximum difference between the processes' clocks.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Skew {
    skew: u64,
}

/// The beginning of a line with the skew.
const SKEW: &[u8] = b"{\"skew\"";

fn parse(bytes: &[u8], builder: &mut Builder) -> Result<Operation, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let operation = OperationSeed(builder).deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(operation)
}

/// The parser got one line, so its message ends with "at line 1", which is removed.
fn syntax(error: &serde_json::Error) -> Problem {
    let message = error.to_string();
    let message = message.split(" at line 1").next().unwrap_or_default();
    Problem::Syntax(format!("{message} (column {})", error.column()))
}

impl Builder {
    /// Checks that the kind has the operation, with this input and output.
    pub(super) fn accept(&self, kind: Kind, operation: &Operation) -> Result<(), crate::spec::Misuse> {
        accept(kind, operation, self.op_name(operation.op), self.known_values())
    }
}

struct OperationSeed<'b>(&'b mut Builder);

const FIELDS: &[&str] = &["process", "op", "in", "out", "call", "return", "key", "status"];

impl<'de> DeserializeSeed<'de> for OperationSeed<'_> {
    type Value = Operation;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Operation, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for OperationSeed<'_> {
    type Value = Operation;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an operation: an object with process, op, call and more")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Operation, A::Error> {
        let (mut process, mut op, mut call, mut ret, mut status) = (None, None, None, None, None);
        let [mut input, mut output, mut key] = [None; 3];
        while let Some(field) = map.next_key_seed(Name)? {
            let builder = &mut *self.0;
            let twice = match field {
                0 => process.replace(map.next_value::<u32>()?).is_some(),
                1 => op.replace(map.next_value_seed(OpSeed(builder))?).is_some(),
                2 => input.replace(map.next_value_seed(ValueSeed(builder.values()))?).is_some(),
                3 => output.replace(map.next_value_seed(ValueSeed(builder.values()))?).is_some(),
                4 => call.replace(map.next_value::<u64>()?).is_some(),
                5 => ret.replace(map.next_value::<Option<u64>>()?).is_some(),
                6 => key.replace(map.next_value_seed(ValueSeed(builder.values()))?).is_some(),
                _ => status.replace(map.next_value_seed(StatusSeed)?).is_some(),
            };
            if twice {
                return Err(A::Error::duplicate_field(FIELDS[field]));
            }
        }
        let ret = ret.flatten();
        if ret.is_none() && status == Some(Status::Ok) {
            return Err(A::Error::custom(
                "the status is ok, but there is no `return`: say when it returned, or leave `status` out",
            ));
        }
        let output = output.unwrap_or(Value::NULL);
        if ret.is_none() && !output.is_null() {
            return Err(A::Error::custom(
                "there is an `out`, but no `return`: an operation that has not returned has no answer",
            ));
        }
        Ok(Operation {
            process: process.ok_or_else(|| A::Error::missing_field("process"))?,
            op: op.ok_or_else(|| A::Error::missing_field("op"))?,
            key: key.filter(|key| !key.is_null()),
            input: input.unwrap_or(Value::NULL),
            output,
            call: call.ok_or_else(|| A::Error::missing_field("call"))?,
            ret,
            status: status.unwrap_or_default(),
        })
    }
}

/// Implements a seed that deserializes a string.
macro_rules! text_seed {
    ($seed:ty => $output:ty, $expecting:literal, |$self:ident, $text:ident| $take:expr) => {
        impl<'de> DeserializeSeed<'de> for $seed {
            type Value = $output;

            fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<$output, D::Error> {
                deserializer.deserialize_str(self)
            }
        }

        impl<'de> Visitor<'de> for $seed {
            type Value = $output;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str($expecting)
            }

            fn visit_str<E: serde::de::Error>($self, $text: &str) -> Result<$output, E> {
                $take
            }
        }
    };
}

/// A seed that deserializes a field's name to its index in [`FIELDS`].
struct Name;

text_seed!(Name => usize, "the name of a field", |self, text| {
    FIELDS.iter().position(|field| *field == text).ok_or_else(|| E::unknown_field(text, FIELDS))
});

struct OpSeed<'b>(&'b mut Builder);

text_seed!(OpSeed<'_> => Op, "the name of an operation", |self, text| Ok(self.0.op(text)));

struct StatusSeed;

text_seed!(StatusSeed => Status, "\"ok\", \"fail\" or \"info\"", |self, text| {
    match text {
        "ok" => Ok(Status::Ok),
        "fail" => Ok(Status::Fail),
        "info" => Ok(Status::Info),
        _ => Err(E::unknown_variant(text, &["ok", "fail", "info"])),
    }
});

struct ValueSeed<'v>(&'v mut Values);

impl<'de> DeserializeSeed<'de> for ValueSeed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueSeed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("null, a boolean, an integer, a text or a list of these")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::NULL)
    }

    fn visit_bool<E>(self, bool: bool) -> Result<Value, E> {
        Ok(bool.into())
    }

    fn visit_i64<E>(self, int: i64) -> Result<Value, E> {
        Ok(self.0.int(int))
    }

    fn visit_u64<E>(self, int: u64) -> Result<Value, E> {
        Ok(self.0.int(int))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(self.0.text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = seq.next_element_seed(ValueSeed(self.0))? {
            list.push(value);
        }
        Ok(self.0.list(&list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        map.next_key::<IgnoredAny>()?;
        Err(A::Error::invalid_type(serde::de::Unexpected::Map, &self))
    }
}

/// Writes the history as JSON lines, which [`read`](super::read) can read.
///
/// # Errors
/// The writer's.
///
/// ```
/// use millstream_history::format::{Format, read, write_json};
///
/// let line = "{\"process\":1,\"op\":\"pop\",\"in\":null,\"out\":[3,\"x\"],\"call\":5,\"return\":9}\n";
/// let mut written = Vec::new();
/// write_json(&read(line.as_bytes(), Format::Json, None)?, &mut written)?;
/// assert_eq!(String::from_utf8(written)?, line);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_json(history: &History, mut output: impl Write) -> io::Result<()> {
    let values = history.values();
    if history.skew() > 0 {
        writeln!(output, r#"{{"skew":{}}}"#, history.skew())?;
    }
    for row in 0..history.len() {
        let operation = history.get(row);
        let name = Quoted(history.op_name(operation.op));
        write!(output, r#"{{"process":{},"op":{name},"in":{}"#, operation.process, values.show(operation.input))?;
        if operation.status == Status::Ok {
            write!(output, r#","out":{}"#, values.show(operation.output))?;
        }
        write!(output, r#","call":{}"#, operation.call)?;
        if let Some(ret) = operation.ret {
            write!(output, r#","return":{ret}"#)?;
        }
        if let Some(key) = operation.key {
            write!(output, r#","key":{}"#, values.show(key))?;
        }
        if operation.status != Status::Ok && (operation.ret.is_some() || operation.status == Status::Fail) {
            write!(output, r#","status":"{}""#, operation.status.name())?;
        }
        output.write_all(b"}\n")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    /// Many lines of every kind: blank lines, keys only in later lines, and several custom names and values.
    fn lines() -> Vec<String> {
        let line = |n: usize| {
            let (call, ret) = (10 * n, 10 * n + 5);
            let mut line = format!(
                r#"{{"process":{},"op":"{}","call":{call},"return":{ret}"#,
                n % 7,
                ["write", "turn", "read"][n % 3]
            );
            match n % 5 {
                0 => write!(line, r#","in":"text {}""#, n % 11),
                1 => write!(line, r#","in":[{n},"text {}",[true,"deep {}"]]"#, n % 13, n % 3),
                2 => write!(line, r#","in":{}"#, i64::MAX - n as i64 % 4),
                _ => write!(line, r#","out":{n}"#),
            }
            .expect("texts take all");
            if n > 300 && n.is_multiple_of(2) {
                write!(line, r#","key":"key {}""#, n % 9).expect("texts take all");
            }
            match n % 17 {
                0 => line + "}\n\n",
                1 => format!("{{\"skew\":{}}}\n{line}}}\r\n", n % 19),
                _ => line + "}\n",
            }
        };
        (0..600).map(line).collect()
    }

    fn read_all(text: &str) -> Result<History, FormatError> {
        super::read(text.as_bytes(), None)
    }

    fn rows(history: &History) -> Vec<String> {
        let row = |row| {
            format!(
                "{} {:?}",
                history.show(row),
                Operation { key: None, input: Value::NULL, output: Value::NULL, ..history.get(row) }
            )
        };
        (0..history.len()).map(row).collect()
    }

    #[test]
    fn a_text_of_many_blocks_is_read_as_its_lines_are() {
        let lines = lines();
        let history = read_all(&lines.concat()).unwrap();
        let mut one_by_one = Builder::new();
        for line in &lines {
            one_by_one.append(Block::parse(line.as_bytes(), None).unwrap().builder).unwrap();
        }
        let expected = one_by_one.finish().unwrap();
        assert_eq!((rows(&history), history.skew()), (rows(&expected), 18));
        assert_eq!(history.len(), lines.len());
    }

    #[test]
    fn errors_of_later_blocks_have_the_lines_and_numbers_of_the_whole() {
        let good = lines();
        for at in [0, 1, 100, 350, 599] {
            let before: usize = good[..at].iter().map(|text| text.lines().count()).sum();
            let with = |line: &str| [&good[..at], &[line.to_owned() + "\n"], &good[at..]].concat().concat();
            let error = read_all(&with("nonsense")).unwrap_err();
            assert_eq!(error.line, before as u64 + 1, "{error}");
            let error = read_all(&with(r#"{"process":9,"op":"read","call":7,"return":3}"#)).unwrap_err();
            assert_eq!(error.line, before as u64 + 1, "{error}");
            let Problem::Contradiction(contradiction) = error.problem else { panic!("{error}") };
            assert_eq!(contradiction, Contradiction::ReturnBeforeCall { operation: at, call: 7, ret: 3 });
        }
        let twice = |process| format!(r#"{{"process":{process},"op":"read","call":1}}"#) + "\n";
        let error = read_all(&[twice(99), good.concat(), twice(99)].concat()).unwrap_err();
        let last = good.concat().lines().count() as u64 + 2;
        assert!(matches!(error.problem, Problem::TwoAtOnce { process: 99, earlier: 1 }), "{error}");
        assert_eq!(error.line, last, "{error}");
    }
}
