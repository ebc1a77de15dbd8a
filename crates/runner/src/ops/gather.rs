//! `gather`: several units become one, a group.
//!
//! The pieces of one unit form a group that replaces that unit and has the unit's fields; the group's content is that
//! of the pieces, in their order. Any other group has its key as text, and the contents of its members in their order
//! of arrival. A group that does more than count or add keeps the origins of its members, so that a dead letter can be
//! written for each member.

use std::borrow::Cow;

use millstream_flow::{Cx, Failure, Gather};
use smallvec::SmallVec;

use super::tally::{Joined, Tally};
use super::{Number, Op};
use crate::file::model::{Fold, GatherBy, GatherSpec, Reduce};
use crate::file::template::{Field, Fields, Template};
use crate::group::Group;
use crate::record::Record;

/// See the [module](self).
pub(super) struct Gathers;

impl Op for Gathers {
    fn run(&self, _: &mut Record, _: &mut Cx<'_>) -> Result<(), Failure> {
        unreachable!("a stage that gathers joins its units")
    }
}

/// The key of a group. A short key is stored in the table of groups itself, so a comparison follows no pointer.
type Key = SmallVec<[u8; 32]>;

/// How the key of a unit's group is computed.
enum KeyOf {
    All,
    /// The value of a field, copied into the key without a template.
    Field(Field),
    Text(Template),
}

impl KeyOf {
    fn new(by: &GatherBy) -> Self {
        match by {
            GatherBy::All | GatherBy::Parent => Self::All,
            GatherBy::Key(key) => {
                key.only().map_or_else(|| Self::Text(key.clone()), |field| Self::Field(field.clone()))
            }
        }
    }

    /// The key of a unit. If the unit lacks the field, the key is empty, and [`join`] reports the reason.
    fn of(&self, member: &Record) -> Key {
        match self {
            Self::All => Key::new(),
            Self::Field(field) => Key::from_slice(&member.field(field).unwrap_or_default()),
            Self::Text(text) => Key::from_slice(&text.render(member).unwrap_or_default()),
        }
    }
}

/// The rules of a stage that gathers as `spec` says. `may_join` decides whether a unit joins a group.
pub fn rules(
    spec: &GatherSpec,
    may_join: impl Fn(&Record) -> Result<(), Failure> + Send + Sync + 'static,
) -> Gather<Record, Joined, Key, Record> {
    let joining = spec.clone();
    let key = KeyOf::new(&spec.by);
    let mut gather = Gather::fold(Joined::default, move |group: &mut Joined, member: &mut Record, cx: &mut Cx<'_>| {
        may_join(member)?;
        join_any(group, member, &joining, cx)
    })
    .by_key(move |member: &Record| key.of(member))
    .weigh(weight)
    .map(|group: Joined| {
        let mut group = group.into_record();
        finish(&mut group);
        group
    });
    if spec.by == GatherBy::Parent {
        gather = gather.by_parent();
    }
    if let Some(units) = spec.units {
        gather = gather.units(units);
    }
    if let Some(bytes) = spec.bytes {
        gather = gather.full(move |group: &Joined| match group {
            Joined::Group(group) => group.group().is_some_and(|group| group.content_bytes() >= bytes),
            Joined::Nothing | Joined::Tally(_) => false,
        });
    }
    if let Some(wait) = spec.wait {
        gather = gather.wait(wait);
    }
    if let Some(groups) = spec.max_groups {
        gather = gather.max_groups(groups);
    }
    if spec.partial { gather.even_if_torn() } else { gather }
}

/// The weight of a group. It is computed again after each member.
fn weight(group: &Joined) -> u64 {
    match group {
        Joined::Nothing => 0,
        Joined::Tally(tally) => tally.weight(),
        Joined::Group(group) => match group.group().filter(|group| group.is_open()) {
            Some(open) => open.weight(),
            None => group.bytes(),
        },
    }
}

/// Adds a unit to the group. The group is a tally as long as a tally can store all its members.
fn join_any(group: &mut Joined, member: &Record, spec: &GatherSpec, cx: &mut Cx<'_>) -> Result<(), Failure> {
    match group {
        Joined::Nothing if Tally::may_begin(member, spec) => {
            let key = match &spec.by {
                GatherBy::Key(key) => Some(render(key, member)?),
                GatherBy::All | GatherBy::Parent => None,
            };
            let mut tally = Tally::new(key);
            tally.join(member, number_of(member, spec, cx)?).map_err(Failure::permanent)?;
            *group = Joined::Tally(tally);
            Ok(())
        }
        Joined::Tally(tally) if Tally::takes(member) => {
            // Units without a key are also assigned to the group with the empty key. Rendering the key finds such a
            // unit, which then fails.
            if let (GatherBy::Key(key), true) = (&spec.by, tally.has_empty_key()) {
                render(key, member)?;
            }
            tally.join(member, number_of(member, spec, cx)?).map_err(Failure::permanent)
        }
        _ => join(group.record(), member, spec, cx),
    }
}

/// The number that a member adds, if the group folds numbers.
fn number_of(member: &Record, spec: &GatherSpec, cx: &mut Cx<'_>) -> Result<Option<(Fold, Number)>, Failure> {
    let Reduce::Number(fold) = spec.reduce else { return Ok(None) };
    Ok(Some((fold, number(&content(member, spec, cx)?)?)))
}

/// The content that a member adds to the group.
fn content<'a>(member: &'a Record, spec: &GatherSpec, cx: &mut Cx<'_>) -> Result<Cow<'a, [u8]>, Failure> {
    Ok(match (&spec.reduce, &spec.item) {
        (Reduce::Count, _) => Cow::Borrowed(&[][..]),
        (_, Some(item)) => {
            let content = render(item, member)?;
            cx.reserve_first(member.bytes().saturating_add(content.len() as u64))?;
            Cow::Owned(content)
        }
        (_, None) => {
            let made = member.payload.to_make(cx)?;
            if made > 0 {
                cx.reserve_first(member.bytes().saturating_add(made))?;
            }
            member.payload.in_memory(made, cx)?
        }
    })
}

/// Adds a unit to the group. All steps that can fail come before the first change.
pub fn join(group: &mut Record, member: &Record, spec: &GatherSpec, cx: &mut Cx<'_>) -> Result<(), Failure> {
    let key = match &spec.by {
        // If the group has a non-empty key, the unit has the same key, so the key is not rendered again. In the group
        // with the empty key, the unit may lack a key, which is an error.
        GatherBy::Key(key) if group.group().and_then(Group::key).is_none_or(<[u8]>::is_empty) => {
            Some(render(key, member)?)
        }
        GatherBy::Key(_) | GatherBy::All | GatherBy::Parent => None,
    };
    let content = content(member, spec, cx)?;
    let number = match spec.reduce {
        Reduce::Number(_) => Some(number(&content)?),
        Reduce::Count | Reduce::Concat { .. } => None,
        Reduce::Merge => {
            is_sorted(&content)?;
            None
        }
    };
    let of_family = spec.by == GatherBy::Parent;
    if group.group().is_none() {
        *group = Record::of_group(member, of_family, key);
        let begun = group.group().map_or(0, Group::weight);
        let words = group.bytes() - begun;
        group.group_mut().into_iter().for_each(|group| group.hold(words));
    }
    if !of_family {
        group.share_privacy_of(member);
    }
    let group = group.group_mut().expect("it was begun above");
    if of_family && member.copied_for().is_some() {
        group.keep_copy(member);
    }
    match &spec.reduce {
        Reduce::Count => {}
        Reduce::Number(fold) => {
            group.fold(*fold, number.expect("it was read above")).map_err(Failure::permanent)?;
        }
        Reduce::Merge => {
            group.keep_sorted(&content);
            if !of_family {
                group.remember(member);
            }
        }
        Reduce::Concat { after } => {
            group.keep(of_family.then(|| member.part()), [&content, after]);
            if !of_family {
                group.remember(member);
            }
        }
    }
    group.join(member);
    Ok(())
}

fn render(template: &Template, member: &Record) -> Result<Vec<u8>, Failure> {
    template.render(member).map_err(|unknown| Failure::permanent(unknown.to_string()))
}

fn number(content: &[u8]) -> Result<Number, Failure> {
    Number::parse(content).ok_or_else(|| {
        let shown = String::from_utf8_lossy(&content[..content.len().min(40)]).into_owned();
        Failure::permanent(format!("{shown:?} is not a decimal number"))
    })
}

/// Checks that the lines of `content` are sorted by their bytes.
fn is_sorted(content: &[u8]) -> Result<(), Failure> {
    let lines = || content.split_inclusive(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\n").unwrap_or(line));
    match lines().zip(lines().skip(1)).position(|(line, next)| next < line) {
        None => Ok(()),
        Some(line) => Err(Failure::permanent(format!(
            "its line {} comes before line {} in the order of bytes: `merge` takes sorted lines (`LC_ALL=C sort`)",
            line + 2,
            line + 1
        ))),
    }
}

/// A group whose only member is this unit.
///
/// # Errors
/// The unit cannot join a group.
pub fn alone(unit: &Record, spec: &GatherSpec, cx: &mut Cx<'_>) -> Result<Record, Failure> {
    let mut group = Record::default();
    join(&mut group, unit, spec, cx)?;
    finish(&mut group);
    Ok(group)
}

/// Gives a closed group its payload.
pub fn finish(group: &mut Record) {
    if let Some(content) = group.group_mut().and_then(Group::take_content) {
        group.size = Some(content.len() as u64);
        group.payload = content.into();
    }
}
