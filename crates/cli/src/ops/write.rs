//! `write`: the payload becomes a file.

use std::io::Write as _;

use millstream_flow::{Cx, Failure};

use super::Op;
use super::failing::io_failure;
use super::place::{Existing, Placing};
use super::safe_path::PathTemplate;
use crate::file::template::Template;
use crate::record::Record;

/// Most bytes written between two looks at the time limit and at cancellation.
const STEP: usize = 8 << 20;

/// See the [module](self).
pub(super) struct Write {
    path: PathTemplate,
    existing: IfExists,
}

/// What happens when the file exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum IfExists {
    Fail,
    Skip,
    Replace,
}

impl Write {
    pub(super) fn new(path: &Template, overwrite: bool, skip_existing: bool) -> Self {
        let existing = match (overwrite, skip_existing) {
            (_, true) => IfExists::Skip,
            (true, false) => IfExists::Replace,
            (false, false) => IfExists::Fail,
        };
        Self { path: PathTemplate::new(path), existing }
    }
}

impl Op for Write {
    fn run(&self, record: &mut Record, cx: &mut Cx<'_>) -> Result<(), Failure> {
        let path = self.path.render_file(record)?;
        // Looked at before anything is written, so that a second run over the same input writes nothing; what counts is
        // the rename that does not replace.
        if self.existing != IfExists::Replace
            && let Ok(found) = path.symlink_metadata()
        {
            return if found.is_dir() { Err(is_a_folder(&path)) } else { self.exists(&path) };
        }
        let failed = |error, path: &std::path::Path| io_failure("write", path, &error);
        let (placing, mut file) = Placing::create(path.clone()).map_err(|error| failed(error, &path))?;
        for step in record.payload.chunks(STEP) {
            file.write_all(step).map_err(|error| failed(error, &path))?;
            if record.payload.len() > STEP {
                cx.check()?;
            }
        }
        drop(file);
        let existing = if self.existing == IfExists::Replace { Existing::Replace } else { Existing::Keep };
        match placing.put(existing) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && !path.is_dir() => self.exists(&path),
            Err(error) => Err(failed(error, &path)),
        }
    }

    fn idempotent(&self) -> bool {
        true
    }
}

impl Write {
    /// The outcome for a file that is there already.
    fn exists(&self, path: &std::path::Path) -> Result<(), Failure> {
        if self.existing == IfExists::Skip {
            return Ok(());
        }
        Err(Failure::permanent(format!(
            "{} exists and is kept; `overwrite = true` would replace it, `skip_existing = true` would count it as \
             written",
            path.display()
        )))
    }
}

/// A folder in the file's place neither counts as the file nor can be replaced by it.
fn is_a_folder(path: &std::path::Path) -> Failure {
    Failure::permanent(format!("cannot write {}: it is a folder", path.display()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::Write;
    use crate::file::template::Template;
    use crate::ops::one_stage::run;
    use crate::record::Record;

    fn write(folder: &Path, overwrite: bool, skip_existing: bool) -> Write {
        let path = Template::parse(&format!("{}/{{line}}", folder.display())).unwrap();
        Write::new(&path, overwrite, skip_existing)
    }

    fn record(name: &str, payload: &str) -> Record {
        let mut record = Record::line(name.into());
        record.payload = payload.into();
        record
    }

    fn entries(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn parents_are_made_and_nothing_else_is_left() {
        let folder = tempfile::tempdir().unwrap();
        run(write(folder.path(), false, false), record("a/b/c", "content")).unwrap();
        assert_eq!(fs::read(folder.path().join("a/b/c")).unwrap(), b"content");
        assert_eq!(entries(&folder.path().join("a/b")), 1);
    }

    #[test]
    fn an_existing_file_is_kept_unless_the_flow_says_otherwise() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("f");
        fs::write(&file, "old").unwrap();
        let error = run(write(folder.path(), false, false), record("f", "new")).unwrap_err();
        assert!(error.contains("exists and is kept") && error.contains("overwrite = true"), "{error}");
        run(write(folder.path(), false, true), record("f", "new")).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"old");
        run(write(folder.path(), true, false), record("f", "new")).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(entries(folder.path()), 1);
    }

    #[test]
    fn a_dangling_link_is_an_existing_name() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/nowhere/at/all", folder.path().join("f")).unwrap();
        assert!(run(write(folder.path(), false, false), record("f", "new")).is_err());
    }

    #[test]
    fn a_parent_that_is_no_folder_is_said() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("f"), "").unwrap();
        let error = run(write(folder.path(), false, false), record("f/g", "new")).unwrap_err();
        assert!(error.contains("cannot write") && error.contains("Not a directory"), "{error}");
    }

    #[test]
    fn a_folder_in_the_files_place_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("f")).unwrap();
        for (overwrite, skip) in [(true, false), (false, true), (false, false)] {
            let error = run(write(folder.path(), overwrite, skip), record("f", "new")).unwrap_err();
            assert!(error.contains("folder") || error.contains("directory"), "{error}");
            for name in ["f/", "", "."] {
                let error = run(write(folder.path(), overwrite, skip), record(name, "new")).unwrap_err();
                assert!(error.contains("a file needs a name"), "{name}: {error}");
            }
        }
        assert_eq!(entries(folder.path()), 1);
    }
}
