//! `group`: one unit for several items of a source.

use crate::record::Record;

/// See the [module](self).
pub(super) struct Grouped<I> {
    items: I,
    /// The number of items in a unit. The last unit may have fewer.
    size: usize,
    /// A fault of the source that was found while a group was being gathered. It is the next record.
    fault: Option<Record>,
}

impl<I: Iterator<Item = Record>> Grouped<I> {
    pub(super) fn new(items: I, size: usize) -> Self {
        Self { items, size, fault: None }
    }
}

impl<I: Iterator<Item = Record>> Iterator for Grouped<I> {
    type Item = Record;

    fn next(&mut self) -> Option<Record> {
        if let Some(fault) = self.fault.take() {
            return Some(fault);
        }
        let mut group: Option<Vec<u8>> = None;
        for _ in 0..self.size {
            match self.items.next().map(whole) {
                Some(item) if item.rare.fault.is_some() => {
                    if group.is_none() {
                        return Some(item);
                    }
                    self.fault = Some(item);
                    break;
                }
                Some(item) => match &mut group {
                    Some(group) => {
                        group.push(0);
                        group.extend_from_slice(item.text());
                    }
                    None => group = Some(item.text().to_vec()),
                },
                None => break,
            }
        }
        group.map(Record::items_of)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let (least, most) = self.items.size_hint();
        let fault = usize::from(self.fault.is_some());
        (least.div_ceil(self.size) + fault, most.map(|most| most.div_ceil(self.size) + fault))
    }
}

/// The item. It gets a fault if it contains a zero byte, because zero bytes separate the items of a group.
fn whole(item: Record) -> Record {
    if item.rare.fault.is_none() && item.text().contains(&0) {
        return item.with_fault("it contains a zero byte, which a group has between its items");
    }
    item
}

#[cfg(test)]
mod tests {
    use super::Grouped;
    use crate::record::Record;

    fn item(text: &str) -> Record {
        Record::line(text.into())
    }

    #[test]
    fn items_come_in_groups_and_faults_alone() {
        let items = [item("a"), item("b"), item("c"), item("d").with_fault("broken"), item("e"), item("f"), item("g")];
        let grouped = Grouped::new(items.into_iter(), 2);
        assert_eq!(grouped.size_hint(), (4, Some(4)));
        let units: Vec<(Vec<u8>, bool)> =
            grouped.map(|unit| (unit.text().to_vec(), unit.rare.fault.is_some())).collect();
        let nul: Vec<bool> =
            Grouped::new([item("a"), item("b\0c")].into_iter(), 2).map(|unit| unit.rare.fault.is_some()).collect();
        assert_eq!(nul, [false, true], "an item is not taken for two");
        let expected = [("a\0b", false), ("c", false), ("d", true), ("e\0f", false), ("g", false)];
        assert_eq!(units, expected.map(|(text, fault)| (text.as_bytes().to_vec(), fault)));
    }
}
