//! Finds a program on the search path.

use std::ffi::OsStr;
use std::path::PathBuf;

use rustix::fs::{Access, access};

/// The first executable regular file with this name in the folders of `search`, which is the value of `PATH`.
pub fn find(name: &OsStr, search: Option<&OsStr>) -> Option<PathBuf> {
    // Without `PATH`, `execvp` searches these folders.
    let search = search.unwrap_or(OsStr::new("/bin:/usr/bin"));
    std::env::split_paths(search)
        .map(|folder| folder.join(name))
        .filter(|path| path.is_file() && access(path, Access::EXEC_OK).is_ok())
        // The path is made absolute, because the program may run in another folder, in which a relative path would name
        // another file.
        .find_map(|path| std::path::absolute(path).ok())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::fs::PermissionsExt;

    use super::find;

    #[test]
    fn the_first_executable_file_counts() {
        let folder = tempfile::tempdir().unwrap();
        let file = |place: &str, mode: u32| {
            let path = folder.path().join(place).join("tool");
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            path
        };
        file("plain", 0o644);
        std::fs::create_dir_all(folder.path().join("folder/tool")).unwrap();
        let first = file("first", 0o755);
        file("second", 0o755);
        let search = std::env::join_paths(
            ["missing", "plain", "folder", "first", "second"].map(|place| folder.path().join(place)),
        )
        .unwrap();
        assert_eq!(find(OsStr::new("tool"), Some(&search)), Some(first));
        assert_eq!(find(OsStr::new("no-such-tool"), Some(&search)), None);
        assert!(find(OsStr::new("sh"), None).is_some());
    }
}
