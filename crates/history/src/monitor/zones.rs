//! Zones: groups of operations that must not interleave. Decides whether the groups can follow one another.
//!
//! A zone belongs to a group of operations that are adjacent in any legal order. It is the time between their first
//! return and their last call. If the return comes first, the zone is *forward*, and no other operation fits into it.
//! If the call comes first, the zone is *backward*: all operations of the group are open during the whole zone, and can
//! take effect together at any moment of it. An order exists if and only if no two forward zones overlap and no
//! backward zone lies within a forward one (Gibbons and Korach, "Testing shared memories", 1997).

/// The first return and the last call of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Zone {
    pub(crate) first_return: u32,
    pub(crate) last_call: u32,
}

impl Zone {
    pub(crate) fn is_forward(self) -> bool {
        self.first_return < self.last_call
    }
}

/// An order of the zones `which`, or two of these zones that exclude each other. O(n log n).
pub(crate) fn arrange(zones: &[Zone], which: impl Iterator<Item = u32>) -> Result<Vec<u32>, (u32, u32)> {
    let zone = |z: u32| zones[z as usize];
    let (mut forward, backward): (Vec<u32>, Vec<u32>) = which.partition(|&z| zone(z).is_forward());
    forward.sort_unstable_by_key(|&z| zone(z).first_return);
    for pair in forward.windows(2) {
        if zone(pair[1]).first_return < zone(pair[0]).last_call {
            return Err((pair[0], pair[1]));
        }
    }
    let mut turns: Vec<(u32, bool, u32)> = forward.iter().map(|&z| (zone(z).first_return, true, z)).collect();
    for z in backward {
        let Zone { first_return: to, last_call: from } = zone(z);
        // If a forward zone contains the first moment of this zone, it is the last forward zone that begins before this
        // moment.
        let next = forward.partition_point(|&f| zone(f).first_return < from);
        let around = next.checked_sub(1).map(|f| forward[f]).filter(|&f| to < zone(f).last_call);
        if let Some(around) = around {
            return Err((around, z));
        }
        // The group of a backward zone takes effect at the zone's first moment. If a forward zone contains that moment,
        // the group takes effect at the end of the forward zone instead. In both cases the group comes after the
        // forward zones that begin before that moment, and before all other forward zones.
        turns.push((from, false, z));
    }
    turns.sort_unstable();
    Ok(turns.into_iter().map(|(_, _, z)| z).collect())
}
