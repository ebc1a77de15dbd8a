//! The units of a flow file: the origin of a unit, the facts that stages have determined, and its bytes.

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

pub use self::lineage::{Parent, PieceText, PiecesSoFar, Wanted, WantedPiece};
use self::rare::Rare;
use crate::group::Group;
use crate::json_member::Members;
use crate::payload::Payload;
use crate::printer::Place;
use crate::regular;

/// The number of bytes of a unit's text, members and fault that do not count towards its weight. Nearly every unit has
/// fewer of these bytes in all. The cap on units in flight bounds the memory for these bytes, as it does for the
/// records themselves.
const UNCOUNTED: usize = 1 << 10;

/// A unit of a flow file.
///
/// Paths and lines are bytes and need not be UTF-8. Stages change a record in place. A field that no stage has
/// determined is `None`; a template that uses it fails, and the failure names the field.
#[derive(Debug, Clone, Default)]
pub struct Record {
    /// The file's path, the line, or the argument.
    text: Bytes,
    /// The offset in `text` of the part relative to the walk's root.
    rel_at: usize,
    /// The folder in which the walk began, if the walk followed no symbolic links. Files below it are then opened
    /// without following symbolic links.
    root: Option<Arc<OwnedFd>>,
    origin: Origin,
    /// The size of the file: first from the walk, then corrected by the `read` stage.
    pub size: Option<u64>,
    /// Payload bytes that a later `read` stage will read. They count towards the unit's weight from admission on, so
    /// that memory is granted before the unit enters.
    pub declared: u64,
    /// Bytes by which a later `zstd` stage may make an incompressible payload larger. They count towards the weight as
    /// well: otherwise a byte budget full of such payloads would leave no room for any of them to proceed.
    pub headroom: u64,
    /// The unit's bytes.
    pub payload: Payload,
    /// The permissions of the file that a `read` stage has read, if one has.
    pub mode: Option<u32>,
    /// The members of the object that a `parse` stage has read.
    pub json: Members,
    /// Whether the condition of the last `filter` stage was false.
    pub filtered: bool,
    /// The op that changed the record last; 0 if none has.
    pub done_by: u32,
    /// The unit's place in the order of outputs, if the flow prints in order.
    pub place: Option<Arc<Place>>,
    /// The unit of which this one is a piece, without its payload; `None` if this unit is not a piece.
    parent: Option<Parent>,
    /// The unit's number among the pieces of `parent`, from 1.
    part: u64,
    /// The number of splits that have led to this unit.
    level: u32,
    /// The units from which this one was gathered; `None` if it was not gathered.
    group: Option<Box<Group>>,
    /// The facts that only few units have.
    pub rare: Rare,
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
    /// Several paths, lines or arguments, with a zero byte between them.
    Group,
    /// Several lines, each ended by this byte.
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
    /// If `rel_at` is beyond the path's end.
    pub fn file(path: Vec<u8>, rel_at: usize) -> Self {
        assert!(rel_at <= path.len(), "the relative part of a path lies within it");
        Self { text: path.into(), rel_at, ..Self::default() }
    }

    /// The same file, of a walk that began in the open folder `root` and follows no symbolic links.
    #[must_use]
    pub fn below(mut self, root: &Arc<OwnedFd>) -> Self {
        self.root = Some(Arc::clone(root));
        self
    }

    /// Opens the regular file at `path`. If the unit's walk follows no symbolic links and `path` is within the walked
    /// tree, the file is opened from the folder in which the walk began, without following any symbolic link.
    ///
    /// # Errors
    /// The errors of [`regular::open`] and [`regular::open_below`].
    pub fn open(&self, path: &Path) -> io::Result<(File, Metadata)> {
        match self.walked(path) {
            Some((root, relative)) => regular::open_below(root, relative),
            None => regular::open(path),
        }
    }

    /// The folder from which `path` is opened, and the path relative to it, if the unit's walk follows no symbolic
    /// links and `path` is within the walked tree.
    fn walked<'a>(&self, path: &'a Path) -> Option<(&OwnedFd, &'a Path)> {
        // For a piece, the folder is that of its unit of the source, so the piece cannot open other files than that
        // unit.
        let whole = self.whole();
        let root = whole.root.as_deref()?;
        Some((root, regular::part_below(path, &whole.text[..whole.rel_at])?))
    }

    /// A line, without its ending.
    pub fn line(line: Vec<u8>) -> Self {
        Self::line_of_block(line.into())
    }

    /// A line, without its ending, in a block that it may share with others.
    pub fn line_of_block(line: Bytes) -> Self {
        Self { text: line, origin: Origin::Line, ..Self::default() }
    }

    /// An argument of the command line.
    pub fn argument(argument: Vec<u8>) -> Self {
        Self { text: argument.into(), origin: Origin::Argument, ..Self::default() }
    }

    /// A record with nothing but a payload.
    #[cfg(test)]
    pub fn holding(payload: impl Into<Vec<u8>>) -> Self {
        Self { payload: Payload::Bytes(payload.into()), ..Self::default() }
    }

    /// The same record, with the reason why the source could not produce it.
    #[must_use]
    pub fn with_fault(mut self, fault: impl Into<String>) -> Self {
        self.rare.fault = Some(fault.into());
        self
    }

    /// The text that identifies the unit: the path, the line or the argument.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// The unit's text as a path.
    pub fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.text))
    }

    /// The line, if the unit is a line (or an argument, which counts as a line).
    pub fn line_text(&self) -> Option<&[u8]> {
        matches!(self.origin, Origin::Line | Origin::Argument).then_some(&*self.text)
    }

    /// For a file of a walk: the offset in its path of the part relative to the walk's root.
    pub fn rel_from(&self) -> Option<usize> {
        (self.origin == Origin::File).then_some(self.rel_at)
    }

    /// The weight of the unit: the bytes that it [holds](Self::held), and those of the payload that a later stage will
    /// read.
    pub fn bytes(&self) -> u64 {
        self.held() + self.declared
    }

    /// The bytes that the unit holds: its payload, its headroom, and its own texts beyond the first kilobyte.
    pub fn held(&self) -> u64 {
        let words = self.text.len() + self.json.bytes() + self.rare.bytes();
        let words = if words <= UNCOUNTED { 0 } else { words as u64 };
        words + self.payload.weight() + self.headroom + self.group.as_ref().map_or(0, |group| group.weight())
    }

    /// The value of a [member](Members::find) of the parsed object, or of an object within it.
    pub fn json_member(&self, path: &str) -> Option<Cow<'_, [u8]>> {
        self.json.find(path)
    }

    /// Sets `{set.NAME}`.
    pub fn set_field(&mut self, name: String, value: Vec<u8>) {
        match self.rare.set.iter_mut().find(|(set, _)| *set == name) {
            Some((_, earlier)) => *earlier = value,
            None => self.rare.set.push((name, value)),
        }
    }

    /// The value of `{size}`: the size of the unit's file, or of the payload if the unit is not a file. If the size of
    /// the file is not known yet, it is determined here.
    pub fn known_size(&self) -> u64 {
        self.size
            .or_else(|| u64::try_from(self.own_file()?.st_size).ok())
            .or_else(|| self.payload.known_len())
            .unwrap_or(0)
    }

    /// The permissions of a file made from this unit, before the usual `umask`. They derive from the file that a stage
    /// has [read](Self::mode) for the unit, or else from the unit's own file. The new file may belong to another group
    /// of users, so its group gets no more permissions than others have on the original.
    pub fn permissions(&self) -> u32 {
        let everybody = match self.mode.or_else(|| Some(self.own_file()?.st_mode)) {
            Some(mode) => mode & (mode >> 3) & 0o6,
            None => 0o6,
        };
        0o600 | everybody << 3 | everybody
    }

    /// The current metadata of the file, if the unit is a file that a walk has found.
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
