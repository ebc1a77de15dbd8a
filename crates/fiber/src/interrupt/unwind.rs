//! Finds the callers on a copied stack, by the tables that the compiler writes for unwinding (`.eh_frame`).

use std::ffi::{c_int, c_void};
use std::slice;

use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, NativeEndian, Pointer, RegisterRule, UnwindContext, UnwindSection,
};

use super::registers::{RETURN_ADDRESS, Registers, STACK_POINTER, address};
use crate::backtrace::MAX_FRAMES;

/// Returns the return addresses, the innermost first. `stack` is a copy of the bytes from the stack pointer on.
///
/// Ends before a function without a table, and before one that keeps its caller's registers in an unusual way, as the functions
/// between two stacks do.
pub(super) fn unwind(mut registers: Registers, stack: &[u8]) -> Vec<usize> {
    let stack = Copied { start: registers.stack_pointer() as u64, bytes: stack };
    // As if the next instruction were called: what follows a return address may belong to the next function.
    let mut addresses = vec![registers.instruction.saturating_add(1) as usize];
    let mut context = Box::new(UnwindContext::new());
    // The instruction that is under way.
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
/// table, and keeps nothing on the stack, so its return address is where a call leaves it.
fn caller_of_stub(registers: &Registers, stack: &Copied<'_>) -> Option<Registers> {
    let mut caller = registers.clone();
    if cfg!(target_arch = "x86_64") {
        caller.instruction = stack.word(stack.start)?;
        caller.set(STACK_POINTER, stack.start + 8);
    } else {
        caller.instruction = address(registers.get(RETURN_ADDRESS)?);
    }
    // Anything else is no return address: it lies in no code that the loader knows.
    in_tables(caller.instruction.checked_sub(1)?, |_| caller)
}

/// A copied piece of memory.
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
    /// The bytes from the index on, and their address.
    index: &'a [u8],
    /// The segment with the index and the tables.
    segment: &'a [u8],
}

impl Tables<'_> {
    /// Returns the registers of the caller as they are after the call.
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
            // A function leaves a register alone for which it has no rule; and the stack pointer is set above.
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
        // A caller's frame is above that of the function that it calls.
        (frame >= registers.stack_pointer() as u64).then_some(caller)
    }
}

/// Calls `act` with the tables of the executable or library to which the code at an address belongs. It stays loaded
/// meanwhile.
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
        // SAFETY: the loader passes what `in_tables` has passed to it, and a valid description of what it has loaded.
        let (info, search) = unsafe { (&*info, &mut *search.cast::<Search<F, R>>()) };
        // SAFETY: the same.
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
