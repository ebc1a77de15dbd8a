//! `millstream slab`: slabs of shared memory, made and inspected.
//!
//! - [`args`]: the command line.

pub(crate) mod args;

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::thread::sleep;
use std::time::Duration;

use millstream_command::hex;
use millstream_command::screen::{out, shown};
use millstream_slab::{Error, Holder, Inspection, Object, RawSlab, Recovered, Report, Usage};

use self::args::{CheckArgs, CreateArgs, DumpArgs, RecoverArgs, SlabArgs, SlabCommand, StatArgs};

/// Something is wrong in the slab.
const UNSOUND: u8 = 1;
/// The slab can't be made, opened or inspected.
const REFUSED: u8 = 2;

/// `millstream slab`.
pub(crate) fn slab(args: &SlabArgs) -> ExitCode {
    let outcome = match &args.command {
        SlabCommand::Create(args) => create(args),
        SlabCommand::Stat(args) => stat(args),
        SlabCommand::Check(args) => check(args),
        SlabCommand::Dump(args) => dump(args),
        SlabCommand::Recover(args) => recover(args),
    };
    ExitCode::from(outcome.unwrap_or_else(|error| {
        out::complain(format!("error: {error}"));
        REFUSED
    }))
}

fn create(args: &CreateArgs) -> Result<u8, Error> {
    let mut options = RawSlab::options(args.object, args.objects).caches(args.caches).tag(args.tag).mode(args.mode);
    if let Some(capacity) = args.capacity {
        options = options.capacity(capacity);
    }
    if let Some(chain) = args.chain {
        options = options.chain(chain);
    }
    if args.huge_pages {
        options = options.huge_pages();
    }
    if args.owners {
        options = options.owners();
    }
    if args.reserve {
        options = options.reserve();
    }
    options.create(&args.file).map(|_| 0)
}

fn stat(args: &StatArgs) -> Result<u8, Error> {
    let slab = Inspection::of(&args.file)?;
    let Usage {
        max_objects, capacity, virgin, free, cached, held, published, orphans, retired, damaged, caches, ..
    } = slab.usage();
    let facts = [
        ("object_bytes", slab.object_bytes()),
        ("align_bytes", slab.align_bytes()),
        ("tag", slab.tag()),
        ("max_objects", max_objects),
        ("capacity", capacity),
        ("virgin", virgin),
        ("free", free),
        ("cached", cached),
        ("held", held),
        ("published", published),
        ("orphans", orphans),
        ("retired", retired),
        ("damaged", damaged),
        ("caches", caches),
    ];
    let facts = facts.into_iter().map(|(name, value)| (name, Some(value)));
    tell(facts.chain([("living_caches", slab.living_caches())]), args.json)
}

fn recover(args: &RecoverArgs) -> Result<u8, Error> {
    let opened = if args.trust_others {
        let file = File::options().read(true).write(true).open(&args.file);
        let file =
            file.map_err(|source| Error::System { what: format!("open {}", shown::path(&args.file)), source })?;
        RawSlab::open_file_and_report(file)
    } else {
        RawSlab::open_and_report(&args.file)
    };
    let (_, Recovered { caches, freed, orphans, damaged, .. }) = opened?;
    let facts = [
        ("recovered_caches", caches),
        ("recovered_objects", freed),
        ("recovered_orphans", orphans),
        ("damaged_caches", damaged),
    ];
    tell(facts.into_iter().map(|(name, value)| (name, Some(value))), args.json)
}

/// Prints numbers with their names; `None` means that a number is unknown.
fn tell<'a>(facts: impl Iterator<Item = (&'a str, Option<u64>)>, json: bool) -> Result<u8, Error> {
    let facts: Vec<_> = facts.collect();
    if json {
        let facts = facts.into_iter().map(|(name, value)| (name.to_owned(), serde_json::Value::from(value)));
        return print(|out| writeln!(out, "{}", serde_json::Value::Object(facts.collect())));
    }
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    print(|out| {
        facts.iter().try_for_each(|(name, value)| match value {
            Some(value) => writeln!(out, "{name:width$}  {value}"),
            None => writeln!(out, "{name:width$}  unknown: the processes are in another namespace"),
        })
    })
}

fn check(args: &CheckArgs) -> Result<u8, Error> {
    let report = lasting(&args.file)?;
    if report.is_sound() {
        let Usage { max_objects, .. } = report.usage;
        return print(|out| {
            writeln!(out, "sound: {} of {max_objects} objects are allocated", report.usage.allocated())
        });
    }
    print(|out| report.problems.iter().try_for_each(|problem| writeln!(out, "{problem}")))?;
    Ok(UNSOUND)
}

/// Inspects the slab several times, and returns the problems that every inspection finds. While other processes work, a single
/// inspection may find objects that they are moving.
fn lasting(file: &Path) -> Result<Report, Error> {
    const LOOKS: u32 = 5;
    const PAUSE: Duration = Duration::from_millis(20);
    let mut report = Inspection::of(file)?.report();
    for _ in 1..LOOKS {
        if report.is_sound() {
            break;
        }
        sleep(PAUSE);
        let again = Inspection::of(file)?.report();
        report.usage = again.usage;
        report.problems.retain(|problem| again.problems.contains(problem));
    }
    Ok(report)
}

fn dump(args: &DumpArgs) -> Result<u8, Error> {
    let slab = Inspection::of(&args.file)?;
    let mut bytes = vec![0; slab.object_bytes() as usize];
    let is_wanted = |object: &Object| {
        args.owner.is_none_or(|owner| object.owner == owner) && (!args.orphans || object.holder == Holder::Orphan)
    };
    print(|out| {
        for object in slab.live().filter(is_wanted) {
            // An object that is private, or was freed since it was listed, cannot be read.
            let contents = slab.read(object.handle, &mut bytes).is_ok().then_some(&*bytes);
            if args.json {
                writeln!(out, "{}", object_json(object, contents))?;
            } else {
                let contents = contents.map_or_else(|| "-".to_owned(), hex::encode);
                let Object { handle, holder, owner, .. } = object;
                let (index, generation, handle) = (handle.index(), handle.generation(), handle_text(object));
                writeln!(out, "{index}\t{generation}\t{handle}\t{}\t{owner}\t{contents}", holder_text(holder))?;
            }
        }
        Ok(())
    })
}

fn object_json(object: Object, contents: Option<&[u8]>) -> serde_json::Value {
    serde_json::json!({
        "index": object.handle.index(),
        "generation": object.handle.generation(),
        "handle": handle_text(object),
        "holder": holder_text(object.holder),
        "owner": object.owner,
        "bytes": contents.map(hex::encode),
    })
}

/// Returns the sixteen bytes of the handle in hexadecimal.
fn handle_text(object: Object) -> String {
    hex::encode(bytemuck::bytes_of(&object.handle))
}

fn holder_text(holder: Holder) -> String {
    match holder {
        Holder::Published => "published".to_owned(),
        Holder::Orphan => "orphan".to_owned(),
        Holder::Process { pid } => format!("process {pid}"),
    }
}

/// Writes to standard output. It is not an error if the reader has gone away.
fn print(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<u8, Error> {
    match out::print_with(write) {
        Err(source) => Err(Error::System { what: "write to standard output".to_owned(), source }),
        Ok(()) => Ok(0),
    }
}
