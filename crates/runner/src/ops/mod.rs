//! The work of stages: one file for each op.
//!
//! [`build`] turns an [`OpSpec`] of a flow file into an [`Op`]. All workers of a stage share its op. Each call of an op
//! works on one [`Record`]. A call that fails leaves the record unchanged, so that a retry or a dead letter still has
//! the input. No op creates a file or starts a program before its first unit runs, so `millstream plan` can build ops.

mod append;
mod blake3;
mod check;
pub mod exec;
mod failing;
mod filter;
pub mod gather;
mod gathered;
mod growing;
mod gzip;
#[cfg(feature = "http")]
mod http;
mod limit;
pub mod line_file;
mod moment;
mod number;
mod once;
mod pace;
mod parse;
pub mod patience;
pub mod place;
mod print;
mod read;
mod safe_path;
mod same;
mod set;
mod sha256;
pub mod split;
pub mod stream;
mod tally;
mod trace_context;
pub mod turn;
mod unique;
mod write;
mod zstd;

#[cfg(test)]
pub mod one_stage;

#[cfg(feature = "http")]
pub use self::http::http_over;

use std::sync::Arc;

use millstream_flow::{Cx, Failure};

pub use self::failing::io_failure;
pub use self::filter::is_stale;
pub use self::gathered::{Fate, Gathered, RunEnd, first_of};
#[cfg(feature = "http")]
pub use self::http::Hop;
pub use self::moment::Moment;
pub use self::number::Number;
pub use self::safe_path::rendered_path;
pub use self::write::permissions;
pub use self::zstd::most_growth;
use crate::file::model::OpSpec;
use crate::machine::Machine;
use crate::printer::Printer;
use crate::record::Record;
use crate::stand_ins::{Confined, StandIns};

/// The work of a stage.
pub trait Op: Send + Sync {
    /// Does the stage's work on one unit.
    ///
    /// # Errors
    /// Either the attempt failed and the record is unchanged, or the unit goes [back to the queue](Failure::requeue) and
    /// the record states the unit's new needs.
    fn run(&self, record: &mut Record, cx: &mut Cx<'_>) -> Result<(), Failure>;

    /// Whether the op spends most of its time waiting rather than computing. Its stage then has threads of its own, in
    /// addition to the CPU workers, unless the flow file says otherwise. `has_needs` tells whether the stage's units
    /// need a resource. Such a need bounds the number of units that run at once.
    fn blocking(&self, has_needs: bool) -> bool {
        let _ = has_needs;
        false
    }

    /// Whether it is harmless to run the op a second time on the same unit. The flow file can override this.
    fn idempotent(&self) -> bool {
        false
    }

    /// Opens the payload of a unit and returns an iterator over its pieces. A stage that [splits](OpSpec::Split) calls
    /// this instead of `run`.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    fn open(&self, record: &mut Record, cx: &mut Cx<'_>) -> Result<split::Pieces, Failure> {
        let _ = (record, cx);
        unreachable!("no other op splits")
    }

    /// Called once, after the last unit. Returns the fate of the file that the op has gathered over the run, if there
    /// is such a file.
    ///
    /// # Errors
    /// The file could not be given its name.
    fn finish(&self, end: &RunEnd<'_>) -> Result<Option<Gathered>, Failure> {
        let _ = end;
        Ok(None)
    }
}

/// The reason why a parsed [`OpSpec`] cannot run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct OpError {
    /// The problem.
    pub message: String,
    /// The remedy.
    pub help: String,
}

impl OpError {
    fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self { message: message.into(), help: help.into() }
    }
}

/// The properties of the flow and of the stage that an op depends on.
#[derive(Debug)]
pub struct Surroundings<'a> {
    /// The maximum size of a payload in memory. A larger payload is streamed, if the op can do that.
    pub most_in_memory: u64,
    /// The number of files that an op may keep open, for a path that differs from unit to unit.
    pub open_lists: usize,
    /// The maximum number of attempts for a unit in the stage.
    pub attempts: u32,
    /// Whether the stage's units run on fibers.
    pub fibers: bool,
    /// Prints the outputs of units.
    pub printer: &'a Arc<Printer>,
    /// Decides whether programs may start, from the state of the machine.
    pub machine: &'a Arc<Machine>,
    /// The stand-ins for programs and servers, in a case of `millstream test`.
    pub stand_ins: Option<&'a StandIns>,
}

/// The op that `spec` describes.
///
/// # Errors
/// Mistakes that can be found before any unit runs: a program that is not on the path, an invalid name of a header, or
/// a fresh `append` whose file would differ from unit to unit.
pub fn build(spec: &OpSpec, around: &Surroundings<'_>) -> Result<Box<dyn Op>, OpError> {
    let &Surroundings { most_in_memory, printer, .. } = around;
    let op: Box<dyn Op> = match spec {
        OpSpec::Read { path, max_bytes } => Box::new(read::Read::new(path, *max_bytes, most_in_memory)),
        OpSpec::Write { path, overwrite, skip_existing, mode } => {
            Box::new(write::Write::new(path, *overwrite, *skip_existing, mode.as_ref()))
        }
        OpSpec::Blake3 => Box::new(blake3::Blake3),
        OpSpec::Sha256 => Box::new(sha256::Sha256),
        OpSpec::Zstd { mode } => zstd::build(mode, most_in_memory),
        OpSpec::Gzip { mode } => gzip::build(mode, most_in_memory),
        OpSpec::Exec(spec) => Box::new(exec::Exec::new(spec, around)?),
        #[cfg(feature = "http")]
        OpSpec::Http(spec) => match around.stand_ins {
            Some(stand_ins) => http_over(|config| stand_ins.server.agent(config), spec)?,
            None => Box::new(http::Http::new(spec, around.fibers)?),
        },
        #[cfg(not(feature = "http"))]
        OpSpec::Http(_) => {
            return Err(OpError::new(
                "this millstream was built without `http-get` and `http`",
                "build it with the feature `http`, which is on by default: `cargo install millstream-cli`",
            ));
        }
        OpSpec::Filter { when } => Box::new(filter::Filter::new(when)),
        OpSpec::Unique { by, max_keys } => Box::new(unique::Unique::new(by, *max_keys)),
        OpSpec::Append { path, line, fresh } => Box::new(append::Append::new(path, line, *fresh, around.open_lists)?),
        OpSpec::Print { tag, ordered } => Box::new(print::Print::new(tag.as_ref(), *ordered, printer)),
        OpSpec::Set { payload, fields } => Box::new(set::Set::new(payload.as_ref(), fields)),
        OpSpec::Stream { expression, max_bytes } => Box::new(stream::Stream::new(expression, *max_bytes)),
        OpSpec::Check { field, equals } => Box::new(check::Check::new(*field, equals)),
        OpSpec::Parse { format } => Box::new(parse::Parse::new(format)),
        OpSpec::Split(spec) => return Ok(Box::new(split::Split::new(spec.clone()))),
        OpSpec::Gather(_) => return Ok(Box::new(gather::Gathers)),
    };
    let op = Box::new(once::Once::new(op));
    Ok(if around.stand_ins.is_some() { Box::new(Confined::new(spec, op)) } else { op })
}
