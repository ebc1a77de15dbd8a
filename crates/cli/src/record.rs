//! The payload of a flow file's units: where a unit comes from, what stages have found out about it, and its bytes.

mod fields;
mod items;
mod lineage;
mod rare;

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use rustix::fs::{AtFlags, Stat};

pub(crate) use self::lineage::{Parent, PieceText, PiecesSoFar, Wanted, WantedPiece};
use self::rare::Rare;
use crate::group::Group;
use crate::json_member::Members;
use crate::payload::Payload;
use crate::printer::Place;
use crate::regular;

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
    text: Bytes,
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
    /// The members of the object that a `parse` stage has read.
    pub json: Members,
    /// Whether the last `filter` stage found that its condition does not hold.
    pub filtered: bool,
    /// The op that has changed the record last; 0 when none has.
    pub(crate) done_by: u32,
    /// Its place in the order of what is printed, in a flow with such an order.
    pub(crate) place: Option<Arc<Place>>,
    /// The unit that this one is a piece of, without its payload.
    parent: Option<Parent>,
    /// Its number among the pieces, from 1.
    part: u64,
    /// The number of splits that have led to it.
    level: u32,
    /// The units that it was gathered from.
    group: Option<Box<Group>>,
    /// The facts that few units have.
    pub(crate) rare: Rare,
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
        Self { text: path.into(), rel_at, ..Self::default() }
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
        Self::line_of_block(line.into())
    }

    /// A line, without its ending, in a block that it may share with others.
    pub(crate) fn line_of_block(line: Bytes) -> Self {
        Self { text: line, origin: Origin::Line, ..Self::default() }
    }

    /// An argument of the command line.
    pub(crate) fn argument(argument: Vec<u8>) -> Self {
        Self { text: argument.into(), origin: Origin::Argument, ..Self::default() }
    }

    /// A record of a payload and nothing else.
    #[cfg(test)]
    pub(crate) fn holding(payload: impl Into<Vec<u8>>) -> Self {
        Self { payload: Payload::Bytes(payload.into()), ..Self::default() }
    }

    /// The same record, which the source could not produce.
    #[must_use]
    pub(crate) fn with_fault(mut self, fault: impl Into<String>) -> Self {
        self.rare.fault = Some(fault.into());
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
        matches!(self.origin, Origin::Line | Origin::Argument).then_some(&*self.text)
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
        let words = self.text.len() + self.json.bytes() + self.rare.bytes();
        let words = if words <= UNCOUNTED { 0 } else { words as u64 };
        words + self.payload.weight() + self.headroom + self.group.as_ref().map_or(0, |group| group.weight())
    }

    /// The value of a [member](Members::find) of the parsed object, or of an object within it.
    pub(crate) fn json_member(&self, path: &str) -> Option<Cow<'_, [u8]>> {
        self.json.find(path)
    }

    /// Sets `{set.NAME}`.
    pub(crate) fn set_field(&mut self, name: String, value: Vec<u8>) {
        match self.rare.set.iter_mut().find(|(set, _)| *set == name) {
            Some((_, earlier)) => *earlier = value,
            None => self.rare.set.push((name, value)),
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
}
