//! `check`: verifies that a field has the expected value.

use std::borrow::Cow;

use millstream_flow::{Cx, Failure};

use super::Op;
use crate::file::model::CheckField;
use crate::file::template::{Field, Fields as _, Template};
use crate::record::Record;

/// See the [module](self).
pub(super) struct Check {
    field: CheckField,
    equals: Template,
}

impl Check {
    pub(super) fn new(field: CheckField, equals: &Template) -> Self {
        Self { field, equals: equals.clone() }
    }
}

impl Op for Check {
    fn run(&self, record: &mut Record, cx: &mut Cx<'_>) -> Result<(), Failure> {
        let wanted = self.equals.render(record).map_err(|error| Failure::from(error).to_permanent())?;
        let (name, found) = match self.field {
            CheckField::Blake3 => ("blake3", record.field(&Field::Blake3)),
            CheckField::Sha256 => ("sha256", record.field(&Field::Sha256)),
            CheckField::Size => ("size", Some(Cow::Owned(record.payload.len(cx)?.to_string().into_bytes()))),
        };
        let Some(found) = found else {
            return Err(Failure::permanent(format!(
                "cannot check `{name}`: no `{name}` stage has run on this unit; put one before this stage"
            )));
        };
        // The case of letters is ignored, because hashes are often written in capital letters. Sizes have no letters.
        if found.eq_ignore_ascii_case(&wanted) {
            return Ok(());
        }
        Err(Failure::permanent(format!("{name} is {}, expected {}", found.escape_ascii(), wanted.escape_ascii())))
    }

    fn idempotent(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::Check;
    use crate::file::model::CheckField;
    use crate::file::template::Template;
    use crate::ops::one_stage::run;
    use crate::record::Record;

    fn check(field: CheckField, equals: &str, record: Record) -> Result<Record, String> {
        run(Check::new(field, &Template::parse(equals).unwrap()), record)
    }

    #[test]
    fn a_difference_says_both_sides() {
        let mut record = Record::line(b"l".to_vec());
        record.payload = b"12345".to_vec().into();
        record.rare.blake3 = Some([0xAB; 32]);
        assert!(check(CheckField::Size, "5", record.clone()).is_ok());
        assert_eq!(check(CheckField::Size, "6", record.clone()).unwrap_err(), "size is 5, expected 6");
        assert!(check(CheckField::Blake3, &"AB".repeat(32), record.clone()).is_ok());
        assert!(check(CheckField::Blake3, &"ac".repeat(32), record).unwrap_err().starts_with("blake3 is abab"));
    }

    #[test]
    fn a_hash_of_other_content_is_no_match() {
        let error = check(CheckField::Sha256, "", Record::line(b"l".to_vec())).unwrap_err();
        assert!(error.contains("no `sha256` stage"), "{error}");
    }
}
