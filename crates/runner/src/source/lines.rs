//! `lines`: one unit for each line of a file or of standard input.
//!
//! Lines are read on demand, and at most a kilobyte of short lines is read ahead, so the memory does not depend on the
//! length of the input. A line ends at a newline, or at a NUL byte if the flow file says so. A carriage return before a
//! newline belongs to the ending. The last line needs no ending. If a line is longer than [`MAX_LINE_BYTES`], its
//! record has only the start of the line and a fault, and the next line is read as usual.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use bytes::Bytes;

use crate::record::Record;

/// The maximum length of a line, in bytes.
pub(super) const MAX_LINE_BYTES: usize = 16 << 20;

/// The number of bytes requested from the operating system at once.
const READ: usize = 64 << 10;

/// The size of a block of memory that short lines share. The block is freed when the last unit with one of these lines
/// is freed.
const BLOCK: usize = 1 << 10;

/// The number of bytes of an overlong line that its record contains.
const SHOWN: usize = 64;

/// See the [module](self).
pub struct Lines<R> {
    reader: BufReader<R>,
    /// The name of the input in messages.
    name: String,
    ending: u8,
    longest: usize,
    number: u64,
    buffer: Vec<u8>,
    /// The next lines, with their endings, in one block of memory.
    block: Bytes,
    failed: bool,
}

impl<R: Read> Lines<R> {
    /// The lines of `input`, which end with a zero byte if `null`, otherwise with a line feed. Faults call it `name`.
    pub fn new(input: R, name: String, null: bool) -> Self {
        Self {
            reader: BufReader::with_capacity(READ, input),
            name,
            ending: if null { 0 } else { b'\n' },
            longest: MAX_LINE_BYTES,
            number: 0,
            buffer: Vec::new(),
            block: Bytes::new(),
            failed: false,
        }
    }

    /// Changes the maximum length of a line.
    pub fn up_to(self, longest: usize) -> Self {
        Self { longest, ..self }
    }

    /// The next line, if there is one. For an overlong line, returns the start of the line and a message.
    ///
    /// # Errors
    /// The input cannot be read. There are no lines after that.
    fn try_next(&mut self) -> io::Result<Option<(Vec<u8>, Option<String>)>> {
        self.buffer.clear();
        // The limit is the longest line, an ending of two bytes, and one more byte, which shows that the line is too
        // long.
        let most = self.longest as u64 + 3;
        if self.reader.by_ref().take(most).read_until(self.ending, &mut self.buffer)? == 0 {
            return Ok(None);
        }
        self.number += 1;
        let ended = self.buffer.last() == Some(&self.ending);
        let length = if ended { self.length(&self.buffer) } else { self.buffer.len() };
        let line = &self.buffer[..length];
        if length <= self.longest.min(READ) {
            return Ok(Some((line.to_vec(), None)));
        }
        if length <= self.longest {
            // A long line is moved out of the buffer. With a copy, the line would be in memory twice, and the buffer
            // would stay as large as the longest line.
            let mut line = std::mem::take(&mut self.buffer);
            line.truncate(length);
            line.shrink_to_fit();
            return Ok(Some((line, None)));
        }
        let shown = line[..SHOWN.min(line.len())].to_vec();
        if !ended {
            self.reader.skip_until(self.ending)?;
        }
        self.buffer = Vec::new();
        let fault = format!(
            "line {} of {} is longer than {} bytes, the limit for a line",
            self.number, self.name, self.longest
        );
        Ok(Some((shown, Some(fault))))
    }

    /// Like [`try_next`](Self::try_next), but successive short lines share one block of memory. A caller must use only
    /// one of the two functions.
    ///
    /// # Errors
    /// As [`try_next`](Self::try_next).
    pub fn try_next_in_block(&mut self) -> io::Result<Option<(Bytes, Option<String>)>> {
        // At the end of the input, there is no further read: a terminal would wait for more input.
        if self.block.is_empty() && !self.read_block()? {
            return Ok(None);
        }
        let Some(end) = memchr::memchr(self.ending, &self.block) else {
            return Ok(self.try_next()?.map(|(line, fault)| (line.into(), fault)));
        };
        self.number += 1;
        let mut line = self.block.split_to(end + 1);
        line.truncate(self.length(&line));
        Ok(Some((line, None)))
    }

    /// Fills the block with as many whole lines from the reader's buffer as fit. The block stays empty if a line in it
    /// could be overlong. Returns whether there is more input.
    fn read_block(&mut self) -> io::Result<bool> {
        if self.longest < BLOCK {
            return Ok(true);
        }
        let read = loop {
            match self.reader.fill_buf() {
                // `fill_buf` returned this buffer, but its borrow would last for the whole loop.
                Ok(_) => break self.reader.buffer(),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        };
        let has_more = !read.is_empty();
        if let Some(last) = memchr::memrchr(self.ending, &read[..read.len().min(BLOCK)]) {
            self.block = Bytes::copy_from_slice(&read[..=last]);
            self.reader.consume(last + 1);
        }
        Ok(has_more)
    }

    /// The length of a line without its ending.
    fn length(&self, line: &[u8]) -> usize {
        let line = &line[..line.len() - 1];
        match line {
            [line @ .., b'\r'] if self.ending == b'\n' => line.len(),
            line => line.len(),
        }
    }
}

impl<R: Read> Iterator for Lines<R> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        if self.failed {
            return None;
        }
        let next = self.try_next_in_block().map(|line| {
            let (line, fault) = line?;
            let record = Record::line_of_block(line);
            Some(match fault {
                Some(fault) => record.with_fault(fault),
                None => record,
            })
        });
        next.unwrap_or_else(|error| {
            self.failed = true;
            let fault = format!("cannot read {} after line {}: {error}", self.name, self.number);
            Some(Record::line(Vec::new()).with_fault(fault))
        })
    }
}

/// The lines of a file. If the file cannot be opened, there is a single record, whose fault states the reason.
pub(super) fn of_file(path: &Path, null: bool) -> Box<dyn Iterator<Item = Record> + Send> {
    match File::open(path) {
        Ok(file) => Box::new(Lines::new(file, path.display().to_string(), null)),
        Err(error) => {
            let record = Record::line(path.as_os_str().as_encoded_bytes().to_vec());
            Box::new(std::iter::once(record.with_fault(format!("cannot read {}: {error}", path.display()))))
        }
    }
}

/// Standard input as a file, which is read without the buffer of [`io::stdin`].
pub(super) fn stdin() -> io::Result<File> {
    use std::os::fd::AsFd;
    Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?))
}

#[cfg(test)]
mod tests {
    use std::io::{self, Read};

    use super::Lines;
    use crate::record::Record;

    fn texts(input: &[u8], null: bool) -> Vec<Vec<u8>> {
        Lines::new(input, "test".to_owned(), null).map(|record| record.text().to_vec()).collect()
    }

    #[test]
    fn endings_are_no_part_of_a_line() {
        assert_eq!(texts(b"a\nb\r\n\n\r\nc\rd\ne", false), [&b"a"[..], b"b", b"", b"", b"c\rd", b"e"]);
        assert_eq!(texts(b"a\nb\0\0c\r\0d", true), [&b"a\nb"[..], b"", b"c\r", b"d"]);
        assert_eq!(texts(b"", false), [b""; 0]);
        assert_eq!(texts(b"\n", false), [b""]);
        assert_eq!(texts(b"\xFF\xFE\n", false), [b"\xFF\xFE"]);
    }

    #[test]
    fn lines_in_blocks_are_the_same() {
        let short: String = (0..300).map(|n| format!("{n}{}", if n % 3 == 0 { "\r\n" } else { "\n" })).collect();
        let long = format!("{short}{}\n{short}{}\nlast", "x".repeat(2000), "y".repeat(100_000));
        for text in ["", "\n", "a", "a\r\n\nb\0c\n", &short, &long] {
            for (null, longest) in [(false, 1 << 20), (true, 1 << 20), (false, 50_000), (false, 2)] {
                let lines = || Lines::new(text.as_bytes(), "test".to_owned(), null).up_to(longest);
                let (mut single, mut in_blocks) = (lines(), lines());
                loop {
                    let (line, same) = (single.try_next().unwrap(), in_blocks.try_next_in_block().unwrap());
                    assert_eq!(line, same.map(|(line, fault)| (line.to_vec(), fault)));
                    if line.is_none() {
                        break;
                    }
                }
            }
        }
    }

    fn limited(input: &[u8]) -> Vec<Record> {
        let mut lines = Lines::new(input, "test".to_owned(), false);
        lines.longest = 100;
        lines.collect()
    }

    #[test]
    fn a_line_that_is_too_long_is_a_fault_and_the_next_one_is_read() {
        for ending in ["\n", "\r\n"] {
            for length in 98..110 {
                let records = limited(format!("{}{ending}next\n", "x".repeat(length)).as_bytes());
                assert_eq!(records.len(), 2, "{length}");
                assert_eq!(records[0].rare.fault.is_some(), length > 100, "{length}");
                assert_eq!(records[1].text(), b"next");
            }
        }
        let fault = limited(&[b'x'; 1000])[0].rare.fault.clone().unwrap();
        assert_eq!(fault, "line 1 of test is longer than 100 bytes, the limit for a line");
    }

    #[test]
    fn the_end_of_the_input_is_asked_for_once() {
        /// A reader that behaves like a terminal: a read after the end of the input would wait for more.
        struct Terminal(Vec<&'static [u8]>);
        impl Read for Terminal {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let typed = self.0.pop().expect("it has said that there is no more");
                buffer[..typed.len()].copy_from_slice(typed);
                Ok(typed.len())
            }
        }
        let typed = Terminal(vec![b"", b"b\nc\n", b"a\n"]);
        let records: Vec<Record> = Lines::new(typed, "test".to_owned(), false).collect();
        assert_eq!(records.iter().map(Record::text).collect::<Vec<_>>(), [b"a", b"b", b"c"]);
    }

    #[test]
    fn an_error_is_one_fault_and_the_end() {
        struct Failing;
        impl Read for Failing {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("broken"))
            }
        }
        let input = (&b"a\nb\n"[..]).chain(Failing);
        let records: Vec<Record> = Lines::new(input, "test".to_owned(), false).collect();
        assert_eq!(records.len(), 3);
        assert_eq!(records[2].rare.fault.as_deref(), Some("cannot read test after line 2: broken"));
    }
}
