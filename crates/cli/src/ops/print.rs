//! `print`: the payload goes to standard output, whole.

use std::sync::Arc;

use millstream_flow::{Cx, Failure};

use super::{Gathered, Op, RunEnd};
use crate::file::template::Template;
use crate::printer::{Output, Printer};
use crate::record::Record;

/// See the [module](self).
pub(super) struct Print {
    /// Precedes every line, with a tab.
    tag: Option<Template>,
    printer: Arc<Printer>,
}

impl Print {
    pub(super) fn new(tag: Option<&Template>, printer: &Arc<Printer>) -> Self {
        Self { tag: tag.cloned(), printer: Arc::clone(printer) }
    }
}

impl Op for Print {
    fn run(&self, record: &mut Record, cx: &mut Cx<'_>) -> Result<(), Failure> {
        if record.payload.is_empty() {
            return Ok(());
        }
        self.printer.has_room(record.place.as_deref())?;
        let made = record.payload.to_make(cx)?;
        if made > 0 {
            cx.reserve_first(record.held() + made)?;
        }
        let mut output = Output { stdout: record.payload.in_memory(made, cx)?.into_owned(), stderr: Vec::new() };
        if let Some(tag) = &self.tag {
            let tag = tag.render(record).map_err(|error| Failure::from(error).to_permanent())?;
            output = output.tagged(&tag);
        }
        self.printer.print(output, record.place.as_deref());
        Ok(())
    }

    fn finish(&self, end: &RunEnd<'_>) -> Result<Option<Gathered>, Failure> {
        self.printer.finish(end.abandoned).map(|()| None)
    }
}
