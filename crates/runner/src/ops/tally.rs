//! A tally: an open group that stores its key and numbers, but no members or contents.
//!
//! With many keys, the groups are scattered over memory, and nearly every member reaches a group that is not in the
//! cache. So a tally is as small as possible. When a tally is closed, it becomes a full group. It also becomes a full
//! group when a retry adds a unit of a dead letter, because only a full group can store the letters of its members.

use crate::file::model::{Fold, GatherBy, GatherSpec, Reduce};
use crate::group::Group;
use crate::ops::Number;
use crate::record::Record;

/// An open group, in the smallest form that can store its members.
#[derive(Debug, Default)]
pub enum Joined {
    /// The group has no member yet.
    #[default]
    Nothing,
    /// The key and numbers are stored, but no members or contents.
    Tally(Tally),
    /// The members or their contents are stored.
    Group(Box<Record>),
}

/// See the [module](self).
#[derive(Debug)]
pub struct Tally {
    key: Option<Box<[u8]>>,
    count: u64,
    number: Option<(Fold, Number)>,
    /// The permissions of the members' files, if these permissions are the same for all members.
    mode: Option<u32>,
}

impl Tally {
    /// Whether a unit can be the first member of a tally. Nothing of such a unit is needed later, except the number
    /// that it adds.
    pub fn may_begin(first: &Record, spec: &GatherSpec) -> bool {
        let reduces = matches!(spec.reduce, Reduce::Count | Reduce::Number(_));
        reduces && spec.by != GatherBy::Parent && Self::takes(first) && first.place.is_none() && !first.is_piece()
    }

    /// Whether a unit can join a tally that has members: the unit must not come from a dead letter of an earlier run.
    pub fn takes(member: &Record) -> bool {
        member.letters().next().is_none()
    }

    /// A tally without members.
    pub fn new(key: Option<Vec<u8>>) -> Self {
        Self { key: key.map(Vec::into_boxed_slice), count: 0, number: None, mode: None }
    }

    /// Adds a member, and its number if the tally folds numbers.
    ///
    /// # Errors
    /// The sum would be too large to be written exactly.
    pub fn join(&mut self, member: &Record, number: Option<(Fold, Number)>) -> Result<(), String> {
        if let Some((fold, number)) = number {
            let so_far = self.number.map(|(_, so_far)| so_far);
            self.number = Some((fold, fold.of(so_far, number)?));
        }
        self.mode = Record::common_mode(self.mode, member);
        self.count += 1;
        Ok(())
    }

    /// Whether the tally has a key and that key is empty.
    pub fn has_empty_key(&self) -> bool {
        self.key.as_deref().is_some_and(<[u8]>::is_empty)
    }

    /// The weight of the full group that the tally can become.
    pub fn weight(&self) -> u64 {
        Group::weight_of(self.key.as_deref())
    }

    /// Turns the tally into a full group.
    pub fn into_group(self) -> Record {
        let Self { key, count, number, mode } = self;
        Record::of_tally(Group::of_tally(key.map(Vec::from), count, number), mode)
    }
}

impl Joined {
    /// The group as a record. A tally becomes a full group first.
    pub fn record(&mut self) -> &mut Record {
        if !matches!(self, Self::Group(_)) {
            *self = Self::Group(Box::new(std::mem::take(self).into_record()));
        }
        let Self::Group(record) = self else { unreachable!("it was made above") };
        record
    }

    /// The group as a record.
    pub fn into_record(self) -> Record {
        match self {
            Self::Nothing => Record::default(),
            Self::Tally(tally) => tally.into_group(),
            Self::Group(record) => *record,
        }
    }
}
