//! Finds the callers on a copied stack with the compiler's tables for unwinding (`.eh_frame`).

use std::ffi::{c_int, c_void};
use std::slice;

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, NativeEndian, Pointer, RegisterRule, UnwindContext, UnwindSection,
};

use super::registers::{RETURN_ADDRESS, Registers, STACK_POINTER, address};
use crate::backtrace::MAX_FRAMES;

/// Returns the return addresses, the innermost first. `stack` is a copy of the bytes from the stack pointer upwards.
///
/// The result ends at a function that has no table, or whose table has rules that are not supported here. The functions that
/// switch stacks have such rules.
pub(super) fn unwind(mut registers: Registers, stack: &[u8]) -> Vec<usize> {
    let stack = Copied { start: registers.stack_pointer() as u64, bytes: stack };
    // Names are looked up one byte before each address, because a return address may be the first byte of the next function.
    // The innermost address is not a return address, so it is increased by one.
    let mut addresses = vec![registers.instruction.saturating_add(1) as usize];
    let mut context = Box::new(UnwindContext::new());
    // The instruction that the current frame executes.
    let mut at = registers.instruction;
    while addresses.len() < MAX_FRAMES {
        let caller = in_tables(at, |tables| tables.caller(at, &registers, &stack, &mut context)).flatten();
        let is_innermost = addresses.len() == 1;
        match caller.or_else(|| is_innermost.then(|| caller_of_stub(&registers, &stack)).flatten()) {
            Some(caller) if caller.instruction != 0 => registers = caller,
            _ => break,
        }
        addresses.push(registers.instruction as usize);
        at = registers.instruction - 1;
    }
    addresses
}

/// Returns the registers of the caller of a stub, such as the linker's between a program and a library. A stub has no usable
/// table, but it also pushes nothing, so its return address is where the call instruction stored it.
fn caller_of_stub(registers: &Registers, stack: &Copied<'_>) -> Option<Registers> {
    let mut caller = registers.clone();
    if cfg!(target_arch = "x86_64") {
        caller.instruction = stack.word(stack.start)?;
        caller.set(STACK_POINTER, stack.start + 8);
    } else {
        caller.instruction = address(registers.get(RETURN_ADDRESS)?);
    }
    // The value is a return address only if it points into the code of a loaded program or library.
    in_tables(caller.instruction.checked_sub(1)?, |_| caller)
}

/// A copy of a piece of memory.
struct Copied<'a> {
    start: u64,
    bytes: &'a [u8],
}

impl Copied<'_> {
    fn word(&self, at: u64) -> Option<u64> {
        let offset = usize::try_from(at.checked_sub(self.start)?).ok()?;
        let word = self.bytes.get(offset..)?.first_chunk()?;
        Some(u64::from_ne_bytes(*word))
    }
}

type Bytes<'a> = gimli::EndianSlice<'a, NativeEndian>;

/// The tables of an executable or a library.
struct Tables<'a> {
    /// The bytes from the index (`.eh_frame_hdr`) to the end of the segment.
    index: &'a [u8],
    /// The segment that contains the index and the tables.
    segment: &'a [u8],
}

impl Tables<'_> {
    /// Returns the values that the caller's registers will have when the function returns.
    fn caller(
        &self,
        at: u64,
        registers: &Registers,
        stack: &Copied<'_>,
        context: &mut UnwindContext<usize>,
    ) -> Option<Registers> {
        let index_at = self.index.as_ptr().addr() as u64;
        let mut bases = BaseAddresses::default().set_eh_frame_hdr(index_at);
        let index = EhFrameHdr::new(self.index, NativeEndian).parse(&bases, size_of::<usize>() as u8).ok()?;
        let Pointer::Direct(tables_at) = index.eh_frame_ptr() else { return None };
        bases = bases.set_eh_frame(tables_at);
        let offset = usize::try_from(tables_at.checked_sub(self.segment.as_ptr().addr() as u64)?).ok()?;
        let mut tables = EhFrame::new(self.segment.get(offset..)?, NativeEndian);
        if cfg!(target_arch = "aarch64") {
            tables.set_vendor(gimli::Vendor::AArch64);
        }
        let find_common = EhFrame::<Bytes<'_>>::cie_from_offset;
        let row = index.table()?.unwind_info_for_address(&tables, &bases, context, at, find_common).ok()?;
        let CfaRule::RegisterAndOffset { register, offset } = *row.cfa() else { return None };
        let frame = registers.get(register)?.wrapping_add_signed(offset);
        let mut caller = registers.clone();
        caller.set(STACK_POINTER, frame);
        for register in Registers::all() {
            // A register without a rule keeps its value. The stack pointer was set above.
            let Some(rule) = row.register(register) else { continue };
            let value = match rule {
                RegisterRule::Offset(offset) => stack.word(frame.wrapping_add_signed(offset))?,
                RegisterRule::ValOffset(offset) => frame.wrapping_add_signed(offset),
                RegisterRule::Register(other) => registers.get(other)?,
                RegisterRule::SameValue => continue,
                // The outermost function has no return address.
                RegisterRule::Undefined if register == RETURN_ADDRESS => return None,
                RegisterRule::Undefined => continue,
                _ => return None,
            };
            caller.set(register, value);
        }
        caller.instruction = address(caller.get(RETURN_ADDRESS)?);
        // The stack grows down, so the caller's stack pointer must not be lower than the function's.
        (frame >= registers.stack_pointer() as u64).then_some(caller)
    }
}

/// Calls `act` with the tables of the executable or library that contains the code at address `at`. The library cannot be
/// unloaded during the call.
fn in_tables<R>(at: u64, act: impl FnOnce(&Tables<'_>) -> R) -> Option<R> {
    struct Search<F, R> {
        at: u64,
        act: Option<F>,
        result: Option<R>,
    }
    unsafe extern "C" fn look<R, F: FnOnce(&Tables<'_>) -> R>(
        info: *mut libc::dl_phdr_info,
        _: usize,
        search: *mut c_void,
    ) -> c_int {
        // SAFETY: the loader passes the pointer to the search from `in_tables`, and a valid description of a loaded program or
        // library.
        let (info, search) = unsafe { (&*info, &mut *search.cast::<Search<F, R>>()) };
        // SAFETY: the description's list of headers is valid, too.
        let headers = unsafe { slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        let span = |header: &libc::Elf64_Phdr| {
            let start = info.dlpi_addr.wrapping_add(header.p_vaddr);
            start..start + header.p_memsz
        };
        let loaded = |at| headers.iter().find(|header| header.p_type == libc::PT_LOAD && span(header).contains(&at));
        if loaded(search.at).is_none() {
            return 0;
        }
        let index = headers.iter().find(|header| header.p_type == libc::PT_GNU_EH_FRAME).map(span);
        if let Some(index) = index
            && let Some(segment) = loaded(index.start).map(span)
            && let Some(act) = search.act.take()
        {
            let bytes = |start: u64, end: u64| {
                // SAFETY: the segment is loaded and read-only, and stays loaded while the loader calls this function.
                unsafe {
                    slice::from_raw_parts(std::ptr::with_exposed_provenance(start as usize), (end - start) as usize)
                }
            };
            let end = index.end.min(segment.end);
            search.result =
                Some(act(&Tables { index: bytes(index.start, end), segment: bytes(segment.start, segment.end) }));
        }
        1
    }
    fn search_all<R, F: FnOnce(&Tables<'_>) -> R>(search: &mut Search<F, R>) {
        // SAFETY: `look` has the signature that the loader calls, and gets the search.
        unsafe { libc::dl_iterate_phdr(Some(look::<R, F>), std::ptr::from_mut(search).cast()) };
    }
    let mut search = Search { at, act: Some(act), result: None };
    search_all(&mut search);
    search.result
}
