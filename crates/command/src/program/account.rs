//! The account of a program: its processor time and its waits for a processor. The kernel reports the processor time
//! when the program is reaped, and the waits only before that.

use std::fs;
use std::time::Duration;

use rustix::process::Pid;

/// The processor time of a program, and its waits for a processor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Account {
    /// The processor time of the program and of the children that it waited for.
    pub spent: Duration,
    /// The time during which the program's first thread was ready to run and had no processor.
    pub delayed: Duration,
}

impl Account {
    /// The time during which the first thread of a process was ready to run and had no processor. The process has ended
    /// and is not reaped. Returns zero if the kernel does not report this time.
    pub(super) fn delay_of(process: Pid) -> Duration {
        let schedule = fs::read_to_string(format!("/proc/{}/schedstat", process.as_raw_pid())).unwrap_or_default();
        let delayed = schedule.split_whitespace().nth(1).and_then(|field| field.parse().ok());
        Duration::from_nanos(delayed.unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::Group;

    #[test]
    fn the_processor_time_of_a_program_is_in_its_account() {
        let mut command = std::process::Command::new("sh");
        // A child uses most of the processor time.
        command.args(["-c", "sh -c 'i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done'; true"]);
        let (mut group, _) = Group::spawn(&mut command).unwrap();
        group.keep_account();
        assert!(group.reap().unwrap().success());
        let account = group.account().expect("the kernel reports it");
        assert!(account.spent > Duration::from_millis(2) && account.spent < Duration::from_secs(20), "{account:?}");
    }
}
