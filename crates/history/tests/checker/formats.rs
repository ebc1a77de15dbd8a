//! A history that was written can be read, and a malformed one is rejected at its line.

use millstream_history::format::{Format, guess, read, write_json};
use millstream_history::{History, Kind, Model, Options, check};

use crate::support::generate::{Plan, valid};
use crate::support::random::{Random, seed};

fn rows(history: &History) -> Vec<String> {
    let key = |row| history.key(row).map(|key| history.values().show(key).to_string());
    let status = |row| (history.status(row), history.returned_at(row));
    let rows = 0..history.len();
    rows.map(|row| {
        format!("{} {} {:?} {:?} {}", history.process(row), history.call(row), key(row), status(row), history.show(row))
    })
    .collect()
}

#[test]
fn json_lines_are_read_back() {
    let mut random = Random::new(seed());
    for &kind in Kind::ALL {
        for _ in 0..50 {
            let plan = Plan { crashes: 5, keys: random.below(3), ..Plan::new(Model::new(kind), 4, 30) };
            let history = valid(&plan, &mut random);
            let mut lines = Vec::new();
            write_json(&history, &mut lines).unwrap();
            assert!(history.is_empty() || guess(&lines) == Some(Format::Json));
            let back =
                read(&lines[..], Format::Json, Some(&plan.model)).unwrap_or_else(|error| panic!("{kind}: {error}"));
            assert_eq!(rows(&back), rows(&history), "{kind}");
        }
    }
}

fn refused(text: &str, model: Option<&Model>) -> String {
    match read(text.as_bytes(), Format::Json, model) {
        Ok(history) => panic!("accepted as {:?}: {text}", rows(&history)),
        Err(error) => error.to_string(),
    }
}

#[test]
fn malformed_lines_are_refused_at_their_line() {
    let good = r#"{"process":0,"op":"read","in":null,"out":4,"call":1,"return":2}"#;
    for (bad, message) in [
        (r#"{"process":1,"op":"read","call":5,"return":"#, "EOF"),
        (r#"{"process":1,"op":"read","call":5"#, "EOF"),
        (r#"{"process":1,"op":"read"}"#, "missing field `call`"),
        (r#"{"op":"read","call":5}"#, "missing field `process`"),
        (r#"{"process":1,"call":5}"#, "missing field `op`"),
        (r#"{"process":1,"op":"read","call":5,"retrun":6}"#, "unknown field `retrun`"),
        (r#"{"process":1,"op":"read","call":5,"call":6}"#, "duplicate field `call`"),
        (r#"{"process":-1,"op":"read","call":5}"#, "invalid value"),
        (r#"{"process":1,"op":"read","call":5.5}"#, "invalid type: floating point"),
        (r#"{"process":1,"op":"read","out":0.5,"call":5,"return":6}"#, "expected null, a boolean, an integer"),
        (r#"{"process":1,"op":"read","out":{"a":1},"call":5,"return":6}"#, "invalid type: map"),
        (r#"{"process":1,"op":"read","call":5,"status":"lost"}"#, "unknown variant `lost`"),
        (r#"{"process":1,"op":"read","call":5} {}"#, "trailing characters"),
        (r#"{"process":1,"op":7,"call":5}"#, "the name of an operation"),
        (r#"[1,2]"#, "an operation: an object"),
        ("nonsense", "expected"),
        (r#"{"process":1,"op":"read","call":9,"return":8}"#, "returned at 8, before it was called at 9"),
        (r#"{"process":0,"op":"read","call":1,"return":3}"#, "process 0 called an operation while the one of line 1"),
        (r#"{"process":1,"op":"read","call":18446744073709551615}"#, "is reserved for \"never\""),
        (
            r#"{"process":1,"op":"push","in":4,"call":5}"#,
            "the specification cas-register has no operation `push`; it has read, write, cas (`push` is one of stack)",
        ),
        (r#"{"process":1,"op":"cas","in":4,"call":5}"#, "the input of `cas` must be a list of two"),
        (
            r#"{"process":1,"op":"read","in":4,"call":5}"#,
            "the input of `read` must be null, for it takes none, but is 4",
        ),
        (r#"{"process":1,"op":"read","call":5,"status":"ok"}"#, "the status is ok, but there is no `return`"),
        (r#"{"process":1,"op":"read","out":4,"call":5}"#, "there is an `out`, but no `return`"),
        (
            r#"{"process":1,"op":"cas","in":[4,5],"out":null,"call":5,"return":6}"#,
            "the output of `cas` must be true or false",
        ),
    ] {
        let message_found = refused(&format!("{good}\n\n{bad}\n"), Some(&Kind::CasRegister.into()));
        assert!(message_found.starts_with("line 3: "), "{bad}: {message_found}");
        assert!(message_found.contains(message), "{bad}: {message_found}");
    }
}

#[test]
fn a_byte_order_mark_is_skipped() {
    let file = "\u{feff}{\"process\":0,\"op\":\"read\",\"out\":4,\"call\":1,\"return\":2}\n";
    assert_eq!(guess(file.as_bytes()), Some(Format::Json));
    let slowly = std::io::BufReader::with_capacity(1, file.as_bytes());
    assert_eq!(read(slowly, Format::Json, None).unwrap().len(), 1);
}

#[test]
fn transactions_of_jepsen_are_read() {
    let log = "{:process 0, :type :invoke, :f :txn, :value [[:w :x 1] [:r :y nil]]}\n\
               {:process 0, :type :ok, :f :txn, :value [[:w :x 1] [:r :y nil]]}\n\
               {:process 1, :type :invoke, :f :txn, :value [[:r :x nil]]}\n\
               {:process 1, :type :ok, :f :txn, :value [[:r :x 2]]}\n";
    let model: Model = Kind::MultiRegister.into();
    for (log, holds) in [(log.to_owned(), false), (log.replace(":x 2", ":x 1"), true)] {
        let history = read(log.as_bytes(), Format::Jepsen, Some(&model)).unwrap();
        assert_eq!(check(&history, &model, &Options::default()).unwrap().holds(), Some(holds));
    }
}

#[test]
fn text_that_is_not_utf8_is_refused() {
    for format in Format::ALL {
        let error = read(&b"\n\xff\xfe\n"[..], *format, None);
        let message = match error {
            Ok(_) => panic!("{format} accepts it"),
            Err(error) => error.to_string(),
        };
        assert!(message.starts_with("line 2: "), "{format}: {message}");
    }
}

#[test]
fn a_failing_reader_is_reported() {
    struct Broken;
    impl std::io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("the disk is gone"))
        }
    }
    let error = read(std::io::BufReader::new(Broken), Format::Json, None).unwrap_err();
    assert_eq!(error.to_string(), "line 1: the disk is gone");
}
