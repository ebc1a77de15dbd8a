//! `read`: reads a file into the payload.
//!
//! A file larger than its share of the byte budget is not read here: later stages read it a piece at a time
//! ([`payload`](crate::payload)). For any other file, memory for the size of the open file is granted before a byte is
//! read, and the buffer is exactly that large. A file may turn out longer, because it grew or because the file system
//! does not know its size, as in `/proc`. The rest is then read in steps, up to a limit, and memory is granted before
//! each step. If a file turns out shorter, so is the payload. [`regular`](crate::regular) says which files are opened
//! at all.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use millstream_command::screen::text;
use millstream_flow::{Cx, Failure};

use super::Op;
use super::failing::io_failure;
use super::growing;
use super::safe_path::PathTemplate;
use crate::file::template::{Field, Template};
use crate::payload::{Payload, Stream};
use crate::record::Record;

/// The maximum number of bytes beyond a file's stated size, unless the byte budget sets a lower limit. Some files of
/// the kernel state a size of 0 and never end.
const MAX_GROWTH: u64 = 64 << 20;

/// The maximum number of bytes read between two checks of the time limit and of cancellation.
const STEP: usize = 8 << 20;

/// See the [module](self).
pub(super) struct Read {
    path: PathTemplate,
    /// Whether the path is that of the unit's own file.
    own: bool,
    limit: Limit,
    most_in_memory: u64,
}

impl Read {
    pub(super) fn new(path: &Template, max_bytes: Option<u64>, most_in_memory: u64) -> Self {
        let own = path.is_only(&Field::Path);
        let limit = Limit { max_bytes, max_growth: MAX_GROWTH.min(most_in_memory) };
        Self { path: PathTemplate::new(path), own, limit, most_in_memory }
    }

    fn read(&self, record: &Record, path: &Path, cx: &mut Cx<'_>) -> Result<Made, Failure> {
        let failed = |error| io_failure("read", path, &error);
        let (file, found) = record.open(path).map_err(failed)?;
        let size = found.len();
        self.limit.admit(size, size, path)?;
        // Until the read has succeeded, the record still has its previous payload, which occupies memory as well.
        let held = record.held();
        if size > self.most_in_memory {
            cx.reserve(held + self.most_in_memory)?;
            let stream = Stream::of_file(file, size, path, self.most_in_memory);
            return Ok(Made { payload: stream.into(), size, mode: found.mode() });
        }
        cx.reserve(held + size)?;
        let payload = read_all(&file, size, self.limit, held, path, cx)?;
        let size = payload.len() as u64;
        Ok(Made { payload: payload.into(), size, mode: found.mode() })
    }
}

/// The payload made from a file.
struct Made {
    payload: Payload,
    size: u64,
    mode: u32,
}

impl Op for Read {
    fn run(&self, record: &mut Record, cx: &mut Cx<'_>) -> Result<(), Failure> {
        let made = if self.own {
            self.read(record, record.path(), cx)?
        } else {
            self.read(record, &self.path.render(record)?, cx)?
        };
        record.size = Some(made.size);
        record.declared = 0;
        if matches!(made.payload, Payload::Stream(_)) {
            record.headroom = 0;
        }
        record.payload = made.payload;
        record.mode = Some(made.mode);
        Ok(())
    }

    fn idempotent(&self) -> bool {
        true
    }
}

fn read_all(file: &File, size: u64, limit: Limit, held: u64, path: &Path, cx: &mut Cx<'_>) -> Result<Vec<u8>, Failure> {
    let failed = |error| io_failure("read", path, &error);
    let mut payload = growing::with_room(size).map_err(failed)?;
    while payload.len() < payload.capacity() {
        if growing::read_some(file, &mut payload, STEP).map_err(failed)? == 0 {
            growing::trim(&mut payload);
            return Ok(payload);
        }
        if size > STEP as u64 {
            cx.check()?;
        }
    }
    read_on(file, payload, limit, held, path, cx)
}

/// Reads the bytes beyond a file's stated size. Usually there are none, so the first read uses a small buffer of its
/// own.
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

/// The limits on the size of a payload.
#[derive(Clone, Copy)]
struct Limit {
    max_bytes: Option<u64>,
    /// The maximum number of bytes beyond the file's stated size.
    max_growth: u64,
}

impl Limit {
    /// Fails if `bytes` is too much for a file whose stated size is `size`.
    fn admit(self, bytes: u64, size: u64, path: &Path) -> Result<(), Failure> {
        let path = path.display();
        match self.max_bytes {
            Some(most) if bytes > most => {
                Err(Failure::permanent(format!("cannot read {path}: it has more than `max_bytes`, {most}")))
            }
            _ if bytes.saturating_sub(size) > self.max_growth => Err(Failure::permanent(format!(
                "cannot read {path}: its size is {size} and it goes on for more than {}, the most that a file may have \
                 beyond its size",
                text::bytes(self.max_growth)
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

    use super::{Payload, Read};
    use crate::file::template::{Field, Template};
    use crate::ops::one_stage::{run, run_under};
    use crate::record::Record;

    fn file_record(path: &std::path::Path, declared: u64) -> Record {
        let mut record = Record::file(path.as_os_str().as_encoded_bytes().to_vec(), 0);
        record.declared = declared;
        record
    }

    fn read() -> Read {
        Read::new(&Template::of(Field::Path), None, u64::MAX)
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
                assert!(record.payload.bytes().capacity() <= length + length / 8 + 1024);
            }
        }
    }

    #[test]
    fn a_file_without_a_size_is_read_to_its_end() {
        let record = run(read(), file_record(std::path::Path::new("/proc/self/status"), 0)).unwrap();
        assert!(record.payload.bytes().starts_with(b"Name:"));
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
        let beside = || Read::new(&Template::parse("{dir}/file").unwrap(), None, u64::MAX);
        assert_eq!(run(read(), record()).unwrap().payload, b"content");
        assert_eq!(run(beside(), record()).unwrap().payload, b"content");

        fs::remove_file(tree.join("a/file")).unwrap();
        symlink(&secret, tree.join("a/file")).unwrap();
        for op in [read(), beside()] {
            let error = run(op, record()).unwrap_err();
            assert!(error.contains("the path has a symbolic link"), "{error}");
        }
        fs::rename(tree.join("a"), tree.join("b")).unwrap();
        symlink(folder.path(), tree.join("a")).unwrap();
        fs::write(folder.path().join("file"), "secret").unwrap();
        assert!(run(read(), record()).unwrap_err().contains("the path has a symbolic link"));
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
        let read = |most| Read::new(&Template::of(Field::Path), Some(most), u64::MAX);
        assert_eq!(run(read(1000), file_record(&path, 0)).unwrap().payload.bytes().len(), 1000);
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
    fn a_file_larger_than_its_share_stays_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, vec![7; 3000]).unwrap();
        for (most, streams) in [(3000, false), (2999, true)] {
            let read = Read::new(&Template::of(Field::Path), None, most);
            let record = run(read, file_record(&path, 10)).unwrap();
            assert_eq!(matches!(record.payload, Payload::Stream(_)), streams);
            assert_eq!((record.size, record.payload.known_len()), (Some(3000), Some(3000)));
            assert_eq!(record.bytes(), most.min(3000));
        }
        let read = Read::new(&Template::of(Field::Path), Some(2000), 100);
        assert!(run(read, file_record(&path, 0)).unwrap_err().contains("more than `max_bytes`, 2000"));
    }

    #[test]
    fn a_file_that_announces_more_than_there_can_be_is_refused_by_its_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let file = fs::File::create(&path).unwrap();
        // A sparse file, as large as the file system allows.
        let size = (40..=63).rev().map(|log| (1_u64 << log) - 1).find(|size| file.set_len(*size).is_ok()).unwrap();
        let read = Read::new(&Template::of(Field::Path), Some(1 << 39), 1 << 20);
        let error = run(read, file_record(&path, 1 << 20)).unwrap_err();
        assert!(error.contains("more than `max_bytes`"), "{size}: {error}");
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
        assert_eq!(record.payload.bytes().len(), 100_000);
    }
}
