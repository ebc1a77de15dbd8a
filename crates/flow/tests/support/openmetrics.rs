//! A strict reader of the text formats of metrics. It accepts exactly the grammar.

use std::collections::HashSet;

/// A sample: its name, its labels with escapes undone, and its value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) labels: Vec<(String, String)>,
    pub(crate) value: f64,
}

impl Sample {
    /// The value of a label.
    pub(crate) fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(label, _)| label == name).map(|(_, value)| value.as_str())
    }
}

/// The samples of a text in OpenMetrics 1.0.
pub(crate) fn open_metrics(text: &str) -> Result<Vec<Sample>, String> {
    let body = text.strip_suffix("# EOF\n").ok_or("no `# EOF` at the end")?;
    read(body, true)
}

/// The samples of a text in version 0.0.4 of the Prometheus format.
pub(crate) fn prometheus(text: &str) -> Result<Vec<Sample>, String> {
    read(text, false)
}

fn read(text: &str, open: bool) -> Result<Vec<Sample>, String> {
    let mut samples = Vec::new();
    let mut families = HashSet::new();
    let mut series = HashSet::new();
    let mut family: Option<(String, String)> = None;
    if !text.is_empty() && !text.ends_with('\n') {
        return Err("the last line does not end with a newline".into());
    }
    for line in text.split_terminator('\n') {
        let wrong = |why: &str| format!("{why}: {line:?}");
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').ok_or_else(|| wrong("no type"))?;
            let kinds: &[&str] =
                if open { &["counter", "gauge", "summary", "info"] } else { &["counter", "gauge", "summary"] };
            if !is_name(name) || !kinds.contains(&kind) {
                return Err(wrong("an invalid name or type"));
            }
            if !families.insert(name.to_owned()) {
                return Err(wrong("a second family of this name"));
            }
            family = Some((name.to_owned(), kind.to_owned()));
            continue;
        }
        let (name, kind) = family.as_ref().ok_or_else(|| wrong("no type before"))?;
        if let Some(rest) = line.strip_prefix("# UNIT ") {
            let (of, unit) = rest.split_once(' ').ok_or_else(|| wrong("no unit"))?;
            if !open || of != name || !name.ends_with(&format!("_{unit}")) {
                return Err(wrong("a unit that the name does not end with"));
            }
        } else if let Some(rest) = line.strip_prefix("# HELP ") {
            if rest.split_once(' ').is_none_or(|(of, help)| of != name || unescaped(help, open).is_none()) {
                return Err(wrong("invalid help"));
            }
        } else {
            let sample = sample(line).ok_or_else(|| wrong("no sample"))?;
            let endings: &[&str] = match kind.as_str() {
                "counter" if open => &["_total"],
                "info" => &["_info"],
                "summary" => &["", "_sum", "_count"],
                _ => &[""],
            };
            let ending = sample.name.strip_prefix(name.as_str()).filter(|ending| endings.contains(ending));
            let ending = ending.ok_or_else(|| wrong("a sample of another family"))?;
            let quantile = sample.label("quantile").is_some();
            if quantile != (kind == "summary" && ending.is_empty()) {
                return Err(wrong("a quantile where none belongs, or none where one belongs"));
            }
            if kind == "counter" && (sample.value < 0.0 || sample.value.is_nan()) {
                return Err(wrong("a counter below zero"));
            }
            let mut labels = sample.labels.clone();
            labels.sort();
            if labels.windows(2).any(|pair| pair[0].0 == pair[1].0) {
                return Err(wrong("a label twice"));
            }
            if !series.insert((sample.name.clone(), labels)) {
                return Err(wrong("a series twice"));
            }
            samples.push(sample);
        }
    }
    Ok(samples)
}

fn sample(line: &str) -> Option<Sample> {
    let end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, after) = rest.split_once("=\"")?;
            let end = after.char_indices().scan(false, |escaped, (at, c)| {
                let ends = c == '"' && !*escaped;
                *escaped = c == '\\' && !*escaped;
                Some((ends, at))
            });
            let end = end.into_iter().find(|(ends, _)| *ends)?.1;
            labels.push((is_name(label).then(|| label.to_owned())?, unescaped(&after[..end], true)?));
            rest = &after[end + 1..];
            match rest.strip_prefix(',') {
                Some(more) => rest = more,
                None => break,
            }
        }
        rest = rest.strip_prefix('}')?;
    }
    let value = rest.strip_prefix(' ')?;
    let number = match value {
        "+Inf" => f64::INFINITY,
        "-Inf" => f64::NEG_INFINITY,
        "NaN" => f64::NAN,
        _ if value.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.' || byte == b'-') => value.parse().ok()?,
        _ => return None,
    };
    Some(Sample { name: is_name(name).then(|| name.to_owned())?, labels, value: number })
}

fn is_name(name: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.chars().next().is_some_and(letter) && name.chars().all(|c| letter(c) || c.is_ascii_digit())
}

/// The text with its escapes undone; `None` if an escape is invalid, or a quote is not escaped where it must be.
fn unescaped(text: &str, quotes: bool) -> Option<String> {
    let mut plain = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        plain.push(match c {
            '\\' => match chars.next()? {
                'n' => '\n',
                '\\' => '\\',
                '"' if quotes => '"',
                _ => return None,
            },
            '"' if quotes => return None,
            c => c,
        });
    }
    Some(plain)
}
