//! `read`: a file becomes the payload.
//!
//! The size is asked of the open file, memory for it is granted before a byte is read, and the buffer is exactly that
//! large. A file that turns out longer (it grew, or the file system does not know its size, as in `/proc`) is read on in
//! steps, each granted first, up to a limit; a shorter one gives a shorter payload. [`regular`] says which files are
//! opened at all.

use std::fs::File;
use std::path::Path;

use millstream_flow::{Cx, Failure};

use super::Op;
use super::failing::io_failure;
use super::growing;
use super::safe_path::PathTemplate;
use crate::file::template::{Field, Template};
use crate::record::Record;
use crate::regular;

/// The most that a file without `max_bytes` may have beyond its size: some files of the kernel's have size 0 and no end.
const MAX_GROWTH: u64 = 64 << 20;

/// Most bytes read between two looks at the time limit and at cancellation.
const STEP: usize = 8 << 20;

/// See the [module](self).
pub(super) struct Read {
    path: PathTemplate,
    /// The path is the unit's own.
    own: bool,
    limit: Limit,
}

impl Read {
    pub(super) fn new(path: &Template, max_bytes: Option<u64>) -> Self {
        Self { path: PathTemplate::new(path), own: path.is_only(&Field::Path), limit: Limit(max_bytes) }
    }
}

impl Op for Read {
    fn run(&self, record: &mut Record, cx: &mut Cx<'_>) -> Result<(), Failure> {
        // Until the read has succeeded the record keeps the payload it came with, which counts too.
        let held = record.payload.len() as u64 + record.headroom;
        let payload = if self.own {
            read_file(record, record.path(), self.limit, held, cx)?
        } else {
            read_file(record, &self.path.render(record)?, self.limit, held, cx)?
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

fn read_file(record: &Record, path: &Path, limit: Limit, held: u64, cx: &mut Cx<'_>) -> Result<Vec<u8>, Failure> {
    let failed = |error| io_failure("read", path, &error);
    let opened = match record.walked(path) {
        Some((root, relative)) => regular::open_below(root, relative),
        None => regular::open(path),
    };
    let (file, found) = opened.map_err(failed)?;
    let size = found.len();
    limit.admit(size, size, path)?;
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
    read_on(&file, payload, limit, held, path, cx)
}

/// Reads what a file has beyond its size, which is nothing almost always: that is found out without growing the buffer.
fn read_on(
    file: &File,
    mut payload: Vec<u8>,
    limit: Limit,
    held: u64,
    path: &Path,
    cx: &mut Cx<'_>,
) -> Result<Vec<u8>, Failure> {
    let failed = |error| io_failure("read", path, &error);
    let size = payload.len() as u64;
    let mut probe = Vec::with_capacity(1024);
    while growing::read_some(file, &mut probe, STEP).map_err(failed)? > 0 {
        let capacity = growing::next_capacity(&payload);
        limit.admit((payload.len() + probe.len()) as u64, size, path)?;
        cx.reserve(held + capacity as u64)?;
        growing::grow_to(&mut payload, capacity).map_err(failed)?;
        payload.append(&mut probe);
        while payload.len() < payload.capacity() && growing::read_some(file, &mut payload, STEP).map_err(failed)? > 0 {
            cx.check()?;
        }
    }
    limit.admit(payload.len() as u64, size, path)?;
    growing::trim(&mut payload);
    Ok(payload)
}

/// How large a payload may become.
#[derive(Clone, Copy)]
struct Limit(Option<u64>);

impl Limit {
    /// Refuses `bytes` of a file whose own size is `size`, if that is too much.
    fn admit(self, bytes: u64, size: u64, path: &Path) -> Result<(), Failure> {
        let path = path.display();
        match self.0 {
            Some(most) if bytes > most => {
                Err(Failure::permanent(format!("cannot read {path}: it has more than `max_bytes`, {most}")))
            }
            None if bytes.saturating_sub(size) > MAX_GROWTH => Err(Failure::permanent(format!(
                "cannot read {path}: its size is {size} and it goes on for more than {} MiB; `max_bytes` would let it",
                MAX_GROWTH >> 20
            ))),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::sync::Arc;

    use rustix::fs::{Mode, OFlags};

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
        Read::new(&Template::of(Field::Path), None)
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
    fn a_walked_file_that_became_a_link_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (secret, tree) = (folder.path().join("secret"), folder.path().join("tree"));
        fs::write(&secret, "secret").unwrap();
        fs::create_dir_all(tree.join("a")).unwrap();
        fs::write(tree.join("a/file"), "content").unwrap();
        let record = || {
            let root = rustix::fs::open(&tree, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
            let path = tree.join("a/file").into_os_string().into_encoded_bytes();
            Record::file(path, tree.as_os_str().len() + 1).below(&Arc::new(root))
        };
        let beside = || Read::new(&Template::parse("{dir}/file").unwrap(), None);
        assert_eq!(run(read(), record()).unwrap().payload, b"content");
        assert_eq!(run(beside(), record()).unwrap().payload, b"content");

        fs::remove_file(tree.join("a/file")).unwrap();
        symlink(&secret, tree.join("a/file")).unwrap();
        for op in [read(), beside()] {
            let error = run(op, record()).unwrap_err();
            assert!(error.contains("a symbolic link is on the way"), "{error}");
        }
        fs::rename(tree.join("a"), tree.join("b")).unwrap();
        symlink(folder.path(), tree.join("a")).unwrap();
        fs::write(folder.path().join("file"), "secret").unwrap();
        assert!(run(read(), record()).unwrap_err().contains("a symbolic link is on the way"));
    }

    #[test]
    fn a_file_without_an_end_is_given_up_on() {
        let pagemap = std::path::Path::new("/proc/self/pagemap");
        let error = run(read(), file_record(pagemap, 0)).unwrap_err();
        assert!(error.contains("its size is 0 and it goes on for more than 64 MiB"), "{error}");
    }

    #[test]
    fn max_bytes_is_the_largest_file_taken() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, [7; 1000]).unwrap();
        let read = |most| Read::new(&Template::of(Field::Path), Some(most));
        assert_eq!(run(read(1000), file_record(&path, 0)).unwrap().payload.len(), 1000);
        let error = run(read(999), file_record(&path, 0)).unwrap_err();
        assert!(error.contains("more than `max_bytes`, 999"), "{error}");
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
