//! `--shell`: fields in a script become parameters of the shell.
//!
//! The value of a field is data and must not become code, whatever bytes a file name has. So each field is replaced by
//! a reference such as `"${1}"`, and the shell gets the value as an argument. A reference is expanded once, and the
//! shell never reads its value as a script. The quotes between which the field stands in the script determine how the
//! reference itself is quoted, so that the value stays one word.

use millstream_runner::file::template::Template;

/// The context of a character in a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    /// `'…'`
    Single,
    /// `"…"`
    Double,
    /// `$(…)`, or parentheses within one.
    Command,
}

/// Replaces the fields in the script `text` by references. Returns the script and the replaced fields, each as the
/// template of an argument. The shell gets these arguments after `others` other arguments.
pub(super) fn with_references(text: &str, others: usize) -> (String, Vec<String>) {
    let Ok(template) = Template::parse(text) else { return (text.to_owned(), Vec::new()) };
    let mut fields: Vec<String> = Vec::new();
    let (mut script, mut within, mut at) = (String::with_capacity(text.len()), Vec::new(), 0);
    for (_, range) in template.fields() {
        script.push_str(&text[at..range.start]);
        follow(&text[at..range.start], &mut within);
        let written = text[range.clone()].to_owned();
        let known = fields.iter().position(|known| *known == written);
        let number = others
            + 1
            + known.unwrap_or_else(|| {
                fields.push(written);
                fields.len() - 1
            });
        // The script is a template again, in which a literal brace is doubled.
        script += &match within.last() {
            None | Some(Within::Command) => format!("\"${{{{{number}}}}}\""),
            Some(Within::Double) => format!("${{{{{number}}}}}"),
            Some(Within::Single) => format!("'\"${{{{{number}}}}}\"'"),
        };
        at = range.end;
    }
    script.push_str(&text[at..]);
    (script, fields)
}

/// Follows the quotes and parentheses in `part` of a script; `within` is the context before the part, and then the
/// context after it.
fn follow(part: &str, within: &mut Vec<Within>) {
    let mut characters = part.chars().peekable();
    while let Some(character) = characters.next() {
        match (within.last(), character) {
            (Some(Within::Single), '\'') | (Some(Within::Double), '"') | (Some(Within::Command), ')') => {
                within.pop();
            }
            (Some(Within::Single), _) => {}
            (_, '\\') => drop(characters.next()),
            (_, '$') if characters.peek() == Some(&'(') => {
                characters.next();
                within.push(Within::Command);
            }
            (Some(Within::Double), _) => {}
            (_, '\'') => within.push(Within::Single),
            (_, '"') => within.push(Within::Double),
            (Some(Within::Command), '(') => within.push(Within::Command),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::with_references;

    #[test]
    fn fields_become_references_that_stay_one_word() {
        for (text, script, fields) in [
            ("wc -l < {path}", r#"wc -l < "${{1}}""#, &["{path}"][..]),
            (r#"echo "a {name} b""#, r#"echo "a ${{1}} b""#, &["{name}"]),
            ("echo 'a {name} b'", r#"echo 'a '"${{1}}"' b'"#, &["{name}"]),
            (r#"x="$(basename {path} ')')" {path}"#, r#"x="$(basename "${{1}}" ')')" "${{1}}""#, &["{path}"]),
            (r#"echo \" {name} {ext}"#, r#"echo \" "${{1}}" "${{2}}""#, &["{name}", "{ext}"]),
            (r#"echo it\'s {name}"#, r#"echo it\'s "${{1}}""#, &["{name}"]),
            ("echo ${{HOME}}", "echo ${{HOME}}", &[]),
        ] {
            assert_eq!(with_references(text, 0), (script.to_owned(), fields.iter().map(|f| (*f).to_owned()).collect()));
        }
        assert_eq!(with_references("{path}", 2).0, r#""${{3}}""#);
    }
}
