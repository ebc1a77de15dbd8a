//! Selects the jobs of a run, and runs them.

use std::time::Instant;

use crate::workers::{Job, share};

/// Runs all selected jobs.
pub(crate) fn run() {
    // Cargo passes `--list` on behalf of tools that show tests, with `--ignored` for tests that are ignored by default.
    let is_given = |flag: &str| std::env::args().any(|argument| argument == flag);
    if is_given("--list") {
        if !is_given("--ignored") {
            println!("every_instruction: test\nrandom_kills: test");
        }
        return;
    }
    let wanted = std::env::var("MILLSTREAM_CRASH").unwrap_or_default();
    let wants = |name: &str| name.contains(&wanted);
    let began = Instant::now();
    let mut jobs: Vec<Job> = Vec::new();
    #[cfg(target_arch = "x86_64")]
    jobs.extend(crate::instructions::jobs(&wants));
    #[cfg(target_arch = "x86_64")]
    jobs.extend(crate::stops::jobs(&wants));
    #[cfg(target_arch = "x86_64")]
    if wants("power failures") {
        jobs.push(Box::new(crate::power::failures));
    }
    if wants("random") {
        jobs.push(Box::new(crate::random::kills));
    }
    assert!(!jobs.is_empty(), "no scene is called {wanted:?}");
    let killed = share(&jobs);
    println!("{killed} kills in {:.1?}", began.elapsed());
}
