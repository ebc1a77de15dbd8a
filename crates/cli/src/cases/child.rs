//! The process of a case, which runs the flow in the case's folder.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use millstream_command::screen::{out, text};
use millstream_flow::{DeadLetter, Outcome as Way};
use millstream_runner::file::model::MachineSpec;
use millstream_runner::file::template::{Fields, Template};
use millstream_runner::file::{self, FlowError, FlowFile};
use millstream_runner::ops::RunEnd;
use millstream_runner::record::Record;
use millstream_runner::source::{self, SourceError};
use millstream_runner::stand_ins::{Server, StandIns, source_outside};
use millstream_runner::wire::wire_case;

use super::args::TrialArgs;
use super::outcome::{Dead, Outcome, Retired};
use super::trial::Papers;
use crate::dead_letters;
use crate::run::{ALL_RETIRED, WRONG, with_places};

/// The maximum time of one wait for the printer. In a case, the printer writes to a file, so the wait always ends.
const LOOK: Duration = Duration::from_secs(1);

/// The reason why the flow of a case was not run.
#[derive(Debug, thiserror::Error)]
enum CaseError {
    #[error(transparent)]
    Flow(#[from] FlowError),
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error("{0}")]
    Outside(String),
    #[error("its trial cannot be read or written: {0}")]
    Papers(#[from] std::io::Error),
}

/// Runs the flow of a case in the current folder, writes the outcome into the trial's folder, and returns the exit
/// status.
pub(crate) fn run_case(args: &TrialArgs) -> ExitCode {
    ExitCode::from(match try_run(args) {
        Ok(()) => ALL_RETIRED,
        Err(CaseError::Flow(error)) => {
            out::complain_page(&error.render());
            WRONG
        }
        Err(error) => {
            out::complain(format!("error: {error}"));
            WRONG
        }
    })
}

fn try_run(args: &TrialArgs) -> Result<(), CaseError> {
    let papers = Papers::at(&args.trial);
    let case = papers.case()?;
    let inputs: Vec<OsString> = case.input.iter().map(OsString::from).collect();
    let mut file = file::load(&args.flow, &case.params)?;
    file.bind_inputs(&inputs)?;
    if let Some(why) = source_outside(&file, &inputs) {
        return Err(CaseError::Outside(why));
    }
    make_plain(&mut file);
    let mut fields: BTreeMap<String, Option<Template>> = BTreeMap::new();
    for (name, _) in case.expect.retired.iter().flatten().flat_map(|unit| &unit.fields) {
        fields.insert(name.clone(), Template::parse(&format!("{{{name}}}")).ok());
    }
    let came = Arc::new(Mutex::new(Outcome::default()));
    let on_dead_letter = {
        let came = Arc::clone(&came);
        move |letter: DeadLetter| {
            if dead_letters::only_lacks(&letter) {
                return;
            }
            let record = letter.input::<Record>();
            record.into_iter().for_each(Record::note_letter);
            let unit = record.map(shown).unwrap_or_default();
            let dead = Dead { unit, stage: letter.stage, message: letter.message };
            came.lock().unwrap_or_else(PoisonError::into_inner).dead.push(dead);
        }
    };
    let on_retire = {
        let came = Arc::clone(&came);
        Box::new(move |record: Record| {
            let value = |(name, template): (&String, &Option<Template>)| {
                Some((name.clone(), value(&record, name, template.as_ref())?))
            };
            let retired = Retired { unit: shown(&record), fields: fields.iter().filter_map(value).collect() };
            came.lock().unwrap_or_else(PoisonError::into_inner).retired.push(retired);
        })
    };
    let server = Server::new(case.answers.clone());
    let stand_ins = StandIns { program: Arc::new(Papers::at(&args.trial).stand_in()), server: server.clone() };
    let wired = wire_case(&file, on_dead_letter, on_retire, &stand_ins)?;
    let source = source::open(&file, &inputs, &Arc::default())?;
    let report = wired.flow.run(with_places(source, Arc::clone(&wired.printer)));
    wired.printer.close();
    while !wired.printer.is_done_within(LOOK) {}
    let end = RunEnd {
        complete: report.outcome == Way::Complete && report.left == 0,
        admitted: report.admitted,
        retired: report.retired,
        dead: report.dead_lettered,
        first: &file.name,
        retries: false,
    };
    let mut came = came.lock().unwrap_or_else(PoisonError::into_inner);
    for (stage, result) in wired.ops.finish(&end) {
        if let Err(failure) = result {
            came.trouble.push(format!("stage {} could not finish: {failure}", text::printable(&stage)));
        }
    }
    (came.answered, came.unanswered) = (server.given(), server.unanswered());
    Ok(papers.write("outcome", &*came)?)
}

/// Removes from a flow everything that makes one run differ from another or makes it wait: concurrent units, needs,
/// batches, bounds of queues, limits on the machine's load and memory, and pauses between attempts.
fn make_plain(file: &mut FlowFile) {
    (file.inflight, file.workers, file.machine) = (1, Some(1), MachineSpec::default());
    for stage in &mut file.stages {
        (stage.needs, stage.batch, stage.queue, stage.workers) = (Vec::new(), None, None, None);
        if let Some(retry) = &mut stage.retry {
            retry.backoff = Duration::ZERO..Duration::ZERO;
        }
    }
}

fn shown(record: &Record) -> String {
    String::from_utf8_lossy(&record.shown_text()).into_owned()
}

/// The value that the unit has for the first field of `template`. Without a template, the payload if `name` is
/// `payload`, and otherwise `None`.
fn value(record: &Record, name: &str, template: Option<&Template>) -> Option<String> {
    let bytes = match template {
        None if name == "payload" => record.payload.as_bytes()?.to_vec(),
        None => return None,
        Some(template) => record.field(template.fields().next()?.0)?.into_owned(),
    };
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
