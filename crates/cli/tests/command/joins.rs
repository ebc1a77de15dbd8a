//! Forks whose paths join again: the messages of `plan`, the joins that are refused, and runs that must not hang.

use std::fs;

use crate::support::{Room, ended};

/// A flow over the files of `in`, with these stages.
fn flow(head: &str, stages: &str) -> Room {
    let room = Room::new(&format!("name = \"joins\"\n{head}\n[source]\nwalk = \"in\"\n{stages}"));
    fs::create_dir(room.path("in")).unwrap();
    room
}

/// A fork into two paths and a join of both. One of the paths drops some files.
fn ways(join: &str) -> String {
    format!(
        r#"
        [[stage]]
        name = "fork"
        op = "copy"
        to = ["all", "some"]
        [[stage]]
        name = "all"
        op = "set"
        fields = {{ way = "all" }}
        next = "join"
        [[stage]]
        name = "some"
        op = "filter"
        when = {{ text = "{{name}}", ends_with = "1" }}
        [[stage]]
        name = "join"
        op = "gather"
        {join}
        reduce = "count"
        [[stage]]
        name = "list"
        op = "append"
        path = "list"
        line = "{{count}}"
        "#
    )
}

/// The output of `plan`, with the page in a single line.
fn planned(room: &Room) -> (String, String) {
    let (out, err) = ended(&room.run(&["plan", "flow.toml"]), 0);
    (out.split_whitespace().collect::<Vec<_>>().join(" "), err)
}

#[test]
fn the_plan_says_what_comes_to_a_join_and_what_waits_there() {
    let room = flow("inflight = 8\nmemory = \"1MiB\"", &ways("by = \"parent\""));
    let (page, err) = planned(&room);
    assert!(
        page.contains("joins join joins 1 or 2 pieces of each unit of `fork`, 1 by `all` and 0 or 1 by `some`."),
        "{page}"
    );
    assert!(page.contains("At most 9 groups wait, each until no other piece of its unit is in the flow."), "{page}");
    assert_eq!(err, "");
    let (json, _) = ended(&room.run(&["plan", "--json", "flow.toml"]), 0);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let join = &json["joins"][0];
    assert_eq!((&join["stage"], &join["by"], &join["max_groups"]), (&"join".into(), &"parent".into(), &9.into()));
    assert_eq!(join["forks"][0]["pieces"], serde_json::json!([1, 2]));
    assert_eq!(join["forks"][0]["ways"][1], serde_json::json!({ "stage": "some", "pieces": [0, 1] }));
}

#[test]
fn a_join_that_waits_for_more_than_ever_comes_is_refused_with_both_paths() {
    let room = flow("", &ways("by = \"{path}\"\nunits = 3"));
    let (_, err) = ended(&room.run(&["plan", "flow.toml"]), 2);
    let said =
        "no group of `join` ever has 3 units: `fork` sends it 1 or 2 of each file, and `by` tells the files apart";
    assert!(err.contains(said), "{err}");
    for label in ["waits for 3", "forks", "brings 1\n", "brings 0 or 1", "by = \"parent\"", "units = 2"] {
        assert!(err.contains(label), "{label}: {err}");
    }
    ended(&room.run(&["run", "flow.toml"]), 2);
    // With a time limit or a size limit, the wait also ends, so there is no warning.
    for end in ["wait = \"1m\"", "bytes = \"1MiB\""] {
        let (_, err) = planned(&flow("", &ways(&format!("by = \"{{path}}\"\nunits = 3\n{end}"))));
        assert_eq!(err, "", "{end}");
    }
}

#[test]
fn a_path_below_a_folder_identifies_files_as_the_whole_path_does() {
    let stages = ways("by = \"{rel}\"\nunits = 3");
    let room = flow("", &stages);
    let (_, err) = ended(&room.run(&["plan", "flow.toml"]), 2);
    assert!(err.contains("no group of `join` ever has 3 units"), "{err}");
    // With several INPUTs, each may contain a file with this relative path.
    let text = format!("name = \"joins\"\n[source]\nwalk = \"{{input}}\"\n{stages}");
    let (_, err) = planned(&Room::new(&text));
    assert!(
        err.contains("`fork` sends it 1 or 2: the group of a file below one INPUT alone waits for the end"),
        "{err}"
    );
}

#[test]
fn a_join_by_a_further_field_that_may_differ_among_pieces_is_warned_of() {
    let stages = ways("by = \"{path} {set.way}\"\nunits = 2");
    let stages = stages.replace(
        "op = \"filter\"\n        when = { text = \"{name}\", ends_with = \"1\" }",
        "op = \"set\"\n        fields = { way = \"some\" }",
    );
    let (_, err) = planned(&flow("", &stages));
    assert!(err.contains("warning: `join` waits for 2 units of each file"), "{err}");
}

#[test]
fn a_plan_of_many_copies_and_joins_takes_little_time() {
    // Every fork leads to all later forks and to all joins.
    let most = 120;
    let mut stages = String::new();
    for fork in 0..most {
        let to: Vec<String> =
            (fork + 1..most).map(|n| format!("\"f{n}\"")).chain((0..most).map(|n| format!("\"g{n}\""))).collect();
        stages += &format!("[[stage]]\nname = \"f{fork}\"\nop = \"copy\"\nto = [{}]\n", to.join(", "));
    }
    for join in 0..most {
        stages += &format!(
            "[[stage]]\nname = \"g{join}\"\nop = \"gather\"\nby = \"parent\"\nreduce = \"count\"\nnext = \"end\"\n"
        );
    }
    let began = std::time::Instant::now();
    ended(&flow("", &stages).run(&["plan", "flow.toml"]), 0);
    assert!(began.elapsed().as_secs() < 60, "{:?}", began.elapsed());
}

#[test]
fn a_join_that_depends_on_the_data_is_warned_of_unless_the_wait_is_limited() {
    let (_, err) = planned(&flow("", &ways("by = \"{path}\"\nunits = 2")));
    assert!(err.contains("warning: `join` waits for 2 units of each file"), "{err}");
    for mended in [
        "by = \"{path}\"\nunits = 2\nwait = \"1m\"",
        "by = \"{path}\"\nunits = 2\nmax_groups = 100",
        "by = \"{path}\"\nunits = 1",
        "by = \"parent\"",
        // Many files have the same extension, so nothing is known about the sizes of these groups.
        "by = \"{ext}\"\nunits = 7",
    ] {
        let (page, err) = planned(&flow("", &ways(mended)));
        assert_eq!(err, "", "{mended}");
        assert!(page.contains("joins join joins 1 or 2 pieces"), "{mended}: {page}");
    }
}

#[test]
fn no_join_hangs_with_one_unit_in_flight_and_little_memory() {
    for join in [
        "by = \"parent\"",
        "by = \"{path}\"\nunits = 2",
        "by = \"{path}\"",
        "by = \"{path}\"\nunits = 2\nmax_groups = 1",
        "units = 7",
        "",
    ] {
        let room = flow("inflight = 1\nworkers = 2\nmemory = \"1KiB\"", &ways(join));
        for file in 0..60 {
            room.write(format!("in/{file:02}"), "x");
        }
        ended(&room.run(&["run", "-q", "flow.toml"]), 0);
        let counts: Vec<u64> = room.read("list").lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(counts.iter().sum::<u64>(), 66, "{join}");
        // A group by parent is never closed before all its members have arrived.
        assert!(join != "by = \"parent\"" || counts.len() == 60, "{counts:?}");
    }
}

/// A split within a copy, and a copy within that split. All of them are joined again.
const NESTED: &str = r#"
    [[stage]]
    name = "read"
    op = "read"
    [[stage]]
    name = "fork"
    op = "copy"
    to = ["lines", "plain"]
    [[stage]]
    name = "lines"
    op = "split"
    by = "lines"
    [[stage]]
    name = "odd"
    op = "filter"
    when = { text = "{line}", ends_with = "1" }
    [[stage]]
    name = "twice"
    op = "copy"
    to = ["one", "two"]
    [[stage]]
    name = "one"
    op = "set"
    payload = "1:{parent.line};"
    next = "both"
    [[stage]]
    name = "two"
    op = "set"
    payload = "2:{parent.line};"
    [[stage]]
    name = "both"
    op = "gather"
    by = "parent"
    [[stage]]
    name = "file"
    op = "gather"
    by = "parent"
    next = "join"
    [[stage]]
    name = "plain"
    op = "set"
    payload = "plain;"
    [[stage]]
    name = "join"
    op = "gather"
    by = "parent"
    [[stage]]
    name = "write"
    op = "write"
    path = "out/{name}"
"#;

#[test]
fn a_copy_in_a_split_in_a_copy_joins_level_by_level() {
    for inflight in [1, 2, 64] {
        let room = flow(&format!("inflight = {inflight}\nmemory = \"4KiB\""), NESTED);
        let lines: String = (0..200).map(|line| format!("{line}\n")).collect();
        room.write("in/a", &lines);
        room.write("in/b", "2\n4\n");
        let (page, _) = planned(&room);
        assert!(page.contains("both joins 2 pieces of each unit of `twice`, 1 by `one` and 1 by `two`."), "{page}");
        assert!(page.contains("file joins all pieces of each unit of `lines`."), "{page}");
        assert!(
            page.contains("join joins 1 or 2 pieces of each unit of `fork`, 0 or 1 by `lines` and 1 by `plain`."),
            "{page}"
        );
        ended(&room.run(&["run", "-q", "flow.toml"]), 0);
        let odd: String = (0..200).filter(|n| n % 10 == 1).map(|n| format!("1:{n};2:{n};")).collect();
        assert_eq!(room.read("out/a"), format!("{odd}plain;"));
        assert_eq!(room.read("out/b"), "plain;");
    }
}
