//! The command line.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// Runs Millstream and its peers in turn and prints medians and ratios.
#[derive(Debug, Clone, Parser)]
#[command(name = "millstream-benches")]
pub struct Args {
    /// The workload to measure.
    #[arg(value_enum, default_value_t = Workload::All)]
    pub workload: Workload,

    /// The tree that `archive` stores; by default a tree of 52 000 files (667 MB) is generated.
    #[arg(long, value_name = "DIR")]
    pub files: Option<PathBuf>,

    /// The folder for generated trees and archives [default: the temporary folder]; a folder in memory, such as
    /// /dev/shm, takes the disk out of the figures. Needs 1 GB, which is freed at the end.
    #[arg(long, value_name = "DIR")]
    pub scratch: Option<PathBuf>,

    /// How many rounds to run; every competitor runs once in each.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: u32,

    /// Use tiny sizes: such a run takes seconds and shows that everything works, but its times mean nothing.
    #[arg(long)]
    pub quick: bool,

    /// The `millstream` binary that `exec` and `fiber` run; by default it is built first.
    #[arg(long, value_name = "PATH")]
    pub millstream: Option<PathBuf>,

    /// In `ring`, `fence`, `slab`, `counter`, `lock` and `fiber`, run only the parts whose title contains this text (lower
    /// case).
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub part: String,

    /// How many fences of each kind `fence` times, on an idle and on a busy machine.
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(10..))]
    pub samples: u32,

    /// The folder into which `fence`, `slab`, `counter` and `lock` draw their pictures; by default, they draw none.
    #[arg(long, value_name = "DIR")]
    pub pictures: Option<PathBuf>,

    /// Runs as the daemon that `fence` measures, in this folder.
    #[arg(long, value_name = "DIR", hide = true)]
    pub daemon: Option<PathBuf>,

    /// Runs one archive competitor alone, into the scratch folder, and prints its wall time and peak memory.
    #[arg(long, value_name = "COMPETITOR", hide = true, requires = "files", requires = "scratch")]
    pub one: Option<String>,

    /// Runs as the second process of `slab`: frees the objects of this slab file whose handles arrive on standard
    /// input.
    #[arg(long, value_name = "SLAB", hide = true)]
    pub frees: Option<PathBuf>,

    /// Runs a competitor of `fiber` alone: PEER ROW COUNT WORKERS.
    #[arg(long, value_name = "TASK", hide = true)]
    pub alone: Option<String>,

    /// Accepted because `cargo bench` passes it.
    #[arg(long, hide = true)]
    pub bench: bool,
}

impl Args {
    /// How many fences of each kind to time.
    #[must_use]
    pub fn fence_samples(&self) -> usize {
        if self.quick { 20 } else { self.samples as usize }
    }
}

/// A workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Workload {
    /// Walk, read, BLAKE3, zstd, store: a real job over a real tree.
    Archive,
    /// Four stages that do nothing.
    Noop,
    /// One `/bin/true` process per unit.
    Exec,
    /// The cost of a unit while a million others wait, compared with a thousand.
    Queued,
    /// Increments of event counts and wake-ups.
    Eventcount,
    /// Rings and channels: throughput, latency, CPU time while waiting.
    Ring,
    /// Memory reclamation: readers, writers, a stack and a queue.
    Reclaim,
    /// Heavy fences: how long they take, and what the daemon costs.
    Fence,
    /// The linearizability checker on long histories, and compared with porcupine.
    History,
    /// The shared slab, compared with private heaps and other free lists.
    Slab,
    /// Statistics counters: the cost of an addition, the loss of racy ones, the price of a scan.
    Counter,
    /// Locks: throughput and latency.
    Lock,
    /// Fibers, compared with goroutines, tasks, coroutines and threads: switches, spawns, memory, echo servers.
    Fiber,
    /// Streams, compared with loops, channels and shell commands.
    Stream,
    /// All of the above.
    All,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Args::command().debug_assert();
    }

    #[test]
    fn the_page_of_figures_has_a_section_for_every_workload() {
        let writer = include_str!("../../xtask/src/measured.rs");
        for workload in Workload::value_variants().iter().filter(|workload| **workload != Workload::All) {
            let name = workload.to_possible_value().unwrap().get_name().to_owned();
            assert!(writer.contains(&format!("    \"{name}\",\n")), "{name}");
        }
    }

    #[test]
    fn the_flag_that_cargo_bench_adds_is_accepted() {
        let args = Args::try_parse_from(["x", "noop", "--rounds", "3", "--bench"]).unwrap();
        assert_eq!(args.workload, Workload::Noop);
        assert_eq!(args.rounds, 3);
    }

    #[test]
    fn zero_rounds_are_refused() {
        assert!(Args::try_parse_from(["x", "--rounds", "0"]).is_err());
    }
}
