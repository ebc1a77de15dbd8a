//! Rows of CSV.
//!
//! A row without quotes is a line whose fields end at commas. Such a row is split here if all of it is in the current block.
//! All other rows are read by the reader of the `csv` crate. That reader gets the input line by line, so that it reads nothing
//! beyond its row.

use std::collections::HashSet;
use std::io::{self, Read};

use memchr::{memchr, memchr_iter};

use super::input::{MAX_RECORD, READ_BYTES};
use super::value::Value;

/// The byte order mark in UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// See the [module](self).
pub(super) struct Rows {
    reader: csv::Reader<Lines>,
    row: csv::ByteRecord,
    header: Vec<String>,
    /// For each column, whether the program may use it. The fields of all other columns stay empty.
    wanted: Vec<bool>,
    /// The number of bytes in the last row.
    bytes: usize,
}

impl Rows {
    /// Reads the header. `wanted` names the columns that the program may use; `None` means all columns.
    pub(super) fn open(input: Box<dyn Read>, wanted: Option<&[String]>) -> Result<Self, String> {
        let lines = Lines::new(input).map_err(|error| error.to_string())?;
        let mut reader = csv::ReaderBuilder::new().buffer_capacity(READ_BYTES).from_reader(lines);
        let header = reader.byte_headers().map_err(|error| format!("the header: {error}"))?.clone();
        no_quote_is_open(&reader, &header)?;
        let header = names_of(&header)?;
        let wanted = header.iter().map(|name| wanted.is_none_or(|wanted| wanted.contains(name))).collect();
        Ok(Self { reader, row: csv::ByteRecord::new(), header, wanted, bytes: 0 })
    }

    /// Returns the number of bytes in the last row.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Reads the next row and overwrites `value` with it. Returns `false` at the end.
    pub(super) fn read(&mut self, value: &mut Value) -> Result<bool, String> {
        let Self { reader, row, header, wanted, bytes } = self;
        if !matches!(value, Value::Fields(_)) {
            *value = Value::Fields(header.iter().map(|name| (name.clone(), Value::Empty)).collect());
        }
        let Value::Fields(fields) = value else { unreachable!("it was just converted") };
        let consumed = reader.position().byte();
        if reader.get_ref().is_at_a_row(consumed)
            && let Some(plain) = reader.get_mut().plain_row(wanted, fields).map_err(|error| error.to_string())?
        {
            *bytes = plain.bytes;
            let columns = plain.columns;
            return if columns == wanted.len() { Ok(true) } else { Err(of_another_length(columns, wanted.len())) };
        }
        reader.get_mut().left = Lines::RATION;
        let read = reader.read_byte_record(row);
        no_quote_is_open(reader, row)?;
        if !read.map_err(|error| not_a_row(&error))? {
            return Ok(false);
        }
        *bytes = row.as_slice().len();
        for (((_, value), field), wanted) in fields.iter_mut().zip(&*row).zip(wanted) {
            if *wanted {
                value.text().extend_from_slice(field);
            }
        }
        Ok(true)
    }
}

/// An input that is read in blocks. In this file, the *reader* is the reader of the `csv` crate, which gets lines from here. A
/// row must not be much longer than [`MAX_RECORD`]: without this limit, a quote that is never closed would turn all further
/// input into one row.
///
/// At the end of the input, the reader gets an additional newline, which ends the last row. If the reader then asks for more
/// bytes, the last row has an open quote.
struct Lines {
    input: Box<dyn Read>,
    block: Box<[u8]>,
    /// The unread part of the block is from `begin` to `filled`.
    begin: usize,
    filled: usize,
    /// The positions of the next quote and the next carriage return in the unread part, or its end if there is none.
    quote: Next,
    carriage_return: Next,
    /// The number of lines that were split here.
    split: u64,
    /// The number of bytes that the reader got.
    given: u64,
    /// The last two bytes that the reader got.
    last: [u8; 2],
    /// The number of bytes that the reader may still get for the current row.
    left: u64,
    end: End,
    /// The number of lines that end with a carriage return alone. The reader does not count these lines.
    returns: u64,
}

/// A row that was split here.
struct Plain {
    bytes: usize,
    columns: usize,
}

/// The end of an input of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Ahead,
    /// The input has ended.
    Near,
    /// The reader has received the additional newline.
    Reached,
    /// The reader has asked for more.
    Passed,
}

/// A byte, and the next position at which it occurs, if that is known.
struct Next {
    byte: u8,
    at: Option<usize>,
}

impl Next {
    fn new(byte: u8) -> Self {
        Self { byte, at: None }
    }

    /// Returns the first position from `begin` on, or the end of the bytes.
    #[inline]
    fn from(&mut self, begin: usize, bytes: &[u8]) -> usize {
        match self.at {
            Some(at) if at >= begin => at,
            _ => *self.at.insert(memchr(self.byte, &bytes[begin..]).map_or(bytes.len(), |at| begin + at)),
        }
    }
}

impl Lines {
    /// The maximum number of bytes that the reader may get for one row: the maximum of the row, and the bytes that the reader
    /// buffers.
    const RATION: u64 = MAX_RECORD + READ_BYTES as u64;

    /// Skips the byte order mark with which some programs begin a UTF-8 file.
    fn new(input: Box<dyn Read>) -> io::Result<Self> {
        let mut this = Self {
            input,
            block: vec![0; READ_BYTES].into(),
            begin: 0,
            filled: 0,
            quote: Next::new(b'"'),
            carriage_return: Next::new(b'\r'),
            split: 0,
            given: 0,
            last: [0; 2],
            left: Self::RATION,
            end: End::Ahead,
            returns: 0,
        };
        // The mark is skipped here, because the `csv` crate recognises it only if its first read returns more bytes than the
        // mark.
        while this.filled < MARK.len() && MARK.starts_with(&this.block[..this.filled]) && this.fill()? {}
        if this.block[..this.filled].starts_with(MARK) {
            this.begin = MARK.len();
        }
        Ok(this)
    }

    /// Returns whether the next row begins at `begin`, so that it may be split here. `consumed` is the number of bytes that the
    /// reader has consumed. If a row ends with `\r\n`, the reader consumes the newline only with the next row.
    #[inline]
    fn is_at_a_row(&self, consumed: u64) -> bool {
        let is_empty = consumed == self.given && self.last[1] != b'\r';
        is_empty || consumed + 1 == self.given && self.last == *b"\r\n"
    }

    /// Reads the wanted fields of the next row, if it is in the block and has no quotes. Skips empty lines.
    #[inline]
    fn plain_row(&mut self, wanted: &[bool], fields: &mut [(String, Value)]) -> io::Result<Option<Plain>> {
        loop {
            let filled = &self.block[..self.filled];
            let begin = self.begin;
            let carriage_return = self.carriage_return.from(begin, filled);
            let stop = carriage_return.min(self.quote.from(begin, filled));
            let (mut field, mut columns) = (begin, 0);
            let mut end = |at: usize| {
                if wanted.get(columns) == Some(&true) {
                    fields[columns].1.text().extend_from_slice(&filled[field..at]);
                }
                (field, columns) = (at + 1, columns + 1);
            };
            let Some(newline) = newline_after_commas(filled, begin, stop, &mut end) else {
                if filled.get(stop) == Some(&b'\r') && filled.get(stop + 1) == Some(&b'\n') {
                    end(stop);
                    self.begin = stop + 2;
                    self.split += 1;
                    if begin < stop {
                        return Ok(Some(Plain { bytes: stop - begin, columns }));
                    }
                    continue;
                }
                // The row has a quote, or ends with a carriage return alone. The reader must read it.
                if stop < self.filled || !self.fill()? {
                    return Ok(None);
                }
                continue;
            };
            end(newline);
            self.begin = newline + 1;
            self.split += 1;
            if begin < newline {
                return Ok(Some(Plain { bytes: newline - begin, columns }));
            }
        }
    }

    /// Reads more of the input into the block. Returns `false` if the block is full, or the input is over.
    fn fill(&mut self) -> io::Result<bool> {
        if self.begin > 0 {
            self.block.copy_within(self.begin..self.filled, 0);
            self.filled -= self.begin;
            self.begin = 0;
        }
        (self.quote.at, self.carriage_return.at) = (None, None);
        if self.end != End::Ahead || self.filled == self.block.len() {
            return Ok(false);
        }
        let read = self.input.read(&mut self.block[self.filled..])?;
        self.filled += read;
        if read == 0 {
            self.end = End::Near;
        }
        Ok(read > 0)
    }

    /// Counts the bytes that the reader gets, and those carriage returns in them that are not followed by a newline.
    fn give(&mut self, bytes: &[u8]) {
        if self.last[1] == b'\r' && bytes.first() != Some(&b'\n') {
            self.returns += 1;
        }
        self.returns += returns_alone(bytes);
        for byte in &bytes[bytes.len().saturating_sub(2)..] {
            self.last = [self.last[1], *byte];
        }
        self.given += bytes.len() as u64;
        self.left -= bytes.len() as u64;
    }
}

/// Calls `comma` with the position of each comma from `begin` to the first newline, and returns the position of that
/// newline; `None` if there is none before `stop`.
#[inline(always)]
fn newline_after_commas(bytes: &[u8], begin: usize, stop: usize, mut comma: impl FnMut(usize)) -> Option<usize> {
    let mut at = begin;
    while at + 8 <= stop {
        let word = u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        let mut found = places_of(b',', word) | places_of(b'\n', word);
        while found != 0 {
            let place = at + found.trailing_zeros() as usize / 8;
            if bytes[place] == b'\n' {
                return Some(place);
            }
            comma(place);
            found &= found - 1;
        }
        at += 8;
    }
    for (place, byte) in bytes[..stop].iter().enumerate().skip(at) {
        match byte {
            b'\n' => return Some(place),
            b',' => comma(place),
            _ => {}
        }
    }
    None
}

/// Returns a word in which the highest bit of each byte is set if that byte of `word` equals `byte`.
#[inline(always)]
fn places_of(byte: u8, word: u64) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let different = word ^ (u64::from(byte) * 0x0101_0101_0101_0101);
    !(((different & LOW) + LOW) | different | LOW)
}

impl Read for Lines {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        if matches!(self.end, End::Reached | End::Passed) {
            self.end = End::Passed;
            return Ok(0);
        }
        if self.left == 0 {
            let message = format!("longer than {MAX_RECORD} bytes; is a quote not closed?");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        if self.begin == self.filled && !self.fill()? {
            self.end = End::Reached;
            buffer[0] = b'\n';
            self.give(b"\n");
            return Ok(1);
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let rest = &self.block[self.begin..self.filled];
        let line = memchr(b'\n', rest).map_or(rest.len(), |newline| newline + 1).min(most);
        buffer[..line].copy_from_slice(&rest[..line]);
        self.begin += line;
        self.give(&buffer[..line]);
        Ok(line)
    }
}

/// Counts the carriage returns that are followed by a byte other than a newline.
fn returns_alone(bytes: &[u8]) -> u64 {
    memchr_iter(b'\r', bytes).filter(|at| bytes.get(at + 1).is_some_and(|next| *next != b'\n')).count() as u64
}

/// Returns an error if the input has ended within a quote of the row.
#[inline]
fn no_quote_is_open(reader: &csv::Reader<Lines>, row: &csv::ByteRecord) -> Result<(), String> {
    // The reader asks for more than the additional newline only if the last row is incomplete.
    if reader.get_ref().end == End::Passed { ends_whole(reader, row) } else { Ok(()) }
}

#[cold]
fn ends_whole(reader: &csv::Reader<Lines>, row: &csv::ByteRecord) -> Result<(), String> {
    let Some(quoted) = row.iter().next_back() else { return Ok(()) };
    let Lines { returns, split, .. } = reader.get_ref();
    let ends = reader.position().line() + returns + split;
    let line = ends - memchr_iter(b'\n', quoted).count() as u64 - returns_alone(quoted);
    Err(format!(
        "a quote opens in line {line} and is never closed; expected a quote at the end of its field, and each \
         quote of the field's text twice; `lines()` takes any text"
    ))
}

/// Returns the names of a header's columns, which are the names of each row's fields.
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

/// Returns the message of an error, without the reader's own row numbers.
#[cold]
fn not_a_row(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            of_another_length(*len as usize, *expected_len as usize)
        }
        _ => error.to_string(),
    }
}

#[cold]
fn of_another_length(found: usize, expected: usize) -> String {
    format!("found {found} field(s); expected {expected}, as in the header")
}

#[cfg(test)]
mod tests {
    use std::io::{self, Read};

    use millstream_verify_random::{Random, stress};

    use super::{Rows, Value};

    /// An input that returns a few bytes at a time.
    struct Drops(Vec<u8>, Random);

    impl Read for Drops {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = (1 + self.1.below(9) as usize).min(self.0.len()).min(buffer.len());
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0.drain(..count);
            Ok(count)
        }
    }

    /// Returns the rows, and whether an error followed the last one.
    fn rows(text: &[u8], random: &mut Random, wanted: Option<&[String]>) -> (Vec<Vec<Vec<u8>>>, bool) {
        let mut rows = match Rows::open(Box::new(Drops(text.to_vec(), random.fork())), wanted) {
            Ok(rows) => rows,
            Err(_) => return (Vec::new(), true),
        };
        let (mut value, mut all) = (Value::Empty, Vec::new());
        loop {
            match rows.read(&mut value) {
                Ok(true) => {}
                Ok(false) => return (all, false),
                Err(_) => return (all, true),
            }
            let row = value.fields().iter_mut().map(|(_, field)| match field {
                Value::Text(text) => text.clone(),
                _ => b"unread".to_vec(),
            });
            all.push(row.collect());
        }
    }

    #[test]
    fn rows_are_those_of_the_csv_crate_however_the_input_comes() {
        let mut random = Random::seeded();
        let (mut several, mut ended) = (0, 0);
        for _ in 0..3000 * stress() {
            let pieces: [&[u8]; 9] =
                [b"1", b"two", b"", b" ", b"\"a,b\"", b"\"a\nb\"", b"\"\"", b"x\"y", b"\"a\"\"b\""];
            let ends: [&[u8]; 5] = [b"\n", b"\r\n", b"\r", b"\n\n", b"\n"];
            // Draw files of the usual form more often: without quotes, and with one kind of line ending.
            let (plain, end) = (random.below(2) == 0, random.below(5) as usize);
            let mut text = if random.below(4) == 0 { b"\xef\xbb\xbfa,b".to_vec() } else { b"a,b".to_vec() };
            for _ in 0..random.below(9) {
                text.extend_from_slice(ends[if random.below(8) == 0 { random.below(5) as usize } else { end }]);
                for column in 0..if random.below(20) == 0 { random.below(4) } else { 2 } {
                    text.extend_from_slice(if column > 0 { b"," } else { b"" });
                    text.extend_from_slice(pieces[random.below(if plain { 4 } else { 9 }) as usize]);
                }
            }
            text.extend_from_slice([&b""[..], b"\n", b"\r\n", b"\""][random.below(4) as usize]);
            let mut expected = Vec::new();
            let mut reader = csv::Reader::from_reader(&text[..]);
            let header = reader.byte_headers().unwrap().clone();
            let fails = header.len() != 2
                || reader.byte_records().any(|row| match row {
                    Ok(row) => {
                        expected.push(row.iter().map(<[u8]>::to_vec).collect::<Vec<_>>());
                        false
                    }
                    Err(_) => true,
                });
            let (mut found, failed) = rows(&text, &mut random, None);
            let shown = text.escape_ascii();
            if failed && !fails {
                // The `csv` crate treats an open quote as if it were closed at the end of the input.
                assert!(text.ends_with(b"\"") || header.len() != 2, "{shown}");
                expected.truncate(found.len());
            } else {
                assert_eq!(failed, fails && header.len() == 2, "{shown}");
            }
            assert_eq!(found, expected, "{shown}");
            several += u64::from(found.len() > 2);
            ended += u64::from(failed);
            found.iter_mut().for_each(|row| row[0] = b"unread".to_vec());
            assert_eq!(rows(&text, &mut random, Some(&["b".to_owned()])).0, found, "{shown}");
        }
        assert!(several > 750 && ended > 75, "{several} {ended}");
    }
}
