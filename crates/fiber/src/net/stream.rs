//! Code shared by all sockets.

/// Implements reading and writing for a type with a `source`, whose inner object the standard library reads and writes by
/// reference. `$read` is the method of the source for reads.
macro_rules! stream {
    ($stream:ty, $read:ident) => {
        impl Read for &$stream {
            #[track_caller]
            fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
                let length = $crate::io::shortened(buf.len());
                let buf = &mut buf[..length];
                self.source.$read(buf.len(), |mut inner| inner.read(buf))
            }

            #[track_caller]
            fn read_vectored(&mut self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
                let length = bufs.iter().map(|buf| buf.len()).sum();
                self.source.$read(length, |mut inner| inner.read_vectored(bufs))
            }
        }

        impl Write for &$stream {
            #[track_caller]
            fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
                let buf = &buf[..$crate::io::shortened(buf.len())];
                self.source.operate(Interest::Write, |mut inner| inner.write(buf))
            }

            #[track_caller]
            fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
                self.source.operate(Interest::Write, |mut inner| inner.write_vectored(bufs))
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }

        impl Read for $stream {
            #[track_caller]
            fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
                (&*self).read(buf)
            }

            #[track_caller]
            fn read_vectored(&mut self, bufs: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
                (&*self).read_vectored(bufs)
            }
        }

        impl Write for $stream {
            #[track_caller]
            fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
                (&*self).write(buf)
            }

            #[track_caller]
            fn write_vectored(&mut self, bufs: &[IoSlice<'_>]) -> io::Result<usize> {
                (&*self).write_vectored(bufs)
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
    };
}

/// Implements the conversions from and to the standard library's type, and access to the descriptor.
macro_rules! wraps {
    ($wrapper:ident, $inner:ty) => {
        impl $wrapper {
            /// Takes over an object of the standard library, and makes it and its clones non-blocking.
            ///
            /// # Errors
            /// Returns an error if the descriptor cannot be made non-blocking.
            pub fn from_std(inner: $inner) -> io::Result<Self> {
                inner.set_nonblocking(true)?;
                Ok(Self { source: Source::new(inner) })
            }

            /// Returns the object of the standard library, in blocking mode. The mode belongs to the socket, so all clones
            /// block from then on, and a fiber that uses a clone blocks its worker.
            ///
            /// # Errors
            /// Returns an error if the descriptor cannot be made blocking.
            pub fn into_std(self) -> io::Result<$inner> {
                let inner = self.source.into_inner();
                inner.set_nonblocking(false)?;
                Ok(inner)
            }

            /// Returns another owner of the same socket.
            ///
            /// # Errors
            /// Returns an error if the descriptor cannot be duplicated.
            pub fn try_clone(&self) -> io::Result<Self> {
                Self::from_std(self.source.inner().try_clone()?)
            }

            /// Returns the socket's pending error, and clears it.
            ///
            /// # Errors
            /// Returns the kernel's error.
            pub fn take_error(&self) -> io::Result<Option<io::Error>> {
                self.source.inner().take_error()
            }
        }

        impl AsFd for $wrapper {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.source.inner().as_fd()
            }
        }

        impl AsRawFd for $wrapper {
            fn as_raw_fd(&self) -> RawFd {
                self.source.inner().as_raw_fd()
            }
        }
    };
}

/// Implements time limits for each read and each write.
macro_rules! timeouts {
    ($wrapper:ident) => {
        impl $wrapper {
            /// Limits the time of each read; `None` means no limit.
            ///
            /// # Errors
            /// Returns an error for a limit of zero.
            pub fn set_read_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
                self.source.set_timeout(Interest::Read, timeout)
            }

            /// Limits the time of each write; `None` means no limit.
            ///
            /// # Errors
            /// Returns an error for a limit of zero.
            pub fn set_write_timeout(&self, timeout: Option<Duration>) -> io::Result<()> {
                self.source.set_timeout(Interest::Write, timeout)
            }

            /// Returns the time limit of each read.
            ///
            /// # Errors
            /// Never fails; the signature matches the standard library.
            pub fn read_timeout(&self) -> io::Result<Option<Duration>> {
                Ok(self.source.timeout(Interest::Read))
            }

            /// Returns the time limit of each write.
            ///
            /// # Errors
            /// Never fails; the signature matches the standard library.
            pub fn write_timeout(&self) -> io::Result<Option<Duration>> {
                Ok(self.source.timeout(Interest::Write))
            }
        }
    };
}

pub(super) use {stream, timeouts, wraps};
