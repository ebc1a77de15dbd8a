//! `lines` with a `group` of bytes: one unit for each block of whole lines.
//!
//! A block is not changed after it was read, so a program gets the exact bytes of the input, with all line ends. The
//! block is the text of its unit. So a dead letter contains the whole block, and nothing is lost if the input cannot be
//! read again.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use super::lines::MAX_LINE_BYTES;
use crate::ops::split::block::{self, TooLong};
use crate::record::Record;

/// The number of bytes requested from the operating system at once.
const READ: usize = 64 << 10;

/// See the [module](self).
pub(super) struct Blocks<R> {
    blocks: block::Blocks<R>,
    /// The name of the input in messages.
    name: String,
    ending: u8,
    most: usize,
    failed: bool,
}

impl<R: Read> Blocks<R> {
    pub(super) fn new(input: R, name: String, null: bool, size: usize) -> Self {
        let ending = if null { 0 } else { b'\n' };
        let most = size + MAX_LINE_BYTES;
        let blocks = block::Blocks::new(BufReader::with_capacity(READ, input), ending, size, most);
        Self { blocks, name, ending, most, failed: false }
    }
}

impl<R: Read> Iterator for Blocks<R> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        if self.failed {
            return None;
        }
        let fault = |fault| Record::block(Vec::new(), self.ending).with_fault(fault);
        match self.blocks.try_next() {
            Ok(None) => None,
            Ok(Some(Ok(block))) => Some(Record::block(block, self.ending)),
            Ok(Some(Err(TooLong { part }))) => Some(fault(format!(
                "block {part} of {} is a line of more than {} bytes, the limit for a block",
                self.name, self.most
            ))),
            Err(error) => {
                self.failed = true;
                Some(fault(format!("cannot read {} after block {}: {error}", self.name, self.blocks.part())))
            }
        }
    }
}

/// The blocks of a file. If the file cannot be opened, there is a single record, whose fault states the reason.
pub(super) fn of_file(path: &Path, null: bool, size: usize) -> Box<dyn Iterator<Item = Record> + Send> {
    match File::open(path) {
        Ok(file) => Box::new(Blocks::new(file, path.display().to_string(), null, size)),
        Err(error) => {
            let record = Record::line(path.as_os_str().as_encoded_bytes().to_vec());
            Box::new(std::iter::once(record.with_fault(format!("cannot read {}: {error}", path.display()))))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Read};

    use super::Blocks;

    #[test]
    fn blocks_hold_every_byte_of_the_input_and_whole_lines() {
        let input = b"one\r\n\0two\n\nlonger line\nend";
        let blocks: Vec<Vec<u8>> =
            Blocks::new(&input[..], "test".to_owned(), false, 6).map(|unit| unit.text().to_vec()).collect();
        assert_eq!(blocks.concat(), input);
        assert!(blocks[..blocks.len() - 1].iter().all(|block| block.ends_with(b"\n")), "{blocks:?}");
        let record = Blocks::new(&input[..], "test".to_owned(), false, 100).next().unwrap();
        let items: Vec<&[u8]> = record.items().unwrap().collect();
        assert_eq!(items, [&b"one"[..], b"\0two", b"", b"longer line", b"end"]);
    }

    #[test]
    fn a_line_that_is_too_long_costs_no_other_line() {
        let long = super::MAX_LINE_BYTES + 100;
        let input = [b"one\n".to_vec(), vec![b'x'; long], b"\ntwo\n".to_vec()].concat();
        let units: Vec<_> = Blocks::new(&input[..], "test".to_owned(), false, 8).collect();
        let told: Vec<_> = units.iter().map(|unit| (unit.text(), unit.rare.fault.is_some())).collect();
        assert_eq!(told, [(&b"one\n"[..], false), (b"", true), (b"two\n", false)]);
        assert!(units[1].rare.fault.as_deref().unwrap().contains("block 2 of test is a line of more than"));
    }

    #[test]
    fn an_error_of_the_input_is_one_unit_with_a_fault() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("unplugged"))
            }
        }
        let units: Vec<_> = Blocks::new((&b"a\n"[..]).chain(Broken), "test".to_owned(), false, 2).collect();
        assert_eq!(units.len(), 2);
        assert!(units[1].rare.fault.as_deref().unwrap().contains("cannot read test after block 1: unplugged"));
    }
}
