//! The tests that `docs/security.md` names for its promises: each must exist in the file that the page names, and must
//! not be ignored.

use std::fs;
use std::path::Path;

const PAGE: &str = "docs/security.md";

/// Fails when a test that the page names does not exist.
///
/// # Errors
/// Names the tests that are missing. A page that names no test is an error as well.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    let read = |path: &str| fs::read_to_string(root.join(path)).map_err(|error| format!("cannot read {path}: {error}"));
    let page = read(PAGE)?;
    let named = named(&page);
    if named.is_empty() {
        return Err(format!("{PAGE} names no test; expected `FILE.rs: test` behind each promise"));
    }
    let mut missing = Vec::new();
    for (file, test) in &named {
        if !read(file).is_ok_and(|text| is_test(&text, test)) {
            missing.push(format!("{file}: {test}"));
        }
    }
    if missing.is_empty() {
        println!("   {} tests are named", named.len());
        return Ok(());
    }
    Err(format!("{PAGE} names tests that do not exist:\n  {}", missing.join("\n  ")))
}

/// Returns the files and tests that the page names as `` `FILE.rs: test` ``.
fn named(page: &str) -> Vec<(&str, &str)> {
    page.split('`')
        .skip(1)
        .step_by(2)
        .filter_map(|code| code.split_once(": "))
        .filter(|(file, _)| file.ends_with(".rs"))
        .collect()
}

/// Returns whether `text` has a function of this name with the attribute `#[test]` and without `#[ignore]`.
fn is_test(text: &str, name: &str) -> bool {
    let head = format!("fn {name}(");
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    lines.iter().enumerate().filter(|(_, line)| line.starts_with(&head)).any(|(at, _)| {
        let attributes = lines[..at].iter().rev().take_while(|line| line.starts_with("#[") || line.starts_with("//"));
        let attributes: Vec<_> = attributes.collect();
        attributes.contains(&&"#[test]") && !attributes.iter().any(|line| line.starts_with("#[ignore"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_names_tests_that_are_there() {
        check(crate::root()).unwrap();
    }

    #[test]
    fn files_and_tests_are_found_in_code_only() {
        let page = "A promise (`a/b.rs: holds`). `x = 1` and `c.toml: no`; b.rs: none.\nAnother `d.rs: too`";
        assert_eq!(named(page), [("a/b.rs", "holds"), ("d.rs", "too")]);
    }

    #[test]
    fn a_function_that_is_no_test_or_is_ignored_does_not_count() {
        let text = "#[test]\n#[cfg(unix)]\nfn one() {}\nfn two() {}\n#[test]\n#[ignore = \"slow\"]\nfn three() {}";
        assert_eq!(["one", "two", "three", "on"].map(|name| is_test(text, name)), [true, false, false, false]);
    }
}
