//! The work with common libraries, written as their documentation suggests.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crossbeam_channel::{Receiver, Sender, bounded};
use rayon::iter::{IntoParallelIterator, ParallelBridge, ParallelIterator};

use super::work::{self, Store};
use crate::machine::cores;

/// Archives one file after another on one thread.
///
/// # Errors
/// Returns the first failure of a step.
pub fn sequential(root: &Path, store: &Store) -> io::Result<()> {
    for entry in work::walk(root) {
        work::archive_one(entry?, store)?;
    }
    Ok(())
}

/// Uses rayon, with files directly from the walk.
///
/// # Errors
/// Returns the first failure of a step.
pub fn rayon_bridge(root: &Path, store: &Store) -> io::Result<()> {
    work::walk(root).par_bridge().try_for_each(|entry| work::archive_one(entry?, store))
}

/// Uses rayon over a complete list of files: the walk does not overlap the work, but the list splits better.
///
/// # Errors
/// Returns the first failure of a step.
pub fn rayon_collected(root: &Path, store: &Store) -> io::Result<()> {
    let entries: Vec<work::Entry> = work::walk(root).collect::<io::Result<_>>()?;
    entries.into_par_iter().try_for_each(|entry| work::archive_one(entry, store))
}

/// Capacity of the channel between two stages of [`threads`].
const CHANNEL_CAPACITY: usize = 64;

/// Uses one thread per stage with bounded channels between them; the walk runs on the calling thread.
///
/// # Errors
/// Returns the first failure of a step.
pub fn threads(root: &Path, store: &Store) -> io::Result<()> {
    std::thread::scope(|scope| {
        let (found, entries) = bounded(CHANNEL_CAPACITY);
        let (to_hash, loaded) = bounded(CHANNEL_CAPACITY);
        let (to_pack, hashed) = bounded(CHANNEL_CAPACITY);
        let (to_keep, packed) = bounded(CHANNEL_CAPACITY);
        let stages = [
            scope.spawn(move || stage(&entries, &to_hash, work::read)),
            scope.spawn(move || stage(&loaded, &to_pack, |file| Ok(work::hash(file)))),
            scope.spawn(move || stage(&hashed, &to_keep, work::compress)),
            scope.spawn(move || packed.iter().try_for_each(|file| store.keep(&file))),
        ];
        for entry in work::walk(root) {
            if found.send(entry?).is_err() {
                break; // The reading stage has failed, and its result says why.
            }
        }
        drop(found);
        stages.into_iter().try_for_each(|stage| stage.join().expect("a stage panicked"))
    })
}

fn stage<A, B>(input: &Receiver<A>, output: &Sender<B>, step: impl Fn(A) -> io::Result<B>) -> io::Result<()> {
    for unit in input {
        if output.send(step(unit)?).is_err() {
            break; // The next stage has failed, and its result says why.
        }
    }
    Ok(())
}

/// Uses tokio with one blocking task per file; a semaphore bounds the number of tasks.
///
/// # Errors
/// Returns the first failure of a step.
pub fn tokio(root: &Path, store: &Arc<Store>) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().build()?;
    runtime.block_on(async {
        let permits = Arc::new(tokio::sync::Semaphore::new(2 * cores()));
        let mut tasks = tokio::task::JoinSet::new();
        for entry in work::walk(root) {
            let entry = entry?;
            let permit = Arc::clone(&permits).acquire_owned().await.map_err(io::Error::other)?;
            let store = Arc::clone(store);
            tasks.spawn_blocking(move || {
                let outcome = work::archive_one(entry, &store);
                drop(permit);
                outcome
            });
            while let Some(done) = tasks.try_join_next() {
                done.map_err(io::Error::other)??;
            }
        }
        while let Some(done) = tasks.join_next().await {
            done.map_err(io::Error::other)??;
        }
        Ok(())
    })
}
