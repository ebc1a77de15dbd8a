//! The program inside the kernel that writes the times.

mod assembler;
mod call;
mod control;
mod probe;
mod program;
mod ring;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use millstream_fence::barrierd::layout::times_bytes;

pub(crate) use call::BpfError;
pub(crate) use control::{Bell, Control};
use program::Kind;
pub(crate) use ring::Ring;

/// A tracepoint that fires when a processor goes idle, and when it leaves idleness.
const IDLE: &str = "cpu_idle";
/// A tracepoint that fires when a processor switches to another thread.
const SWITCH: &str = "sched_switch";
/// Tracepoints that fire when a processor is interrupted. A machine may lack some of them.
const INTERRUPTS: [&str; 7] = [
    "local_timer_entry",
    "reschedule_entry",
    "call_function_entry",
    "call_function_single_entry",
    "irq_work_entry",
    "ipi_entry",
    "irq_handler_entry",
];
/// Tracepoints that fire inside an interrupt. They are needed only if those of `INTERRUPTS` do not fire often enough.
const IN_INTERRUPTS: [&str; 2] = ["hrtimer_expire_entry", "softirq_entry"];

/// The program, loaded and attached to its tracepoints. It runs until this value is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct Bpf {
    /// The attachments. Closing them detaches the program.
    _links: Vec<OwnedFd>,
    times: OwnedFd,
    /// The daemon's instructions to the program.
    pub(crate) control: Control,
    /// The bell, which rings when the processors that the daemon waits for have passed.
    pub(crate) ring: Ring,
    /// The names of the tracepoints to which the program is attached, as human-readable text.
    pub(crate) about: String,
}

impl Bpf {
    /// Loads the program and attaches it to these tracepoints. If `tracepoints` is empty, a trial chooses those that fire often
    /// enough.
    pub(crate) fn start(cpus: usize, tracepoints: &[String]) -> Result<Bpf, BpfError> {
        let times = call::array(times_bytes(cpus))?;
        call::freeze(times.as_fd())?;
        let control = Control::new(cpus)?;
        let ring = Ring::new()?;
        let load = |kind| {
            use std::os::fd::AsRawFd;
            let maps = program::Maps {
                times: times.as_raw_fd(),
                control: control.as_fd().as_raw_fd(),
                ring: ring.as_fd().as_raw_fd(),
            };
            call::load(&program::program(kind, cpus, &maps))
        };
        let (passes, idles) = (load(Kind::Passes)?, load(Kind::Idles)?);
        let attach = |name: &str| call::attach(if name == IDLE { idles.as_fd() } else { passes.as_fd() }, name);

        let (mut links, about) = if tracepoints.is_empty() {
            let (names, rates) = probe::often_enough(cpus)?;
            (names.into_iter().map(attach).collect::<Result<Vec<_>, _>>()?, rates)
        } else {
            let links = tracepoints.iter().map(|name| attach(name)).collect::<Result<Vec<_>, _>>()?;
            return Ok(Bpf { _links: links, times, control, ring, about: tracepoints.join(", ") });
        };
        let mut about = vec![about];
        // If these tracepoints are missing, the daemon still works, but more slowly.
        for name in [SWITCH, IDLE] {
            match attach(name) {
                Ok(link) => {
                    links.push(link);
                    about.push(name.to_owned());
                }
                Err(error) => about.push(format!("not {error}")),
            }
        }
        Ok(Bpf { _links: links, times, control, ring, about: about.join(", ") })
    }

    /// Returns the map of the times, to which no process can write.
    pub(crate) fn times(&self) -> BorrowedFd<'_> {
        self.times.as_fd()
    }
}
