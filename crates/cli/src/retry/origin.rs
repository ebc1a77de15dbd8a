//! The run from which a dead letter comes, in enough detail to repeat the run.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use millstream_command::hex;
use millstream_runner::ops::first_of;
use serde::{Deserialize, Serialize};

use crate::args::{FlowArgs, RunArgs};

/// A flow, with all settings from the command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Origin {
    /// The name of the [first run](first_of) in a chain of retries.
    pub first: String,
    /// The flow file's absolute path.
    pub flow: Bytes,
    /// The flow's text, if it is not in a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flow_text: Option<String>,
    /// The BLAKE3 hash of the flow's text.
    pub flow_blake3: String,
    /// The folder to which the run's paths are relative.
    pub dir: Bytes,
    /// The parameters that were given with `-p`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub params: BTreeMap<String, String>,
    /// The INPUTs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<Bytes>,
    /// `--inflight`, if it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inflight: Option<u64>,
    /// `--memory`, if it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// `--workers`, if it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workers: Option<usize>,
}

/// A path or an argument, which need not be UTF-8. In JSON, it is a string or `{"hex":"…"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Bytes {
    /// A text in UTF-8.
    Text(String),
    /// Any other text.
    Hex {
        /// The text's bytes in hexadecimal.
        hex: String,
    },
}

impl Bytes {
    fn of(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::Text(text.to_owned()),
            Err(_) => Self::Hex { hex: hex::encode(bytes) },
        }
    }

    /// The bytes; `None` if the hexadecimal form is malformed.
    pub(crate) fn to_os(&self) -> Option<OsString> {
        match self {
            Self::Text(text) => Some(text.into()),
            Self::Hex { hex } => hex::decode(hex).ok().map(OsString::from_vec),
        }
    }

    /// The bytes as a path; `None` if the hexadecimal form is malformed.
    pub(crate) fn to_path(&self) -> Option<PathBuf> {
        self.to_os().map(PathBuf::from)
    }
}

impl Origin {
    /// The origin of the letters of a first run with these arguments. `text` is the text of the flow file.
    ///
    /// # Errors
    /// The working folder cannot be determined.
    pub(crate) fn of(run: &str, args: &RunArgs, text: &str) -> io::Result<Self> {
        let bytes = |path: &Path| Bytes::of(path.as_os_str().as_bytes());
        Ok(Self {
            first: first_of(run),
            flow: match &args.flow.text {
                Some(_) => bytes(&args.flow.flow),
                None => bytes(&std::path::absolute(&args.flow.flow)?),
            },
            flow_text: args.flow.text.clone(),
            flow_blake3: hash(text),
            dir: bytes(&std::env::current_dir()?),
            params: args.flow.param.iter().cloned().collect(),
            inputs: args.input.iter().map(|input| Bytes::of(input.as_bytes())).collect(),
            inflight: args.flow.inflight,
            memory: args.flow.memory,
            workers: args.flow.workers,
        })
    }

    /// The flow's arguments on the command line; `None` if a path is damaged.
    pub(crate) fn flow_args(&self) -> Option<FlowArgs> {
        Some(FlowArgs {
            flow: self.flow.to_path()?,
            text: self.flow_text.clone(),
            param: self.params.clone().into_iter().collect(),
            inflight: self.inflight,
            memory: self.memory,
            workers: self.workers,
        })
    }

    /// The origin of the letters of a retry, with the current text of the flow file.
    pub(crate) fn retried(&self, text: &str) -> Self {
        Self { flow_blake3: hash(text), ..self.clone() }
    }

    /// Whether both origins belong to the same run and its retries. The flow file may have changed between the runs.
    pub(crate) fn is_same_run(&self, other: &Self) -> bool {
        let Self { first, flow, flow_text: _, flow_blake3: _, dir, params, inputs, inflight: _, memory: _, workers: _ } =
            self;
        (first, flow, dir, params, inputs) == (&other.first, &other.flow, &other.dir, &other.params, &other.inputs)
    }

    /// Whether `text` is the text of this origin's flow.
    pub(crate) fn is_of(&self, text: &str) -> bool {
        self.flow_blake3 == hash(text)
    }
}

fn hash(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex().to_string()
}
