//! The randomised tests, with fresh seeds.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use super::Part;
use crate::members;
use crate::seeds;
use crate::step::cargo;

/// The factor by which a test runs longer than in the test command.
const STRESS: &str = "4";

/// Returns the part that repeats the tests of every package with randomised tests, until the time is over.
pub(super) fn part(root: &Path) -> Result<Part, String> {
    let members = members::all(root)?.into_iter().filter(|member| member.depends_on(seeds::PACKAGE));
    let packages: Vec<String> = members.map(|member| format!("--package={}", member.package)).collect();
    Ok(Part {
        name: "seeds".to_owned(),
        group: "seeds",
        about: "the randomised tests pass with fresh seeds, too",
        tools: Vec::new(),
        work: Box::new(move |bench| {
            let end = Instant::now() + bench.time;
            loop {
                let seed = fresh().to_string();
                bench.say(&format!("   MILLSTREAM_SEED={seed}"));
                let mut test = Command::new(cargo());
                test.arg("test").args(&packages).arg("--tests");
                test.env("MILLSTREAM_SEED", &seed).env("MILLSTREAM_STRESS", STRESS);
                bench.run(&mut test).map_err(|reason| {
                    format!("{reason}; MILLSTREAM_SEED={seed} MILLSTREAM_STRESS={STRESS} repeats it")
                })?;
                if Instant::now() >= end {
                    return Ok(());
                }
            }
        }),
    })
}

/// Returns a random seed that is small enough for tests that count up from their seed.
fn fresh() -> u64 {
    RandomState::new().build_hasher().finish() >> 1
}
