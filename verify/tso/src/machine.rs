//! The machine: what a thread is, and what it may do next.

/// A word of shared memory.
pub type Address = usize;
/// A register of a thread.
pub type Register = usize;

/// Words of memory.
pub const WORDS: usize = 2;
/// Registers of each thread.
pub const REGISTERS: usize = 3;

/// One instruction. Values are small; nothing wraps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instruction {
    /// Names the next instruction.
    Label(&'static str),
    /// Goes to the label.
    Jump(&'static str),
    /// Goes to the label if the bits of the mask in the register are not all zero.
    JumpIfAny(Register, u8, &'static str),
    /// Goes to the label if the registers differ.
    JumpIfDifferent(Register, Register, &'static str),
    /// Goes to the label if the register is at least this.
    JumpIfAtLeast(Register, u8, &'static str),
    /// register = value
    Set(Register, u8),
    /// register = register + value
    AddTo(Register, Register, u8),
    /// register = register & mask
    And(Register, Register, u8),
    /// register = memory: the youngest entry for the word in the thread's own buffer, or else memory.
    Load(Register, Address),
    /// Puts a store into the thread's buffer.
    Store(Address, Register),
    /// memory = memory + value without a lock prefix, the sum also in the register (for its sign): reads like a
    /// load, then stores like a store. Two steps, but no interrupt comes between them.
    Add(Address, u8, Register),
    /// The same on a machine whose interrupts could come between the two steps.
    AddInTwo(Address, u8, Register),
    /// Compare-and-swap with a lock prefix: if the word is the first register's, it becomes the second's; the
    /// third gets what was found.
    LockedCompareExchange(Address, Register, Register, Register),
    /// memory = memory & mask, with a lock prefix.
    LockedAnd(Address, u8),
    /// memory = value, with a lock prefix.
    LockedStore(Address, u8),
    /// Drains the thread's buffer.
    Fence,
    /// The system call that returns after every other thread was interrupted once, or had been switched out.
    HeavyFence,
    /// Falls asleep if the bits of the mask are the same in the word and in the register.
    FutexWait(Address, Register, u8),
    /// Falls asleep whatever the word is.
    Sleep(Address),
    /// Wakes all who sleep on the word.
    FutexWake(Address),
}

impl Instruction {
    /// Whether the thread's buffer must be empty first: locked instructions, fences and system calls.
    fn drains(self) -> bool {
        use Instruction as I;
        match self {
            I::LockedCompareExchange(..) | I::LockedAnd(..) | I::LockedStore(..) => true,
            I::Fence | I::HeavyFence | I::FutexWait(..) | I::Sleep(_) | I::FutexWake(_) => true,
            I::Label(_) | I::Jump(_) | I::JumpIfAny(..) | I::JumpIfDifferent(..) | I::JumpIfAtLeast(..) => false,
            I::Set(..) | I::AddTo(..) | I::And(..) => false,
            I::Load(..) | I::Store(..) | I::Add(..) | I::AddInTwo(..) => false,
        }
    }
}

/// One thread and its store buffer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Thread {
    next: usize,
    registers: [u8; REGISTERS],
    /// Oldest first.
    buffer: Vec<(Address, u8)>,
    /// What the first step of an addition read.
    read: Option<u8>,
    asleep_on: Option<Address>,
    /// Who has not been interrupted yet for our heavy fence; a bit each.
    awaited: Option<u8>,
}

/// The whole machine at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Machine {
    memory: [u8; WORDS],
    threads: Vec<Thread>,
}

/// Something that happens to one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The oldest store of the thread's buffer reaches memory.
    Drain(usize),
    /// The thread is interrupted for the heavy fence of another, which drains its buffer.
    Interrupt(usize, usize),
    /// The thread executes a step of its next instruction.
    Execute(usize),
}

impl Machine {
    /// A machine whose memory is zero and whose threads are all at their first instruction.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        let thread = Thread {
            next: 0,
            registers: [0; REGISTERS],
            buffer: Vec::new(),
            read: None,
            asleep_on: None,
            awaited: None,
        };
        Machine { memory: [0; WORDS], threads: vec![thread; threads] }
    }

    /// Threads that will never run again unless somebody wakes them.
    #[must_use]
    pub fn sleepers(&self) -> usize {
        self.threads.iter().filter(|thread| thread.asleep_on.is_some()).count()
    }

    /// Every step that is possible now, with what it leads to.
    #[must_use]
    pub fn successors(&self, programs: &[Vec<Instruction>]) -> Vec<(Step, Machine)> {
        let mut successors = Vec::new();
        for at in 0..self.threads.len() {
            if !self.threads[at].buffer.is_empty() {
                let mut drained = self.clone();
                drained.drain_one(at);
                successors.push((Step::Drain(at), drained));
            }
            for by in 0..self.threads.len() {
                if let Some(interrupted) = self.interrupted(at, by, programs) {
                    successors.push((Step::Interrupt(at, by), interrupted));
                }
            }
            if let Some(executed) = self.executed(at, programs) {
                successors.push((Step::Execute(at), executed));
            }
        }
        successors
    }

    /// The step in words, with the memory before it.
    #[must_use]
    pub fn describe(&self, step: Step, programs: &[Vec<Instruction>]) -> String {
        let what = match step {
            Step::Drain(at) => format!("thread {at}: a store reaches memory: {:?}", self.threads[at].buffer[0]),
            Step::Interrupt(at, by) => format!("thread {at}: is interrupted for the fence of thread {by}"),
            Step::Execute(at) => format!("thread {at}: {:?}", programs[at][self.threads[at].next]),
        };
        format!("memory {:?}  {what}", self.memory)
    }

    fn drain_one(&mut self, at: usize) {
        let (address, value) = self.threads[at].buffer.remove(0);
        self.memory[address] = value;
    }

    /// After `at` was interrupted for the fence of `by`, if it can be.
    fn interrupted(&self, at: usize, by: usize, programs: &[Vec<Instruction>]) -> Option<Machine> {
        let awaited = self.threads[by].awaited?;
        let thread = &self.threads[at];
        let inside = thread.read.is_some() && matches!(programs[at][thread.next], Instruction::Add(..));
        if awaited & (1 << at) == 0 || inside {
            return None;
        }
        let mut machine = self.clone();
        while !machine.threads[at].buffer.is_empty() {
            machine.drain_one(at);
        }
        machine.threads[by].awaited = Some(awaited & !(1 << at));
        Some(machine)
    }

    /// After `at` executed a step, if it can.
    fn executed(&self, at: usize, programs: &[Vec<Instruction>]) -> Option<Machine> {
        use Instruction as I;

        let program = &programs[at];
        let thread = &self.threads[at];
        let instruction = *program.get(thread.next)?;
        if thread.asleep_on.is_some() || instruction.drains() && !thread.buffer.is_empty() {
            return None;
        }

        let mut machine = self.clone();
        let Machine { memory, threads } = &mut machine;
        let others = ((1 << threads.len()) - 1) & !(1 << at);
        let thread = &mut threads[at];
        thread.next += 1;
        let mut jump = |taken: bool, label: &str| {
            if taken {
                thread.next = position(program, label);
            }
        };
        let r = thread.registers;
        match instruction {
            I::Label(_) | I::Fence => {}
            I::Jump(label) => jump(true, label),
            I::JumpIfAny(register, mask, label) => jump(r[register] & mask != 0, label),
            I::JumpIfDifferent(a, b, label) => jump(r[a] != r[b], label),
            I::JumpIfAtLeast(register, value, label) => jump(r[register] >= value, label),
            I::Set(to, value) => thread.registers[to] = value,
            I::AddTo(to, from, value) => thread.registers[to] = r[from] + value,
            I::And(to, from, mask) => thread.registers[to] = r[from] & mask,
            I::Load(to, address) => thread.registers[to] = thread.load(memory, address),
            I::Store(address, from) => thread.buffer.push((address, r[from])),
            I::Add(address, value, sum) | I::AddInTwo(address, value, sum) => match thread.read.take() {
                None => {
                    thread.read = Some(thread.load(memory, address));
                    thread.next -= 1;
                }
                Some(read) => {
                    thread.registers[sum] = read + value;
                    thread.buffer.push((address, read + value));
                }
            },
            I::LockedCompareExchange(address, old, new, found) => {
                thread.registers[found] = memory[address];
                if memory[address] == r[old] {
                    memory[address] = r[new];
                }
            }
            I::LockedAnd(address, mask) => memory[address] &= mask,
            I::LockedStore(address, value) => memory[address] = value,
            I::HeavyFence => match thread.awaited {
                None => {
                    thread.awaited = Some(others);
                    thread.next -= 1;
                }
                Some(0) => thread.awaited = None,
                Some(_) => return None,
            },
            I::FutexWait(address, expected, mask) => {
                if memory[address] & mask == r[expected] & mask {
                    thread.asleep_on = Some(address);
                }
            }
            I::Sleep(address) => thread.asleep_on = Some(address),
            I::FutexWake(address) => {
                for sleeper in threads.iter_mut().filter(|thread| thread.asleep_on == Some(address)) {
                    sleeper.asleep_on = None;
                }
            }
        }
        Some(machine)
    }
}

impl Thread {
    fn load(&self, memory: &[u8; WORDS], address: Address) -> u8 {
        let own = self.buffer.iter().rev().find(|(at, _)| *at == address);
        own.map_or(memory[address], |(_, value)| *value)
    }
}

fn position(program: &[Instruction], label: &str) -> usize {
    let is_label = |instruction: &Instruction| matches!(instruction, Instruction::Label(name) if *name == label);
    program.iter().position(is_label).unwrap_or_else(|| panic!("no label {label}"))
}
