//! `print`: the payload goes to standard output, whole.
//!
//! Outputs of different units never interleave: a worker has the stream for itself while it writes a payload. A regular
//! file is written to at the position that other programs share. A pipe or a terminal is opened a second time, so that
//! waiting for a slow reader changes no flag of the descriptor that others use.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::path::Path;

use millstream_flow::{Cx, Failure};

use super::Op;
use super::failing::io_failure;
use super::line_file::LineFile;
use super::turn::Turn;
use crate::file::template::Template;
use crate::record::Record;

/// The path of standard output.
const STDOUT: &str = "/dev/stdout";

/// See the [module](self).
pub(super) struct Print {
    /// Precedes every line, with a tab.
    tag: Option<Template>,
    /// Opened by the first unit that has something to print.
    opened: Turn<Option<Stdout>>,
}

/// Standard output.
#[derive(Debug)]
enum Stdout {
    /// A regular file, at the position that all programs share which were started with it.
    File(File),
    /// A pipe, a terminal, a device: waiting for room needs a descriptor of its own.
    Stream(LineFile),
}

impl Stdout {
    #[expect(clippy::disallowed_methods, reason = "payloads are the stages' own and do not pass the door")]
    fn open(cx: &Cx<'_>) -> Result<Self, Failure> {
        let failed = |error| io_failure("write to", Path::new(STDOUT), &error);
        let file = File::from(io::stdout().as_fd().try_clone_to_owned().map_err(failed)?);
        if file.metadata().map_err(failed)?.is_file() {
            return Ok(Self::File(file));
        }
        LineFile::open(Path::new(STDOUT), cx).map(Self::Stream)
    }

    fn write(&mut self, content: &[u8], cx: &Cx<'_>) -> Result<(), Failure> {
        match self {
            Self::File(file) => {
                file.write_all(content).map_err(|error| io_failure("write to", Path::new(STDOUT), &error))
            }
            Self::Stream(stream) => stream.write(content, cx),
        }
    }
}

impl Print {
    pub(super) fn new(tag: Option<&Template>) -> Self {
        Self { tag: tag.cloned(), opened: Turn::new(None) }
    }
}

impl Op for Print {
    fn run(&self, record: &mut Record, cx: &mut Cx<'_>) -> Result<(), Failure> {
        if record.payload.is_empty() {
            return Ok(());
        }
        let made = record.payload.to_make(cx)?;
        if made > 0 {
            cx.reserve_first(record.held() + made)?;
        }
        let content = record.payload.in_memory(made, cx)?;
        let tagged = match &self.tag {
            None => None,
            Some(tag) => {
                let mut prefix = Vec::new();
                tag.render_into(record, &mut prefix).map_err(|error| Failure::from(error).to_permanent())?;
                prefix.push(b'\t');
                Some(with_tags(&content, &prefix))
            }
        };
        let mut opened = self.opened.take(cx)?;
        let stdout = match &mut *opened {
            Some(stdout) => stdout,
            none => none.insert(Stdout::open(cx)?),
        };
        stdout.write(tagged.as_deref().unwrap_or(&content), cx)
    }
}

/// The content with `prefix` before each of its lines, and the last line ended.
fn with_tags(content: &[u8], prefix: &[u8]) -> Vec<u8> {
    let lines = content.split_inclusive(|byte| *byte == b'\n');
    let mut tagged = Vec::with_capacity(content.len() + prefix.len());
    for line in lines {
        tagged.extend_from_slice(prefix);
        tagged.extend_from_slice(line);
    }
    if !tagged.ends_with(b"\n") {
        tagged.push(b'\n');
    }
    tagged
}

#[cfg(test)]
mod tests {
    use super::with_tags;

    #[test]
    fn every_line_bears_the_tag_and_the_last_one_ends() {
        assert_eq!(with_tags(b"one\ntwo", b"a\t"), b"a\tone\na\ttwo\n");
        assert_eq!(with_tags(b"one\n\n", b"a\t"), b"a\tone\na\t\n");
    }
}
