//! Units of several items: groups that a source makes, and gathered units.

use super::{Origin, Record};

impl Record {
    /// Several items, with a zero byte between them.
    pub fn items_of(items: Vec<u8>) -> Self {
        Self { text: items.into(), origin: Origin::Group, ..Self::default() }
    }

    /// Several lines, each ended by the byte `ending`.
    pub fn block(lines: Vec<u8>, ending: u8) -> Self {
        Self { text: lines.into(), origin: Origin::Block(ending), ..Self::default() }
    }

    /// The lines of a block as they were read, with their ends.
    pub fn block_bytes(&self) -> Option<&[u8]> {
        matches!(self.origin, Origin::Block(_)).then_some(&*self.text)
    }

    /// The items of a group that the source has made.
    fn source_items(&self) -> Option<impl Iterator<Item = &[u8]>> {
        let (between, text) = match self.origin {
            Origin::Group => (0, &*self.text),
            Origin::Block(ending) => (ending, self.text.strip_suffix(&[ending]).unwrap_or(&self.text)),
            _ => return None,
        };
        // As with single lines, a carriage return before a newline belongs to the ending.
        let without_return = move |item: &'_ [u8]| match item {
            [item @ .., b'\r'] if between == b'\n' => item.len(),
            item => item.len(),
        };
        Some(text.split(move |byte| *byte == between).map(move |item| &item[..without_return(item)]))
    }

    /// The items of a group.
    pub fn items(&self) -> Option<impl Iterator<Item = &[u8]>> {
        let gathered = (self.origin == Origin::Gathered).then(|| {
            let members = self.group.iter().flat_map(|group| group.members());
            members.flat_map(|member| {
                let of_source = member.source_items();
                let one = of_source.is_none().then_some(member.text());
                of_source.into_iter().flatten().chain(one)
            })
        });
        self.is_group().then(|| self.source_items().into_iter().flatten().chain(gathered.into_iter().flatten()))
    }

    /// Whether the unit is a group of items.
    pub fn is_group(&self) -> bool {
        matches!(self.origin, Origin::Group | Origin::Block(_) | Origin::Gathered)
    }
}
