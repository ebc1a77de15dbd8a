//! Redirects: the URL to which a unit is redirected, and whether the redirect is followed.

use millstream_flow::Failure;
use ureq::http::{HeaderMap, HeaderValue, StatusCode, header};
use url::Url;

use crate::file::model::Method;
use crate::web_url;

/// The number of redirects that are followed if the flow file does not set `max_redirects`.
pub(super) const DEFAULT_MAX_REDIRECTS: u64 = 10;

/// How far redirects have led a unit that still waits for its final response.
#[derive(Debug, Clone)]
pub struct Hop {
    /// The URL of the next request.
    pub url: Url,
    /// The number of redirects so far.
    pub count: u64,
    /// Whether the URL's scheme, host and port are still those of the first request.
    pub at_home: bool,
    /// Whether the next request is a `GET`, whatever the method in the flow file. This is so once a request that
    /// changes something was answered with status 303: the new URL is then the URL of the result.
    pub gets: bool,
}

/// The rules for following redirects.
#[derive(Debug, Clone, Copy)]
pub(super) struct Redirects {
    pub(super) most: u64,
    /// Whether redirects from `https` to `http` are also followed.
    pub(super) downgrade: bool,
}

impl Hop {
    /// The state before the first redirect.
    pub(super) fn first(url: Url) -> Self {
        Self { url, count: 0, at_home: true, gets: false }
    }
}

/// The target of a redirect; `None` for any other response.
pub(super) fn location(status: StatusCode, headers: &HeaderMap) -> Option<&[u8]> {
    let redirects = matches!(
        status,
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    );
    headers.get(header::LOCATION).filter(|_| redirects).map(HeaderValue::as_bytes)
}

impl Redirects {
    /// The state after a redirect from `hop`.
    ///
    /// # Errors
    /// The reason why the redirect is not followed, as a permanent failure.
    pub(super) fn follow(self, hop: &Hop, status: StatusCode, location: &[u8], method: Method) -> Result<Hop, Failure> {
        let refuse = |message: String| Err(Failure::permanent(message));
        let joined = match str::from_utf8(location) {
            Ok(location) => web_url::join(&hop.url, location),
            Err(_) => Err("it is not UTF-8".to_owned()),
        };
        let mut url = match joined {
            Ok(url) => url,
            Err(reason) => {
                let to = web_url::without_credentials(location);
                return refuse(format!("redirected to `{}`, which cannot be followed: {reason}", to.escape_ascii()));
            }
        };
        let to = web_url::shown(&url);
        if hop.count >= self.most {
            return refuse(format!("redirected to {to}, but `max_redirects` is {}", self.most));
        }
        if hop.url.scheme() == "https" && url.scheme() == "http" && !self.downgrade {
            return refuse(format!("redirected from https to {to}, but `downgrade` is not set"));
        }
        let at_home = hop.at_home && url.origin() == hop.url.origin();
        let gets = hop.gets || !method.is_safe() && status == StatusCode::SEE_OTHER;
        if !method.is_safe() && !gets {
            // Only 307 and 308 say that the request is to be repeated unchanged. For other statuses, some HTTP clients
            // send a `GET` request instead.
            if !matches!(status, StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT) {
                return refuse(format!(
                    "status {status} redirects to {to}, but does not say that the {} is to be repeated there: use that URL",
                    method.name()
                ));
            }
            if !at_home {
                return refuse(format!(
                    "redirected to {to}, but the {} is for the server of the unit's own URL alone",
                    method.name()
                ));
            }
        }
        if at_home && url.username().is_empty() && url.password().is_none() {
            // These calls fail only for a URL without a host, and this URL has one.
            let _ = url.set_username(hop.url.username());
            let _ = url.set_password(hop.url.password());
        }
        Ok(Hop { url, count: hop.count + 1, at_home, gets })
    }
}

#[cfg(test)]
mod tests {
    use ureq::http::StatusCode;

    use super::{Hop, Redirects};
    use crate::file::model::Method;
    use crate::web_url;

    fn follow(from: &str, to: &str, redirects: Redirects) -> Result<Hop, String> {
        let hop = Hop::first(web_url::parse(from).unwrap());
        redirects.follow(&hop, StatusCode::FOUND, to.as_bytes(), Method::Get).map_err(|failure| {
            assert!(failure.is_permanent());
            failure.to_string()
        })
    }

    const REDIRECTS: Redirects = Redirects { most: 10, downgrade: false };

    #[test]
    fn credentials_and_headers_are_sent_to_their_own_scheme_host_and_port_only() {
        for (to, at_home, url) in [
            ("/b", true, "http://u:p@h/b"),
            ("http://H:80/b", true, "http://u:p@h/b"),
            ("http://x@h/b", true, "http://x@h/b"),
            ("http://h:81/b", false, "http://h:81/b"),
            ("https://h/b", false, "https://h/b"),
            ("//h.example/b", false, "http://h.example/b"),
        ] {
            let hop = follow("http://u:p@h/a", to, REDIRECTS).unwrap();
            assert_eq!((hop.at_home, hop.url.as_str()), (at_home, url), "{to}");
        }
        let left = follow("http://u:p@h/a", "http://away/", REDIRECTS).unwrap();
        let back = REDIRECTS.follow(&left, StatusCode::FOUND, b"http://h/a", Method::Get).unwrap();
        assert_eq!(
            (back.at_home, back.count, back.url.as_str()),
            (false, 2, "http://h/a"),
            "another server has sent it back"
        );
    }

    #[test]
    fn a_redirect_from_https_to_http_is_followed_on_request_only() {
        let refused = follow("https://h/", "http://h/", REDIRECTS).unwrap_err();
        assert!(refused.contains("redirected from https to http://h/"), "{refused}");
        assert!(follow("https://h/", "http://h/", Redirects { downgrade: true, ..REDIRECTS }).is_ok());
        assert!(follow("http://h/", "https://h/", REDIRECTS).is_ok());
    }

    #[test]
    fn what_cannot_be_followed_is_named_without_its_secrets() {
        for (to, expected) in [
            ("file:///etc/passwd", "`file:///etc/passwd`"),
            ("ftp://u:secret@h/", "`ftp://***@h/`"),
            ("http://u:secret@h:99999/", "`http://***@h:99999/`"),
            ("/\u{7f}", "control character"),
        ] {
            let error = follow("http://h/", to, REDIRECTS).unwrap_err();
            assert!(error.contains(expected) && !error.contains("secret"), "{error}");
        }
        let error =
            follow("http://h/", "http://u:secret@h/?token=secret", Redirects { most: 0, ..REDIRECTS }).unwrap_err();
        assert_eq!(error, "redirected to http://***@h/?token=***, but `max_redirects` is 0");
    }

    #[test]
    fn a_change_is_made_where_the_server_says_so_and_at_no_other_server() {
        let follow = |status: StatusCode, to: &str, method| {
            let hop = Hop::first(web_url::parse("http://h/a").unwrap());
            REDIRECTS.follow(&hop, status, to.as_bytes(), method).map_err(|failure| failure.to_string())
        };
        for status in [StatusCode::TEMPORARY_REDIRECT, StatusCode::PERMANENT_REDIRECT] {
            assert!(!follow(status, "/b", Method::Post).unwrap().gets);
            let away = follow(status, "http://other/b", Method::Put).unwrap_err();
            assert!(away.contains("redirected to http://other/b, but the PUT is for the server"), "{away}");
            assert!(!follow(status, "/b", Method::Delete).unwrap().gets);
            assert!(follow(status, "http://other/b", Method::Delete).unwrap_err().contains("but the DELETE is for"));
        }
        assert!(follow(StatusCode::SEE_OTHER, "http://other/b", Method::Post).unwrap().gets);
        for status in [StatusCode::MOVED_PERMANENTLY, StatusCode::FOUND] {
            let unclear = follow(status, "/b", Method::Post).unwrap_err();
            assert!(unclear.contains("does not say that the POST is to be repeated there"), "{unclear}");
            assert!(follow(status, "/b", Method::Delete).is_err());
            assert!(follow(status, "/b", Method::Head).is_ok());
        }
    }
}
