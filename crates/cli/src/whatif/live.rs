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

/// The number of finished units for which the command waits. For a run with many units in flight, it waits for more
/// ([`ROUNDS`]).
const UNITS: u64 = 200;
/// The minimum number of units in a window.
const FEWEST: u64 = 20;
/// The minimum number of units in a window with a steady pace, as a multiple of the units in flight.
const ROUNDS: u64 = 4;
/// How long the command waits for these units. As long as the run has finished fewer than [`FEWEST`] units, the command
/// waits longer.
const PATIENCE: Duration = Duration::from_secs(4);
const LAST_PATIENCE: Duration = Duration::from_secs(10);
/// The pause between two checks.
const PAUSE: Duration = Duration::from_millis(250);

/// Reads a window of the run with this name, process id or socket. If the run has not recorded units so far, it begins
/// now, and the command waits for some units.
///
/// # Errors
/// There is no such run, the run does not answer, or it has finished too few units.
pub(super) fn read(path: &Path) -> Result<Trace, WhatIfError> {
    let run = place::find(path).map_err(client::SteerError::from)?;
    let began = Instant::now();
    let mut told = false;
    loop {
        let trace = window(&run).map_err(|error| if told { ended(&run, error) } else { error })?;
        let enough = UNITS.max(trace.measured().inflight.saturating_mul(ROUNDS));
        let (is_some, waited) = (usable(&trace) >= FEWEST, began.elapsed());
        // The window may already span enough time, because the run may have recorded units since its start or since an
        // earlier request.
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

/// The error for a run that could be reached before and cannot be reached now.
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

/// The number of units on which an answer is based. It is the smaller of two numbers: the units that left the flow in
/// the window, and the units of the source in the replay. If stages split units, a unit of the source is in the replay
/// only together with all its pieces.
pub(crate) fn usable(trace: &Trace) -> u64 {
    trace.departed().min(trace.units() as u64)
}

/// Whether a window is too short to show a steady pace.
pub(super) fn is_short(trace: &Trace) -> bool {
    trace.is_live() && usable(trace) < trace.measured().inflight.saturating_mul(ROUNDS)
}

/// Whether there is a file at the path that is not a socket.
pub(super) fn is_file(path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::FileTypeExt as _;
    match std::fs::metadata(path) {
        Ok(found) => Ok(!found.file_type().is_socket()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}
