//! `print`: writes the payload to standard output, without interruption by other outputs.

use std::sync::Arc;

use millstream_flow::{Cx, Failure};

use super::Op;
use crate::file::template::Template;
use crate::printer::{Output, Printer};
use crate::record::Record;

/// See the [module](self).
pub(super) struct Print {
    /// The text before each line; a tab follows the text.
    tag: Option<Template>,
    ordered: bool,
    printer: Arc<Printer>,
}

impl Print {
    pub(super) fn new(tag: Option<&Template>, ordered: bool, printer: &Arc<Printer>) -> Self {
        Self { tag: tag.cloned(), ordered, printer: Arc::clone(printer) }
    }
}

impl Op for Print {
    fn run(&self, record: &mut Record, cx: &mut Cx<'_>) -> Result<(), Failure> {
        if record.payload.is_empty() {
            return Ok(());
        }
        self.printer.await_room(cx)?;
        let made = record.payload.to_make(cx)?;
        if made > 0 {
            cx.reserve_first(record.held() + made)?;
        }
        let tag = self.tag.as_ref().map(|tag| tag.render(record)).transpose();
        let output = Output {
            stdout: record.payload.in_memory(made, cx)?.into_owned(),
            tag: tag.map_err(|error| Failure::from(error).to_permanent())?,
            ..Output::default()
        };
        self.printer.print(output, record.place.as_deref().filter(|_| self.ordered));
        Ok(())
    }
}
