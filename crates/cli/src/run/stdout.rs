//! Tells whether the stages write to the terminal of the command.

use std::io::{self, IsTerminal};

use millstream_runner::file::FlowFile;
use millstream_runner::file::model::{ExecSpec, ExecStderr, ExecStdout, OpSpec, StageSpec};
use millstream_runner::file::template::Template;

/// The paths that lead to the command's own streams or to its terminal.
const STREAMS: [&[u8]; 8] = [
    b"/dev/stdout",
    b"/dev/stderr",
    b"/dev/tty",
    b"/dev/fd/1",
    b"/dev/fd/2",
    b"/proc/self/fd/1",
    b"/proc/self/fd/2",
    b"/dev/console",
];

/// Whether stages write to the terminal that shows the progress. Their output would mix with the frame that is redrawn
/// there.
#[expect(clippy::disallowed_methods, reason = "nothing is written")]
pub(super) fn is_shared_terminal(file: &FlowFile) -> bool {
    io::stderr().is_terminal()
        && (file.stages.iter().any(writes_to_stderr)
            || io::stdout().is_terminal() && file.stages.iter().any(writes_to_a_stream))
}

fn writes_to_stderr(stage: &StageSpec) -> bool {
    matches!(&stage.op, OpSpec::Exec(ExecSpec { stderr: ExecStderr::Print | ExecStderr::Inherit, .. }))
}

fn writes_to_a_stream(stage: &StageSpec) -> bool {
    let names_stream = |path: &Template| path.constant().is_some_and(|path| STREAMS.contains(&path));
    match &stage.op {
        OpSpec::Exec(ExecSpec { stdout: ExecStdout::Inherit | ExecStdout::Print, .. }) | OpSpec::Print { .. } => true,
        OpSpec::Append { path, .. } => names_stream(path),
        _ => false,
    }
}
