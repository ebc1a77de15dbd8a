//! The files from which tests compile programs: those of the package, and the libraries next to the test's binary.

use std::path::{Path, PathBuf};

/// The name under which programs look for the shared library.
pub(crate) const SONAME: &str =
    concat!("libmillstream_c.so.", env!("CARGO_PKG_VERSION_MAJOR"), ".", env!("CARGO_PKG_VERSION_MINOR"));

/// Finds the library next to this test's binary, where cargo has put it. If there are several builds, finds the newest.
pub(crate) fn library(ending: &str) -> PathBuf {
    let test = std::env::current_exe().expect("a test has a path");
    let folder = test.parent().expect("a test lies in a folder");
    let is_it = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("libmillstream_c") && !name.starts_with("libmillstream_csm") && name.ends_with(ending)
    };
    let entries = std::fs::read_dir(folder).expect("the folder is readable");
    entries
        .map(|entry| entry.expect("the folder is readable").path())
        .filter(is_it)
        .max_by_key(|path| path.metadata().and_then(|metadata| metadata.modified()).expect("a file has a time"))
        .unwrap_or_else(|| panic!("no libmillstream_c*{ending} in {}", folder.display()))
}

/// A file of this package.
pub(crate) fn path(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(relative)
}
