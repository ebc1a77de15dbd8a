//! Heavy fences: their duration on an idle and on a busy machine, and the daemon's cost.
//!
//! In every round, one thread executes each kind of fence once, in a random order, so that a slowdown of the machine
//! affects all kinds.

pub mod cost;
pub mod daemon;
pub mod load;
pub mod method;
pub mod picture;
pub mod sample;
pub mod verdict;

use crate::args::Args;
use crate::error::Error;
use crate::fence::daemon::Daemon;
use crate::fence::load::Load;
use crate::fence::method::Methods;

/// Runs all parts in turn and prints the tables.
///
/// # Errors
/// Fails when the daemon does not start or ends early, or when a picture cannot be written.
pub fn run(args: &Args) -> Result<(), Error> {
    println!("## fence: how long heavy fences take\n");
    let daemon = Daemon::start()?;
    println!("{}\n", daemon.about());
    if let Err(error) = Methods::new(&daemon) {
        println!("Not measured here: {error}\n");
        return Ok(());
    }
    for load in [Load::Idle, Load::Busy] {
        if !load.title().contains(&args.part) {
            continue;
        }
        let samples = {
            let _busy = load.start();
            sample::sample(&Methods::new(&daemon)?, args.fence_samples())?
        };
        println!("### {}: {} samples of each\n", load.title(), args.fence_samples());
        println!("{}\n", verdict::table(&samples));
        for line in verdict::verdicts(&samples, load)? {
            println!("{line}");
        }
        println!();
        crate::picture::save(args.pictures.as_deref(), &format!("fences-{}", load.title()), || {
            picture::picture(&samples, load)
        })?;
    }
    cost::run(args, &daemon)
}
