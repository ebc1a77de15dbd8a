//! Partition of a history by objects, and the merge of the parts' witnesses.

use rustc_hash::FxHashMap;

use crate::budget::{Budget, Exhausted};
use crate::history::History;
use crate::part::Part;
use crate::spec::{Call, Object};

/// Rows partitioned by their objects.
pub(crate) struct Split {
    /// The rows of the first object, ascending, then those of the second, and so on.
    rows: Vec<u32>,
    /// The end of each object's range in `rows`.
    ends: Vec<usize>,
}

impl Split {
    /// Partitions the part's rows by object, in the order of the objects' first appearance.
    pub(crate) fn new(
        part: &Part<'_>,
        object: impl Fn(&Call<'_>) -> Object,
        budget: &mut Budget,
    ) -> Result<Self, Exhausted> {
        budget.charge(2 * part.len() * size_of::<u32>())?;
        let mut numbers: FxHashMap<Object, u32> = FxHashMap::default();
        let mut counts: Vec<usize> = Vec::new();
        let mut of_position = Vec::with_capacity(part.len());
        let mut last = None;
        for position in 0..part.len() {
            let object = object(&part.call_at(position));
            let number = match last {
                Some((before, number)) if before == object => number,
                _ => *numbers.entry(object).or_insert(counts.len() as u32),
            };
            last = Some((object, number));
            if number as usize == counts.len() {
                budget.charge(3 * size_of::<(Object, u32)>() + 2 * size_of::<usize>())?;
                counts.push(0);
            }
            counts[number as usize] += 1;
            of_position.push(number);
        }
        let starts = counts.iter().scan(0, |end, count| {
            let start = *end;
            *end += count;
            Some(start)
        });
        let mut places: Vec<usize> = starts.collect();
        let mut rows = vec![0; part.len()];
        for (position, &number) in of_position.iter().enumerate() {
            let place = &mut places[number as usize];
            rows[*place] = part.row(position);
            *place += 1;
        }
        Ok(Split { rows, ends: places })
    }

    /// The number of objects.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The rows of the object with this number.
    pub(crate) fn rows(&self, number: usize) -> &[u32] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.rows[start..self.ends[number]]
    }
}

/// Merges the orders of disjoint parts into one order of all rows.
///
/// Each operation takes effect as early as its part's order permits: at its call, or when its predecessor takes effect,
/// whichever is later. That moment is before the operation's return, so the order of these moments is a legal order of
/// all rows.
pub(crate) fn merge(history: &History, orders: Vec<Vec<u32>>) -> Vec<u32> {
    let mut orders = orders;
    if orders.len() <= 1 {
        return orders.pop().unwrap_or_default();
    }
    let mut moments: Vec<(u64, u32)> = Vec::with_capacity(orders.iter().map(Vec::len).sum());
    for order in orders {
        let mut moment = 0;
        moments.extend(order.into_iter().map(|row| {
            moment = history.call(row as usize).max(moment);
            (moment, row)
        }));
    }
    moments.sort_by_key(|&(moment, _)| moment);
    moments.into_iter().map(|(_, row)| row).collect()
}
