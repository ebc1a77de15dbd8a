//! Units that a flow file gathers into groups.

use std::fmt::Write as _;
use std::fs;
use std::process::Stdio;

use crate::support::{Room, code, ended, peak_bytes, text};

/// A flow that gathers the lines of a file. `gather` contains the keys of the stage that gathers, and `then` is the
/// next stage.
fn lines_flow(gather: &str, then: &str) -> String {
    format!(
        r#"
        name = "groups"
        [source]
        lines = "in"
        [[stage]]
        name = "gather"
        op = "gather"
        {gather}
        [[stage]]
        name = "then"
        {then}
        "#
    )
}

/// Splits files into lines, changes each line, and joins the lines to files again.
const MEND: &str = r#"
    name = "mend"
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
    name = "good"
    op = "filter"
    when = { any = [{ exists = "mended" }, { not = { text = "{line}", equals = "bad" } }] }
    next = "mark"
    else = "fail"
    [[stage]]
    name = "fail"
    op = "check"
    field = "size"
    equals = "99"
    [[stage]]
    name = "mark"
    op = "set"
    payload = "{part}: {line}"
    [[stage]]
    name = "whole"
    op = "gather"
    by = "parent"
    after = "\n"
    [[stage]]
    name = "write"
    op = "write"
    path = "out/{name}"
"#;

fn sorted(room: &Room, name: &str) -> Vec<String> {
    let mut lines: Vec<String> = room.read(name).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn numbered(lines: &[&str]) -> String {
    (1..).zip(lines).fold(String::new(), |mut all, (n, line)| {
        let _ = writeln!(all, "{n}: {line}");
        all
    })
}

#[test]
fn pieces_become_their_file_again_in_order() {
    let room = Room::new(MEND);
    fs::create_dir(room.path("in")).unwrap();
    let many: Vec<String> = (0..5000).map(|n| format!("line {}", n * 7919 % 5000)).collect();
    room.write("in/many", many.join("\n"));
    room.write("in/one", "alone\n");
    room.write("in/none", "");
    let (_, err) = ended(&room.run(&["run", "flow.toml", "--report", "r.json"]), 0);
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(room.read("out/many"), numbered(&many));
    assert_eq!(room.read("out/one"), "1: alone\n");
    assert!(!room.path("out/none").exists(), "a file without lines has no group");
    assert!(err.contains("= retired 5 + dead-lettered 0 + gathered 4,999 + left 0"), "{err}");
    assert_eq!(room.json("r.json")["gathered"], 4999);
}

#[test]
fn a_file_with_a_dead_piece_is_not_written_and_a_retry_makes_it_whole() {
    let room = Room::new(MEND);
    fs::create_dir(room.path("in")).unwrap();
    room.write("in/a", "x\nbad\ny\nbad\n");
    room.write("in/b", "z\n");
    ended(&room.run(&["run", "flow.toml"]), 1);
    assert!(room.path("out/b").exists() && !room.path("out/a").exists());
    let letters = |room: &Room| {
        let letters = room.json_lines("mend.dead-letters.jsonl");
        let mut stages: Vec<String> =
            letters.iter().map(|l| format!("{} {} {}", l["stage"], l["path"], l["part"])).collect();
        stages.sort();
        stages
    };
    let dead = ["\"fail\" \"in/a\" [2]", "\"fail\" \"in/a\" [4]"];
    assert_eq!(letters(&room), dead, "a letter for each failure, and none for the group that lacks these pieces");

    ended(&room.run(&["retry"]), 1);
    assert_eq!(letters(&room), dead, "it fails in the same way");
    room.write("mended", "");
    let (_, err) = ended(&room.run(&["retry"]), 0);
    assert!(err.contains("admitted 1 "), "the unit comes once for its two letters: {err}");
    assert_eq!(room.read("out/a"), numbered(&["x", "bad", "y", "bad"]));
}

#[test]
fn a_partial_group_goes_on_without_its_dead_pieces() {
    let room = Room::new(&MEND.replace("by = \"parent\"", "by = \"parent\"\npartial = true"));
    fs::create_dir(room.path("in")).unwrap();
    room.write("in/a", "x\nbad\ny\n");
    ended(&room.run(&["run", "flow.toml"]), 1);
    assert_eq!(room.read("out/a"), "1: x\n3: y\n");
}

#[test]
fn units_are_counted_and_added_by_key() {
    let count =
        lines_flow("by = \"{line}\"\nreduce = \"count\"", "op = \"append\"\npath = \"out\"\nline = \"{key} {count}\"");
    let room = Room::new(&count);
    let words: String = (0..10_000).map(|n| format!("w{}\n", n * n % 7)).collect();
    room.write("in", &words);
    let (_, err) = ended(&room.run(&["run", "flow.toml"]), 0);
    let mut expected = std::collections::BTreeMap::new();
    words.lines().for_each(|word| *expected.entry(word).or_insert(0) += 1);
    let expected: Vec<String> = expected.into_iter().map(|(word, count)| format!("{word} {count}")).collect();
    assert_eq!(sorted(&room, "out"), expected);
    assert!(err.contains("gathered 9,996"), "{err}");

    let sum = r#"
        name = "sum"
        [source]
        walk = "in"
        [[stage]]
        name = "read"
        op = "read"
        [[stage]]
        name = "rows"
        op = "split"
        by = "csv"
        [[stage]]
        name = "add"
        op = "gather"
        by = "{json.who}"
        reduce = "sum"
        item = "{json.cents}"
        [[stage]]
        name = "list"
        op = "exec"
        exec = ["sh", "-c", "echo $0 $(cat) $1 >> out", "{key}", "{count}"]
    "#;
    let room = Room::new(sum);
    fs::create_dir(room.path("in")).unwrap();
    room.write("in/a.csv", "who,cents\nana,5\nbob,9007199254740993\nana,-7\nana,x\n");
    room.write("in/b.csv", "who,cents\nbob,4\n");
    ended(&room.run(&["run", "flow.toml"]), 1);
    assert_eq!(sorted(&room, "out"), ["ana -2 2", "bob 9007199254740997 2"]);
    let letter = &room.json_lines("sum.dead-letters.jsonl")[0];
    assert_eq!(letter["message"], "\"x\" is not a decimal number");
    assert_eq!(letter["part"], serde_json::json!([4]));
}

#[test]
fn a_program_takes_a_group_as_arguments_or_as_its_input() {
    let flow = lines_flow(
        "units = 4\nitem = \"{line}\"\nafter = \"\\n\"",
        "op = \"exec\"\nexec = [\"sh\", \"-c\", \"echo $#: $* $(wc -l) >> out\", \"sh\", \"{items}\"]\nstdin = \"payload\"",
    );
    let room = Room::new(&format!("workers = 1\n{flow}"));
    room.write("in", "a\nb c\nd\ne\nf\n");
    ended(&room.run(&["run", "flow.toml"]), 0);
    assert_eq!(sorted(&room, "out"), ["1: f 1", "4: a b c d e 4"]);
}

#[test]
fn each_member_of_a_group_that_fails_has_a_letter_and_is_gathered_again() {
    let flow = lines_flow(
        "units = 3\nitem = \"{line}\"",
        "op = \"exec\"\nexec = [\"sh\", \"-c\", \"test -e mended && echo $* >> out\", \"sh\", \"{items}\"]",
    );
    let room = Room::new(&format!("workers = 1\n{flow}"));
    room.write("in", "a\nb\nc\nd\n");
    let (_, err) = ended(&room.run(&["run", "flow.toml"]), 1);
    assert!(err.contains("dead-lettered 2 + gathered 2"), "{err}");
    let letters = room.json_lines("groups.dead-letters.jsonl");
    let mut lines: Vec<String> = letters.iter().map(|l| format!("{} of {}", l["line"], l["gathered"])).collect();
    lines.sort();
    assert_eq!(lines, ["\"a\" of 3", "\"b\" of 3", "\"c\" of 3", "\"d\" of 1"]);
    room.write("mended", "");
    ended(&room.run(&["retry"]), 0);
    assert_eq!(sorted(&room, "out"), ["a b c", "d"]);
}

#[test]
fn units_of_the_same_text_are_all_retried() {
    let flow = MEND.replace("walk = \"in\"", "args = true").replace("out/{name}", "out/{count}");
    let room = Room::new(&flow.replace("payload = \"{part}: {line}\"", "payload = \"{line}\""));
    room.write("a", "bad\n");
    room.write("b", "bad\nbad\n");
    ended(&room.run(&["run", "flow.toml", "a", "b", "a"]), 1);
    room.write("mended", "");
    let (_, err) = ended(&room.run(&["retry"]), 1);
    assert!(err.contains("admitted 3 "), "{err}");
    let letters = room.json_lines("mend.dead-letters.jsonl");
    assert_eq!((letters.len(), &letters[0]["path"], &letters[0]["line"]), (1, &serde_json::Value::Null, &"a".into()));
}

#[test]
fn the_members_of_a_group_are_retried_for_its_dead_pieces() {
    let flow = lines_flow(
        "units = 2\nitem = \"{line}\"\nafter = \"\\n\"",
        "op = \"split\"\nby = \"lines\"\n[[stage]]\nname = \"last\"\nop = \"exec\"\nexec = [\"sh\", \"-c\", \"test -e mended && echo $0 >> out\", \"{line}\"]",
    );
    let room = Room::new(&format!("workers = 1\n{flow}"));
    room.write("in", "a\nb\nc\n");
    ended(&room.run(&["run", "flow.toml"]), 1);
    let lines = |room: &Room| {
        let letters = room.json_lines("groups.dead-letters.jsonl");
        let mut lines: Vec<String> = letters.iter().map(|l| format!("{} {}", l["line"], l["part"])).collect();
        lines.sort();
        lines
    };
    assert_eq!(lines(&room), ["\"a\" null", "\"b\" null", "\"c\" null"], "once, however many pieces have died");
    room.write("mended", "");
    ended(&room.run(&["retry"]), 0);
    assert_eq!(sorted(&room, "out"), ["a", "b", "c"]);
}

#[test]
fn a_group_of_pieces_of_groups_comes_again_with_all_members() {
    let gather =
        |name: &str| format!("[[stage]]\nname = \"{name}\"\nop = \"gather\"\nitem = \"{{line}}\"\nafter = \"\\n\"\n");
    let room = Room::new(&format!(
        "name = \"nested\"\n[source]\nlines = \"in\"\n{}[[stage]]\nname = \"split\"\nop = \"split\"\nby = \"lines\"\n{}{}",
        gather("inner"),
        gather("outer"),
        "[[stage]]\nname = \"last\"\nop = \"exec\"\nexec = [\"sh\", \"-c\", \"test -e mended && cat >> out\"]\nstdin = \"payload\"\n",
    ));
    room.write("in", "a\nb\nc\n");
    ended(&room.run(&["run", "flow.toml"]), 1);
    let letters = room.json_lines("nested.dead-letters.jsonl");
    let mut lines: Vec<&str> = letters.iter().filter_map(|letter| letter["line"].as_str()).collect();
    lines.sort_unstable();
    assert_eq!((lines, letters.len()), (vec!["a", "b", "c"], 3));
    room.write("mended", "");
    ended(&room.run(&["retry"]), 0);
    assert_eq!(sorted(&room, "out"), ["a", "b", "c"]);
}

#[test]
fn a_group_is_as_private_as_its_most_private_member() {
    use std::os::unix::fs::PermissionsExt;
    let room = Room::new(
        r#"
        name = "private"
        [source]
        walk = "in"
        [[stage]]
        name = "read"
        op = "read"
        [[stage]]
        name = "gather"
        op = "gather"
        [[stage]]
        name = "write"
        op = "write"
        path = "out/all"
        "#,
    );
    fs::create_dir(room.path("in")).unwrap();
    for (name, mode) in [("a", 0o644), ("b", 0o600), ("c", 0o644)] {
        room.write(format!("in/{name}"), name);
        fs::set_permissions(room.path(format!("in/{name}")), fs::Permissions::from_mode(mode)).unwrap();
    }
    ended(&room.run(&["run", "flow.toml"]), 0);
    assert_eq!(fs::metadata(room.path("out/all")).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn items_of_groups_of_groups_are_single_items() {
    let flow = lines_flow(
        "item = \"{items}\"",
        "op = \"exec\"\nexec = [\"sh\", \"-c\", \"echo $# >> out\", \"sh\", \"{items}\"]",
    );
    let room = Room::new(&flow.replace("lines = \"in\"", "lines = \"in\"\ngroup = 2"));
    room.write("in", "a\nb\nc\nd\ne\n");
    ended(&room.run(&["run", "flow.toml"]), 0);
    assert_eq!(room.read("out"), "5\n");
}

#[test]
fn a_stage_in_a_cycle_runs_on_what_was_gathered() {
    let room = Room::new(
        r#"
        name = "cycle"
        [source]
        args = true
        [[stage]]
        name = "begin"
        op = "set"
        payload = "{line}"
        [[stage]]
        name = "small"
        op = "filter"
        when = { size = "..20" }
        next = "split"
        else = "print"
        [[stage]]
        name = "split"
        op = "split"
        by = "lines"
        [[stage]]
        name = "double"
        op = "gather"
        by = "parent"
        item = "{line}{line}"
        next = "small"
        [[stage]]
        name = "print"
        op = "print"
        "#,
    );
    let (out, _) = ended(&room.run(&["run", "flow.toml", "-q", "abc"]), 0);
    assert_eq!(out, "abc".repeat(8));
}

#[test]
fn a_count_that_fails_says_that_its_units_are_no_longer_known() {
    let flow = lines_flow("by = \"{line}\"\nreduce = \"count\"", "op = \"check\"\nfield = \"size\"\nequals = \"9\"");
    let room = Room::new(&flow);
    room.write("in", "a\na\n");
    ended(&room.run(&["run", "flow.toml"]), 1);
    let letter = &room.json_lines("groups.dead-letters.jsonl")[0];
    assert_eq!((&letter["is_sum"], &letter["gathered"]), (&true.into(), &2.into()));
    let (_, err) = ended(&room.run(&["retry"]), 1);
    assert!(err.contains("or groups that only counted; run"), "{err}");
    assert_eq!(room.json_lines("groups.dead-letters.jsonl").len(), 1);
}

#[test]
fn a_retry_says_which_groups_contain_only_retried_units() {
    let flow = lines_flow("item = \"{line}\"\nafter = \"\\n\"", "op = \"write\"\npath = \"out\"\noverwrite = true");
    let check = "[[stage]]\nname = \"check\"\nop = \"exec\"\nexec = [\"sh\", \"-c\", \"test -e mended || test $0 != b\", \"{line}\"]\n";
    let room = Room::new(&flow.replacen("[[stage]]", &format!("{check}stdout = \"null\"\n[[stage]]"), 1));
    room.write("in", "a\nb\n");
    ended(&room.run(&["run", "flow.toml"]), 1);
    room.write("mended", "");
    let (_, err) = ended(&room.run(&["retry"]), 0);
    assert!(err.contains("` gathers the retried units alone"), "{err}");
}

#[test]
fn any_number_of_units_is_counted_in_little_memory() {
    let flow =
        lines_flow("by = \"{line}\"\nreduce = \"count\"", "op = \"append\"\npath = \"out\"\nline = \"{key} {count}\"");
    let peak = |lines: u64| {
        let room = Room::new(&flow);
        room.write("in", (0..lines).map(|n| format!("key {}\n", n % 100)).collect::<String>());
        let mut command = room.command(&["run", "flow.toml", "--quiet"]);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let peak = peak_bytes(command.spawn().unwrap(), 0);
        assert_eq!(room.read("out").lines().count(), 100);
        peak
    };
    let (few, many) = (peak(100_000), peak(500_000));
    assert!(many < few + (8 << 20), "{few} bytes for few, {many} for many");
}

#[test]
fn a_rehearsal_shows_groups() {
    let room = Room::new(MEND);
    fs::create_dir(room.path("in")).unwrap();
    room.write("in/a", "x\ny\n");
    let (out, _) = ended(&room.run(&["run", "flow.toml", "--dry-run"]), 0);
    assert!(out.contains("gathered with the pieces of the same unit; goes on as if it were the only one"), "{out}");
    assert!(out.contains("to out/a"), "{out}");
}

#[test]
fn mistakes_are_shown_where_they_are() {
    let append = "op = \"append\"\npath = \"out\"\nline = \"{key}\"";
    for (gather, then, message) in [
        ("by = \"all\"", append, "`by` has no field, so all units would join one group"),
        ("by = \"{lin}\"", append, "did you mean `{line}`?"),
        ("units = 0", append, "`units`"),
        (
            "by = \"parent\"\nitem = \"{line}\"",
            append,
            "gathers the pieces of one unit, but no `split` stage comes before",
        ),
        ("by = \"parent\"\nunits = 3", append, "`units` would close a group before all pieces of its unit have come"),
        ("partial = true", append, "`partial` is for the pieces of one unit"),
        ("reduce = \"count\"\nafter = \",\"", append, "`after` follows contents that are concatenated"),
        ("reduce = \"count\"\nitem = \"{line}\"", append, "`item` is the content of a unit, and a count has none"),
        ("reduce = \"median\"", append, "`reduce` cannot be \"median\""),
        ("by = \"{line}\"\nunit = 3", append, "units"),
        ("by = \"{line}\"", append, "units come to `gather` without a payload"),
        ("by = \"{key}\"\nitem = \"{line}\"", append, "no `gather` stage comes before `gather`"),
    ] {
        let room = Room::new(&lines_flow(gather, then));
        let output = room.run(&["plan", "flow.toml"]);
        assert_eq!(code(output.status), 2, "{gather}");
        let err = text(&output.stderr);
        assert!(err.contains(message), "{gather}: {err}");
    }
    let mixed = MEND.replace(
        "[[stage]]\n    name = \"whole\"",
        "[[stage]]\n    name = \"four\"\n    op = \"gather\"\n    units = 4\n    [[stage]]\n    name = \"whole\"",
    );
    let (_, err) = ended(&Room::new(&mixed).run(&["plan", "flow.toml"]), 2);
    assert!(err.contains("`four` mixes the pieces of several units"), "{err}");
    let held = r#"
        name = "held"
        [source]
        lines = "in"
        [resources]
        disk = 1
        [[stage]]
        name = "take"
        op = "set"
        payload = "{line}"
        needs = { disk = { amount = 1, until = "list" } }
        [[stage]]
        name = "gather"
        op = "gather"
        [[stage]]
        name = "list"
        op = "append"
        path = "out"
        line = "{count}"
    "#;
    let (_, err) = ended(&Room::new(held).run(&["plan", "flow.toml"]), 2);
    assert!(err.contains("but `gather` on the way there"), "{err}");
}

#[test]
fn a_group_has_the_least_the_greatest_or_the_mean_of_its_numbers() {
    for (reduce, expected) in [("min", "-3"), ("max", "10"), ("mean", "3"), ("sum", "9")] {
        let keys = format!("reduce = \"{reduce}\"\nitem = \"{{line}}\"");
        let room = Room::new(&lines_flow(&keys, "op = \"print\""));
        room.write("in", "2\n10\n-3\n");
        let (out, _) = ended(&room.run(&["run", "-q", "flow.toml"]), 0);
        assert_eq!(out, expected, "{reduce}");
    }
}

#[test]
fn sorted_files_are_merged_and_one_that_is_not_sorted_is_a_dead_letter() {
    let room = Room::new(
        r#"
        name = "merge"
        [source]
        walk = "in"
        [[stage]]
        name = "read"
        op = "read"
        [[stage]]
        name = "one"
        op = "gather"
        reduce = "merge"
        [[stage]]
        name = "write"
        op = "write"
        path = "out"
        "#,
    );
    fs::create_dir(room.path("in")).unwrap();
    room.write("in/a", "1\n5\n9");
    room.write("in/b", "0\n5\n5\n");
    room.write("in/c", "");
    room.write("in/d", "3\n2\n");
    ended(&room.run(&["run", "flow.toml"]), 1);
    assert_eq!(room.read("out"), "0\n1\n5\n5\n5\n9\n");
    let letters = room.json_lines("merge.dead-letters.jsonl");
    assert_eq!((letters.len(), &letters[0]["path"]), (1, &"in/d".into()));
    let message = letters[0]["message"].as_str().unwrap();
    assert!(message.contains("its line 2 comes before line 1 in the order of bytes"), "{message}");
}

#[test]
fn units_without_a_value_for_the_key_are_in_no_group() {
    let room = Room::new(
        r#"
        name = "keyed"
        [source]
        lines = "in"
        [[stage]]
        name = "parse"
        op = "parse"
        [[stage]]
        name = "count"
        op = "gather"
        by = "{json.k}"
        reduce = "count"
        [[stage]]
        name = "list"
        op = "append"
        path = "out"
        line = "<{key}> {count}"
        "#,
    );
    room.write("in", "{\"k\":\"\"}\n{\"k\":\"a\"}\n{}\n{\"k\":\"a\"}\n{\"k\":\"\"}\n{\"k\":null}\n");
    ended(&room.run(&["run", "flow.toml", "--workers", "1"]), 1);
    let mut lines: Vec<String> = room.read("out").lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["<> 2", "<a> 2"]);
    assert_eq!(room.json_lines("keyed.dead-letters.jsonl").len(), 2);
}

#[test]
fn a_unit_whose_split_breaks_off_has_one_letter() {
    let flow = MEND.replace("by = \"lines\"", "by = \"json\"");
    assert_ne!(flow, MEND);
    let room = Room::new(&flow.replace("{line}", "{size}"));
    fs::create_dir(room.path("in")).unwrap();
    room.write("in/a", "[1, 2, oops");
    ended(&room.run(&["run", "flow.toml"]), 1);
    let letters = room.json_lines("mend.dead-letters.jsonl");
    assert_eq!(letters.len(), 1, "none for the group that lacks the rest: {letters:?}");
    assert_eq!(letters[0]["after"], 2);
}
