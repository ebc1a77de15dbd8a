//! Outcomes and numbers from lines: each is a whole line, or a field of a delimited line or of a JSON line.

use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read};
use std::os::fd::AsFd;
use std::path::Path;

use millstream_command::screen::text;
use serde_json::Value;

use super::args::ColumnArgs;
use super::error::EvidenceError;
use super::jobs::Interrupts;
use super::number::Quantity;
use super::reader::Attentive;

/// The byte order mark with which some programs begin a UTF-8 text.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The maximum length of a line; a longer line cannot contain outcomes.
const MAX_LINE_BYTES: u64 = 1 << 20;

/// The fields of a file, one a line. Empty lines are skipped.
pub(super) struct Fields {
    reader: Box<dyn BufRead>,
    interrupts: Interrupts,
    place: String,
    column: Option<String>,
    /// The number of the line that was read last, from 1.
    line: u64,
    text: Vec<u8>,
    field: Vec<u8>,
    pick: Pick,
}

/// The part of a line that is read.
enum Pick {
    Whole,
    /// Not known yet: the first line decides.
    Unseen {
        column: String,
        separator: Option<u8>,
    },
    Nth {
        index: usize,
        separator: Separator,
    },
    Member(Vec<String>),
}

#[derive(Clone, Copy)]
enum Separator {
    Blanks,
    Byte(u8),
}

impl Fields {
    /// Opens a file; `-` is standard input.
    pub(super) fn open(path: &Path, columns: &ColumnArgs) -> Result<Self, EvidenceError> {
        if path == Path::new("-") {
            let file = io::stdin().as_fd().try_clone_to_owned().map(File::from);
            let file = file.map_err(EvidenceError::system("reading standard input"))?;
            return Ok(Self::of_file(file, "standard input".to_owned(), columns));
        }
        let place = path.display().to_string();
        let usage = |error: io::Error| EvidenceError::usage(format!("{place} cannot be read: {error}"));
        let file = File::open(path).map_err(usage)?;
        if file.metadata().is_ok_and(|found| found.is_dir()) {
            return Err(EvidenceError::usage(format!("{place} is a folder; name a file in it")));
        }
        Ok(Self::of_file(file, place, columns))
    }

    fn of_file(file: File, place: String, columns: &ColumnArgs) -> Self {
        let interrupts = Interrupts::none();
        let reader = Attentive::new(file, interrupts.clone());
        Self { interrupts, ..Self::new(Box::new(BufReader::with_capacity(1 << 16, reader)), place, columns) }
    }

    /// Opens standard input, for a command line that names neither a command nor a file. If standard input is a
    /// terminal, there are no data either, which is an error.
    pub(super) fn standard_input(columns: &ColumnArgs) -> Result<Self, EvidenceError> {
        if io::stdin().is_terminal() {
            return Err(EvidenceError::usage(
                "nothing to observe: give a command after `--`, a file with --input, or pipe outcomes in",
            ));
        }
        Self::open(Path::new("-"), columns)
    }

    fn new(reader: Box<dyn BufRead>, place: String, columns: &ColumnArgs) -> Self {
        let pick = match &columns.column {
            Some(column) => Pick::Unseen { column: column.clone(), separator: columns.separator },
            None => Pick::Whole,
        };
        let interrupts = Interrupts::none();
        let column = columns.column.clone();
        Self { reader, interrupts, place, column, line: 0, text: Vec::new(), field: Vec::new(), pick }
    }

    /// Returns the interrupts. Once the process listens for interrupts, each of them ends the reading early.
    pub(super) fn interrupts(&self) -> &Interrupts {
        &self.interrupts
    }

    /// Returns the name of the input.
    pub(super) fn place(&self) -> &str {
        &self.place
    }

    /// Returns the subject of the data, in words that do not depend on the file's path.
    pub(super) fn subject(&self) -> String {
        match &self.column {
            Some(column) => format!("column {column}"),
            None => "the data".to_owned(),
        }
    }

    /// Returns the position of the line that was read last.
    pub(super) fn position(&self) -> String {
        format!("line {} of {}", self.line, self.place)
    }

    /// Returns an error in the line that was read last.
    pub(super) fn problem(&self, problem: impl Into<String>) -> EvidenceError {
        EvidenceError::Line { place: self.place.clone(), line: self.line, problem: problem.into() }
    }

    /// Returns the next field, without the blanks around it; `None` at the end and after an interrupt.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, EvidenceError> {
        loop {
            if !self.read_line()? {
                return Ok(None);
            }
            if self.text.trim_ascii().is_empty() {
                continue;
            }
            if let Pick::Unseen { column, separator } = &self.pick {
                let (pick, is_header) =
                    Pick::from_first_line(column, *separator, &self.text).map_err(|p| self.problem(p))?;
                self.pick = pick;
                if is_header {
                    continue;
                }
            }
            self.field.clear();
            let picked = match &self.pick {
                Pick::Whole | Pick::Unseen { .. } => return Ok(Some(self.text.trim_ascii())),
                Pick::Nth { index, separator } => nth_field(&self.text, *index, *separator, &mut self.field),
                Pick::Member(path) => member(&self.text, path, &mut self.field),
            };
            return match picked {
                Ok(()) => Ok(Some(self.field.trim_ascii())),
                Err(problem) => Err(self.problem(problem)),
            };
        }
    }

    fn read_line(&mut self) -> Result<bool, EvidenceError> {
        self.text.clear();
        let read = self.reader.by_ref().take(MAX_LINE_BYTES + 1).read_until(b'\n', &mut self.text);
        if read.is_err() && self.interrupts.any() {
            return Ok(false);
        }
        let length = read.map_err(EvidenceError::system(format!("reading {}", self.place)))?;
        self.line += 1;
        if self.line == 1 && self.text.starts_with(BYTE_ORDER_MARK) {
            self.text.drain(..BYTE_ORDER_MARK.len());
        }
        if length as u64 > MAX_LINE_BYTES {
            return Err(self.problem("expected lines of outcomes or numbers, found one longer than 1 MiB"));
        }
        Ok(length > 0)
    }
}

impl Pick {
    /// Returns the meaning of the column in a file that begins with this line, and whether the line contains names and no
    /// data.
    fn from_first_line(column: &str, separator: Option<u8>, line: &[u8]) -> Result<(Self, bool), String> {
        if separator.is_none() && line.trim_ascii_start().starts_with(b"{") {
            return Ok((Self::Member(column.split('.').map(str::to_owned).collect()), false));
        }
        let separator = match separator {
            Some(b' ') => Separator::Blanks,
            Some(byte) => Separator::Byte(byte),
            None if line.contains(&b'\t') => Separator::Byte(b'\t'),
            None if line.contains(&b',') => Separator::Byte(b','),
            None => Separator::Blanks,
        };
        if let Ok(number) = column.parse::<usize>() {
            let index = number.checked_sub(1).ok_or("columns are counted from 1")?;
            return Ok((Self::Nth { index, separator }, false));
        }
        let names = fields(line, separator);
        match names.iter().position(|name| name.trim_ascii() == column.as_bytes()) {
            Some(index) => Ok((Self::Nth { index, separator }, true)),
            None => {
                let names: Vec<_> = names.iter().take(20).map(|name| format!("`{}`", excerpt(name))).collect();
                Err(format!("no column is called `{column}`; the first line has {}", names.join(", ")))
            }
        }
    }
}

/// Reads a number or a time.
///
/// # Errors
/// Returns a message if the field is neither, or is not finite.
pub(super) fn quantity(field: &str) -> Result<Quantity, String> {
    Quantity::parse(field).map_err(|_| format!("expected a number or a time, found `{}`", excerpt(field.as_bytes())))
}

/// Returns the beginning of a field, in a form that can be shown.
pub(super) fn excerpt(field: &[u8]) -> String {
    const MAX_COLUMNS: usize = 40;
    text::fit(&text::printable(&String::from_utf8_lossy(&field[..field.len().min(8 * MAX_COLUMNS)])), MAX_COLUMNS)
        .into_owned()
}

fn nth_field(line: &[u8], index: usize, separator: Separator, into: &mut Vec<u8>) -> Result<(), String> {
    let all = fields(line, separator);
    match all.get(index) {
        Some(field) => into.extend_from_slice(field),
        None => return Err(format!("expected at least {} fields, found {}", index + 1, all.len())),
    }
    Ok(())
}

/// Returns the fields of a line. A field in double quotes may contain the separator, and also a quote if it is
/// written twice.
fn fields(line: &[u8], separator: Separator) -> Vec<Vec<u8>> {
    let line = line.trim_ascii_end();
    let Separator::Byte(separator) = separator else {
        return line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty()).map(<[u8]>::to_vec).collect();
    };
    let mut all = vec![Vec::new()];
    let mut quoted = false;
    let mut rest = line.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        let field = all.last_mut().expect("there is always one");
        match byte {
            b'"' if quoted && rest.peek() == Some(&b'"') => {
                rest.next();
                field.push(b'"');
            }
            b'"' if quoted || field.is_empty() => quoted = !quoted,
            byte if byte == separator && !quoted => all.push(Vec::new()),
            byte => field.push(byte),
        }
    }
    all
}

/// Copies a member of the line's JSON object.
fn member(line: &[u8], path: &[String], into: &mut Vec<u8>) -> Result<(), String> {
    let value: Value = serde_json::from_slice(line).map_err(|error| format!("expected a line of JSON: {error}"))?;
    let found = path.iter().try_fold(&value, |value, name| value.get(name));
    match found {
        Some(Value::String(text)) => into.extend_from_slice(text.as_bytes()),
        Some(plain @ (Value::Number(_) | Value::Bool(_))) => into.extend_from_slice(plain.to_string().as_bytes()),
        Some(other) => {
            return Err(format!(
                "expected `{}` to be a number, a string, true or false, found `{}`",
                path.join("."),
                excerpt(other.to_string().as_bytes())
            ));
        }
        None => return Err(format!("there is no member `{}`", path.join("."))),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &'static str, column: Option<&str>) -> Result<Vec<String>, String> {
        let columns = ColumnArgs { column: column.map(str::to_owned), separator: None };
        let mut fields = Fields::new(Box::new(text.as_bytes()), "data".to_owned(), &columns);
        let mut all = Vec::new();
        loop {
            match fields.next() {
                Ok(Some(field)) => all.push(String::from_utf8(field.to_vec()).unwrap()),
                Ok(None) => return Ok(all),
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    fn strings(all: &[&str]) -> Result<Vec<String>, String> {
        Ok(all.iter().map(|text| (*text).to_owned()).collect())
    }

    #[test]
    fn a_line_is_a_field_when_no_column_is_asked_for() {
        assert_eq!(read("1\n\n 0 \r\n1", None), strings(&["1", "0", "1"]));
        assert_eq!(read("", None), strings(&[]));
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_line() {
        assert_eq!(read("\u{feff}1\n0\n", None), strings(&["1", "0"]));
        assert_eq!(read("\u{feff}ms,ok\n7,1\n", Some("ms")), strings(&["7"]));
        assert_eq!(read("1\n\u{feff}0\n", None), strings(&["1", "\u{feff}0"]));
    }

    #[test]
    fn columns_have_numbers_and_names() {
        assert_eq!(read("a 1  x\nb 2 y\n", Some("2")), strings(&["1", "2"]));
        assert_eq!(read("name,took\na,1.5\n\"b,c\",2\n", Some("took")), strings(&["1.5", "2"]));
        assert_eq!(read("n\tm\n\t7\n", Some("m")), strings(&["7"]));
        assert_eq!(read("\"say \"\"hi\"\"\",1\n", Some("1")), strings(&["say \"hi\""]));
        assert!(read("a,b\n1\n", Some("b")).unwrap_err().contains("data, line 2: expected at least 2 fields, found 1"));
        assert!(read("a,b\n", Some("c")).unwrap_err().contains("the first line has `a`, `b`"));
        assert!(read("a,b\n", Some("0")).unwrap_err().contains("from 1"));
    }

    #[test]
    fn json_lines_have_members() {
        let lines = "{\"ok\":true,\"t\":{\"ms\":1.5}}\n{\"ok\":\"no\",\"t\":{\"ms\":2}}\n";
        assert_eq!(read(lines, Some("ok")), strings(&["true", "no"]));
        assert_eq!(read(lines, Some("t.ms")), strings(&["1.5", "2"]));
        assert!(read(lines, Some("t")).unwrap_err().contains("expected `t` to be a number"));
        assert!(read(lines, Some("x")).unwrap_err().contains("no member `x`"));
        assert!(read("{}\nnothing\n", Some("a.b")).is_err());
    }

    #[test]
    fn a_line_without_an_end_is_refused_before_it_fills_memory() {
        let long: &'static str = Box::leak("7".repeat(MAX_LINE_BYTES as usize + 2).into_boxed_str());
        assert!(read(long, None).unwrap_err().contains("longer than 1 MiB"));
    }
}
