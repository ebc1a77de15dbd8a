//! `append`: one line a unit, in one file.
//!
//! A line is written by one call while a lock is held, so lines arrive whole and in order, and a unit whose line could
//! not be written fails there and then: nothing waits in a buffer when the unit has left the flow. A line of which only
//! a part fitted on the disk is taken back. A fresh file is gathered under a temporary name and takes its place at the
//! end of a complete run.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use millstream_flow::{Cx, Failure};

use super::failing::io_failure;
use super::place::{Existing, Placing};
use super::safe_path::PathTemplate;
use super::{Op, OpError};
use crate::file::template::{Field, Template};
use crate::record::Record;

/// See the [module](self).
pub(super) struct Append {
    path: PathTemplate,
    line: Template,
    fresh: bool,
    /// Opened by the first unit.
    opened: Mutex<Option<Opened>>,
}

struct Opened {
    file: File,
    path: PathBuf,
    /// For a fresh file.
    placing: Option<Placing>,
}

impl Append {
    pub(super) fn new(path: &Template, line: &Template, fresh: bool) -> Result<Self, OpError> {
        if let Some((field, _)) = path.fields().find(|(field, _)| !matches!(field, Field::Input | Field::Param(_))) {
            return Err(OpError::new(
                format!("`append` writes one file, and `{{{field}}}` differs from unit to unit"),
                "use only text, {param.NAME} and {input} in its path; `write` makes a file for each unit",
            ));
        }
        Ok(Self { path: PathTemplate::new(path), line: line.clone(), fresh, opened: Mutex::new(None) })
    }

    fn open(&self, path: PathBuf) -> Result<Opened, Failure> {
        if self.fresh {
            let (placing, file) = Placing::create(path.clone()).map_err(|error| io_failure("write", &path, &error))?;
            return Ok(Opened { file, path, placing: Some(placing) });
        }
        let file = open_to_append(&path).map_err(|error| io_failure("append to", &path, &error))?;
        Ok(Opened { file, path, placing: None })
    }
}

impl Op for Append {
    fn run(&self, record: &mut Record, _cx: &mut Cx<'_>) -> Result<(), Failure> {
        let mut line = Vec::with_capacity(256);
        self.line.render_into(record, &mut line).map_err(|error| Failure::from(error).to_permanent())?;
        line.push(b'\n');
        // A panic while the lock was held cannot have left half a line: the write is one call.
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = match &mut *opened {
            Some(opened) => opened,
            none => none.insert(self.open(self.path.render(record)?)?),
        };
        opened.write_line(&line).map_err(|error| io_failure("append to", &opened.path, &error))
    }

    fn finish(&self, complete: bool) -> Result<(), Failure> {
        let mut slot = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = match slot.take() {
            // No unit came here, and a fresh file is empty then.
            None if self.fresh && complete => match self.path.constant() {
                Some(path) => self.open(path)?,
                None => return Ok(()),
            },
            None => return Ok(()),
            Some(opened) => opened,
        };
        match opened.placing {
            Some(placing) if complete => {
                placing.put(Existing::Replace).map_err(|error| io_failure("put in place", &opened.path, &error))
            }
            _ => Ok(()),
        }
    }
}

impl Opened {
    fn write_line(&mut self, line: &[u8]) -> io::Result<()> {
        let mut written = 0;
        while written < line.len() {
            match self.file.write(&line[written..]) {
                Ok(0) => return self.take_back(written, io::ErrorKind::WriteZero.into()),
                Ok(more) => written += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return self.take_back(written, error),
            }
        }
        Ok(())
    }

    /// Removes the part of a line that was written before `error`.
    fn take_back(&self, written: usize, error: io::Error) -> io::Result<()> {
        if written > 0 {
            let length = self.file.metadata()?.len();
            self.file.set_len(length.saturating_sub(written as u64))?;
        }
        Err(error)
    }
}

fn open_to_append(path: &Path) -> io::Result<File> {
    let open = || File::options().append(true).create(true).open(path);
    match (open(), path.parent()) {
        (Err(error), Some(parent)) if error.kind() == io::ErrorKind::NotFound && !parent.as_os_str().is_empty() => {
            std::fs::create_dir_all(parent)?;
            open()
        }
        (outcome, _) => outcome,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::sync::Arc;

    use super::Append;
    use crate::file::template::Template;
    use crate::ops::Op;
    use crate::ops::one_stage::{run, run_all};
    use crate::record::Record;

    fn append(path: &Path, fresh: bool) -> Arc<Append> {
        let path = Template::parse(path.to_str().unwrap()).unwrap();
        Arc::new(Append::new(&path, &Template::parse("<{line}>").unwrap(), fresh).unwrap())
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
        op.finish(true).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "<1>\n");

        let op = append(&path, true);
        run(op.clone(), line(2)).unwrap();
        op.finish(false).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "<1>\n", "an interrupted run changes nothing");

        append(&path, true).finish(true).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "", "a run without units makes an empty file");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_path_that_differs_from_unit_to_unit_is_refused() {
        let line = Template::parse("x").unwrap();
        let error = Append::new(&Template::parse("out/{name}").unwrap(), &line, false).err().unwrap();
        assert!(error.message.contains("`{name}` differs from unit to unit"), "{error}");
        assert!(Append::new(&Template::parse("{input}/list").unwrap(), &line, false).is_ok());
    }

    #[test]
    fn a_full_disk_fails_the_unit() {
        let error = run(append(Path::new("/dev/full"), false), line(1)).unwrap_err();
        assert!(error.contains("cannot append to /dev/full: No space left on device"), "{error}");
    }
}
