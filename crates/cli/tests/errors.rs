//! Messages about a wrong flow file: the position, the reason, the remedy, and exit status 2.

use std::path::Path;
use std::process::{Command, Output};

fn plan(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_millstream"))
        .arg("plan")
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("the command runs")
}

/// The message of `millstream plan` about `text`, which must be refused.
fn refused(text: impl AsRef<[u8]>, arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("f.toml"), text).unwrap();
    let output = plan(folder.path(), &[&["f.toml"], arguments].concat());
    let said = String::from_utf8(output.stderr).expect("errors are text");
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(output.stdout.is_empty(), "nothing but the error is printed");
    assert!(!said.contains("panicked"), "{said}");
    said
}

/// A flow file with one stage. A case adds top-level keys, resources, and lines of the stage, which may be wrong.
fn flow(top: &str, resources: &str, stage: &str) -> String {
    format!(
        "{top}\n[params]\nout = \"o\"\n[resources]\n{resources}\n[source]\nlines = \"-\"\n[[stage]]\nname = \"one\"\n{stage}\n"
    )
}

/// Asserts that the file is refused with all of `fragments`.
#[track_caller]
fn says(text: &str, fragments: &[&str]) {
    let said = refused(text, &[]);
    for fragment in fragments {
        assert!(said.contains(fragment), "`{fragment}` is not in:\n{said}");
    }
}

#[test]
fn the_caret_is_below_its_word_after_escaped_characters() {
    let said = refused("[params]\r\n\"a\u{9b}\u{202e}b\" = \"1\" wrong\r\n", &[]);
    let mut lines = said.lines().skip_while(|line| !line.contains("wrong"));
    let (line, carets) = (lines.next().expect("it is shown"), lines.next().expect("carets"));
    assert!(line.contains("\"a\\u{9b}\\u{202e}b\""), "{said}");
    let column = |text: &str, what: char| text.chars().position(|c| c == what);
    assert_eq!(column(carets, '━'), column(line, 'w'), "{said}");
}

#[test]
fn an_unknown_key_is_shown_with_the_right_one() {
    says(
        &flow("infligth = 3", "", "op = \"read\""),
        &["no key `infligth`", "f.toml:1:1\n", "did you mean `inflight`?"],
    );
    says(
        &flow("", "", "op = \"read\"\nneds = {}"),
        &["stage `one` has no key `neds`", "f.toml:11:1\n", "did you mean `needs`?"],
    );
    says(&flow("", "", "op = \"read\"\nfrobnicate = 1"), &["its keys are name, needs,", "op, path"]);
    says(&flow("", "", "op = \"zstd\"\npath = \"x\""), &["stage `one` has no key `path`", "mode, level"]);
}

#[test]
fn an_unknown_op_is_shown_with_the_right_one() {
    says(&flow("", "", "op = \"blake2\""), &["there is no op `blake2`", "f.toml:10:6\n", "did you mean `blake3`?"]);
    says(&flow("", "", "op = \"teleport\""), &["ops are read, write,", "`exec` runs any other program"]);
}

#[test]
fn a_missing_key_is_shown_with_an_example() {
    says(&flow("", "", ""), &["stage `one` has no `op`", "f.toml:9:8\n", "add `op = "]);
    says(&flow("", "", "op = \"write\""), &["stage `one` has no `path`", "add `path = "]);
    says(&flow("", "", "op = \"read\"\nretry = { backoff = \"1s\" }"), &["`retry` has no `times`"]);
    says("[[stage]]\nname = \"a\"\nop = \"read\"", &["the flow has no `[source]`", "walk = \"{input}\""]);
    says("[source]\nlines = \"-\"", &["the flow has no stages", "[[stage]]"]);
    says("[source]\n[[stage]]\nname=\"a\"\nop=\"read\"", &["does not say where units come from", "f.toml:1:2\n"]);
}

#[test]
fn a_mistyped_required_key_is_one_mistake_and_not_two() {
    let said = refused(flow("", "", "op = \"write\"\npaht = \"x\""), &[]);
    assert!(said.contains("did you mean `path`?"), "{said}");
    assert!(!said.contains("has no `path`"), "{said}");
}

#[test]
fn a_wrong_type_is_named() {
    says(
        &flow("inflight = \"many\"", "", "op = \"read\""),
        &["`inflight` takes a whole number, not a string", "f.toml:1:12\n"],
    );
    says(&flow("memory = true", "", "op = \"read\""), &["`memory` takes a size such as \"64MiB\", not a boolean"]);
    says(&flow("", "", "op = \"read\"\ntimeout = 30"), &["`timeout` takes a time such as \"30s\", not an integer"]);
    says(&flow("", "", "op = \"exec\"\nexec = \"wc -l\""), &["write `exec = [\"wc\", \"-l\"]`, or add `shell = true`"]);
    says(
        &flow("", "", "op = \"read\"\nneeds = [\"net\"]"),
        &["`needs` takes a table such as `{ net = 1 }`, not an array"],
    );
    says("source = 3\n[stage]\nname = \"a\"", &["`source` takes a table", "write `[[stage]]`"]);
}

#[test]
fn a_need_without_its_resource_is_refused() {
    says(
        &flow("", "net = 2", "op = \"read\"\nneeds = { nett = 1 }"),
        &["`nett` is needed", "f.toml:11:11\n", "did you mean `net`?"],
    );
    says(&flow("", "", "op = \"read\"\nneeds = { disk = 1 }"), &["declare it: `disk = 2` under [resources]"]);
    says(
        &flow("", "net = 2", "op = \"read\"\nneeds = { net = 3 }"),
        &["3 of `net` are needed, and it has 2", "declared here"],
    );
    says(&flow("", "net = 2", "op = \"read\"\nneeds = { \"net:{host}\" = 1 }"), &["resource `net` has no keys"]);
    says(&flow("", "\"host:*\" = 2", "op = \"read\"\nneeds = { host = 1 }"), &["has keys, but this need names none"]);
}

#[test]
fn an_unknown_template_field_is_pointed_at_within_the_string() {
    says(
        &flow("", "", "op = \"write\"\npath = \"a/{nme}\""),
        &["no field is called `nme`", "f.toml:11:11\n", "did you mean `{name}`?"],
    );
    says(
        &flow("", "", "op = \"write\"\npath = 'a/{param.uot}'"),
        &["no parameter `uot`", "f.toml:11:11\n", "did you mean `{param.out}`?"],
    );
    says(
        &flow("", "", "op = \"append\"\npath = \"{params.out}/list\"\nline = \"x\""),
        &["no field is called `params.out`", "did you mean `{param.out}`?"],
    );
    says(
        &flow("", "\"host:*\" = 1", "op = \"read\"\nneeds = { \"host:{hst}\" = 1 }"),
        &["no field is called `hst`", "f.toml:11:17\n"],
    );
    says(&flow("", "", "op = \"write\"\npath = \"a/{name\""), &["this `{` is never closed", "f.toml:11:11\n"]);
    says(&flow("", "", "op = \"write\"\npath = \"\\u0061/{nme}\""), &["no field is called `nme`", "f.toml:11:16\n"]);
}

#[test]
fn a_field_that_no_unit_has_yet_is_refused() {
    says(
        &flow("", "", "op = \"write\"\npath = \"{blake3}\""),
        &["no `blake3` stage comes before `one`", "f.toml:11:9\n"],
    );
    says(
        &flow("", "", "op = \"check\"\nfield = \"sha256\"\nequals = \"x\""),
        &["no `sha256` stage comes before `one`"],
    );
    says(
        "[source]\nwalk = \"{input}\"\n[[stage]]\nname = \"a\"\nop = \"http-get\"\nurl = \"{line}\"",
        &["`{line}` belongs to a line"],
    );
    says(
        &flow("", "", "op = \"append\"\npath = \"{name}\"\nline = \"x\"\nfresh = true"),
        &["`path` cannot use `{name}`", "a fresh list is one file"],
    );
}

#[test]
fn sizes_times_and_rates_are_checked() {
    says(&flow("memory = \"64Mega\"", "", "op = \"read\""), &["`Mega` is not a unit of size", "f.toml:1:10\n"]);
    says(&flow("", "", "op = \"read\"\ntimeout = \"30\""), &["has no unit: write `30s`"]);
    says(
        &flow("", "", "op = \"read\"\nretry = { times = 3, backoff = \"5s..1s\" }"),
        &["the wrong way round: write `1s..5s`"],
    );
    says(&flow("", "api = { rate = \"fast\" }", "op = \"read\""), &["`fast` is not a rate", "f.toml:5:16\n"]);
    says(&flow("", "api = \"5/s\"", "op = \"read\""), &["for a rate write `{ rate = \"5/s\" }`"]);
    says(&flow("", "", "op = \"read\"\nworkers = \"4..2\""), &["the wrong way round: write `2..4`"]);
    says(
        &flow("", "", "op = \"read\"\nworkers = \"2-4\""),
        &["a range is written with two dots: `2..4`", "f.toml:11:11\n"],
    );
    says(
        &flow("memory = \"64\"", "", "op = \"read\""),
        &["which has no unit", "write \"64MiB\", or \"64B\" for bytes"],
    );
    says(&flow("", "", "op = \"zstd\"\nlevel = 99"), &["`level` is 99; the most is 22"]);
    says(&flow("", "", "op = \"gzip\"\nlevel = 10"), &["`level` is 10; the most is 9"]);
}

#[test]
fn caps_of_zero_are_refused() {
    for (text, key) in [
        (flow("inflight = 0", "", "op = \"read\""), "inflight"),
        (flow("memory = 0", "", "op = \"read\""), "memory"),
        (flow("memory = \"0MiB\"", "", "op = \"read\""), "memory"),
        (flow("workers = 0", "", "op = \"read\""), "workers"),
        (flow("", "net = 0", "op = \"read\""), "net"),
        (flow("", "net = { capacity = 0 }", "op = \"read\""), "capacity"),
        (flow("", "net = { rate = \"1/s\", burst = 0 }", "op = \"read\""), "burst"),
        (flow("", "", "op = \"read\"\nqueue = 0"), "queue"),
        (flow("", "", "op = \"read\"\nbatch = { size = 0 }"), "size"),
        (flow("", "", "op = \"read\"\nworkers = 0"), "workers"),
        (flow("", "net = 1", "op = \"read\"\nneeds = { net = 0 }"), "net"),
    ] {
        says(&text, &[&format!("`{key}` is zero, so nothing could ever pass")]);
    }
    says(&flow("", "", "op = \"read\"\ntimeout = \"0s\""), &["`timeout` is zero, so every unit would fail"]);
    says(&flow("", "net = { rate = \"0/s\" }", "op = \"read\""), &["would never grant anything"]);
}

#[test]
fn the_graph_is_checked() {
    let stage = |name: &str, more: &str| format!("[[stage]]\nname = \"{name}\"\nop = \"read\"\n{more}\n");
    let flow = |stages: &[String]| format!("[resources]\nnet = 1\n[source]\nlines = \"-\"\n{}", stages.concat());
    says(&flow(&[stage("a", ""), stage("a", "")]), &["two stages are called `a`", "the first", "the second"]);
    says(&flow(&[stage("get", "next = \"gett\""), stage("b", "")]), &["`next` leads to `gett`", "did you mean `get`?"]);
    says(&flow(&[stage("a", "next = \"c\""), stage("b", ""), stage("c", "")]), &["no unit ever reaches stage `b`"]);
    says(&flow(&[stage("a", ""), stage("b", "next = \"a\"")]), &["a unit that enters stage `a` never leaves the flow"]);
    says(
        &flow(&[stage("a", ""), stage("b", "needs = { net = { until = \"a\" } }")]),
        &["`net` is held until `a`, and units never go there from `b`"],
    );
    says(&flow(&[stage("a", "else = \"b\""), stage("b", "")]), &["stage `a` has no key `else`"]);
}

/// A flow that walks a folder and has a stage `take`. `take` is the text of that stage, and `before` is the text of
/// earlier stages. If `before` is empty, the op of `take` is in line 6.
fn walk_with(take: &str, before: &str) -> String {
    format!("[source]\nwalk = \"{{input}}\"\n{before}\n[[stage]]\nname = \"take\"\n{take}\n")
}

#[test]
fn conditions_on_numbers_expressions_and_set_fields_are_checked() {
    let filter = |when: &str| flow("", "", &format!("op = \"filter\"\nwhen = {when}"));
    says(&filter("{ number = \"{line}\" }"), &["`number` has no bound", "add `at_least = 1`"]);
    says(&filter("{ number = \"{line}\", below = \"ten\" }"), &["`below` is not a number"]);
    says(&filter("{ number = \"many\", below = 1 }"), &["`number` is not a number"]);
    says(&filter("{ text = \"{line}\", matches = \"a(\" }"), &["not a regular expression: unclosed group"]);
    says(&filter("{ text = \"{set.thumb}\", equals = \"x\" }"), &["`{set.thumb}` has no value here", "op = \"set\""]);
    says(&flow("", "", "op = \"set\""), &["this `set` sets nothing"]);
    let two = |first: &str| {
        format!(
            "[source]\nargs = true\n[[stage]]\nname = \"s\"\nop = \"set\"\nfields = {{ {first} = \"x\" }}\n\
             [[stage]]\nname = \"w\"\nop = \"append\"\npath = \"list\"\nline = \"{{json:set.thumb}}\"\n"
        )
    };
    says(&two("other"), &["no stage before `w` sets it"]);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("f.toml"), two("thumb")).unwrap();
    assert!(plan(folder.path(), &["f.toml"]).status.success());
}

#[test]
fn fields_of_one_item_and_of_groups_do_not_mix() {
    let group = |group: &str, stage: &str| {
        format!("[source]\nargs = true\n{group}\n[[stage]]\nname = \"s\"\nop = \"exec\"\n{stage}\n")
    };
    says(&group("group = 9", "exec = [\"cat\", \"{path}\"]"), &["`{path}` belongs to one item", "use {items}"]);
    says(&group("", "exec = [\"cat\", \"{items}\"]"), &["`{items}` belongs to a group", "add `group = 100`"]);
    says(&group("group = 9", "exec = [\"cat\", \"a{items}\"]"), &["`{items}` becomes several arguments"]);
    says(&group("group = 9", "exec = [\"{items}\"]"), &["`{items}` becomes several arguments"]);
    says(&group("group = 0", "exec = [\"true\"]"), &["`group` is zero"]);
    says(&group("group = 9999999", "exec = [\"true\"]"), &["`group` is 9999999"]);
}

#[test]
fn a_halt_that_could_not_be_is_refused() {
    for (halt, reason) in [
        ("0", "would not begin"),
        ("-1", "expected a number of failures"),
        ("\"0\"", "would not begin"),
        ("\"200%\"", "a share is from 1% to 100%"),
        ("\"later,5\"", "`now,5`"),
        ("true", "\"now,5\""),
    ] {
        says(&flow(&format!("halt = {halt}"), "", "op = \"read\""), &["f.toml:1:", reason]);
    }
}

#[test]
fn a_tag_or_an_order_without_printed_output_is_refused() {
    for key in ["tag = \"{line}\"", "ordered = true"] {
        let stage = format!("op = \"exec\"\nexec = [\"true\"]\n{key}");
        says(&flow("", "", &stage), &["is for output that is printed", "stdout = \"print\""]);
    }
}

#[test]
fn an_op_on_a_payload_that_units_may_not_have_is_refused() {
    let ops = [
        "op = \"blake3\"",
        "op = \"sha256\"",
        "op = \"zstd\"",
        "op = \"zstd\"\nmode = \"decompress\"",
        "op = \"gzip\"",
        "op = \"gzip\"\nmode = \"decompress\"",
        "op = \"write\"\npath = \"x/{rel}\"",
        "op = \"check\"\nfield = \"size\"\nequals = \"5\"",
        "op = \"parse\"",
    ];
    for op in ops {
        says(
            &walk_with(op, ""),
            &["without a payload", "f.toml:6:6\n", "has nothing to take", "add a stage with `op = \"read\"` before it"],
        );
        // There is also an error if a program's output does not become the payload, or if a single path bypasses the
        // `read`.
        for before in [
            "[[stage]]\nname = \"b\"\nop = \"exec\"\nexec = [\"true\"]\nstdout = \"null\"",
            "[[stage]]\nname = \"b\"\nop = \"filter\"\nwhen = { size = \"1B..\" }\nelse = \"take\"\n\
             [[stage]]\nname = \"c\"\nop = \"read\"",
        ] {
            says(&walk_with(op, before), &["units come to `take` without a payload"]);
        }
        for before in [
            "[[stage]]\nname = \"b\"\nop = \"read\"",
            "[[stage]]\nname = \"b\"\nop = \"http-get\"\nurl = \"http://x/{rel}\"",
            "[[stage]]\nname = \"b\"\nop = \"exec\"\nexec = [\"true\"]",
        ] {
            accepted(&walk_with(op, before));
        }
    }
    // If a line has no payload, `parse` uses the line itself.
    accepted(&flow("", "", "op = \"parse\""));
}

/// Asserts that `millstream plan` accepts `text`.
#[track_caller]
fn accepted(text: &str) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("f.toml"), text).unwrap();
    let output = plan(folder.path(), &["f.toml"]);
    assert_eq!(output.status.code(), Some(0), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn a_program_that_is_not_there_is_pointed_at() {
    says(
        &flow("", "", "op = \"exec\"\nexec = [\"no-such-program-at-all\", \"x\"]"),
        &["no program `no-such-program-at-all` is on the search path", "f.toml:11:8\n"],
    );
}

#[test]
fn a_cycle_of_needs_is_shown_at_the_stages_that_make_it() {
    let text = r#"[resources]
left = 1
right = 1
[source]
lines = "-"
[[stage]]
name = "way"
op = "filter"
when = { text = "{line}", equals = "x" }
else = "right first"
[[stage]]
name = "left first"
op = "read"
needs = { left = { until = "then right" } }
[[stage]]
name = "then right"
op = "read"
needs = { right = 1 }
next = "end"
[[stage]]
name = "right first"
op = "read"
needs = { right = { until = "then left" } }
[[stage]]
name = "then left"
op = "read"
needs = { left = 1 }
"#;
    says(
        text,
        &[
            "a cycle of needs: units could wait for one another forever",
            "18 │ needs = { right = 1 }",
            "asks for `right` while holding `left`",
            "27 │ needs = { left = 1 }",
            "asks for `left` while holding `right`",
            "take `left` and `right` in the same order everywhere",
        ],
    );
}

#[test]
fn a_loop_through_bounded_queues_is_a_cycle_of_needs() {
    let text = r#"[source]
lines = "-"
[[stage]]
name = "work"
op = "read"
queue = 4
[[stage]]
name = "again"
op = "filter"
queue = 4
when = { text = "{line}", equals = "x" }
next = "work"
else = "end"
"#;
    says(
        text,
        &["a cycle of needs", "asks for a place in the queue of `work` while holding a place in the queue of `again`"],
    );
}

#[test]
fn several_mistakes_are_reported_at_once() {
    let said = refused(flow("inflight = 0", "net = 1", "op = \"rea\"\nneeds = { nte = 1 }\ntimeout = 5"), &[]);
    for fragment in
        ["`inflight` is zero", "there is no op `rea`", "`nte` is needed", "`timeout` takes a time", "4 errors"]
    {
        assert!(said.contains(fragment), "`{fragment}` is not in:\n{said}");
    }
}

#[test]
fn a_parameter_that_the_flow_does_not_declare_is_refused() {
    let text = flow("", "", "op = \"read\"");
    let said = refused(&text, &["-p", "uot=x"]);
    assert!(said.contains("the flow has no parameter `uot`") && said.contains("did you mean `-p out=…`?"), "{said}");
    let said = refused(&text, &["-p", "colour=x"]);
    assert!(said.contains("its parameters are out"), "{said}");
}

#[test]
fn fields_in_a_shell_script_are_refused() {
    let stage = "op = \"exec\"\nshell = true\nexec = [\"cat {path}\"]";
    says(
        &flow("", "", stage),
        &["`{path}` in a shell script would let the unit's value run commands", "f.toml:12:14\n", "\"$1\""],
    );
}

#[test]
fn a_text_that_is_not_toml_is_refused_with_its_position() {
    says("a = [1,\nb", &["this is not TOML", "f.toml:2:"]);
    says("name = \"x", &["this is not TOML", "f.toml:1:"]);
    says("name = \"x\"\nname = \"y\"", &["this is not TOML", "duplicate key", "f.toml:2:1\n"]);
    says(&format!("name = \"{}\" x", "y".repeat(10_000)), &["this is not TOML", "f.toml:1:10011\n"]);
}

#[test]
fn bytes_that_are_not_utf_8_are_refused() {
    let said = refused(b"name = \"x\"\n\xFF\xFE", &[]);
    assert!(said.contains("f.toml is not a flow file: it is not UTF-8 text (byte 0xff in line 2)"), "{said}");
    let said = refused(vec![b'#'; 2 << 20], &[]);
    assert!(said.contains("larger than a flow file may be"), "{said}");
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    for (path, reason) in [("none.toml", "No such file"), (".", "Is a directory")] {
        let output = plan(folder.path(), &[path]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2));
        assert!(said.contains(path) && said.contains(reason), "{said}");
    }
}

#[test]
fn nothing_in_a_flow_file_controls_the_terminal() {
    let said = refused("\"\\u001b[31mred\" = 1\nname = \"\\u001b]0;title\\u0007\"\n", &[]);
    assert!(!said.contains('\u{1b}') && !said.contains('\u{7}'), "{said:?}");
}

#[test]
fn braces_of_another_language_are_to_be_doubled() {
    let exec = |argument: &str| flow("", "", &format!("op = \"exec\"\nexec = [\"true\", '{argument}']"));
    says(
        &exec("{print $1}"),
        &["`{print $1}` is not a field", "double the braces", "`{{print $1}}`", "f.toml:11:18\n"],
    );
    says(
        &exec("echo ${VAR}"),
        &["no field is called `VAR`", "for a variable of the shell, double the braces: `${{VAR}}`"],
    );
    says(&exec("{ echo; }"), &["`{ echo; }` is not a field", "`{{ echo; }}`"]);
    says(&exec("{ if (1) { print } }"), &["this `{` opens no field", "write `{{` and `}}`"]);
    says(&exec("{}"), &["a field needs a name", "such as `{path}` or `{line}`"]);
    says(&exec("{frobnicate}"), &["fields are path", "other braces are doubled: `{{frobnicate}}`"]);
    accepted(&exec("{{print $1}} ${{VAR}}"));
}

#[test]
fn a_mistake_is_not_reported_twice() {
    let one = |text: &str, message: &str| {
        let said = refused(text, &[]);
        assert!(said.contains(message), "{said}");
        assert_eq!(said.matches("error: ").count(), 1, "one slip, one error:\n{said}");
    };
    let filter = |when: &str| flow("", "", &format!("op = \"filter\"\nwhen = {when}\nelse = \"end\""));
    one(&filter("{ text = \"{line}\", equals = 3 }"), "`equals` takes a string, not an integer");
    one(&filter("{ txt = \"x\" }"), "a condition is missing");
    one(&flow("", "", "op = \"zstd\"\nmode = \"compres\"\nlevel = 3"), "`mode` cannot be \"compres\"");
    one(&flow("", "", "op = \"gzip\"\nmode = \"gunzip\"\nmax_bytes = \"1MiB\""), "`mode` cannot be \"gunzip\"");
    one(&flow("", "", "op = \"exec\"\nexec = \"wc\"\nstdin = \"null\"\ndir = \"x\""), "`exec` takes a program");
    one(&flow("", "net = { burst = 3 }", "op = \"read\"\nneeds = { net = 1 }"), "does not say how much there is");
    one(
        &flow("", "net = { capacity = 3, rate = \"1/s\", burst = 3 }", "op = \"read\"\nneeds = { net = 1 }"),
        "has both `capacity` and `rate`",
    );
    one(
        &flow("", "", "op = \"read\"")
            .replace("out = \"o\"", "out = [1]")
            .replace("\"read\"", "\"read\"\npath = \"{param.out}\""),
        "`out` takes a string",
    );
    // An unknown op in one stage causes no further error in another stage.
    let next = |text: &str| {
        format!("{}[[stage]]\nname = \"two\"\nop = \"write\"\npath = \"{{blake3}}\"\n", flow("", "", text))
    };
    one(&next("op = \"blake4\""), "there is no op `blake4`");
    one(
        &next("op = \"fliter\"\nelse = \"two\"\nnext = \"end\"").replace("{blake3}", "{name}"),
        "there is no op `fliter`",
    );
    one(
        &next("op = \"blake3\"\nnext = \"tow\"")
            .replace("op = \"blake3\"", "op = \"exec\"\nexec = [\"true\"]")
            .replace("{blake3}", "{name}"),
        "`next` leads to `tow`",
    );
}

#[test]
fn mistakes_in_values_and_in_the_graph_are_reported_together() {
    says(
        &flow("inflight = \"many\"", "", "op = \"append\"\npath = \"x\"\nline = \"{json.a} {blake3}\"\ntimeout = 3"),
        &[
            "`inflight` takes a whole number",
            "`timeout` takes a time",
            "no `parse` stage comes before `one`",
            "no `blake3` stage comes",
        ],
    );
}

#[test]
fn unused_names_are_warned_about_and_refused_by_no_command() {
    let folder = tempfile::tempdir().unwrap();
    let warned = |text: &str| {
        std::fs::write(folder.path().join("f.toml"), text).unwrap();
        let output = plan(folder.path(), &["f.toml"]);
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8(output.stderr).unwrap()
    };
    let said = warned(&flow("", "net = 2\n\"host:*\" = 1", "op = \"read\""));
    for part in
        ["no stage needs the resource `net`", "\"host:{host}\" = 1", "nothing uses the parameter `out`", "3 warnings"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(said.contains("warning: ") && !said.contains("error: "), "{said}");
    let said = warned(&flow("", "net = 2", "op = \"read\"\npath = \"{param.out}\"\nneeds = { net = 1 }"));
    assert_eq!(said, "");
}

#[test]
fn fibers_that_make_no_sense_are_refused_at_their_place() {
    let get = |keys: &str| flow("", "", &format!("op = \"http-get\"\nurl = \"{{line}}\"\n{keys}"));
    says(&get("fibers = 0"), &["`fibers` is zero, so nothing could ever pass", "f.toml:12:10"]);
    says(&get("fibers = 1048577"), &["`fibers` is 1048577; the most is 1048576"]);
    says(&get("fibers = \"many\""), &["`fibers`", "whole number"]);
    says(&get("fibers = 8\nstack = \"8KiB\""), &["a fiber's stack has from 32 KiB to 1 GiB", "f.toml:13:9"]);
    says(&get("stack = \"64KiB\""), &["the stage has no `fibers`", "set `fibers` as well"]);
    says(&get("fibers = 8\nworkers = 4"), &["`fibers` is the most units at once", "leave one of them out"]);
    says(&get("fibers = 8\nblocking = false"), &["runs beside the workers", "f.toml:13:12"]);
    says(
        &flow("", "", "op = \"read\"\nfibers = 8"),
        &["the waits of `read` cannot suspend a fiber", "only those of `exec`, `http-get` and `http` can"],
    );
}

#[test]
fn the_caret_stands_at_the_field_in_a_string_of_several_lines() {
    let exec = "op = \"exec\"\nshell = true\nexec = [\"\"\"\n  first \\\\\n  echo {nope}\n\"\"\"]";
    let said = refused(flow("", "", exec), &[]);
    let place = flow("", "", exec).lines().position(|line| line.contains("{nope}")).expect("it is there") + 1;
    assert!(said.contains(&format!("f.toml:{place}:")) && said.contains("no field is called `nope`"), "{said}");
    assert!(said.contains("  echo {nope}"), "{said}");
}

#[test]
fn a_wrong_key_of_a_gather_is_the_only_one_reported() {
    for wrong in ["by = \"{name}\"\npartial = true", "by = \"parent\"\nunits = 2"] {
        let text = flow("", "", &format!("op = \"gather\"\n{wrong}\nreduce = \"count\"\nmax_groups = 5"));
        let said = refused(&text, &[]);
        assert!(!said.contains("has no key"), "{said}");
    }
}

#[test]
fn a_parser_without_a_named_group_or_an_expression_is_refused() {
    let parse = |rest: &str| flow("", "", &format!("op = \"parse\"\nformat = \"regex\"\n{rest}"));
    says(&parse(""), &["has no `expression`", "(?<status>"]);
    says(&parse("expression = '(a)(b)'"), &["names no group", "(?<status>"]);
    says(&parse("expression = '(?<a'"), &["not a regular expression"]);
    says(&flow("", "", "op = \"parse\"\nexpression = '(?<a>x)'"), &["has no key `expression`"]);
}

#[test]
fn a_field_that_no_expression_has_a_group_for_is_refused_with_the_nearest_one() {
    let text = |expression: &str, field: &str| {
        let parse = format!("op = \"parse\"\nformat = \"regex\"\nexpression = '{expression}'");
        flow("", "", &format!("{parse}\n[[stage]]\nname = \"two\"\nop = \"set\"\npayload = \"{{{field}}}\""))
    };
    let host = r"^(?<host>\S+) (?<status>\d+)";
    says(&text(host, "json.hots"), &["`{json.hots}` has no value here", "before `two`", "did you mean `{json.host}`?"]);
    says(&text(host, "json.size"), &["the groups are host, status", "f.toml:"]);
    says(&text(host, "json.host.name"), &["no group has this name"]);
    // The members of a JSON object are not known before the run.
    let json = "[[stage]]\nname = \"json\"\nop = \"parse\"\n[[stage]]\nname = \"two\"";
    let of_json = text(host, "json.size").replace("[[stage]]\nname = \"two\"", json);
    for right in [text(host, "json.status"), of_json] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("f.toml"), &right).unwrap();
        let output = plan(folder.path(), &["f.toml"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn the_message_about_lines_without_a_payload_names_both_remedies() {
    let read = "`op = \"read\"` where that is the path of a file";
    says(&flow("", "", "op = \"print\""), &["`payload = \"{path}\\n\"` for the text of the unit itself", read]);
    says(&flow("", "", "op = \"sha256\""), &["`payload = \"{path}\"` for the text of the unit itself", read]);
}

#[test]
fn fields_of_pieces_copies_and_groups_that_no_path_provides_are_refused() {
    let parse = "[[stage]]\nname = \"parse\"\nop = \"parse\"\nformat = \"regex\"\nexpression = '^(?<host>\\S+)'\n";
    let other = "[[stage]]\nname = \"other\"\nop = \"parse\"\nformat = \"regex\"\nexpression = '^(?<word>\\S+)'\n";
    let split = "[[stage]]\nname = \"split\"\nop = \"split\"\nby = \"lines\"\n";
    let copy = "[[stage]]\nname = \"both\"\nop = \"copy\"\nto = [\"a\", \"b\"]\n\
                [[stage]]\nname = \"a\"\nop = \"sha256\"\nnext = \"join\"\n\
                [[stage]]\nname = \"b\"\nop = \"parse\"\nformat = \"regex\"\nexpression = '(?<first>.)'\n\
                [[stage]]\nname = \"join\"\nop = \"gather\"\nby = \"parent\"\nreduce = \"count\"\n";
    let gather = "[[stage]]\nname = \"group\"\nop = \"gather\"\nby = \"{json.host}\"\nreduce = \"count\"\n";
    let family = "[[stage]]\nname = \"whole\"\nop = \"gather\"\nby = \"parent\"\n";
    let read = "[source]\nlines = \"-\"\n[[stage]]\nname = \"body\"\nop = \"set\"\npayload = \"{line}\"\n";
    let file = |stages: &[&str], field: &str| {
        format!("{read}{}[[stage]]\nname = \"last\"\nop = \"set\"\npayload = \"{{{field}}}\"\n", stages.concat())
    };
    for (stages, field, words) in [
        (&[parse, split][..], "parent.json.hots", "did you mean `{parent.json.host}`?"),
        (&[split], "parent.json.host", "has no value here"),
        (&[split, parse], "parent.json.host", "no unit that comes to `last` has it"),
        (&[copy], "copy.b.json.frist", "did you mean `{copy.b.json.first}`?"),
        (&[copy], "copy.a.json.first", "has no value here"),
        (&[copy], "copy.b.sha256", "has no value here"),
        (&[parse, gather], "json.host", "a group of `group` has {key}, {count} and {items}"),
        (&[parse, gather], "line", "a group of `group` has {key}, {count} and {items}"),
        (&[parse, gather], "mode", "a group of `group` has {key}, {count} and {items}"),
        (&[split, parse, family], "json.host", "has no value here"),
    ] {
        says(&file(stages, field), &[&format!("`{{{field}}}`"), words, "f.toml:"]);
    }
    // A stage that does not exist is reported at the position that names it.
    says(&file(&[&copy.replace("[\"a\", \"b\"]", "[\"a\", \"bb\"]")], "copy.bb.line"), &["bb", "f.toml:"]);
    for (stages, field) in [
        (&[parse, split][..], "parent.json.host"),
        (&[parse, split], "json.host"),
        (&[parse, split, other], "json.host"),
        (&[copy], "copy.b.json.first"),
        (&[copy], "copy.a.sha256"),
        (&[parse, copy], "copy.a.json.host"),
        (&[copy], "line"),
        (&[parse, gather], "key"),
        (&[parse, split, family], "json.host"),
        (&[parse, split, family], "line"),
        (&[split, split], "parent.parent.line"),
    ] {
        let stages =
            stages.iter().enumerate().map(|(at, stage)| stage.replacen("\"split\"", &format!("\"split{at}\""), 1));
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("f.toml"), file(&[&stages.collect::<String>()], field)).unwrap();
        let output = plan(folder.path(), &["f.toml"]);
        assert!(output.status.success(), "{field}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn wrong_requests_are_refused_at_their_line() {
    let http = |rest: &str| flow("", "", &format!("op = \"http\"\nurl = \"{{line}}\"\n{rest}"));
    says(&http(""), &["has no `method`", "add `method = \"POST\"`"]);
    says(&http("method = \"GET\""), &["`method` cannot be \"GET\"", "\"HEAD\" or \"POST\" or \"PUT\""]);
    says(&http("method = \"HEAD\"\nbody = \"x\""), &["a HEAD request has no body"]);
    says(&http("method = \"DELETE\"\nbody = \"x\""), &["a DELETE request has no body"]);
    says(&http("method = \"POST\""), &["units come to `one` without a payload, but `http` takes one"]);
    says(&http("method = \"PUT\"\nbody = \"x\"\nfields = { a = 1 }"), &["`a` takes the name of a header"]);
    says(&http("method = \"PUT\"\nbody = \"x\"\nfields = { a = \"b c\" }"), &["`b c` is not the name of a header"]);
    says(&flow("", "", "op = \"http-get\"\nurl = \"{line}\"\nbody = \"x\""), &["has no key `body`"]);
}

#[test]
fn wrong_dates_and_expressions_are_refused_at_their_line() {
    let filter = |when: &str| flow("", "", &format!("op = \"filter\"\nwhen = {{ {when} }}"));
    says(&filter("date = \"{line}\""), &["`date` has no bound", "add `at_least = \"2026-01-31\"`"]);
    says(
        &filter("date = \"{line}\", above = \"31.1.2026\""),
        &["`above` is not a date", "write `2026-01-31`", "f.toml:11:35\n"],
    );
    says(&filter("date = \"2026-02-30\", above = 2026-01-31"), &["`date` is not a date"]);
    says(&filter("date = \"{line}\", above = 3"), &["`above` takes a string, not an integer"]);
    says(&filter("date = \"{line}\", number = \"1\", above = 3"), &["cannot be combined"]);
    let split = |rest: &str| flow("", "", &format!("op = \"split\"\nby = \"regex\"\n{rest}"));
    says(&split(""), &["has no `separator`"]);
    says(&split("separator = \"(\""), &["`separator`: not a regular expression", "unclosed group"]);
    says(&split("separator = \"-*\""), &["`separator` matches the empty text"]);
    let gather = |rest: &str| flow("", "", &format!("op = \"gather\"\nreduce = \"merge\"\n{rest}"));
    says(&gather("item = \"{line}\"\nafter = \";\""), &["`after` follows contents that are concatenated"]);
}
