//! Templates for paths of files. Data in such a path cannot lead out of the folder that the flow's author named.
//!
//! In `path = "out/{name}"`, the author chooses `out/`, and data such as a URL, a line or a JSON member supplies the
//! name. A name such as `../../.ssh/authorized_keys` would leave the author's folder, and so would `/etc/passwd` if the
//! template started with the field. So a component `..` with any character from data is refused, and so is a path that
//! is absolute because of data. There is one exception: `{path}` and `{dir}` at the very start of a template are the
//! path of the unit's own file, and the author means that file or its folder. Elsewhere these two fields are data, like
//! any other field. The path of a file in an archive and a line of a split unit are always data.
//!
//! Only the text of a path is checked: a symbolic link in the author's folder is followed as usual.

use std::ffi::OsString;
use std::ops::Range;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use millstream_flow::Failure;

use crate::file::template::{Field, Template};
use crate::record::Record;

/// A template that is rendered to a path.
#[derive(Debug)]
pub(super) struct PathTemplate {
    template: Template,
}

impl PathTemplate {
    pub(super) fn new(template: &Template) -> Self {
        Self { template: template.clone() }
    }

    /// The path for one unit.
    ///
    /// # Errors
    /// A field has no value, the path is empty or contains a NUL byte, or data would leave the author's folder. All
    /// these failures are permanent.
    pub(super) fn render(&self, record: &Record) -> Result<PathBuf, Failure> {
        let mut path = Vec::with_capacity(128);
        let mut starts_with_data = false;
        self.template
            .render_marked(record, &mut path, |field, range| {
                starts_with_data |= range.start == 0 && is_data(field, &range, record);
            })
            .map_err(|error| Failure::from(error).to_permanent())?;
        if path.is_empty() {
            return Err(Failure::permanent(format!("`{}` is an empty path for this unit", self.template)));
        }
        if path.contains(&0) {
            return Err(self.refused(&path, "it contains a NUL byte, which no path can"));
        }
        if starts_with_data && path[0] == b'/' {
            return Err(self
                .refused(&path, "data makes it absolute; begin the template with a folder, or with {path} or {dir}"));
        }
        let mut start = 0;
        for component in path.split(|byte| *byte == b'/') {
            let range = start..start + component.len();
            start = range.end + 1;
            if component == b".." && self.has_data_in(record, &range)? {
                return Err(self.refused(&path, "`..` in data would leave the folder that the template names"));
            }
        }
        Ok(PathBuf::from(OsString::from_vec(path)))
    }

    /// The path of a file that will be created for one unit.
    ///
    /// # Errors
    /// The errors of [`render`](Self::render). In addition, the last component of the path is empty, as in `out/{line}`
    /// for an empty line, so the path names a folder.
    pub(super) fn render_file(&self, record: &Record) -> Result<PathBuf, Failure> {
        let path = self.render(record)?;
        let bytes = path.as_os_str().as_bytes();
        match bytes.rsplit(|byte| *byte == b'/').next() {
            Some(b"") => Err(self.refused(bytes, "its last part is empty, and a file needs a name")),
            Some(b"." | b"..") => Err(self.refused(bytes, "it names a folder, and a file needs a name")),
            _ => Ok(path),
        }
    }

    /// The path, if it is the same for every unit.
    pub(super) fn constant(&self) -> Option<PathBuf> {
        self.template.constant().map(|path| PathBuf::from(OsString::from_vec(path.to_vec())))
    }

    /// Whether any of the rendered path's bytes in this range come from data. The path is rendered again to find out,
    /// but only if it contains `..`.
    fn has_data_in(&self, record: &Record, bytes: &Range<usize>) -> Result<bool, Failure> {
        let mut found = false;
        self.template.render_marked(record, &mut Vec::new(), |field, range| {
            found |= is_data(field, &range, record) && range.start < bytes.end && bytes.start < range.end;
        })?;
        Ok(found)
    }

    fn refused(&self, path: &[u8], why: &str) -> Failure {
        Failure::permanent(format!("the path `{}`, from `{}`, is refused: {why}", path.escape_ascii(), self.template))
    }
}

/// Whether the field's value is data, rather than the unit's own path at the very start of the template. An empty value
/// counts as data, because the path then starts with the text after the field.
fn is_data(field: &Field, range: &Range<usize>, record: &Record) -> bool {
    let own_path = range.start == 0 && !range.is_empty() && record.is_own_path(field);
    !own_path
}

/// The path that `template` gives for one unit.
///
/// # Errors
/// See [`PathTemplate::render`].
pub fn rendered_path(template: &Template, record: &Record) -> Result<PathBuf, Failure> {
    PathTemplate::new(template).render(record)
}

#[cfg(test)]
mod tests {
    use super::PathTemplate;
    use crate::file::template::Template;
    use crate::json_bytes;
    use crate::json_member::Members;
    use crate::record::Record;

    fn rendered(template: &str, record: &Record) -> Result<String, String> {
        PathTemplate::new(&Template::parse(template).unwrap())
            .render(record)
            .map(|path| path.to_str().unwrap().to_owned())
            .map_err(|failure| {
                assert!(failure.is_permanent());
                failure.to_string()
            })
    }

    fn of_line(template: &str, line: &str) -> Result<String, String> {
        rendered(template, &Record::line(line.into()))
    }

    fn of_member(template: &str, value: &str) -> Result<String, String> {
        let mut record = Record::line(b"l".to_vec());
        let mut object = br#"{"x": "#.to_vec();
        json_bytes::write_string(value.as_bytes(), &mut object);
        object.push(b'}');
        record.json = Members::read(&object).unwrap();
        rendered(template, &record)
    }

    #[test]
    fn data_stays_below_the_named_folder() {
        assert_eq!(of_line("out/{line}", "a/b").unwrap(), "out/a/b");
        assert_eq!(of_line("out/{line}", "/etc/passwd").unwrap(), "out//etc/passwd");
        assert_eq!(of_line("out/{line}", "a..b/...").unwrap(), "out/a..b/...");
        assert_eq!(of_line("/abs/{line}", "x").unwrap(), "/abs/x");
        assert_eq!(of_line("../out/{line}", "x").unwrap(), "../out/x", "the author's own `..` is the author's wish");
    }

    #[test]
    fn data_that_leaves_the_folder_is_refused() {
        for line in ["..", "../x", "a/../../x", "a/..", "/../x"] {
            let error = of_line("out/{line}", line).unwrap_err();
            assert!(error.contains("`..` in data"), "{line}: {error}");
        }
        assert!(of_line("out/{name}", "http://h/a/..").is_err());
        assert!(of_member("out/{json.x}", "../y").is_err());
        assert!(of_member("out/.{json.x}/y", ".").is_err(), "half of the `..` is data");
        assert!(of_member("out/{json.x}./y", ".").is_err());
        assert!(of_line("out/{path}", "../x").is_err(), "{{path}} is data when it is not the start");
    }

    #[test]
    fn data_cannot_make_a_path_absolute() {
        for (template, value) in [("{json.x}", "/etc/passwd"), ("{json.x}/etc/passwd", ""), ("{json.x}{line}", "/")] {
            let error = of_member(template, value).unwrap_err();
            assert!(error.contains("absolute"), "{template}: {error}");
        }
    }

    #[test]
    fn a_units_own_path_may_lie_anywhere() {
        assert_eq!(of_line("{path}", "/etc/../x").unwrap(), "/etc/../x");
        assert_eq!(of_line("{path}.zst", "../x").unwrap(), "../x.zst");
        assert_eq!(of_line("{dir}/new-{name}", "/a/../b/c").unwrap(), "/a/../b/new-c");
        assert!(of_line("{dir}/{name}", "/a/..").is_err());
    }

    #[test]
    fn a_file_needs_a_name() {
        let of = |template: &str, line: &str| {
            let template = PathTemplate::new(&Template::parse(template).unwrap());
            template.render_file(&Record::line(line.into())).map_err(|failure| failure.to_string())
        };
        for (line, why) in [("", "its last part is empty"), ("a/", "its last part is empty"), (".", "names a folder")] {
            let error = of("o/{line}", line).unwrap_err();
            assert!(error.contains(why), "{line}: {error}");
        }
        assert!(of("o/..", "").unwrap_err().contains("names a folder"));
        assert!(of("o/{line}.x", "").is_ok() && of("o/{line}", "...").is_ok());
    }

    #[test]
    fn what_is_no_path_is_refused() {
        assert!(of_member("{json.x}", "").unwrap_err().contains("empty path"));
        assert!(of_member("out/{json.x}", "a\0b").unwrap_err().contains("NUL"));
        assert!(of_line("out/{blake3}", "x").unwrap_err().contains("blake3"));
    }
}
