//! Decomposes a few values of a stack without a search structure, by the rule of [`stack`](super). The method is
//! quadratic, and the fastest one for few values.

use super::super::life::{Life, Step};

/// The maximum number of places decomposed by this method; small in tests, whose histories are short.
pub(super) const SMALL: usize = if cfg!(test) { 3 } else { 32 };

/// A result of the decomposition. Results are reported in order.
pub(super) enum Found<'p> {
    Step(Step),
    /// Places of a stuck piece: no value can lie at the bottom, although some value is present at every moment.
    Stuck(&'p [u32]),
}

/// Decomposes the values at these places: at most [`SMALL`], and in order of their pops' calls, as `lives` are.
///
/// Changes the order of `places`.
pub(super) fn take_apart(lives: &[Life], places: &mut [u32], found: &mut impl FnMut(Found<'_>)) {
    let life = |place: u32| &lives[place as usize];
    // For each index, the earliest return among the pushes of the values from this index on.
    let mut pushed = [u32::MAX; SMALL + 1];
    for (at, &place) in places.iter().enumerate().rev() {
        pushed[at] = life(place).insert.ret.min(pushed[at + 1]);
    }
    let mut rest = places;
    let mut at = 0;
    while !rest.is_empty() {
        // The piece ends with the first pop at whose call none of the later values is certainly present.
        let width = 1
            + (0..rest.len())
                .position(|k| life(rest[k]).remove.call <= pushed[at + k + 1])
                .expect("no value is present after the last");
        at += width;
        let (piece, others) = rest.split_at_mut(width);
        rest = others;

        let pushed = piece.iter().map(|&place| life(place).insert.ret).min().unwrap_or(u32::MAX);
        let popped = life(piece[width - 1]).remove.call;
        let lies_below = |&place: &u32| life(place).insert.call <= pushed && life(place).remove.ret >= popped;
        let Some(bottom) = piece.iter().position(lies_below) else {
            found(Found::Stuck(piece));
            continue;
        };
        piece[..=bottom].rotate_right(1);
        let (bottom, above) = piece.split_first_mut().expect("the bottom is in the piece");
        found(Found::Step(Step::Insert(*bottom)));
        take_apart(lives, above, found);
        found(Found::Step(Step::Remove(*bottom)));
    }
}
