//! Histories of a million operations: seconds and memory.

use std::fs;
use std::time::Instant;

use millstream_history::{Kind, Options, Verdict, check};

use super::generate::{self, Place};
use crate::args::Args;
use crate::error::Error;
use crate::machine::peak_rss_kib;
use crate::table;

const KINDS: [(Kind, usize); 7] = [
    (Kind::Register, 100_000),
    (Kind::Queue, 1_000_000),
    (Kind::Stack, 1_000_000),
    (Kind::PriorityQueue, 1_000_000),
    (Kind::Set, 1_000_000),
    (Kind::Allocator, 1_000_000),
    (Kind::Mutex, 1_000_000),
];
const QUICK_OPERATIONS: usize = 20_000;
const CLIENTS: [u32; 2] = [4, 16];
const SEED: u64 = 7;

/// Decides every history `args.rounds` times and prints the median time, the highest peak memory of the process and
/// the size of the counter-example.
///
/// # Errors
/// Fails when an answer is wrong.
pub fn run(args: &Args) -> Result<(), Error> {
    println!("## history: decided in seconds, with a counter-example where one answer is wrong\n");
    let header = ["", "operations", "clients", "wrong answer", "s", "peak MiB", "rows shown"];
    let mut rows = Vec::new();
    for (kind, operations) in KINDS {
        let operations = if args.quick { QUICK_OPERATIONS } else { operations };
        for clients in CLIENTS {
            for wrong in [None].into_iter().chain(Place::ALL.map(Some)) {
                let Decided { seconds, peak_mib, shown } = decide(args, kind, clients, operations, wrong)?;
                let peak = peak_mib.map_or("unknown".to_owned(), |mib| mib.to_string());
                let wrong = match wrong {
                    None => "none",
                    Some(Place::Start) => "at the start",
                    Some(Place::Middle) => "in the middle",
                    Some(Place::End) => "at the end",
                };
                let (operations, clients) = (operations.to_string(), clients.to_string());
                rows.push([
                    kind.name().to_owned(),
                    operations,
                    clients,
                    wrong.to_owned(),
                    format!("{seconds:.3}"),
                    peak,
                    shown.to_string(),
                ]);
            }
        }
    }
    println!("{}\n", table::render(header, rows));
    Ok(())
}

struct Decided {
    seconds: f64,
    peak_mib: Option<u64>,
    shown: usize,
}

fn decide(args: &Args, kind: Kind, clients: u32, operations: usize, wrong: Option<Place>) -> Result<Decided, Error> {
    let history = match wrong {
        None => generate::valid(kind, clients, operations, SEED),
        Some(place) => generate::planted(kind, clients, operations, place, SEED),
    };
    let model = generate::model(kind);
    let mut seconds = Vec::new();
    let mut shown = 0;
    // The write resets the kernel's peak. If it fails, the peak includes earlier histories.
    let _ = fs::write("/proc/self/clear_refs", "5");
    for _ in 0..args.rounds {
        let began = Instant::now();
        let verdict = check(&history, &model, &Options::default()).map_err(|e| Error::new(e.to_string()))?;
        seconds.push(began.elapsed().as_secs_f64());
        shown = match (&verdict, wrong) {
            (Verdict::Holds(_), None) => 0,
            (Verdict::Fails(example), Some(_)) => example.operations.len(),
            _ => return Err(Error::new(format!("{}, {clients} clients: {verdict:?}", kind.name()))),
        };
    }
    seconds.sort_unstable_by(f64::total_cmp);
    let peak_mib = peak_rss_kib().map(|kib| kib / 1024);
    Ok(Decided { seconds: seconds[seconds.len() / 2], peak_mib, shown })
}
