//! Lines of a stream, numbered, in one buffer.

use std::io::BufRead;

use super::error::{FormatError, Problem};

/// A reader that counts lines.
pub(super) struct Lines<R> {
    input: R,
    buffer: Vec<u8>,
    line: u64,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(input: R) -> Self {
        Lines { input, buffer: Vec::new(), line: 0 }
    }

    /// The next line, trimmed; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u64, &[u8])>, FormatError> {
        self.buffer.clear();
        self.line += 1;
        match self.input.read_until(b'\n', &mut self.buffer) {
            Ok(0) => Ok(None),
            Ok(_) => Ok(Some((self.line, self.buffer.trim_ascii()))),
            Err(error) => Err(Problem::Io(error).at(self.line)),
        }
    }
}

/// The line's text.
pub(super) fn text(line: u64, bytes: &[u8]) -> Result<&str, FormatError> {
    std::str::from_utf8(bytes).map_err(|error| Problem::Syntax(format!("not UTF-8: {error}")).at(line))
}

/// The line of each operation: the line after the previous operation's, unless `jumps` has another.
#[derive(Default)]
pub(super) struct LineTable {
    /// The number and the line of each operation that is not on the line after its predecessor's.
    jumps: Vec<(usize, u64)>,
}

impl LineTable {
    pub(super) fn note(&mut self, operation: usize, line: u64) {
        if self.line(operation) != line {
            self.jumps.push((operation, line));
        }
    }

    /// Appends the table of a block that follows `lines` lines with `operations` operations.
    pub(super) fn append(&mut self, operations: usize, lines: u64, next: &LineTable) {
        self.note(operations, lines + next.line(0));
        for &(operation, line) in &next.jumps {
            self.note(operations + operation, lines + line);
        }
    }

    pub(super) fn line(&self, operation: usize) -> u64 {
        let after = self.jumps.partition_point(|&(number, _)| number <= operation);
        let (number, line) = after.checked_sub(1).map_or((0, 1), |before| self.jumps[before]);
        line + (operation - number) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_shift_the_table() {
        let mut table = LineTable::default();
        for (operation, line) in [1, 2, 5, 6, 7, 9].into_iter().enumerate() {
            table.note(operation, line);
        }
        assert_eq!((0..6).map(|operation| table.line(operation)).collect::<Vec<_>>(), [1, 2, 5, 6, 7, 9]);
        assert_eq!(table.jumps.len(), 2);
    }

    #[test]
    fn tables_follow_each_other() {
        let lines = [2, 3, 7, 8, 10, 11, 12, 20];
        for cut in 0..lines.len() {
            let (mut table, mut next) = (LineTable::default(), LineTable::default());
            let before = if cut == 0 { 0 } else { lines[cut - 1] };
            lines[..cut].iter().enumerate().for_each(|(operation, &line)| table.note(operation, line));
            lines[cut..].iter().enumerate().for_each(|(operation, &line)| next.note(operation, line - before));
            table.append(cut, before, &next);
            assert_eq!(
                (0..lines.len()).map(|operation| table.line(operation)).collect::<Vec<_>>(),
                lines,
                "cut at {cut}"
            );
        }
    }
}
