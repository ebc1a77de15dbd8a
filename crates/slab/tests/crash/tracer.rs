//! A child that is stopped, traced and killed, by ptrace(2).

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use crate::workers::fork;

/// The instruction at which the child is killed, before it runs for the `hit`-th time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    At {
        address: u64,
        hit: usize,
    },
    /// After the last instruction.
    End,
}

/// An instruction of a trace. Equal states mean that a process killed before either instruction leaves the same state
/// behind: in between, the file stayed as it was, and the kernel was not called.
pub(crate) struct Step {
    address: u64,
    state: usize,
}

/// A point of a trace, and the state that a process killed there leaves behind.
#[derive(Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) point: Point,
    state: usize,
}

/// A forked process that has stopped where its scene begins.
pub(crate) struct Child {
    pid: libc::pid_t,
}

/// The maximum number of instructions of a scene. A scene that takes more is considered endless.
const MAX_INSTRUCTIONS: usize = 1_000_000;

impl Child {
    /// Forks. The child calls `play`, which calls its argument where the trace begins, and again where it ends.
    pub(crate) fn start(play: impl FnOnce(&dyn Fn())) -> Child {
        let pid = fork(|| {
            // SAFETY: the request only marks this process as traced by its parent; it touches no memory.
            unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) };
            play(&|| stop());
        });
        let child = Child { pid };
        assert_eq!(child.wait(), libc::SIGSTOP, "the scene did not begin");
        child
    }

    /// Each instruction up to the end of the scene, where the child ends. The child shares only `file`.
    pub(crate) fn trace(self, file: &File) -> Vec<Step> {
        const SYSCALL: [u8; 2] = [0x0f, 0x05];
        let mut trace = Vec::new();
        let (mut state, mut calls) = (0, false);
        let (mut before, mut now) = (Vec::new(), Vec::new());
        self.follow(|registers| {
            now.resize(file.metadata().unwrap().len() as usize, 0);
            file.read_exact_at(&mut now, 0).unwrap();
            if calls || now != before {
                state += 1;
                std::mem::swap(&mut before, &mut now);
            }
            // SAFETY: the child is a fork of this process and has its program at the same address.
            calls = unsafe { (registers.rip as *const [u8; 2]).read_unaligned() } == SYSCALL;
            trace.push(Step { address: registers.rip, state });
        });
        trace
    }

    /// Passes the registers to `see` before each instruction up to the end of the scene, where the child ends.
    pub(crate) fn follow(self, mut see: impl FnMut(&libc::user_regs_struct)) {
        for step in 0.. {
            see(&self.registers());
            assert!(step < MAX_INSTRUCTIONS, "the scene does not end");
            self.request(libc::PTRACE_SINGLESTEP, 0, 0);
            if self.wait() == libc::SIGSTOP {
                break;
            }
        }
        self.kill();
    }

    /// Lets the child run to the point, and kills it there.
    pub(crate) fn kill_at(self, point: Point) {
        self.run_to(point);
        self.kill();
    }

    /// Lets the child run to the point, where it stays stopped; returns whether that is the end.
    pub(crate) fn run_to(&self, point: Point) -> bool {
        const BREAKPOINT: i64 = 0xcc;
        let Point::At { address, hit } = point else {
            self.request(libc::PTRACE_CONT, 0, 0);
            assert_eq!(self.wait(), libc::SIGSTOP, "the scene did not end");
            return true;
        };
        // SAFETY: the request reads a word of the child, not of this process.
        let original = unsafe { libc::ptrace(libc::PTRACE_PEEKTEXT, self.pid, address, 0) };
        let planted = original & !0xff | BREAKPOINT;
        for now in 1..=hit {
            self.request(libc::PTRACE_POKETEXT, address, planted as u64);
            self.request(libc::PTRACE_CONT, 0, 0);
            if self.wait() == libc::SIGSTOP {
                // By chance, the child took a different path from the traced child, and has reached the end.
                return true;
            }
            let mut registers = self.registers();
            registers.rip = address;
            self.set_registers(&registers);
            self.request(libc::PTRACE_POKETEXT, address, original as u64);
            if now < hit {
                self.request(libc::PTRACE_SINGLESTEP, 0, 0);
                if self.wait() == libc::SIGSTOP {
                    return true;
                }
            }
        }
        false
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid as u32
    }

    pub(crate) fn kill(&self) {
        // SAFETY: the process is this one's own child and not reaped yet, so no other process has its PID.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            libc::waitpid(self.pid, std::ptr::null_mut(), 0);
        }
    }

    /// The signal that stopped the child.
    fn wait(&self) -> i32 {
        let mut status = 0;
        // SAFETY: the process is this one's own child, and the status points to a local variable.
        let pid = unsafe { libc::waitpid(self.pid, &raw mut status, 0) };
        assert_eq!(pid, self.pid);
        assert!(libc::WIFSTOPPED(status), "the child ended: {status:#x}");
        libc::WSTOPSIG(status)
    }

    fn request(&self, request: libc::c_uint, address: u64, data: u64) {
        // SAFETY: the requests made here change the child only.
        let outcome = unsafe { libc::ptrace(request, self.pid, address, data) };
        assert!(outcome >= 0, "ptrace({request}): {}", std::io::Error::last_os_error());
    }

    fn registers(&self) -> libc::user_regs_struct {
        // SAFETY: all fields are plain integers, of which zero is a value.
        let mut registers: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        self.request(libc::PTRACE_GETREGS, 0, &raw mut registers as u64);
        registers
    }

    fn set_registers(&self, registers: &libc::user_regs_struct) {
        self.request(libc::PTRACE_SETREGS, 0, &raw const *registers as u64);
    }
}

#[inline(never)]
fn stop() {
    // SAFETY: the signal stops this process until its parent continues it.
    unsafe { libc::raise(libc::SIGSTOP) };
}

/// Every instruction of a trace, on its first, second and last run.
pub(crate) fn points(trace: &[Step]) -> Vec<Moment> {
    let mut hits: HashMap<u64, usize> = HashMap::new();
    trace.iter().for_each(|step| *hits.entry(step.address).or_default() += 1);
    let mut seen: HashMap<u64, usize> = HashMap::new();
    let mut points = Vec::new();
    for &Step { address, state } in trace {
        let hit = seen.entry(address).and_modify(|hit| *hit += 1).or_insert(1);
        if *hit <= 2 || *hit == hits[&address] {
            points.push(Moment { point: Point::At { address, hit: *hit }, state });
        }
    }
    points
}

/// About `most` of them, evenly spread.
pub(crate) fn spread(points: &[Moment], most: usize) -> Vec<Moment> {
    let part = points.len().div_ceil(most).max(1);
    points.iter().skip(part / 2).step_by(part).copied().collect()
}

/// The first point in each state: a process killed at another one leaves the same state behind.
pub(crate) fn distinct(mut points: Vec<Moment>) -> Vec<Point> {
    points.dedup_by_key(|moment| moment.state);
    points.into_iter().map(|moment| moment.point).collect()
}
