//! Files that runs have written, and that other programs may have changed since: an archive's manifest and objects,
//! dead letters, reports.

use std::path::{Component, Path};
use std::sync::Arc;

use millstream_flow::Failure;
use millstream_instruments::flow_report;
use millstream_runner::file::model::{MachineSpec, MaxBytes, OpSpec, ParseFormat, ZstdMode};
use millstream_runner::file::template::{Field, Fields as _, Template};
use millstream_runner::machine::Machine;
use millstream_runner::ops::{self, Op, Surroundings};
use millstream_runner::printer::Printer;
use millstream_runner::record::Record;
use millstream_runner::source;
use millstream_runner::source::Again;

use super::stage::in_stage;
use super::{MemoryFile, assert_taken};
use crate::retry::letters::{Letters, head};

/// The maximum size of an object's content.
const MAX_BYTES: u64 = 1 << 20;

/// Reads the bytes as each kind of file; returns whether they are a valid file of any of these kinds.
///
/// # Panics
/// A path of a manifest that leads out of its archive, a member whose bytes change when they are written and read
/// again, an object that becomes larger than allowed, or letters that change when they are kept.
pub fn manifest(bytes: &[u8]) -> bool {
    let file = MemoryFile::of(bytes);
    let entries = entries(bytes);
    let object = decompress(bytes);
    let letters = letters(&file);
    let report = [None, Some("get")].map(|stage| flow_report::read(&file.path(), stage).is_ok()).contains(&true);
    entries || object || letters || report
}

/// Reads a manifest as `flows/verify.toml` does; returns whether a line of it is an entry.
fn entries(bytes: &[u8]) -> bool {
    let mut found = false;
    for record in source::lines_of(bytes.to_vec()) {
        let Ok(record) = run(&OpSpec::Parse { format: ParseFormat::Json }, record) else { continue };
        found = true;
        for template in ["archive/objects/{json.blake3[..2]}/{json.blake3}.zst", "archive/{json.path}"] {
            let template = Template::parse(template).expect("it is a template");
            let Ok(path) = ops::rendered_path(&template, &record) else { continue };
            assert!(stays_in(Path::new("archive"), &path), "{} leads out", path.display());
        }
        for member in ["path", "size", "user.id"] {
            if let Some(value) = record.field(&Field::Json(member.to_owned())) {
                comes_back(&value);
            }
        }
    }
    found
}

fn stays_in(folder: &Path, path: &Path) -> bool {
    path.starts_with(folder) && path.components().all(|part| matches!(part, Component::Normal(_)))
}

/// Writes bytes into JSON as `{json:FIELD}` does, and reads them again.
fn comes_back(value: &[u8]) {
    let mut text = b"{\"member\":".to_vec();
    millstream_runner::json_bytes::write_string(value, &mut text);
    text.push(b'}');
    let parsed =
        run(&OpSpec::Parse { format: ParseFormat::Json }, Record::line(text)).expect("what is written is JSON");
    assert_eq!(parsed.json_member("member").as_deref(), Some(value));
}

/// Decompresses an object, in memory and piece by piece; returns whether the bytes are an object.
fn decompress(bytes: &[u8]) -> bool {
    let content = |most_in_memory| {
        let mut record = Record::line(b"object".to_vec());
        record.payload = bytes.to_vec().into();
        let spec = OpSpec::Zstd { mode: ZstdMode::Decompress { max_bytes: Some(MaxBytes::Size(MAX_BYTES)) } };
        let record = run_within(&spec, record, most_in_memory).ok()?;
        assert_taken(&record, MAX_BYTES);
        run(&OpSpec::Sha256, record).ok()?.rare.sha256
    };
    let whole = content(u64::MAX);
    // The streamed content may be missing: a stream refuses frames with large windows. Decompression in memory accepts
    // them, since it needs no memory for a window.
    if let (Some(whole), Some(streamed)) = (whole, content(1)) {
        assert_eq!(whole, streamed, "a stream has the content that the payload in memory has");
    }
    whole.is_some()
}

fn run(spec: &OpSpec, record: Record) -> Result<Record, Failure> {
    run_within(spec, record, u64::MAX)
}

/// Runs the op on a record whose payload is a stream if it is larger than `most_in_memory`.
fn run_within(spec: &OpSpec, mut record: Record, most_in_memory: u64) -> Result<Record, Failure> {
    let around = Surroundings {
        most_in_memory,
        open_lists: 1,
        attempts: 1,
        fibers: false,
        printer: &Arc::new(Printer::new(0)),
        machine: &Arc::new(Machine::new(MachineSpec::default())),
        stand_ins: None,
    };
    let op: Arc<dyn Op> = ops::build(spec, &around).expect("it needs nothing from the system").into();
    in_stage(move |cx| op.run(&mut record, cx).map(|()| record))
}

/// Reads dead letters, keeps all of them as an interrupted retry does, and reads the kept letters; returns whether
/// there were any.
fn letters(file: &MemoryFile) -> bool {
    let Ok(Some(letters)) = Letters::open(&file.path()) else { return false };
    let _ = (letters.origin().flow_args(), letters.origin().dir.to_path());
    let units = units(&letters);
    assert_eq!(units.len(), letters.units());
    let rest: Vec<Vec<u8>> = letters.rest(false).expect("the file can be read").collect();
    assert_eq!(rest.len(), letters.units() + letters.faults(), "each letter is kept");
    assert_eq!(letters.rest(true).expect("the file can be read").count(), 0, "it was read");
    let head = head("retry-1", 7);
    let kept: Vec<u8> = rest.iter().flat_map(|rest| [head.as_bytes(), rest, b"\n"].concat()).collect();
    let kept = MemoryFile::of(&kept);
    let again = Letters::open(&kept.path()).expect("kept letters are letters").expect("there are some");
    assert_eq!(self::units(&again), units);
    assert_eq!(again.origin(), letters.origin());
    true
}

fn units(letters: &Letters) -> Vec<Again> {
    letters.source(false).expect("the file can be read").collect()
}
