//! The packages with loom models, and the check that the list is complete.
//!
//! A loom model is compiled from the same source as the code that it checks, under `--cfg loom`, so a plain `cargo
//! test` never runs it. A model that never runs proves nothing. So this file lists every package with models, and a
//! package that mentions `cfg(loom)` and is not listed is an error. Models are in the library of a package and in the
//! listed test programs, `tests/*_loom.rs`. Other tests are empty under loom, and building them would take longer than
//! running the models.

use std::fs;
use std::path::Path;

/// A package that is tested again under `--cfg loom`.
pub(crate) struct Models {
    pub(crate) package: &'static str,
    /// The package's folder under `crates/`.
    pub(crate) folder: &'static str,
    /// The test programs with models.
    pub(crate) tests: &'static [&'static str],
}

/// Cargo's arguments for models. Models have their own target folder, because everything has to be built again with the
/// flag.
pub(crate) const TEST: [&str; 3] = ["test", "--profile=loom", "--target-dir=target/loom"];

/// The compiler's flags for models.
pub(crate) const FLAGS: &str = "--cfg loom";

/// Every package with models.
pub(crate) const LOOM_PACKAGES: &[Models] = &[
    Models { package: "millstream-fiber", folder: "fiber", tests: &[] },
    Models { package: "millstream-ring", folder: "ring", tests: &[] },
    Models { package: "millstream-slab", folder: "slab", tests: &[] },
    Models { package: "millstream-sync", folder: "sync", tests: &["eventcount_loom", "reclaim_loom"] },
];

/// Fails when a crate mentions `cfg(loom)` and is not in [`LOOM_PACKAGES`], or the reverse.
pub(crate) fn check_listed(root: &Path) -> Result<(), String> {
    let listed: Vec<&str> = LOOM_PACKAGES.iter().map(|models| models.folder).collect();
    let crates = root.join("crates");
    LOOM_PACKAGES.iter().try_for_each(|models| compare_tests(&crates.join(models.folder), models.tests))?;
    compare(&crates_with_models(&crates)?, &listed)
}

/// Fails when a test program of a crate has models and is not listed, or the reverse.
fn compare_tests(folder: &Path, listed: &[&str]) -> Result<(), String> {
    let mut found = Vec::new();
    for entry in entries(&folder.join("tests"))? {
        let name = entry.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let file = if entry.is_dir() { entry.join("main.rs") } else { entry };
        if file.extension().is_some_and(|extension| extension == "rs") && file.exists() && is_model(&text(&file)?) {
            found.push(name);
        }
    }
    found.sort();
    if found == listed {
        return Ok(());
    }
    Err(format!(
        "the tests with models in {} are {found:?}, but LOOM_PACKAGES in xtask/src/models.rs names {listed:?}",
        folder.display()
    ))
}

fn compare(found: &[String], listed: &[&str]) -> Result<(), String> {
    for folder in found {
        if !listed.contains(&folder.as_str()) {
            return Err(format!(
                "crates/{folder} has code under `cfg(loom)` but LOOM_PACKAGES in \
                 xtask/src/models.rs does not name it; add it there so that its models run"
            ));
        }
    }
    for folder in listed {
        if !found.iter().any(|name| name == folder) {
            return Err(format!(
                "LOOM_PACKAGES in xtask/src/models.rs names crates/{folder}, which has no code \
                 under `cfg(loom)`; remove it from the list or bring the models back"
            ));
        }
    }
    println!("   {} package(s) with loom models", found.len());
    Ok(())
}

/// Returns whether a test program is compiled only for loom.
fn is_model(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("#![cfg(") && line.contains("loom") && !line.contains("not(loom"))
}

/// Returns the folders under `crates` with a Rust file that mentions `cfg(loom`, or `loom` as the first condition of an `all`,
/// `any` or `not`.
fn crates_with_models(crates: &Path) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    for folder in entries(crates)? {
        if mentions_loom(&folder)? {
            let name = folder.file_name().unwrap_or_default();
            found.push(name.to_string_lossy().into_owned());
        }
    }
    found.sort();
    Ok(found)
}

fn mentions_loom(path: &Path) -> Result<bool, String> {
    if path.is_dir() {
        for entry in entries(path)? {
            if mentions_loom(&entry)? {
                return Ok(true);
            }
        }
        return Ok(false);
    }
    if path.extension().is_none_or(|extension| extension != "rs") {
        return Ok(false);
    }
    let text = text(path)?;
    Ok(["cfg(loom", "cfg(all(loom", "cfg(any(loom", "cfg(not(loom"].iter().any(|mark| text.contains(mark)))
}

fn text(file: &Path) -> Result<String, String> {
    fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}

fn entries(folder: &Path) -> Result<Vec<std::path::PathBuf>, String> {
    fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
        .map_err(|error| format!("{}: {error}", folder.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unlisted_package_with_models_is_a_failure() {
        let error = compare(&["sync".to_owned()], &[]).unwrap_err();
        assert!(error.contains("crates/sync"), "{error}");
    }

    #[test]
    fn a_listed_package_without_models_is_a_failure() {
        let error = compare(&[], &["sync"]).unwrap_err();
        assert!(error.contains("crates/sync"), "{error}");
    }

    #[test]
    fn an_unlisted_test_with_models_is_a_failure() {
        let folder = std::env::temp_dir().join(format!("xtask-model-tests-{}", std::process::id()));
        fs::create_dir_all(folder.join("tests")).unwrap();
        fs::write(folder.join("tests/plain.rs"), "").unwrap();
        fs::write(folder.join("tests/real.rs"), "#![cfg(not(loom))]\n").unwrap();
        fs::write(folder.join("tests/cell.rs"), "#![cfg(all(feature = \"std\", loom))]\n").unwrap();
        fs::create_dir_all(folder.join("tests/list")).unwrap();
        fs::write(folder.join("tests/list/main.rs"), "#![cfg(loom)]\n").unwrap();
        let results = [&[][..], &["cell"], &["cell", "list"]].map(|listed| compare_tests(&folder, listed).is_ok());
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(results, [false, false, true]);
    }

    #[test]
    fn models_are_found_in_nested_files() {
        let crates = std::env::temp_dir().join(format!("xtask-models-{}", std::process::id()));
        let nested = crates.join("ring/src/core");
        fs::create_dir_all(&nested).unwrap();
        fs::create_dir_all(crates.join("plain/src")).unwrap();
        fs::write(nested.join("cell.rs"), "#[cfg(loom)]\nmod model;\n").unwrap();
        fs::write(crates.join("plain/src/lib.rs"), "fn loom() {}\n").unwrap();
        let found = crates_with_models(&crates);
        fs::remove_dir_all(&crates).unwrap();
        assert_eq!(found.unwrap(), ["ring"]);
    }
}
