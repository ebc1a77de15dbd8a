//! The work as a flow: four stages, each of which calls a function that the peers also call.

use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use millstream_flow::{Failure, Flow};

use super::work::{self, Entry, Hashed, Loaded, Packed, Store};

/// Limit on units in flight. The effective limit is the byte budget.
const IN_FLIGHT: u64 = 256;

/// Runs the flow with at most `memory` bytes of payload in flight.
///
/// # Errors
/// Fails when the engine refuses the flow, or with the reason of the first dead letter.
pub fn run(root: &Path, store: &Arc<Store>, memory: u64) -> io::Result<()> {
    let flow = build(Arc::clone(store), memory).map_err(io::Error::other)?;
    let mut walk_error = None;
    let report = flow.run(work::walk(root).map_while(|entry| entry.map_err(|error| walk_error = Some(error)).ok()));
    if let Some(error) = walk_error {
        return Err(error);
    }
    if let Some(letter) = report.dead_letters.first() {
        return Err(io::Error::other(format!("stage {}: {}", letter.stage, letter.message)));
    }
    Ok(())
}

fn build(store: Arc<Store>, memory: u64) -> Result<Flow<Entry, ()>, millstream_flow::BuildError> {
    let mut b = Flow::builder::<()>("archive");
    b.inflight(IN_FLIGHT).memory(memory);
    let read = b.inlet::<Entry>("read");
    let hash = b.inlet::<Loaded>("hash");
    let compress = b.inlet::<Hashed>("compress");
    let keep = b.inlet::<Packed>("keep");
    let done = b.retire();
    b.stage(read, |entry: &mut Entry, _| Ok::<_, Failure>(work::read(take_entry(entry))?))
        .bytes(|entry: &Entry| entry.bytes)
        .to(hash);
    b.stage(hash, |file: &mut Loaded, _| Ok::<_, Failure>(work::hash(take_loaded(file))))
        .bytes(|file: &Loaded| file.data.len() as u64)
        .to(compress);
    b.stage(compress, |file: &mut Hashed, _| {
        let hash = file.hash;
        let file = take_loaded(&mut file.file);
        Ok::<_, Failure>(work::compress(Hashed { file, hash })?)
    })
    .bytes(|file: &Hashed| file.file.data.len() as u64)
    .to(keep);
    b.stage(keep, move |file: &mut Packed, _| Ok::<_, Failure>(store.keep(file)?))
        .bytes(|file: &Packed| file.data.len() as u64)
        .to(done);
    b.build(read)
}

/// Moves the entry out of the unit: no stage here is retried, so no stage needs its input again.
fn take_entry(entry: &mut Entry) -> Entry {
    Entry { path: mem::take(&mut entry.path), bytes: entry.bytes }
}

fn take_loaded(file: &mut Loaded) -> Loaded {
    let path: PathBuf = mem::take(&mut file.path);
    Loaded { path, data: mem::take(&mut file.data) }
}
