//! The identity of a run, which distinguishes the run's report from other reports.

use std::collections::BTreeMap;
use std::env;
use std::path::absolute;
use std::time::SystemTime;

use millstream_runner::file::FlowFile;
use millstream_runner::web_url;
use serde::{Deserialize, Serialize};

use crate::args::RunArgs;

/// The run that a report describes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Identity {
    /// The name for `millstream status`: the flow's name and the process id.
    pub name: String,
    /// The flow file.
    pub flow_file: String,
    /// The folder in which the flow ran.
    pub folder: String,
    /// The flow's parameters, with their values.
    pub params: BTreeMap<String, String>,
    /// The INPUTs of the command line.
    pub inputs: Vec<String>,
    /// The name of the machine.
    pub host: String,
    /// The start of the run in UTC, in the format of RFC 3339.
    pub started: String,
    /// The version of the command.
    pub version: String,
}

impl Identity {
    /// A run of `file` that begins now.
    pub(crate) fn new(name: &str, file: &FlowFile, args: &RunArgs) -> Self {
        // A flow that is not in a file has only a name.
        let absolute = if args.flow.text.is_none() { absolute(&file.path).ok() } else { None };
        let path = absolute.unwrap_or_else(|| file.path.clone());
        Self {
            name: name.to_owned(),
            flow_file: path.to_string_lossy().into_owned(),
            folder: env::current_dir().map_or_else(|_| String::new(), |folder| folder.to_string_lossy().into_owned()),
            params: file.params.iter().map(|(name, value)| (name.clone(), shown(value.as_bytes()))).collect(),
            inputs: args.input.iter().map(|input| shown(input.as_encoded_bytes())).collect(),
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            started: humantime::format_rfc3339_seconds(SystemTime::now()).to_string(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// A text from the command line, without the credentials of a URL.
fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(&web_url::without_credentials(text)).into_owned()
}
