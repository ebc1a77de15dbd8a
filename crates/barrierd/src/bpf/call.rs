//! The bpf(2) system call.

use std::ffi::CString;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::{fmt, io};

use super::assembler::Instruction;

const MAP_CREATE: libc::c_int = 0;
const PROG_LOAD: libc::c_int = 5;
const RAW_TRACEPOINT_OPEN: libc::c_int = 17;
const MAP_FREEZE: libc::c_int = 22;

const MAP_ARRAY: u32 = 2;
const MAP_RINGBUF: u32 = 27;
const MAPPABLE: u32 = 1 << 10;
const PROGRAM_ON_RAW_TRACEPOINT: u32 = 17;
const LICENSE: &std::ffi::CStr = c"Dual MIT/GPL";
/// The size of the buffer for the verifier's log, which is a few KiB for a program of a hundred instructions.
const LOG_BYTES: usize = 256 << 10;

/// The kernel's refusal of a BPF request.
#[derive(Debug)]
pub(crate) struct BpfError {
    what: String,
    error: io::Error,
    /// The verifier's log, if the verifier refused a program.
    log: String,
}

impl fmt::Display for BpfError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.error)?;
        if !self.log.is_empty() {
            write!(f, "; the verifier's log:\n{}", self.log.trim_end())?;
        }
        Ok(())
    }
}

impl std::error::Error for BpfError {}

impl BpfError {
    pub(super) fn new(what: impl Into<String>, error: io::Error) -> BpfError {
        BpfError { what: what.into(), error, log: String::new() }
    }
}

fn failed(what: impl Into<String>) -> impl FnOnce(io::Error) -> BpfError {
    let what = what.into();
    |error| BpfError::new(what, error)
}

/// # Safety
/// The attributes must fit the command, and their pointers must be valid for the call.
unsafe fn bpf<T>(command: libc::c_int, attributes: &mut T) -> io::Result<libc::c_int> {
    // SAFETY: the caller promises attributes that fit the command, and the call receives their size.
    let outcome = unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), size_of::<T>()) };
    if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(outcome as libc::c_int) }
}

/// # Safety
/// The requirements of [`bpf`], and the command must return a new descriptor.
unsafe fn open<T>(command: libc::c_int, attributes: &mut T) -> io::Result<OwnedFd> {
    // SAFETY: the caller meets the requirements of `bpf`, and the new descriptor has no other owner.
    unsafe { bpf(command, attributes).map(|descriptor| OwnedFd::from_raw_fd(descriptor)) }
}

#[repr(C)]
struct MapAttributes {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
}

/// Creates an array map with one entry of `bytes` bytes. Processes can map the array into their memory.
pub(super) fn array(bytes: usize) -> Result<OwnedFd, BpfError> {
    let mut attributes =
        MapAttributes { kind: MAP_ARRAY, key_bytes: 4, value_bytes: bytes as u32, entries: 1, flags: MAPPABLE };
    // SAFETY: the attributes are those of MAP_CREATE, and contain no pointer. The command returns a new descriptor.
    unsafe { open(MAP_CREATE, &mut attributes) }.map_err(failed("an array that can be mapped (Linux 5.5)"))
}

/// Creates a ring buffer of `bytes` bytes. The size must be a power of two and a multiple of the page size.
pub(super) fn ring_buffer(bytes: usize) -> Result<OwnedFd, BpfError> {
    let mut attributes =
        MapAttributes { kind: MAP_RINGBUF, key_bytes: 0, value_bytes: 0, entries: bytes as u32, flags: 0 };
    // SAFETY: the attributes are those of MAP_CREATE, and contain no pointer. The command returns a new descriptor.
    unsafe { open(MAP_CREATE, &mut attributes) }.map_err(failed("a ring buffer (Linux 5.8)"))
}

/// Freezes a map: from now on, no process can write to it, neither by a system call nor through a mapping. Programs in the kernel
/// still can. A process with the descriptor can only read.
///
/// (A read-only descriptor would be enough if it could be mapped. But the kernel treats a mapping of such a descriptor as
/// private, and BPF maps refuse private mappings.)
pub(super) fn freeze(map: BorrowedFd<'_>) -> Result<(), BpfError> {
    let mut attributes = map.as_raw_fd() as u32;
    // SAFETY: the attributes are those of MAP_FREEZE, and contain no pointer.
    unsafe { bpf(MAP_FREEZE, &mut attributes) }.map(drop).map_err(failed("a map that only the kernel writes"))
}

#[repr(C)]
struct LoadAttributes {
    kind: u32,
    instructions: u32,
    code: u64,
    license: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
}

/// Loads a program for raw tracepoints. If the kernel refuses it, the error has the verifier's log.
pub(super) fn load(code: &[Instruction]) -> Result<OwnedFd, BpfError> {
    let load = |log: &mut [u8]| {
        let mut attributes = LoadAttributes {
            kind: PROGRAM_ON_RAW_TRACEPOINT,
            instructions: code.len() as u32,
            code: code.as_ptr() as u64,
            license: LICENSE.as_ptr() as u64,
            log_level: u32::from(!log.is_empty()),
            log_bytes: log.len() as u32,
            log: if log.is_empty() { 0 } else { log.as_mut_ptr() as u64 },
        };
        // SAFETY: the attributes are those of PROG_LOAD; the code, the license and the log outlive the call, which
        // returns a new descriptor.
        unsafe { open(PROG_LOAD, &mut attributes) }
    };
    load(&mut []).or_else(|_| {
        let mut log = vec![0; LOG_BYTES];
        load(&mut log).map_err(|error| {
            let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
            BpfError { what: "a program".to_owned(), error, log: String::from_utf8_lossy(&log[..end]).into_owned() }
        })
    })
}

/// Runs a program on each event of a tracepoint, on every processor, until the descriptor is closed.
pub(super) fn attach(program: BorrowedFd<'_>, tracepoint: &str) -> Result<OwnedFd, BpfError> {
    #[repr(C)]
    struct AttachAttributes {
        name: u64,
        program: u32,
    }
    let what = || format!("tracepoint {tracepoint}");
    let name = CString::new(tracepoint).map_err(|error| failed(what())(io::Error::other(error)))?;
    let mut attributes = AttachAttributes { name: name.as_ptr() as u64, program: program.as_raw_fd() as u32 };
    // SAFETY: the attributes are those of RAW_TRACEPOINT_OPEN; the name outlives the call, which returns a new
    // descriptor.
    unsafe { open(RAW_TRACEPOINT_OPEN, &mut attributes) }.map_err(failed(what()))
}

#[cfg(test)]
mod tests {
    use super::super::assembler::{Assembler, Register};
    use super::*;

    #[test]
    fn a_refused_program_has_the_verifiers_log() {
        // This program returns a register that was never set.
        let mut assembler = Assembler::default();
        assembler.copy(Register::R0, Register::R7);
        assembler.exit();
        let error = load(&assembler.finish()).unwrap_err();
        if error.error.kind() == io::ErrorKind::PermissionDenied && error.log.is_empty() {
            return println!("skipped: this process may not load BPF programs");
        }
        assert!(error.to_string().contains("verifier's log"), "{error}");
        assert!(error.log.contains("R7"), "{error}");
    }
}
