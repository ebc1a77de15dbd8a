//! Tests of a build without the feature `http`. They are a step of `cargo xtask test`.
#![cfg(not(feature = "http"))]

use std::process::{Command, Output};

fn plan(flow: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("f.toml"), flow).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_millstream"));
    command.args(["plan", "f.toml"]).current_dir(folder.path()).output().expect("the command runs")
}

#[test]
fn a_flow_that_makes_requests_is_refused_with_what_to_do() {
    let get = "[source]\nlines = \"-\"\n[[stage]]\nname = \"get\"\nop = \"http-get\"\nurl = \"{line}\"\n";
    let output = plan(get);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    for part in ["was built without `http-get`", "f.toml:", "op = \"http-get\"", "cargo install millstream-cli"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let read = "[source]\nargs = true\n[[stage]]\nname = \"read\"\nop = \"read\"\n";
    assert_eq!(plan(read).status.code(), Some(0), "other flows are as they were");
}
