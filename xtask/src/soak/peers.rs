//! The tests of the benchmarks, with every peer. `cargo xtask test` leaves them out, because the build of the peers takes longer
//! than the tests.

use std::process::Command;

use super::Part;
use crate::step::cargo;

pub(super) fn part() -> Part {
    Part {
        name: "peers".to_owned(),
        group: "peers",
        about: "every workload of the bench program runs to its end with every peer",
        tools: Vec::new(),
        work: Box::new(|bench| {
            let test = ["test", "--package=millstream-benches", "--features=millstream-benches/allocators"];
            bench.run(Command::new(cargo()).args(test))
        }),
    }
}
