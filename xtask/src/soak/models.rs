//! Loom models at their full depth: `cargo xtask test` explores the largest models with one event or one preemption
//! fewer.

use std::process::Command;

use super::Part;
use crate::models::{FLAGS, LOOM_PACKAGES, TEST};
use crate::step::cargo;

pub(super) fn part() -> Part {
    Part {
        name: "models".to_owned(),
        group: "models",
        about: "loom explores the models at their whole depth",
        tools: Vec::new(),
        work: Box::new(|bench| {
            let mut test = Command::new(cargo());
            test.args(TEST).arg("--lib");
            for models in LOOM_PACKAGES {
                test.arg(format!("--package={}", models.package));
                test.args(models.tests.iter().map(|test| format!("--test={test}")));
            }
            // Runs one model at a time, because models interrupt each other's cores whenever they unmap a stack.
            bench.run(test.env("RUSTFLAGS", FLAGS).env("RUST_TEST_THREADS", "1").env("MILLSTREAM_STRESS", "2"))
        }),
    }
}
