//! Chooses the metrics format that a client prefers.

use millstream_flow::metrics::Format;

/// Returns the format for an `Accept` header: OpenMetrics, unless the client prefers plain text.
pub(super) fn format(accept: Option<&str>) -> Format {
    let Some(accept) = accept else { return Format::OpenMetrics };
    let open = quality(accept, "application", "openmetrics-text");
    if quality(accept, "text", "plain") > open { Format::Prometheus } else { Format::OpenMetrics }
}

/// Returns the quality of a media type, according to the most specific range that contains it.
fn quality(accept: &str, kind: &str, name: &str) -> f32 {
    let mut found = (0, 0.0);
    for range in accept.split(',') {
        let mut parts = range.split(';').map(str::trim);
        let range = parts.next().unwrap_or_default();
        let weight = parts.find_map(|part| part.strip_prefix("q=")).map_or(Ok(1.0), str::parse::<f32>);
        let precision = match range.split_once('/') {
            Some((k, n)) if k.eq_ignore_ascii_case(kind) && n.eq_ignore_ascii_case(name) => 3,
            Some((k, "*")) if k.eq_ignore_ascii_case(kind) => 2,
            Some(("*", "*")) => 1,
            _ => continue,
        };
        let weight = weight.unwrap_or(0.0).clamp(0.0, 1.0);
        if precision > found.0 || precision == found.0 && weight > found.1 {
            found = (precision, weight);
        }
    }
    found.1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preferred_format_is_served() {
        let prometheus_3 = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
                            application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,\
                            text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        for open in [prometheus_3, "*/*", "", "text/html,application/xhtml+xml,*/*;q=0.8", "text/plain;q=x", "garbage"]
        {
            assert_eq!(format(Some(open)), Format::OpenMetrics, "{open}");
        }
        for plain in
            ["text/plain", "text/plain;version=0.0.4;q=1,*/*;q=0.1", "text/*", "application/openmetrics-text;q=0,*/*"]
        {
            assert_eq!(format(Some(plain)), Format::Prometheus, "{plain}");
        }
        assert_eq!(format(None), Format::OpenMetrics);
    }
}
