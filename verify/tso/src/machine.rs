//! The machine: its threads and the steps they can take.

/// A word of shared memory.
pub type Address = usize;
/// A register of a thread.
pub type Register = usize;

/// The number of words of memory.
pub const WORDS: usize = 3;
/// The number of registers of each thread.
pub const REGISTERS: usize = 3;

/// One instruction. Values are small; nothing wraps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instruction {
    /// Defines a label at the next instruction.
    Label(&'static str),
    /// Jumps to the label.
    Jump(&'static str),
    /// Jumps to the label if the register has any bit of the mask.
    JumpIfAny(Register, u8, &'static str),
    /// Jumps to the label if the registers differ.
    JumpIfDifferent(Register, Register, &'static str),
    /// Jumps to the label if the register is at least this value.
    JumpIfAtLeast(Register, u8, &'static str),
    /// register = value
    Set(Register, u8),
    /// register = register + value
    AddTo(Register, Register, u8),
    /// register = register & mask
    And(Register, Register, u8),
    /// register = memory, or the newest entry for the word in the thread's own buffer.
    Load(Register, Address),
    /// Puts a store into the thread's buffer.
    Store(Address, Register),
    /// memory = memory + value, without a lock prefix; the register gets the sum, too. The instruction reads like a
    /// load and then writes like a store. It takes two steps, but no interrupt comes between them.
    Add(Address, u8, Register),
    /// Like [`Add`](Self::Add), on a machine where an interrupt can come between the two steps.
    AddInTwo(Address, u8, Register),
    /// Compare-and-swap with a lock prefix: if the word equals the first register, it becomes the second; the third
    /// gets the word found.
    LockedCompareExchange(Address, Register, Register, Register),
    /// memory = memory & mask, with a lock prefix.
    LockedAnd(Address, u8),
    /// memory = value, with a lock prefix.
    LockedStore(Address, u8),
    /// Drains the thread's buffer.
    Fence,
    /// The system call that returns after every other thread has been interrupted once or switched out.
    HeavyFence,
    /// Reads the clock: interrupts after this step have a later time. See [`Machine::with_interrupts`].
    ReadClock,
    /// Waits until the word is not zero.
    Await(Address),
    /// Sleeps if the word and the register agree in the bits of the mask.
    FutexWait(Address, Register, u8),
    /// Sleeps regardless of the word's value.
    Sleep(Address),
    /// Wakes all threads that sleep on the word.
    FutexWake(Address),
}

impl Instruction {
    /// Returns whether the instruction waits for an empty buffer: locked instructions, fences and system calls do.
    fn drains(self) -> bool {
        use Instruction as I;
        match self {
            I::LockedCompareExchange(..) | I::LockedAnd(..) | I::LockedStore(..) => true,
            I::Fence | I::HeavyFence | I::FutexWait(..) | I::Sleep(_) | I::FutexWake(_) => true,
            I::Label(_) | I::Jump(_) | I::JumpIfAny(..) | I::JumpIfDifferent(..) | I::JumpIfAtLeast(..) => false,
            I::Set(..) | I::AddTo(..) | I::And(..) | I::ReadClock | I::Await(_) => false,
            I::Load(..) | I::Store(..) | I::Add(..) | I::AddInTwo(..) => false,
        }
    }
}

/// One thread and its store buffer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Thread {
    next: usize,
    registers: [u8; REGISTERS],
    /// The store buffer, oldest entry first.
    buffer: Vec<(Address, u8)>,
    /// The value that the first step of an addition has read.
    read: Option<u8>,
    asleep_on: Option<Address>,
    /// The threads that this thread's heavy fence has yet to interrupt, one bit each.
    awaited: Option<u8>,
    /// The number of spontaneous interrupts that may still come.
    interrupts: u8,
}

/// The way in which an interrupt's time becomes visible to other threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stamp {
    /// By an ordinary store, visible after all earlier stores of the core, as on x86.
    InOrder,
    /// By a store that may become visible before earlier stores, as on machines that do not order stores, if the
    /// handler does not order them either.
    OutOfOrder,
}

/// The spontaneous interrupts, and the word that receives their time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Interrupts {
    stamp: Stamp,
    word: Address,
}

/// The whole machine at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Machine {
    memory: [u8; WORDS],
    threads: Vec<Thread>,
    interrupts: Option<Interrupts>,
    /// Whether a thread has read the clock.
    clock_was_read: bool,
}

/// A step of one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The oldest store of the thread's buffer reaches memory.
    Drain(usize),
    /// The heavy fence of another thread interrupts the thread and drains its buffer.
    Interrupt(usize, usize),
    /// A spontaneous interrupt of the thread stores its time and drains nothing.
    Stamp(usize),
    /// The thread executes a step of its next instruction.
    Execute(usize),
}

/// A memory access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The thread's store reaches the word.
    Written(usize, Address),
    /// The thread reads the word.
    Read(usize, Address),
}

impl Machine {
    /// Returns a machine with zeroed memory and every thread at its first instruction.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        let thread = Thread {
            next: 0,
            registers: [0; REGISTERS],
            buffer: Vec::new(),
            read: None,
            asleep_on: None,
            awaited: None,
            interrupts: 0,
        };
        Machine { memory: [0; WORDS], threads: vec![thread; threads], interrupts: None, clock_was_read: false }
    }

    /// Returns the same machine with up to `most` spontaneous interrupts of `thread`, each between two instructions. An
    /// interrupt stores its time in `word`: 1 if a thread has already executed [`ReadClock`](Instruction::ReadClock),
    /// otherwise 0.
    #[must_use]
    pub fn with_interrupts(mut self, thread: usize, most: u8, word: Address, stamp: Stamp) -> Self {
        self.threads[thread].interrupts = most;
        self.interrupts = Some(Interrupts { stamp, word });
        self
    }

    /// Returns the value of the thread's register.
    #[must_use]
    pub fn register(&self, thread: usize, register: Register) -> u8 {
        self.threads[thread].registers[register]
    }

    /// Returns whether every thread has reached the end of its program, and every store has reached memory.
    #[must_use]
    pub fn has_ended(&self, programs: &[Vec<Instruction>]) -> bool {
        let ended = |(thread, program): (&Thread, &Vec<_>)| thread.next == program.len() && thread.buffer.is_empty();
        self.threads.iter().zip(programs).all(ended)
    }

    /// Returns the memory access of the next step; if it is an interrupt that drains several stores, the first access.
    #[must_use]
    pub fn access(&self, step: Step, programs: &[Vec<Instruction>]) -> Option<Access> {
        match step {
            Step::Drain(at) => Some(Access::Written(at, self.threads[at].buffer[0].0)),
            Step::Interrupt(at, _) => self.threads[at].buffer.first().map(|(address, _)| Access::Written(at, *address)),
            Step::Stamp(_) => None,
            Step::Execute(at) => match programs[at][self.threads[at].next] {
                Instruction::Load(_, address) => Some(Access::Read(at, address)),
                Instruction::LockedStore(address, _) => Some(Access::Written(at, address)),
                _ => None,
            },
        }
    }

    /// Returns the number of sleeping threads, which run again only if another thread wakes them.
    #[must_use]
    pub fn sleepers(&self) -> usize {
        self.threads.iter().filter(|thread| thread.asleep_on.is_some()).count()
    }

    /// Returns every step that is possible now, with the machine after it.
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
            if let Some(stamped) = self.stamped(at, programs) {
                successors.push((Step::Stamp(at), stamped));
            }
            if let Some(executed) = self.executed(at, programs) {
                successors.push((Step::Execute(at), executed));
            }
        }
        successors
    }

    /// Describes the step in words, with the memory before it.
    #[must_use]
    pub fn describe(&self, step: Step, programs: &[Vec<Instruction>]) -> String {
        let what = match step {
            Step::Drain(at) => format!("thread {at}: a store reaches memory: {:?}", self.threads[at].buffer[0]),
            Step::Interrupt(at, by) => format!("thread {at}: is interrupted for the fence of thread {by}"),
            Step::Stamp(at) => format!("thread {at}: is interrupted and stores its time"),
            Step::Execute(at) => format!("thread {at}: {:?}", programs[at][self.threads[at].next]),
        };
        format!("memory {:?}  {what}", self.memory)
    }

    fn drain_one(&mut self, at: usize) {
        let (address, value) = self.threads[at].buffer.remove(0);
        self.memory[address] = value;
    }

    /// Returns the machine after the fence of `by` has interrupted `at`, if it can do so now.
    fn interrupted(&self, at: usize, by: usize, programs: &[Vec<Instruction>]) -> Option<Machine> {
        let awaited = self.threads[by].awaited?;
        if awaited & (1 << at) == 0 || self.is_inside_of_an_addition(at, programs) {
            return None;
        }
        let mut machine = self.clone();
        while !machine.threads[at].buffer.is_empty() {
            machine.drain_one(at);
        }
        machine.threads[by].awaited = Some(awaited & !(1 << at));
        Some(machine)
    }

    /// Returns the machine after a spontaneous interrupt of `at`, if one can come now.
    fn stamped(&self, at: usize, programs: &[Vec<Instruction>]) -> Option<Machine> {
        let Interrupts { stamp, word } = self.interrupts?;
        if self.threads[at].interrupts == 0 || self.is_inside_of_an_addition(at, programs) {
            return None;
        }
        let mut machine = self.clone();
        machine.threads[at].interrupts -= 1;
        let time = u8::from(self.clock_was_read);
        match stamp {
            Stamp::InOrder => machine.threads[at].buffer.push((word, time)),
            Stamp::OutOfOrder => machine.memory[word] = time,
        }
        Some(machine)
    }

    fn is_inside_of_an_addition(&self, at: usize, programs: &[Vec<Instruction>]) -> bool {
        let thread = &self.threads[at];
        thread.read.is_some() && matches!(programs[at][thread.next], Instruction::Add(..))
    }

    /// Returns the machine after `at` has executed a step, if it can do so now.
    fn executed(&self, at: usize, programs: &[Vec<Instruction>]) -> Option<Machine> {
        use Instruction as I;

        let program = &programs[at];
        let thread = &self.threads[at];
        let instruction = *program.get(thread.next)?;
        if thread.asleep_on.is_some() || instruction.drains() && !thread.buffer.is_empty() {
            return None;
        }

        let mut machine = self.clone();
        let Machine { memory, threads, clock_was_read, .. } = &mut machine;
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
            I::ReadClock => *clock_was_read = true,
            I::Await(address) => {
                if thread.load(memory, address) == 0 {
                    return None;
                }
            }
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
    program.iter().position(is_label).unwrap_or_else(|| panic!("the program has no label {label}"))
}
