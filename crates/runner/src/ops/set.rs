//! `set`: sets the payload or fields to values computed from other fields.

use millstream_flow::{Cx, Failure};

use super::Op;
use crate::file::template::Template;
use crate::record::Record;

/// See the [module](self).
pub(super) struct Set {
    payload: Option<Template>,
    fields: Vec<(String, Template)>,
}

impl Set {
    pub(super) fn new(payload: Option<&Template>, fields: &[(String, Template)]) -> Self {
        Self { payload: payload.cloned(), fields: fields.to_vec() }
    }
}

impl Op for Set {
    fn run(&self, record: &mut Record, cx: &mut Cx<'_>) -> Result<(), Failure> {
        let render = |template: &Template| template.render(record).map_err(|error| Failure::from(error).to_permanent());
        // All values are computed from the unit as it arrived, before any field is set.
        let mut values = Vec::with_capacity(self.fields.len());
        for (name, template) in &self.fields {
            values.push((name.clone(), render(template)?));
        }
        let payload = self.payload.as_ref().map(render).transpose()?;
        let made: usize = values.iter().map(|(name, value)| name.len() + value.len()).sum();
        cx.reserve(record.bytes() + made as u64 + payload.as_ref().map_or(0, Vec::len) as u64)?;
        for (name, value) in values {
            record.set_field(name, value);
        }
        if let Some(payload) = payload {
            record.payload = payload.into();
            record.headroom = 0;
        }
        Ok(())
    }

    fn idempotent(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::Set;
    use crate::file::template::{Field, Fields, Template};
    use crate::ops::one_stage::run;
    use crate::record::Record;

    fn template(text: &str) -> Template {
        Template::parse(text).unwrap()
    }

    #[test]
    fn values_come_from_the_unit_as_it_arrived() {
        let fields = |one: &str, two: &str| [("one".to_owned(), template(one)), ("two".to_owned(), template(two))];
        let record = run(Set::new(None, &fields("a{name}", "b{stem}")), Record::line(b"d/x.y".to_vec())).unwrap();
        let value =
            |record: &Record, name: &str| record.field(&Field::Set(name.to_owned())).map(std::borrow::Cow::into_owned);
        assert_eq!(value(&record, "one").unwrap(), b"ax.y");
        assert_eq!(value(&record, "two").unwrap(), b"bx");
        assert_eq!(value(&record, "three"), None);
        let swapped = run(Set::new(Some(&template("<{set.one}>")), &fields("{set.two}", "{set.one}")), record).unwrap();
        assert_eq!(
            (value(&swapped, "one").unwrap(), value(&swapped, "two").unwrap()),
            (b"bx".to_vec(), b"ax.y".to_vec())
        );
        assert_eq!(swapped.payload, b"<ax.y>");
    }

    #[test]
    fn a_value_of_what_is_not_known_is_a_failure() {
        let set = Set::new(Some(&template("{blake3}")), &[]);
        assert!(run(set, Record::line(b"x".to_vec())).unwrap_err().contains("blake3"));
    }
}
