//! `args`: one unit for each INPUT of the command line.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use crate::record::Record;

/// See the [module](self).
pub(super) struct Args {
    inputs: std::vec::IntoIter<OsString>,
}

impl Args {
    pub(super) fn new(inputs: Vec<OsString>) -> Self {
        Self { inputs: inputs.into_iter() }
    }
}

impl Iterator for Args {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        self.inputs.next().map(|input| Record::argument(input.into_vec()))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.inputs.size_hint()
    }
}
