//! `read`: a file becomes the payload.
//!
//! The size is known from the walk or asked of the open file, memory for it is granted before a byte is read, and the
//! buffer is exactly that large. A file that turns out longer (it grew, or its size is not what the file system says,
//! as in `/proc`) is read on in steps, each granted first; a shorter one gives a shorter payload. Only regular files
//! are read: a pipe or a device could keep a worker for ever.

use std::fs::File;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use millstream_flow::{Cx, Failure};

use super::Op;
use super::failing::io_failure;
use super::growing;
use super::safe_path::PathTemplate;
use crate::file::template::{Field, Template};
use crate::record::Record;

/// Most bytes read between two looks at the time limit and at cancellation.
const STEP: usize = 8 << 20;

/// See the [module](self).
pub(super) struct Read {
    path: PathTemplate,
    /// The path is the unit's own, whose size the source has declared.
    own: bool,
}

impl Read {
    pub(super) fn new(path: &Template) -> Self {
        Self { path: PathTemplate::new(path), own: path.is_only(&Field::Path) }
    }
}

impl Op for Read {
    fn run(&self, record: &mut Record, cx: &mut Cx<'_>) -> Result<(), Failure> {
        // Until the read has succeeded the record keeps the payload it came with, which counts too.
        let held = record.payload.len() as u64 + record.headroom;
        let payload = if self.own {
            read_file(record.path(), Some(record.declared).filter(|size| *size > 0), held, cx)?
        } else {
            read_file(&self.path.render(record)?, None, held, cx)?
        };
        record.size = Some(payload.len() as u64);
        record.declared = 0;
        record.payload = payload;
        Ok(())
    }

    fn idempotent(&self) -> bool {
        true
    }
}

fn read_file(path: &Path, declared: Option<u64>, held: u64, cx: &mut Cx<'_>) -> Result<Vec<u8>, Failure> {
    let failed = |error| io_failure("read", path, &error);
    // Without O_NONBLOCK, opening a pipe that nobody writes to would not return.
    let file = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(failed)?;
    let size = match declared {
        Some(size) => size,
        None => regular_size(&file, path)?,
    };
    cx.reserve(held + size)?;
    let mut payload = growing::with_room(size).map_err(failed)?;
    while payload.len() < payload.capacity() {
        if growing::read_some(&file, &mut payload, STEP).map_err(failed)? == 0 {
            growing::trim(&mut payload);
            return Ok(payload);
        }
        if size > STEP as u64 {
            cx.check()?;
        }
    }
    read_on(&file, payload, held, path, cx)
}

/// Reads what a file has beyond its size, which is nothing almost always: that is found out without growing the buffer.
fn read_on(file: &File, mut payload: Vec<u8>, held: u64, path: &Path, cx: &mut Cx<'_>) -> Result<Vec<u8>, Failure> {
    let failed = |error| io_failure("read", path, &error);
    let mut probe = Vec::with_capacity(1024);
    while growing::read_some(file, &mut probe, STEP).map_err(failed)? > 0 {
        let capacity = growing::next_capacity(&payload);
        cx.reserve(held + capacity as u64)?;
        growing::grow_to(&mut payload, capacity).map_err(failed)?;
        payload.append(&mut probe);
        while payload.len() < payload.capacity() && growing::read_some(file, &mut payload, STEP).map_err(failed)? > 0 {
            cx.check()?;
        }
    }
    growing::trim(&mut payload);
    Ok(payload)
}

/// The size of an open regular file.
fn regular_size(file: &File, path: &Path) -> Result<u64, Failure> {
    let found = file.metadata().map_err(|error| io_failure("read", path, &error))?;
    let kind = found.file_type();
    if kind.is_file() {
        return Ok(found.len());
    }
    let what = if kind.is_dir() {
        "a folder"
    } else if kind.is_fifo() {
        "a pipe"
    } else {
        "a device"
    };
    Err(Failure::permanent(format!("cannot read {}: it is {what}, and `read` takes regular files", path.display())))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::Read;
    use crate::file::template::{Field, Template};
    use crate::ops::one_stage::{run, run_under};
    use crate::record::Record;

    fn file_record(path: &std::path::Path, declared: u64) -> Record {
        let mut record = Record::file(path.as_os_str().as_encoded_bytes().to_vec(), 0);
        record.declared = declared;
        record
    }

    fn read() -> Read {
        Read::new(&Template::of(Field::Path))
    }

    #[test]
    fn the_payload_is_the_file_whatever_size_was_declared() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let content: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
        for length in [0, 1, 1023, 1024, 1025, 65_536, 65_537, 1_200_000] {
            fs::write(&path, &content[..length]).unwrap();
            for declared in [0, 1, 1000, length as u64, length as u64 + 5, 2_000_000] {
                let record = run(read(), file_record(&path, declared)).unwrap();
                assert!(record.payload == content[..length], "{length} bytes, declared {declared}");
                assert_eq!(record.size, Some(length as u64));
                assert_eq!(record.bytes(), length as u64);
                assert!(record.payload.capacity() <= length + length / 8 + 1024);
            }
        }
    }

    #[test]
    fn a_file_without_a_size_is_read_to_its_end() {
        let record = run(read(), file_record(std::path::Path::new("/proc/self/status"), 0)).unwrap();
        assert!(record.payload.starts_with(b"Name:"));
    }

    #[test]
    fn what_is_no_regular_file_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
        for (path, what) in
            [(pipe.as_path(), "a pipe"), (folder.path(), "a folder"), ("/dev/zero".as_ref(), "a device")]
        {
            let error = run(read(), file_record(path, 0)).unwrap_err();
            assert!(error.contains(what) && error.contains(path.to_str().unwrap()), "{error}");
        }
    }

    #[test]
    fn a_missing_file_is_named() {
        let error = run(read(), file_record("/nowhere/at/all".as_ref(), 0)).unwrap_err();
        assert!(error.contains("cannot read /nowhere/at/all: No such file"), "{error}");
    }

    #[test]
    fn more_than_the_budget_waits_until_it_is_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, vec![7; 100_000]).unwrap();
        let record = run_under(read(), file_record(&path, 10), 50_000).unwrap();
        assert_eq!(record.payload.len(), 100_000);
    }
}
