//! An assembler for the kernel's BPF machine: no compiler is needed, either at build time or at run time.

/// A register. `R1` to `R5` are the arguments of calls, which clobber them. `R0` is the result, and `R10` is the frame pointer.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
pub(super) enum Register {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    R7,
    R8,
    R9,
    R10 = 10,
}

/// A comparison of unsigned numbers.
#[derive(Debug, Clone, Copy)]
#[repr(u8)]
pub(super) enum Is {
    Equal = 0x10,
    Above = 0x20,
    AtLeast = 0x30,
}

/// A function of the kernel that programs may call, by its number.
#[derive(Debug, Clone, Copy)]
#[repr(i32)]
pub(super) enum Helper {
    KtimeGetNs = 5,
    GetSmpProcessorId = 8,
    RingbufOutput = 130,
}

/// A target of jumps, made by [`Assembler::label`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Label(usize);

/// One instruction, in the kernel's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub(super) struct Instruction {
    code: u8,
    /// The destination in the low half, the source in the high half.
    registers: u8,
    offset: i16,
    immediate: i32,
}

const FROM_REGISTER: u8 = 0x08;

/// A program under construction.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    code: Vec<Instruction>,
    /// The position of each label, once it has been placed.
    labels: Vec<Option<usize>>,
    /// The jumps, each with its label.
    jumps: Vec<(usize, Label)>,
}

impl Assembler {
    fn push(&mut self, code: u8, to: Register, from: u8, offset: i16, immediate: i32) {
        self.code.push(Instruction { code, registers: to as u8 | from << 4, offset, immediate });
    }

    /// `to = from`
    pub(super) fn copy(&mut self, to: Register, from: Register) {
        self.push(0xb7 | FROM_REGISTER, to, from as u8, 0, 0);
    }

    /// `to = value`
    pub(super) fn set(&mut self, to: Register, value: i32) {
        self.push(0xb7, to, 0, 0, value);
    }

    /// `to += value`
    pub(super) fn add(&mut self, to: Register, value: i32) {
        self.push(0x07, to, 0, 0, value);
    }

    /// `to += from`
    pub(super) fn add_register(&mut self, to: Register, from: Register) {
        self.push(0x07 | FROM_REGISTER, to, from as u8, 0, 0);
    }

    /// `to -= from`
    pub(super) fn subtract(&mut self, to: Register, from: Register) {
        self.push(0x17 | FROM_REGISTER, to, from as u8, 0, 0);
    }

    /// `to <<= bits`
    pub(super) fn shift_left(&mut self, to: Register, bits: u32) {
        self.push(0x67, to, 0, 0, bits as i32);
    }

    /// `to = base[offset]`, 64 bits
    pub(super) fn load(&mut self, to: Register, base: Register, offset: usize) {
        self.push(0x79, to, base as u8, small(offset), 0);
    }

    /// `base[offset] = from`, 64 bits
    pub(super) fn store(&mut self, base: Register, offset: usize, from: Register) {
        self.push(0x7b, base, from as u8, small(offset), 0);
    }

    /// `frame[-below] = from`, 64 bits
    pub(super) fn store_in_frame(&mut self, below: i16, from: Register) {
        self.push(0x7b, Register::R10, from as u8, -below, 0);
    }

    /// `to = frame[-below]`, 64 bits
    pub(super) fn load_from_frame(&mut self, to: Register, below: i16) {
        self.push(0x79, to, Register::R10 as u8, -below, 0);
    }

    /// `base[offset] = value`, 64 bits
    pub(super) fn store_value(&mut self, base: Register, offset: usize, value: i32) {
        self.push(0x7a, base, 0, small(offset), value);
    }

    /// Exchanges `register` with `base[offset]`, 64 bits. This is a full barrier, because the instruction returns the previous
    /// value: on every architecture, the kernel compiles such a read-modify-write instruction to a full barrier.
    pub(super) fn exchange(&mut self, base: Register, offset: usize, register: Register) {
        self.push(0xdb, base, register as u8, small(offset), 0xe1);
    }

    /// `base[offset] += register`, and `register` becomes the previous value, 64 bits. This is a full barrier as well.
    pub(super) fn fetch_add(&mut self, base: Register, offset: usize, register: Register) {
        self.push(0xdb, base, register as u8, small(offset), 0x01);
    }

    /// `R0 = helper(R1, …)`
    pub(super) fn call(&mut self, helper: Helper) {
        self.push(0x85, Register::R0, 0, 0, helper as i32);
    }

    /// `to` = the map with this descriptor, as an argument for a call.
    pub(super) fn map(&mut self, to: Register, descriptor: i32) {
        self.push(0x18, to, 1, 0, descriptor);
        self.push(0, Register::R0, 0, 0, 0);
    }

    /// `to` = the address of the only entry of an array map + `offset` bytes.
    pub(super) fn map_value(&mut self, to: Register, descriptor: i32, offset: usize) {
        self.push(0x18, to, 2, 0, descriptor);
        self.push(0, Register::R0, 0, 0, offset as i32);
    }

    /// Returns.
    pub(super) fn exit(&mut self) {
        self.push(0x95, Register::R0, 0, 0, 0);
    }

    /// Returns a new label, which is not placed yet.
    pub(super) fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Places a label at the current position.
    pub(super) fn place(&mut self, label: Label) {
        self.labels[label.0] = Some(self.code.len());
    }

    /// Jumps to the label.
    pub(super) fn jump(&mut self, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.push(0x05, Register::R0, 0, 0, 0);
    }

    /// Jumps to the label if the comparison of `left` with `right` is true.
    pub(super) fn jump_if(&mut self, left: Register, is: Is, right: Register, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.push(0x05 | is as u8 | FROM_REGISTER, left, right as u8, 0, 0);
    }

    /// Jumps to the label if the comparison of `left` with `value` is true.
    pub(super) fn jump_if_value(&mut self, left: Register, is: Is, value: i32, label: Label) {
        self.jumps.push((self.code.len(), label));
        self.push(0x05 | is as u8, left, 0, 0, value);
    }

    /// Returns the program, with its jumps resolved.
    pub(super) fn finish(mut self) -> Vec<Instruction> {
        for (at, label) in self.jumps {
            let target = self.labels[label.0].expect("a label that is jumped to is placed");
            let distance = target as isize - at as isize - 1;
            self.code[at].offset = i16::try_from(distance).expect("a program is short");
        }
        self.code
    }
}

fn small(offset: usize) -> i16 {
    i16::try_from(offset).expect("an offset inside one entry")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_count_from_the_next_instruction() {
        let mut assembler = Assembler::default();
        let (again, end) = (assembler.label(), assembler.label());
        assembler.place(again);
        assembler.jump_if_value(Register::R1, Is::Equal, 7, end);
        assembler.jump(again);
        assembler.place(end);
        assembler.exit();
        let offsets: Vec<i16> = assembler.finish().iter().map(|instruction| instruction.offset).collect();
        assert_eq!(offsets, [1, -2, 0]);
    }

    #[test]
    fn registers_share_a_byte() {
        let mut assembler = Assembler::default();
        assembler.exchange(Register::R7, 8, Register::R2);
        let [exchange] = assembler.finish()[..] else { panic!("one instruction") };
        assert_eq!(exchange, Instruction { code: 0xdb, registers: 0x27, offset: 8, immediate: 0xe1 });
    }
}
