//! `append`: writes one line per unit, to one file, or to one file for each value of the path.
//!
//! A line is written before its unit leaves the stage, and the unit fails if the write fails: no line waits in a
//! buffer. [`LineFile`] keeps lines whole. If the lines go to many files, only the most recently written files stay
//! open. During the run, a fresh file has a temporary name; at the end of the run, [`gathered`] decides its fate.

use std::path::{Path, PathBuf};

use millstream_flow::{Cx, Failure};

use super::failing::{self, io_failure};
use super::line_file::LineFile;
use super::patience::Patience;
use super::place::Placing;
use super::safe_path::PathTemplate;
use super::turn::Turn;
use super::{Gathered, Op, OpError, RunEnd, gathered};
use crate::file::model::Fresh;
use crate::file::template::{Field, Template};
use crate::record::Record;

/// See the [module](self).
pub(super) struct Append {
    path: PathTemplate,
    line: Template,
    fresh: Fresh,
    /// The open files. A file is opened when the first line for it is written.
    files: Turn<Files>,
    /// The number of files that may be open at once.
    most_open: usize,
}

/// The open files, ordered by their last write; the most recent is at the end.
#[derive(Debug, Default)]
struct Files(Vec<Opened>);

impl Files {
    /// The file at `path`, if it is open.
    fn find(&mut self, path: &Path) -> Option<&mut Opened> {
        let at = self.0.iter().rposition(|opened| opened.path == path)?;
        if at + 1 < self.0.len() {
            let opened = self.0.remove(at);
            self.0.push(opened);
        }
        self.0.last_mut()
    }

    /// Closes the least recently written file if `most` files are open.
    fn make_room(&mut self, most: usize) -> Result<(), Failure> {
        if self.0.len() >= most {
            self.close_oldest()?;
        }
        Ok(())
    }

    /// Closes the least recently written file. Returns `false` if no file is open.
    fn close_oldest(&mut self) -> Result<bool, Failure> {
        if self.0.is_empty() {
            return Ok(false);
        }
        let Opened { file, path, .. } = self.0.remove(0);
        file.close().map_err(|error| io_failure("append to", &path, &error))?;
        Ok(true)
    }
}

#[derive(Debug)]
struct Opened {
    file: LineFile,
    path: PathBuf,
    lines: u64,
    /// The temporary file, if each run begins a new list (`fresh`).
    placing: Option<Placing>,
}

impl Append {
    pub(super) fn new(path: &Template, line: &Template, fresh: Fresh, most_open: usize) -> Result<Self, OpError> {
        let own = path.fields().find(|(field, _)| !matches!(field, Field::Input | Field::Param(_)));
        if let (Some((field, _)), true) = (own, fresh != Fresh::No) {
            return Err(OpError::new(
                format!("a fresh list is one file, and `{{{field}}}` differs from unit to unit"),
                "use only text, {param.NAME} and {input} in its path, or leave out `fresh`",
            ));
        }
        Ok(Self {
            path: PathTemplate::new(path),
            line: line.clone(),
            fresh,
            files: Turn::new(Files::default()),
            most_open,
        })
    }

    fn open(&self, path: PathBuf, patience: &dyn Patience) -> Result<Opened, Failure> {
        if self.fresh != Fresh::No {
            return open_fresh(path);
        }
        Ok(Opened { file: LineFile::open(&path, patience)?, path, lines: 0, placing: None })
    }
}

fn open_fresh(path: PathBuf) -> Result<Opened, Failure> {
    let failed = |error| io_failure("write", &path, &error);
    let (placing, file) = Placing::create(path.clone()).map_err(failed)?;
    let file = LineFile::own(file, path.clone()).map_err(failed)?;
    Ok(Opened { file, path, lines: 0, placing: Some(placing) })
}

impl Op for Append {
    fn run(&self, record: &mut Record, cx: &mut Cx<'_>) -> Result<(), Failure> {
        let mut line = Vec::with_capacity(256);
        self.line.render_into(record, &mut line).map_err(|error| Failure::from(error).to_permanent())?;
        line.push(b'\n');
        let path = self.path.render(record)?;
        let mut files = self.files.take(cx)?;
        if files.find(&path).is_none() {
            files.make_room(self.most_open)?;
            let opened = loop {
                match self.open(path.clone(), cx) {
                    // The process has no free descriptor. The op's own open files occupy some descriptors, so one of
                    // these files is closed.
                    Err(failure) if failing::is_starved(&failure) && files.close_oldest()? => {}
                    opened => break opened?,
                }
            };
            files.0.push(opened);
        }
        let opened = files.find(&path).expect("it is open");
        opened.file.write(&line, cx)?;
        opened.lines += 1;
        Ok(())
    }

    fn finish(&self, end: &RunEnd<'_>) -> Result<Option<Gathered>, Failure> {
        let Some(mut files) = self.files.try_take() else {
            // The run gave up on a unit that may still be writing to one of these files.
            return Err(Failure::msg("a line was still being written when the run was given up on"));
        };
        let mut files = std::mem::take(&mut files.0);
        if self.fresh == Fresh::No {
            for Opened { file, path, .. } in files {
                file.close().map_err(|error| io_failure("append to", &path, &error))?;
            }
            return Ok(None);
        }
        let opened = files.pop();
        let (path, lines, own) = match (opened, self.path.constant()) {
            (Some(Opened { file, path, lines, placing }), _) => {
                if let Err(error) = file.close() {
                    let error = gathered::unplaced(placing, &path, end, error);
                    return Err(io_failure("append to", &path, &error));
                }
                (path, lines, placing)
            }
            // No unit reached this stage, so the list is empty.
            (None, Some(path)) => {
                let own = if !end.retries && end.complete { open_fresh(path.clone())?.placing } else { None };
                (path, 0, own)
            }
            (None, None) => return Ok(None),
        };
        let always = self.fresh == Fresh::Always;
        gathered::end(&path, own, lines, always, end).map_err(|error| io_failure("put in place", &path, &error))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::sync::Arc;

    use super::Append;
    use crate::file::model::Fresh;
    use crate::file::template::Template;
    use crate::ops::first_of;
    use crate::ops::one_stage::{run, run_all};
    use crate::ops::{Fate, Op, RunEnd};
    use crate::record::Record;

    fn append(path: &Path, fresh: bool) -> Arc<Append> {
        append_as(path, if fresh { Fresh::IfNoneDied } else { Fresh::No })
    }

    fn append_as(path: &Path, fresh: Fresh) -> Arc<Append> {
        let path = Template::parse(path.to_str().unwrap()).unwrap();
        Arc::new(Append::new(&path, &Template::parse("<{line}>").unwrap(), fresh, 4).unwrap())
    }

    const CLEAN: RunEnd<'_> =
        RunEnd { complete: true, admitted: 1, retired: 1, dead: 0, first: "flow-1", retries: false };
    const DIED: RunEnd<'_> = RunEnd { dead: 1, ..CLEAN };
    const NO_UNITS: RunEnd<'_> = RunEnd { admitted: 0, ..CLEAN };
    const INTERRUPTED: RunEnd<'_> = RunEnd { complete: false, ..CLEAN };

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn line(number: usize) -> Record {
        Record::line(number.to_string().into_bytes())
    }

    #[test]
    fn lines_are_whole_and_none_is_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b/list");
        run_all(append(&path, false), (0..10_000).map(line)).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let mut numbers: Vec<usize> = text
            .lines()
            .map(|line| line.strip_prefix('<').unwrap().strip_suffix('>').unwrap().parse().unwrap())
            .collect();
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..10_000));
    }

    #[test]
    fn what_is_there_stays_before_what_is_added() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        for number in 0..3 {
            run(append(&path, false), line(number)).unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "<0>\n<1>\n<2>\n");
    }

    #[test]
    fn a_fresh_file_takes_its_place_when_the_run_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        fs::write(&path, "old\n").unwrap();
        let op = append(&path, true);
        run(op.clone(), line(1)).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old\n");
        let gathered = op.finish(&CLEAN).unwrap().unwrap();
        let earlier = folder.path().join("list.old");
        assert_eq!(gathered.fate, Fate::Placed { earlier: Some(earlier.clone()) });
        assert_eq!(fs::read_to_string(&path).unwrap(), "<1>\n");
        assert_eq!(fs::read_to_string(earlier).unwrap(), "old\n", "the earlier file is kept");
        assert_eq!(names(folder.path()), ["list", "list.old"]);
    }

    #[test]
    fn a_run_with_gaps_replaces_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        fs::write(&path, "old\n").unwrap();
        for (end, partial) in [(&INTERRUPTED, false), (&DIED, true), (&NO_UNITS, false)] {
            let op = append(&path, true);
            if end.admitted > 0 {
                run(op.clone(), line(1)).unwrap();
            }
            let gathered = op.finish(end).unwrap().unwrap();
            assert!(matches!(gathered.fate, Fate::Kept { .. }), "{end:?}");
            assert_eq!(fs::read_to_string(&path).unwrap(), "old\n", "{end:?}");
            let kept = folder.path().join(format!("list.{}.1.partial", first_of("flow-1")));
            assert_eq!(kept.exists(), partial, "{end:?}");
            let _ = fs::remove_file(kept);
            assert_eq!(names(folder.path()), ["list"], "{end:?}");
        }
        for end in [&DIED, &NO_UNITS] {
            let op = append_as(&path, Fresh::Always);
            op.finish(end).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), "", "{end:?}");
        }
    }

    #[test]
    fn a_list_with_gaps_never_has_the_name_of_a_whole_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        let op = append(&path, true);
        run(op.clone(), line(1)).unwrap();
        let first = &first_of("flow-1");
        let told = op.finish(&DIED).unwrap().unwrap().to_string();
        assert_eq!(names(folder.path()), [format!("list.{first}.1.partial")]);
        assert!(told.contains("there is no ") && told.contains("because units died; this run's list is"), "{told}");
        let op = append(&path, true);
        run(op.clone(), line(2)).unwrap();
        op.finish(&RunEnd { retries: true, first, ..CLEAN }).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "<1>\n<2>\n");
        assert_eq!(names(folder.path()), ["list"]);
    }

    #[test]
    fn a_run_without_units_makes_an_empty_list_only_where_there_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        append(&path, true).finish(&NO_UNITS).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "");
        assert_eq!(names(folder.path()), ["list"]);
    }

    #[test]
    fn a_retry_adds_to_the_list_of_its_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        fs::write(&path, "old\n").unwrap();
        let ends = |number, end: &RunEnd<'_>| {
            let op = append(&path, true);
            run(op.clone(), line(number)).unwrap();
            op.finish(end).unwrap().unwrap()
        };
        let first = &first_of("flow-1");
        let retry = RunEnd { retries: true, first, ..CLEAN };
        let partial = |lacks: u64| format!("list.{first}.{lacks}.partial");
        ends(1, &RunEnd { dead: 3, ..DIED });
        assert_eq!(names(folder.path()), ["list", &partial(3)]);
        // Two of three letters are retried, and one of the two units dies again.
        ends(2, &RunEnd { dead: 1, ..retry });
        assert_eq!(names(folder.path()), ["list", &partial(2)]);
        ends(3, &RunEnd { complete: false, ..retry });
        assert_eq!(names(folder.path()), ["list", &partial(1)]);
        ends(4, &retry);
        assert_eq!(fs::read_to_string(&path).unwrap(), "<1>\n<2>\n<3>\n<4>\n");
        assert_eq!(fs::read_to_string(folder.path().join("list.old")).unwrap(), "old\n");
        assert_eq!(names(folder.path()), ["list", "list.old"]);
        // No unit of this run reached the list.
        let nothing = append(&path, true).finish(&RunEnd { retries: true, ..CLEAN });
        assert_eq!(nothing.unwrap(), None);
        assert_eq!(names(folder.path()), ["list", "list.old"]);
    }

    #[test]
    fn a_retry_of_an_interrupted_run_completes_no_list() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        fs::write(&path, "old\n").unwrap();
        let op = append(&path, true);
        run(op.clone(), line(1)).unwrap();
        op.finish(&RunEnd { dead: 1, ..INTERRUPTED }).unwrap();
        let first = &first_of("flow-1");
        let kept = format!("list.{first}.unfinished.partial");
        assert_eq!(names(folder.path()), ["list", &kept]);
        let op = append(&path, true);
        run(op.clone(), line(2)).unwrap();
        let gathered = op.finish(&RunEnd { retries: true, first, ..CLEAN }).unwrap().unwrap().to_string();
        assert!(
            gathered.contains("the run whose letters these were did not reach the end of its source"),
            "{gathered}"
        );
        assert_eq!(names(folder.path()), ["list", &kept]);
        assert_eq!(fs::read_to_string(folder.path().join(kept)).unwrap(), "<1>\n<2>\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), "old\n");
    }

    #[test]
    fn a_retry_touches_the_list_of_no_other_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        let other = folder.path().join("list.flow-1-0.1.partial");
        for (name, content) in [(&path, "old\n"), (&other, "other\n")] {
            fs::write(name, content).unwrap();
        }
        let op = append(&path, true);
        run(op.clone(), line(1)).unwrap();
        op.finish(&RunEnd { retries: true, first: "flow-1-1", ..CLEAN }).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old\n<1>\n");
        assert_eq!(fs::read_to_string(&other).unwrap(), "other\n");
    }

    #[test]
    fn a_list_that_cannot_be_put_in_place_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("list");
        fs::write(&path, "old\n").unwrap();
        // A folder occupies the name for the earlier file.
        fs::create_dir(folder.path().join("list.old")).unwrap();
        let partial = folder.path().join("list.flow-1.1.partial");
        for (retries, base) in [(false, None), (true, Some("<0>\n"))] {
            if let Some(base) = base {
                fs::write(&partial, base).unwrap();
            }
            let op = append(&path, true);
            run(op.clone(), line(1)).unwrap();
            let error = op.finish(&RunEnd { retries, ..CLEAN }).unwrap_err().to_string();
            let names = names(folder.path());
            let kept = names.iter().find(|name| name.ends_with(".unplaced")).expect("it is kept");
            assert!(error.contains("cannot put in place") && error.contains(kept), "{error}");
            let kept = folder.path().join(kept);
            assert_eq!(fs::read_to_string(&kept).unwrap(), "<1>\n");
            assert_eq!(fs::read_to_string(&path).unwrap(), "old\n");
            assert_eq!(fs::read_to_string(&partial).ok().as_deref(), base);
            assert!(!names.iter().any(|name| name.starts_with(".millstream-")), "{names:?}");
            fs::remove_file(kept).unwrap();
        }
    }

    #[test]
    fn a_fresh_list_is_one_file() {
        let line = Template::parse("x").unwrap();
        let error = Append::new(&Template::parse("out/{name}").unwrap(), &line, Fresh::Always, 4).err().unwrap();
        assert!(error.message.contains("`{name}` differs from unit to unit"), "{error}");
        assert!(Append::new(&Template::parse("{input}/list").unwrap(), &line, Fresh::Always, 4).is_ok());
    }

    #[test]
    fn each_value_of_the_path_has_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = Template::parse(&format!("{}/{{ext}}", folder.path().display())).unwrap();
        let op = Arc::new(Append::new(&path, &Template::parse("{stem}").unwrap(), Fresh::No, 4).unwrap());
        // There are more files than may stay open, and each is written to several times.
        let kinds = 12;
        let record = |number: usize| Record::line(format!("{number}.{}", number % kinds).into_bytes());
        run_all(op.clone(), (0..5 * kinds).map(record)).unwrap();
        assert_eq!(op.finish(&CLEAN).unwrap(), None);
        for kind in 0..kinds {
            let text = fs::read_to_string(folder.path().join(kind.to_string())).unwrap();
            let mut numbers: Vec<usize> = text.lines().map(|line| line.parse().unwrap()).collect();
            numbers.sort_unstable();
            assert!(numbers.into_iter().eq((0..5).map(|round| round * kinds + kind)), "{text}");
        }
    }

    #[test]
    fn a_full_disk_fails_the_unit() {
        let error = run(append(Path::new("/dev/full"), false), line(1)).unwrap_err();
        assert!(error.contains("cannot append to /dev/full: No space left on device"), "{error}");
    }
}
