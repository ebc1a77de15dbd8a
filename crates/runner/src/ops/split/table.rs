//! Cuts a table into its rows. Each row becomes a JSON object.

use std::io::{self, BufReader, Read};

use csv::{ByteRecord, ErrorKind, Reader, ReaderBuilder};

use super::{Cut, Torn};
use crate::json_bytes;
use crate::json_member::Members;

/// See the [module](self).
pub(super) struct Rows<R> {
    reader: Reader<Bounded<BufReader<R>>>,
    /// The name of each column, as text and as a JSON string.
    names: Vec<(Vec<u8>, Vec<u8>)>,
    header: bool,
    row: ByteRecord,
    /// The maximum size of a row.
    most: usize,
    ended: bool,
}

/// A reader with a limit, so that an unclosed quote cannot occupy all memory.
struct Bounded<R> {
    reader: R,
    left: usize,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(io::Error::other(TooLong));
        }
        let most = buffer.len().min(self.left);
        let read = self.reader.read(&mut buffer[..most])?;
        self.left -= read;
        Ok(read)
    }
}

#[derive(Debug, thiserror::Error)]
#[error("a row is too long")]
struct TooLong;

impl<R: Read> Rows<R> {
    pub(super) fn new(input: BufReader<R>, separator: u8, header: bool, most: usize) -> Self {
        let bounded = Bounded { reader: input, left: most };
        let reader = ReaderBuilder::new()
            .delimiter(separator)
            .has_headers(false)
            .flexible(true)
            .quoting(separator != b'\t')
            .from_reader(bounded);
        Self { reader, names: Vec::new(), header, row: ByteRecord::new(), most, ended: false }
    }

    fn read(&mut self) -> Result<Option<Cut>, Torn> {
        if self.header && self.names.is_empty() {
            if !self.read_row()? {
                return Ok(None);
            }
            // Bytes that are not UTF-8 are replaced, because a template could not contain them.
            self.names = self.row.iter().map(|name| named(String::from_utf8_lossy(name).as_bytes())).collect();
        }
        if !self.read_row()? {
            return Ok(None);
        }
        if !self.header {
            // A column without a name gets its number as a name.
            self.names.extend((self.names.len()..self.row.len()).map(|n| named((n + 1).to_string().as_bytes())));
        } else if self.row.len() != self.names.len() {
            let line = self.row.position().map_or(0, csv::Position::line);
            let (cells, names) = (self.row.len(), self.names.len());
            return Ok(Some(Cut::wrong(format!("line {line}: a row of {cells} cells in a table of {names} columns"))));
        }
        let mut text = vec![b'{'];
        for ((_, name), cell) in self.names.iter().zip(&self.row) {
            if text.len() > 1 {
                text.push(b',');
            }
            text.extend_from_slice(name);
            text.push(b':');
            json_bytes::write_string(cell, &mut text);
        }
        text.push(b'}');
        let cells = || self.names.iter().map(|(name, _)| name.as_slice()).zip(&self.row);
        let members = Members::of_texts(cells).map_err(|error| Torn::Senseless(format!("a row has {error}")))?;
        Ok(Some(Cut { content: text, members, ..Cut::default() }))
    }

    /// Reads the next row. Returns `false` at the end.
    fn read_row(&mut self) -> Result<bool, Torn> {
        self.reader.get_mut().left = self.most;
        self.reader.read_byte_record(&mut self.row).map_err(|error| {
            let line = error.position().or(Some(self.reader.position())).map_or(0, csv::Position::line);
            match error.into_kind() {
                ErrorKind::Io(error)
                    if error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<TooLong>) =>
                {
                    let most = self.most;
                    let message = format!("the row from line {line} on is longer than {most} bytes, its `max_bytes`");
                    Torn::Senseless(format!("{message}; a quote may lack its end"))
                }
                ErrorKind::Io(error) => Torn::Unread(error),
                kind => Torn::Senseless(format!("line {line}: {kind:?}")),
            }
        })
    }
}

/// A name, as text and as a JSON string.
fn named(name: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let mut quoted = Vec::new();
    json_bytes::write_string(name, &mut quoted);
    (name.to_vec(), quoted)
}

impl<R: Read> Iterator for Rows<R> {
    type Item = Result<Cut, Torn>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let row = self.read().transpose();
        self.ended = !matches!(row, Some(Ok(_)));
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &str, separator: u8, header: bool) -> Vec<String> {
        let cuts = Rows::new(BufReader::new(text.as_bytes()), separator, header, 60);
        cuts.map(|cut| match cut {
            Ok(Cut { fault: Some(fault), .. }) => format!("? {fault}"),
            Ok(cut) => String::from_utf8(cut.content).unwrap(),
            Err(Torn::Senseless(message)) => format!("! {message}"),
            Err(Torn::Unread(error)) => panic!("{error}"),
        })
        .collect()
    }

    #[test]
    fn a_row_is_an_object() {
        assert_eq!(
            rows("a,b\n1,\"x,\"\"\ny\"\n2,\n", b',', true),
            ["{\"a\":\"1\",\"b\":\"x,\\\"\\ny\"}", "{\"a\":\"2\",\"b\":\"\"}"]
        );
        assert_eq!(rows("\"1\t2\n3\n", b'\t', false), ["{\"1\":\"\\\"1\",\"2\":\"2\"}", "{\"1\":\"3\"}"]);
        assert_eq!(rows("a,b\n", b',', true), [""; 0]);
        assert_eq!(rows("", b',', true), [""; 0]);
    }

    #[test]
    fn a_row_of_another_length_fails_alone() {
        let found = rows("a,b\n1,2\n3\n4,5\n", b',', true);
        assert_eq!(found[1], "? line 3: a row of 1 cells in a table of 2 columns");
        assert_eq!(found[2], "{\"a\":\"4\",\"b\":\"5\"}");
    }

    #[test]
    fn a_quote_without_an_end_takes_no_more_memory_than_a_row_may() {
        let text = format!("a\n\"{}", "x\n".repeat(100_000));
        let found = rows(&text, b',', true);
        assert!(found.len() == 1 && found[0].contains("longer than 60 bytes"), "{found:?}");
    }
}
