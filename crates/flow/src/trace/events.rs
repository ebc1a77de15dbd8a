//! Writing a trace as events, the timelines of its workers, for trace viewers.

use std::io::{self, BufRead, BufWriter, Write};

use serde_json::json;

use super::file::{TraceError, read_trace};
use super::run::{End, Record};

/// Writes a trace as JSON trace events, which Perfetto and the trace viewers of browsers can open. The viewer shows one
/// row for each worker, with the units it ran, stage by stage.
///
/// The member `otherData` has `millstream_events`, the version of the spans' `args`. The `args` are `unit` (the
/// unit's number) and `end` (how its run in the stage ended); the spans of the source have `units` instead.
///
/// Units that were not timed one by one share the time of their batch evenly. The function keeps one chunk of the trace
/// in memory at a time.
///
/// # Errors
/// Returns errors of reading the trace (see [`TraceError`]) and of writing.
pub fn write_events(input: impl BufRead, out: impl Write) -> Result<(), TraceError> {
    let mut out = BufWriter::new(out);
    // Viewers show `otherData` with the events; it tells which program wrote them.
    out.write_all(b"{\"displayTimeUnit\":\"ms\",\"otherData\":{\"millstream_events\":1},\"traceEvents\":[\n")?;
    let mut first = true;
    let mut named = Vec::new();
    let (header, _) = read_trace(input, |header, worker, record| {
        if !named.contains(&worker) {
            named.push(worker);
            let name = json!({ "ph": "M", "pid": 1, "tid": worker, "name": "thread_name", "args": { "name": format!("worker {worker}") } });
            event(&mut out, &mut first, &name)?;
        }
        match record {
            Record::Pull { began_ns, wall_ns, units, .. } => {
                let args = json!({ "units": units });
                event(&mut out, &mut first, &span("source", worker, began_ns, wall_ns, &args))?;
            }
            Record::Waits(_) => {}
            Record::Run { stage, began_ns, units, .. } => {
                let stage = header.model.stages.get(usize::from(stage)).map_or("?", |stage| &stage.name);
                let mut at_ns = began_ns;
                for unit in units {
                    let args = json!({ "unit": unit.id, "end": word(unit.end) });
                    event(&mut out, &mut first, &span(stage, worker, at_ns, unit.wall_ns, &args))?;
                    at_ns = at_ns.saturating_add(unit.wall_ns);
                }
            }
        }
        Ok(())
    })?;
    let process = json!({ "ph": "M", "pid": 1, "name": "process_name", "args": { "name": header.model.flow } });
    event(&mut out, &mut first, &process)?;
    out.write_all(b"\n]}\n")?;
    out.flush()?;
    Ok(())
}

/// Returns the event for a span of a worker's time, in microseconds.
fn span(name: &str, worker: u64, began_ns: u64, wall_ns: u64, args: &serde_json::Value) -> serde_json::Value {
    let micros = |ns: u64| ns as f64 / 1e3;
    json!({ "ph": "X", "pid": 1, "tid": worker, "name": name, "ts": micros(began_ns), "dur": micros(wall_ns), "args": args })
}

fn event(out: &mut impl Write, first: &mut bool, event: &serde_json::Value) -> io::Result<()> {
    if !std::mem::take(first) {
        out.write_all(b",\n")?;
    }
    serde_json::to_writer(out, event).map_err(io::Error::other)
}

fn word(end: End) -> &'static str {
    match end {
        End::Go(_) => "went on",
        End::Retire => "retired",
        End::Skip => "skipped",
        End::Retry { .. } => "failed, is retried",
        End::Dead => "failed for good",
        End::Requeue { .. } => "requeued for other needs",
        End::AwaitMemory => "waits for memory",
        End::Unfold => "has more children",
        End::Unfolded => "produced its last child",
        End::Hold => "opened a group",
        End::Join => "joined a group",
        End::Left => "was left",
    }
}
