//! A sample of a trace that is too long to keep: some families, chosen by the numbers of their units.
//!
//! Units that were admitted one after the other are sampled in blocks, so sequences of equal keys are as long in the
//! sample as in the whole. Each unit keeps its pull time and its needs. So the scarcest resource grants as many units a
//! second in the sample as in the whole run, and the sample ends sooner in proportion to its size.

use std::collections::{BTreeMap, HashSet};
use std::io::{BufRead, Seek, SeekFrom};

use super::draft::Draft;
use crate::trace::file::{Header, Measured, TraceError, read_trace};
use crate::trace::model::{Kind, Model};
use crate::trace::run::{Born, Record};
use crate::trace::sampling;

/// A trace with more runs of units in stages than this is sampled. The sample has about half as many.
pub(super) const WHOLE_VISITS: usize = 2_000_000;

/// The choice of a sample.
#[derive(Default)]
struct Sample {
    one_in: u64,
    /// Children whose own numbers would be drawn, although their families are not chosen.
    unchosen: HashSet<u64>,
    /// Children whose families are chosen.
    children: HashSet<u64>,
}

impl Sample {
    fn draws(&self, id: u64) -> bool {
        sampling::draws(id, self.one_in)
    }

    fn has(&self, id: u64) -> bool {
        self.draws(id) && !self.unchosen.contains(&id) || self.children.contains(&id)
    }
}

/// The number of visits of a recording, by the sampling rate at which they were recorded (one block in N).
#[derive(Default)]
struct Shares(BTreeMap<u64, u64>);

impl Shares {
    fn count(&mut self, ids: impl Iterator<Item = u64>, whole: u64) {
        ids.for_each(|id| *self.0.entry(sampling::one_in(id, whole)).or_default() += 1);
    }

    /// Returns N, if the even sample has one block in N.
    fn least(&self) -> u64 {
        self.0.last_key_value().map_or(1, |(&one_in, _)| one_in)
    }

    /// The approximate number of visits in the even sample.
    fn even_visits(&self) -> u64 {
        self.0.iter().map(|(one_in, visits)| visits * one_in / self.least()).sum()
    }
}

/// Reads a trace, or only a sample of a trace with more than `most` visits.
pub(super) fn read(mut input: impl BufRead + Seek, most: usize) -> Result<(Header, Measured, Draft), TraceError> {
    let start = input.stream_position()?;
    let mut draft = Some(Draft::of(most));
    let mut visits = 0;
    let mut shares = Shares::default();
    let (header, measured) = read_trace(&mut input, |header, _, record| {
        if let Record::Run { units, .. } = &record {
            visits += units.len();
            header.whole.iter().for_each(|&whole| shares.count(units.iter().map(|unit| unit.id), whole));
        }
        if visits > most {
            draft = None;
        }
        draft.as_mut().map_or(Ok(()), |draft| draft.take(header, record, |_| true))
    })?;
    if let Some(draft) = draft {
        return Ok((header, measured, draft));
    }
    // One block in `one_in` is kept. `one_in` is a multiple of the recording's N, so every block that is kept was recorded.
    let one_in = match shares.least() {
        1 => visits.div_ceil(most / 2).max(2) as u64,
        least => least * shares.even_visits().div_ceil(most as u64 / 2).max(1),
    };
    let mut sample = Sample { one_in, ..Sample::default() };
    if header.model.stages.iter().any(|stage| stage.kind == Kind::Split) {
        choose_children(&mut input, start, &mut sample, &header.model, most)?;
    }
    let mut draft = Draft::of_sample(most);
    input.seek(SeekFrom::Start(start))?;
    read_trace(&mut input, |header, _, record| draft.take(header, record, |id| sample.has(id)))?;
    Ok((header, measured, draft))
}

/// Finds the children of the chosen families. The file is read once to find out which units are children, and once
/// for each generation. Only the choice is kept in memory.
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
        let is_last = found.is_empty() || !model.nests();
        sample.children.extend(found);
        if sample.children.len() > most {
            return Err(TraceError::TooLong { most });
        }
        if is_last {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use crate::cx::Cx;
    use crate::failure::Failure;
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
        recorded(flow, units, u64::MAX)
    }

    /// The trace of a flow, in which the first `whole` units are all recorded.
    fn recorded(flow: Flow<u64, u64>, units: u64, whole: u64) -> (Report, Cursor<Vec<u8>>) {
        let kept = Kept::default();
        let recording = flow.record_whole(kept.clone(), "a test".into(), whole).unwrap();
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
    fn a_long_recording_is_a_sample_of_whole_families() {
        let families = |by_parent: bool| {
            let mut flow = Flow::builder("families");
            let [open, work, sum] = ["open", "work", "sum"].map(|name| flow.inlet::<u64>(name));
            let done = flow.retire();
            flow.split(open, |n: &mut u64, _| Ok((0..1 + *n % 3).map(Ok))).to(work);
            let odd = |n: &mut u64, _: &mut Cx<'_>| if *n == 2 { Err(Failure::msg("odd")) } else { Ok(()) };
            flow.update(work, odd).to(sum);
            if by_parent {
                let add = |sum: &mut u64, n: &mut u64, _: &mut Cx<'_>| {
                    *sum += *n;
                    Ok(())
                };
                flow.gather(sum, Gather::fold(|| 0u64, add).by_parent()).to(done);
            } else {
                flow.update(sum, |_: &mut u64, _| Ok(())).to(done);
            }
            flow.build(open).unwrap()
        };
        let (_, all) = recorded(families(false), 100_000, u64::MAX);
        let (report, some) = recorded(families(false), 100_000, 10_000);
        assert!(some.get_ref().len() < all.get_ref().len() / 2, "{} {}", some.get_ref().len(), all.get_ref().len());
        let read = [Trace::read_or_sample(some.clone()), Trace::read(some.clone()), Trace::sample(some, 12_000)];
        for sample in read.map(Result::unwrap) {
            assert!((8.0..400.0).contains(&sample.weight()), "{}", sample.weight());
            assert_eq!(sample.weight(), 100_000.0 / sample.units() as f64);
            let replayed = sample.replay(&WhatIf::default()).unwrap().report;
            assert_eq!((replayed.admitted, replayed.left), (sample.units() as u64, 0));
            // In each family of three, one child has failed.
            for (theirs, of_all) in [(replayed.dead_lettered, report.dead_lettered), (replayed.split, report.split)] {
                let share = theirs as f64 * sample.weight() / of_all as f64;
                assert!((0.9..1.1).contains(&share), "{share}");
            }
        }
        // In this flow a group replaces the parent of its members, so all units are recorded.
        let (_, all) = recorded(families(true), 2_000, 100);
        assert_eq!(Trace::read(all).unwrap().weight(), 1.0);
    }

    #[test]
    fn a_recording_made_while_a_live_trace_is_kept_has_all_units() {
        let mut flow = Flow::builder("both");
        let (work, done) = (flow.inlet::<u64>("work"), flow.retire());
        flow.update(work, |_: &mut u64, _| Ok(())).to(done);
        let flow = flow.build(work).unwrap();
        let live = flow.live_trace("a test".into());
        let kept = Kept::default();
        let recording = flow.record_whole(kept.clone(), "a test".into(), 100).unwrap();
        assert!(live.begin());
        let report = flow.run(0..5_000);
        assert_eq!(Trace::read(&*live.window(live.most_bytes())).unwrap().units(), 5_000);
        recording.finish(&report).unwrap();
        let bytes = std::mem::take(&mut *kept.0.lock().unwrap());
        // The reader still takes an even sample of the recording.
        let trace = Trace::read(&*bytes).unwrap();
        assert_eq!(trace.weight(), 5_000.0 / trace.units() as f64);
    }

    #[test]
    fn a_sample_has_the_throughput_of_the_whole() {
        const RECORDINGS: usize = 5;
        // If another program takes the processors during a part of a recording, the sample differs from the whole. So
        // one good recording of several is enough.
        let mut worst = [0.0; RECORDINGS];
        for worst in &mut worst {
            *worst = miss_of_a_sample();
            if *worst < 0.15 {
                return;
            }
        }
        panic!("in {RECORDINGS} recordings, samples differ from the whole by {worst:?}");
    }

    /// The largest relative difference between the sample and the whole, over replayed times and bounds.
    fn miss_of_a_sample() -> f64 {
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
        let of_beds = [1, 2, 8].into_iter().flat_map(|beds| {
            let what_if = WhatIf::default().capacity("bed", beds);
            let wall = |trace: &Trace| trace.replay(&what_if).unwrap().steady_wall.as_secs_f64();
            let bound = |trace: &Trace| trace.at_least(&what_if).unwrap().0.as_secs_f64();
            [wall(&sample) * sample.weight() / wall(&whole), bound(&sample) / bound(&whole)]
        });
        of_beds.map(|ratio| (ratio - 1.0).abs()).fold(0.0, f64::max)
    }
}
