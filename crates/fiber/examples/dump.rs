//! Starts many fibers and prints the dump, which shows what each of them waits for.
//!
//! ```text
//! cargo run -p millstream-fiber --example dump
//! ```

use std::time::Duration;

use millstream_fiber::sync::{Mutex, channel};
use millstream_fiber::{Builder, Options, Runtime, SpawnError, StartError, Threads, park, sleep};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runtime = start()?;
    crowd(&runtime)?;
    sleep(Duration::from_millis(100));
    println!("{}", runtime.dump());
    let stacks = runtime.stacks();
    println!("deepest stack: {} of {} KiB", stacks.high_water_bytes / 1024, stacks.stack_bytes / 1024);
    // Dropping the runtime cancels the fibers: they unwind where they wait.
    Ok(())
}

fn start() -> Result<Runtime, StartError> {
    Runtime::start(Options::new(Threads::Workers(2)))
}

fn crowd(runtime: &Runtime) -> Result<(), SpawnError> {
    let (orders, inbox) = channel::<u32>(8);
    for _ in 0..1000 {
        let inbox = inbox.clone();
        let _ = Builder::new().name("miller").spawn_on(runtime, move || inbox.iter().count())?;
    }
    let scales = std::sync::Arc::new(Mutex::new(0));
    for _ in 0..20 {
        let scales = std::sync::Arc::clone(&scales);
        let weigh = move || {
            let _held = scales.lock();
            sleep(Duration::from_secs(60));
        };
        let _ = Builder::new().name("weigher").spawn_on(runtime, weigh)?;
    }
    let keep_open = move || {
        park();
        drop(orders);
    };
    let _ = Builder::new().name("owner").spawn_on(runtime, keep_open)?;
    Ok(())
}
