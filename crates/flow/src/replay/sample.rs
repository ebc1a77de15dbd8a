//! A sample of a trace that is too long to be kept: some families, chosen by their numbers.
//!
//! Units that were admitted one after the other stay together, in blocks, so that a sample has the same runs of equal
//! keys as the whole. Each unit takes as long to be pulled as it took, and each has the same needs: the scarcest resource
//! gives as many units a second to the sample as to the whole run, and the sample is over sooner by its share.

use std::collections::HashSet;
use std::io::{BufRead, Seek, SeekFrom};

use super::draft::Draft;
use crate::engine::run::front::mix;
use crate::trace::file::{Header, Measured, TraceError, read_trace};
use crate::trace::model::{Kind, Model};
use crate::trace::run::{Born, Record};

/// A trace with more runs of units in stages than this is sampled, and the sample has about half as many.
pub(super) const WHOLE_VISITS: usize = 2_000_000;

/// The numbers of a block.
const BLOCK: u64 = 64;

/// The choice of a sample.
#[derive(Default)]
struct Sample {
    one_in: u64,
    /// Children that would be chosen if they were none.
    unchosen: HashSet<u64>,
    /// The children of families that are chosen.
    children: HashSet<u64>,
}

impl Sample {
    fn draws(&self, id: u64) -> bool {
        mix(id / BLOCK).is_multiple_of(self.one_in)
    }

    fn has(&self, id: u64) -> bool {
        self.draws(id) && !self.unchosen.contains(&id) || self.children.contains(&id)
    }
}

/// Reads a trace, and a sample of it if it has more than `most` visits.
pub(super) fn read(mut input: impl BufRead + Seek, most: usize) -> Result<(Header, Measured, Draft), TraceError> {
    let start = input.stream_position()?;
    let mut draft = Some(Draft::of(most));
    let mut visits = 0;
    let (header, measured) = read_trace(&mut input, |header, _, record| {
        if let Record::Run { units, .. } = &record {
            visits += units.len();
        }
        if visits > most {
            draft = None;
        }
        draft.as_mut().map_or(Ok(()), |draft| draft.take(header, record, |_| true))
    })?;
    if let Some(draft) = draft {
        return Ok((header, measured, draft));
    }
    let mut sample = Sample { one_in: visits.div_ceil(most / 2).max(2) as u64, ..Sample::default() };
    if header.model.stages.iter().any(|stage| stage.kind == Kind::Split) {
        choose_children(&mut input, start, &mut sample, &header.model, most)?;
    }
    let mut draft = Draft::of_sample(most);
    input.seek(SeekFrom::Start(start))?;
    read_trace(&mut input, |header, _, record| draft.take(header, record, |id| sample.has(id)))?;
    Ok((header, measured, draft))
}

/// Finds the children of the families that are chosen. Nothing but the choice is kept: the file is read once to learn
/// which of the numbers are those of children, and once for each generation.
fn choose_children(
    input: &mut (impl BufRead + Seek),
    start: u64,
    sample: &mut Sample,
    model: &Model,
    most: usize,
) -> Result<(), TraceError> {
    let mut each_birth = |take: &mut dyn FnMut(&Born)| -> Result<(), TraceError> {
        input.seek(SeekFrom::Start(start))?;
        read_trace(&mut *input, |_, _, record| {
            if let Record::Run { born, .. } = &record {
                born.iter().for_each(&mut *take);
            }
            Ok(())
        })?;
        Ok(())
    };
    let mut unchosen = HashSet::new();
    each_birth(&mut |born| unchosen.extend(born.ids().filter(|&id| sample.draws(id))))?;
    sample.unchosen = unchosen;
    loop {
        let mut found = HashSet::new();
        each_birth(&mut |born| {
            if sample.has(born.parent) && found.len() <= most {
                found.extend(born.ids().filter(|id| !sample.children.contains(id)));
            }
        })?;
        let is_last = found.is_empty() || !nests(model);
        sample.children.extend(found);
        if sample.children.len() > most {
            return Err(TraceError::TooLong { most });
        }
        if is_last {
            return Ok(());
        }
    }
}

/// Whether children may have children.
fn nests(model: &Model) -> bool {
    let is_split = |stage: u16| model.stages[usize::from(stage)].kind == Kind::Split;
    let mut seen = vec![false; model.stages.len()];
    let mut ahead: Vec<u16> = (0..model.stages.len() as u16)
        .filter(|&stage| is_split(stage))
        .flat_map(|stage| model.stages[usize::from(stage)].next.clone())
        .collect();
    while let Some(stage) = ahead.pop() {
        if is_split(stage) {
            return true;
        }
        if !std::mem::replace(&mut seen[usize::from(stage)], true) {
            ahead.extend(&model.stages[usize::from(stage)].next);
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use crate::cx::Cx;
    use crate::flow::Flow;
    use crate::gather::Gather;
    use crate::need::Need;
    use crate::replay::replayed::Trace;
    use crate::replay::what_if::WhatIf;
    use crate::report::Report;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn traced(flow: Flow<u64, u64>, units: u64) -> (Report, Cursor<Vec<u8>>) {
        let kept = Kept::default();
        let recording = flow.record(kept.clone(), "a test".into()).unwrap();
        let report = flow.run(0..units);
        recording.finish(&report).unwrap();
        let bytes = std::mem::take(&mut *kept.0.lock().unwrap());
        (report, Cursor::new(bytes))
    }

    #[test]
    fn a_sample_has_whole_families_of_every_generation() {
        let mut flow = Flow::builder("generations");
        let [open, again, work, sum] = ["open", "again", "work", "sum"].map(|name| flow.inlet::<u64>(name));
        let done = flow.retire();
        flow.split(open, |n: &mut u64, _| Ok((0..*n % 4).map(Ok))).to(again);
        flow.split(again, |n: &mut u64, _| Ok((0..2 + *n % 2).map(Ok))).to(work);
        flow.update(work, |_: &mut u64, _| Ok(())).to(sum);
        let add = |sum: &mut u64, n: &mut u64, _: &mut Cx<'_>| {
            *sum += *n;
            Ok(())
        };
        flow.gather(sum, Gather::fold(|| 0u64, add).by_parent()).to(done);
        let flow = flow.build(open).unwrap();
        let (report, trace) = traced(flow, 20_000);
        let whole = Trace::sample(trace.clone(), usize::MAX).unwrap();
        assert_eq!((whole.weight(), whole.units()), (1.0, 20_000));
        let sample = Trace::sample(trace, whole.visits() / 5).unwrap();
        assert!(sample.visits() <= whole.visits() / 5 && sample.visits() > whole.visits() / 20, "{}", sample.visits());
        let replayed = sample.replay(&WhatIf::default()).unwrap().report;
        assert_eq!((replayed.admitted, replayed.dead_lettered, replayed.left), (sample.units() as u64, 0, 0));
        assert_eq!(sample.weight(), 20_000.0 / sample.units() as f64);
        let (stands_for, retired) = (replayed.retired as f64 * sample.weight(), report.retired as f64);
        assert!((stands_for / retired - 1.0).abs() < 0.1, "{stands_for} for {retired}");
    }

    #[test]
    fn a_sample_has_the_throughput_of_the_whole() {
        let mut flow = Flow::builder("naps");
        let bed = flow.tokens("bed", 2);
        let (nap, done) = (flow.inlet("nap"), flow.retire());
        flow.update(nap, |n: &mut u64, _| {
            std::thread::sleep(Duration::from_micros(20 + *n % 7 * 20));
            Ok(())
        })
        .need(Need::tokens(bed, 1))
        .blocking()
        .to(done);
        let flow = flow.build(nap).unwrap();
        let (_, trace) = traced(flow, 6400);
        let whole = Trace::sample(trace.clone(), usize::MAX).unwrap();
        let sample = Trace::sample(trace, 4000).unwrap();
        for beds in [1, 2, 8] {
            let what_if = WhatIf::default().capacity("bed", beds);
            let expected = whole.replay(&what_if).unwrap().steady_wall.as_secs_f64();
            let found = sample.replay(&what_if).unwrap().steady_wall.as_secs_f64() * sample.weight();
            assert!((found / expected - 1.0).abs() < 0.15, "{beds} beds: {found} for {expected}");
            let (least, _) = sample.at_least(&what_if).unwrap();
            assert!((least.as_secs_f64() / whole.at_least(&what_if).unwrap().0.as_secs_f64() - 1.0).abs() < 0.15);
        }
    }
}
