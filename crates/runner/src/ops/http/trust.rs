//! The authorities that are trusted to vouch for a server's name.
//!
//! The authorities are in a list, which `SSL_CERT_FILE` or `SSL_CERT_DIR` may name. If neither is set, it is the
//! system's list, to which an administrator can add a company's own authority. On a system without a list, such as a
//! small container, the list is Mozilla's, as of this build.

use std::env;
use std::fmt;
use std::sync::LazyLock;

use rustls_native_certs::{CertificateResult, load_native_certs};
use ureq::tls::{Certificate, RootCerts};

/// The variables that name a list to be used instead of the system's list.
const VARIABLES: [&str; 2] = ["SSL_CERT_FILE", "SSL_CERT_DIR"];

/// The authorities of this process, which are read only once.
static TRUST: LazyLock<Trust> = LazyLock::new(|| {
    let is_set = |name: &&str| env::var_os(name).is_some();
    Trust::new(&VARIABLES.into_iter().filter(is_set).collect::<Vec<_>>().join(" and "), &load_native_certs())
});

/// Authorities, and their origin.
#[derive(Debug)]
pub(super) struct Trust {
    /// The authorities.
    pub(super) roots: RootCerts,
    origin: String,
}

impl Trust {
    /// The authorities of this process. The first call reads them, which takes a few milliseconds.
    pub(super) fn of_process() -> &'static Self {
        &TRUST
    }

    /// The authorities in `found`. `named` contains the names of the variables that are set, for messages.
    fn new(named: &str, found: &CertificateResult) -> Self {
        let count = found.certs.len();
        let roots = found.certs.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).into();
        let origin = match (named, found.errors.first()) {
            ("", _) if count == 0 => {
                let origin = "in this build's list, as the system has none".to_owned();
                return Self { roots: RootCerts::WebPki, origin };
            }
            ("", _) => "in the system's list".to_owned(),
            (_, Some(error)) => format!("in the list of {named}: {error}"),
            (_, None) => format!("in the list of {named}"),
        };
        Self { roots, origin: format!("{count} {origin}") }
    }
}

/// The number of authorities and their origin.
impl fmt::Display for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.origin)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(count: usize) -> CertificateResult {
        let mut found = CertificateResult::default();
        found.certs = vec![vec![1, 2, 3].into(); count];
        found
    }

    #[test]
    fn only_a_system_without_a_list_gets_the_list_of_the_build() {
        let system = Trust::new("", &found(2));
        assert!(matches!(&system.roots, RootCerts::Specific(roots) if roots.len() == 2));
        assert_eq!(system.to_string(), "2 in the system's list");
        let without = Trust::new("", &found(0));
        assert!(matches!(without.roots, RootCerts::WebPki), "{without}");
        let named = Trust::new("SSL_CERT_FILE", &found(0));
        assert!(matches!(&named.roots, RootCerts::Specific(roots) if roots.is_empty()), "a wrong name opens no door");
        assert_eq!(named.to_string(), "0 in the list of SSL_CERT_FILE");
    }
}
