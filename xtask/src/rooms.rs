//! Checks which files of `crates/flow/src` import which others, and whether the parts of the engine are independent. A *room* is
//! a file or a folder directly below `engine`.
//!
//! The check reads paths (in `use` and inline) as text and resolves them to files, without macros, aliases or types;
//! test modules do not count. It rejects
//! - a cycle of imports among files, or among the engine's parts;
//! - an import through a parent: `lib.rs` and `mod.rs` only declare modules and re-export for other crates;
//! - a part that imports a step, which composes parts;
//! - more than eight fields in the struct that composes the parts, and an `impl` of it inside a part;
//! - a struct of a part with both private fields and fields that are visible outside the part. (A struct whose fields
//!   are all visible is a plain value, which parts pass to each other.)

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// The parts that the state composes: folders or files of `engine`.
const PARTS: [&str; 8] = ["units", "stages", "grants", "intake", "crew", "ledger", "timers", "life"];

/// The files that every part may import: plain values.
const WORDS: [&str; 5] = ["claims", "pace", "settings", "histogram", "identity"];

/// The only part that may import the code that runs without the mutex: a worker's turn stores the results of that code.
const KNOWS_RUN: &str = "crew";

/// The maximum number of fields of the composing struct.
const MAX_FIELDS: usize = 8;

/// Prints the rooms and all imports between them, and checks them.
pub(crate) fn show(root: &Path) -> Result<(), String> {
    let house = House::read(&root.join("crates/flow/src"))?;
    for (from, targets) in house.arrows() {
        let targets: Vec<&str> = targets.iter().map(String::as_str).collect();
        println!("{from} -> {}", targets.join(", "));
    }
    house.check()
}

/// Checks the rooms, as a step of `cargo xtask test`.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    House::read(&root.join("crates/flow/src"))?.check()
}

/// The source files of a crate, by their path below `src`, without comments and test modules.
struct House {
    files: BTreeMap<String, String>,
}

impl House {
    fn read(src: &Path) -> Result<Self, String> {
        let mut files = BTreeMap::new();
        collect(src, "", &mut files)?;
        Ok(House { files: files.into_iter().map(|(path, text)| (path, code_of(&text))).collect() })
    }

    /// Returns the file of a module, given as its path from the crate's root.
    fn file_of(&self, module: &[&str]) -> Option<String> {
        if module.is_empty() {
            return Some("lib.rs".to_owned());
        }
        let path = module.join("/");
        [format!("{path}.rs"), format!("{path}/mod.rs")].into_iter().find(|file| self.files.contains_key(file))
    }

    /// Returns the paths in a file, relative to the crate's root.
    fn paths_in(&self, file: &str) -> Vec<Vec<String>> {
        let here = module_of(file);
        paths(&self.files[file]).into_iter().filter_map(|path| absolute(&here, &path)).collect()
    }

    /// Returns the file that defines the last module of a path, and whether the path continues to an item of that
    /// module.
    fn resolve(&self, path: &[String]) -> Option<(String, bool)> {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        (0..=path.len()).rev().find_map(|n| self.file_of(&path[..n]).map(|file| (file, n < path.len())))
    }

    /// Returns, for each file, the files that it imports.
    fn arrows(&self) -> BTreeMap<String, BTreeSet<String>> {
        let arrows = self.files.keys().map(|file| {
            let paths = self.paths_in(file);
            let targets = paths.iter().filter_map(|path| self.resolve(path)).map(|(target, _)| target);
            (file.clone(), targets.filter(|target| target != file).collect())
        });
        // A crate's root and parent modules re-export their children. These imports, from a parent to its children, do
        // not count.
        arrows.filter(|(file, _): &(String, _)| !is_parent(file)).collect()
    }

    fn check(&self) -> Result<(), String> {
        let arrows = self.arrows();
        let mut faults = Vec::new();
        for cycle in cycles(&arrows) {
            faults.push(format!("a cycle of imports: {}", cycle.join(", ")));
        }
        let between = arrows_between_parts(&arrows);
        for cycle in cycles(&between) {
            faults.push(format!("a cycle of parts: {}", cycle.join(", ")));
        }
        faults.extend(self.imports_through_parents());
        faults.extend(imports_of_steps(&arrows));
        let fields = self.fields_of_state();
        if fields.len() > MAX_FIELDS {
            faults.push(format!("engine/state.rs: State has {} fields; the maximum is {MAX_FIELDS}", fields.len()));
        }
        let impls: Vec<&String> =
            self.files.iter().filter(|(_, text)| has_impl_of_state(text)).map(|(f, _)| f).collect();
        for file in impls.iter().filter(|file| part_of(file).is_some()) {
            faults.push(format!("{file}: a part has an `impl State`, which belongs to a step"));
        }
        for (file, text) in self.files.iter().filter(|(file, _)| part_of(file).is_some()) {
            faults.extend(mixed_structs(text).iter().map(|name| {
                format!("{file}: `{name}` shows some fields beyond its part and keeps others: give it methods")
            }));
        }
        let count: usize = arrows.values().map(BTreeSet::len).sum();
        println!("   {} files, {count} arrows between them; State: {} fields", arrows.len(), fields.len());
        println!("   `impl State` in {} files: {}", impls.len(), list(impls.iter().map(|file| file.as_str())));
        for (part, targets) in &between {
            println!("   {part} -> {}", list(targets.iter().map(String::as_str)));
        }
        if faults.is_empty() { Ok(()) } else { Err(faults.join("\n      ")) }
    }

    fn imports_through_parents(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for file in self.files.keys().filter(|file| !is_parent(file)) {
            for path in self.paths_in(file) {
                if let Some((target, true)) = self.resolve(&path).filter(|(target, _)| is_parent(target)) {
                    faults.push(format!("{file}: imports `{}` through {target}", path.join("::")));
                }
            }
        }
        faults
    }

    fn fields_of_state(&self) -> Vec<String> {
        let text = self.files.get("engine/state.rs").map_or("", String::as_str);
        let state = structs(text).into_iter().find(|(name, _)| name == "State");
        state.map_or(Vec::new(), |(_, fields)| fields.into_iter().map(|(name, _)| name).collect())
    }
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

fn is_parent(file: &str) -> bool {
    file == "lib.rs" || file.ends_with("mod.rs")
}

/// Returns the room of a file in the engine: the folder or file directly below `engine`.
fn room_of(file: &str) -> Option<&str> {
    let below = file.strip_prefix("engine/")?;
    Some(below.split('/').next().unwrap_or(below).trim_end_matches(".rs"))
}

fn part_of(file: &str) -> Option<&str> {
    room_of(file).filter(|room| PARTS.contains(room))
}

fn arrows_between_parts(arrows: &BTreeMap<String, BTreeSet<String>>) -> BTreeMap<String, BTreeSet<String>> {
    let mut between: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (from, targets) in arrows {
        let Some(part) = part_of(from) else { continue };
        let others = targets.iter().filter_map(|target| part_of(target)).filter(|other| *other != part);
        between.entry(part.to_owned()).or_default().extend(others.map(str::to_owned));
    }
    between
}

fn imports_of_steps(arrows: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let mut faults = Vec::new();
    for (from, targets) in arrows.iter().filter(|(from, _)| part_of(from).is_some()) {
        for target in targets {
            let may_import = |room: &str| {
                PARTS.contains(&room) || WORDS.contains(&room) || (room == "run" && part_of(from) == Some(KNOWS_RUN))
            };
            if !room_of(target).is_none_or(may_import) {
                faults.push(format!("{from}: a part imports {target}, which composes parts"));
            }
        }
    }
    faults
}

fn has_impl_of_state(text: &str) -> bool {
    text.lines().any(|line| line.starts_with("impl State ") || line.starts_with("impl State{"))
}

/// Returns the groups of nodes that reach each other.
fn cycles(arrows: &BTreeMap<String, BTreeSet<String>>) -> Vec<Vec<String>> {
    let reached = |from: &String| {
        let mut seen = BTreeSet::new();
        let mut open: Vec<&String> = arrows.get(from).into_iter().flatten().collect();
        while let Some(next) = open.pop() {
            if seen.insert(next.clone()) {
                open.extend(arrows.get(next).into_iter().flatten());
            }
        }
        seen
    };
    let reach: BTreeMap<&String, BTreeSet<String>> = arrows.keys().map(|node| (node, reached(node))).collect();
    let mut groups = BTreeSet::new();
    for (&node, seen) in reach.iter().filter(|(node, seen)| seen.contains(**node)) {
        let group = seen.iter().filter(|other| reach.get(other).is_some_and(|back| back.contains(node)));
        groups.insert(group.cloned().collect::<Vec<_>>());
    }
    groups.into_iter().collect()
}

// ---- text ---------------------------------------------------------------------------------------------

fn collect(folder: &Path, below: &str, files: &mut BTreeMap<String, String>) -> Result<(), String> {
    let fault = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in fs::read_dir(folder).map_err(fault)? {
        let path = entry.map_err(fault)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let below = if below.is_empty() { name } else { format!("{below}/{name}") };
        if path.is_dir() {
            collect(&path, &below, files)?;
        } else if below.ends_with(".rs") {
            let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            files.insert(below, text);
        }
    }
    Ok(())
}

/// Returns the text without comments and test modules.
fn code_of(text: &str) -> String {
    let mut code = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim() == "#[cfg(test)]" {
            // The following item ends with a brace in the same column, or at the end of its own line.
            let indent = line.len() - line.trim_start().len();
            let end = format!("{}}}", " ".repeat(indent));
            let first = lines.next().unwrap_or_default();
            if first.trim_end().ends_with('{') {
                lines.by_ref().find(|line| *line == end);
            }
            continue;
        }
        code.push_str(line.split("//").next().unwrap_or_default());
        code.push('\n');
    }
    code
}

/// Returns the module that a file defines.
fn module_of(file: &str) -> Vec<String> {
    let path = file.trim_end_matches(".rs");
    let path = path.strip_suffix("/mod").unwrap_or(path);
    if path == "lib" { Vec::new() } else { path.split('/').map(str::to_owned).collect() }
}

/// Resolves a path that begins with `crate`, `self` or `super` to a path from the crate's root.
fn absolute(here: &[String], path: &[String]) -> Option<Vec<String>> {
    let mut base = here.to_vec();
    let mut rest = path;
    match rest.first().map(String::as_str) {
        Some("crate") => {
            base.clear();
            rest = &rest[1..];
        }
        Some("self") => rest = &rest[1..],
        Some("super") => {}
        _ => return None,
    }
    while rest.first().is_some_and(|step| step == "super") {
        base.pop()?;
        rest = &rest[1..];
    }
    base.extend(rest.iter().cloned());
    Some(base)
}

/// Returns all paths that begin with `crate::`, `self::` or `super::`, with the lists in braces of `use` expanded. A
/// visibility such as `pub(in crate::engine)` does not count.
fn paths(text: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("::") {
        let before = &text[..at];
        let word = before.len() - before.chars().rev().take_while(|c| c.is_alphanumeric() || *c == '_').count();
        let begins = matches!(&before[word..], "crate" | "self" | "super");
        let continues = before[..word].ends_with("::") || before[..word].ends_with("in ");
        // An indented `use super::…` is in an inline module, whose parent is the file itself.
        let in_inline_module = &before[word..] == "super" && before[..word].ends_with("    use ");
        if begins && !continues && !in_inline_module {
            expand(&text[word..], &mut Vec::new(), &mut found);
        }
    }
    found
}

/// Adds the paths of a tree of imports, and returns the remaining text.
fn expand<'a>(mut text: &'a str, prefix: &mut Vec<String>, found: &mut Vec<Vec<String>>) -> &'a str {
    let depth = prefix.len();
    loop {
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
        prefix.push(text[..end].to_owned());
        text = &text[end..];
        let Some(rest) = text.strip_prefix("::") else { break };
        text = rest;
        if let Some(list) = text.strip_prefix('{') {
            text = list;
            loop {
                text = text.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
                if let Some(rest) = text.strip_prefix('}') {
                    prefix.truncate(depth);
                    return rest;
                }
                if text.is_empty() {
                    return text;
                }
                let before = text.len();
                text = expand(text, prefix, found);
                if text.len() == before {
                    return text;
                }
            }
        }
        if !text.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            // A turbofish or a glob ends the path.
            break;
        }
    }
    // `self` in a list means the prefix itself.
    let mut path = prefix.clone();
    if depth > 0 && path.last().is_some_and(|last| last == "self") {
        path.pop();
    }
    found.push(path);
    prefix.truncate(depth);
    text
}

/// Returns the structs with named fields, each field with its visibility.
fn structs(text: &str) -> Vec<(String, Vec<(String, String)>)> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some((_, after)) = line.split_once("struct ").filter(|_| !line.starts_with(' ') && line.ends_with('{'))
        else {
            continue;
        };
        let name = after.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default().to_owned();
        let mut fields = Vec::new();
        for field in lines.by_ref().take_while(|line| *line != "}") {
            let field = field.trim();
            let (visibility, rest) = match field.strip_prefix("pub") {
                Some(rest) if rest.starts_with('(') => {
                    let (scope, rest) = rest.split_once(')').unwrap_or((rest, ""));
                    (format!("pub{scope})"), rest.trim())
                }
                Some(rest) if rest.starts_with(' ') => ("pub".to_owned(), rest.trim()),
                _ => (String::new(), field),
            };
            if let Some((name, _)) = rest.split_once(": ").filter(|(name, _)| is_word(name)) {
                fields.push((name.to_owned(), visibility));
            }
        }
        found.push((name, fields));
    }
    found
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// Returns the structs with both private fields and fields that are visible in the whole crate.
fn mixed_structs(text: &str) -> Vec<String> {
    let is_wide = |visibility: &str| matches!(visibility, "pub" | "pub(crate)");
    let mixed = structs(text).into_iter().filter(|(_, fields)| {
        let wide = fields.iter().filter(|(_, visibility)| is_wide(visibility)).count();
        wide > 0 && wide < fields.len()
    });
    mixed.map(|(name, _)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn house(files: &[(&str, &str)]) -> House {
        House { files: files.iter().map(|(path, text)| ((*path).to_owned(), code_of(text))).collect() }
    }

    fn joined(paths: &[Vec<String>]) -> Vec<String> {
        paths.iter().map(|path| path.join("::")).collect()
    }

    #[test]
    fn lists_of_imports_are_taken_apart() {
        let text = "use crate::a::{B, c::{self, D}, e::F};\nfn f() { super::g::h(); x.iter::<u8>() }";
        assert_eq!(
            joined(&paths(text)),
            ["crate::a::B", "crate::a::c", "crate::a::c::D", "crate::a::e::F", "super::g::h"]
        );
    }

    #[test]
    fn a_visibility_is_no_path() {
        assert!(paths("pub(in crate::engine::units) x: u8,").is_empty());
    }

    #[test]
    fn comments_and_tests_do_not_count() {
        let text = "// use crate::a::B;\nuse crate::c::D;\n#[cfg(test)]\nmod tests {\n    use crate::e::F;\n}\nuse crate::g::H;\n";
        assert_eq!(joined(&paths(&code_of(text))), ["crate::c::D", "crate::g::H"]);
    }

    #[test]
    fn paths_lead_to_the_defining_file() {
        let house = house(&[
            ("lib.rs", ""),
            ("a.rs", "use crate::b::c::D;\nuse crate::b::E;"),
            ("b/mod.rs", ""),
            ("b/c.rs", ""),
        ]);
        assert_eq!(house.arrows()["a.rs"].iter().collect::<Vec<_>>(), ["b/c.rs", "b/mod.rs"]);
        assert_eq!(house.imports_through_parents(), ["a.rs: imports `b::E` through b/mod.rs"]);
    }

    #[test]
    fn a_cycle_is_found_and_a_chain_is_not() {
        let house = house(&[
            ("lib.rs", "pub use a::A;"),
            ("a.rs", "use crate::b::B;"),
            ("b.rs", "use super::c::C;"),
            ("c.rs", "use crate::a::A;"),
            ("d.rs", "use crate::a::A;"),
        ]);
        assert_eq!(cycles(&house.arrows()), [["a.rs", "b.rs", "c.rs"]]);
    }

    #[test]
    fn a_part_must_not_import_a_step() {
        let house = house(&[
            ("engine/units/row.rs", "use crate::engine::state::State;\nuse crate::engine::claims::Ask;"),
            ("engine/state.rs", ""),
            ("engine/claims.rs", ""),
        ]);
        let faults = imports_of_steps(&house.arrows());
        assert!(faults.len() == 1 && faults[0].contains("engine/state.rs"), "{faults:?}");
    }

    #[test]
    fn only_the_crew_may_import_what_runs_without_the_mutex() {
        let house = house(&[
            ("engine/crew/turn.rs", "use crate::engine::run::brood::Brood;"),
            ("engine/stages/stage.rs", "use crate::engine::run::brood::Brood;"),
            ("engine/run/brood.rs", ""),
        ]);
        let faults = imports_of_steps(&house.arrows());
        assert!(faults.len() == 1 && faults[0].contains("engine/stages/stage.rs"), "{faults:?}");
    }

    #[test]
    fn parts_that_use_each_other_are_a_cycle_even_where_their_files_are_not() {
        let house = house(&[
            ("engine/units/a.rs", "use crate::engine::crew::b::B;"),
            ("engine/crew/b.rs", ""),
            ("engine/crew/c.rs", "use crate::engine::units::d::D;"),
            ("engine/units/d.rs", ""),
        ]);
        assert!(cycles(&house.arrows()).is_empty());
        assert_eq!(cycles(&arrows_between_parts(&house.arrows())), [["crew", "units"]]);
    }

    #[test]
    fn a_struct_that_shows_only_some_fields_is_a_fault() {
        let text = "pub(crate) struct Value {\n    pub(crate) a: u8,\n    pub(crate) b: u8,\n}\n\
                    struct Kept<T> {\n    a: u8,\n    pub(super) b: T,\n}\n\
                    pub(crate) struct Mixed {\n    a: u8,\n    pub(crate) b: u8,\n}\n";
        assert_eq!(mixed_structs(text), ["Mixed"]);
        assert_eq!(structs(text)[1].1, [("a".to_owned(), String::new()), ("b".to_owned(), "pub(super)".to_owned())]);
    }

    #[test]
    fn the_fields_of_the_state_are_counted() {
        let house = house(&[(
            "engine/state.rs",
            "pub(crate) struct State {\n    pub(super) units: Units,\n    pub(super) life: Life,\n}\n",
        )]);
        assert_eq!(house.fields_of_state(), ["units", "life"]);
    }
}
