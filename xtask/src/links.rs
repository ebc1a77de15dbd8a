//! The links of Markdown pages: the file of each relative link must exist, and so must its heading.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns a line for each broken link of `pages` (paths below `root`, with their texts): its position and its target.
pub(crate) fn broken(root: &Path, pages: &[(String, String)]) -> Vec<String> {
    let mut anchors: BTreeMap<PathBuf, Vec<String>> = BTreeMap::new();
    let mut found = Vec::new();
    // Pages below `src` are parts of the crates' documentation, whose links rustdoc checks.
    for (page, text) in pages.iter().filter(|(page, _)| !page.contains("/src/")) {
        for (line, target) in links(text) {
            if let Err(reason) = follow(root, page, target, &mut anchors) {
                found.push(format!("{page}:{line}: the link `{target}` {reason}"));
            }
        }
    }
    found
}

fn follow(root: &Path, page: &str, target: &str, known: &mut BTreeMap<PathBuf, Vec<String>>) -> Result<(), String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return Ok(());
    }
    let (file, anchor) = target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor)));
    let page = root.join(page);
    let path = if file.is_empty() { page } else { page.parent().unwrap_or(root).join(file) };
    if !path.exists() {
        return Err("leads to no file".to_owned());
    }
    let Some(anchor) = anchor.filter(|_| path.extension().is_some_and(|extension| extension == "md")) else {
        return Ok(());
    };
    let path = path.canonicalize().map_err(|error| format!("cannot be followed: {error}"))?;
    if !known.contains_key(&path) {
        let text = fs::read_to_string(&path).map_err(|error| format!("cannot be read: {error}"))?;
        known.insert(path.clone(), headings(&text));
    }
    if known[&path].iter().any(|heading| heading == anchor) { Ok(()) } else { Err("leads to no heading".to_owned()) }
}

/// Returns the lines outside fenced code, with their numbers and without the code between backticks.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    (1..).zip(text.lines()).filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

/// Returns the targets of a page's links, each with its line.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (number, line) in lines(text) {
        // Every other part is between backticks.
        let mut code = false;
        let mut rest = line;
        while let Some(at) = rest.find(['`', ']']) {
            let tail = &rest[at..];
            code ^= tail.starts_with('`');
            rest = &tail[1..];
            if !code
                && let Some(target) = tail.strip_prefix("](")
                && let Some(end) = target.find(')')
            {
                found.push((number, target[..end].trim()));
                rest = &target[end + 1..];
            }
        }
    }
    found
}

/// Returns the anchors of a page: those of its headings, formed as GitHub forms them, and its `<a id="…">`.
fn headings(text: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    for (_, line) in lines(text) {
        let named = line.strip_prefix("<a id=\"").and_then(|rest| rest.split_once('"'));
        anchors.extend(named.map(|(name, _)| name.to_owned()));
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let kept = |letter: &char| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_');
        let anchor: String = visible(title.trim()).to_lowercase().chars().filter(kept).collect();
        let anchor = anchor.replace(' ', "-");
        let numbered = (1..).map(|number| format!("{anchor}-{number}"));
        let free = std::iter::once(anchor.clone()).chain(numbered).find(|name| !anchors.contains(name));
        anchors.extend(free);
    }
    anchors
}

/// Returns the visible text of a heading: a link is replaced by its text.
fn visible(title: &str) -> String {
    let mut shown = String::new();
    let mut rest = title;
    while let Some((text, tail)) = rest.split_once("](") {
        shown.push_str(text);
        rest = tail.split_once(')').map_or("", |(_, after)| after);
    }
    shown + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_in_code_do_not_count() {
        let text = "[a](b.md) `[c](d.md)` ![e](f.svg)\n```\n[g](h.md)\n```\n[i `j`](k.md#l)";
        assert_eq!(links(text), [(1, "b.md"), (1, "f.svg"), (5, "k.md#l")]);
    }

    #[test]
    fn anchors_are_those_of_github() {
        let text =
            "# What's *this*?\n## `read`, `write`\n## [A link](x.md) here\n## Twice\n## Twice\n```\n# no\n```\n#no";
        assert_eq!(headings(text), ["whats-this", "read-write", "a-link-here", "twice", "twice-1"]);
    }

    #[test]
    fn a_link_to_a_missing_file_or_heading_is_broken() {
        let root = crate::root();
        let text = "[ok](README.md) [ok](#here) [ok](https://example.com/x)\n[no](nowhere.md)\n[no](#there)\n# Here";
        let page = ("CONTRIBUTING.md".to_owned(), text.to_owned());
        let folder = std::env::temp_dir().join(format!("millstream-links-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("CONTRIBUTING.md"), text).unwrap();
        fs::copy(root.join("README.md"), folder.join("README.md")).unwrap();
        let found = broken(&folder, &[page]);
        fs::remove_dir_all(&folder).unwrap();
        let expected = [
            "CONTRIBUTING.md:2: the link `nowhere.md` leads to no file",
            "CONTRIBUTING.md:3: the link `#there` leads to no heading",
        ];
        assert_eq!(found, expected);
    }
}
