//! The payload of a flow file's units: where a unit comes from, what stages have found out about it, and its bytes.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use millstream_command::hex;
use rustix::fs::{AtFlags, Stat};

use crate::file::template::{Field, Fields};
use crate::group::Group;
use crate::json_member::Members;
#[cfg(feature = "http")]
use crate::ops::Hop;
use crate::payload::Payload;
use crate::printer::Place;
use crate::{regular, web_url};

/// The value of `{name}` for a URL whose path ends with a slash or is missing, as download programs choose it.
const INDEX_NAME: &[u8] = b"index.html";

/// Bytes of its text, its members and its fault that a unit may have and not weigh. Nearly every unit has fewer; the cap on
/// units in flight bounds what they take, as it bounds the records themselves.
const UNCOUNTED: usize = 1 << 10;

/// A unit of a flow file.
///
/// Paths and lines are bytes and need not be UTF-8. Stages change a record in place; what a stage cannot know stays
/// `None` and makes a template that asks for it fail with the field's name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Record {
    /// The file's path, the line, or the argument.
    text: Vec<u8>,
    /// Where in `text` the part relative to the walk's root starts.
    rel_at: usize,
    /// The folder that the walk began in, if it followed no symbolic links: what lies below it is opened past none.
    root: Option<Arc<OwnedFd>>,
    origin: Origin,
    /// The file's bytes: from the walk, then corrected by the `read` stage.
    pub size: Option<u64>,
    /// Payload bytes that a later `read` stage will bring. They count from admission on, so that memory is granted
    /// before the unit enters.
    pub declared: u64,
    /// Bytes by which a later `zstd` stage may make the payload larger, which happens when it does not compress. They count
    /// too, or a byte budget filled with such payloads would have no room for any of them to go on.
    pub headroom: u64,
    /// The unit's bytes.
    pub payload: Payload,
    /// The permissions of the file that a `read` stage has read.
    pub(crate) mode: Option<u32>,
    /// Set by a `blake3` stage.
    pub blake3: Option<[u8; 32]>,
    /// Set by a `sha256` stage.
    pub sha256: Option<[u8; 32]>,
    /// The members of the object that a `parse` stage has read.
    pub json: Members,
    /// The fields that `set` stages have set, by name; few.
    set: Vec<(String, Vec<u8>)>,
    /// Whether the last `filter` stage found that its condition does not hold.
    pub filtered: bool,
    /// The op that has changed the record last; 0 when none has.
    pub(crate) done_by: u32,
    /// Where redirects have led a request that is not done yet.
    #[cfg(feature = "http")]
    pub(crate) hop: Option<Box<Hop>>,
    /// Its place in the order of what is printed, in a flow with such an order.
    pub(crate) place: Option<Arc<Place>>,
    /// The unit that this one is a piece of, without its payload.
    parent: Option<Arc<Record>>,
    /// Its number among the pieces, from 1.
    part: u64,
    /// The stage that it is a copy for.
    copy: Option<Arc<str>>,
    /// The number of splits that have led to it.
    level: u32,
    /// The units that it was gathered from.
    group: Option<Box<Group>>,
    /// Which of the dead letters that are retried it is of.
    pub(crate) letter: Option<usize>,
    /// The progress of its pieces, once it is being split.
    pub(crate) pieces: Option<Arc<PiecesSoFar>>,
    /// In a retry: the number of the last piece that an earlier run has brought out.
    pub(crate) passed: u64,
    /// The pieces that a retry wants of it; `None`: all.
    pub(crate) wanted: Option<Arc<Wanted>>,
    /// Why the source could not produce this unit, which then is to be given up on in the first stage.
    pub fault: Option<String>,
}

/// The progress of the pieces of a unit.
#[derive(Debug, Default)]
pub(crate) struct PiecesSoFar {
    /// The number of the last piece that was brought out.
    pub last: AtomicU64,
    /// The unit itself, a piece, or a piece of one has a dead letter.
    pub any_letter: AtomicBool,
}

/// The text that identifies a piece.
pub(crate) enum PieceText {
    /// None of its own.
    None,
    /// A line.
    Line(Vec<u8>),
    /// The path of a file in an archive.
    Member(Vec<u8>),
    /// That of the unit, of which it is a copy for this stage.
    Copy(Arc<str>),
}

/// The pieces that a retry wants of a unit, in the order of the [ways](Record::parts) to them from there.
pub(crate) type Wanted = [WantedPiece];

/// A piece that a retry wants.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct WantedPiece {
    /// The way to it.
    pub parts: Vec<u64>,
    /// Its dead letter.
    pub letter: usize,
    /// The number of the last piece that an earlier run has brought out of it.
    pub passed: u64,
}

/// The origin of a record's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Origin {
    /// A path that a walk has found.
    #[default]
    File,
    /// A line.
    Line,
    /// An argument of the command line.
    Argument,
    /// Several of either, with a zero byte between them.
    Group,
    /// Several lines, each with its end, which is this byte.
    Block(u8),
    /// A piece of another unit, which has no text of its own.
    Piece,
    /// A file of an archive.
    Member,
    /// The key of units that were gathered.
    Gathered,
}

impl Record {
    /// A file that a walk has found; its part relative to the walk's root starts at `rel_at`.
    ///
    /// # Panics
    /// When `rel_at` lies behind the path's end.
    pub(crate) fn file(path: Vec<u8>, rel_at: usize) -> Self {
        assert!(rel_at <= path.len(), "the relative part of a path lies within it");
        Self { text: path, rel_at, ..Self::default() }
    }

    /// The same file, of a walk that began in the open folder `root` and follows no symbolic links.
    #[must_use]
    pub(crate) fn below(mut self, root: &Arc<OwnedFd>) -> Self {
        self.root = Some(Arc::clone(root));
        self
    }

    /// Opens the regular file at `path`: from the folder that the unit's walk began in and past no symbolic link, if the walk
    /// follows none and `path` lies in what it walked.
    ///
    /// # Errors
    /// As [`regular::open`] and [`regular::open_below`].
    pub(crate) fn open(&self, path: &Path) -> io::Result<(File, Metadata)> {
        match self.walked(path) {
            Some((root, relative)) => regular::open_below(root, relative),
            None => regular::open(path),
        }
    }

    /// The folder to open `path` from and its path there, if the unit's walk follows no symbolic links and `path` lies
    /// in what it walked.
    fn walked<'a>(&self, path: &'a Path) -> Option<(&OwnedFd, &'a Path)> {
        // A piece leads to no file that its unit does not lead to.
        let whole = self.whole();
        let root = whole.root.as_deref()?;
        Some((root, regular::part_below(path, &whole.text[..whole.rel_at])?))
    }

    /// A line, without its ending.
    pub(crate) fn line(line: Vec<u8>) -> Self {
        Self { text: line, origin: Origin::Line, ..Self::default() }
    }

    /// An argument of the command line.
    pub(crate) fn argument(argument: Vec<u8>) -> Self {
        Self { text: argument, origin: Origin::Argument, ..Self::default() }
    }

    /// This unit without its payload, as its pieces know it.
    pub(crate) fn as_parent(&self) -> Arc<Self> {
        // The permissions are asked for once, and not for each piece.
        let mode = self.mode.or_else(|| Some(self.own_file()?.st_mode));
        let bare = Self { payload: Payload::default(), declared: 0, headroom: 0, wanted: None, mode, ..self.clone() };
        Arc::new(bare)
    }

    /// A piece of another unit.
    #[inline]
    pub(crate) fn piece(parent: &Arc<Self>, part: u64, text: PieceText) -> Self {
        let (text, origin, copy) = match text {
            PieceText::None => (Vec::new(), Origin::Piece, None),
            PieceText::Line(line) => (line, Origin::Line, None),
            PieceText::Member(path) => (path, Origin::Member, None),
            PieceText::Copy(stage) => (Vec::new(), Origin::Piece, Some(stage)),
        };
        // Of a copy, what was found out about the unit stays true.
        let (blake3, sha256) = if copy.is_some() { (parent.blake3, parent.sha256) } else { (None, None) };
        // The content may not be for all to read, as that of its parent.
        let (level, mode) = (parent.level + 1, parent.mode);
        let parent = Some(Arc::clone(parent));
        Self { text, origin, parent, part, copy, level, mode, blake3, sha256, ..Self::default() }
    }

    /// The stage that it is a copy for.
    pub(crate) fn copied_for(&self) -> Option<&Arc<str>> {
        self.copy.as_ref()
    }

    /// This unit without its payload, for a group that keeps its fields.
    pub(crate) fn without_payload(&self) -> Self {
        Self { payload: Payload::default(), declared: 0, headroom: 0, place: None, wanted: None, ..self.clone() }
    }

    /// This unit without its payload and fields: what it was, for its dead letter.
    pub(crate) fn bare(&self) -> Self {
        let Self { text, rel_at, origin, parent, part, level, fault, pieces, passed, .. } = self.clone();
        Self { text, rel_at, origin, parent, part, level, fault, pieces, passed, ..Self::default() }
    }

    /// A group without members, for units of which `first` is one. If they are pieces `of_family`, it stands for the unit
    /// that they were split from.
    pub(crate) fn of_group(first: &Self, of_family: bool, key: Option<Vec<u8>>) -> Self {
        let text = key.clone().unwrap_or_default();
        let group = |record: Self| {
            // A group of pieces of a group keeps the members of that one.
            let group = record.group.as_ref().map_or_else(|| Group::new(key), |whole| whole.of_pieces());
            // What was done to the unit that it stands for was not done to it.
            Self { group: Some(Box::new(group)), done_by: 0, filtered: false, ..record }
        };
        let gathered = Self { text, origin: Origin::Gathered, place: first.place.clone(), ..Self::default() };
        match (&first.parent, of_family) {
            // It is the whole unit again, whatever had been brought out of it.
            (Some(parent), true) => {
                let mut whole = group(Self { pieces: None, passed: 0, size: None, ..(**parent).clone() });
                whole.group_mut().into_iter().for_each(|group| group.set_pieces(parent.pieces.clone()));
                whole
            }
            (Some(parent), false) => {
                let Self { part, level, mode, .. } = *first;
                group(Self { parent: Some(Arc::clone(parent)), part, level, mode, ..gathered })
            }
            (None, true) => group(Self { payload: Payload::default(), json: Members::default(), ..first.clone() }),
            (None, false) => group(gathered),
        }
    }

    /// Makes the group as private as a member.
    pub(crate) fn share_privacy_of(&mut self, member: &Self) {
        let theirs = member.mode.or_else(|| Some(member.own_file()?.st_mode));
        self.mode = match (self.mode, theirs) {
            (Some(ours), Some(theirs)) => Some(ours & theirs),
            (ours, theirs) => ours.or(theirs),
        };
    }

    /// The units that it was gathered from.
    pub(crate) fn group(&self) -> Option<&Group> {
        self.group.as_deref()
    }

    pub(crate) fn group_mut(&mut self) -> Option<&mut Group> {
        self.group.as_deref_mut()
    }

    /// Whether it is a group that stands for no other unit.
    pub(crate) fn is_gathered(&self) -> bool {
        self.origin == Origin::Gathered
    }

    /// The group that it is, or is a piece of, if that stands for no other unit.
    pub(crate) fn gathered_whole(&self) -> Option<&Self> {
        self.line_of_descent().find(|record| record.is_gathered())
    }

    /// The dead letters that need not be retried any more once it is retired. That of a unit which was split stays until all
    /// of it has ended.
    pub(crate) fn settled_letters(&self) -> impl Iterator<Item = usize> {
        let stands_for_another = self.group.is_some() && !self.is_gathered();
        self.letters().filter(move |letter| !stands_for_another || Some(*letter) != self.letter)
    }

    /// The dead letters that are retried with it.
    pub(crate) fn letters(&self) -> impl Iterator<Item = usize> {
        self.letter.into_iter().chain(self.group.iter().flat_map(|group| group.letters()))
    }

    /// Its number among the pieces of the unit that it was split from, from 1; 0: it was not.
    pub(crate) fn part(&self) -> u64 {
        self.part
    }

    /// The unit that the source gave, which this one is or is a piece of.
    pub(crate) fn whole(&self) -> &Self {
        self.line_of_descent().last().unwrap_or(self)
    }

    /// The unit, the one that it is a piece of, and so on.
    fn line_of_descent(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |record| record.parent.as_deref())
    }

    /// The number of splits that have led to it.
    pub(crate) fn level(&self) -> u32 {
        self.level
    }

    /// Whether the field is the path of a file that a source has named, and not data in which something else has a part.
    pub(crate) fn is_own_path(&self, field: &Field) -> bool {
        match (field, &self.parent) {
            (Field::Path | Field::Dir, None) => true,
            (Field::Path | Field::Dir, Some(parent)) => self.origin == Origin::Piece && parent.is_own_path(field),
            (Field::Parent(field), Some(parent)) => parent.is_own_path(field),
            _ => false,
        }
    }

    /// The way from the unit that the source gave to this piece: its number among the pieces at each split.
    pub(crate) fn parts(&self) -> Vec<u64> {
        let mut parts: Vec<u64> =
            self.line_of_descent().take_while(|record| record.parent.is_some()).map(|record| record.part).collect();
        parts.reverse();
        parts
    }

    /// The number of the last piece that it has brought out, in this run or an earlier one.
    pub(crate) fn brought_out(&self) -> Option<u64> {
        // Relaxed: the stage that counts them has handed the unit over since.
        self.pieces.as_ref().map(|pieces| pieces.last.load(Ordering::Relaxed).max(self.passed))
    }

    /// Notes that it has a dead letter, for the groups that lack it.
    pub(crate) fn note_letter(&self) {
        for unit in self.line_of_descent() {
            // Relaxed: the engine orders the end of a piece before that of the group which lacks it.
            unit.pieces.iter().for_each(|pieces| pieces.any_letter.store(true, Ordering::Relaxed));
        }
    }

    /// Whether it stands for a unit that has a dead letter, or of whose pieces one has.
    pub(crate) fn lacks_a_piece_with_a_letter(&self) -> bool {
        // Relaxed: see `note_letter`.
        let pieces = self.group.as_ref().and_then(|group| group.pieces());
        pieces.is_some_and(|pieces| pieces.any_letter.load(Ordering::Relaxed))
    }

    /// Several items, with a zero byte between them.
    pub(crate) fn items_of(items: Vec<u8>) -> Self {
        Self { text: items, origin: Origin::Group, ..Self::default() }
    }

    /// Several lines with their ends, each of which is `ending`.
    pub(crate) fn block(lines: Vec<u8>, ending: u8) -> Self {
        Self { text: lines, origin: Origin::Block(ending), ..Self::default() }
    }

    /// The lines of a block as they were read, with their ends.
    pub(crate) fn block_bytes(&self) -> Option<&[u8]> {
        matches!(self.origin, Origin::Block(_)).then_some(&self.text)
    }

    /// The items of a group that the source gave.
    fn source_items(&self) -> Option<impl Iterator<Item = &[u8]>> {
        let (between, text) = match self.origin {
            Origin::Group => (0, self.text.as_slice()),
            Origin::Block(ending) => (ending, self.text.strip_suffix(&[ending]).unwrap_or(&self.text)),
            _ => return None,
        };
        // As with single lines, a carriage return before a newline belongs to the ending.
        let without_return = move |item: &'_ [u8]| match item {
            [item @ .., b'\r'] if between == b'\n' => item.len(),
            item => item.len(),
        };
        Some(text.split(move |byte| *byte == between).map(move |item| &item[..without_return(item)]))
    }

    /// The items of a group.
    pub(crate) fn items(&self) -> Option<impl Iterator<Item = &[u8]>> {
        let gathered = (self.origin == Origin::Gathered).then(|| {
            let members = self.group.iter().flat_map(|group| group.members());
            members.flat_map(|member| {
                let of_source = member.source_items();
                let one = of_source.is_none().then_some(member.text());
                of_source.into_iter().flatten().chain(one)
            })
        });
        self.is_group().then(|| self.source_items().into_iter().flatten().chain(gathered.into_iter().flatten()))
    }

    /// Whether the unit is a group of items.
    pub(crate) fn is_group(&self) -> bool {
        matches!(self.origin, Origin::Group | Origin::Block(_) | Origin::Gathered)
    }

    /// A record of a payload and nothing else.
    #[cfg(test)]
    pub(crate) fn holding(payload: impl Into<Vec<u8>>) -> Self {
        Self { payload: Payload::Bytes(payload.into()), ..Self::default() }
    }

    /// The same record, which the source could not produce.
    #[must_use]
    pub(crate) fn with_fault(mut self, fault: impl Into<String>) -> Self {
        self.fault = Some(fault.into());
        self
    }

    /// The text that identifies the unit: the path, the line or the argument.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// The unit's text as a path.
    pub(crate) fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.text))
    }

    /// The line, when the unit is one (or an argument, which serves as one).
    pub(crate) fn line_text(&self) -> Option<&[u8]> {
        matches!(self.origin, Origin::Line | Origin::Argument).then_some(&self.text)
    }

    /// For a file of a walk: where in its path the part relative to the walk's root starts.
    pub(crate) fn rel_from(&self) -> Option<usize> {
        (self.origin == Origin::File).then_some(self.rel_at)
    }

    /// The weight of the unit: the bytes that it [holds](Self::held), and the payload that it will hold once it has been read.
    pub(crate) fn bytes(&self) -> u64 {
        self.held() + self.declared
    }

    /// The bytes it holds: payload and headroom, and its own words where they are more than a kilobyte.
    pub(crate) fn held(&self) -> u64 {
        let set: usize = self.set.iter().map(|(name, value)| name.len() + value.len()).sum();
        let words = self.text.len() + self.json.bytes() + set + self.fault.as_ref().map_or(0, String::len);
        let words = if words <= UNCOUNTED { 0 } else { words as u64 };
        words + self.payload.weight() + self.headroom + self.group.as_ref().map_or(0, |group| group.weight())
    }

    /// The value of a [member](Members::find) of the parsed object, or of an object within it.
    pub(crate) fn json_member(&self, path: &str) -> Option<Cow<'_, [u8]>> {
        self.json.find(path)
    }

    /// Sets `{set.NAME}`.
    pub(crate) fn set_field(&mut self, name: String, value: Vec<u8>) {
        match self.set.iter_mut().find(|(set, _)| *set == name) {
            Some((_, earlier)) => *earlier = value,
            None => self.set.push((name, value)),
        }
    }

    /// The size, `{size}`: the file's, which is asked for here when no stage has needed it before; otherwise the
    /// payload's.
    pub(crate) fn known_size(&self) -> u64 {
        self.size
            .or_else(|| u64::try_from(self.own_file()?.st_size).ok())
            .or_else(|| self.payload.known_len())
            .unwrap_or(0)
    }

    /// The permissions of a file made from this unit, to be masked as usual: group and others get those that others have on
    /// the file that the unit was [read](Self::mode) from, or is. The group of the new file is another than that file's, so
    /// it counts among the others.
    pub(crate) fn permissions(&self) -> u32 {
        let everybody = match self.mode.or_else(|| Some(self.own_file()?.st_mode)) {
            Some(mode) => mode & (mode >> 3) & 0o6,
            None => 0o6,
        };
        0o600 | everybody << 3 | everybody
    }

    /// The file that a walk has found, as it is now.
    fn own_file(&self) -> Option<Stat> {
        if self.origin != Origin::File {
            return None;
        }
        match self.walked(self.path()) {
            Some((root, relative)) => rustix::fs::statat(root, relative, AtFlags::SYMLINK_NOFOLLOW).ok(),
            None => rustix::fs::stat(self.path()).ok(),
        }
    }

    /// The server of the line when that is a URL; while redirects are followed, the one that is asked next.
    fn server(&self) -> Option<String> {
        #[cfg(feature = "http")]
        if let Some(hop) = &self.hop {
            return Some(web_url::server_of_url(&hop.url));
        }
        web_url::server_of(self.line_text()?)
    }

    /// The text as it may be shown to others: a URL without its credentials.
    pub(crate) fn shown_text(&self) -> Cow<'_, [u8]> {
        if let (Some(stage), Some(parent)) = (&self.copy, &self.parent) {
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
            Field::Blake3 => hex(&self.blake3, 64),
            Field::Sha256 => hex(&self.sha256, 64),
            Field::Shard => hex(&self.blake3, 2),
            Field::Json(path) => self.json_member(path).or_else(|| self.parent.as_ref()?.field(field)),
            Field::Set(name) => {
                let own = self.set.iter().find(|(set, _)| set == name);
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
            // The same for every unit of a run: filled in before it starts.
            Field::Input | Field::Param(_) => None,
        }
    }
}

/// A path whose last component is a unit's name.
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

/// A name's stem and its extension without the dot; a dot at the start does not begin an extension.
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
    fn what_is_no_url_has_no_host() {
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
        record.blake3 = Some([0xAB; 32]);
        assert_eq!(field(&record, &Field::Shard), "ab");
        assert_eq!(field(&record, &Field::Blake3), "ab".repeat(32));
    }

    #[test]
    fn size_is_the_files_and_else_the_payloads() {
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
