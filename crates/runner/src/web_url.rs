//! Web URLs: parses texts as URLs, names their servers, and shows them without secrets.
//!
//! One parser, which follows the [URL standard](https://url.spec.whatwg.org), is used for the URL of a request, for the
//! key of the request's host, and for every redirect. So all spellings of a server have the same key, and a request goes
//! only to the server in its key.

use std::borrow::Cow;
use std::net::Ipv6Addr;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use percent_encoding::percent_decode_str;
use url::{Url, form_urlencoded};

/// The text that replaces a secret.
const HIDDEN: &str = "***";

/// A parameter whose name contains one of these words is secret. The words are in lower case and without separators.
const SECRET_PARTS: [&str; 7] = ["token", "secret", "passw", "signature", "credential", "apikey", "accesskey"];

/// A parameter with one of these names is also secret.
const SECRET_NAMES: [&str; 8] = ["auth", "authorization", "jwt", "key", "pass", "pwd", "session", "sig"];

/// Parses `text` as a URL of `http` or `https`, without its fragment. Spaces around the text are ignored.
///
/// # Errors
/// The reason why the text is not such a URL.
pub fn parse(text: &str) -> Result<Url, String> {
    let url = any(text)?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        _ => Err("it starts neither with http:// nor with https://".to_owned()),
    }
}

/// Parses `text` as a URL of any scheme.
fn any(text: &str) -> Result<Url, String> {
    let text = text.trim_ascii();
    let Some((_, rest)) = scheme_and_rest(text) else {
        return Err("it starts neither with http:// nor with https://".to_owned());
    };
    // The parser would skip some control characters, and the text would not look like the URL that it means. So a text
    // with a control character is refused.
    if text.contains(|c: char| c.is_ascii_control()) {
        return Err("it has a control character in it".to_owned());
    }
    if rest.starts_with(['/', '\\']) {
        return Err("it names no host".to_owned());
    }
    let mut url = Url::parse(text).map_err(|error| error.to_string())?;
    url.set_fragment(None);
    Ok(url)
}

/// The target of a redirect from `base`.
///
/// # Errors
/// The reason why a fetch cannot follow the redirect.
#[cfg(any(test, feature = "http"))]
pub fn join(base: &Url, reference: &str) -> Result<Url, String> {
    if reference.contains(|c: char| c.is_ascii_control()) {
        return Err("it has a control character in it".to_owned());
    }
    let mut url = base.join(reference.trim_ascii()).map_err(|error| error.to_string())?;
    url.set_fragment(None);
    match url.scheme() {
        "http" | "https" => Ok(url),
        _ => Err("only http:// and https:// are fetched".to_owned()),
    }
}

/// The server that a URL names: its host in the form of the URL standard, without a dot at its end, and its port if
/// that is not the scheme's default.
fn server(url: &Url) -> Option<String> {
    let host = url.host_str()?.to_ascii_lowercase();
    let host = match mapped_ipv4(&host) {
        Some(address) => address,
        None => host.strip_suffix('.').unwrap_or(&host).to_owned(),
    };
    if host.is_empty() {
        return None;
    }
    Some(match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host,
    })
}

/// The IPv4 address that is embedded in an IPv6 address such as `[::ffff:7f00:1]`.
fn mapped_ipv4(host: &str) -> Option<String> {
    let address: Ipv6Addr = host.strip_prefix('[')?.strip_suffix(']')?.parse().ok()?;
    address.to_ipv4_mapped().map(|address| address.to_string())
}

/// The server that a text names, if it is a URL of any scheme.
pub fn server_of(text: &[u8]) -> Option<String> {
    server(&any(str::from_utf8(text).ok()?).ok()?)
}

/// The server of a URL that is fetched.
#[cfg(feature = "http")]
pub fn server_of_url(url: &Url) -> String {
    server(url).unwrap_or_default()
}

/// The URL with `***` in place of the user name, the password, and the values of parameters that seem to be secret.
pub fn shown(url: &Url) -> String {
    let mut url = if has_user(url) { with_user(url, HIDDEN) } else { url.clone() };
    if let Some(query) = url.query().map(without_secrets) {
        url.set_query(Some(&query));
    }
    url.into()
}

fn has_user(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

/// The URL without its user name and password, and the `Authorization` header that contains both.
pub fn without_login(url: &Url) -> (Url, Option<String>) {
    if !has_user(url) {
        return (url.clone(), None);
    }
    let bytes = |text: &str| percent_decode_str(text).collect::<Vec<u8>>();
    let login = [&bytes(url.username())[..], b":", &bytes(url.password().unwrap_or_default())].concat();
    (with_user(url, ""), Some(format!("Basic {}", BASE64_STANDARD.encode(login))))
}

/// The URL with this user name and no password.
fn with_user(url: &Url, name: &str) -> Url {
    let mut url = url.clone();
    // These calls fail only for URLs without a host, which have no user.
    let _ = url.set_username(name);
    let _ = url.set_password(None);
    url
}

/// A unit's text in a form that is safe to show. A URL is shown without its secrets; any other text is unchanged.
pub fn without_credentials(text: &[u8]) -> Cow<'_, [u8]> {
    let valid = String::from_utf8_lossy(text);
    let plain = valid.trim_ascii();
    if scheme_and_rest(plain).is_none() {
        return Cow::Borrowed(text);
    }
    let (found, hidden) = match any(plain).ok().filter(|_| matches!(valid, Cow::Borrowed(_))) {
        Some(url) => (url.to_string(), shown(&url)),
        None => (plain.to_owned(), without_user_by_sight(plain)),
    };
    if hidden == found { Cow::Borrowed(text) } else { Cow::Owned(hidden.into_bytes()) }
}

/// Hides the login in a text that is not a valid URL. Everything before the last `@` may be a password.
fn without_user_by_sight(text: &str) -> String {
    let Some((scheme, rest)) = scheme_and_rest(text) else { return text.to_owned() };
    let (user, rest) = rest.rsplit_once('@').map_or(("", rest), |(_, rest)| ("***@", rest));
    match rest.split_once('?') {
        Some((place, query)) => format!("{scheme}://{user}{place}?{}", without_secrets(query)),
        None => format!("{scheme}://{user}{rest}"),
    }
}

/// The scheme of a text, and the text after `://`.
fn scheme_and_rest(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    is_scheme.then_some((scheme, rest))
}

fn without_secrets(query: &str) -> String {
    let hidden = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, value)) if !value.is_empty() && is_secret(name) => Cow::Owned(format!("{name}={HIDDEN}")),
        _ => Cow::Borrowed(pair),
    });
    hidden.collect::<Vec<_>>().join("&")
}

/// Whether a parameter's name, in its encoded form, suggests that the value is a secret.
fn is_secret(name: &str) -> bool {
    let Some((name, _)) = form_urlencoded::parse(name.as_bytes()).next() else { return false };
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    SECRET_NAMES.contains(&plain.as_str()) || SECRET_PARTS.iter().any(|part| plain.contains(part))
}

#[cfg(test)]
mod tests {
    use super::{join, parse, server_of, without_credentials, without_login};

    #[test]
    fn every_spelling_of_a_server_is_one() {
        for (server, spellings) in [
            (
                "localhost:18082",
                &[
                    "http://localhost:18082/a",
                    "http://localhost:018082/",
                    "http://LOCALHOST.:18082",
                    "http://user:pw@localhost:18082?q",
                    " http://local%68ost:18082/ ",
                    "http://localhost:18082\\x",
                ][..],
            ),
            (
                "example.com",
                &["http://example.com:80/", "HTTP://Example.COM", "https://example.com:443#x", "http://example.com.:/"],
            ),
            ("[::1]", &["http://[::1]/", "http://[0:0::1]:80/", "http://[0000:0:0:0:0:0:0:1]"]),
            (
                "127.0.0.1:99",
                &[
                    "http://127.0.0.1:99",
                    "http://127.1:99",
                    "http://0x7f.0.0.1:99",
                    "http://2130706433:99",
                    "http://[::ffff:127.0.0.1]:99",
                ],
            ),
            (
                "xn--mnchen-3ya.de",
                &[
                    "https://münchen.de/",
                    "https://MÜNCHEN.de",
                    "https://xn--mnchen-3ya.de",
                    "https://mu\u{308}nchen.de",
                ],
            ),
            ("h:443", &["http://h:443"]),
            ("h:2121", &["ftp://H:2121/x"]),
        ] {
            for spelling in spellings {
                assert_eq!(server_of(spelling.as_bytes()).as_deref(), Some(server), "{spelling}");
            }
        }
    }

    #[test]
    fn a_text_that_names_no_server_is_not_a_url() {
        for text in [
            "",
            "example.com/a",
            "http:///a",
            "http:/h/",
            "://h/",
            "a b://h/",
            "http://",
            "http://./",
            "http://a b/",
            "http://h:99999/",
            "ht\ttp://h/",
            "http://h\t/",
            "mailto:a@h",
        ] {
            assert_eq!(server_of(text.as_bytes()), None, "{text}");
        }
        assert_eq!(server_of(b"http://h\xFF/"), None);
        assert!(parse("ftp://h/").unwrap_err().contains("http://"));
        assert_eq!(parse("http://h/a b#part").unwrap().as_str(), "http://h/a%20b");
    }

    #[test]
    fn secrets_are_hidden_and_the_rest_is_shown_as_it_came() {
        for (text, shown) in [
            ("http://user:pass@h/a", "http://***@h/a"),
            ("http://token@h/a?b=c", "http://***@h/a?b=c"),
            (
                "https://h/?access_token=x&page=2&X-Amz-Signature=y&api%5Fkey=z",
                "https://h/?access_token=***&page=2&X-Amz-Signature=***&api%5Fkey=***",
            ),
            ("https://h/?key=x&monkey=y&sig=", "https://h/?key=***&monkey=y&sig="),
            ("HTTP://H/ä?q=ö", "HTTP://H/ä?q=ö"),
            ("http://user:pa/ss@h o/?token=x", "http://***@h o/?token=***"),
            ("http:///user:pass@h/", "http://***@h/"),
            ("http://h o/", "http://h o/"),
            ("mail a@b, see http://h/", "mail a@b, see http://h/"),
            ("plain text", "plain text"),
        ] {
            assert_eq!(String::from_utf8_lossy(&without_credentials(text.as_bytes())), shown);
        }
        assert_eq!(without_credentials(b"http://h/\xFF?q=1").as_ref(), b"http://h/\xFF?q=1");
        assert_eq!(without_credentials(b"http://u:p@h/\xFF").as_ref(), "http://***@h/\u{fffd}".as_bytes());
    }

    #[test]
    fn a_login_is_decoded_into_its_header() {
        let (url, login) = without_login(&parse("http://Aladdin:open%20sesame@h/").unwrap());
        assert_eq!((url.as_str(), login.as_deref()), ("http://h/", Some("Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==")));
        assert_eq!(without_login(&parse("http://h/").unwrap()).1, None);
    }

    #[test]
    fn a_reference_leads_from_its_base_to_the_web_only() {
        let base = parse("http://user:pw@h/a/b?c").unwrap();
        let joined = |reference: &str| join(&base, reference).map(String::from);
        assert_eq!(joined("/x").unwrap(), "http://user:pw@h/x");
        assert_eq!(joined("x#y").unwrap(), "http://user:pw@h/a/x");
        assert_eq!(joined("//other/x").unwrap(), "http://other/x");
        assert_eq!(joined("https://h/ü").unwrap(), "https://h/%C3%BC");
        for reference in [
            "file:///etc/passwd",
            "ftp://h/",
            "javascript:alert(1)",
            "data:,x",
            "http://",
            "/a\tb",
            "/a\u{1}",
            "http://h:99999/",
        ] {
            assert!(join(&base, reference).is_err(), "{reference}");
        }
    }
}
