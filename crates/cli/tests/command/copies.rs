//! Units that a flow file copies to several stages and gathers again.

use std::fs;

use crate::support::{Room, ended, text};

/// Hashes each file in one branch and counts its lines in another branch. Then writes one line for each file.
const FACTS: &str = r#"
    name = "facts"
    [source]
    walk = "in"
    [[stage]]
    name = "read"
    op = "read"
    [[stage]]
    name = "both"
    op = "copy"
    to = ["hash", "count"]
    [[stage]]
    name = "hash"
    op = "sha256"
    next = "join"
    [[stage]]
    name = "count"
    op = "exec"
    exec = ["sh", "-c", "grep -q bad && exit 1; exit 0", "{name}"]
    [[stage]]
    name = "lines"
    op = "set"
    fields = { told = "{name} is {size} bytes" }
    [[stage]]
    name = "join"
    op = "gather"
    by = "parent"
    [[stage]]
    name = "list"
    op = "append"
    path = "list"
    line = "{name} {copy.hash.sha256[..8]} {copy.count.set.told} {count}"
"#;

fn sorted(room: &Room, name: &str) -> Vec<String> {
    let mut lines: Vec<String> = room.read(name).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn copies_take_separate_paths_and_become_one_unit_again() {
    let room = Room::new(FACTS);
    fs::create_dir(room.path("in")).unwrap();
    room.write("in/a", "hello");
    room.write("in/b", "");
    let (_, err) = ended(&room.run(&["run", "flow.toml"]), 0);
    assert_eq!(sorted(&room, "list"), ["a 2cf24dba a is 5 bytes 2", "b e3b0c442 b is 0 bytes 2"]);
    assert!(err.contains("admitted 2 + split 4"), "conservation counts copies as pieces: {err}");
    let (out, _) = ended(&room.run(&["plan", "flow.toml"]), 0);
    assert!(out.contains("both → hash → join") && out.contains("both, copy → count → lines → join"), "{out}");
    let (out, _) = ended(&room.run(&["run", "--dry-run", "flow.toml"]), 0);
    let a = &out[..out.find("in/b\n").expect("the second file comes next")];
    assert_eq!(
        a,
        "in/a\n  read   in/a, 5 B\n  both   a copy for each of hash, count\n\
         in/a, copy for hash\n  hash   sha256 2cf24dba5fb0a30e…\n  join   joins the other copies of its unit\n\
         in/a, copy for count\n  count  sh -c 'grep -q bad && exit 1; exit 0' a\n  lines  told = a is 5 bytes\n  \
         join   joins the other copies of its unit\n\
         in/a\n  join   the copies are one unit again\n  list   a 2cf24dba a is 5 bytes 2 to list\n"
    );
    let plan = text(&room.run(&["plan", "--json", "flow.toml"]).stdout);
    let plan: serde_json::Value = serde_json::from_str(&plan).unwrap();
    assert_eq!(plan["stages"][1]["to"], serde_json::json!(["hash", "count"]));
}

#[test]
fn the_unit_of_a_failed_copy_is_not_gathered_and_is_retried_whole() {
    let room = Room::new(FACTS);
    fs::create_dir(room.path("in")).unwrap();
    room.write("in/a", "bad");
    room.write("in/b", "good");
    ended(&room.run(&["run", "flow.toml"]), 1);
    assert_eq!(sorted(&room, "list"), ["b 770e6076 b is 4 bytes 2"]);
    let letters = room.json_lines("facts.dead-letters.jsonl");
    assert_eq!(letters.len(), 1, "one failure, one letter: {letters:?}");
    assert_eq!(letters[0]["stage"], "count");
    room.write("again", room.read("facts.dead-letters.jsonl"));
    ended(&room.run(&["retry", "again"]), 1);
    assert_eq!(room.json_lines("again").len(), 1, "and one letter if it dies again");
    room.write("in/a", "fine");
    ended(&room.run(&["retry"]), 0);
    assert_eq!(sorted(&room, "list").len(), 2);
    assert!(!room.path("facts.dead-letters.jsonl").exists());
}

#[test]
fn copies_may_end_apart_and_lines_are_copied_too() {
    let room = Room::new(
        r#"
        [source]
        lines = "in"
        [[stage]]
        name = "three"
        op = "copy"
        to = ["one", "two", "drop"]
        [[stage]]
        name = "one"
        op = "append"
        path = "one"
        line = "{line} {part}"
        next = "end"
        [[stage]]
        name = "two"
        op = "append"
        path = "two"
        line = "{line} {parent.line}"
        next = "end"
        [[stage]]
        name = "drop"
        op = "filter"
        when = { text = "{line}", equals = "none" }
    "#,
    );
    room.write("in", "a\nb\n");
    ended(&room.run(&["run", "flow.toml"]), 0);
    assert_eq!(
        (sorted(&room, "one"), sorted(&room, "two")),
        (vec!["a 1".into(), "b 1".into()], vec!["a a".into(), "b b".into()])
    );
}

#[test]
fn wrong_copies_are_refused_at_their_line() {
    let flow = |to: &str, rest: &str, line: &str| {
        format!(
            "[source]\nlines = \"-\"\n[[stage]]\nname = \"line\"\nop = \"set\"\npayload = \"{{line}}\"\n\
             [[stage]]\nname = \"both\"\nop = \"copy\"\n{to}\n[[stage]]\nname = \"a\"\nop = \"sha256\"\nnext = \"join\"\n\
             [[stage]]\nname = \"b\"\nop = \"sha256\"\n{rest}\n[[stage]]\nname = \"join\"\nop = \"gather\"\nby = \"parent\"\n\
             [[stage]]\nname = \"list\"\nop = \"append\"\npath = \"l\"\nline = \"{line}\"\n[resources]\nr = 1\n"
        )
    };
    let both = "to = [\"a\", \"b\"]";
    for (text, said) in [
        (flow("", "", "x"), "has no `to`"),
        (flow("to = \"a\"", "", "x"), "takes an array of the names of stages"),
        (flow("to = [\"a\"]", "", "x"), "fewer than two stages"),
        (flow("to = [\"a\", \"a\"]", "", "x"), "`a` would get two copies"),
        (flow("to = [\"a\", \"c\"]", "", "x"), "leads to `c`, but no stage has that name"),
        (flow("to = [\"a\", \"b\"]\nnext = \"a\"", "", "x"), "a `copy` has no `next`"),
        (flow("to = [\"a\", \"b\"]\nqueue = 3", "", "x"), "both"),
        (flow("to = [\"a\", \"b\"]\nneeds = { r = { amount = 1, until = \"list\" } }", "", "x"), "`r`"),
        (flow(both, "queue = 3", "x"), "queue"),
        (flow(both, "", "{copy.c.sha256}"), "no `copy` stage before has `c`"),
        (flow(both, "payload = 3", "x"), "has no key `payload`"),
        (flow(both, "", "{copy.a.sise}"), "copy.a"),
    ] {
        let room = Room::new(&text);
        let (_, err) = ended(&room.run(&["plan", "flow.toml"]), 2);
        assert!(err.contains(said), "{text}\n{err}");
    }
    let apart = flow(both, "", "x").replace(
        "op = \"sha256\"\nnext = \"join\"",
        "op = \"append\"\npath = \"p\"\nline = \"{copy.b.sha256}\"\nnext = \"join\"",
    );
    let (_, err) = ended(&Room::new(&apart).run(&["plan", "flow.toml"]), 2);
    assert!(err.contains("the copies are still apart"), "{err}");
}
