//! A moment parsed from a text: an ISO 8601 date, with or without a time of day.

use std::cmp::Ordering;

use time::format_description::well_known::{Iso8601, Rfc3339};
use time::{Date, OffsetDateTime, PrimitiveDateTime};

/// A moment of a flow file or a field.
#[derive(Debug, Clone, Copy)]
pub struct Moment(OffsetDateTime);

impl Moment {
    /// Parses a moment. White space around the text is ignored. A date without a time means the start of that day, and
    /// a time without an offset is in UTC.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let text = str::from_utf8(text).ok()?.trim();
        // The parsers below accept any character between date and time. Only `T` and a space are valid in this
        // position, as in RFC 3339.
        let text = match text.get(10..11) {
            Some(" ") => text.replacen(' ', "T", 1),
            Some("T" | "t") | None => text.to_owned(),
            Some(_) if text.get(4..5) == Some("-") && text.get(7..8) == Some("-") => return None,
            Some(_) => text.to_owned(),
        };
        let text = text.as_str();
        let moment = OffsetDateTime::parse(text, &Rfc3339)
            .or_else(|_| OffsetDateTime::parse(text, &Iso8601::PARSING))
            .or_else(|_| PrimitiveDateTime::parse(text, &Iso8601::PARSING).map(PrimitiveDateTime::assume_utc))
            .or_else(|_| Date::parse(text, &Iso8601::PARSING).map(|date| date.midnight().assume_utc()));
        let has_offset = |moment: &OffsetDateTime| moment.offset().whole_hours().abs() < 24;
        moment.ok().filter(has_offset).map(Self)
    }

    /// Compares two moments, whatever their offsets from UTC.
    pub fn order(self, other: Self) -> Ordering {
        self.0.unix_timestamp_nanos().cmp(&other.0.unix_timestamp_nanos())
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering::{Equal, Greater, Less};

    use super::Moment;

    fn moment(text: &str) -> Moment {
        Moment::parse(text.as_bytes()).unwrap_or_else(|| panic!("{text} is a date"))
    }

    #[test]
    fn moments_are_compared_and_not_their_texts() {
        for (one, order, other) in [
            ("2026-01-31", Equal, "2026-01-31T00:00:00Z"),
            ("2026-01-31T01:00:00+01:00", Equal, "2026-01-31T00:00:00Z"),
            ("2026-01-31T23:30:00-01:00", Greater, "2026-01-31T23:59:59Z"),
            ("2026-01-31T12:00:00", Equal, "2026-01-31 12:00:00Z"),
            ("2026-01-31T12:00:00.000000001Z", Greater, "2026-01-31T12:00:00Z"),
            ("20260131T120000Z", Equal, " 2026-01-31T12:00:00z\n"),
            ("1969-12-31", Less, "1970-01-01"),
            ("2026-W05-6", Equal, "2026-01-31"),
            ("2026-031", Equal, "2026-01-31"),
            ("2026-031T12:00:00Z", Equal, "2026-01-31T12:00:00Z"),
            ("2024-02-29", Less, "2024-03-01"),
        ] {
            assert_eq!(moment(one).order(moment(other)), order, "{one} and {other}");
        }
    }

    #[test]
    fn what_is_no_date_is_none() {
        for text in [
            "",
            "today",
            "2026-02-29",
            "2026-13-01",
            "31.01.2026",
            "2026-01-31T25:00:00Z",
            "2026-01-31x",
            "2026-01-31x12:00:00Z",
            "2026-01-31_12:00:00Z",
            "2026-01-31T12:30:15+24:00",
            "é2026-01-31",
            "1700000000",
        ] {
            assert!(Moment::parse(text.as_bytes()).is_none(), "{text}");
        }
        assert!(Moment::parse(b"2026-01-31\xff").is_none());
    }
}
