//! The words after the options: a program with its arguments, and perhaps items after `:::`.
//!
//! An argument is a template, as in a flow file, with the shorthands that users of `parallel` and `xargs` know. Braces
//! that cannot be a field stay as they are, because `awk '{print $1}'` and `${HOME}` are more common on a command line
//! than doubled braces.

use std::ffi::OsString;

use super::script;
use crate::args::Takes;
use millstream_command::screen::text::printable;
use millstream_runner::file::template::Template;

/// The word between the program and the items.
const ITEMS: &str = ":::";

/// Shorthands for fields.
const SHORTHANDS: [(&str, &str); 4] = [("", "path"), ("/", "name"), ("//", "dir"), ("/.", "stem")];

/// A program with its arguments, and the items that the command line names.
#[derive(Debug)]
pub(super) struct Command {
    /// Templates in the syntax of flow files; the first is the program.
    pub(super) argv: Vec<String>,
    /// The items after `:::`; `None` without `:::`.
    pub(super) items: Option<Vec<OsString>>,
}

/// The reason why the words are not a command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum WordsError {
    /// There is no program before `:::`.
    #[error("no program before `:::`: write `millstream each PROGRAM ARGUMENT… ::: ITEM…`")]
    NoProgram,
    /// There is a second `:::`.
    #[error("a second `:::`: `each` takes one list of items")]
    SecondList,
    /// `::::` or a similar separator of `parallel`.
    #[error("`{0}` is not an option of `each`: `--lines FILE` reads items from a file, one per line")]
    OtherList(String),
    /// A word is not UTF-8.
    #[error("the argument `{0}` is not UTF-8; items may be any bytes, the program's own words may not")]
    NotText(String),
    /// A brace opens no field.
    #[error("in the argument `{word}`: {message}; {help}")]
    Template {
        /// The word.
        word: String,
        /// The mistake.
        message: String,
        /// The remedy.
        help: String,
    },
    /// A field of one item, although the program takes several items.
    #[error(
        "`{written}` in the argument `{word}` stands for one item, but `-N` gives the program several: write `{{}}` as an argument of its own for all of them, or leave `-N` out"
    )]
    OfOneItem {
        /// The field, as it was written.
        written: String,
        /// The word.
        word: String,
    },
    /// Two sources of items are named.
    #[error("items come from `:::` and from `{0}`: leave one of them out")]
    TwoSources(&'static str),
}

impl Command {
    /// Reads the words of a program; `takes` says how many items the program takes at once. With `shell`, the first
    /// word is a script.
    ///
    /// # Errors
    /// There is no program, or a word cannot be a template.
    pub(super) fn read(words: &[OsString], takes: Takes, shell: bool) -> Result<Self, WordsError> {
        let mut lists = words.split(|word| word == ITEMS);
        let program = lists.next().unwrap_or_default();
        let items = lists.next().map(<[OsString]>::to_vec);
        if lists.next().is_some() {
            return Err(WordsError::SecondList);
        }
        if let Some(other) = program.iter().find(|word| ["::::", ":::+", "::::+"].iter().any(|list| *word == list)) {
            return Err(WordsError::OtherList(other.to_string_lossy().into_owned()));
        }
        if program.is_empty() {
            return Err(WordsError::NoProgram);
        }
        let mut argv = program.iter().map(argument).collect::<Result<Vec<_>, _>>()?;
        let has_field = |text: &String| Template::parse(text).is_ok_and(|template| template.fields().next().is_some());
        let item = if takes == Takes::Item { "{path}" } else { "{items}" };
        if takes == Takes::Items
            && let Some((word, written)) =
                program.iter().find_map(|word| Some((word, part_of_one_item(word.to_str()?)?)))
        {
            let word = printable(&word.to_string_lossy()).into_owned();
            return Err(WordsError::OfOneItem { written, word });
        }
        if takes != Takes::Item {
            argv.iter_mut().filter(|word| *word == "{path}").for_each(|word| item.clone_into(word));
        }
        if takes == Takes::Input {
            if items.is_some() {
                return Err(WordsError::TwoSources("--pipe"));
            }
        } else if !argv.iter().any(has_field) {
            argv.push(item.to_owned());
        }
        if shell && takes == Takes::Item {
            let (script, values) = script::with_references(&argv[0], argv.len() - 1);
            argv[0] = script;
            argv.extend(values);
        }
        Ok(Self { argv, items })
    }

    /// The name of the program, which is also the name of the run.
    pub(super) fn name(&self) -> String {
        let program = Template::parse(&self.argv[0]).ok().and_then(|word| word.constant().map(<[u8]>::to_vec));
        let program = program.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
        // The name of a script is its first word.
        let name = program.split_whitespace().next().unwrap_or_default().rsplit('/').next().unwrap_or_default();
        let name: String = name.chars().filter(|c| !c.is_control()).collect();
        if name.is_empty() { "each".to_owned() } else { name }
    }
}

/// One word as a template of a flow file.
fn argument(word: &OsString) -> Result<String, WordsError> {
    let word = word.to_str().ok_or_else(|| WordsError::NotText(printable(&word.to_string_lossy()).into_owned()))?;
    let text = template_of(word);
    match Template::parse(&text) {
        Ok(_) => Ok(text),
        Err(error) => {
            Err(WordsError::Template { word: printable(word).into_owned(), message: error.message, help: error.help })
        }
    }
}

/// The word with shorthands spelled out, and with doubled braces where they cannot belong to a field.
pub(super) fn template_of(word: &str) -> String {
    let mut text = String::with_capacity(word.len());
    let mut rest = word;
    while let Some(at) = rest.find(['{', '}']) {
        let (before, braces) = rest.split_at(at);
        text.push_str(before);
        let inner = braces.strip_prefix('{').and_then(|inner| inner.split_once('}')).map(|(inner, _)| inner);
        let is_variable = text.ends_with('$');
        match inner {
            Some(inner) if !is_variable && is_field(inner) => {
                let long = SHORTHANDS.iter().find(|(short, _)| *short == inner).map_or(inner, |(_, long)| long);
                text.extend(["{", long, "}"]);
                rest = &braces[inner.len() + 2..];
            }
            _ => {
                // In a flow file, a literal brace is doubled.
                let brace = &braces[..1];
                text.extend([brace, brace]);
                let doubled = braces[1..].starts_with(brace);
                rest = &braces[if doubled { 2 } else { 1 }..];
            }
        }
    }
    text.push_str(rest);
    text
}

/// The first field in `word` that belongs to one item, as it is written there. A word that is nothing but `{}` is
/// allowed, since it can represent several items.
fn part_of_one_item(word: &str) -> Option<String> {
    let is_part = |text: &str| {
        let template = Template::parse(&template_of(text));
        template.is_ok_and(|template| template.fields().any(|(field, _)| field.is_of_one_item()))
    };
    if template_of(word) == "{path}" || !is_part(word) {
        return None;
    }
    let written = word.match_indices('{').filter_map(|(at, _)| word[at..].find('}').map(|end| &word[at..=at + end]));
    written.filter(|written| is_part(written)).map(|written| printable(written).into_owned()).next()
}

/// Whether the text between braces is a field or a misspelled field.
fn is_field(inner: &str) -> bool {
    SHORTHANDS.iter().any(|(short, _)| *short == inner)
        || inner.starts_with(|c: char| c.is_ascii_lowercase())
            && inner.chars().all(|c| c.is_ascii_alphanumeric() || "_-.:[]".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &[&str]) -> Result<Command, WordsError> {
        Command::read(&words.iter().map(OsString::from).collect::<Vec<_>>(), Takes::Item, false)
    }

    #[test]
    fn shorthands_and_fields_are_templates_and_other_braces_are_text() {
        for (word, text) in [
            ("{}", "{path}"),
            ("out/{/.}.png", "out/{stem}.png"),
            ("{//}/{/}", "{dir}/{name}"),
            ("{host}", "{host}"),
            ("{json:path}", "{json:path}"),
            ("{blake3[..2]}", "{blake3[..2]}"),
            ("{print $1}", "{{print $1}}"),
            ("${HOME}/${x}", "${{HOME}}/${{x}}"),
            ("{a,b}", "{{a,b}}"),
            ("{{line}}", "{{line}}"),
            ("}{", "}}{{"),
            ("{", "{{"),
        ] {
            assert_eq!(template_of(word), text, "{word}");
            assert!(Template::parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn a_program_without_a_field_gets_the_item_as_its_last_argument() {
        assert_eq!(read(&["gzip", "-9"]).unwrap().argv, ["gzip", "-9", "{path}"]);
        assert_eq!(read(&["mv", "{}", "old/"]).unwrap().argv, ["mv", "{path}", "old/"]);
    }

    #[test]
    fn items_follow_three_colons() {
        let command = read(&["echo", ":::", "a", "-b", "{}"]).unwrap();
        assert_eq!(command.argv, ["echo", "{path}"]);
        assert_eq!(command.items.unwrap(), ["a", "-b", "{}"]);
        assert!(read(&["echo"]).unwrap().items.is_none());
        assert_eq!(read(&["echo", ":::"]).unwrap().items.unwrap().len(), 0);
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(read(&[":::", "a"]).unwrap_err(), WordsError::NoProgram);
        assert_eq!(read(&["a", ":::", "b", ":::", "c"]).unwrap_err(), WordsError::SecondList);
        let error = read(&["echo", "{nmae}"]).unwrap_err().to_string();
        assert!(error.contains("`{nmae}`") && error.contains("did you mean `{name}`?"), "{error}");
        let error = read(&["echo", "::::", "list"]).unwrap_err().to_string();
        assert!(error.contains("--lines"), "{error}");
    }

    #[test]
    fn the_run_has_the_name_of_its_program() {
        assert_eq!(read(&["/usr/bin/convert", "x"]).unwrap().name(), "convert");
        assert_eq!(read(&["{}"]).unwrap().name(), "each");
        assert_eq!(read(&["wc -l < \"$1\"", "{}"]).unwrap().name(), "wc");
    }
}
