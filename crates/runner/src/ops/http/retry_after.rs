//! `Retry-After`: the time that a server asks its clients to wait (RFC 9110, section 10.2.3).

use std::time::{Duration, SystemTime};

/// The pause that the header asks for at the moment `now`. The value is a number of seconds or an HTTP date; a date in
/// the past asks for no pause. Returns `None` if the value is neither a number nor a date.
pub(super) fn pause(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number beyond 64 bits is also valid, and means a long time.
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let moment = httpdate::parse_http_date(value).ok()?;
    Some(moment.duration_since(now).unwrap_or(Duration::ZERO))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::pause;

    #[test]
    fn seconds_and_dates_are_pauses() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        for (value, seconds) in [
            ("0", Some(0)),
            (" 120 ", Some(120)),
            ("99999999999999999999999", Some(u64::MAX)),
            ("Sun, 06 Nov 1994 08:49:47 GMT", Some(10)),
            ("Sunday, 06-Nov-94 08:49:47 GMT", Some(10)),
            ("Sun Nov  6 08:49:47 1994", Some(10)),
            ("Sun, 06 Nov 1994 08:49:27 GMT", Some(0)),
            ("", None),
            ("-1", None),
            ("1.5", None),
            ("soon", None),
        ] {
            assert_eq!(pause(value, now), seconds.map(Duration::from_secs), "{value:?}");
        }
    }
}
