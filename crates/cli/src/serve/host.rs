//! Checks the host name of a request.
//!
//! A browser sends the host name from its address bar. The owner of a foreign page can make the page's host name
//! resolve to this machine (DNS rebinding), and the page could then read the server's responses. So a request with such
//! a host name is refused.

use std::net::IpAddr;

/// Returns whether a `Host` header names this machine: `localhost`, a loopback address, or `own`, the address at which
/// the connection arrived. The port is not compared, because a tunnel may use another port at the browser's end.
pub(super) fn is_own(host: &str, own: IpAddr) -> bool {
    let (name, port) = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, port)) => (address, port),
        None => host.find(':').map_or((host, ""), |colon| host.split_at(colon)),
    };
    let is_port = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !port.is_empty() && !port.strip_prefix(':').is_some_and(is_port) {
        return false;
    }
    match name.parse::<IpAddr>() {
        Ok(address) => {
            let address = address.to_canonical();
            address.is_loopback() || address == own.to_canonical()
        }
        Err(_) => name.eq_ignore_ascii_case("localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_accepted() {
        let own: IpAddr = "192.0.2.7".parse().unwrap();
        for host in [
            "localhost",
            "LocalHost:9464",
            "127.0.0.1",
            "127.8.9.1:80",
            "[::1]:9464",
            "192.0.2.7:80",
            "[::ffff:192.0.2.7]",
        ] {
            assert!(is_own(host, own), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "192.0.2.8",
            "localhost:",
            "localhost:80:80",
            "localhost:80@evil.example",
            "[::1]evil.example",
            "[::1",
            "0.0.0.0",
            "2130706433",
            "localhost/",
        ] {
            assert!(!is_own(host, own), "{host}");
        }
    }
}
