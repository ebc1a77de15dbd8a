//! The inputs of a text program, and its sources.

use std::cell::Cell;
use std::collections::HashSet;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;
use std::rc::Rc;

use memchr::{memchr, memchr_iter};

use super::json;
use super::place::{BeforeWait, OpenContent, Place};
use super::value::{MAX_TEXT, Value, give_back};

/// The maximum length of a line, row or record, in bytes.
const MAX_RECORD: u64 = MAX_TEXT as u64;

/// The number of bytes read at once.
const READ_BYTES: usize = 64 << 10;

/// The inputs for sources without a file, in the order of the text.
#[derive(Clone, Default)]
pub struct Inputs {
    files: Vec<PathBuf>,
    standard: bool,
    content: Option<OpenContent>,
    before_wait: Option<BeforeWait>,
}

impl fmt::Debug for Inputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { files, standard, content, before_wait } = self;
        f.debug_struct("Inputs")
            .field("files", files)
            .field("standard", standard)
            .field("content", &content.is_some())
            .field("before_wait", &before_wait.is_some())
            .finish()
    }
}

impl Inputs {
    /// Provides no input: each source names its file.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Provides standard input, for one source.
    #[must_use]
    pub fn standard() -> Self {
        Self { standard: true, ..Self::default() }
    }

    /// Provides these files, one for each source.
    #[must_use]
    pub fn files(files: Vec<PathBuf>) -> Self {
        Self { files, ..Self::default() }
    }

    /// Provides a content, for one source. `open` opens it from its start, once for each reading.
    ///
    /// The program has no other access to the outside: a source that names a file is a problem, and so is a spill.
    #[must_use]
    pub fn content(open: impl Fn() -> io::Result<Box<dyn Read>> + 'static) -> Self {
        Self { content: Some(Rc::new(open)), ..Self::default() }
    }

    /// Calls `before` whenever the program is about to wait for standard input or a file: before it opens a file, and
    /// before a read when the input has nothing at once. So a caller that gathers output can write it before the wait.
    ///
    /// An error of `before` is the error of that read.
    #[must_use]
    pub fn before_waits(self, before: impl Fn() -> io::Result<()> + 'static) -> Self {
        Self { before_wait: Some(Rc::new(before)), ..self }
    }

    pub(super) fn before_wait(&self) -> Option<BeforeWait> {
        self.before_wait.clone()
    }

    pub(super) fn place(&self, number: usize) -> Option<Place> {
        match (self.files.get(number), &self.content) {
            (Some(file), _) => Some(Place::File(file.clone())),
            (None, Some(open)) if number == 0 => Some(Place::Content(Rc::clone(open))),
            (None, _) => (self.standard && number == 0).then_some(Place::Standard),
        }
    }

    /// Returns whether the program may leave its input unread.
    pub(super) fn may_be_unread(&self) -> bool {
        self.standard || self.is_content()
    }

    /// Returns whether the program has access to one content alone.
    pub(super) fn is_content(&self) -> bool {
        self.content.is_some()
    }

    pub(super) fn count(&self) -> usize {
        self.files.len() + usize::from(self.standard) + usize::from(self.is_content())
    }
}

/// The form of a source's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Lines,
    Json,
    Csv,
    Records(u64),
}

/// A source, which opens its input for its first value.
pub(super) struct Source {
    place: Place,
    before_wait: Option<BeforeWait>,
    form: Form,
    open: Option<Open>,
    position: Position,
}

/// The last value that a source has read, by its number in the input.
#[derive(Clone)]
pub(super) struct Position {
    unit: &'static str,
    number: Rc<Cell<u64>>,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.unit, self.number.get())
    }
}

enum Open {
    Bytes(BufReader<Box<dyn Read>>, Vec<u8>),
    Csv(Box<csv::Reader<Rationed>>, csv::ByteRecord, Vec<String>),
}

/// An input that is read row by row, none of which may be much longer than [`MAX_RECORD`]: a quote that is never closed
/// would make one row of the rest.
///
/// The input ends with a newline, which ends its last row. A reader that asks for more within that row is in a quote.
struct Rationed {
    input: Box<dyn Read>,
    /// The bytes that may be read before the next row.
    left: u64,
    end: End,
    /// The number of line ends that are a carriage return alone, which the reader of rows does not count.
    returns: u64,
    /// Whether the last byte is a carriage return.
    returned: bool,
}

/// The end of an input of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Ahead,
    /// The last newline is read.
    Reached,
    /// The reader has asked for more.
    Passed,
}

impl Rationed {
    /// Allows for a row, and for what its reader takes ahead.
    const RATION: u64 = MAX_RECORD + READ_BYTES as u64;

    fn new(input: Box<dyn Read>) -> Self {
        Self { input, left: Self::RATION, end: End::Ahead, returns: 0, returned: false }
    }

    /// Counts the carriage returns in the next bytes that no newline follows.
    fn count_returns(&mut self, bytes: &[u8]) {
        if self.returned && bytes.first() != Some(&b'\n') {
            self.returns += 1;
        }
        self.returned = bytes.last() == Some(&b'\r');
        self.returns += returns_alone(bytes);
    }
}

impl Read for Rationed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        if self.end != End::Ahead {
            self.end = End::Passed;
            return Ok(0);
        }
        if self.left == 0 {
            let message = format!("longer than {MAX_RECORD} bytes; is a quote not closed?");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let read = self.input.read(&mut buffer[..most])?;
        self.left -= read as u64;
        if read == 0 {
            self.end = End::Reached;
            buffer[0] = b'\n';
            self.count_returns(b"\n");
            return Ok(1);
        }
        self.count_returns(&buffer[..read]);
        Ok(read)
    }
}

/// Counts the carriage returns that another byte than a newline follows.
fn returns_alone(bytes: &[u8]) -> u64 {
    memchr_iter(b'\r', bytes).filter(|at| bytes.get(at + 1).is_some_and(|next| *next != b'\n')).count() as u64
}

impl Source {
    pub(super) fn new(place: Place, form: Form, before_wait: Option<BeforeWait>) -> Self {
        let unit = match form {
            Form::Records(_) => "record",
            Form::Csv => "row",
            Form::Lines | Form::Json => "line",
        };
        Self { place, before_wait, form, open: None, position: Position { unit, number: Rc::default() } }
    }

    /// Returns the position of the source, which moves as the source reads.
    pub(super) fn position(&self) -> Position {
        self.position.clone()
    }

    /// Reads the next value in place of another. Returns `false` at the end.
    pub(super) fn read(&mut self, value: &mut Value) -> Result<bool, String> {
        if self.open.is_none() {
            self.open = Some(self.opened().map_err(|error| error.to_string())?);
        }
        self.position.number.set(self.position.number.get() + 1);
        let read = match self.open.as_mut().expect("it was opened") {
            Open::Csv(reader, row, header) => read_row(reader, row, header, value),
            Open::Bytes(reader, line) => match self.form {
                Form::Records(bytes) => read_record(reader, bytes, value.text()),
                Form::Json => read_json(reader, line, value),
                _ => read_line(reader, value.text()),
            },
        };
        read.map_err(|error| self.in_place(format!("{}: {error}", self.position)))
    }

    /// Returns the number of bytes from which the last value was read.
    #[inline]
    pub(super) fn bytes(&self, value: &Value) -> usize {
        match &self.open {
            Some(Open::Csv(_, row, _)) => row.as_slice().len(),
            Some(Open::Bytes(_, line)) if self.form == Form::Json => line.len(),
            _ => value.bytes(),
        }
    }

    /// Returns an error with the file that has it.
    #[cold]
    fn in_place(&self, error: String) -> String {
        match &self.place {
            Place::File(path) => format!("{}: {error}", path.display()),
            _ => error,
        }
    }

    fn opened(&self) -> io::Result<Open> {
        let reader = self.place.open(self.before_wait.as_ref())?;
        if self.form != Form::Csv {
            return Ok(Open::Bytes(BufReader::with_capacity(READ_BYTES, reader), Vec::new()));
        }
        let mut reader = csv::ReaderBuilder::new().buffer_capacity(READ_BYTES).from_reader(Rationed::new(reader));
        let header = read_header(&mut reader).map_err(|error| io::Error::other(self.in_place(error)))?;
        Ok(Open::Csv(Box::new(reader), csv::ByteRecord::new(), header))
    }
}

fn read_header(reader: &mut csv::Reader<Rationed>) -> Result<Vec<String>, String> {
    let header = reader.byte_headers().map_err(|error| format!("the header: {error}"))?.clone();
    no_quote_is_open(reader, &header)?;
    names_of(&header)
}

/// Fails if the input has ended within a quote of the row.
#[inline]
fn no_quote_is_open(reader: &csv::Reader<Rationed>, row: &csv::ByteRecord) -> Result<(), String> {
    // Only the reader of a last row that lacks its end asks for more than the input has.
    if reader.get_ref().end == End::Passed { ends_whole(reader, row) } else { Ok(()) }
}

#[cold]
fn ends_whole(reader: &csv::Reader<Rationed>, row: &csv::ByteRecord) -> Result<(), String> {
    let Some(quoted) = row.iter().next_back() else { return Ok(()) };
    let ends = reader.position().line() + reader.get_ref().returns;
    let line = ends - memchr_iter(b'\n', quoted).count() as u64 - returns_alone(quoted);
    Err(format!(
        "a quote opens in line {line} and is never closed; expected a quote at the end of its field, and each \
         quote of the field's text twice; `lines()` takes any text"
    ))
}

/// The names of a header's columns, by which rows have their fields.
fn names_of(header: &csv::ByteRecord) -> Result<Vec<String>, String> {
    let mut names = Vec::with_capacity(header.len());
    let mut seen = HashSet::new();
    for (index, name) in header.iter().enumerate() {
        let column = index + 1;
        let name = str::from_utf8(name)
            .map_err(|_| format!("the header's name of column {column} is not UTF-8; `lines()` takes any bytes"))?;
        if !seen.insert(name) {
            return Err(format!("the header names two columns `{name}`, the second of which is column {column}"));
        }
        names.push(name.to_owned());
    }
    Ok(names)
}

fn read_line(reader: &mut BufReader<impl Read>, line: &mut Vec<u8>) -> Result<bool, String> {
    // Mostly the whole line is in the buffer, and shorter than the maximum.
    let buffer = reader.buffer();
    if let Some(end) = memchr(b'\n', buffer) {
        line.extend_from_slice(&buffer[..end]);
        reader.consume(end + 1);
        return Ok(true);
    }
    let read = reader.take(MAX_RECORD + 1).read_until(b'\n', line).map_err(|error| error.to_string())?;
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if read as u64 > MAX_RECORD {
        return Err(format!("longer than {MAX_RECORD} bytes"));
    }
    Ok(read > 0)
}

fn read_json(reader: &mut BufReader<impl Read>, line: &mut Vec<u8>, value: &mut Value) -> Result<bool, String> {
    line.clear();
    give_back(line);
    if !read_line(reader, line)? {
        return Ok(false);
    }
    json::read(line, value)?;
    Ok(true)
}

fn read_record(reader: &mut impl BufRead, bytes: u64, record: &mut Vec<u8>) -> Result<bool, String> {
    let read = reader.take(bytes).read_to_end(record).map_err(|error| error.to_string())? as u64;
    if read != 0 && read != bytes {
        return Err(format!("{read} bytes at the end; expected records of {bytes}"));
    }
    Ok(read > 0)
}

fn read_row(
    reader: &mut csv::Reader<Rationed>,
    row: &mut csv::ByteRecord,
    header: &[String],
    value: &mut Value,
) -> Result<bool, String> {
    reader.get_mut().left = Rationed::RATION;
    let read = reader.read_byte_record(row);
    no_quote_is_open(reader, row)?;
    if !read.map_err(|error| not_a_row(&error))? {
        return Ok(false);
    }
    if !matches!(value, Value::Fields(_)) {
        *value = Value::Fields(header.iter().map(|name| (name.clone(), Value::Empty)).collect());
    }
    let Value::Fields(fields) = value else { unreachable!("it was just converted") };
    for ((_, value), field) in fields.iter_mut().zip(&*row) {
        value.text().extend_from_slice(field);
    }
    Ok(true)
}

/// Returns the message of an error, without the numbers of the row that the reader counts.
#[cold]
fn not_a_row(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("found {len} field(s); expected {expected_len}, as in the header")
        }
        _ => error.to_string(),
    }
}

pub(super) fn check_record(bytes: i64) -> Option<u64> {
    u64::try_from(bytes).ok().filter(|bytes| (1..=MAX_RECORD).contains(bytes))
}
