//! `unique`: separates the first unit with a text from the later units with the same text.
//!
//! For each text, 16 bytes of its BLAKE3 hash are stored, so memory depends on the number of texts and not on their
//! lengths. Even in the largest feasible run, it is very unlikely that two texts have the same 16 bytes.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use millstream_flow::{Cx, Failure};

use super::Op;
use crate::file::template::Template;
use crate::record::Record;

/// See the [module](self).
pub(super) struct Unique {
    by: Template,
    max_keys: usize,
    seen: Mutex<HashSet<[u8; 16]>>,
}

impl Unique {
    pub(super) fn new(by: &Template, max_keys: u64) -> Self {
        let max_keys = usize::try_from(max_keys).unwrap_or(usize::MAX);
        Self { by: by.clone(), max_keys, seen: Mutex::default() }
    }
}

impl Op for Unique {
    fn run(&self, record: &mut Record, _: &mut Cx<'_>) -> Result<(), Failure> {
        let text = self.by.render(record).map_err(|error| Failure::from(error).to_permanent())?;
        let hash = *::blake3::hash(&text).as_bytes().first_chunk().expect("a hash has 32 bytes");
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= self.max_keys && !seen.contains(&hash) {
            let most = self.max_keys;
            return Err(Failure::permanent(format!("more than {most} different texts have come: raise `max_keys`")));
        }
        record.filtered = !seen.insert(hash);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Unique;
    use crate::file::template::Template;
    use crate::ops::one_stage::run_all;
    use crate::record::Record;

    fn unique(by: &str, max_keys: u64, lines: &[&str]) -> Result<usize, String> {
        let records = lines.iter().map(|line| Record::line(line.as_bytes().to_vec()));
        let records = run_all(Unique::new(&Template::parse(by).unwrap(), max_keys), records)?;
        Ok(records.iter().filter(|record| !record.filtered).count())
    }

    #[test]
    fn the_first_of_each_text_is_separated_from_the_others() {
        assert_eq!(unique("{line}", 3, &["a", "b", "a", "", "a", "b", ""]), Ok(3));
        assert_eq!(unique("{ext}", 2, &["a.x", "b.x", "c.y"]), Ok(2));
    }

    #[test]
    fn a_text_beyond_the_limit_fails_and_earlier_texts_stay_known() {
        let error = unique("{line}", 2, &["a", "b", "a", "c"]).unwrap_err();
        assert_eq!(error, "more than 2 different texts have come: raise `max_keys`");
    }
}
