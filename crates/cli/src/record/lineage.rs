//! Units that come from units: pieces, copies and groups, and the dead letters that are retried with them.

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
    Line(Bytes),
    /// The path of a file in an archive.
    Member(Vec<u8>),
    /// That of the unit, of which it is a copy for this stage.
    Copy(Arc<str>),
}

/// The unit that others are pieces of, without its payload.
///
/// One worker makes pieces while others drop them, and each of these counts a reference. So the pieces of a unit share it in
/// [groups](Self::apart) with a count of their own, or the cores would pass one count to and fro for every piece.
#[derive(Debug, Clone)]
pub(crate) struct Parent(Arc<Shared>);

/// The pieces of one group count their references here.
#[derive(Debug)]
struct Shared {
    unit: Arc<Record>,
}

impl Parent {
    fn of(unit: Arc<Record>) -> Self {
        Self(Arc::new(Shared { unit }))
    }

    /// The same unit, with a count of its own.
    pub(crate) fn apart(&self) -> Self {
        Self::of(Arc::clone(&self.0.unit))
    }
}

impl Deref for Parent {
    type Target = Record;

    fn deref(&self) -> &Record {
        &self.0.unit
    }
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

/// A copy that keeps no block of other units' lines in memory.
fn own(text: &Bytes) -> Bytes {
    Bytes::copy_from_slice(text)
}

impl Record {
    /// This unit without its payload, as its pieces know it.
    pub(crate) fn as_parent(&self) -> Parent {
        let mut bare = self.but_payload();
        bare.rare.forget_wanted();
        // The permissions are asked for once, and not for each piece.
        bare.mode = self.mode.or_else(|| Some(self.own_file()?.st_mode));
        Parent::of(Arc::new(bare))
    }

    /// All of it but its payload.
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
    pub(crate) fn piece(parent: &Parent, part: u64, text: PieceText) -> Self {
        let (text, origin, copy) = match text {
            PieceText::None => (Bytes::new(), Origin::Piece, None),
            PieceText::Line(line) => (line, Origin::Line, None),
            PieceText::Member(path) => (path.into(), Origin::Member, None),
            PieceText::Copy(stage) => (Bytes::new(), Origin::Piece, Some(stage)),
        };
        let mut rare = Rare::default();
        if copy.is_some() {
            // Of a copy, what was found out about the unit stays true.
            (rare.copy, rare.blake3, rare.sha256) = (copy, parent.rare.blake3, parent.rare.sha256);
        }
        // The content may not be for all to read, as that of its parent.
        let (level, mode) = (parent.level + 1, parent.mode);
        let parent = Some(parent.clone());
        Self { text, origin, parent, part, level, mode, rare, ..Self::default() }
    }

    /// The stage that it is a copy for.
    pub(crate) fn copied_for(&self) -> Option<&Arc<str>> {
        self.rare.copy.as_ref()
    }

    /// This unit without its payload, for a group that keeps its fields.
    pub(crate) fn without_payload(&self) -> Self {
        let mut bare = Self { place: None, ..self.but_payload() };
        bare.rare.forget_wanted();
        bare
    }

    /// This unit without its payload and fields: what it was, for its dead letter.
    pub(crate) fn bare(&self) -> Self {
        let Self { rel_at, origin, part, level, .. } = *self;
        let mut rare = Rare::default();
        if !self.rare.is_none() {
            let RareFacts { fault, pieces, passed, .. } = &*self.rare;
            (rare.fault, rare.pieces, rare.passed) = (fault.clone(), pieces.clone(), *passed);
        }
        let (text, parent) = (own(&self.text), self.parent.clone());
        Self { text, rel_at, origin, parent, part, level, rare, ..Self::default() }
    }

    /// A group without members, for units of which `first` is one. If they are pieces `of_family`, it stands for the unit
    /// that they were split from.
    pub(crate) fn of_group(first: &Self, of_family: bool, key: Option<Vec<u8>>) -> Self {
        let text = key.clone().unwrap_or_default().into();
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

    /// Makes the group as private as a member.
    pub(crate) fn share_privacy_of(&mut self, member: &Self) {
        self.mode = Self::common_mode(self.mode, member);
    }

    /// The permissions that a member leaves of those which the members before it have.
    pub(crate) fn common_mode(before: Option<u32>, member: &Self) -> Option<u32> {
        let theirs = member.mode.or_else(|| Some(member.own_file()?.st_mode));
        match (before, theirs) {
            (Some(ours), Some(theirs)) => Some(ours & theirs),
            (ours, theirs) => ours.or(theirs),
        }
    }

    /// A group of units that are no pieces.
    pub(crate) fn of_tally(group: Group, mode: Option<u32>) -> Self {
        let text = group.key().unwrap_or_default().to_vec().into();
        Self { text, origin: Origin::Gathered, group: Some(Box::new(group)), mode, ..Self::default() }
    }

    /// Whether it is a piece of another unit.
    pub(crate) fn is_piece(&self) -> bool {
        self.parent.is_some()
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
        self.letters().filter(move |letter| !stands_for_another || Some(*letter) != self.rare.letter)
    }

    /// The dead letters that are retried with it.
    pub(crate) fn letters(&self) -> impl Iterator<Item = usize> {
        self.rare.letter.into_iter().chain(self.group.iter().flat_map(|group| group.letters()))
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
        self.rare.pieces.as_ref().map(|pieces| pieces.last.load(Ordering::Relaxed).max(self.rare.passed))
    }

    /// Notes that it has a dead letter, for the groups that lack it.
    pub(crate) fn note_letter(&self) {
        for unit in self.line_of_descent() {
            // Relaxed: the engine orders the end of a piece before that of the group which lacks it.
            unit.rare.pieces.iter().for_each(|pieces| pieces.any_letter.store(true, Ordering::Relaxed));
        }
    }

    /// Whether it stands for a unit that has a dead letter, or of whose pieces one has.
    pub(crate) fn lacks_a_piece_with_a_letter(&self) -> bool {
        // Relaxed: see `note_letter`.
        let pieces = self.group.as_ref().and_then(|group| group.pieces());
        pieces.is_some_and(|pieces| pieces.any_letter.load(Ordering::Relaxed))
    }
}
