//! A group of units that become one: their number, their contents, and their origins.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::file::model::Fold;
use crate::ops::Number;
use crate::record::{PiecesSoFar, Record};

/// The minimum weight of a group: the bytes of its record and of its entry in the engine's table.
const OVERHEAD: u64 = 4 * size_of::<Record>() as u64;

/// The part of a group's record that a single unit does not have.
#[derive(Debug, Clone, Default)]
pub struct Group {
    /// The number of the group's members.
    count: u64,
    key: Option<Vec<u8>>,
    content: Content,
    /// The members without their payloads. There are none if the group represents the unit from which they were split,
    /// or if it only counts or adds.
    members: Vec<Record>,
    /// The members that are copies of the unit that the group represents, without their payloads.
    copies: Vec<Record>,
    /// Whether the members have dead letters. The pieces of a group share this flag.
    has_letters: Arc<AtomicBool>,
    /// In a retry: the dead letters to which the group's members belong.
    letters: Vec<usize>,
    /// The progress of the pieces of the unit that the group represents.
    pieces: Option<Arc<PiecesSoFar>>,
    /// The number of bytes that the group holds.
    weight: u64,
}

/// The contributions of the members so far.
#[derive(Debug, Clone, Default)]
enum Content {
    /// Only the number of the members.
    #[default]
    Count,
    /// A number folded from those of the members: their sum, the least or the greatest.
    Number(Fold, Number),
    /// The members' contents, one after the other.
    Kept {
        bytes: Vec<u8>,
        /// For each member, its position in the order and the end of its content.
        ends: Vec<(u64, usize)>,
    },
    /// The members' contents, one after the other. Each consists of sorted lines with their newlines.
    Sorted {
        bytes: Vec<u8>,
        /// The end of each content.
        ends: Vec<usize>,
    },
    /// The payload has been made from the contents.
    Taken,
}

impl Fold {
    /// The result for one more number, given the result so far.
    ///
    /// # Errors
    /// The sum would be too large to be written exactly.
    pub fn of(self, so_far: Option<Number>, number: Number) -> Result<Number, String> {
        Ok(match (so_far, self) {
            (Some(sum), Self::Sum | Self::Mean) => sum.plus(number).ok_or("the sum is too large")?,
            (Some(least), Self::Min) if least.order(number).is_le() => least,
            (Some(most), Self::Max) if most.order(number).is_ge() => most,
            _ => number,
        })
    }
}

impl Group {
    /// An empty group with this key.
    pub fn new(key: Option<Vec<u8>>) -> Self {
        let weight = Self::weight_of(key.as_deref());
        Self { key, weight, ..Self::default() }
    }

    /// The weight of a group with this key and nothing else.
    pub fn weight_of(key: Option<&[u8]>) -> u64 {
        OVERHEAD + key.map_or(0, <[u8]>::len) as u64
    }

    /// A group that keeps only the number of its members, and perhaps the result of folding their numbers.
    pub fn of_tally(key: Option<Vec<u8>>, count: u64, number: Option<(Fold, Number)>) -> Self {
        let content = number.map_or(Content::Count, |(fold, number)| Content::Number(fold, number));
        Self { count, content, ..Self::new(key) }
    }

    /// An empty group for the pieces of this group, which a `gather` puts together again. The new group keeps the
    /// members of this one.
    pub fn of_pieces(&self) -> Self {
        let (members, has_letters) = (self.members.clone(), Arc::clone(&self.has_letters));
        Self { members, has_letters, ..Self::new(self.key.clone()) }
    }

    /// Sets the progress of the pieces of the unit that the group represents.
    pub fn set_pieces(&mut self, pieces: Option<Arc<PiecesSoFar>>) {
        self.pieces = pieces;
    }

    /// The progress of the pieces of the unit that the group represents; `None` if it represents no unit.
    pub fn pieces(&self) -> Option<&PiecesSoFar> {
        self.pieces.as_deref()
    }

    /// Marks the members as having dead letters; returns whether they had none before.
    pub fn takes_letters(&self) -> bool {
        // Relaxed: the flag publishes nothing.
        !self.has_letters.swap(true, Ordering::Relaxed)
    }

    /// The number of bytes of the members' contents.
    pub fn content_bytes(&self) -> u64 {
        match &self.content {
            Content::Kept { bytes, .. } | Content::Sorted { bytes, .. } => bytes.len() as u64,
            Content::Count | Content::Number(..) | Content::Taken => 0,
        }
    }

    /// The number of the group's members.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The text that all members have in common, if they were gathered by a text.
    pub fn key(&self) -> Option<&[u8]> {
        self.key.as_deref()
    }

    /// Keeps the fields of a copy.
    pub fn keep_copy(&mut self, copy: &Record) {
        let copy = copy.without_payload();
        self.weight += size_of::<Record>() as u64 + copy.held();
        self.copies.push(copy);
    }

    /// The copy that went to this stage, if that copy has joined.
    pub fn copy(&self, stage: &str) -> Option<&Record> {
        self.copies.iter().find(|copy| copy.copied_for().is_some_and(|copied| **copied == *stage))
    }

    /// The members, if the group keeps them.
    pub fn members(&self) -> &[Record] {
        &self.members
    }

    /// The dead letters to which the group's members belong.
    pub fn letters(&self) -> impl Iterator<Item = usize> {
        self.letters.iter().copied()
    }

    /// Adds to the number of bytes that the group holds until its payload is made.
    pub fn hold(&mut self, bytes: u64) {
        self.weight += bytes;
    }

    /// Whether members may still join.
    pub fn is_open(&self) -> bool {
        !matches!(self.content, Content::Taken)
    }

    /// The number of bytes that the group holds.
    pub fn weight(&self) -> u64 {
        self.weight
    }

    /// Counts a member.
    pub fn join(&mut self, member: &Record) {
        self.count += 1;
        self.letters.extend(member.letters());
    }

    /// Folds a member's number into that of the group.
    ///
    /// # Errors
    /// The sum would be too large to be written exactly.
    pub fn fold(&mut self, fold: Fold, number: Number) -> Result<(), String> {
        let so_far = if let Content::Number(_, so_far) = self.content { Some(so_far) } else { None };
        self.content = Content::Number(fold, fold.of(so_far, number)?);
        Ok(())
    }

    /// Keeps a member's content, and the bytes that follow it, in `parts`. Its position among the contents is `order`,
    /// or the last if there is no `order`.
    pub fn keep(&mut self, order: Option<u64>, parts: [&[u8]; 2]) {
        if !matches!(self.content, Content::Kept { .. }) {
            self.content = Content::Kept { bytes: Vec::new(), ends: Vec::new() };
        }
        let Content::Kept { bytes, ends } = &mut self.content else { unreachable!("it was made above") };
        parts.iter().for_each(|part| bytes.extend_from_slice(part));
        ends.push((order.unwrap_or(ends.len() as u64), bytes.len()));
        self.weight += (parts[0].len() + parts[1].len() + size_of::<(u64, usize)>()) as u64;
    }

    /// Keeps a member's content, which consists of sorted lines. The last line may lack its newline.
    pub fn keep_sorted(&mut self, content: &[u8]) {
        if !matches!(self.content, Content::Sorted { .. }) {
            self.content = Content::Sorted { bytes: Vec::new(), ends: Vec::new() };
        }
        let Content::Sorted { bytes, ends } = &mut self.content else { unreachable!("it was made above") };
        let before = bytes.len();
        bytes.extend_from_slice(content);
        if content.last().is_some_and(|byte| *byte != b'\n') {
            bytes.push(b'\n');
        }
        self.weight += (bytes.len() - before + size_of::<usize>()) as u64;
        ends.push(bytes.len());
    }

    /// Keeps the origin of a member, for its dead letter.
    pub fn remember(&mut self, member: &Record) {
        let mut remember = |member: Record| {
            self.weight += size_of::<Record>() as u64 + member.held();
            self.members.push(member);
        };
        match member.group() {
            Some(group) if !group.members.is_empty() => group.members.iter().cloned().for_each(remember),
            _ => remember(member.bare()),
        }
    }

    /// Takes the group's payload; returns `None` if it was taken before.
    pub fn take_content(&mut self) -> Option<Vec<u8>> {
        let content = match std::mem::replace(&mut self.content, Content::Taken) {
            Content::Count => self.count.to_string().into_bytes(),
            Content::Number(Fold::Mean, sum) => sum.over(self.count).to_string().into_bytes(),
            Content::Number(_, number) => number.to_string().into_bytes(),
            Content::Kept { bytes, ends } => in_order(bytes, ends),
            Content::Sorted { bytes, ends } => merged(&bytes, &ends),
            Content::Taken => return None,
        };
        // From now on, the payload is weighed separately, and the group weighs only its members.
        self.weight = self
            .members
            .iter()
            .chain(&self.copies)
            .map(|member| size_of::<Record>() as u64 + member.held())
            .sum::<u64>()
            + OVERHEAD;
        Some(content)
    }
}

/// The lines of all contents in the order of their bytes. Equal lines stay in the order of the contents from which they
/// come.
fn merged(bytes: &[u8], ends: &[usize]) -> Vec<u8> {
    let mut all = Vec::with_capacity(bytes.len());
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let mut contents: Vec<_> =
        starts.zip(ends).map(|(start, end)| bytes[start..*end].split_inclusive(|byte| *byte == b'\n')).collect();
    let mut heap = BinaryHeap::with_capacity(contents.len());
    let mut refill = |heap: &mut BinaryHeap<_>, content: usize| {
        // Lines are compared without their newlines. Otherwise a tab, which is below a newline, would put the line
        // `a\tb` before the line `a`.
        heap.extend(contents[content].next().map(|line| Reverse((&line[..line.len() - 1], content))));
    };
    (0..ends.len()).for_each(|content| refill(&mut heap, content));
    while let Some(Reverse((line, content))) = heap.pop() {
        all.extend_from_slice(line);
        all.push(b'\n');
        refill(&mut heap, content);
    }
    all
}

/// The contents in the order of their positions.
fn in_order(bytes: Vec<u8>, mut ends: Vec<(u64, usize)>) -> Vec<u8> {
    if ends.is_sorted_by_key(|(order, _)| *order) {
        return bytes;
    }
    let mut begin = 0;
    let mut ranges: Vec<(u64, std::ops::Range<usize>)> = Vec::with_capacity(ends.len());
    for (order, end) in ends.drain(..) {
        ranges.push((order, begin..end));
        begin = end;
    }
    ranges.sort_by_key(|(order, _)| *order);
    let mut ordered = Vec::with_capacity(bytes.len());
    ranges.into_iter().for_each(|(_, range)| ordered.extend_from_slice(&bytes[range]));
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_put_in_order_and_taken_once() {
        let mut group = Group::new(None);
        for (order, content) in [(3, "c"), (1, "a"), (2, "bb")] {
            group.keep(Some(order), [content.as_bytes(), b";"]);
        }
        assert_eq!(group.take_content().unwrap(), b"a;bb;c;");
        assert!(group.take_content().is_none() && group.weight() == OVERHEAD);
    }

    #[test]
    fn members_without_a_position_stay_in_the_order_of_arrival() {
        let mut group = Group::new(None);
        ["x", "a", "m"].iter().for_each(|content| group.keep(None, [content.as_bytes(), b""]));
        assert_eq!(group.take_content().unwrap(), b"xam");
    }

    #[test]
    fn sorted_contents_become_one() {
        let mut group = Group::new(None);
        ["a\nc\nx\n", "", "b\nc", "\n\na\u{1}\n"].iter().for_each(|content| group.keep_sorted(content.as_bytes()));
        assert_eq!(group.content_bytes(), 6 + 4 + 5);
        assert_eq!(group.take_content().unwrap(), b"\n\na\na\x01\nb\nc\nc\nx\n");
    }

    #[test]
    fn whole_numbers_are_added_exactly() {
        let mut group = Group::new(None);
        for number in ["9007199254740993", "-1", " 3"] {
            group.fold(Fold::Sum, Number::parse(number.as_bytes()).unwrap()).unwrap();
        }
        assert_eq!(group.take_content().unwrap(), b"9007199254740995");
        let mut group = Group::new(None);
        for number in ["0.5", "2"] {
            group.fold(Fold::Sum, Number::parse(number.as_bytes()).unwrap()).unwrap();
        }
        assert_eq!(group.take_content().unwrap(), b"2.5");
        let most = Number::parse(i128::MAX.to_string().as_bytes()).unwrap();
        let mut group = Group::new(None);
        group.fold(Fold::Sum, most).unwrap();
        assert!(group.fold(Fold::Sum, most).is_err());
    }

    #[test]
    fn the_least_the_greatest_and_the_mean_are_numbers_too() {
        for (fold, expected) in [(Fold::Min, "-2"), (Fold::Max, "10"), (Fold::Mean, "3.5"), (Fold::Sum, "10.5")] {
            let mut group = Group::new(None);
            for number in ["2.5", "-2", "10"] {
                group.fold(fold, Number::parse(number.as_bytes()).unwrap()).unwrap();
                group.join(&Record::default());
            }
            assert_eq!(group.take_content().unwrap(), expected.as_bytes(), "{fold:?}");
        }
    }
}
