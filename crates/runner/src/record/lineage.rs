//! Units that are made from other units (pieces, copies and groups), and the dead letters that are retried with them.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;

use super::rare::{Rare, RareFacts};
use super::{Origin, Record};
use crate::file::template::Field;
use crate::group::Group;
use crate::json_member::Members;
use crate::payload::Payload;

/// The progress of the pieces of a unit.
#[derive(Debug, Default)]
pub struct PiecesSoFar {
    /// The number of the last piece that was produced.
    pub last: AtomicU64,
    /// Whether the unit itself, a piece of it, or a piece of a piece has a dead letter.
    pub any_letter: AtomicBool,
}

/// The text that identifies a piece.
pub enum PieceText {
    /// The piece has no text of its own.
    None,
    /// A line.
    Line(Bytes),
    /// The path of a file in an archive.
    Member(Vec<u8>),
    /// The text of the unit that is copied: the piece is the copy of this unit for the stage of this name.
    Copy(Arc<str>),
}

/// The unit of which other units are pieces, without its payload.
///
/// One worker makes pieces while others drop them, and each piece has a counted reference to its unit. With a single
/// count, its cache line would move between cores for every piece. So the pieces form [groups](Self::apart), each with
/// a count of its own.
#[derive(Debug, Clone)]
pub struct Parent(Arc<Shared>);

/// The allocation whose reference count the pieces of one group share.
#[derive(Debug)]
struct Shared {
    unit: Arc<Record>,
}

impl Parent {
    fn of(unit: Arc<Record>) -> Self {
        Self(Arc::new(Shared { unit }))
    }

    /// The same unit, with a reference count of its own.
    pub fn apart(&self) -> Self {
        Self::of(Arc::clone(&self.0.unit))
    }
}

impl Deref for Parent {
    type Target = Record;

    fn deref(&self) -> &Record {
        &self.0.unit
    }
}

/// The pieces of a unit that a retry runs, in the order of the [paths](Record::parts) from the unit to them.
pub type Wanted = [WantedPiece];

/// A piece that a retry runs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WantedPiece {
    /// The path from the unit to the piece.
    pub parts: Vec<u64>,
    /// The number of the piece's dead letter.
    pub letter: usize,
    /// The number of the last piece that an earlier run has made from this piece.
    pub passed: u64,
}

/// Copies the text out of its block, so that the copy does not keep the lines of other units in memory.
fn own(text: &Bytes) -> Bytes {
    Bytes::copy_from_slice(text)
}

impl Record {
    /// This unit without its payload, as its pieces know it.
    pub fn as_parent(&self) -> Parent {
        let mut bare = self.but_payload();
        bare.rare.forget_wanted();
        // The permissions are determined once here, not again for each piece.
        bare.mode = self.mode.or_else(|| Some(self.own_file()?.st_mode));
        Parent::of(Arc::new(bare))
    }

    /// The whole unit except its payload.
    fn but_payload(&self) -> Self {
        let Self { text, rel_at, root, origin, size, mode, json, filtered, done_by, place, parent, .. } = self;
        Self {
            text: own(text),
            rel_at: *rel_at,
            root: root.clone(),
            origin: *origin,
            size: *size,
            declared: 0,
            headroom: 0,
            payload: Payload::default(),
            mode: *mode,
            json: json.clone(),
            filtered: *filtered,
            done_by: *done_by,
            place: place.clone(),
            parent: parent.clone(),
            part: self.part,
            level: self.level,
            group: self.group.clone(),
            rare: self.rare.clone(),
        }
    }

    /// A piece of another unit.
    #[inline]
    pub fn piece(parent: &Parent, part: u64, text: PieceText) -> Self {
        let (text, origin, copy) = match text {
            PieceText::None => (Bytes::new(), Origin::Piece, None),
            PieceText::Line(line) => (line, Origin::Line, None),
            PieceText::Member(path) => (path.into(), Origin::Member, None),
            PieceText::Copy(stage) => (Bytes::new(), Origin::Piece, Some(stage)),
        };
        let mut rare = Rare::default();
        if copy.is_some() {
            // Facts about the unit are also true of its copy.
            (rare.copy, rare.blake3, rare.sha256) = (copy, parent.rare.blake3, parent.rare.sha256);
        }
        // The piece gets the permissions of its parent, since its content may be as private as that of the parent.
        let (level, mode) = (parent.level + 1, parent.mode);
        let parent = Some(parent.clone());
        Self { text, origin, parent, part, level, mode, rare, ..Self::default() }
    }

    /// The stage for which this unit is a copy; `None` if it is not a copy.
    pub fn copied_for(&self) -> Option<&Arc<str>> {
        self.rare.copy.as_ref()
    }

    /// This unit without its payload, for a group that keeps its fields.
    pub fn without_payload(&self) -> Self {
        let mut bare = Self { place: None, ..self.but_payload() };
        bare.rare.forget_wanted();
        bare
    }

    /// This unit without its payload and fields: its identity, for its dead letter.
    pub fn bare(&self) -> Self {
        let Self { rel_at, origin, part, level, .. } = *self;
        let mut rare = Rare::default();
        if !self.rare.is_none() {
            let RareFacts { fault, pieces, passed, .. } = &*self.rare;
            (rare.fault, rare.pieces, rare.passed) = (fault.clone(), pieces.clone(), *passed);
        }
        let (text, parent) = (own(&self.text), self.parent.clone());
        Self { text, rel_at, origin, parent, part, level, rare, ..Self::default() }
    }

    /// A group without members, which `first` and other units will join. With `of_family`, these units are pieces, and
    /// the group represents the unit from which they were split.
    pub fn of_group(first: &Self, of_family: bool, key: Option<Vec<u8>>) -> Self {
        let text = key.clone().unwrap_or_default().into();
        let group = |record: Self| {
            // A group of pieces of another group keeps the members of that other group.
            let group = record.group.as_ref().map_or_else(|| Group::new(key), |whole| whole.of_pieces());
            // The group is a new unit: no op has changed it, and no filter has tested it.
            Self { group: Some(Box::new(group)), done_by: 0, filtered: false, ..record }
        };
        let gathered = Self { text, origin: Origin::Gathered, place: first.place.clone(), ..Self::default() };
        match (&first.parent, of_family) {
            // The group represents the whole unit again. The progress of the unit's pieces moves from the unit's record
            // into the group, since the group itself has been split into no pieces yet.
            (Some(parent), true) => {
                let mut whole = group(Self { size: None, ..Self::clone(parent) });
                (whole.rare.pieces, whole.rare.passed) = (None, 0);
                whole.group_mut().into_iter().for_each(|group| group.set_pieces(parent.rare.pieces.clone()));
                whole
            }
            (Some(parent), false) => {
                let Self { part, level, mode, .. } = *first;
                group(Self { parent: Some(parent.clone()), part, level, mode, ..gathered })
            }
            (None, true) => {
                let Self { declared, headroom, .. } = *first;
                group(Self { json: Members::default(), declared, headroom, ..first.but_payload() })
            }
            (None, false) => group(gathered),
        }
    }

    /// Makes the group at least as private as this member.
    pub fn share_privacy_of(&mut self, member: &Self) {
        self.mode = Self::common_mode(self.mode, member);
    }

    /// The permissions that the previous members and this member have in common.
    pub fn common_mode(before: Option<u32>, member: &Self) -> Option<u32> {
        let theirs = member.mode.or_else(|| Some(member.own_file()?.st_mode));
        match (before, theirs) {
            (Some(ours), Some(theirs)) => Some(ours & theirs),
            (ours, theirs) => ours.or(theirs),
        }
    }

    /// A group of units that are not pieces.
    pub fn of_tally(group: Group, mode: Option<u32>) -> Self {
        let text = group.key().unwrap_or_default().to_vec().into();
        Self { text, origin: Origin::Gathered, group: Some(Box::new(group)), mode, ..Self::default() }
    }

    /// Whether this unit is a piece of another one.
    pub fn is_piece(&self) -> bool {
        self.parent.is_some()
    }

    /// The units from which this one was gathered; `None` if it was not gathered.
    pub fn group(&self) -> Option<&Group> {
        self.group.as_deref()
    }

    /// [`group`](Self::group), to change it.
    pub fn group_mut(&mut self) -> Option<&mut Group> {
        self.group.as_deref_mut()
    }

    /// Whether this unit is a group that represents no other unit.
    pub fn is_gathered(&self) -> bool {
        self.origin == Origin::Gathered
    }

    /// The first [gathered](Self::is_gathered) unit in the line of descent, which begins with this unit.
    pub fn gathered_whole(&self) -> Option<&Self> {
        self.line_of_descent().find(|record| record.is_gathered())
    }

    /// The dead letters that need no further retry once this unit is retired. The letter of a unit that was split stays
    /// until all pieces have ended.
    pub fn settled_letters(&self) -> impl Iterator<Item = usize> {
        let stands_for_another = self.group.is_some() && !self.is_gathered();
        self.letters().filter(move |letter| !stands_for_another || Some(*letter) != self.rare.letter)
    }

    /// The dead letters that are retried with this unit.
    pub fn letters(&self) -> impl Iterator<Item = usize> {
        self.rare.letter.into_iter().chain(self.group.iter().flat_map(|group| group.letters()))
    }

    /// This unit's number among the pieces of the unit from which it was split, from 1; 0 if it is not a piece.
    pub fn part(&self) -> u64 {
        self.part
    }

    /// The unit of the source from which this unit descends, or this unit itself if it is not a piece.
    pub fn whole(&self) -> &Self {
        self.line_of_descent().last().unwrap_or(self)
    }

    /// The unit itself, then the unit of which it is a piece, and so on.
    fn line_of_descent(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |record| record.parent.as_deref())
    }

    /// The number of splits that have led to this unit.
    pub fn level(&self) -> u32 {
        self.level
    }

    /// Whether the field is the path of a file named by the source alone, without data from elsewhere.
    pub fn is_own_path(&self, field: &Field) -> bool {
        match (field, &self.parent) {
            (Field::Path | Field::Dir, None) => true,
            (Field::Path | Field::Dir, Some(parent)) => self.origin == Origin::Piece && parent.is_own_path(field),
            (Field::Parent(field), Some(parent)) => parent.is_own_path(field),
            _ => false,
        }
    }

    /// The path from the unit of the source to this piece: for each split on the path, the number of the piece through
    /// which the path continues.
    pub fn parts(&self) -> Vec<u64> {
        let mut parts: Vec<u64> =
            self.line_of_descent().take_while(|record| record.parent.is_some()).map(|record| record.part).collect();
        parts.reverse();
        parts
    }

    /// The number of the last piece made from this unit, in this run or an earlier one; `None` if the unit is not
    /// split.
    pub fn brought_out(&self) -> Option<u64> {
        // Relaxed: the unit has left the stage that counts its pieces, and the engine orders that stage's stores
        // before this load.
        self.rare.pieces.as_ref().map(|pieces| pieces.last.load(Ordering::Relaxed).max(self.rare.passed))
    }

    /// Notes that this unit has a dead letter, for the groups in which the unit is then missing.
    pub fn note_letter(&self) {
        for unit in self.line_of_descent() {
            // Relaxed: the engine orders the end of a piece before the end of the group in which the piece is missing.
            unit.rare.pieces.iter().for_each(|pieces| pieces.any_letter.store(true, Ordering::Relaxed));
        }
    }

    /// Whether the unit that this group represents, or a piece of that unit, has a dead letter.
    pub fn lacks_a_piece_with_a_letter(&self) -> bool {
        // Relaxed: see `note_letter`.
        let pieces = self.group.as_ref().and_then(|group| group.pieces());
        pieces.is_some_and(|pieces| pieces.any_letter.load(Ordering::Relaxed))
    }
}
