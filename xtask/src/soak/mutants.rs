//! Planted mistakes, each of which a test must find: the lists of `verify/mutants`.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::Part;

const FOLDER: &str = "verify/mutants";

/// Returns a part for each list.
pub(super) fn parts(root: &Path) -> Result<Vec<Part>, String> {
    let entries = fs::read_dir(root.join(FOLDER)).map_err(|error| format!("{FOLDER}: {error}"))?;
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let python = paths.filter(|path| path.extension().is_some_and(|extension| extension == "py"));
    let mut lists: Vec<String> = python.filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned())).collect();
    lists.retain(|list| list != "__main__");
    lists.sort();
    Ok(lists.into_iter().map(part).collect())
}

fn part(list: String) -> Part {
    Part {
        name: format!("mutants-{list}"),
        group: "mutants",
        about: "every planted mistake of the list is found by a test",
        tools: Vec::new(),
        work: Box::new(move |bench| bench.run(Command::new("python3").args([FOLDER, &list]))),
    }
}
