//! The names of the files that a walk includes.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;

use globset::{GlobBuilder, GlobMatcher};

/// Patterns of file names, such as `*.jpg`. Without a pattern, every name matches.
#[derive(Debug, Clone, Default)]
pub struct Names {
    patterns: Vec<GlobMatcher>,
}

impl Names {
    /// Reads one pattern.
    ///
    /// # Errors
    /// The pattern is empty, has a slash, or is not well formed.
    pub fn pattern(text: &str) -> Result<GlobMatcher, String> {
        if text.is_empty() {
            return Err("an empty pattern matches no name; write for example `*.jpg`".to_owned());
        }
        if let Some((_, name)) = text.rsplit_once('/') {
            return Err(format!("a name has no `/`: write `{name}` here, and name the folder as the one to walk"));
        }
        let glob = GlobBuilder::new(text).backslash_escape(true).build();
        Ok(glob.map_err(|error| format!("not a pattern of names: {}", error.kind()))?.compile_matcher())
    }

    /// Whether every name matches.
    pub fn is_all(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Whether a pattern matches the last component of the path.
    pub fn matches(&self, path: &[u8]) -> bool {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        self.is_all() || self.patterns.iter().any(|pattern| pattern.is_match(OsStr::from_bytes(name)))
    }
}

impl From<Vec<GlobMatcher>> for Names {
    fn from(patterns: Vec<GlobMatcher>) -> Self {
        Self { patterns }
    }
}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, pattern) in self.patterns.iter().enumerate() {
            write!(f, "{}{}", if index == 0 { "" } else { " or " }, pattern.glob())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Names;

    fn names(patterns: &[&str]) -> Names {
        patterns.iter().map(|pattern| Names::pattern(pattern).unwrap()).collect::<Vec<_>>().into()
    }

    #[test]
    fn a_pattern_is_about_the_last_component_alone() {
        for (patterns, path, matches) in [
            (&["*.jpg"][..], &b"a/b.jpg"[..], true),
            (&["*.jpg"], b"a.jpg/b", false),
            (&["*.jpg"], b"a/.jpg", true),
            (&["*.jpg"], b"a/b.JPG", false),
            (&["*.[jJ][pP][gG]"], b"a/b.JPG", true),
            (&["*.{jpg,png}"], b"b.png", true),
            (&["*.jpg", "README"], b"x/README", true),
            (&["*.jpg", "README"], b"x/README.txt", false),
            (&["?.txt"], b"ab.txt", false),
            (&["\\*"], b"*", true),
            (&["*.txt"], b"a/\xff.txt", true),
            (&[], b"anything", true),
        ] {
            assert_eq!(names(patterns).matches(path), matches, "{patterns:?} {}", path.escape_ascii());
        }
    }

    #[test]
    fn a_pattern_that_no_name_could_match_is_a_mistake() {
        for (pattern, reason) in [
            ("", "an empty pattern"),
            ("photos/*.jpg", "write `*.jpg` here"),
            ("[a", "not a pattern of names: unclosed character class"),
            ("{a,b", "not a pattern of names: unclosed alternate"),
        ] {
            let error = Names::pattern(pattern).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }
}
