//! The fallback that always works: `/proc/stat` shows how many hundredths of a second each processor has spent idle, in user
//! programs, and in the kernel.
//!
//! The daemon reads the file periodically. If a processor's idle time has grown between two readings, the processor was idle in
//! between, and had switched away from all earlier threads. If its time in user programs or in the kernel has grown, a tick was
//! counted there in between. A tickless processor (`nohz_full`) is an exception: its times are computed without disturbing it,
//! so only a growing idle time proves that it has passed. This fallback is slow: it takes 10 to 20 ms.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use millstream_fence::barrierd::View;

use crate::processors;
use crate::statement::{Moment, new_moment, state};

/// The time between two readings. The counts grow every 10 ms.
pub(crate) const PERIOD: Duration = Duration::from_millis(5);

/// The counts of a processor, and a moment before they were read.
#[derive(Debug, Clone, Copy)]
struct Look {
    moment: Moment,
    idle: u64,
    busy: u64,
}

/// The open file, and the latest reading of each processor's counts.
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
        // The lines of the processors come first, and only they matter. Each has at most about 120 bytes.
        Ok(Stat { file: File::open("/proc/stat")?, tickless, looks: vec![None; cpus], text: vec![0; (cpus + 1) * 128] })
    }

    /// Discards the earlier readings. This is called when the fallback begins to help. Otherwise its first reading would be
    /// compared with an old one, and could only show that a processor has passed since the old reading, perhaps before the
    /// client's request.
    pub(crate) fn forget(&mut self) {
        self.looks.fill(None);
    }

    /// Reads the file. If the difference from the last reading shows that a processor has passed, states this on the page.
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

/// Returns the processor, its idle time and its busy time from a line `cpu3 user nice system idle iowait …`.
///
/// The time spent waiting for a disk is idle time as well, but according to the kernel's documentation it may decrease, so it is
/// left out.
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
