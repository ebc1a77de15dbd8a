//! A real job: walk a tree and read, hash, compress and store every file once.
//!
//! All competitors call the functions of [`work`]. They differ only in which thread calls each function, and when. The
//! measured time is from the first call of the walk until the manifest is written out. The page cache is warm. Every
//! run stores into a fresh folder, whose removal is not timed.

pub mod ours;
pub mod peers;
pub mod work;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use crate::args::Args;
use crate::child;
use crate::compare::{Competitor, Role, alternate};
use crate::error::Error;
use crate::table;
use crate::tree::{self, Shape};
use work::{Contents, Store};

const MIB: u64 = 1 << 20;

/// A competitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The engine, with at most this many MiB of payload in flight.
    Ours {
        budget_mib: u64,
    },
    RayonBridge,
    RayonCollected,
    Threads,
    Tokio,
    Sequential,
}

/// The budgets that the memory table checks.
const BUDGETS_MIB: [u64; 3] = [32, 128, 512];
/// The budget of the run that is timed against the peers.
const TIMED_BUDGET_MIB: u64 = 128;
const PEERS: [Kind; 5] = [Kind::RayonBridge, Kind::RayonCollected, Kind::Threads, Kind::Tokio, Kind::Sequential];

impl Kind {
    /// Every competitor whose memory is measured.
    fn all() -> impl Iterator<Item = Self> {
        BUDGETS_MIB.into_iter().map(|budget_mib| Self::Ours { budget_mib }).chain(PEERS)
    }

    fn name(self) -> String {
        match self {
            Self::Ours { budget_mib } => format!("millstream {budget_mib} MiB"),
            Self::RayonBridge => "rayon par_bridge".to_owned(),
            Self::RayonCollected => "rayon par_iter".to_owned(),
            Self::Threads => "crossbeam threads".to_owned(),
            Self::Tokio => "tokio spawn_blocking".to_owned(),
            Self::Sequential => "sequential".to_owned(),
        }
    }

    fn role(self) -> Role {
        match self {
            Self::Ours { .. } => Role::Ours,
            _ => Role::Peer,
        }
    }

    /// Archives the tree `root` into the new folder `out`, and returns the time in seconds.
    fn run(self, root: &Path, out: &Path) -> Result<f64, Error> {
        let began = Instant::now();
        let store = Arc::new(Store::create(out).map_err(Error::at(out))?);
        match self {
            Self::Ours { budget_mib } => ours::run(root, &store, budget_mib * MIB),
            Self::RayonBridge => peers::rayon_bridge(root, &store),
            Self::RayonCollected => peers::rayon_collected(root, &store),
            Self::Threads => peers::threads(root, &store),
            Self::Tokio => peers::tokio(root, &store),
            Self::Sequential => peers::sequential(root, &store),
        }
        .and_then(|()| store.finish())
        .map_err(|error| Error::new(error.to_string()))?;
        Ok(began.elapsed().as_secs_f64())
    }
}

/// Runs the job with every competitor and prints times and peak memory.
///
/// # Errors
/// Fails when the tree cannot be made or read, or when a competitor's store differs from the loop's.
pub fn run(args: &Args) -> Result<(), Error> {
    println!("## archive: walk, read, BLAKE3, zstd -3, content-addressed store\n");
    let scratch = scratch(args)?;
    let generated = scratch.path().join("tree");
    let root = match &args.files {
        Some(root) => root.as_path(),
        None => {
            generate(&generated, args.quick)?;
            &generated
        }
    };
    let (files, bytes) = tree::warm(root)?;
    println!("{files} files, {:.0} MB, from {}.\n", bytes as f64 / 1e6, root.display());

    let out = scratch.path().join("out");
    let expected = expected_contents(root, &out, files)?;
    let timed = [Kind::Ours { budget_mib: TIMED_BUDGET_MIB }].into_iter().chain(PEERS);
    let competitors = timed.map(|kind| {
        let (root, out) = (&root, &out);
        Competitor::new(kind.name(), kind.role(), move || {
            let seconds = kind.run(root, out)?;
            check_and_remove(out, expected)?;
            Ok(seconds)
        })
    });
    // There is no warm-up round: the loop has already run to determine the expected store.
    let comparison = alternate("s", 0, args.rounds, competitors.collect())?;
    println!("{}\n", comparison.render());
    memory(root, scratch.path(), &out, expected)
}

/// Runs the competitor called `name` alone in this process and prints the line that [`child`] parses.
///
/// # Errors
/// Fails when no competitor has that name, or when its run fails.
pub fn run_one(args: &Args, name: &str) -> Result<(), Error> {
    let (Some(root), Some(scratch)) = (&args.files, &args.scratch) else {
        return Err(Error::new("--one needs --files and --scratch"));
    };
    let kind = Kind::all().find(|kind| kind.name() == name);
    let kind = kind.ok_or_else(|| Error::new(format!("no archive competitor is called `{name}`")))?;
    let seconds = kind.run(root, &scratch.join("out"))?;
    child::print(seconds);
    Ok(())
}

/// Runs every competitor in its own process and prints the peak memory of each.
fn memory(root: &Path, scratch: &Path, out: &Path, expected: Contents) -> Result<(), Error> {
    let mut rows = Vec::new();
    for kind in Kind::all() {
        let measured = child::measure(&kind.name(), root, scratch)?;
        check_and_remove(out, expected)?;
        let limit = match kind {
            Kind::Ours { budget_mib } => (budget_mib + 64).to_string(),
            _ => String::new(),
        };
        let rss = measured.peak_rss_kib.map_or("unknown".to_owned(), |kib| format!("{:.1}", kib as f64 / 1024.0));
        rows.push([kind.name(), rss, limit, format!("{:.2}", measured.seconds)]);
    }
    println!("{}\n", table::render(["alone in its process", "peak RSS, MiB", "limit, MiB", "s"], rows));
    Ok(())
}

/// A fresh folder for trees and archives, removed when the value is dropped.
fn scratch(args: &Args) -> Result<tempfile::TempDir, Error> {
    let parent = args.scratch.clone().unwrap_or_else(std::env::temp_dir);
    tempfile::Builder::new().prefix("millstream-bench-").tempdir_in(&parent).map_err(Error::at(&parent))
}

fn generate(root: &Path, quick: bool) -> Result<(), Error> {
    let shape = if quick { Shape::QUICK } else { Shape::FULL };
    fs::create_dir(root).map_err(Error::at(root))?;
    tree::generate(root, shape)?;
    // Otherwise unwritten pages would reach the disk during the first rounds.
    rustix::fs::sync();
    Ok(())
}

/// Runs the loop and returns the contents of its store, which every other competitor has to match.
fn expected_contents(root: &Path, out: &Path, files: u64) -> Result<Contents, Error> {
    Kind::Sequential.run(root, out)?;
    let contents = Contents::of(out).map_err(Error::at(out))?;
    fs::remove_dir_all(out).map_err(Error::at(out))?;
    if contents.files != files {
        return Err(Error::new(format!(
            "the tree changed while it was measured: the loop archived {} of {files} files",
            contents.files
        )));
    }
    Ok(contents)
}

fn check_and_remove(out: &Path, expected: Contents) -> Result<(), Error> {
    let contents = Contents::of(out).map_err(Error::at(out))?;
    fs::remove_dir_all(out).map_err(Error::at(out))?;
    if contents == expected {
        Ok(())
    } else {
        Err(Error::new(format!("the store should hold {expected:?} but holds {contents:?}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_competitor_stores_every_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("tree");
        fs::create_dir(&root).unwrap();
        tree::generate(&root, Shape { files: 200, bytes: 1_000_000, seed: 4 }).unwrap();
        let out = folder.path().join("out");
        for kind in Kind::all() {
            kind.run(&root, &out).unwrap();
            let manifest = fs::read_to_string(out.join("manifest.jsonl")).unwrap();
            let mut hashes = std::collections::HashSet::new();
            for line in manifest.lines() {
                let line: serde_json::Value = serde_json::from_str(line).unwrap();
                let original = fs::read(line["path"].as_str().unwrap()).unwrap();
                let hex = line["blake3"].as_str().unwrap();
                let object = fs::read(out.join(format!("objects/{}/{hex}.zst", &hex[..2]))).unwrap();
                assert_eq!(zstd::decode_all(object.as_slice()).unwrap(), original, "{}", kind.name());
                assert_eq!(line["size"], original.len(), "{}", kind.name());
                hashes.insert(hex.to_owned());
            }
            let contents = Contents::of(&out).unwrap();
            assert_eq!(contents.files, 200, "{}", kind.name());
            assert_eq!(contents.objects, hashes.len() as u64, "{}", kind.name());
            assert!(contents.objects < 200, "equal files are stored once");
            fs::remove_dir_all(&out).unwrap();
        }
    }

    #[test]
    fn a_missing_file_is_detected() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("tree");
        fs::create_dir(&root).unwrap();
        tree::generate(&root, Shape { files: 10, bytes: 10_000, seed: 4 }).unwrap();
        let out = folder.path().join("out");
        let expected = expected_contents(&root, &out, 10).unwrap();
        fs::remove_file(root.join("package-0000/src/part_03.rs")).unwrap();
        Kind::Sequential.run(&root, &out).unwrap();
        let error = check_and_remove(&out, expected).unwrap_err().to_string();
        assert!(error.contains("files: 10") && error.contains("files: 9"), "{error}");
    }

    #[test]
    fn names_are_unique_because_a_child_is_chosen_by_name() {
        let names: std::collections::HashSet<String> = Kind::all().map(Kind::name).collect();
        assert_eq!(names.len(), Kind::all().count());
    }
}
