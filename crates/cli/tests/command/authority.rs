//! `https` requests to a server for which only a private authority vouches. Both certificates were created by
//! `authority/make.sh`.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::support::{Room, ended};

const AUTHORITY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/command/authority/authority.pem");
const CERTIFICATE: &[u8] = include_bytes!("authority/server.pem");
const KEY: &[u8] = include_bytes!("authority/server.key");

const FLOW: &str = "name = \"ask\"\n[source]\nargs = true\n[[stage]]\nname = \"get\"\nop = \"http-get\"\nurl = \"{line}\"\n\
                    [[stage]]\nname = \"show\"\nop = \"print\"\n";

/// A server on localhost. The body of each response is the path of the request.
fn server() -> SocketAddr {
    let certificates = vec![CertificateDer::from_pem_slice(CERTIFICATE).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(KEY).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap();
    let config = Arc::new(config.with_no_client_auth().with_single_cert(certificates, key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = BufReader::new(StreamOwned::new(connection, stream.unwrap()));
            // A client that refuses the certificate closes the connection, so errors are ignored.
            thread::spawn(move || {
                let mut request = String::new();
                while stream.read_line(&mut request).is_ok_and(|bytes| bytes > 2) {}
                let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
                let _ =
                    write!(stream.get_mut(), "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{path}\n", path.len() + 1);
                let _ = stream.get_mut().flush();
            });
        }
    });
    address
}

#[test]
fn a_server_of_a_private_authority_is_trusted_as_soon_as_the_authority_is() {
    let room = Room::new(FLOW);
    let address = server();
    for host in ["localhost", "127.0.0.1"] {
        let mut command = room.command(&["run", "flow.toml", &format!("https://{host}:{}/page", address.port())]);
        command.env("SSL_CERT_FILE", AUTHORITY).env_remove("SSL_CERT_DIR");
        let (out, err) = ended(&command.output().unwrap(), 0);
        assert_eq!(out, "/page\n", "{err}");
    }
}

#[test]
fn a_server_of_an_authority_that_is_not_trusted_is_refused_with_the_reason() {
    let url = format!("https://localhost:{}/page", server().port());
    for (list, told) in [(None, "authorities: "), (Some("none.pem"), "0 in the list of SSL_CERT_FILE")] {
        let room = Room::new(FLOW);
        let mut command = room.command(&["run", "flow.toml", &url]);
        command.env_remove("SSL_CERT_FILE").env_remove("SSL_CERT_DIR").envs(list.map(|list| ("SSL_CERT_FILE", list)));
        let (out, _) = ended(&command.output().unwrap(), 1);
        assert_eq!(out, "");
        let letter = fs::read_to_string(room.path("ask.dead-letters.jsonl")).unwrap();
        assert!(
            letter.contains("the server's certificate is refused: UnknownIssuer") && letter.contains(told),
            "{letter}"
        );
    }
}
