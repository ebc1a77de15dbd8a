//! An explanation as lines of text.
//!
//! ```text
//! unit 7 waits in visit for 4.2 s, in flight for 12 s
//!   for       host:b.example, behind 2 units
//!   line      1 in use of 1, 3 units waiting, the first for 4.3 s
//!   waiting   units 3, 5, 7
//!   held by   unit 1, which runs in visit for 8.1 s
//! ```

use millstream_command::screen::text;
use millstream_flow::{Doing, KeySnapshot, LineState, UnitPlace, UnitState, WaitsFor};

use super::{Explained, NamedUnit};

/// Returns the lines of an explanation, each with a newline.
pub(crate) fn page(explained: &Explained) -> String {
    let lines = match explained {
        Explained::Unit(unit) => of_unit(unit),
        Explained::Line(line) => of_line(line),
        Explained::Keys { resource, keys, busiest } => of_keys(resource, *keys, busiest),
        Explained::Units { text, units, in_all } => of_units(text, units, *in_all),
    };
    lines.iter().fold(String::new(), |page, line| page + &text::printable(line) + "\n")
}

/// Formats a fact as a line below the first line.
fn fact(name: &str, value: &str) -> String {
    format!("  {name:<10}{value}")
}

fn of_unit(unit: &UnitState) -> Vec<String> {
    let since = unit.for_ns.map_or_else(String::new, |ns| format!(" for {}", text::span(ns)));
    let place = doing(unit.doing, unit.stage.as_deref());
    let mut lines = vec![format!("unit {} {place}{since}, in flight for {}", unit.unit, text::span(unit.age_ns))];
    if let Some(waits_for) = &unit.waits_for {
        lines.extend(wait(waits_for));
    }
    if !unit.holds.is_empty() {
        let held = unit.holds.iter().map(|held| amount(held.amount, &name(&held.resource, held.key.as_deref())));
        lines.push(fact("holds", &held.collect::<Vec<_>>().join(", ")));
    }
    if unit.attempts > 0 {
        lines.push(fact("attempts", &format!("{} failed in this stage", text::count(unit.attempts.into()))));
    }
    if unit.bytes > 0 {
        lines.push(fact("bytes", &text::bytes(unit.bytes)));
    }
    if let Some(parent) = unit.parent {
        lines.push(fact("split from", &format!(" unit {parent}")));
    }
    lines
}

fn wait(waits_for: &WaitsFor) -> Vec<String> {
    let ahead = |units: u64| match units {
        0 => "first in line".to_owned(),
        _ => format!("behind {}", text::counted(units, "unit")),
    };
    match waits_for {
        WaitsFor::Worker { ahead: before, busy, ceiling } => {
            let before = before.map_or_else(|| "with all its needs granted".to_owned(), ahead);
            let workers = format!("{} of {} busy", text::count(*busy), text::counted(*ceiling, "worker"));
            vec![fact("for", &format!("a worker, {before}: {workers} in the stage"))]
        }
        WaitsFor::Resource { amount: needed, ahead: before, line } => {
            let what = amount(*needed, &name(&line.resource, line.key.as_deref()));
            let mut lines = vec![fact("for", &format!("{what}, {}", ahead(*before)))];
            lines.extend(facts_of(line));
            lines
        }
        WaitsFor::Permit { ahead: before, line } => {
            let what = name(&line.resource, line.key.as_deref());
            let mut lines =
                vec![fact("for", &format!("the next batch of its stage, which lacks {what}; {}", ahead(*before)))];
            lines.extend(facts_of(line));
            lines
        }
        WaitsFor::Key { resource, ahead: before, keys } => {
            let keys = text::counted(*keys, "key");
            vec![fact("for", &format!("a slot for a new key of {resource}, {}: {keys} are in use", ahead(*before)))]
        }
        WaitsFor::Memory { bytes, ahead: before } => {
            vec![fact("for", &format!("memory, to run with {}, {}", text::bytes(*bytes), ahead(*before)))]
        }
        WaitsFor::Room { ahead: before } => {
            vec![fact("for", &format!("room for its children under the flow's caps, {}", ahead(*before)))]
        }
        WaitsFor::Time { left_ns } => vec![fact("for", &format!("a moment in {}", text::span(*left_ns)))],
        WaitsFor::Children { children } => {
            vec![fact("for", &format!("{} in flight", plural(*children, "child", "children")))]
        }
        WaitsFor::Members => vec![fact("for", "members of the group that it holds open")],
        // A run of a later version may know further causes.
        _ => vec![fact("for", "something that this version of millstream does not know")],
    }
}

fn of_line(line: &LineState) -> Vec<String> {
    let mut lines = vec![format!("{} ({})", name(&line.resource, line.key.as_deref()), line.kind)];
    lines.extend(facts_of(line));
    lines
}

fn facts_of(line: &LineState) -> Vec<String> {
    let mut said = match line.rate_per_s {
        Some(rate) => {
            let ready = match line.ready_in_ns {
                Some(ns) if ns > 0 => format!(", the next in {}", text::span(ns)),
                _ => ", ready".to_owned(),
            };
            format!("{}, burst {}{ready}", text::rate(rate), text::count(line.capacity))
        }
        None => format!("{} in use of {}", text::count(line.in_use), text::count(line.capacity)),
    };
    match line.waiters {
        0 => said += ", nothing waits",
        waiters => said += &format!(", {} waiting", text::counted(waiters, "unit")),
    }
    if let Some(oldest_ns) = line.oldest_ns {
        said += &format!(", the first for {}", text::span(oldest_ns));
    }
    let mut lines = vec![fact("line", &said)];
    if !line.first_in_line.is_empty() {
        let numbers: Vec<_> = line.first_in_line.iter().map(|place| place.unit.to_string()).collect();
        let more = more(line.waiters.saturating_sub(numbers.len() as u64));
        let noun = if line.waiters == 1 { "unit" } else { "units" };
        lines.push(fact("waiting", &format!("{noun} {}{more}", numbers.join(", "))));
    }
    let mut label = "held by";
    for place in &line.holders {
        lines.push(fact(label, &holder(place)));
        label = "";
    }
    let rest = line.holders_in_all.saturating_sub(line.holders.len() as u64);
    if rest > 0 {
        lines.push(fact(label, &format!("and {}", plural(rest, "more unit", "more units"))));
        label = "";
    }
    if line.in_use_unnamed > 0 {
        let of = if line.holders.is_empty() { "" } else { "and " };
        lines.push(fact(
            label,
            &format!("{of}{} of it by units whose batches end within a moment", text::count(line.in_use_unnamed)),
        ));
    }
    lines
}

fn of_keys(resource: &str, keys: u64, busiest: &[KeySnapshot]) -> Vec<String> {
    let mut lines = vec![format!("{resource} has {} in use", text::counted(keys, "key"))];
    for key in busiest {
        let waiters = text::counted(key.waiters, "unit");
        lines.push(format!(
            "  {}: {} in use, {waiters} waiting",
            name(resource, Some(&key.key)),
            text::count(key.in_use)
        ));
    }
    let rest = keys.saturating_sub(busiest.len() as u64);
    if rest > 0 {
        lines.push(format!("  and {}", plural(rest, "more key", "more keys")));
    }
    lines
}

fn of_units(asked: &str, units: &[NamedUnit], in_all: u64) -> Vec<String> {
    let mut lines = vec![format!("{} that wait have `{asked}` in their text", text::counted(in_all, "unit"))];
    lines.extend(units.iter().map(|NamedUnit { text, place }| format!("  {}: {text}", holder(place))));
    let rest = in_all.saturating_sub(units.len() as u64);
    if rest > 0 {
        lines.push(format!("  and {}", plural(rest, "more unit", "more units")));
    }
    lines
}

fn holder(place: &UnitPlace) -> String {
    let held = if place.amount > 1 { format!(", holding {}", text::count(place.amount)) } else { String::new() };
    let place_in_words = doing(place.doing, place.stage.as_deref());
    format!("unit {}, which {place_in_words} for {}{held}", place.unit, text::span(place.for_ns))
}

fn doing(doing: Doing, stage: Option<&str>) -> String {
    let verb = match doing {
        Doing::Waiting => "waits",
        Doing::Granted => "is granted, and waits for a worker or for its batch",
        Doing::Running => "runs",
        Doing::Pausing => "pauses",
        Doing::AwaitingChildren => "waits for its children",
        Doing::AwaitingMembers => "holds a group open",
    };
    stage.map_or_else(|| verb.to_owned(), |stage| format!("{verb} in {stage}"))
}

fn name(resource: &str, key: Option<&str>) -> String {
    key.map_or_else(|| resource.to_owned(), |key| format!("{resource}:{key}"))
}

/// Returns `disk` or `3 of disk`.
fn amount(amount: u64, name: &str) -> String {
    if amount == 1 { name.to_owned() } else { format!("{} of {name}", text::count(amount)) }
}

fn more(units: u64) -> String {
    if units == 0 { String::new() } else { format!(" and {} more", text::count(units)) }
}

fn plural(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", text::count(n), if n == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::sample::filled;

    fn place(unit: u64) -> UnitPlace {
        filled!(UnitPlace {
            unit: unit,
            stage: Some("visit".into()),
            doing: Doing::Running,
            amount: 1,
            for_ns: 8_100_000_000
        })
    }

    fn line() -> LineState {
        filled!(LineState {
            resource: "host".into(),
            key: Some("b.example".into()),
            kind: "keyed tokens".into(),
            capacity: 1,
            rate_per_s: None,
            ready_in_ns: None,
            in_use: 1,
            holders: vec![place(1)],
            holders_in_all: 1,
            in_use_unnamed: 0,
            waiters: 3,
            first_in_line: vec![place(3), place(5), place(7)],
            oldest_ns: Some(4_300_000_000),
        })
    }

    fn unit() -> UnitState {
        filled!(UnitState {
            unit: 7,
            stage: Some("visit".into()),
            doing: Doing::Waiting,
            for_ns: Some(4_200_000_000),
            age_ns: 12_000_000_000,
            waits_for: Some(WaitsFor::Resource { amount: 1, ahead: 2, line: Box::new(line()) }),
            holds: Vec::new(),
            attempts: 2,
            bytes: 2048,
            parent: Some(3),
        })
    }

    #[test]
    fn a_unit_in_line_is_explained_down_to_the_holder() {
        let expected = "\
unit 7 waits in visit for 4.2 s, in flight for 12 s
  for       host:b.example, behind 2 units
  line      1 in use of 1, 3 units waiting, the first for 4.3 s
  waiting   units 3, 5, 7
  held by   unit 1, which runs in visit for 8.1 s
  attempts  2 failed in this stage
  bytes     2 KiB
  split from unit 3
";
        assert_eq!(page(&Explained::Unit(unit())), expected);
    }

    #[test]
    fn many_holders_are_counted_and_rates_show_the_next_token() {
        let mut line = line();
        (line.holders_in_all, line.in_use, line.in_use_unnamed) = (15, 20, 5);
        let said = page(&Explained::Line(line.clone()));
        assert!(
            said.contains("            and 14 more units\n            and 5 of it by units whose batches"),
            "{said}"
        );
        (line.rate_per_s, line.ready_in_ns) = (Some(0.5), Some(1_500_000_000));
        let said = page(&Explained::Line(line));
        assert!(said.contains("0.5/s, burst 1, the next in 1.5 s, 3 units waiting"), "{said}");
    }

    #[test]
    fn an_explanation_contains_no_terminal_sequences() {
        let mut line = line();
        line.key = Some("a\x1b[2J\nb".into());
        line.holders[0].stage = Some("\u{9b}x".into());
        let busiest =
            vec![filled!(KeySnapshot { resource: "r".into(), key: "\r".into(), waiters: u64::MAX, in_use: u64::MAX })];
        let keys = Explained::Keys { resource: "\x07".into(), keys: u64::MAX, busiest };
        for page in [page(&Explained::Line(line)), page(&keys)] {
            assert!(page.chars().all(|c| c == '\n' || !c.is_control()), "{page:?}");
        }
    }
}
