//! `millstream slab`: slabs of shared memory, made and looked into.
//!
//! - [`args`]: the command line.

pub mod args;

use std::fmt::Write as _;
use std::io::{self, Write};
use std::process::ExitCode;

use millstream_slab::{Error, Holder, Object, RawSlab, Recovered, Usage};

use self::args::{CheckArgs, CreateArgs, DumpArgs, SlabArgs, SlabCommand, StatArgs};

/// Something is wrong in the slab.
const UNSOUND: u8 = 1;
/// It can't be looked into.
const REFUSED: u8 = 2;

/// `millstream slab`.
pub fn slab(args: &SlabArgs) -> ExitCode {
    let outcome = match &args.command {
        SlabCommand::Create(args) => create(args),
        SlabCommand::Stat(args) => stat(args),
        SlabCommand::Check(args) => check(args),
        SlabCommand::Dump(args) => dump(args),
    };
    ExitCode::from(outcome.unwrap_or_else(|error| {
        // There is nobody to tell if this fails.
        let _ = writeln!(io::stderr(), "error: {error}");
        REFUSED
    }))
}

fn create(args: &CreateArgs) -> Result<u8, Error> {
    let mut options = RawSlab::options(args.object, args.objects).caches(args.caches).tag(args.tag);
    if let Some(capacity) = args.capacity {
        options = options.capacity(capacity);
    }
    if let Some(chain) = args.chain {
        options = options.chain(chain);
    }
    if args.huge_pages {
        options = options.huge_pages();
    }
    if args.reserve {
        options = options.reserve();
    }
    options.create(&args.file).map(|_| 0)
}

fn stat(args: &StatArgs) -> Result<u8, Error> {
    let (slab, recovered) = RawSlab::open_and_report(&args.file)?;
    let text = if args.json { stat_json(&slab, recovered) } else { stat_text(&slab, recovered) };
    print(&text)
}

/// What `stat` tells, each with its name.
fn facts(slab: &RawSlab, recovered: Recovered) -> [(&'static str, u64); 17] {
    let Usage { max_objects, capacity, virgin, free, cached, held, published, orphans, retired, damaged, caches } =
        slab.usage();
    [
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
        ("recovered_caches", recovered.caches),
        ("recovered_objects", recovered.freed),
        ("recovered_orphans", recovered.orphans),
    ]
}

fn stat_text(slab: &RawSlab, recovered: Recovered) -> String {
    let facts = facts(slab, recovered);
    let width = facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    facts.iter().fold(String::new(), |text, (name, value)| text + &format!("{name:width$}  {value}\n"))
}

fn stat_json(slab: &RawSlab, recovered: Recovered) -> String {
    let facts = facts(slab, recovered).map(|(name, value)| (name.to_owned(), serde_json::Value::from(value)));
    format!("{}\n", serde_json::Value::Object(facts.into_iter().collect()))
}

fn check(args: &CheckArgs) -> Result<u8, Error> {
    let slab = RawSlab::open(&args.file)?;
    let report = slab.verify();
    let mut text = report.problems.iter().fold(String::new(), |text, problem| text + problem + "\n");
    if report.is_sound() {
        let Usage { max_objects, .. } = report.usage;
        text = format!("sound: {} of {max_objects} objects are allocated\n", report.usage.allocated());
    }
    print(&text)?;
    Ok(if report.is_sound() { 0 } else { UNSOUND })
}

fn dump(args: &DumpArgs) -> Result<u8, Error> {
    let slab = RawSlab::open(&args.file)?;
    let mut bytes = vec![0; slab.object_bytes() as usize];
    let mut text = String::new();
    for object in slab.live() {
        // One that is private, or freed since it was listed, has no contents for us.
        let contents = slab.read(object.handle, &mut bytes).is_ok().then_some(&*bytes);
        if args.json {
            let _ = writeln!(text, "{}", object_json(object, contents));
        } else {
            let contents = contents.map_or_else(|| "-".to_owned(), hex::encode);
            let Object { handle, holder } = object;
            let line = (handle.index(), handle.generation(), handle_text(object), holder_text(holder));
            let _ = writeln!(text, "{}\t{}\t{}\t{}\t{contents}", line.0, line.1, line.2, line.3);
        }
    }
    print(&text)
}

fn object_json(object: Object, contents: Option<&[u8]>) -> serde_json::Value {
    serde_json::json!({
        "index": object.handle.index(),
        "generation": object.handle.generation(),
        "handle": handle_text(object),
        "holder": holder_text(object.holder),
        "bytes": contents.map(hex::encode),
    })
}

/// The sixteen bytes of the handle.
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

/// Prints to standard output; a reader that has gone away has what it wanted.
fn print(text: &str) -> Result<u8, Error> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(source) if source.kind() != io::ErrorKind::BrokenPipe => {
            Err(Error::System { what: "write to standard output".to_owned(), source })
        }
        _ => Ok(0),
    }
}
