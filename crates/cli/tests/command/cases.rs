//! `millstream test`: runs flows on cases.

use std::fs;
use std::path::Path;

use crate::support::{Room, ended};

const FLOW: &str = r#"
    [params]
    out = "out"
    [source]
    lines = "-"
    [[stage]]
    name = "shape"
    op = "exec"
    exec = ["no-such-program", "{line}"]
    stdin = "null"
    retry = { times = 1, backoff = "1h" }
    needs = { rare = 1 }
    [[stage]]
    name = "keep"
    op = "write"
    path = "{param.out}/{line}"
    overwrite = true
    [resources]
    rare = { rate = "1/h" }
"#;

/// Runs `millstream test` on these cases, checks its exit status, and returns its output.
fn tested(flow: &str, cases: &str, args: &[&str], status: i32) -> String {
    let room = Room::new(flow);
    room.write("flow.test.toml", cases);
    let out = room.run(&[&["test", "flow.toml"], args].concat());
    let (out, err) = ended(&out, status);
    assert!(!room.path("out").exists(), "nothing is written beside the flow");
    out + &err
}

#[test]
fn ready_flows_pass_their_cases() {
    let flows = Path::new(env!("CARGO_MANIFEST_DIR")).join("flows");
    let mut tested: Vec<String> = Vec::new();
    for entry in fs::read_dir(flows).unwrap() {
        let path = entry.unwrap().path().into_os_string().into_string().unwrap();
        if path.ends_with(".toml") && !path.ends_with(".test.toml") {
            tested.push(path);
        }
    }
    assert_eq!(tested.len(), 7);
    let room = Room::new("");
    let mut args = vec!["test"];
    args.extend(tested.iter().map(String::as_str));
    let (out, _) = ended(&room.run(&args), 0);
    assert!(!out.contains("FAILED"), "{out}");
}

#[test]
fn programs_that_are_not_installed_produce_what_the_case_says_and_nothing_waits() {
    let cases = r#"
        [[case]]
        name = "the second attempt succeeds"
        stdin = "a\nb\n"
        params = { out = "x" }
        [[case.program]]
        run = ["no-such-program", "a"]
        status = 3
        stderr = "not yet\n"
        [[case.program]]
        run = ["no-such-program", "a"]
        stdout = "shaped"
        [[case.program]]
        run = ["no-such-program", "b"]
        status = 1
        stderr = "never\n"
        [case.expect]
        retired = [{ line = "a", payload = "shaped" }]
        dead = [{ unit = "b", stage = "shape", message = "`no-such-program` exited with status 1; standard error: never" }]
        files = { "x/a" = "shaped", "x/b" = false }
    "#;
    let said = tested(FLOW, cases, &[], 0);
    assert!(said.contains("  ok      the second attempt succeeds\n1 case passed\n"), "{said}");
}

#[test]
fn a_difference_is_reported_with_the_line_that_expects_it() {
    let cases = r#"[[case]]
name = "wrong"
stdin = "a\nb\n"
[[case.program]]
run = ["no-such-program", "a"]
stdout = "one\ntwo\n"
[[case.program]]
run = ["no-such-program", "c"]
[case.expect]
retired = [{ line = "a", payload = "three" }, { line = "b" }]
stdout = "said"
[case.expect.files]
"out/a" = "one\nthree\n"
"out/b" = true
[[case]]
name = "right"
[case.expect]
retired = []
"#;
    let said = tested(FLOW, cases, &[], 1);
    for part in [
        "  FAILED  wrong\n",
        "an unexpected dead letter:\n          + b fails in shape: `no-such-program` exited with status 127; standard error: the case has no program no-such-program b",
        "the unit a differs (line 10):\n          - payload = \"three\"\n          + payload = \"one\\ntwo\\n\"",
        "no unit is retired with (line 10):\n          - line = \"b\"",
        "standard output (line 11) differs:\n          - said",
        "out/a (line 13) differs:\n            one\n          - three\n          + two\n",
        "out/b (line 14) is not there",
        "no-such-program c was not run (line 7)",
        "  ok      right\n1 case failed, 1 passed\n",
    ] {
        assert!(said.contains(part), "{part}\nin\n{said}");
    }
    assert!(tested(FLOW, cases, &["--case", "right"], 0).contains("1 case passed"));
    let said = tested(FLOW, cases, &["--case", "rihgt"], 2);
    assert!(said.contains("no case is called `rihgt`; did you mean `right`?"), "{said}");
}

#[test]
fn a_case_stays_in_its_folder_and_away_from_the_network() {
    let flow = r#"
        [source]
        lines = "-"
        [[stage]]
        name = "get"
        op = "http-get"
        url = "http://127.0.0.1:9/{line}"
        after_failure = "dead-letter"
        [[stage]]
        name = "write"
        op = "write"
        path = "/tmp/millstream-case-must-not-write/{line}"
    "#;
    let cases = r#"
        [[case]]
        name = "absolute"
        stdin = "a\nb\n"
        [[case.http]]
        url = "http://127.0.0.1:9/a"
        [case.expect]
        retired = []
        dead = [{ unit = "a", stage = "write", message = "is not in the folder of the case" },
                { unit = "b", stage = "get", message = "the case has no response for this URL" }]
        [[case]]
        name = "a source elsewhere"
        [case.expect]
        retired = []
    "#;
    assert!(tested(flow, cases, &[], 0).contains("2 cases passed"));
    assert!(!Path::new("/tmp/millstream-case-must-not-write").exists());
    let walk = "[source]\nwalk = \"{input}\"\n[[stage]]\nname = \"read\"\nop = \"read\"\n";
    let said = tested(walk, "[[case]]\nname = \"out\"\ninput = \"/etc\"\n[case.expect]\n", &[], 1);
    assert!(said.contains("the flow does not run:") && said.contains("/etc is not in the folder"), "{said}");
}

#[test]
fn pieces_and_groups_come_in_order() {
    let flow = r#"
        [source]
        walk = "in"
        [[stage]]
        name = "read"
        op = "read"
        [[stage]]
        name = "split"
        op = "split"
        by = "lines"
        [[stage]]
        name = "list"
        op = "append"
        path = "all"
        line = "{parent.name} {part} {line}"
        [[stage]]
        name = "whole"
        op = "gather"
        by = "parent"
        reduce = "count"
        [[stage]]
        name = "print"
        op = "print"
        tag = "{name}"
    "#;
    let cases = r#"
        [[case]]
        name = "two files"
        files = { "in/a" = "x\ny\n", "in/b" = "z\n" }
        [case.expect]
        stdout = "a\t2\nb\t1\n"
        files = { "all" = "a 1 x\na 2 y\nb 1 z\n" }
    "#;
    let said = tested(flow, cases, &[], 0);
    assert!(said.contains("1 case passed"), "{said}");
}

#[test]
fn a_wrong_case_file_is_shown_with_carets_and_a_case_that_hangs_is_ended() {
    let said = tested(FLOW, "[[case]]\nname = \"x\"\n[case.expect]\ndeed = []\n", &[], 2);
    assert!(said.contains("flow.test.toml:4") && said.contains("did you mean `dead`?"), "{said}");
    let room = Room::new(FLOW);
    let (_, err) = ended(&room.run(&["test", "flow.toml"]), 2);
    assert!(err.contains("flow.test.toml, which is not there"), "{err}");
    // Each copy is copied again, so the number of copies doubles at each level.
    let endless = "[source]\nargs = true\n[[stage]]\nname = \"c\"\nop = \"copy\"\nto = [\"a\", \"b\"]\n\
        [[stage]]\nname = \"a\"\nop = \"filter\"\nwhen = { text = \"{line}\", equals = \"i\" }\nnext = \"c\"\n\
        [[stage]]\nname = \"b\"\nop = \"filter\"\nwhen = { text = \"{line}\", equals = \"i\" }\nnext = \"c\"\n";
    let case = "[[case]]\nname = \"x\"\ninput = \"i\"\n[case.expect]\n";
    let said = tested(endless, case, &["--timeout", "300ms"], 1);
    assert!(said.contains("it still ran after 300 ms and was ended"), "{said}");
}

#[test]
fn an_example_comes_with_a_case_that_passes() {
    let room = Room::new("");
    let (_, err) = ended(&room.run(&["init", "lines", "-o", "mine.toml"]), 0);
    assert!(err.contains("mine.test.toml"), "{err}");
    let (out, _) = ended(&room.run(&["test", "mine.toml"]), 0);
    assert!(
        out.starts_with("mine.test.toml\n") && room.read("mine.test.toml").contains("millstream test mine.toml"),
        "{out}"
    );
}

#[test]
fn expectations_find_their_units_in_any_order() {
    let flow = "[source]\nlines = \"-\"\n[[stage]]\nname = \"some\"\nop = \"check\"\nfield = \"size\"\nequals = \"{line}\"\n\
        [[stage]]\nname = \"end\"\nop = \"set\"\nfields = { x = \"{line}\" }\n";
    let flow =
        flow.replacen("[[stage]]", "[[stage]]\nname = \"pay\"\nop = \"set\"\npayload = \"{line}\"\n[[stage]]", 1);
    // The first expectation matches every dead letter; the second matches only the first dead letter.
    let cases = r#"
        [[case]]
        name = "vague before exact"
        stdin = "1\n22\n3\n4\n"
        [case.expect]
        retired = [{ size = 1 }]
        dead = [{ stage = "some" }, { message = "2" }, { unit = "3" }]
    "#;
    let said = tested(&flow, cases, &[], 0);
    assert!(said.contains("1 case passed"), "{said}");
}

#[test]
fn a_missing_definition_is_reported_even_if_the_stage_skips_failures() {
    let flow = FLOW.replace("stdin = \"null\"", "stdin = \"null\"\nafter_failure = \"skip\"");
    let cases = "[[case]]\nname = \"x\"\nstdin = \"a\\n\"\n[case.expect]\nretired = []\n";
    let said = tested(&flow, cases, &[], 1);
    assert!(said.contains("a failure that was skipped: the case has no program no-such-program a"), "{said}");
    let flow = "[source]\nlines = \"-\"\n[[stage]]\nname = \"get\"\nop = \"http-get\"\nurl = \"{line}\"\n\
        after_failure = \"skip\"\n";
    let said = tested(flow, &cases.replace("a\\n", "http://a.test/x\\n"), &[], 1);
    assert!(said.contains("skipped: the case has no response for this URL: http://a.test/x"), "{said}");
}

#[test]
fn a_case_file_is_not_a_flow_and_the_message_names_its_flow() {
    let room = Room::new(FLOW);
    room.write("flow.test.toml", "\n[[case]]\nname = \"x\"\n[case.expect]\n");
    for command in [&["plan", "flow.test.toml"][..], &["run", "flow.test.toml"], &["test", "flow.test.toml"]] {
        let (_, err) = ended(&room.run(command), 2);
        assert!(err.contains("flow.test.toml:2") && err.contains("this is a file of cases, and not a flow"), "{err}");
        assert!(err.contains("`millstream test flow.toml` runs its cases"), "{err}");
        assert!(!err.contains("no stages"), "nothing else is wrong with it: {err}");
    }
}

#[test]
fn flows_without_cases_do_not_keep_others_from_their_tests() {
    let flow = "[source]\nlines = \"-\"\n[[stage]]\nname = \"set\"\nop = \"set\"\npayload = \"{line}!\"\n";
    let room = Room::new(flow);
    room.write("other.toml", flow);
    let (_, err) = ended(&room.run(&["test", "flow.toml", "other.toml"]), 2);
    assert!(err.contains("flow.test.toml, the cases of other.toml belong in other.test.toml, which are not"), "{err}");
    room.write(
        "flow.test.toml",
        "[[case]]\nname = \"x\"\nstdin = \"a\\n\"\n[case.expect]\nretired = [{ payload = \"a!\" }]\n",
    );
    let (out, err) = ended(&room.run(&["test", "flow.test.toml", "flow.toml", "other.toml"]), 0);
    assert!(out.contains("1 case passed"), "{out}");
    assert_eq!(err, "no cases of other.toml: they belong in other.test.toml\n");
    room.write("other.toml", "[source]\n");
    ended(&room.run(&["test", "flow.toml", "other.toml"]), 2);
}

#[test]
fn requests_with_bodies_are_compared_with_what_the_case_expects() {
    let flow = r#"
        [source]
        lines = "-"
        [[stage]]
        name = "look"
        op = "http"
        method = "HEAD"
        url = "http://a.test/{line}"
        fields = { tag = "ETag" }
        [[stage]]
        name = "send"
        op = "http"
        method = "POST"
        url = "http://a.test/{line}"
        body = '{{"line":{json:line},"tag":"{set.tag}"}}'
        headers = { Content-Type = "application/json" }
    "#;
    let cases = r#"
        [[case]]
        name = "both"
        stdin = "x\ny\n"
        [[case.http]]
        url = "http://a.test/x"
        method = "HEAD"
        headers = { ETag = "t1" }
        body = "a server may say how long it would be"
        [[case.http]]
        url = "http://a.test/x"
        method = "POST"
        request = '{"line":"x","tag":"t1"}'
        body = "taken"
        [[case.http]]
        url = "http://a.test/y"
        method = "HEAD"
        headers = { ETag = "t2" }
        [[case.http]]
        url = "http://a.test/y"
        method = "POST"
        request = "something else"
        [case.expect]
        retired = [{ line = "x", payload = "taken" }]
        dead = [{ unit = "y", stage = "send", message = "the request's body differs" }]
    "#;
    let said = tested(flow, cases, &[], 0);
    assert!(said.contains("1 case passed"), "{said}");
    let room = Room::new(flow);
    room.write("in", "x\n");
    let (out, _) = ended(&room.run(&["run", "--dry-run", "flow.toml", "in"]), 0);
    assert!(out.contains("look  HEAD http://a.test/x\n"), "{out}");
    assert!(out.contains("send  POST http://a.test/x < {\"line\":\"x\",\"tag\":\"{set.tag}\"}"), "{out}");
}
