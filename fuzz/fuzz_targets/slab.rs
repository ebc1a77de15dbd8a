//! Damaged slab files: an inspection, like that of `millstream slab check`, ends in a report or an error.
//!
//! The fuzzer's bytes are changes to a sound file, three bytes per change: an offset, and the value at this offset. So
//! the fuzzer need not invent a valid header.

#![no_main]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use millstream_slab::{Inspection, Slab};

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    static SOUND: OnceLock<(PathBuf, Vec<u8>)> = OnceLock::new();
    let (path, sound) = SOUND.get_or_init(|| {
        let path = std::env::temp_dir().join(format!("fuzzed-slab-{}", std::process::id()));
        let sound = sound(&path);
        (path, sound)
    });
    let mut file = sound.clone();
    for change in bytes.chunks_exact(3) {
        let offset = usize::from(u16::from_le_bytes([change[0], change[1]]));
        if let Some(byte) = file.get_mut(offset) {
            *byte = change[2];
        }
    }
    fs::write(path, &file).expect("the temporary folder takes a file");
    match Inspection::of(path) {
        Ok(inspection) => inspect(&inspection),
        Err(error) => assert!(!error.to_string().is_empty(), "an error says what is wrong"),
    }
});

/// The bytes of a slab with objects in every state.
fn sound(path: &Path) -> Vec<u8> {
    let slab = Slab::<u64>::options(20).chain(4).caches(3).create(path).expect("the temporary folder takes a slab");
    let cache = slab.cache().expect("the first of three");
    let mut objects: Vec<_> = (0..16).map(|n| cache.alloc(n).expect("there are twenty")).collect();
    for object in objects.drain(..8) {
        object.publish();
    }
    objects.truncate(3);
    let bytes = fs::read(path).expect("the slab is in a file");
    drop(objects);
    drop(cache);
    drop(slab);
    fs::remove_file(path).expect("the file is there");
    bytes
}

/// Queries everything that an inspection offers.
fn inspect(inspection: &Inspection) {
    let report = inspection.report();
    assert!(!format!("{report:?}").is_empty());
    let _ = (inspection.usage(), inspection.living_caches());
    let mut object = vec![0; usize::try_from(inspection.object_bytes()).unwrap_or(0).min(1 << 20)];
    for live in inspection.live() {
        // The object may be gone or have another size, which is an error and not a failure.
        let _ = inspection.read(live.handle, &mut object);
    }
}
