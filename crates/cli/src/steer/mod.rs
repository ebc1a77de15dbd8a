//! Inspects and changes a running flow from another process.
//!
//! `millstream run` listens on a Unix socket, and `millstream status` and `millstream set` connect to this socket. The
//! socket has mode 0600, and is in a folder of mode 0700 that belongs to the user ([`place`]). The run answers only its
//! own user and root.
//!
//! # Protocol
//!
//! The protocol consists of lines of JSON in UTF-8, each of which ends with a newline. Each request gets one answer, in
//! the order of the requests, and a connection may carry any number of requests. A request has at most
//! [`protocol::REQUEST_BYTES`] bytes and must arrive within a few seconds after its first byte. An answer must be read
//! within the same time. Otherwise the connection is closed. A snapshot may be some milliseconds old. When the run
//! ends, it answers the requests that it has received, and closes all connections.
//!
//! ```text
//! → {"do":"status"}
//! ← {"ok":true,"snapshot":{"flow":"archive","retired":12185,…}}
//! → {"do":"explain","what":"17"}
//! ← {"ok":true,"explained":{"unit":{"unit":17,"stage":"get","doing":"waiting",…}}}
//! → {"do":"set","settings":["inflight=64","stage.zstd.workers=1"]}
//! ← {"ok":true,"changed":["inflight=64 (was 256)","stage.zstd.workers=1..1 (was 1..4)"]}
//! → {"do":"set","settings":["resource.dsik=2"]}
//! ← {"ok":false,"error":"`resource.dsik` cannot be set in this flow","settable":["inflight=64",…]}
//! → {"do":"watch","keys":5}
//! ← {"ok":true,"snapshot":{…},"facts":{"total":20000,"keys":[…],"causes":{…},"steered":{"changes":[…]}}}
//! → {"do":"retry"}
//! ← {"ok":true,"changed":["3 dead letters are run again"]}
//! → {"do":"drain"}
//! ← {"ok":true,"changed":["admission is closed; 213 units in flight are finished"]}
//! → {"do":"trace"}
//! ← {"ok":true,"trace":{"number":1,"total":913224,"bytes":"eyJta…"}}
//! → {"do":"trace","number":1,"from":262144}
//! ← {"ok":true,"trace":{"number":1,"total":913224,"bytes":"iAEDw…"}}
//! → {"do":"dance"}
//! ← {"ok":false,"unknown":true,"error":"a run of millstream 0.1.0 knows no request `dance`; it knows status, watch, explain, set, retry, drain, trace"}
//! ```
//!
//! Every change is recorded with its time, and with the user and the process that the system reports ([`facts`]).
//! `millstream top` and the run's report show these records. A client ignores unknown members of an answer. The
//! snapshot has the members of [`millstream_flow::Snapshot`]. The settings are those of [`setting`]. Either all
//! settings of a request take effect, or none does.

pub(crate) mod client;
mod connection;
pub(crate) mod facts;
pub(crate) mod place;
pub(crate) mod protocol;
pub(crate) mod server;
pub(crate) mod setting;
mod socket;
mod window;

pub(crate) use self::socket::SocketFile;
