//! The notices that accompany a binary: the licences of all packages in it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::msrv::metadata;
use crate::step::cargo;

/// The package of the command.
const COMMAND: &str = "millstream-cli";

/// How the names of licence files begin.
const NAMES: [&str; 6] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];

/// Writes `target/NOTICES-PACKAGE.txt` for the binary of a package, the command by default.
///
/// # Errors
/// Returns an error for more than one argument, for a package that cargo does not know, and for a file that cannot be read or
/// written.
pub(crate) fn write(args: &[String], root: &Path) -> Result<(), String> {
    let package = match args {
        [] => COMMAND,
        [package] => package,
        _ => return Err("usage: cargo xtask notices [PACKAGE]".to_owned()),
    };
    let (text, without) = notices(root, package)?;
    let path = root.join(format!("target/NOTICES-{package}.txt"));
    fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    println!("{}", path.display());
    for package in without {
        println!("   {package} comes without a text; only the licence's name is given");
    }
    Ok(())
}

/// Returns the notices, and the packages whose archives contain no text of a licence.
fn notices(root: &Path, package: &str) -> Result<(String, Vec<String>), String> {
    let metadata = metadata(root)?;
    let mut text = "The following packages are part of this program, each under its own licence.\n".to_owned();
    let mut without = Vec::new();
    for line in compiled_in(root, package)? {
        let mut words = line.splitn(3, '\t');
        let (Some(name), Some(licence)) = (words.next(), words.next()) else { continue };
        // `name` has the form "NAME vX.Y.Z". The folder of the package's sources ends with "NAME-X.Y.Z".
        let folder = name.replacen(" v", "-", 1);
        let folder = folder.split(' ').next().unwrap_or_default();
        let ending = format!("/{folder}/Cargo.toml\"");
        // The folders of this workspace's packages have no version in their names.
        let Some(end) = metadata.find(&ending) else { continue };
        let start = metadata[..end].rfind('"').map_or(0, |quote| quote + 1);
        let texts = texts(&PathBuf::from(&metadata[start..end]).join(folder))?;
        if texts.is_empty() {
            without.push(folder.to_owned());
        }
        let _ = writeln!(text, "\n{}\n{folder}: {licence}\n", "=".repeat(80));
        text.extend(texts);
    }
    Ok((text, without))
}

/// Returns "NAME vVERSION", a tab and the licence of every package whose code is in the binary, sorted.
fn compiled_in(root: &Path, package: &str) -> Result<BTreeSet<String>, String> {
    let mut tree = Command::new(cargo());
    tree.args(["tree", "--locked", "--edges=normal", "--prefix=none", "--format={p}\t{l}", "--package", package]);
    let output = tree.current_dir(root).output().map_err(|error| format!("cargo tree: {error}"))?;
    if !output.status.success() {
        return Err(format!("cargo tree: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let lines = String::from_utf8_lossy(&output.stdout);
    Ok(lines.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).filter(|line| !line.is_empty()).collect())
}

/// Returns the texts of licences in a folder.
fn texts(folder: &Path) -> Result<Vec<String>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        file.is_file() && NAMES.iter().any(|start| name.starts_with(start))
    });
    files.sort();
    let read = |file: &PathBuf| {
        let bytes = fs::read(file).map_err(|error| format!("{}: {error}", file.display()))?;
        Ok(format!("{}\n\n", String::from_utf8_lossy(&bytes).trim_end()))
    };
    files.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_hold_the_licences_of_what_is_compiled_in() {
        let (text, without) = notices(crate::root(), "millstream-csm").unwrap();
        assert!(text.contains("\nthiserror-") && text.contains("Permission is hereby granted"), "{text}");
        assert!(!text.contains("\nproptest-") && !text.contains("\nmillstream-"), "{text}");
        assert!(without.is_empty(), "{without:?}");
        assert!(notices(crate::root(), "no-such-package").is_err());
    }
}
