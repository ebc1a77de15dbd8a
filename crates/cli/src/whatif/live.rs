//! Uses a live run in place of a trace: the newest units that the run has finished.

use std::io;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use millstream_command::screen::out::complain;
use millstream_command::screen::text;
use millstream_flow::Trace;

use super::WhatIfError;
use super::reading::NotRead;
use crate::steer::client;
use crate::steer::place::{self, Run};

/// The number of finished units to wait for; a run with many units in flight needs more, see [`ROUNDS`].
const UNITS: u64 = 200;
/// The minimum number of units in a meaningful window.
const FEWEST: u64 = 20;
/// The minimum size of a window that shows a steady pace, as a multiple of the units in flight.
const ROUNDS: u64 = 4;
/// The time for which the command waits until a run has finished these units. It waits longer for a run with fewer than
/// [`FEWEST`].
const PATIENCE: Duration = Duration::from_secs(4);
const LAST_PATIENCE: Duration = Duration::from_secs(10);
/// The pause between two checks.
const PAUSE: Duration = Duration::from_millis(250);

/// Reads the window of the run with this name, number or socket. A run that has recorded no units so far begins to
/// record them, and the command waits for some.
///
/// # Errors
/// There is no such run, or it does not answer, or it has finished too few units.
pub(super) fn read(path: &Path) -> Result<Trace, WhatIfError> {
    let run = place::find(path).map_err(client::SteerError::from)?;
    let began = Instant::now();
    let mut told = false;
    loop {
        let trace = window(&run).map_err(|error| if told { ended(&run, error) } else { error })?;
        let enough = UNITS.max(trace.measured().inflight.saturating_mul(ROUNDS));
        let (is_some, waited) = (usable(&trace) >= FEWEST, began.elapsed());
        // The window may span enough time already: the run may have recorded units since its start, or since an earlier
        // question.
        let spans = waited.max(trace.measured().wall);
        if usable(&trace) >= enough || is_some && spans >= PATIENCE {
            return Ok(trace);
        }
        if waited >= LAST_PATIENCE {
            return Err(too_few(&run, &trace));
        }
        if !std::mem::replace(&mut told, true) {
            let name = text::printable(&run.name);
            complain(format!(
                "{name} now keeps its newest units; this waits up to {} s for some, and {} s if the run is slow",
                PATIENCE.as_secs(),
                LAST_PATIENCE.as_secs()
            ));
        }
        thread::sleep(PAUSE);
    }
}

fn window(run: &Run) -> Result<Trace, WhatIfError> {
    let bytes = client::trace(run)?;
    Trace::read(&*bytes).map_err(|error| WhatIfError::Trace(NotRead::of_run(&run.name, error)))
}

/// The error about a run that existed but cannot be reached any more.
fn ended(run: &Run, error: WhatIfError) -> WhatIfError {
    match error {
        WhatIfError::Run(client::SteerError::Unreachable { .. } | client::SteerError::Ended { .. }) => {
            WhatIfError::RunEnded { run: text::printable(&run.name).into_owned() }
        }
        error => error,
    }
}

fn too_few(run: &Run, trace: &Trace) -> WhatIfError {
    WhatIfError::TooFew {
        run: text::printable(&run.name).into_owned(),
        units: text::counted(usable(trace), "unit"),
        fewest: FEWEST,
    }
}

/// The number of units on which an answer is based: the units that left the flow in the window, or the source's units
/// in the replay if they are fewer. If stages split units, the replay contains only whole families.
pub(crate) fn usable(trace: &Trace) -> u64 {
    trace.departed().min(trace.units() as u64)
}

/// Whether a window is too short for the pace to be steady.
pub(super) fn is_short(trace: &Trace) -> bool {
    trace.is_live() && usable(trace) < trace.measured().inflight.saturating_mul(ROUNDS)
}

/// Whether the path leads to a file that is not a socket; `Ok(false)` if there is none.
pub(super) fn is_file(path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::FileTypeExt as _;
    match std::fs::metadata(path) {
        Ok(found) => Ok(!found.file_type().is_socket()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
