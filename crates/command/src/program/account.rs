//! The account of a program: its processor time, as the kernel tells it while the program has ended and is not reaped.

use std::fs;
use std::time::Duration;

use rustix::param::clock_ticks_per_second;
use rustix::process::Pid;

/// The processor time of a program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Account {
    /// The time that the program and the children that it waited for have computed. A program with several threads, and
    /// one with children, is counted in ticks of the kernel, mostly of 10 ms.
    pub spent: Duration,
    /// The time for which its first thread was ready to run and had no processor.
    pub delayed: Duration,
}

impl Account {
    /// The account of a process that has ended; `None` if the kernel tells none.
    pub(super) fn of(process: Pid) -> Option<Self> {
        let number = process.as_raw_pid();
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
        let schedule = fs::read_to_string(format!("/proc/{number}/schedstat")).unwrap_or_default();
        Self::read(&stat, &schedule, clock_ticks_per_second())
    }

    fn read(stat: &str, schedule: &str, ticks_per_second: u64) -> Option<Self> {
        // The name of a program may have spaces and parentheses in it.
        let (_, fields) = stat.rsplit_once(')')?;
        let mut ticks = fields.split_whitespace().skip(11).map_while(|field| field.parse::<u64>().ok());
        let mut time =
            || Some(Duration::from_nanos(ticks.next()?.saturating_mul(1_000_000_000 / ticks_per_second.max(1))));
        let (own, children) = (time()? + time()?, time()? + time()?);
        let mut precise = schedule.split_whitespace().map_while(|field| field.parse().ok().map(Duration::from_nanos));
        let (first_thread, delayed) = (precise.next().unwrap_or_default(), precise.next().unwrap_or_default());
        Some(Account { spent: own.max(first_thread) + children, delayed })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_adds_the_children_to_the_more_precise_time() {
        let stat = "17 (a) b) Z 1 17 17 0 -1 4227084 0 0 0 0 3 1 20 5 20 0 1 0 9 0 0";
        let account = Account::read(stat, "52345678 7000 12\n", 100).unwrap();
        assert_eq!(account.spent, Duration::from_nanos(52_345_678) + Duration::from_millis(250));
        assert_eq!(account.delayed, Duration::from_nanos(7000));
        assert_eq!(Account::read(stat, "", 100).unwrap().spent, Duration::from_millis(40 + 250));
        assert_eq!(Account::read("17 (a", "", 100), None);
        assert_eq!(Account::read("17 (a) Z 1", "", 100), None);
    }

    #[test]
    fn a_program_that_computes_has_it_in_its_account() {
        let mut command = std::process::Command::new("sh");
        command.args(["-c", "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done"]);
        let (mut group, _) = super::super::group::Group::spawn(&mut command).unwrap();
        group.keep_account();
        assert!(group.reap().unwrap().success());
        let account = group.account().expect("the kernel tells it");
        assert!(account.spent > Duration::from_millis(2) && account.spent < Duration::from_secs(20), "{account:?}");
    }
}
