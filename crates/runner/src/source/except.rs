//! The entries that a walk leaves out: the folders and files in `except`, and files whose names match none of the
//! source's patterns. The flow file may name a folder or file in `except` by any path to it.
//!
//! Without exceptions, a flow that writes into the folder that it walks would process its own results.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::file::names::Names;

/// See the [module](self).
#[derive(Debug, Default)]
pub(super) struct Except {
    /// Paths relative to the walk's root. An empty path is the root itself.
    rels: Vec<PathBuf>,
    /// The names of the files that become units.
    names: Names,
}

impl Except {
    /// Exceptions for those `paths` that are below `root`. The root exists; the paths need not exist yet.
    ///
    /// # Errors
    /// The location of the root, or the working folder, cannot be determined.
    pub(super) fn below(root: &Path, paths: &[PathBuf]) -> io::Result<Self> {
        if paths.is_empty() {
            return Ok(Self::default());
        }
        let root = root.canonicalize()?;
        let mut rels = Vec::new();
        for path in paths {
            let place = place(path)?;
            rels.extend(place.strip_prefix(&root).map(Path::to_owned));
        }
        Ok(Self { rels, names: Names::default() })
    }

    /// Also leaves out files whose names do not match `names`.
    pub(super) fn with_names(self, names: Names) -> Self {
        Self { names, ..self }
    }

    /// Whether no file is left out because of its name.
    pub(super) fn takes_all_names(&self) -> bool {
        self.names.is_all()
    }

    /// Whether the last component of this path matches `names`.
    pub(super) fn takes_name(&self, path: &[u8]) -> bool {
        self.names.matches(path)
    }

    /// Whether the root itself is left out.
    pub(super) fn is_all(&self) -> bool {
        self.rels.iter().any(|rel| rel.as_os_str().is_empty())
    }

    /// Whether the file or folder with this path relative to the root is left out.
    pub(super) fn covers(&self, rel: &[u8]) -> bool {
        let rel = Path::new(OsStr::from_bytes(rel));
        self.rels.iter().any(|left_out| rel.starts_with(left_out))
    }
}

/// The absolute location of `path`. Links are resolved in the part of the path that exists; the rest is not changed.
fn place(path: &Path) -> io::Result<PathBuf> {
    let mut existing = std::path::absolute(path)?;
    let mut rest: Vec<OsString> = Vec::new();
    loop {
        match existing.canonicalize() {
            Ok(mut place) => {
                place.extend(rest.iter().rev());
                return Ok(place);
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
            Err(error) => return Err(error),
        }
        // The path ends with `..` and does not exist. Its location cannot be computed from its text.
        let Some(name) = existing.file_name().map(OsString::from) else {
            return Err(io::Error::other(format!("cannot tell where {} is", path.display())));
        };
        rest.push(name);
        existing.pop();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use super::Except;

    #[test]
    fn paths_below_are_left_out_and_their_namesakes_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let except = Except::below(folder.path(), &[folder.path().join("out"), folder.path().join("a/b")]).unwrap();
        for (rel, covered) in
            [("out", true), ("out/x/y", true), ("outer", false), ("b/out", false), ("a/b/c", true), ("a/c", false)]
        {
            assert_eq!(except.covers(rel.as_bytes()), covered, "{rel}");
        }
        assert!(!except.is_all());
    }

    #[test]
    fn any_path_that_leads_there_will_do() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("tree/out")).unwrap();
        symlink("tree", folder.path().join("link")).unwrap();
        for path in ["link/out", "tree/../tree/out", "tree/./out/"] {
            let except = Except::below(&folder.path().join("tree"), &[folder.path().join(path)]).unwrap();
            assert!(except.covers(b"out/x"), "{path}");
        }
        let through = Except::below(&folder.path().join("link"), &[folder.path().join("tree/out/new")]).unwrap();
        assert!(through.covers(b"out/new/x") && !through.covers(b"out/x"));
    }

    #[test]
    fn a_path_elsewhere_leaves_nothing_out() {
        let folder = tempfile::tempdir().unwrap();
        let parent = folder.path().parent().unwrap().to_owned();
        let except = Except::below(folder.path(), &[parent, PathBuf::from("/nowhere")]).unwrap();
        assert!(!except.covers(b"x") && !except.is_all());
    }

    #[test]
    fn the_root_itself_is_everything() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Except::below(folder.path(), &[folder.path().join(".")]).unwrap().is_all());
    }
}
