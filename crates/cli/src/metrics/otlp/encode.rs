//! Metrics as the JSON of OTLP, from the OpenMetrics text of this command.
//!
//! Counters become cumulative monotonic sums; gauges and infos become gauges; summaries stay summaries. The name of a
//! metric is that of its family, and its unit is `s`, `By` or none. Whole numbers of 64 bits are strings, as the JSON
//! form of OTLP requires.

use serde_json::{Value, json};

/// The source of the metrics.
#[derive(Debug)]
pub(super) struct Resource {
    /// `service.name`.
    pub(super) service: String,
    /// `service.instance.id`.
    pub(super) instance: String,
    /// The moment at which counters were zero, in nanoseconds since 1970.
    pub(super) began_ns: u64,
}

/// OTLP's number for totals since the start.
const CUMULATIVE: u8 = 2;

/// A family of metrics, as in the text.
#[derive(Default)]
struct Family<'a> {
    name: &'a str,
    kind: &'a str,
    unit: &'a str,
    help: String,
    samples: Vec<Sample<'a>>,
}

struct Sample<'a> {
    /// The part of the sample's name after the family's name.
    ending: &'a str,
    labels: Vec<(&'a str, String)>,
    value: &'a str,
}

/// The body of a request.
pub(super) fn json(text: &str, resource: &Resource, now_ns: u64) -> String {
    let metrics: Vec<Value> = families(text).iter().map(|family| metric(family, resource, now_ns)).collect();
    let attributes = [("service.name", &resource.service), ("service.instance.id", &resource.instance)];
    let attributes: Vec<Value> = attributes.iter().map(|(name, value)| attribute(name, value)).collect();
    json!({ "resourceMetrics": [{
        "resource": { "attributes": attributes },
        "scopeMetrics": [{ "scope": { "name": "millstream", "version": env!("CARGO_PKG_VERSION") }, "metrics": metrics }],
    }] })
    .to_string()
}

fn metric(family: &Family<'_>, resource: &Resource, now_ns: u64) -> Value {
    let unit = match family.unit {
        "seconds" => "s",
        "bytes" => "By",
        _ => "",
    };
    let mut metric = json!({ "name": family.name, "description": family.help, "unit": unit });
    let point = |sample: &Sample<'_>| {
        let mut point = json!({ "attributes": attributes(&sample.labels), "timeUnixNano": now_ns.to_string() });
        match sample.value.parse::<i64>() {
            Ok(whole) => point["asInt"] = whole.to_string().into(),
            Err(_) => point["asDouble"] = number(sample.value),
        }
        point
    };
    match family.kind {
        "counter" => {
            let points: Vec<Value> = family.samples.iter().map(|sample| since(point(sample), resource)).collect();
            metric["sum"] = json!({ "aggregationTemporality": CUMULATIVE, "isMonotonic": true, "dataPoints": points });
        }
        "summary" => {
            let points = summaries(&family.samples, now_ns);
            let points: Vec<Value> = points.into_iter().map(|point| since(point, resource)).collect();
            metric["summary"] = json!({ "dataPoints": points });
        }
        _ => {
            let points: Vec<Value> = family.samples.iter().map(point).collect();
            metric["gauge"] = json!({ "dataPoints": points });
        }
    }
    metric
}

fn since(mut point: Value, resource: &Resource) -> Value {
    point["startTimeUnixNano"] = resource.began_ns.to_string().into();
    point
}

/// One point for all samples with the same labels: quantiles, sum and count.
fn summaries(samples: &[Sample<'_>], now_ns: u64) -> Vec<Value> {
    let mut points: Vec<(Vec<(&str, String)>, Value)> = Vec::new();
    for sample in samples {
        let labels: Vec<_> = sample.labels.iter().filter(|(name, _)| *name != "quantile").cloned().collect();
        let place = points.iter().position(|(known, _)| *known == labels).unwrap_or_else(|| {
            let empty = json!({ "attributes": attributes(&labels), "timeUnixNano": now_ns.to_string(),
                "count": "0", "sum": 0.0, "quantileValues": [] });
            points.push((labels.clone(), empty));
            points.len() - 1
        });
        let point = &mut points[place].1;
        let quantile = sample.labels.iter().find(|(name, _)| *name == "quantile");
        match (sample.ending, quantile) {
            ("_count", _) => point["count"] = sample.value.into(),
            ("_sum", _) => point["sum"] = number(sample.value),
            (_, Some((_, quantile))) => {
                let value = json!({ "quantile": number(quantile), "value": number(sample.value) });
                point["quantileValues"].as_array_mut().expect("made above").push(value);
            }
            _ => {}
        }
    }
    points.into_iter().map(|(_, point)| point).collect()
}

/// A number; numbers that JSON cannot express, such as infinity, are strings.
fn number(text: &str) -> Value {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => number.into(),
        Ok(number) if number.is_nan() => "NaN".into(),
        Ok(number) => if number > 0.0 { "Infinity" } else { "-Infinity" }.into(),
        Err(_) => Value::Null,
    }
}

fn attributes(labels: &[(&str, String)]) -> Vec<Value> {
    labels.iter().map(|(name, value)| attribute(name, value)).collect()
}

fn attribute(name: &str, value: &str) -> Value {
    json!({ "key": name, "value": { "stringValue": value } })
}

/// The families of a text that this command has written.
fn families(text: &str) -> Vec<Family<'_>> {
    let mut families: Vec<Family<'_>> = Vec::new();
    for line in text.lines() {
        match line.strip_prefix("# ").and_then(|line| line.split_once(' ')) {
            Some(("TYPE", rest)) => {
                let (name, kind) = rest.rsplit_once(' ').unwrap_or((rest, ""));
                families.push(Family { name, kind, ..Family::default() });
            }
            Some(("UNIT", rest)) => {
                if let Some(family) = families.last_mut() {
                    family.unit = rest.rsplit_once(' ').map_or("", |(_, unit)| unit);
                }
            }
            Some(("HELP", rest)) => {
                if let Some(family) = families.last_mut() {
                    family.help = unescaped(rest.split_once(' ').map_or("", |(_, help)| help));
                }
            }
            Some(_) => {}
            None => {
                if let Some(family) = families.last_mut().filter(|_| !line.starts_with('#')) {
                    family.samples.extend(sample(line, family.name));
                }
            }
        }
    }
    families
}

/// `name{label="value",…} 1`
fn sample<'a>(line: &'a str, family: &str) -> Option<Sample<'a>> {
    let (head, value) = line.rsplit_once(' ')?;
    let (name, mut rest) = match head.split_once('{') {
        Some((name, labels)) => (name, labels.strip_suffix('}')?),
        None => (head, ""),
    };
    let mut labels = Vec::new();
    while !rest.is_empty() {
        let (label, after) = rest.split_once("=\"")?;
        let mut escaped = false;
        let end = after.find(|c| {
            let ends = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        })?;
        labels.push((label, unescaped(&after[..end])));
        rest = after[end + 1..].trim_start_matches(',');
    }
    Some(Sample { ending: name.strip_prefix(family)?, labels, value })
}

fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        out.push(match c {
            '\\' => match characters.next() {
                Some('n') => '\n',
                Some(other) => other,
                None => '\\',
            },
            c => c,
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use millstream_flow::metrics::{Exposition, Format};

    use super::*;
    use crate::screen::sample::snapshot;

    fn encoded(flow: &str) -> Vec<Value> {
        let mut now = snapshot();
        flow.clone_into(&mut now.flow);
        let mut text = Exposition::new(String::new(), Format::OpenMetrics).label("run", "a-1");
        now.write_metrics(&mut text).unwrap();
        let resource = Resource { service: "mill".into(), instance: "a-1".into(), began_ns: 5 };
        let value: Value = serde_json::from_str(&json(&text.end().unwrap(), &resource, 7)).unwrap();
        assert_eq!(value["resourceMetrics"][0]["resource"]["attributes"][0]["value"]["stringValue"], "mill");
        value["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap().clone()
    }

    #[test]
    fn every_family_is_a_metric_of_its_kind() {
        let metrics = encoded("archive");
        let of = |name: &str| metrics.iter().find(|metric| metric["name"] == name).unwrap_or_else(|| panic!("{name}"));
        let sum = &of("millstream_units_admitted")["sum"];
        assert_eq!((&sum["aggregationTemporality"], &sum["isMonotonic"]), (&2.into(), &true.into()));
        let point = &sum["dataPoints"][0];
        assert_eq!(
            (&point["asInt"], &point["timeUnixNano"], &point["startTimeUnixNano"]),
            (&"12400".into(), &"7".into(), &"5".into())
        );
        assert_eq!(of("millstream_payload_bytes")["unit"], "By");
        assert_eq!(of("millstream_flow_elapsed_seconds")["gauge"]["dataPoints"][0]["asDouble"], 42.1);
        let service = of("millstream_stage_service_seconds");
        let points = service["summary"]["dataPoints"].as_array().unwrap();
        assert_eq!((points.len(), &service["unit"]), (4, &"s".into()));
        assert_eq!((&points[0]["count"], points[0]["quantileValues"].as_array().unwrap().len()), (&"1000".into(), 4));
    }

    #[test]
    fn names_come_through_as_they_are() {
        let hostile = "a\"b\\c\nd,e=\"}{ü \\n";
        let metrics = encoded(hostile);
        for metric in metrics {
            let kind = ["sum", "gauge", "summary"].into_iter().find(|kind| metric.get(kind).is_some()).unwrap();
            let points = metric[kind]["dataPoints"].as_array().unwrap();
            assert!(!points.is_empty(), "{metric}");
            for point in points {
                let flow = point["attributes"].as_array().unwrap().iter().find(|pair| pair["key"] == "flow").unwrap();
                assert_eq!(flow["value"]["stringValue"], hostile);
            }
        }
    }
}
