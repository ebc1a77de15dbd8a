//! The sources of units: one module for each kind of source.
//!
//! [`open`] returns an iterator of [`Record`]s. The flow's workers call the iterator when the flow has room for another
//! unit. A problem that is found before the first unit, such as a missing INPUT, is an error of the command. A later
//! problem, such as a folder that cannot be read, becomes a record with a fault, which is counted
//! and reported like any other failed unit.

mod again;
mod args;
mod blocks;
mod except;
mod grouped;
mod left_out;
pub mod lines;
mod linked;
mod walk;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use self::again::Again;
use self::except::Except;
use self::grouped::Grouped;
pub use self::left_out::LeftOut;
use crate::file::model::{FlowFile, LinesFrom, OpSpec, SourceSpec, ZstdMode};
use crate::file::template::{Field, Template};
use crate::record::Record;

/// The units of a run, in order.
pub type Source = Box<dyn Iterator<Item = Record> + Send>;

/// The reason why a source cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The flow walks or reads the INPUTs of the command line, and the command line has none.
    #[error("the flow's source needs an INPUT, and none was given")]
    NoInput,
    /// A template of the source has a field whose value is not known before the first unit.
    #[error("the source's `{template}` has no value before the first unit")]
    NotConstant {
        /// The template.
        template: String,
    },
    /// `except` leaves out the root of the walk.
    #[error("nothing is left to walk: `except` leaves out {} itself", root.display())]
    AllExcepted {
        /// The folder.
        root: PathBuf,
    },
    /// A file or folder cannot be opened.
    #[error("cannot read {}: {error}{}", path.display(), of_option(path))]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's reason.
        error: io::Error,
    },
}

/// Advice for a missing file whose name is an address: an option with an optional value needs a `=` before the address.
fn of_option(path: &Path) -> String {
    let address = path.to_str().filter(|text| text.parse::<SocketAddr>().is_ok() && !path.exists());
    address.map_or_else(String::new, |address| format!("; an option takes an address after `=`: --page={address}"))
}

/// Opens a flow's source, with the INPUTs of the command line. If the flow has `group`, each unit is a group of items.
/// In `left_out`, a walk counts the entries that do not become units.
///
/// # Errors
/// An INPUT is missing, or the first file or folder of the source cannot be opened.
pub fn open(flow: &FlowFile, inputs: &[OsString], left_out: &Arc<LeftOut>) -> Result<Source, SourceError> {
    let items = open_items(flow, inputs, left_out)?;
    Ok(if flow.group > 1 { Box::new(Grouped::new(items, flow.group)) } else { items })
}

fn open_items(flow: &FlowFile, inputs: &[OsString], left_out: &Arc<LeftOut>) -> Result<Source, SourceError> {
    match &flow.source {
        SourceSpec::Walk { root, except, names, .. } => {
            let options = walk_options(flow);
            let mut excepted = Vec::new();
            for folder in except {
                excepted.extend(paths(folder, inputs)?);
            }
            let mut walks = Vec::new();
            for root in paths(root, inputs)? {
                let unreadable = |error| SourceError::Unreadable { path: root.clone(), error };
                walk::check(&root).map_err(unreadable)?;
                let except = Except::below(&root, &excepted).map_err(unreadable)?;
                if except.is_all() {
                    return Err(SourceError::AllExcepted { root });
                }
                walks.push((root, except.with_names(names.clone())));
            }
            // Each walk is opened when the previous one has ended, because there may be more INPUTs than descriptors.
            let left_out = Arc::clone(left_out);
            Ok(Box::new(
                walks.into_iter().flat_map(move |(root, except)| walk::open(&root, options, except, &left_out)),
            ))
        }
        SourceSpec::Lines { from: LinesFrom::Stdin, null, block } => {
            let stdin = lines::stdin().map_err(|error| SourceError::Unreadable { path: "-".into(), error })?;
            let name = "standard input".to_owned();
            Ok(match block {
                Some(size) => Box::new(blocks::Blocks::new(stdin, name, *null, *size)),
                None => Box::new(lines::Lines::new(stdin, name, *null)),
            })
        }
        SourceSpec::Lines { from: LinesFrom::File(file), null, block } => {
            let mut all = Vec::new();
            for path in paths(file, inputs)? {
                check_file(&path).map_err(|error| SourceError::Unreadable { path: path.clone(), error })?;
                all.push(path);
            }
            let (null, block) = (*null, *block);
            Ok(Box::new(all.into_iter().flat_map(move |path| match block {
                Some(size) => blocks::of_file(&path, null, size),
                None => lines::of_file(&path, null),
            })))
        }
        SourceSpec::Args if inputs.is_empty() => Err(SourceError::NoInput),
        SourceSpec::Args => Ok(Box::new(args::Args::new(inputs.to_vec()))),
    }
}

/// The units of dead letters, in the form in which the flow's source would produce them.
pub fn again(
    flow: &FlowFile,
    inputs: &[OsString],
    units: impl Iterator<Item = Again> + Send + 'static,
    count: usize,
) -> Source {
    let named = match &flow.source {
        SourceSpec::Walk { root, .. } => paths(root, inputs).unwrap_or_default(),
        SourceSpec::Lines { .. } | SourceSpec::Args => Vec::new(),
    };
    let block_ending = match flow.source {
        SourceSpec::Lines { null, block: Some(_), .. } => Some(if null { 0 } else { b'\n' }),
        _ => None,
    };
    let mut walked = walk::Again::new(walk_options(flow), named);
    let records = units.map(move |unit| {
        let mut record = match unit.rel_from {
            None if unit.is_group => match block_ending {
                Some(ending) => Record::block(unit.text, ending),
                None => Record::items_of(unit.text),
            },
            None => Record::line(unit.text),
            Some(rel_from) => walked.file(unit.text, rel_from),
        };
        if unit.after > 0 {
            record.rare.passed = unit.after;
        }
        match unit.wanted.is_empty() {
            true => record.rare.letter = Some(unit.letter),
            false => record.rare.wanted = Some(unit.wanted.into()),
        }
        record
    });
    Box::new(Counted { records, left: count })
}

/// An iterator whose number of records is known.
struct Counted<I> {
    records: I,
    left: usize,
}

impl<I: Iterator<Item = Record>> Iterator for Counted<I> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        let record = self.records.next()?;
        self.left = self.left.saturating_sub(1);
        Some(record)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

/// The units of a `lines` source whose file has these bytes.
pub fn lines_of(bytes: Vec<u8>) -> impl Iterator<Item = Record> {
    lines::Lines::new(io::Cursor::new(bytes), "input".to_owned(), false)
}

fn walk_options(flow: &FlowFile) -> walk::Options {
    let (hidden, ignored, follow) = match flow.source {
        SourceSpec::Walk { hidden, ignored, follow, .. } => (hidden, ignored, follow),
        SourceSpec::Lines { .. } | SourceSpec::Args => (true, true, false),
    };
    walk::Options {
        hidden,
        ignored,
        follow,
        sizes: flow.stages.iter().any(|stage| reads_the_unit(&stage.op)),
        compresses: flow.stages.iter().any(|stage| compresses(&stage.op)),
        most_in_memory: flow.most_in_memory(),
    }
}

/// Whether the op reads the unit's own file into the payload.
fn reads_the_unit(op: &OpSpec) -> bool {
    matches!(op, OpSpec::Read { path, .. } if path.is_only(&Field::Path))
}

/// Whether the op may make a payload larger than the file that was read.
fn compresses(op: &OpSpec) -> bool {
    matches!(op, OpSpec::Zstd { mode: ZstdMode::Compress { .. } })
}

/// The paths of a source: every INPUT if the template is exactly `{input}`, otherwise one path.
fn paths(template: &Template, inputs: &[OsString]) -> Result<Vec<PathBuf>, SourceError> {
    let needs_input = template.fields().any(|(field, _)| *field == Field::Input);
    if needs_input && inputs.is_empty() {
        return Err(SourceError::NoInput);
    }
    if template.is_only(&Field::Input) {
        return Ok(inputs.iter().map(PathBuf::from).collect());
    }
    let mut bound = template.clone();
    bound.bind(&BTreeMap::new(), inputs.first().map(|input| input.as_bytes()));
    match bound.constant() {
        Some(path) => Ok(vec![PathBuf::from(OsStr::from_bytes(path))]),
        None => Err(SourceError::NotConstant { template: template.to_string() }),
    }
}

fn check_file(path: &Path) -> io::Result<()> {
    if path.metadata()?.is_dir() {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "it is a folder, and `lines` reads a file"));
    }
    rustix::fs::access(path, rustix::fs::Access::READ_OK)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::path::PathBuf;

    use super::{SourceError, paths};
    use crate::file::template::Template;

    fn paths_of(template: &str, inputs: &[&str]) -> Result<Vec<PathBuf>, SourceError> {
        let inputs: Vec<OsString> = inputs.iter().map(OsString::from).collect();
        paths(&Template::parse(template).unwrap(), &inputs)
    }

    #[test]
    fn input_alone_stands_for_every_input() {
        assert_eq!(paths_of("{input}", &["a", "b"]).unwrap(), [PathBuf::from("a"), PathBuf::from("b")]);
        assert_eq!(paths_of("{input}/list", &["a", "b"]).unwrap(), [PathBuf::from("a/list")]);
        assert_eq!(paths_of("list", &[]).unwrap(), [PathBuf::from("list")]);
    }

    #[test]
    fn an_address_in_the_place_of_an_input_is_told_where_it_belongs() {
        let unreadable = |path: &str| {
            let error = std::io::Error::from(std::io::ErrorKind::NotFound);
            SourceError::Unreadable { path: path.into(), error }.to_string()
        };
        assert!(
            unreadable("127.0.0.1:8931").ends_with("; an option takes an address after `=`: --page=127.0.0.1:8931")
        );
        assert!(!unreadable("list:1").contains("option"));
    }

    #[test]
    fn a_source_without_what_it_needs_is_an_error() {
        assert!(matches!(paths_of("{input}", &[]), Err(SourceError::NoInput)));
        assert!(matches!(paths_of("{input}/list", &[]), Err(SourceError::NoInput)));
        assert!(matches!(paths_of("{name}", &["a"]), Err(SourceError::NotConstant { .. })));
    }
}
