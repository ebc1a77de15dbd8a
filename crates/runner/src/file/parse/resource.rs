//! `[resources]`.

use std::ops::Range;

use super::super::error::Problem;
use super::super::model::{Hold, RateSpec, ResourceKind, ResourceSpec};
use super::super::reader::{Entry, Section};

/// A resource that the file names. Its value may be invalid: needs that refer to it are then not reported as further
/// mistakes.
pub(super) struct Declared {
    /// The name without `:*`.
    pub(super) name: String,
    pub(super) spec: Option<ResourceSpec>,
}

pub(super) fn resources(entry: Option<Entry<'_>>) -> Vec<Declared> {
    let section = entry.and_then(|entry| entry.section("[resources]", "a table, `[resources]`"));
    let mut declared: Vec<(Declared, Range<usize>)> = Vec::new();
    for entry in section.iter().flat_map(Section::entries) {
        let Some((name, keyed)) = name(&entry) else { continue };
        if let Some((_, first)) = declared.iter().find(|(other, _)| other.name == name) {
            let problem = Problem::new(format!("resource `{name}` is declared twice, once with keys and once without"));
            entry.reading.report(problem.at(entry.key_span.clone(), "the second").at(first.clone(), "the first"));
            continue;
        }
        let span = entry.key_span.clone();
        let spec = resource(&entry, &name, keyed);
        declared.push((Declared { name, spec }, span));
    }
    declared.into_iter().map(|(declared, _)| declared).collect()
}

/// The resource's name and whether it has keys.
fn name(entry: &Entry<'_>) -> Option<(String, bool)> {
    let (name, keyed) = entry.name.strip_suffix(":*").map_or((entry.name.as_str(), false), |name| (name, true));
    if name.is_empty() || name.contains([':', '{', '}', '*', '=']) || name.chars().any(char::is_control) {
        let problem =
            Problem::new(format!("`{}` cannot name a resource", entry.name)).at(entry.key_span.clone(), "here");
        entry
            .reading
            .report(problem.help("a plain name such as `net`, or `\"host:*\"` for one with keys made on demand"));
        return None;
    }
    Some((name.to_owned(), keyed))
}

fn resource(entry: &Entry<'_>, name: &str, keyed: bool) -> Option<ResourceSpec> {
    let tokens = |tokens| if keyed { ResourceKind::KeyedTokens(tokens) } else { ResourceKind::Tokens(tokens) };
    let spec = |kind, hold, max_keys| ResourceSpec {
        name: name.to_owned(),
        kind,
        hold,
        max_keys,
        span: entry.key_span.clone(),
    };
    if !entry.is_table() && entry.as_text().is_none() {
        return Some(spec(tokens(entry.count()?), Hold::Unit, None));
    }
    if let Some(text) = entry.as_text() {
        let problem = Problem::new(format!("resource `{name}` takes a number of tokens or a table, not a string"));
        let help = if text.contains('/') {
            format!("for a rate write `{{ rate = \"{text}\" }}`")
        } else {
            "write the number without quotes".to_owned()
        };
        entry.reading.report(problem.at(entry.span.clone(), "this is a string").help(help));
        return None;
    }
    let mut section = entry.section(format!("resource `{name}`"), "a table")?;
    let (capacity, rate, burst) = (section.get("capacity"), section.get("rate"), section.get("burst"));
    let kind = match (capacity, rate) {
        (Some(capacity), None) => {
            if let Some(burst) = burst {
                let message = format!("resource `{name}` has `capacity`, and `burst` belongs to a rate");
                let problem = Problem::new(message).at(burst.key_span, "not with `capacity`");
                section.reading.report(problem.help("leave it out, or write `rate` in place of `capacity`"));
            }
            capacity.count().map(tokens)
        }
        (None, Some(rate)) => {
            let burst = burst.map_or(Some(1), |burst| burst.count());
            let rate = rate.rate().zip(burst).map(|(per_second, burst)| RateSpec { per_second, burst });
            rate.map(|rate| if keyed { ResourceKind::KeyedRate(rate) } else { ResourceKind::Rate(rate) })
        }
        (Some(capacity), Some(rate)) => {
            let problem = Problem::new(format!("resource `{name}` has both `capacity` and `rate`"));
            let problem = problem.at(rate.key_span, "limits how fast").at(capacity.key_span, "limits how many at once");
            section.reading.report(problem.help("declare two resources and let the stage need both"));
            None
        }
        (None, None) => {
            let problem = Problem::new(format!("resource `{name}` does not say how much there is"));
            let problem = problem.at(section.span.clone(), "needs `capacity` or `rate`");
            section.reading.report(problem.help("write `{ capacity = 16 }` or `{ rate = \"50/s\", burst = 10 }`"));
            None
        }
    };
    let hold = section.get("hold");
    let held =
        hold.as_ref().map_or(Some(Hold::Unit), |entry| entry.choice(&[("unit", Hold::Unit), ("batch", Hold::Batch)]));
    if let (Some(entry), Some(Hold::Batch), true) = (&hold, held, keyed) {
        entry.senseless(
            format!("resource `{name}` has keys, so a batch of units with different keys cannot share one grant"),
            "only resources without keys can be held by a batch",
        );
    }
    let max_keys = if keyed { section.optional("max_keys", Entry::count) } else { Some(None) };
    section.finish();
    Some(spec(kind?, held?, max_keys?))
}
