//! Files whose reads and writes suspend the fiber.
//!
//! The kernel always reports a file as ready, even if a read has to wait for the disk, so waiting for readiness does not help.
//! Under the [model](crate::IoModel) [`Completion`](crate::IoModel::Completion), the kernel reads while the fiber waits, and a
//! worker submits the operations of all its fibers at once. Under the other models, a read first asks the kernel only for cached
//! data (`RWF_NOWAIT`). If the data are not cached, and for all other operations, the fiber makes a [blocking
//! call](crate::blocking()).
//!
//! ```
//! use std::io::{Read, Write};
//! use millstream_fiber::{IoModel, Options, Runtime, Threads, fs::File};
//!
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("greeting");
//! let runtime = Runtime::start(Options::new(Threads::One).io(IoModel::Completion))?;
//! let read = runtime.spawn(move || -> std::io::Result<String> {
//!     File::create(&path)?.write_all(b"hello")?;
//!     let mut text = String::new();
//!     File::open(&path)?.read_to_string(&mut text)?;
//!     Ok(text)
//! });
//! assert_eq!(read.join().unwrap()?, "hello");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! For pipes and terminals, use [`process`](crate::process). If a `File` is a pipe or a terminal, each read occupies a thread,
//! except under [`Completion`](crate::IoModel::Completion). Neither a cancellation nor the end of the runtime ends such a read.

use std::fs::{self, Metadata, OpenOptions};
use std::io::{self, IoSliceMut, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::panic::Location;
use std::path::Path;
use std::sync::Arc;

use io_uring::{opcode, types};
use rustix::io::{Errno, ReadWriteFlags, preadv2};

use crate::io::{IoModel, complete, on_other_thread, shortened, take_turns};
use crate::scheduler::local::Local;
use crate::scheduler::state::Reason;
use crate::sync::{Mutex, MutexGuard};

/// The offset that stands for the file's own position.
const AT_POSITION: u64 = u64::MAX;

/// The maximum number of bytes that Linux reads or writes in one operation.
const MAX_BYTES: usize = 0x7fff_f000;

/// A file, like [`std::fs::File`]; see the [module](self).
#[derive(Debug)]
pub struct File {
    inner: fs::File,
    /// All clones of a regular file share this lock, which is held during an operation at the file's position. The kernel locks
    /// the position for `read` and `write`, but not for operations of a ring.
    position: Option<Arc<Mutex<()>>>,
}

/// Operations at the file's position are atomic among all clones of the `File`. Among other owners of the same open file, such as
/// another process, they are atomic as well, except under [`Completion`](crate::IoModel::Completion).
impl From<fs::File> for File {
    fn from(inner: fs::File) -> Self {
        let has_position = inner.metadata().is_ok_and(|metadata| metadata.is_file());
        File { inner, position: has_position.then(Arc::default) }
    }
}

impl From<File> for fs::File {
    fn from(file: File) -> Self {
        file.inner
    }
}

impl File {
    /// Opens a file for reading.
    ///
    /// # Errors
    /// Returns the same errors as the standard library.
    #[track_caller]
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::open_with(OpenOptions::new().read(true), path)
    }

    /// Creates a file for writing, or empties an existing one.
    ///
    /// # Errors
    /// Returns the same errors as the standard library.
    #[track_caller]
    pub fn create(path: impl AsRef<Path>) -> io::Result<Self> {
        Self::open_with(OpenOptions::new().write(true).create(true).truncate(true), path)
    }

    /// Opens a file with `options`.
    ///
    /// # Errors
    /// Returns the same errors as the standard library.
    #[track_caller]
    pub fn open_with(options: &OpenOptions, path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        on_other_thread(|| options.open(path).map(Self::from))
    }

    /// Returns the metadata of the file.
    ///
    /// # Errors
    /// Returns the same errors as the standard library.
    #[track_caller]
    pub fn metadata(&self) -> io::Result<Metadata> {
        on_other_thread(|| self.inner.metadata())
    }

    /// Truncates the file, or extends it with zeros.
    ///
    /// # Errors
    /// Returns the same errors as the standard library.
    #[track_caller]
    pub fn set_len(&self, bytes: u64) -> io::Result<()> {
        on_other_thread(|| self.inner.set_len(bytes))
    }

    /// Waits until data and metadata are on the disk.
    ///
    /// # Errors
    /// Returns the same errors as the standard library.
    #[track_caller]
    pub fn sync_all(&self) -> io::Result<()> {
        self.sync(types::FsyncFlags::empty(), Location::caller(), fs::File::sync_all)
    }

    /// Waits until the data are on the disk.
    ///
    /// # Errors
    /// Returns the same errors as the standard library.
    #[track_caller]
    pub fn sync_data(&self) -> io::Result<()> {
        self.sync(types::FsyncFlags::DATASYNC, Location::caller(), fs::File::sync_data)
    }

    fn sync(
        &self,
        flags: types::FsyncFlags,
        at: &'static Location<'static>,
        call: impl Fn(&fs::File) -> io::Result<()> + Send + Sync,
    ) -> io::Result<()> {
        if model() == Some(IoModel::Completion) {
            let entry = opcode::Fsync::new(types::Fd(self.inner.as_raw_fd())).flags(flags).build();
            // SAFETY: the entry has no buffers, and the descriptor is open until the call returns.
            return unsafe { complete(&entry, Reason::File, None, at) }.map(drop);
        }
        on_other_thread(|| call(&self.inner))
    }

    /// Reads at an offset, without moving the file's own position.
    ///
    /// # Errors
    /// Returns the same errors as the standard library.
    #[track_caller]
    pub fn read_at(&self, buf: &mut [u8], offset: u64) -> io::Result<usize> {
        let offset = i64::try_from(offset).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))? as u64;
        self.read_from(buf, offset, Location::caller())
    }

    /// Writes at an offset, without moving the file's own position.
    ///
    /// # Errors
    /// Returns the same errors as the standard library.
    #[track_caller]
    pub fn write_at(&self, buf: &[u8], offset: u64) -> io::Result<usize> {
        let offset = i64::try_from(offset).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))? as u64;
        self.write_to(buf, offset, Location::caller())
    }

    /// Returns another owner of the same open file, with the same position.
    ///
    /// # Errors
    /// Returns an error if the descriptor cannot be duplicated.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(File { inner: self.inner.try_clone()?, position: self.position.clone() })
    }

    /// Waits until no other operation uses the file's position.
    #[track_caller]
    fn hold_position(&self) -> Option<MutexGuard<'_, ()>> {
        self.position.as_deref().map(Mutex::lock)
    }

    #[track_caller]
    fn read_from(&self, buf: &mut [u8], offset: u64, at: &'static Location<'static>) -> io::Result<usize> {
        take_turns();
        let _position = if offset == AT_POSITION { self.hold_position() } else { None };
        let length = shortened(buf.len().min(MAX_BYTES));
        let buf = &mut buf[..length];
        match model() {
            Some(IoModel::Completion) => {
                let fd = types::Fd(self.inner.as_raw_fd());
                let entry = opcode::Read::new(fd, buf.as_mut_ptr(), buf.len() as u32).offset(offset).build();
                // SAFETY: the descriptor is open and the buffer is borrowed until the call returns.
                return unsafe { complete(&entry, Reason::File, None, at) }.map(|bytes| bytes as usize);
            }
            Some(IoModel::NonBlocking | IoModel::Readiness) => {
                match preadv2(&self.inner, &mut [IoSliceMut::new(buf)], offset, ReadWriteFlags::NOWAIT) {
                    Ok(bytes) => return Ok(bytes),
                    // The data are not cached, or the file system or the kernel cannot tell whether they are.
                    Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS | Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            Some(IoModel::Blocking) | None => {}
        }
        on_other_thread(|| match offset {
            AT_POSITION => (&self.inner).read(buf),
            offset => self.inner.read_at(buf, offset),
        })
    }

    #[track_caller]
    fn write_to(&self, buf: &[u8], offset: u64, at: &'static Location<'static>) -> io::Result<usize> {
        take_turns();
        let _position = if offset == AT_POSITION { self.hold_position() } else { None };
        let buf = &buf[..shortened(buf.len().min(MAX_BYTES))];
        if model() == Some(IoModel::Completion) {
            let fd = types::Fd(self.inner.as_raw_fd());
            let entry = opcode::Write::new(fd, buf.as_ptr(), buf.len() as u32).offset(offset).build();
            // SAFETY: the descriptor is open and the buffer is borrowed until the call returns.
            return unsafe { complete(&entry, Reason::File, None, at) }.map(|bytes| bytes as usize);
        }
        on_other_thread(|| match offset {
            AT_POSITION => (&self.inner).write(buf),
            offset => self.inner.write_at(buf, offset),
        })
    }
}

/// Returns the model of the calling fiber; `None` outside fibers.
fn model() -> Option<IoModel> {
    Local::with(|_, fiber| fiber.io)
}

impl Read for &File {
    #[track_caller]
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.read_from(buf, AT_POSITION, Location::caller())
    }
}

impl Write for &File {
    #[track_caller]
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.write_to(buf, AT_POSITION, Location::caller())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for &File {
    #[track_caller]
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let _position = self.hold_position();
        (&self.inner).seek(to)
    }
}

impl Read for File {
    #[track_caller]
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buf)
    }
}

impl Write for File {
    #[track_caller]
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        (&*self).write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for File {
    #[track_caller]
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        (&*self).seek(to)
    }
}

impl AsFd for File {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}

impl AsRawFd for File {
    fn as_raw_fd(&self) -> RawFd {
        self.inner.as_raw_fd()
    }
}
