//! The packages of the workspace, under the short names of the command line.

use std::fs;
use std::path::{Path, PathBuf};

/// A package of the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    /// The name of its folder: `ring` for `crates/ring`.
    pub(crate) short: String,
    pub(crate) package: String,
    pub(crate) folder: PathBuf,
}

impl Member {
    /// Returns whether the package has a library, which has docs.
    pub(crate) fn has_library(&self) -> bool {
        self.folder.join("src/lib.rs").exists()
    }

    /// Returns the test programs of the package, `tests/NAME.rs` or `tests/NAME/main.rs`, sorted.
    pub(crate) fn test_programs(&self) -> Vec<String> {
        let mut programs: Vec<String> = fs::read_dir(self.folder.join("tests"))
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.join("main.rs").exists() || path.extension().is_some_and(|end| end == "rs"))
            .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
            .collect();
        programs.sort();
        programs
    }

    /// Returns whether the package depends on another one, as a library or for its tests.
    pub(crate) fn depends_on(&self, package: &str) -> bool {
        fs::read_to_string(self.folder.join("Cargo.toml"))
            .is_ok_and(|manifest| manifest.lines().any(|line| line.starts_with(package)))
    }
}

/// Returns the members, in the order of the manifest's `members`, and by name within a pattern.
///
/// # Errors
/// Returns an error if a manifest cannot be read, or does not have the expected form.
pub(crate) fn all(root: &Path) -> Result<Vec<Member>, String> {
    let manifest = read(&root.join("Cargo.toml"))?;
    let list = manifest.split_once("\nmembers = [").and_then(|(_, rest)| rest.split_once(']'));
    let (list, _) = list.ok_or("Cargo.toml has no `members = [`")?;
    let mut members = Vec::new();
    for pattern in list.split(',').map(|entry| entry.trim().trim_matches('"')).filter(|entry| !entry.is_empty()) {
        for folder in folders(root, pattern)? {
            let manifest = read(&folder.join("Cargo.toml"))?;
            let package = manifest.lines().find_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
            let package = package.ok_or_else(|| format!("{}/Cargo.toml has no `name`", folder.display()))?.to_owned();
            let short = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
            members.push(Member { short, package, folder });
        }
    }
    Ok(members)
}

/// Returns the folders that match a pattern of `members`, such as `xtask` or `crates/*`.
fn folders(root: &Path, pattern: &str) -> Result<Vec<PathBuf>, String> {
    let Some(parent) = pattern.strip_suffix("/*") else {
        return Ok(vec![root.join(pattern)]);
    };
    let parent = root.join(parent);
    let entries = fs::read_dir(&parent).map_err(|error| format!("{}: {error}", parent.display()))?;
    let mut found: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    found.retain(|folder| folder.join("Cargo.toml").exists());
    found.sort();
    Ok(found)
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_with_their_test_programs() {
        let members = all(crate::root()).unwrap();
        let member = |short: &str| members.iter().find(|member| member.short == short).unwrap();
        assert_eq!(member("ring").package, "millstream-ring");
        assert!(member("ring").has_library() && member("ring").test_programs().contains(&"channel".to_owned()));
        assert!(member("slab").test_programs().contains(&"crash".to_owned()));
        assert!(!member("slab").test_programs().contains(&"support".to_owned()));
        assert_eq!(member("xtask").folder, crate::root().join("xtask"));
        assert!(member("ring").depends_on("millstream-verify-random"));
        assert!(!member("xtask").depends_on("millstream-verify-random"));
    }
}
