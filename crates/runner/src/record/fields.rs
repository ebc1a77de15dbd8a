//! The fields of a unit, for templates, and its text in a form that is safe to show.

use std::borrow::Cow;

use millstream_command::hex;

use super::{Origin, Record};
use crate::file::template::{Field, Fields};
use crate::group::Group;
use crate::web_url;

/// The value of `{name}` for a URL whose path ends with a slash or is missing, as in common download programs.
const INDEX_NAME: &[u8] = b"index.html";

impl Record {
    /// The server of the line if that is a URL; while redirects are followed, the server of the next request.
    fn server(&self) -> Option<String> {
        #[cfg(feature = "http")]
        if let Some(hop) = &self.rare.hop {
            return Some(web_url::server_of_url(&hop.url));
        }
        web_url::server_of(self.line_text()?)
    }

    /// The text in a form that is safe to show: a URL without its credentials.
    pub fn shown_text(&self) -> Cow<'_, [u8]> {
        if let (Some(stage), Some(parent)) = (&self.rare.copy, &self.parent) {
            return [&parent.shown_text(), format!(", copy for {stage}").as_bytes()].concat().into();
        }
        if let (Origin::Piece, Some(parent)) = (self.origin, &self.parent) {
            return [&parent.shown_text(), format!(" part {}", self.part).as_bytes()].concat().into();
        }
        if let (Origin::Gathered, Some(group)) = (self.origin, self.group()) {
            let of = if group.count() == 1 { "group of 1 unit" } else { &format!("group of {} units", group.count()) };
            let key = web_url::without_credentials(&self.text);
            let shown = if key.is_empty() { of.as_bytes().to_vec() } else { [&*key, b", ", of.as_bytes()].concat() };
            return shown.into();
        }
        if let Some(mut items) = self.items() {
            let first = web_url::without_credentials(items.next().unwrap_or_default());
            let more = match items.count() {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            return [&first, more.as_bytes()].concat().into();
        }
        match self.line_text() {
            Some(line) => web_url::without_credentials(line),
            None => Cow::Borrowed(&self.text),
        }
    }

    /// The part of the text that names something: a path as it is, a URL without scheme, host, query and fragment.
    fn name_path(&self) -> NamePath<'_> {
        match self.line_text().and_then(url_parts) {
            Some((_, path)) => NamePath { path, url: true },
            None => NamePath { path: &self.text, url: false },
        }
    }
}

impl Fields for Record {
    fn member_names(&self) -> Option<String> {
        self.json.names().or_else(|| self.parent.as_ref()?.member_names())
    }

    fn field(&self, field: &Field) -> Option<Cow<'_, [u8]>> {
        if self.is_group() && field.is_of_one_item() {
            return None;
        }
        if let (Origin::Piece, true, Some(parent)) = (self.origin, field.is_of_text(), &self.parent) {
            return parent.field(field);
        }
        let hex = |hash: &Option<[u8; 32]>, digits: usize| {
            hash.map(|hash| Cow::Owned(hex::encode(&hash[..digits / 2]).into_bytes()))
        };
        match field {
            Field::Path => Some(Cow::Borrowed(&self.text)),
            Field::Name => Some(Cow::Borrowed(self.name_path().name())),
            Field::Stem => Some(Cow::Borrowed(split_extension(self.name_path().name()).0)),
            Field::Ext => Some(Cow::Borrowed(split_extension(self.name_path().name()).1)),
            Field::Dir => Some(Cow::Borrowed(self.name_path().dir())),
            Field::Rel => Some(Cow::Borrowed(&self.text[self.rel_at..])),
            Field::Size => Some(Cow::Owned(self.known_size().to_string().into_bytes())),
            Field::Items => self.items().map(|items| Cow::Owned(items.collect::<Vec<_>>().join(&b'\n'))),
            Field::Mode => {
                let mode = self.mode.or_else(|| Some(self.own_file()?.st_mode))?;
                Some(Cow::Owned(format!("{:o}", mode & 0o7777).into_bytes()))
            }
            Field::Line => self.line_text().map(Cow::Borrowed),
            Field::Url => {
                self.line_text().filter(|line| web_url::server_of(line).is_some()).map(web_url::without_credentials)
            }
            Field::Host => self.server().map(|server| Cow::Owned(server.into_bytes())),
            Field::Blake3 => hex(&self.rare.blake3, 64),
            Field::Sha256 => hex(&self.rare.sha256, 64),
            Field::Shard => hex(&self.rare.blake3, 2),
            Field::Json(path) => self.json_member(path).or_else(|| self.parent.as_ref()?.field(field)),
            Field::Set(name) => {
                let own = self.rare.set.iter().find(|(set, _)| set == name);
                own.map(|(_, value)| Cow::Borrowed(value.as_slice())).or_else(|| self.parent.as_ref()?.field(field))
            }
            Field::Count => self.group().map(|group| Cow::Owned(group.count().to_string().into_bytes())),
            Field::Key => self.group().and_then(Group::key).map(Cow::Borrowed),
            Field::Part => self.parent.as_ref().map(|_| Cow::Owned(self.part.to_string().into_bytes())),
            Field::Parent(field) => self.parent.as_ref()?.field(field),
            Field::Copy(stage, field) => match self.group().and_then(|group| group.copy(stage)) {
                Some(copy) => copy.field(field),
                None => self.parent.as_ref()?.field(&Field::Copy(stage.clone(), field.clone())),
            },
            // These fields are the same for every unit of a run, and are filled in before the run starts.
            Field::Input | Field::Param(_) => None,
        }
    }
}

/// A path, or the path of a URL, whose last component is a unit's name.
struct NamePath<'a> {
    path: &'a [u8],
    url: bool,
}

impl<'a> NamePath<'a> {
    fn name(&self) -> &'a [u8] {
        let path = if self.url { self.path } else { trim_slashes(self.path) };
        match path.iter().rposition(|byte| *byte == b'/').map_or(path, |slash| &path[slash + 1..]) {
            b"" if self.url => INDEX_NAME,
            name => name,
        }
    }

    fn dir(&self) -> &'a [u8] {
        let path = if self.url { self.path } else { trim_slashes(self.path) };
        match path.iter().rposition(|byte| *byte == b'/') {
            None => b".",
            Some(0) => b"/",
            Some(slash) => &path[..slash],
        }
    }
}

/// `path` without slashes at its end; the root stays.
fn trim_slashes(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|byte| *byte != b'/').map_or(path.len().min(1), |last| last + 1);
    &path[..end]
}

/// The stem of a name, and its extension without the dot; a dot at the start does not begin an extension.
fn split_extension(name: &[u8]) -> (&[u8], &[u8]) {
    match name.iter().rposition(|byte| *byte == b'.') {
        None | Some(0) => (name, b""),
        Some(_) if name == b".." => (name, b""),
        Some(dot) => (&name[..dot], &name[dot + 1..]),
    }
}

/// A URL's authority and its path, which is empty or starts with a slash.
fn url_parts(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let scheme_end = line.windows(3).position(|three| three == b"://")?;
    let scheme = &line[..scheme_end];
    let is_scheme = scheme.first().is_some_and(u8::is_ascii_alphabetic)
        && scheme.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
    if !is_scheme {
        return None;
    }
    let rest = &line[scheme_end + 3..];
    let (authority, rest) =
        rest.split_at(rest.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#')).unwrap_or(rest.len()));
    let path_end = rest.iter().position(|byte| matches!(byte, b'?' | b'#')).unwrap_or(rest.len());
    Some((authority, &rest[..path_end]))
}

#[cfg(test)]
mod tests {
    use super::Record;
    use crate::file::template::{Field, Fields};

    fn field(record: &Record, field: &Field) -> String {
        String::from_utf8(record.field(field).expect("the record has this field").into_owned()).expect("UTF-8")
    }

    #[test]
    fn a_path_has_name_stem_ext_and_dir() {
        for (path, name, stem, ext, dir) in [
            ("a/b.tar.gz", "b.tar.gz", "b.tar", "gz", "a"),
            ("b", "b", "b", "", "."),
            ("/b.c", "b.c", "b", "c", "/"),
            ("x/.bashrc", ".bashrc", ".bashrc", "", "x"),
            ("x/y/", "y", "y", "", "x"),
            ("x.d/y", "y", "y", "", "x.d"),
            ("a/..", "..", "..", "", "a"),
            ("", "", "", "", "."),
        ] {
            let record = Record::line(path.into());
            assert_eq!(field(&record, &Field::Name), name, "{path}");
            assert_eq!(field(&record, &Field::Stem), stem, "{path}");
            assert_eq!(field(&record, &Field::Ext), ext, "{path}");
            assert_eq!(field(&record, &Field::Dir), dir, "{path}");
        }
    }

    #[test]
    fn a_url_has_host_and_name() {
        for (url, host, name) in [
            ("http://Example.COM/a/b.html?x=/1#f", "example.com", "b.html"),
            ("https://h:8443/", "h:8443", "index.html"),
            ("https://h:443", "h", "index.html"),
            ("http://h:80/x", "h", "x"),
            ("http://h:443/x", "h:443", "x"),
            ("http://user:pass@h:81?q", "h:81", "index.html"),
            ("http://[::1]:99/p", "[::1]:99", "p"),
            ("HTTP://A:80/", "a", "index.html"),
        ] {
            let record = Record::line(url.into());
            assert_eq!(field(&record, &Field::Host), host, "{url}");
            assert_eq!(field(&record, &Field::Name), name, "{url}");
        }
    }

    #[test]
    fn a_text_that_is_not_a_url_has_no_host() {
        for line in ["", "example.com/a", "http:///a", "://h/", "a b://h/", "http://"] {
            assert!(Record::line(line.into()).field(&Field::Host).is_none(), "{line}");
        }
    }

    #[test]
    fn a_walked_file_has_rel_and_no_line() {
        let record = Record::file(b"root/a/b".to_vec(), 5);
        assert_eq!(field(&record, &Field::Rel), "a/b");
        assert_eq!(field(&record, &Field::Path), "root/a/b");
        assert!(record.field(&Field::Line).is_none());
        assert!(record.field(&Field::Host).is_none());
        assert!(record.field(&Field::Blake3).is_none());
    }

    #[test]
    fn shard_is_the_first_two_digits_of_blake3() {
        let mut record = Record::line(b"x".to_vec());
        record.rare.blake3 = Some([0xAB; 32]);
        assert_eq!(field(&record, &Field::Shard), "ab");
        assert_eq!(field(&record, &Field::Blake3), "ab".repeat(32));
    }

    #[test]
    fn size_is_that_of_the_file_or_else_of_the_payload() {
        let mut record = Record::line(b"x".to_vec());
        record.payload = vec![0; 7].into();
        assert_eq!(field(&record, &Field::Size), "7");
        record.size = Some(9);
        assert_eq!(field(&record, &Field::Size), "9");
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        std::fs::write(&path, b"12345").unwrap();
        let record = Record::file(path.into_os_string().into_encoded_bytes(), 0);
        assert_eq!(field(&record, &Field::Size), "5", "asked for when no stage has needed it before");
    }
}
