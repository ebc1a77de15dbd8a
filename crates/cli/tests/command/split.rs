//! Units that a flow file splits into pieces.

use std::fmt::Write as _;
use std::fs;
use std::process::{Command, Stdio};

use crate::support::{Room, ended, peak_bytes};

#[test]
fn a_column_that_a_table_lacks_is_named_with_the_columns_that_it_has() {
    let room = Room::new("");
    fs::create_dir(room.path("in")).unwrap();
    room.write("in/table", "name,total\nana,5\n");
    for (split, line, has) in
        [("by = 'csv'", "{json.sum}", "name, total"), ("by = 'csv'\nheader = false", "{json.3}", "1, 2")]
    {
        room.write("flow.toml", flow(split, line));
        let (_, err) = ended(&room.run(&["run", "-q", "flow.toml"]), 1);
        let letters = fs::read_dir(room.path(".")).unwrap().flatten().map(|entry| entry.path());
        let letters = letters.filter(|path| path.to_string_lossy().contains("dead-letters"));
        let letters: String = letters.map(|path| fs::read_to_string(path).unwrap()).collect();
        let told = format!("the unit has no value for `{line}`; it has {has}");
        assert!(letters.contains(&told) || err.contains(&told), "{err}{letters}");
    }
    room.write("flow.toml", flow("by = 'csv'", "{csv.total}"));
    let (_, err) = ended(&room.run(&["plan", "flow.toml"]), 2);
    assert!(err.contains("did you mean `{json.total}`?"), "{err}");
}

/// A flow that splits files and appends lines. `split` contains the keys of the stage that splits, and `line` is the
/// line of the `append`.
fn flow(split: &str, line: &str) -> String {
    format!(
        r#"
        name = "pieces"
        [source]
        walk = "in"
        [[stage]]
        name = "read"
        op = "read"
        [[stage]]
        name = "split"
        op = "split"
        {split}
        [[stage]]
        name = "list"
        op = "append"
        path = "out"
        line = '{line}'
        "#
    )
}

fn room(split: &str, line: &str, files: &[(&str, &[u8])]) -> Room {
    let room = Room::new(&flow(split, line));
    fs::create_dir(room.path("in")).unwrap();
    for (name, content) in files {
        room.write(format!("in/{name}"), content);
    }
    room
}

fn sorted(room: &Room, name: &str) -> Vec<String> {
    let mut lines: Vec<String> = room.read(name).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

fn pieces(split: &str, line: &str, content: &[u8]) -> Vec<String> {
    let room = room(split, line, &[("f", content)]);
    ended(&room.run(&["run", "flow.toml"]), 0);
    sorted(&room, "out")
}

#[test]
fn lines_know_their_number_and_their_file() {
    let room = room(
        "by = \"lines\"",
        "{parent.name} {part} {line} {size}",
        &[("a", b"x\r\ny\n\nz"), ("b", b""), ("c", b"1\n")],
    );
    let (_, err) = ended(&room.run(&["run", "flow.toml", "--report", "r.json"]), 0);
    assert_eq!(sorted(&room, "out"), ["a 1 x 1", "a 2 y 1", "a 3  0", "a 4 z 1", "c 1 1 1"]);
    assert!(err.contains("admitted 3 + split 5 = retired 8 + dead-lettered 0 + left 0"), "{err}");
    assert_eq!(room.json("r.json")["split"], 5);
}

#[test]
fn every_kind_of_piece() {
    assert_eq!(pieces("by = \"nul\"", "{line}", b"a\0b c\0"), ["a", "b c"]);
    assert_eq!(pieces("by = \"separator\"\nseparator = \"--\"", "{size} {path}", b"a--bcd"), ["1 in/f", "3 in/f"]);
    assert_eq!(pieces("by = \"blocks\"\nsize = \"4B\"", "{size}", b"ab\ncd\nef\n"), ["3", "6"]);
    assert_eq!(pieces("by = \"json\"", "{json.a}", br#"[{"a":1},{"a":"two"}]"#), ["1", "two"]);
    assert_eq!(pieces("by = \"json\"", "{json.a}", b"{\"a\":1}\n{\"a\":2}\n"), ["1", "2"]);
    assert_eq!(pieces("by = \"csv\"", "{json.b}-{json.a}", b"a,b\n1,\"x,y\"\n2,z\n"), ["x,y-1", "z-2"]);
    assert_eq!(pieces("by = \"tsv\"\nheader = false", "{json.2}", b"a\tb\nc\td\n"), ["b", "d"]);
}

#[test]
fn files_of_an_archive() {
    let room = room("by = \"tar\"", "{path} {size} {name}", &[]);
    fs::create_dir_all(room.path("from/sub")).unwrap();
    room.write("from/sub/one", "1");
    room.write("from/two", "22");
    let tar = Command::new("tar")
        .args(["cf"])
        .arg(room.path("in/t.tar"))
        .args(["-C"])
        .arg(room.path("from"))
        .arg(".")
        .status();
    assert!(tar.expect("tar").success());
    ended(&room.run(&["run", "flow.toml"]), 0);
    assert_eq!(sorted(&room, "out"), ["./sub/one 1 one", "./two 2 two"]);
}

/// A zip archive of files without compression.
fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut archive, mut directory) = (Vec::new(), Vec::new());
    let short = |number: usize| (number as u16).to_le_bytes();
    let long = |number: usize| (number as u32).to_le_bytes();
    for (name, content) in files {
        let mut crc = flate2::Crc::new();
        crc.update(content);
        let about =
            [&long(crc.sum() as usize)[..], &long(content.len()), &long(content.len()), &short(name.len())].concat();
        directory.extend(
            [b"PK\x01\x02\x14\x03\x14\0\0\0\0\0\0\0\0\0", &about[..], &[0; 12], &long(archive.len()), name.as_bytes()]
                .concat(),
        );
        archive.extend([b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0", &about[..], &[0; 2], name.as_bytes(), content].concat());
    }
    let end =
        [&short(files.len())[..], &short(files.len()), &long(directory.len()), &long(archive.len()), &[0; 2]].concat();
    [&archive[..], &directory, b"PK\x05\x06\0\0\0\0", &end].concat()
}

/// A flow that unpacks zip archives. `before` is the text of stages before the `split`.
fn unpacking(memory: &str, before: &str) -> String {
    format!(
        r#"
        name = "unpack"
        memory = "{memory}"
        [source]
        walk = "in"
        [[stage]]
        name = "read"
        op = "read"
        {before}
        [[stage]]
        name = "split"
        op = "split"
        by = "zip"
        [[stage]]
        name = "keep"
        op = "write"
        path = "out/{{path}}"
        "#
    )
}

#[test]
fn files_of_a_zip_archive_are_written_below_their_folder_alone() {
    let room = Room::new(&unpacking("1MiB", ""));
    fs::create_dir(room.path("in")).unwrap();
    let archive =
        zip(&[("a/b", b"1"), ("../evil", b"2"), ("/abs", b"3"), ("twice", b"4"), ("twice", b"5"), ("", b"6")]);
    room.write("in/a.zip", &archive);
    let (_, err) = ended(&room.run(&["run", "flow.toml"]), 1);
    assert!(err.contains("admitted 1 + split 6 = retired 4 + dead-lettered 3 + left 0"), "{err}");
    assert_eq!((room.read("out/a/b"), room.read("out/abs")), ("1".to_owned(), "3".to_owned()));
    assert!(matches!(&*room.read("out/twice"), "4" | "5"));
    assert!(!room.path("evil").exists() && !room.path("out/evil").exists());
    let mut letters = room.json_lines("unpack.dead-letters.jsonl");
    letters.sort_by_key(|letter| letter["part"].to_string());
    assert_eq!((&letters[0]["part"], letters[0]["path"].as_str()), (&serde_json::json!([2]), Some("in/a.zip")));

    room.write("in/a.zip", &archive[..archive.len() - 30]);
    ended(&room.run(&["run", "flow.toml"]), 1);
    let letter = &room.json_lines("unpack.dead-letters.jsonl")[0];
    assert!(letter["message"].as_str().unwrap().contains("not a zip archive, or is damaged"), "{letter}");
}

#[test]
fn a_zip_archive_may_be_larger_than_memory_and_be_compressed_itself() {
    let large: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    let files: Vec<(&str, &[u8])> = vec![("one", &large), ("two", b"2"), ("three", &large)];
    for (memory, op) in
        [("4MiB", ""), ("1GiB", ""), ("4MiB", "zstd"), ("64MiB", "zstd"), ("4MiB", "gzip"), ("64MiB", "gzip")]
    {
        let pack = format!("[[stage]]\nname = \"pack\"\nop = \"{op}\"\n");
        let unpack = format!("{pack}[[stage]]\nname = \"unpack\"\nop = \"{op}\"\nmode = \"decompress\"\n");
        let room = Room::new(&unpacking(memory, if op.is_empty() { "" } else { &unpack }));
        fs::create_dir(room.path("in")).unwrap();
        room.write("in/a.zip", zip(&files));
        ended(&room.run(&["run", "flow.toml"]), 0);
        assert_eq!(fs::read(room.path("out/three")).unwrap(), large, "{memory} {op}");
    }
}

#[test]
fn a_faulty_piece_dies_alone_and_a_senseless_payload_dies_whole() {
    let room = room("by = \"lines\"\nmax_bytes = \"5B\"", "{line}", &[("f", b"good\ntoo long\nfine\n")]);
    let (_, err) = ended(&room.run(&["run", "flow.toml"]), 1);
    assert!(err.contains("admitted 1 + split 3 = retired 3 + dead-lettered 1 + left 0"), "{err}");
    assert_eq!(sorted(&room, "out"), ["fine", "good"]);
    let letter = &room.json_lines("pieces.dead-letters.jsonl")[0];
    assert_eq!((letter["path"].as_str(), &letter["part"]), (Some("in/f"), &serde_json::json!([2])));
    assert!(letter["message"].as_str().unwrap().contains("longer than 5 bytes"), "{letter}");

    let room = self::room("by = \"json\"", "{json.a}", &[("f", b"[{\"a\":1},{\"a\":2} oops")]);
    let (_, err) = ended(&room.run(&["run", "flow.toml"]), 1);
    assert!(err.contains("admitted 1 + split 2 = retired 2 + dead-lettered 1 + left 0"), "{err}");
    let letter = &room.json_lines("pieces.dead-letters.jsonl")[0];
    assert!(letter["message"].as_str().unwrap().starts_with("after part 2: a `,` or the array's `]`"), "{letter}");
    assert!(letter.get("part").is_none(), "it is the whole file's");
}

/// Lines that start with `bad` die until there is a file `mended`.
const MEND: &str = r#"
    name = "mend"
    [source]
    walk = "in"
    [[stage]]
    name = "read"
    op = "read"
    [[stage]]
    name = "groups"
    op = "split"
    by = "separator"
    separator = "--"
    [[stage]]
    name = "lines"
    op = "split"
    by = "lines"
    [[stage]]
    name = "try"
    op = "exec"
    exec = ["sh", "-c", "echo \"$0\" >> ran; case $0 in bad*) test -e mended;; esac", "{line}"]
    stdin = "null"
"#;

#[test]
fn a_retry_runs_exactly_the_pieces_that_died() {
    let room = Room::new(MEND);
    fs::create_dir(room.path("in")).unwrap();
    room.write("in/a", "one\nbad 1\n--two\nthree\nbad 2\nbad 3\n");
    room.write("in/b", "four\nbad 4");
    ended(&room.run(&["run", "flow.toml"]), 1);
    let parts = |room: &Room| {
        let letters = room.json_lines("mend.dead-letters.jsonl");
        let mut parts: Vec<String> =
            letters.iter().map(|l| format!("{} {}", l["path"].as_str().unwrap(), l["part"])).collect();
        parts.sort();
        parts
    };
    let dead = ["in/a [1,2]", "in/a [2,3]", "in/a [2,4]", "in/b [1,2]"];
    assert_eq!(parts(&room), dead);

    fs::remove_file(room.path("ran")).unwrap();
    ended(&room.run(&["retry"]), 1);
    assert_eq!(sorted(&room, "ran"), ["bad 1", "bad 2", "bad 3", "bad 4"]);
    assert_eq!(parts(&room), dead, "what dies again has its letter again");

    room.write("mended", "");
    fs::remove_file(room.path("ran")).unwrap();
    room.write("in/b", "four");
    let (_, err) = ended(&room.run(&["retry"]), 1);
    assert_eq!(sorted(&room, "ran"), ["bad 1", "bad 2", "bad 3"]);
    assert!(err.contains("part 2 is to be run again, and there are only 1 now"), "{err}");
    assert_eq!(parts(&room), ["in/b [1,2]"], "the letter of the piece stays");

    fs::remove_file(room.path("ran")).unwrap();
    fs::rename(room.path("in/b"), room.path("away")).unwrap();
    ended(&room.run(&["retry"]), 1);
    assert_eq!(parts(&room), ["in/b [1,2]"], "also if its unit cannot be read");
    room.write("in/b", "four\nbad 4");
    ended(&room.run(&["retry"]), 0);
    assert_eq!(sorted(&room, "ran"), ["bad 4"]);
}

#[test]
fn a_retry_goes_on_after_the_last_good_piece() {
    let room = room("by = \"json\"", "{json.a}", &[("f", b"[{\"a\":1},{\"a\":2},oops")]);
    ended(&room.run(&["run", "flow.toml"]), 1);
    assert_eq!(room.json_lines("pieces.dead-letters.jsonl")[0]["after"], 2);
    room.write("in/f", "[{\"a\":1},{\"a\":2},{\"a\":3}]");
    ended(&room.run(&["retry"]), 0);
    assert_eq!(sorted(&room, "out"), ["1", "2", "3"]);
}

/// There is a letter for a piece that is torn, and another letter for a dead piece of that piece.
#[test]
fn a_retry_runs_the_remainder_of_a_torn_piece_and_its_dead_pieces() {
    let flow = MEND.replace("by = \"lines\"", "by = \"json\"");
    let room = Room::new(
        &flow
            .replace("\"{line}\"]\n    stdin = \"null\"", "\"{size}\"]")
            .replace("echo \\\"$0\\\" >> ran; case $0 in bad*)", "read x; echo $x >> ran; case $x in *bad*)"),
    );
    fs::create_dir(room.path("in")).unwrap();
    room.write("in/a", "[1]--[\"ok\",\"bad\",oops");
    ended(&room.run(&["run", "flow.toml"]), 1);
    assert_eq!(room.json_lines("mend.dead-letters.jsonl").len(), 2);
    fs::remove_file(room.path("ran")).unwrap();
    room.write("mended", "");
    room.write("in/a", "[1]--[\"ok\",\"bad\",\"new\"]");
    ended(&room.run(&["retry"]), 0);
    assert_eq!(sorted(&room, "ran"), ["\"bad\"", "\"new\""]);
}

#[test]
fn an_empty_payload_has_no_pieces() {
    assert_eq!(pieces_of_nothing("lines"), 0);
    for by in ["nul", "blocks", "json", "csv"] {
        assert_eq!(pieces_of_nothing(by), 0, "{by}");
    }
}

fn pieces_of_nothing(by: &str) -> u64 {
    let room = room(&format!("by = \"{by}\""), "{part}", &[("f", b"")]);
    ended(&room.run(&["run", "flow.toml", "--report", "r.json"]), 0);
    room.json("r.json")["split"].as_u64().unwrap()
}

#[test]
fn a_piece_leads_no_further_than_its_unit_and_is_as_private() {
    use std::os::unix::fs::PermissionsExt;
    let escape = r#"
        [source]
        walk = "in"
        [[stage]]
        name = "read"
        op = "exec"
        exec = ["cat", "{path}"]
        [[stage]]
        name = "split"
        op = "split"
        by = "lines"
        [[stage]]
        name = "write"
        op = "write"
        path = "PATH"
    "#;
    let room = Room::new(&escape.replace("PATH", "{path}"));
    fs::create_dir(room.path("in")).unwrap();
    room.write("in/f", room.path("outside").to_str().unwrap());
    ended(&room.run(&["run", "flow.toml"]), 1);
    let letter = &room.json_lines("flow.dead-letters.jsonl")[0];
    assert!(letter["message"].as_str().unwrap().contains("data makes it absolute"), "{letter}");
    assert!(!room.path("outside").exists());

    let room = Room::new(&escape.replace("PATH", "out/{part}"));
    fs::create_dir(room.path("in")).unwrap();
    room.write("in/f", "secret");
    fs::set_permissions(room.path("in/f"), fs::Permissions::from_mode(0o600)).unwrap();
    ended(&room.run(&["run", "flow.toml"]), 0);
    assert_eq!(fs::metadata(room.path("out/1")).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_cycle_of_splits_ends() {
    let room = Room::new(
        r#"
        [source]
        args = true
        [[stage]]
        name = "again"
        op = "set"
        payload = "{line}"
        [[stage]]
        name = "split"
        op = "split"
        by = "lines"
        next = "again"
        [[stage]]
        name = "never"
        op = "blake3"
        "#,
    );
    let (_, err) = ended(&room.run(&["plan", "flow.toml"]), 2);
    assert!(err.contains("never"), "{err}");
    let text = room.read("flow.toml");
    let text = text
        .replace("next = \"again\"", "next = \"never\"")
        .replace("op = \"blake3\"", "op = \"filter\"\nwhen = { text = \"{line}\", equals = \"x\" }\nnext = \"again\"");
    room.write("flow.toml", text);
    ended(&room.run(&["run", "flow.toml", "x"]), 1);
    let letter = &room.json_lines("flow.dead-letters.jsonl")[0];
    assert!(letter["message"].as_str().unwrap().contains("more than 100 levels"), "{letter}");
}

#[test]
fn pieces_are_printed_in_their_order() {
    let room = Room::new(
        r#"
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
        name = "sleep"
        op = "exec"
        exec = ["sh", "-c", "set $0; sleep 0.0$1; echo $1 $2", "{line}"]
        stdout = "print"
        ordered = true
        "#,
    );
    fs::create_dir(room.path("in")).unwrap();
    let mut expected = String::new();
    for file in ["a", "b"] {
        let mut text = String::new();
        for n in 0..12 {
            writeln!(text, "{} {file}{n}", (n * 5) % 9).unwrap();
        }
        room.write(format!("in/{file}"), &text);
        expected += &text;
    }
    let (out, _) = ended(&room.run(&["run", "flow.toml", "--quiet"]), 0);
    assert_eq!(out, expected);
}

#[test]
fn a_large_file_is_split_in_little_memory() {
    let room = room("by = \"lines\"", "{line}", &[]);
    let text: String = (0..2_000_000).fold(String::new(), |mut text, n| {
        writeln!(text, "{n:030}").unwrap();
        text
    });
    room.write("in/big", &text);
    let mut command = room.command(&["run", "flow.toml", "--quiet", "--memory", "8MiB"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let peak = peak_bytes(command.spawn().unwrap(), 0);
    assert!(peak < 60 << 20, "{peak} bytes");
    assert_eq!(room.read("out").lines().count(), 2_000_000);
}

#[test]
fn mistakes_are_shown_where_they_are() {
    for (split, line, expected) in [
        ("", "x", "stage `split` has no `by`"),
        ("by = \"words\"", "x", "words"),
        ("by = \"separator\"", "x", "has no `separator`"),
        ("by = \"separator\"\nseparator = \"\"", "x", "`separator` is empty"),
        ("by = \"lines\"\nheader = true", "x", "header"),
        ("by = \"blocks\"\nsize = \"1GiB\"", "x", "`size` is more than `max_bytes`"),
        ("by = \"blocks\"", "{line}", "`{line}` belongs to a line"),
        ("by = \"lines\"\nqueue = 3", "x", "stage `split` splits its units and has a queue bound"),
    ] {
        let room = room(split, line, &[]);
        let (_, err) = ended(&room.run(&["plan", "flow.toml"]), 2);
        assert!(err.contains(expected), "{split}: {err}");
    }
    let room = Room::new(
        "[source]\nlines = \"-\"\n[[stage]]\nname = \"a\"\nop = \"append\"\npath = \"o\"\nline = \"{part}\"\n",
    );
    let (_, err) = ended(&room.run(&["plan", "flow.toml"]), 2);
    assert!(err.contains("no `split` stage comes before"), "{err}");
}

#[test]
fn payloads_are_split_by_expressions_and_units_filtered_by_dates() {
    let room = Room::new(
        r#"
        name = "dates"
        [source]
        walk = "in"
        [[stage]]
        name = "read"
        op = "read"
        [[stage]]
        name = "split"
        op = "split"
        by = "regex"
        separator = "(?m)^-{3,}\\n"
        [[stage]]
        name = "parse"
        op = "parse"
        [[stage]]
        name = "january"
        op = "filter"
        when = { date = "{json.at}", at_least = 2026-01-01, below = "2026-02-01T00:00:00+01:00" }
        [[stage]]
        name = "list"
        op = "append"
        path = "out"
        line = "{part} {json.at}"
        "#,
    );
    fs::create_dir(room.path("in")).unwrap();
    let dates = ["2025-12-31T23:59:59Z", "2026-01-01", "2026-01-31T23:00:00Z", "2026-01-31 22:59:59Z", "soon"];
    let text: Vec<String> = dates.iter().map(|date| format!("{{\"at\":\"{date}\"}}\n")).collect();
    room.write("in/a", text.join("-----\n"));
    ended(&room.run(&["run", "flow.toml", "--workers", "1"]), 1);
    assert_eq!(room.read("out"), "2 2026-01-01\n4 2026-01-31 22:59:59Z\n");
    let letters = room.json_lines("dates.dead-letters.jsonl");
    assert_eq!((letters.len(), &letters[0]["part"]), (1, &serde_json::json!([5])));
    assert!(letters[0]["message"].as_str().unwrap().contains("`{json.at}` is not a date: soon"), "{letters:?}");
    let (out, _) = ended(&room.run(&["run", "--dry-run", "flow.toml"]), 0);
    assert!(out.contains("a unit for each piece; the first:") && out.contains("false: leaves the flow"), "{out}");
}
