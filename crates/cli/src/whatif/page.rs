//! Prints the answers as text and as JSON.

use std::fmt::Write;

use millstream_command::screen::text;
use millstream_flow::Trace;
use serde_json::{Value, json};

use super::answer::Answer;
use super::check::{Checked, Judged};
use super::doubt::Doubt;
use super::search::{Changed, Found, Help, Reached};

/// The width of a bar, in columns.
const BAR: usize = 24;

/// Returns the page that states why there is no answer.
pub(super) fn doubt(trace: &Trace, doubt: &Doubt) -> String {
    let mut page = part(trace) + &itself(trace, doubt);
    let what = if doubt.loses() { "loses units" } else { "misses the run by more than 5 %" };
    let _ = writeln!(page, "\nThe replay {what}, so its answers would be worthless.");
    for reason in &doubt.reasons {
        let _ = writeln!(page, "  perhaps {reason}");
    }
    let flow = text::printable(trace.flow());
    let _ = if trace.is_live() {
        writeln!(page, "Ask again when `{flow}` has run on for a while, or ask with --anyway.")
    } else {
        writeln!(page, "Record another run of `{flow}` on a quiet machine, or ask with --anyway.")
    };
    page
}

/// The line about the part of the run on which the answer is based. It is empty for a whole run.
pub(crate) fn part(trace: &Trace) -> String {
    if trace.is_live() {
        let left = text::counted(trace.departed(), "unit");
        let waiting = match trace.waiting() {
            0 => String::new(),
            waiting => format!(", and {} that wait", text::count(waiting)),
        };
        let pace = text::seconds(trace.departed_in().as_secs_f64());
        return format!("window: the newest {left} that left, at a pace of {pace} for as many{waiting}\n");
    }
    let units = text::counted(trace.units() as u64, "unit");
    if trace.weight() > 1.0 {
        return format!("sample: {units}, each for {:.1} of the run, with all of their families\n", trace.weight());
    }
    String::new()
}

/// The line that compares the run with a replay under the run's own settings.
pub(crate) fn itself(trace: &Trace, doubt: &Doubt) -> String {
    format!(
        "replay of the {} itself: {} against {} measured ({})\n",
        if trace.is_live() { "window" } else { "run" },
        text::seconds(doubt.replayed_s),
        text::seconds(doubt.measured_s),
        signed(doubt.miss())
    )
}

/// Formats a share as a signed percentage: −0.4 %.
fn signed(share: f64) -> String {
    let percent = share * 100.0;
    let sign = if percent < 0.0 { "−" } else { "+" };
    if percent.abs() < 10.0 { format!("{sign}{:.1} %", percent.abs()) } else { format!("{sign}{:.0} %", percent.abs()) }
}

/// Returns the page of all findings.
pub(super) fn page(found: &Found<'_>) -> String {
    let mut page = part(found.trace) + &itself(found.trace, &found.doubt);
    if found.doubt.is_serious() {
        page.push_str("The replay is too far off, so the following is a guess.\n");
        for reason in &found.doubt.reasons {
            let _ = writeln!(page, "  perhaps {reason}");
        }
    }
    if let Some(slope) = &found.slope {
        page.push_str(&slope.page());
    }
    page.push('\n');
    match &found.changed {
        Some(changed) => page.push_str(&beside(&found.as_it_was, changed)),
        None => page.push_str(&alone(&found.as_it_was)),
    }
    if let Some(checked) = &found.checked {
        page.push_str(&check(found.changed.as_ref().map_or(&found.as_it_was, |changed| &changed.answer), checked));
    }
    if let Some(helps) = &found.helps {
        page.push_str(&help(helps, &found.as_it_was));
    }
    if let Some((knob, answers)) = &found.sweep {
        page.push_str(&curve(&text::printable(&knob.key()), answers));
    }
    if let Some(reached) = &found.goal {
        page.push_str(&goal(reached));
    }
    page.push_str(&assumes(found));
    page
}

fn rows(answer: &Answer) -> [(&'static str, String); 4] {
    [
        ("wall", text::seconds(answer.wall_s)),
        ("throughput", text::rate(answer.throughput)),
        ("latency p50", text::seconds(answer.p50_s)),
        ("latency p99", text::seconds(answer.p99_s)),
    ]
}

/// Returns the line of the bottleneck law.
fn law(answer: &Answer) -> String {
    let (least, by) = (text::seconds(answer.at_least_s), text::printable(&answer.at_least_by));
    format!("no less than  {least}: the work that {by} must do in any order")
}

fn alone(answer: &Answer) -> String {
    let mut page = String::new();
    for (name, value) in rows(answer) {
        let _ = writeln!(page, "{name:<14}{value}");
    }
    let _ = writeln!(page, "limited by    {}", text::printable(&answer.limit));
    let _ = writeln!(page, "{}", law(answer));
    page
}

fn beside(before: &Answer, changed: &Changed) -> String {
    let Changed { settings, answer, wall_s, p99_s } = changed;
    let per_second = |wall: f64| answer.retired as f64 / wall.max(1e-9);
    let ranges = [
        format!("({} … {})", text::seconds(wall_s.0), text::seconds(wall_s.1)),
        format!("({} … {})", text::rate(per_second(wall_s.1)), text::rate(per_second(wall_s.0))),
        String::new(),
        format!("({} … {})", text::seconds(p99_s.0), text::seconds(p99_s.1)),
    ];
    let of = |answer: &Answer| [answer.wall_s, answer.throughput, answer.p50_s, answer.p99_s];
    let mut page = format!("{:<14}{:<14}{}\n", "", "as it was", text::printable(settings));
    let numbers = rows(before).into_iter().zip(rows(answer)).zip(ranges).zip(of(before).into_iter().zip(of(answer)));
    for ((((name, was), (_, is)), range), (from, to)) in numbers {
        let change = if from > 0.0 { signed(to / from - 1.0) } else { String::new() };
        let _ = writeln!(page, "{name:<14}{was:<14}{is:<12}{change:>8}  {range}");
    }
    let _ = writeln!(page, "\nlimited by    {}", text::printable(&before.limit));
    let _ = writeln!(page, "then by       {}", text::printable(&answer.limit));
    let _ = writeln!(page, "{}", law(answer));
    page
}

/// The prediction, and the result of the run that checked it.
fn check(predicted: &Answer, checked: &Checked) -> String {
    let Checked { measured, judged } = checked;
    let mut page = format!("\n{:<14}{:<14}{:<14}off\n", "", "predicted", "measured");
    let of = |answer: &Answer| [answer.wall_s, answer.throughput, answer.p50_s, answer.p99_s];
    let numbers = rows(predicted).into_iter().zip(rows(measured)).zip(of(predicted).into_iter().zip(of(measured)));
    for (((name, said), (_, is)), (predicted, measured)) in numbers {
        let _ = writeln!(page, "{name:<14}{said:<14}{is:<14}{}", signed(predicted / measured.max(1e-9) - 1.0));
    }
    let _ = writeln!(page, "limited by    {}", text::printable(&measured.limit));
    if let Some(judged) = judged {
        page.push_str(&verdict(judged));
    }
    page
}

/// The verdict of the pairs of runs, and the prediction.
fn verdict(judged: &Judged) -> String {
    let Judged { pairs, ratio, low, high, predicted, faster } = judged;
    let between = match (*low > 0.0, high) {
        (true, Some(high)) => format!("({low:.3} … {high:.3})"),
        (true, None) => format!("(at least {low:.3})"),
        (false, Some(high)) => format!("(at most {high:.3})"),
        (false, None) => "(too few pairs for an interval)".to_owned(),
    };
    let pairs = text::counted(*pairs, "pair");
    let certain = match faster {
        Some(faster) => format!("it is certain that {faster} is faster"),
        None => "it is not certain which is faster: --check=PAIRS runs more".to_owned(),
    };
    let holds = match (judged.is_open(), judged.holds()) {
        (true, _) => String::new(),
        (false, true) => ", within that interval".to_owned(),
        (false, false) => {
            format!(", outside of that interval ({} off the measured ratio)", signed(predicted / ratio - 1.0))
        }
    };
    format!(
        "\n{pairs} of runs, in turns: changed takes {ratio:.3} times as long {between}, and {certain}\n\
         predicted were {predicted:.3} times{holds}\n"
    )
}

fn help(helps: &[Help], before: &Answer) -> String {
    if helps.is_empty() {
        return "\nDoubling any single setting gives nothing: change two at once, or a stage's own time\n\
                (stage.NAME.service=-20% shows what that would give).\n"
            .to_owned();
    }
    let mut page = String::from("\nWhat helps, each alone:\n");
    for Help { knob, was, to, answer, enough, at_enough } in helps {
        let change = signed(answer.wall_s / before.wall_s - 1.0);
        let _ = write!(
            page,
            "  {:<28} {:<10} {change:>8}",
            text::printable(&format!("{}={to}", knob.key())),
            text::seconds(answer.wall_s)
        );
        let _ = if *enough > *to {
            writeln!(page, "   up to {enough}: {}", text::seconds(at_enough.wall_s))
        } else {
            writeln!(page, "   was {was}; more than {enough} gives nothing")
        };
    }
    if let Some(best) = helps.first() {
        let _ = writeln!(page, "  then limited by  {}", text::printable(&best.at_enough.limit));
    }
    page
}

fn curve(key: &str, answers: &[(u64, Answer)]) -> String {
    let most = answers.iter().map(|(_, answer)| answer.throughput).fold(0.0, f64::max);
    let mut page = format!("\n{key:<20} {:<10} {:<12} {:<12} limited by\n", "wall", "p99", "throughput");
    for (value, answer) in answers {
        let bar = "▇".repeat(((answer.throughput / most.max(1e-9)) * BAR as f64 / 2.0).round() as usize);
        let _ = writeln!(
            page,
            "{value:<20} {:<10} {:<12} {:<12} {bar} {}",
            text::seconds(answer.wall_s),
            text::seconds(answer.p99_s),
            text::rate(answer.throughput),
            text::printable(&answer.limit)
        );
    }
    page
}

fn goal(reached: &Reached) -> String {
    let Reached { goal, is_reached, settings, answer } = reached;
    let settings: Vec<String> =
        settings.iter().map(|(knob, was, to)| format!("{}={to} (was {was})", text::printable(&knob.key()))).collect();
    let with = if settings.is_empty() { "the settings as they are".to_owned() } else { settings.join(", ") };
    let (wall, p99) = (text::seconds(answer.wall_s), text::seconds(answer.p99_s));
    let verdict = if *is_reached { "is reached with" } else { "is not reached; nearest is" };
    format!("\n{goal} {verdict} {with}\n  wall {wall}, p99 {p99}; limited by {}\n", text::printable(&answer.limit))
}

fn assumes(found: &Found<'_>) -> String {
    let cores = text::counted(found.trace.cores() as u64, "core");
    let fast = match &found.slope {
        None => "a disk or a server answers as fast to more requests as to fewer".to_owned(),
        Some(slope) => format!(
            "{} answers in a time that is a straight line through both runs, and all else as fast as here",
            text::printable(&slope.resource)
        ),
    };
    let steady = if found.trace.is_live() {
        format!(";\n{:9}the run goes on as in the window: units of the same kind keep arriving at the same rate", "")
    } else {
        String::new()
    };
    format!(
        "\nassumes  each unit takes the time that it took: {fast};\n\
         {:9}what computes shares {cores}, and other programs take no more of them than they did{steady}\n",
        ""
    )
}

fn itself_json(doubt: &Doubt) -> Value {
    json!({ "replayed_s": doubt.replayed_s, "measured_s": doubt.measured_s, "miss": doubt.miss(), "perhaps": doubt.reasons })
}

/// [`part`] as JSON.
fn add_part(object: &mut Value, trace: &Trace) {
    if trace.is_live() || trace.weight() > 1.0 {
        let name = if trace.is_live() { "window" } else { "sample" };
        let units = if trace.is_live() { trace.departed() } else { trace.units() as u64 };
        object[name] = json!({ "units": units, "waiting": trace.waiting(), "weight": trace.weight() });
    }
}

/// [`doubt()`] as JSON.
pub(super) fn json_doubt(trace: &Trace, doubt: &Doubt) -> String {
    let mut object = json!({ "flow": trace.flow(), "itself": itself_json(doubt), "refused": true });
    add_part(&mut object, trace);
    format!("{object}\n")
}

/// Returns [`page()`] as JSON.
pub(super) fn json(found: &Found<'_>) -> String {
    let mut object = json!({
        "flow": found.trace.flow(),
        "itself": itself_json(&found.doubt),
        "as_it_was": found.as_it_was,
    });
    add_part(&mut object, found.trace);
    let mut add = |key: &str, value: Value| object[key] = value;
    if let Some(Changed { settings, answer, wall_s, p99_s }) = &found.changed {
        add("changed", json!({ "settings": settings, "answer": answer, "wall_s": wall_s, "p99_s": p99_s }));
    }
    if let Some(checked) = &found.checked {
        add("checked", json!(checked.measured));
        if let Some(judged) = &checked.judged {
            add("judged", json!(judged));
        }
    }
    if let Some(slope) = &found.slope {
        add("slope", json!(slope));
    }
    if let Some(helps) = &found.helps {
        let help = |help: &Help| {
            json!({
                "setting": help.knob.key(), "was": help.was, "to": help.to, "answer": help.answer,
                "enough": help.enough, "at_enough": help.at_enough,
            })
        };
        add("helps", helps.iter().map(help).collect());
    }
    if let Some((knob, answers)) = &found.sweep {
        let points: Vec<Value> =
            answers.iter().map(|(value, answer)| json!({ "value": value, "answer": answer })).collect();
        add("sweep", json!({ "setting": knob.key(), "points": points }));
    }
    if let Some(Reached { goal, is_reached, settings, answer }) = &found.goal {
        let settings: Vec<Value> =
            settings.iter().map(|(knob, was, to)| json!({ "setting": knob.key(), "was": was, "to": to })).collect();
        add("goal", json!({ "goal": goal, "reached": is_reached, "settings": settings, "answer": answer }));
    }
    format!("{object}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_with_open_ends_is_told_in_words() {
        let judged = |low, high, faster| Judged { pairs: 3, ratio: 0.5, low, high, predicted: 0.52, faster };
        for (judged, between, after) in [
            (
                judged(0.4, Some(0.6), Some("changed")),
                "(0.400 … 0.600), and it is certain",
                "times, within that interval",
            ),
            (judged(0.6, Some(0.7), None), "(0.600 … 0.700), and it is not", "times, outside of that interval"),
            (judged(0.3, None, None), "(at least 0.300)", "times, within that interval"),
            (judged(0.0, Some(0.5), None), "(at most 0.500)", "times, outside of that interval"),
            (judged(0.0, None, None), "(too few pairs for an interval)", "predicted were 0.520 times\n"),
        ] {
            let said = verdict(&judged);
            assert!(said.contains(between) && said.contains(after) && !said.contains("inf "), "{said}");
        }
    }
}
