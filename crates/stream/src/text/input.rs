//! The inputs of a text program, and its sources.

use std::cell::Cell;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;
use std::rc::Rc;

use memchr::memchr;

use super::json;
use super::place::{BeforeWait, OpenContent, Place};
use super::rows::Rows;
use super::value::{MAX_TEXT, Value, give_back};

/// The maximum length of a line, row or record, in bytes.
pub(super) const MAX_RECORD: u64 = MAX_TEXT as u64;

/// The number of bytes read at once.
pub(super) const READ_BYTES: usize = 64 << 10;

/// The inputs for the sources that name no file, in the order in which these sources appear in the text.
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

    /// Provides content for one source. `open` opens it from its start, once for each reading.
    ///
    /// The program has no other access to files: if a source names a file, or if the program spills, this is a
    /// [`Problem`](super::Problem).
    #[must_use]
    pub fn content(open: impl Fn() -> io::Result<Box<dyn Read>> + 'static) -> Self {
        Self { content: Some(Rc::new(open)), ..Self::default() }
    }

    /// Calls `before` whenever the program may have to wait for standard input or a file: before it opens a file, and
    /// before a read that would block. A caller that buffers its output can write it in this function, before the wait.
    ///
    /// An error of `before` becomes the error of that read.
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

    /// Returns whether the inputs are [content](Self::content) from the caller.
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
    /// The fields of rows that the program may use; `None` for all.
    wanted: Option<Vec<String>>,
    open: Option<Open>,
    position: Position,
}

/// The position of a source: the number of the last value that it has read.
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
    Csv(Box<Rows>),
}

impl Source {
    pub(super) fn new(place: Place, form: Form, before_wait: Option<BeforeWait>) -> Self {
        let unit = match form {
            Form::Records(_) => "record",
            Form::Csv => "row",
            Form::Lines | Form::Json => "line",
        };
        Self { place, before_wait, form, wanted: None, open: None, position: Position { unit, number: Rc::default() } }
    }

    /// Returns this source, which reads only the wanted fields of rows and leaves the others empty.
    pub(super) fn with_fields(self, wanted: Option<Vec<String>>) -> Self {
        Self { wanted, ..self }
    }

    /// Returns the position of the source, which moves as the source reads.
    pub(super) fn position(&self) -> Position {
        self.position.clone()
    }

    /// Reads the next value and overwrites `value` with it. Returns `false` at the end.
    pub(super) fn read(&mut self, value: &mut Value) -> Result<bool, String> {
        if self.open.is_none() {
            self.open = Some(self.opened().map_err(|error| error.to_string())?);
        }
        self.position.number.set(self.position.number.get() + 1);
        let read = match self.open.as_mut().expect("it was opened") {
            Open::Csv(rows) => rows.read(value),
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
            Some(Open::Csv(rows)) => rows.bytes(),
            Some(Open::Bytes(_, line)) if self.form == Form::Json => line.len(),
            _ => value.bytes(),
        }
    }

    /// Puts the name of the file in front of an error.
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
        let rows = Rows::open(reader, self.wanted.as_deref());
        Ok(Open::Csv(Box::new(rows.map_err(|error| io::Error::other(self.in_place(error)))?)))
    }
}

fn read_line(reader: &mut BufReader<impl Read>, line: &mut Vec<u8>) -> Result<bool, String> {
    // In the usual case the whole line is in the buffer. It is then shorter than the maximum.
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

pub(super) fn check_record(bytes: i64) -> Option<u64> {
    u64::try_from(bytes).ok().filter(|bytes| (1..=MAX_RECORD).contains(bytes))
}
