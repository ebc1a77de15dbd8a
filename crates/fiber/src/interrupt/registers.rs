//! The registers of an interrupted thread, by their DWARF numbers.

use gimli::Register;

/// The values of an interrupted thread's registers.
#[derive(Debug, Clone)]
pub(super) struct Registers {
    /// The address of the next instruction.
    pub(super) instruction: u64,
    values: [u64; COUNT],
}

impl Registers {
    pub(super) fn get(&self, register: Register) -> Option<u64> {
        self.values.get(usize::from(register.0)).copied()
    }

    pub(super) fn set(&mut self, register: Register, value: u64) {
        if let Some(place) = self.values.get_mut(usize::from(register.0)) {
            *place = value;
        }
    }

    pub(super) fn all() -> impl Iterator<Item = Register> {
        (0..COUNT as u16).map(Register)
    }

    pub(super) fn stack_pointer(&self) -> usize {
        self.values[usize::from(STACK_POINTER.0)] as usize
    }
}

pub(super) use machine::{ARE_KNOWN, RETURN_ADDRESS, STACK_POINTER, address};
use machine::{COUNT, read};

impl Registers {
    /// # Safety
    /// `context` comes from the kernel, which passed it to the signal handler that is running.
    pub(super) unsafe fn of(context: *const libc::ucontext_t) -> Self {
        // SAFETY: the kernel's context is valid until the handler returns.
        let (instruction, values) = unsafe { read(&*context) };
        Registers { instruction, values }
    }
}

#[cfg(target_arch = "x86_64")]
mod machine {
    use gimli::{Register, X86_64};

    pub(in super::super) const ARE_KNOWN: bool = true;
    pub(in super::super) const STACK_POINTER: Register = X86_64::RSP;
    pub(in super::super) const RETURN_ADDRESS: Register = X86_64::RA;
    pub(super) const COUNT: usize = 17;

    /// The kernel's indices of the registers that DWARF numbers from 0 to 15.
    const PLACES: [libc::c_int; 16] = [
        libc::REG_RAX,
        libc::REG_RDX,
        libc::REG_RCX,
        libc::REG_RBX,
        libc::REG_RSI,
        libc::REG_RDI,
        libc::REG_RBP,
        libc::REG_RSP,
        libc::REG_R8,
        libc::REG_R9,
        libc::REG_R10,
        libc::REG_R11,
        libc::REG_R12,
        libc::REG_R13,
        libc::REG_R14,
        libc::REG_R15,
    ];

    pub(super) fn read(context: &libc::ucontext_t) -> (u64, [u64; COUNT]) {
        let at = |place: libc::c_int| context.uc_mcontext.gregs[place as usize] as u64;
        let mut values = [0; COUNT];
        values.iter_mut().zip(PLACES).for_each(|(value, place)| *value = at(place));
        (at(libc::REG_RIP), values)
    }

    /// Returns a return address unchanged, because x86-64 does not sign return addresses.
    pub(in super::super) fn address(word: u64) -> u64 {
        word
    }
}

#[cfg(target_arch = "aarch64")]
mod machine {
    use gimli::{AArch64, Register};

    pub(in super::super) const ARE_KNOWN: bool = true;
    pub(in super::super) const STACK_POINTER: Register = AArch64::SP;
    pub(in super::super) const RETURN_ADDRESS: Register = AArch64::X30;
    pub(super) const COUNT: usize = 32;

    pub(super) fn read(context: &libc::ucontext_t) -> (u64, [u64; COUNT]) {
        let machine = &context.uc_mcontext;
        let mut values = [0; COUNT];
        values[..31].copy_from_slice(&machine.regs);
        values[usize::from(STACK_POINTER.0)] = machine.sp;
        (machine.pc, values)
    }

    /// Returns a return address without the signature that its upper bits may contain (pointer authentication).
    pub(in super::super) fn address(word: u64) -> u64 {
        word & ((1 << 48) - 1)
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod machine {
    use gimli::Register;

    pub(in super::super) const ARE_KNOWN: bool = false;
    pub(in super::super) const STACK_POINTER: Register = Register(0);
    pub(in super::super) const RETURN_ADDRESS: Register = Register(0);
    pub(super) const COUNT: usize = 1;

    pub(super) fn read(_: &libc::ucontext_t) -> (u64, [u64; COUNT]) {
        (0, [0])
    }

    pub(in super::super) fn address(word: u64) -> u64 {
        word
    }
}
