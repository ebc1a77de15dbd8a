//! Resolves `UNIT|KEY|TEXT` in a running flow, and explains it.
//!
//! | text | means |
//! | --- | --- |
//! | `17` | the unit with this number |
//! | `disk` | the resource of this name |
//! | `host:example.org` | a key of the resource |
//! | `example.org` | the same key, if only one resource has it at the moment |
//! | `photos/17.jpg` | the waiting unit with exactly this path, line or argument; if there is none, the units whose text contains it |

use millstream_command::screen::text;
use millstream_flow::{Control, NoLine, NoUnit, ResourceSnapshot};
use millstream_runner::file::suggest;
use millstream_runner::record::Record;

use super::{Explained, NamedUnit};

/// The maximum number of keys listed for a resource, and of units for a text.
const BUSIEST: usize = 10;
const LISTED: usize = 10;

/// Explains the unit, resource or key that the text names.
///
/// # Errors
/// Returns a sentence that says what was expected and what exists.
pub(crate) fn explain(what: &str, control: &Control) -> Result<Explained, String> {
    let resources = control.snapshot().resources;
    let no_unit = match number(what).map(|unit| control.explain_unit(unit)) {
        Some(Ok(unit)) => return Ok(Explained::Unit(unit)),
        Some(Err(absent)) => Some(absent),
        None => None,
    };
    if let Some(resource) = resources.iter().find(|resource| resource.name == what) {
        return resource_of(resource, control);
    }
    // The name of a resource may itself contain a colon, so the longest match counts.
    let named = |resource: &&ResourceSnapshot| key_of(what, &resource.name).is_some();
    if let Some(resource) = resources.iter().filter(named).max_by_key(|resource| resource.name.len()) {
        let key = key_of(what, &resource.name).unwrap_or_default();
        return match control.explain_line(&resource.name, Some(key)) {
            Ok(line) => Ok(Explained::Line(line)),
            Err(no_line) => Err(without_key(&no_line)),
        };
    }
    let mut near = Vec::new();
    let mut found = Vec::new();
    for resource in resources.iter().filter(|resource| resource.kind.starts_with("keyed")) {
        match control.explain_line(&resource.name, Some(what)) {
            Ok(line) => found.push(line),
            Err(NoLine::NoKey { some, .. }) => near.extend(some.iter().map(|key| format!("{}:{key}", resource.name))),
            Err(_) => {}
        }
    }
    match found.len() {
        0 => match by_text(what, control) {
            Ok(found) => Ok(found),
            Err(in_hand) => Err(no_unit.map_or_else(
                || unknown(what, &resources, &near) + &not_searched(in_hand),
                |absent| without_unit(&absent),
            )),
        },
        1 => Ok(Explained::Line(found.remove(0))),
        _ => {
            let names: Vec<_> = found.iter().map(|line| format!("{}:{what}", line.resource)).collect();
            Err(format!("several resources have this key: name one of {}", names.join(", ")))
        }
    }
}

fn resource_of(resource: &ResourceSnapshot, control: &Control) -> Result<Explained, String> {
    match control.explain_line(&resource.name, None) {
        Ok(line) => Ok(Explained::Line(line)),
        Err(NoLine::NoKey { resource, keys, .. }) => {
            let mut busiest = control.busiest_keys(BUSIEST);
            busiest.retain(|key| key.resource == resource);
            Ok(Explained::Keys { resource, keys, busiest })
        }
        Err(error) => Err(error.to_string()),
    }
}

/// Returns the unit with this text, or the units whose text contains it. If there is none, returns the number of units
/// that were not searched.
fn by_text(what: &str, control: &Control) -> Result<Explained, u64> {
    if what.is_empty() {
        return Err(0);
    }
    let find = |is_meant: &dyn Fn(&[u8]) -> bool| {
        control.find_units(LISTED, |record: &Record| {
            let text = record.shown_text();
            is_meant(&text).then(|| String::from_utf8_lossy(&text).into_owned())
        })
    };
    let what = what.as_bytes();
    let mut found = find(&|text| text == what);
    if found.in_all == 0 {
        found = find(&|text| text.windows(what.len()).any(|part| part == what));
    }
    let units: Vec<NamedUnit> = found.units.into_iter().map(|(place, text)| NamedUnit { text, place }).collect();
    match units.as_slice() {
        [] => Err(found.in_hand),
        // The unit may have left the flow by now.
        [only] => match control.explain_unit(only.place.unit) {
            Ok(unit) => Ok(Explained::Unit(unit)),
            Err(_) => Err(found.in_hand),
        },
        _ => Ok(Explained::Units { text: String::from_utf8_lossy(what).into_owned(), units, in_all: found.in_all }),
    }
}

fn not_searched(in_hand: u64) -> String {
    match in_hand {
        0 => String::new(),
        units => format!("; the texts of {} in workers' hands are not searched", text::counted(units, "unit")),
    }
}

fn number(what: &str) -> Option<u64> {
    what.bytes().all(|byte| byte.is_ascii_digit()).then(|| what.parse().ok()).flatten()
}

/// Returns the key after a resource's name and a colon; `None` if `what` does not begin with these.
fn key_of<'a>(what: &'a str, resource: &str) -> Option<&'a str> {
    what.strip_prefix(resource)?.strip_prefix(':')
}

fn without_unit(absent: &NoUnit) -> String {
    let NoUnit { unit, next, seen, unseen, .. } = *absent;
    let mut said = if unit >= next {
        match next {
            0 => format!("no unit has been admitted yet, so there is no unit {unit}"),
            _ => format!("there is no unit {unit} yet: numbers up to {} have been assigned", next - 1),
        }
    } else {
        format!("unit {unit} is not in flight: it has left the flow")
    };
    if unit < next && unseen > 0 {
        said += &format!(", or is one of up to {} in workers' hands", text::counted(unseen, "unit"));
    }
    match seen {
        Some((low, high)) if low == high => said += &format!("; in flight is unit {low}"),
        Some((low, high)) => said += &format!("; in flight are units with numbers from {low} to {high}"),
        None => said += "; no unit is in flight",
    }
    said
}

fn without_key(no_line: &NoLine) -> String {
    let NoLine::NoKey { resource, key: Some(key), keys, some } = no_line else { return no_line.to_string() };
    let mut said = format!("no unit holds or waits for key `{key}` of `{resource}`");
    match suggest::closest(key, some.iter().map(String::as_str)) {
        Some(near) => said += &format!("; did you mean `{resource}:{near}`?"),
        None if some.is_empty() => said += ", which has no key in use",
        None => said += &format!("; of its {}: {}", text::counted(*keys, "key"), few(some)),
    }
    said
}

fn unknown(what: &str, resources: &[ResourceSnapshot], keys: &[String]) -> String {
    let names: Vec<String> = resources.iter().map(|resource| resource.name.clone()).collect();
    let bare = keys.iter().map(|key| key.split_once(':').map_or(key.as_str(), |(_, bare)| bare));
    let near = suggest::closest(what, names.iter().map(String::as_str).chain(bare));
    let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    let mut said = match what {
        "" => "an empty text names no unit, resource or key".to_owned(),
        _ => format!("`{what}` is not the number or text of a unit that waits, a resource or a key in use{near}"),
    };
    if names.is_empty() {
        return said + "; the flow has no resources";
    }
    said += &format!("; resources: {}", few(&names));
    if !keys.is_empty() {
        said += &format!("; keys in use: {}", few(keys));
    }
    said
}

/// Lists the first names, and says how many more there are.
fn few(names: &[String]) -> String {
    const FEW: usize = 8;
    let shown = names.iter().take(FEW).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(FEW) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_that_is_not_there_is_told_with_those_that_are() {
        let absent = |unit, next, seen, unseen| {
            let mut absent = NoUnit::default();
            (absent.unit, absent.next, absent.seen, absent.unseen) = (unit, next, seen, unseen);
            without_unit(&absent)
        };
        assert_eq!(absent(7, 0, None, 0), "no unit has been admitted yet, so there is no unit 7; no unit is in flight");
        assert!(absent(7, 5, Some((3, 4)), 0).contains("numbers up to 4 have been assigned; in flight are units with"));
        let gone = absent(1, 5, Some((3, 3)), 2);
        assert!(
            gone.contains("has left the flow, or is one of up to 2 units") && gone.ends_with("in flight is unit 3")
        );
    }

    #[test]
    fn a_mistyped_key_is_answered_with_a_similar_one() {
        let none = |key: &str, some: &[&str]| {
            without_key(&NoLine::NoKey {
                resource: "host".into(),
                key: Some(key.into()),
                keys: some.len() as u64,
                some: some.iter().map(ToString::to_string).collect(),
            })
        };
        assert!(none("exmaple.org", &["a.net", "example.org"]).contains("did you mean `host:example.org`?"));
        assert!(none("x", &["example.org"]).contains("of its 1 key: example.org"));
        assert!(none("x", &[]).contains("no key in use"));
        let keys: Vec<_> = (0..20).map(|n| format!("host:{n}.example")).collect();
        let said = unknown("hots", &[], &keys);
        assert!(said.contains("not the number or text of a unit") && said.contains("no resources"), "{said}");
    }

    #[test]
    fn numbers_consist_of_digits_only() {
        assert_eq!((number("17"), number("+17"), number("0x1"), number("1e3")), (Some(17), None, None, None));
        assert_eq!(number(&u64::MAX.to_string()), Some(u64::MAX));
        assert_eq!(number("99999999999999999999"), None);
        assert_eq!((key_of("a:b:c", "a"), key_of("a:b:c", "a:b"), key_of("ab", "a")), (Some("b:c"), Some("c"), None));
    }
}
