//! The fallback that always works: `/proc/stat` counts, for each processor, hundredths of a second of each kind.
//!
//! If a processor's idle time grew between two looks, the processor was idle at a moment between them, and switched
//! away from all earlier threads. If its time in user programs or the kernel grew, a tick was counted there between the
//! looks. A tickless processor (`nohz_full`) is the exception: its time is computed without disturbing it, so there
//! only idle time counts. This fallback is coarse and slow: 10 to 20 ms.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use millstream_fence::barrierd::View;

use crate::processors;
use crate::statement::{Moment, new_moment, state};

/// The period of the looks: the counts grow every 10 ms.
pub(crate) const PERIOD: Duration = Duration::from_millis(5);

/// The counts of a processor, and the moment before they were read.
#[derive(Debug, Clone, Copy)]
struct Look {
    moment: Moment,
    idle: u64,
    busy: u64,
}

/// The file, and the last look at each processor.
#[derive(Debug)]
pub(crate) struct Stat {
    file: File,
    tickless: Vec<bool>,
    looks: Vec<Option<Look>>,
    text: Vec<u8>,
}

impl Stat {
    pub(crate) fn open(cpus: usize) -> io::Result<Stat> {
        let list = std::fs::read_to_string("/sys/devices/system/cpu/nohz_full").unwrap_or_default();
        let mut tickless = vec![false; cpus];
        for cpu in processors::parse(&list).into_iter().filter(|cpu| *cpu < cpus) {
            tickless[cpu] = true;
        }
        // A line for each processor has at most some 120 bytes, and only these first lines matter.
        Ok(Stat { file: File::open("/proc/stat")?, tickless, looks: vec![None; cpus], text: vec![0; (cpus + 1) * 128] })
    }

    /// Forgets earlier looks: an old look must not serve a client that begins to wait.
    pub(crate) fn forget(&mut self) {
        self.looks.fill(None);
    }

    /// Looks, and states the passes that follow from the difference to the last look.
    pub(crate) fn look(&mut self, view: &View) -> io::Result<()> {
        let moment = new_moment(view);
        let length = self.file.read_at(&mut self.text, 0)?;
        for line in self.text[..length].split(|byte| *byte == b'\n') {
            let Some((cpu, idle, busy)) = std::str::from_utf8(line).ok().and_then(counts) else { continue };
            let Some(last) = self.looks.get_mut(cpu) else { continue };
            match *last {
                Some(seen) if idle > seen.idle || (busy > seen.busy && !self.tickless[cpu]) => {
                    state(view, cpu, seen.moment);
                    *last = Some(Look { moment, idle, busy });
                }
                Some(_) => {}
                None => *last = Some(Look { moment, idle, busy }),
            }
        }
        Ok(())
    }
}

/// The processor, its idle time and its busy time, of a line `cpu3 user nice system idle iowait …`.
///
/// Time waiting for a disk is idle time, but the kernel says that it may decrease, so it is left out.
fn counts(line: &str) -> Option<(usize, u64, u64)> {
    let mut words = line.strip_prefix("cpu")?.split(' ');
    let cpu = words.next()?.parse().ok()?;
    let mut next = || words.next()?.parse::<u64>().ok();
    let busy = next()? + next()? + next()?;
    Some((cpu, next()?, busy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_of_single_processors_are_read() {
        assert_eq!(counts("cpu3 1 2 3 40 5 6 7 0 0 0"), Some((3, 40, 6)));
        assert_eq!(counts("cpu  1 2 3 40 5 6 7 0 0 0"), None, "the sum of all");
        assert_eq!(counts("intr 1 2 3"), None);
        assert_eq!(counts("cpu3 1 2 3"), None);
    }
}
