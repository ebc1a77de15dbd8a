//! A file to which whole lines are appended.
//!
//! **A regular file** is written at its current end (`O_APPEND`). If only a part of a line fits on the disk, that part
//! is removed before the next line is written. Several runs may write to one file. Each of them locks the file (with an
//! open-file-description lock of `fcntl`), so that it can remove a part of its own line without damage to the lines of
//! other runs. The part is overwritten with blanks instead if the file system has no locks, if another program has
//! written after the part, or if the file cannot be shortened. If another program writes in the middle of a line, the
//! whole line is written again after that program's bytes.
//!
//! **A pipe or a terminal** may accept only a part of a line. The worker then waits for room for the rest, within the
//! unit's [`Patience`]. If the patience ends halfway through a line, that line is completed before the next line
//! begins.
//!
//! No call here blocks a worker without limit, except on a file system that does not respond.

use std::fs::{self, File, Metadata};
use std::io::{self, Seek, Write};
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use millstream_flow::Failure;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::time::Timespec;

use super::failing::io_failure;
use super::patience::Patience;
use super::place;

/// The first and the longest pause between two attempts to lock a file or to open a pipe. `poll` can wait for neither.
const PAUSES: Range<Duration> = Duration::from_micros(50)..Duration::from_millis(10);

/// See the [module](self).
#[derive(Debug)]
pub struct LineFile {
    file: File,
    path: PathBuf,
    kind: Kind,
    /// The parts of a line that are still to be removed. There are several parts if other programs have written between
    /// them.
    torn: Vec<Range<u64>>,
    /// The rest of a line that was only partly written to a pipe.
    unsent: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A regular file of this run alone.
    Own,
    /// A regular file to which others may write.
    Shared,
    /// A pipe, a terminal, a device.
    Stream,
}

impl LineFile {
    /// Opens the file at `path`; creates the file and its folders if they are missing. Waits for a pipe's reader.
    ///
    /// # Errors
    /// The file system reports an error, or the patience has run out.
    pub fn open(path: &Path, patience: &dyn Patience) -> Result<Self, Failure> {
        let failed = |error| io_failure("append to", path, &error);
        let mut pauses = Pauses::new(patience);
        loop {
            match open_at_once(path) {
                Ok(file) => return Self::shared(file, path.to_owned()).map_err(failed),
                Err(error) if awaits_a_reader(path, &error) => pauses.pause()?,
                Err(error) => return Err(failed(error)),
            }
        }
    }

    /// A file to which others may write as well.
    ///
    /// # Errors
    /// The errors of the file system.
    pub fn shared(file: File, path: PathBuf) -> io::Result<Self> {
        let (kind, flag) =
            if file.metadata()?.is_file() { (Kind::Shared, OFlags::APPEND) } else { (Kind::Stream, OFlags::NONBLOCK) };
        Self::with(file, path, kind, flag)
    }

    /// A regular file to which only this run writes; `path` is its name in messages.
    ///
    /// # Errors
    /// The errors of the file system.
    pub fn own(file: File, path: PathBuf) -> io::Result<Self> {
        Self::with(file, path, Kind::Own, OFlags::APPEND)
    }

    fn with(file: File, path: PathBuf, kind: Kind, flag: OFlags) -> io::Result<Self> {
        fcntl_setfl(&file, fcntl_getfl(&file)? | flag)?;
        Ok(Self { file, path, kind, torn: Vec::new(), unsent: Vec::new() })
    }

    /// Writes a line, which ends with a newline.
    ///
    /// # Errors
    /// The file system reports an error, or the patience has run out. The line is then not in the file. If a part of
    /// the line is already in a pipe, the rest is sent before the next line.
    pub fn write(&mut self, line: &[u8], patience: &dyn Patience) -> Result<(), Failure> {
        let locked = match self.kind {
            Kind::Stream => return self.send(line, patience),
            Kind::Own => true,
            Kind::Shared => lock(&self.file, patience)?,
        };
        let written = self.add(line, locked);
        if self.kind == Kind::Shared && locked {
            unlock(&self.file);
        }
        written.map_err(|error| self.failed(&error))
    }

    /// Whether the path still leads to this file.
    pub fn is_in_place(&self) -> bool {
        let place = |found: &Metadata| (found.dev(), found.ino());
        match (self.file.metadata(), fs::metadata(&self.path)) {
            (Ok(own), Ok(there)) => place(&own) == place(&there),
            _ => false,
        }
    }

    /// Removes the parts of a line that could not be written in full, and closes the file.
    ///
    /// # Errors
    /// The errors of the file system, which may report a failed write only when the file is closed.
    pub fn close(mut self) -> io::Result<()> {
        // There is only one attempt to lock the file, because the end of a run waits for no other run. Without the
        // lock, the part is overwritten with a blank line.
        let alone = self.kind == Kind::Own || !self.torn.is_empty() && set_lock(&self.file, libc::F_WRLCK).is_ok();
        self.mend(alone)?;
        if !self.unsent.is_empty() {
            // The end of a run waits for no reader, so there is only one attempt to write the rest.
            let _ = rustix::io::write(&self.file, &self.unsent);
        }
        place::close(self.file)
    }

    fn failed(&self, error: &io::Error) -> Failure {
        io_failure("append to", &self.path, error)
    }

    /// Adds a line to a regular file.
    fn add(&mut self, line: &[u8], alone: bool) -> io::Result<()> {
        self.mend(alone)?;
        let mut rest = line;
        let error = loop {
            match (&self.file).write(rest) {
                Ok(0) => break io::ErrorKind::WriteZero.into(),
                Ok(written) if written == rest.len() && self.torn.is_empty() => return Ok(()),
                Ok(written) => {
                    rest = &rest[written..];
                    self.note_part(written as u64)?;
                    if self.torn.len() > 1 {
                        // Another program has written in the middle of the line, so the whole line is written again.
                        self.mend(alone)?;
                        rest = line;
                    } else if rest.is_empty() {
                        self.torn.clear();
                        return Ok(());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break error,
            }
        };
        // If the part cannot be removed now, the next write tries again.
        let _ = self.mend(alone);
        Err(error)
    }

    /// Notes the part of a line that was just written. Adjacent parts are merged.
    fn note_part(&mut self, written: u64) -> io::Result<()> {
        // After a write with O_APPEND, the position is the end of the written bytes.
        let end = (&self.file).stream_position()?;
        let start = end.saturating_sub(written);
        match self.torn.last_mut() {
            Some(before) if before.end == start => before.end = end,
            _ => self.torn.push(start..end),
        }
        Ok(())
    }

    /// Removes the parts of a line that could not be written in full. `alone` tells whether no other run can write
    /// meanwhile.
    fn mend(&mut self, alone: bool) -> io::Result<()> {
        while let Some(Range { start, end }) = self.torn.last().cloned() {
            let length = self.file.metadata()?.len();
            let taken_back = alone && length == end && self.file.set_len(start).is_ok();
            if !taken_back && length >= end {
                self.blank(start, end)?;
            }
            // If the file ends before the part, another program has truncated the file, and the part no longer exists.
            self.torn.pop();
        }
        Ok(())
    }

    /// Overwrites a part with a blank line.
    fn blank(&self, start: u64, end: u64) -> io::Result<()> {
        let mut line = vec![b' '; usize::try_from(end - start).map_err(io::Error::other)?];
        line[(end - start) as usize - 1] = b'\n';
        let flags = fcntl_getfl(&self.file)?;
        // With O_APPEND, Linux writes at the end of the file, whatever the position.
        fcntl_setfl(&self.file, flags - OFlags::APPEND)?;
        let written = self.file.write_all_at(&line, start);
        fcntl_setfl(&self.file, flags)?;
        written
    }

    /// Sends a line through a pipe or to a terminal, after the rest of an earlier one.
    fn send(&mut self, line: &[u8], patience: &dyn Patience) -> Result<(), Failure> {
        let earlier = std::mem::take(&mut self.unsent);
        self.push(&earlier, true, patience)?;
        self.push(line, false, patience)
    }

    /// Sends `bytes`. After a failure, the unsent rest is saved for the next call if any part of the line was sent.
    /// `begun` tells whether a part of the line was sent before this call.
    fn push(&mut self, bytes: &[u8], mut begun: bool, patience: &dyn Patience) -> Result<(), Failure> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let failure = match rustix::io::write(&self.file, rest) {
                Ok(sent) => {
                    rest = &rest[sent..];
                    begun = true;
                    continue;
                }
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => match patience.left() {
                    Ok(most) => {
                        self.wait_for_room(most);
                        continue;
                    }
                    Err(failure) => failure,
                },
                // The reader has closed the pipe. The rest is dropped, because the next reader expects whole lines.
                Err(Errno::PIPE) => return Err(self.failed(&Errno::PIPE.into())),
                Err(errno) => self.failed(&errno.into()),
            };
            if begun {
                self.unsent = rest.to_vec();
            }
            return Err(failure);
        }
        Ok(())
    }

    fn wait_for_room(&self, most: Duration) {
        let most = Timespec::try_from(most).expect("a look is short");
        // The result is ignored: the next write shows whether there is room.
        let _ = poll(&mut [PollFd::from_borrowed_fd(self.file.as_fd(), PollFlags::OUT)], Some(&most));
    }
}

/// The pauses between attempts. Each pause is longer than the previous one.
struct Pauses<'a> {
    patience: &'a dyn Patience,
    next: Duration,
}

impl<'a> Pauses<'a> {
    fn new(patience: &'a dyn Patience) -> Self {
        Self { patience, next: PAUSES.start }
    }

    fn pause(&mut self) -> Result<(), Failure> {
        std::thread::sleep(self.next.min(self.patience.left()?));
        self.next = (self.next * 2).min(PAUSES.end);
        Ok(())
    }
}

/// Opens a file for writing at its end, without waiting.
fn open_at_once(path: &Path) -> io::Result<File> {
    let open = |create| {
        let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
        File::options().append(true).create(create).custom_flags(flags).open(path)
    };
    // In a folder to which many users may write, such as /tmp, Linux refuses O_CREAT for an existing file of another
    // user.
    match open(false) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        opened => return opened,
    }
    match (open(true), path.parent()) {
        (Err(error), Some(parent)) if error.kind() == io::ErrorKind::NotFound && !parent.as_os_str().is_empty() => {
            std::fs::create_dir_all(parent)?;
            open(true)
        }
        (outcome, _) => outcome,
    }
}

/// Whether `error` means that the file is a pipe that has no reader yet.
fn awaits_a_reader(path: &Path, error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENXIO) && std::fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo())
}

/// Waits for the lock that keeps other runs from writing to the file. Returns `false` if the file system has no locks.
fn lock(file: &File, patience: &dyn Patience) -> Result<bool, Failure> {
    let mut pauses = Pauses::new(patience);
    loop {
        match set_lock(file, libc::F_WRLCK) {
            Ok(()) => return Ok(true),
            Err(Errno::AGAIN | Errno::ACCESS) => pauses.pause()?,
            Err(Errno::INTR) => {}
            Err(_) => return Ok(false),
        }
    }
}

fn unlock(file: &File) {
    // A lock that cannot be released ends when the file is closed.
    let _ = set_lock(file, libc::F_UNLCK);
}

/// Sets a lock on the whole file. The lock belongs to the open file description, not to the process, because two stages
/// of one run may write to one file.
fn set_lock(file: &File, kind: libc::c_int) -> Result<(), Errno> {
    // SAFETY: an all-zero `flock` is valid, and means the whole file.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    // SAFETY: the descriptor is open, and the call reads a lock.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) } {
        -1 => Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::NOLCK)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::Read;
    use std::os::unix::fs::OpenOptionsExt;
    use std::path::Path;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;
    use std::time::Duration;

    use millstream_flow::Failure;

    use super::{LineFile, set_lock};
    use crate::ops::patience::Patience;

    /// Patience that lasts until the test ends it.
    #[derive(Default)]
    struct Told(AtomicBool);

    impl Told {
        fn impatient() -> Self {
            Self(AtomicBool::new(true))
        }
    }

    impl Patience for Told {
        fn left(&self) -> Result<Duration, Failure> {
            if self.0.load(Ordering::Relaxed) {
                Err(Failure::timeout("no patience"))
            } else {
                Ok(Duration::from_millis(5))
            }
        }
    }

    /// Adds a part of a line, as after a write to a full disk.
    fn tear(file: &mut LineFile, path: &Path, part: &str) {
        let start = fs::metadata(path).unwrap().len();
        let mut content = fs::read(path).unwrap();
        content.extend(part.as_bytes());
        fs::write(path, content).unwrap();
        file.torn.push(start..start + part.len() as u64);
    }

    fn pipe(folder: &Path) -> std::path::PathBuf {
        let path = folder.join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
        path
    }

    fn reader(path: &Path) -> File {
        File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path).unwrap()
    }

    /// The whole content of a pipe.
    fn held(reader: &mut File) -> Vec<u8> {
        let mut all = Vec::new();
        let _ = reader.read_to_end(&mut all);
        all
    }

    #[test]
    fn a_part_of_a_line_is_removed_before_the_next_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        let mut file = LineFile::open(&path, &Told::impatient()).unwrap();
        file.write(b"whole\n", &Told::impatient()).unwrap();
        tear(&mut file, &path, "par");
        file.write(b"next\n", &Told::impatient()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole\nnext\n");
        tear(&mut file, &path, "par");
        file.close().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole\nnext\n", "nor does it stay at the end");
    }

    #[test]
    fn a_part_before_a_line_of_another_run_becomes_a_blank_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        let [mut one, mut other] = [(); 2].map(|()| LineFile::open(&path, &Told::impatient()).unwrap());
        tear(&mut one, &path, "part");
        other.write(b"other\n", &Told::impatient()).unwrap();
        one.write(b"next\n", &Told::impatient()).unwrap();
        other.write(b"last\n", &Told::impatient()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "   \nother\nnext\nlast\n");
    }

    #[test]
    fn a_part_that_was_truncated_away_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        let mut file = LineFile::open(&path, &Told::impatient()).unwrap();
        file.write(b"whole\n", &Told::impatient()).unwrap();
        tear(&mut file, &path, "part");
        fs::write(&path, "").unwrap();
        file.write(b"next\n", &Told::impatient()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "next\n");
    }

    #[test]
    fn lines_of_several_writers_are_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        thread::scope(|scope| {
            for writer in 0..3 {
                let mut file = LineFile::open(&path, &Told::default()).unwrap();
                scope.spawn(move || {
                    let line = format!("{}\n", writer.to_string().repeat(5000));
                    (0..50).for_each(|_| file.write(line.as_bytes(), &Told::default()).unwrap());
                });
            }
        });
        let text = fs::read_to_string(&path).unwrap();
        let whole = |line: &str| line.len() == 5000 && line.bytes().all(|byte| byte == line.as_bytes()[0]);
        assert!(text.lines().count() == 150 && text.lines().all(whole));
    }

    #[test]
    fn the_wait_for_a_lock_lasts_as_long_as_the_units_patience() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        let mut file = LineFile::open(&path, &Told::impatient()).unwrap();
        let other = File::options().append(true).open(&path).unwrap();
        set_lock(&other, libc::F_WRLCK).unwrap();
        assert!(file.write(b"line\n", &Told::impatient()).is_err());
        drop(other);
        file.write(b"line\n", &Told::impatient()).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "line\n");
    }

    #[test]
    fn the_wait_for_a_pipes_reader_lasts_as_long_as_the_units_patience() {
        let folder = tempfile::tempdir().unwrap();
        let path = pipe(folder.path());
        assert!(LineFile::open(&path, &Told::impatient()).is_err(), "it has no reader");
        let patient = Told::default();
        thread::scope(|scope| {
            let opening = scope.spawn(|| LineFile::open(&path, &patient).map(drop).is_err());
            patient.0.store(true, Ordering::Relaxed);
            assert!(opening.join().unwrap());
        });
        let mut reader = reader(&path);
        let mut file = LineFile::open(&path, &Told::impatient()).unwrap();
        let (long, short) = ([&[b'x'; 1 << 20][..], b"\n"].concat(), b"short\n");
        assert!(file.write(&long, &Told::impatient()).is_err(), "it is full");
        let mut read = held(&mut reader);
        assert!(!read.is_empty());
        // The rest of the first line is read before the second line.
        thread::scope(|scope| {
            scope.spawn(|| file.write(short, &Told::default()).unwrap());
            while !read.ends_with(short) {
                read.extend(held(&mut reader));
                thread::yield_now();
            }
        });
        assert!(read == [&long[..], short].concat());
        drop(reader);
        let error = file.write(short, &Told::impatient()).unwrap_err().to_string();
        assert!(error.contains("Broken pipe") && error.contains(path.to_str().unwrap()), "{error}");
    }
}
