//! Randomised tests use the seed of the run, so that the test command is deterministic.

use std::fs;
use std::path::Path;

use crate::members;

/// The package that supplies the seed.
pub(crate) const PACKAGE: &str = "millstream-verify-random";

/// Fails when a file uses proptest without the configuration that supplies the seed of the run.
///
/// # Errors
/// Names the files.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    let mut unseeded = Vec::new();
    for member in members::all(root)?.iter().filter(|member| member.short != "xtask") {
        for folder in ["src", "tests"] {
            collect(&member.folder.join(folder), &mut unseeded)?;
        }
    }
    if unseeded.is_empty() {
        return Ok(());
    }
    let list = unseeded.join("\n  ");
    Err(format!(
        "proptest draws its own seed in these files:\n  {list}\n\
         add `#![proptest_config(cases(256))]` with `use millstream_verify_random::cases;`"
    ))
}

/// Adds the files below `folder` that run properties without the seed of the run.
fn collect(folder: &Path, unseeded: &mut Vec<String>) -> Result<(), String> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Ok(());
    };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.is_dir() {
            collect(&path, unseeded)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            if is_unseeded(&text) {
                unseeded.push(path.display().to_string());
            }
        }
    }
    Ok(())
}

fn is_unseeded(text: &str) -> bool {
    let mut properties = text.split("proptest! {").skip(1);
    properties.any(|body| !body.trim_start().starts_with("#![proptest_config(cases("))
        || (text.contains("TestRunner::new(") && !text.contains("cases("))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_property_without_the_seed_of_the_run_is_found() {
        assert!(is_unseeded("proptest! {\n    #[test]"));
        assert!(is_unseeded("proptest! {\n    #![proptest_config(ProptestConfig::with_cases(20))]"));
        assert!(is_unseeded("proptest! {\n    #![proptest_config(cases(20))]\n}\nproptest! {\n    #[test]"));
        assert!(is_unseeded("TestRunner::new(ProptestConfig::default())"));
        assert!(!is_unseeded("proptest! {\n    #![proptest_config(cases(20))]"));
        assert!(!is_unseeded("TestRunner::new(cases(20))"));
        assert!(!is_unseeded("ProptestConfig { max_shrink_time: 1, ..cases(600) }; TestRunner::new(config)"));
    }
}
