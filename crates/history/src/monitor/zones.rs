//! Zones: sets of operations that must not interleave, and whether each can have a time of its own.
//!
//! A zone belongs to operations that are adjacent in any legal order, and spans their first return and their last call.
//! If the return comes first the zone is *forward*: no other operation fits into it. If the call comes first it is
//! *backward*: all its operations span the time between, and can take effect at any one moment of it. An order exists
//! if and only if no two forward zones overlap and no backward zone lies within a forward one (Gibbons and Korach,
//! "Testing shared memories", 1997).

/// The first return and the last call of adjacent operations.
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

/// The zones named by `which` in an order of time, or two of them that exclude each other. O(n log n).
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
        // If a forward zone contains the first moment of this one, it is the last to begin before.
        let next = forward.partition_point(|&f| zone(f).first_return < from);
        let around = next.checked_sub(1).map(|f| forward[f]).filter(|&f| to < zone(f).last_call);
        if let Some(around) = around {
            return Err((around, z));
        }
        // The moment of a backward zone is its first, or the end of the forward zone that contains that: the zone comes
        // after that forward zone, and before any that begins later.
        turns.push((from, false, z));
    }
    turns.sort_unstable();
    Ok(turns.into_iter().map(|(_, _, z)| z).collect())
}
