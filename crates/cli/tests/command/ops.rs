//! The ops of stages, tested through the command with real files and processes.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::support::{Process, Room, ended, until};

/// Copies a tree, and lists the copied files.
const COPY: &str = r#"
    [source]
    walk = "from"
    [[stage]]
    name = "read"
    op = "read"
    [[stage]]
    name = "write"
    op = "write"
    path = "to/{rel}"
    [[stage]]
    name = "list"
    op = "append"
    path = "list"
    line = "{rel} {size}"
    fresh = true
"#;

fn files_below(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten() {
            let entry = entry.expect("an entry");
            if entry.file_type().expect("a type").is_dir() {
                folders.push(entry.path());
            } else {
                found.push(entry.path().to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_copy_is_the_same_tree_and_a_second_one_keeps_it() {
    let room = Room::new(COPY);
    for (name, content) in [("from/a", &b"1"[..]), ("from/b/c d", b"\xFF\0"), ("from/b/.e/f", b"")] {
        fs::create_dir_all(room.path(name).parent().expect("a parent")).expect("folders");
        room.write(name, content);
    }
    assert_eq!(room.run(&["run", "flow.toml", "--quiet"]).status.code(), Some(0));
    for name in ["a", "b/c d", "b/.e/f"] {
        assert_eq!(fs::read(room.path("to").join(name)).unwrap(), fs::read(room.path("from").join(name)).unwrap());
    }
    let mut list: Vec<String> = room.read("list").lines().map(str::to_owned).collect();
    list.sort();
    assert_eq!(list, ["a 1", "b/.e/f 0", "b/c d 2"]);

    room.write("from/a", "changed");
    let again = room.run(&["run", "flow.toml", "--quiet", "--dead-letters", "letters"]);
    assert_eq!(again.status.code(), Some(1));
    assert_eq!(room.read("to/a"), "1");
    let letters = room.json_lines("letters");
    assert_eq!(letters.len(), 3);
    assert!(letters.iter().all(|letter| letter["message"].as_str().expect("text").contains("exists and is kept")));
}

/// Runs the command with a limit of 32 KiB on file sizes. At this limit, a write fails in the middle, as on a full
/// disk.
fn limited(room: &Room, args: &[&str]) -> Output {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", "ulimit -f 64; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_millstream")]).args(args);
    room.at_home(&mut command);
    command.output().expect("a shell")
}

#[test]
fn a_list_that_can_grow_no_more_ends_with_a_whole_line() {
    for fresh in [false, true] {
        let room = Room::new(&format!(
            "[source]\nlines = \"in\"\n[[stage]]\nname = \"list\"\nop = \"append\"\npath = \"list\"\n\
             line = \"{{line}} is a line\"\nfresh = {fresh}\n"
        ));
        room.write("in", (0..5000).map(|line| format!("{line}\n")).collect::<String>());
        let output = limited(&room, &["run", "flow.toml", "--dead-letters", "/dev/null"]);
        let err = ended(&output, 1).1.replace(',', "");
        if fresh {
            room.take_partial("list");
        }
        let list = room.read("list");
        assert!(list.ends_with(" is a line\n") && !list.contains('\0'), "{}", &list[list.len() - 100..]);
        let written = list.lines().count();
        assert!(err.contains(&format!("retired {written} + dead-lettered {} + left 0", 5000 - written)), "{err}");
        assert!(list.lines().all(|line| line.split_once(' ').is_some_and(|(_, rest)| rest == "is a line")));
    }
}

#[test]
fn a_file_that_cannot_be_written_whole_leaves_nothing_behind() {
    let room = Room::new(COPY);
    fs::create_dir(room.path("from")).expect("a folder");
    room.write("from/large", vec![b'x'; 200_000]);
    room.write("from/small", "small");
    let output = limited(&room, &["run", "flow.toml", "--quiet", "--dead-letters", "letters"]);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let letters = room.json_lines("letters");
    assert_eq!(letters.len(), 1);
    assert_eq!(letters[0]["message"], "cannot write to/large: File too large (os error 27)");
    assert_eq!(files_below(&room.path("to")), [room.path("to/small").to_string_lossy()]);
}

#[test]
fn data_cannot_write_outside_the_named_folder() {
    let room = Room::new(
        r#"
        [source]
        lines = "-"
        [[stage]]
        name = "read"
        op = "read"
        path = "content"
        [[stage]]
        name = "write"
        op = "write"
        path = "to/{line}"
        "#,
    );
    room.write("content", "x");
    let mut command = room.command(&["run", "flow.toml", "--quiet", "--dead-letters", "letters"]);
    let mut child = command.stdin(Stdio::piped()).spawn().expect("the command starts");
    let lines = b"good\n../bad\nx/../../bad\n/abs\n";
    child.stdin.take().expect("piped").write_all(lines).expect("the command reads");
    assert_eq!(child.wait().expect("a child").code(), Some(1));
    let expected = ["abs", "good"].map(|name| room.path("to").join(name).to_string_lossy().into_owned());
    assert_eq!(files_below(&room.path("to")), expected);
    assert!(!room.path("bad").exists());
    assert_eq!(room.json_lines("letters").len(), 2);
}

#[test]
fn children_of_an_abandoned_run_are_gone_when_it_ends() {
    let room = Room::new(
        r#"
        [source]
        args = true
        [[stage]]
        name = "sleep"
        op = "exec"
        exec = ["sh", "-c", "echo $$ > pid-{line}; sleep 100 & echo $! >> pid-{line}; wait"]
        "#,
    );
    let mut running = room.start(&["run", "flow.toml", "a", "b"]);
    for name in ["pid-a", "pid-b"] {
        until(name, || fs::read_to_string(room.path(name)).is_ok_and(|pids| pids.lines().count() == 2));
    }
    running.signal(libc::SIGINT);
    running.line_with("no more units are admitted");
    running.signal(libc::SIGINT);
    let (status, _, stderr) = running.end();
    assert_eq!(status.code(), Some(3), "{stderr}");
    gone(&[room.read("pid-a"), room.read("pid-b")].concat());
}

#[test]
fn a_program_that_ignores_signals_is_gone_when_a_run_is_abandoned() {
    let room = Room::new(
        r#"
        [source]
        args = true
        [[stage]]
        name = "stay"
        op = "exec"
        exec = ["sh", "-c", "trap '' INT TERM; echo $$ > pid; while :; do sleep 0.02; done"]
        "#,
    );
    let mut running = room.start(&["run", "flow.toml", "a"]);
    let program = room.process("pid");
    running.signal(libc::SIGINT);
    running.line_with("no more units are admitted");
    // Two different signals are sent, because two pending signals of the same kind count as one.
    running.signal(libc::SIGINT);
    running.signal(libc::SIGTERM);
    let (status, _, stderr) = running.end();
    assert_eq!(status.code(), Some(3), "{stderr}");
    gone(&program.0);
}

/// Waits until the processes with these ids, one per line, have ended.
fn gone(numbers: &str) {
    for number in numbers.lines() {
        let process = Process(number.to_owned());
        until("the process is gone", || !process.runs());
    }
}

#[test]
fn many_lines_take_the_memory_of_a_few() {
    const LINES: usize = 1_000_000;
    let room = Room::new(
        r#"
        [source]
        lines = "-"
        [[stage]]
        name = "none"
        op = "filter"
        when = { text = "{line}", equals = "" }
        "#,
    );
    let mut child = room.command(&["run", "flow.toml", "--quiet"]).stdin(Stdio::piped()).spawn().expect("it starts");
    let status = format!("/proc/{}/status", child.id());
    let resident_kib = || -> u64 {
        let status = fs::read_to_string(&status).expect("it runs");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a line");
        line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
    };
    let mut stdin = child.stdin.take().expect("piped");
    let chunk = "a line of some length\n".repeat(LINES / 10);
    let mut after = Vec::new();
    for _ in 0..10 {
        stdin.write_all(chunk.as_bytes()).expect("the command reads");
        after.push(resident_kib());
    }
    drop(stdin);
    assert_eq!(child.wait().expect("a child").code(), Some(0));
    let growth = after.iter().max().expect("ten").saturating_sub(after[0]);
    assert!(growth < 8 << 10, "resident memory in KiB: {after:?}");
}

#[test]
fn every_one_of_many_programs_is_run_and_counted() {
    let room = Room::new(
        r#"
        [source]
        lines = "-"
        [[stage]]
        name = "true"
        op = "exec"
        exec = ["true"]
        "#,
    );
    let mut command = room.command(&["run", "flow.toml", "--quiet", "--report", "report.json"]);
    let mut child = command.stdin(Stdio::piped()).spawn().expect("it starts");
    child.stdin.take().expect("piped").write_all("x\n".repeat(500).as_bytes()).expect("the command reads");
    assert_eq!(child.wait().expect("a child").code(), Some(0));
    assert_eq!(room.json("report.json")["retired"], 500);
}

#[test]
fn data_does_not_choose_the_program_that_runs() {
    let room = Room::new(
        r#"
        [source]
        walk = "data"
        [[stage]]
        name = "run"
        op = "exec"
        exec = ["./tools/tool"]
        dir = "{dir}"
        stdout = "inherit"
    "#,
    );
    for (path, says) in [("tools/tool", "echo ours"), ("data/tools/tool", "echo theirs")] {
        fs::create_dir_all(room.path(path).parent().unwrap()).unwrap();
        room.write(path, format!("#!/bin/sh\n{says}\n"));
        fs::set_permissions(room.path(path), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    room.write("data/file", "");
    let ended = room.run(&["run", "flow.toml", "-q"]);
    assert_eq!(ended.status.code(), Some(0));
    assert_eq!(String::from_utf8_lossy(&ended.stdout), "ours\nours\n", "one program for both files");
}

#[test]
fn the_first_unit_of_each_text_goes_on() {
    let room = Room::new(
        r#"
        name = "once"
        [source]
        lines = "in"
        [[stage]]
        name = "once"
        op = "unique"
        by = "{ext}"
        next = "first"
        else = "again"
        [[stage]]
        name = "first"
        op = "append"
        path = "firsts"
        line = "{ext}"
        next = "end"
        [[stage]]
        name = "again"
        op = "append"
        path = "others"
        line = "{line}"
        "#,
    );
    room.write("in", "a.x\nb.y\nc.x\nd.x\ne\n");
    ended(&room.run(&["run", "flow.toml"]), 0);
    let mut firsts: Vec<String> = room.read("firsts").lines().map(str::to_owned).collect();
    firsts.sort();
    assert_eq!(firsts, ["", "x", "y"]);
    assert_eq!(room.read("others").lines().count(), 2);
    let (out, _) = ended(&room.run(&["run", "flow.toml", "--dry-run"]), 0);
    assert!(out.contains("the first: on to first") && out.contains("not the first: on to again"), "{out}");
    let (out, _) = ended(&room.run(&["plan", "flow.toml"]), 0);
    assert!(out.contains("once, else → again"), "{out}");
}

#[test]
fn unique_keeps_the_first_that_comes_to_it() {
    let room = Room::new(
        r#"
        workers = 4
        [source]
        lines = "in"
        [[stage]]
        name = "once"
        op = "unique"
        by = "{line[..4]}"
        [[stage]]
        name = "list"
        op = "append"
        path = "firsts"
        line = "{line}"
        "#,
    );
    let lines: String = (0..200_000).map(|n| format!("{:04} {n}\n", n * 7919 % 5000)).collect();
    room.write("in", &lines);
    ended(&room.run(&["run", "-q", "flow.toml"]), 0);
    let firsts = room.read("firsts");
    assert_eq!(firsts.lines().count(), 5000);
    let of_later = |line: &&str| line[5..].parse::<u32>().unwrap() >= 5000;
    assert_eq!(firsts.lines().find(of_later), None, "the first 5000 lines have all the texts");
}

#[test]
fn a_program_that_gets_no_data_of_its_unit_is_warned_of() {
    let flow =
        |exec: &str| format!("[source]\nlines = \"-\"\n[[stage]]\nname = \"count\"\nop = \"exec\"\nexec = {exec}\n");
    let warning = "the program of `count` gets no data of the unit";
    let room = Room::new(&flow(r#"["wc", "-c"]"#));
    for command in ["run", "plan"] {
        let (out, err) = ended(&room.run(&[command, "flow.toml"]), 0);
        assert!((out + &err).contains(warning), "{command}");
    }
    let set = "[[stage]]\nname = \"set\"\nop = \"set\"\npayload = \"{line}\"\n[[stage]]\nname = \"count\"";
    for fed in [flow(r#"["wc", "-c", "{line}"]"#), flow(r#"["wc", "-c"]"#).replace("[[stage]]\nname = \"count\"", set)]
    {
        room.write("flow.toml", &fed);
        let (out, err) = ended(&room.run(&["plan", "flow.toml"]), 0);
        assert!(!(out + &err).contains(warning), "{fed}");
    }
}

/// A flow that compresses the files below `in`.
fn packing(memory: &str) -> String {
    format!(
        r#"
        memory = "{memory}"
        [source]
        walk = "in"
        [[stage]]
        name = "read"
        op = "read"
        [[stage]]
        name = "pack"
        op = "gzip"
        [[stage]]
        name = "write"
        op = "write"
        path = "packed/{{rel}}.gz"
        "#
    )
}

/// A flow that decompresses the files below `in` whose names end with `.gz`. The content of each may have at most
/// `max_bytes` bytes.
fn unpacking(memory: &str, max_bytes: &str) -> String {
    format!(
        r#"
        name = "unpacking"
        memory = "{memory}"
        [source]
        walk = "in"
        [[stage]]
        name = "read"
        op = "read"
        [[stage]]
        name = "unpack"
        op = "gzip"
        mode = "decompress"
        max_bytes = "{max_bytes}"
        [[stage]]
        name = "write"
        op = "write"
        path = "out/{{stem}}"
        "#
    )
}

#[test]
fn gzip_and_the_program_of_that_name_read_what_the_other_has_made() {
    let large: Vec<u8> = (0..1_500_000_u32).flat_map(|n| (n / 5).to_le_bytes()).collect();
    let files: [(&str, &[u8]); 4] = [("empty", b""), ("small", b"hello"), ("large", &large), ("more", &large)];
    for memory in ["1GiB", "1MiB"] {
        let room = Room::new(&packing(memory));
        fs::create_dir(room.path("in")).unwrap();
        for (name, content) in files {
            room.write(format!("in/{name}"), content);
        }
        ended(&room.run(&["run", "flow.toml"]), 0);
        for (name, content) in files {
            let packed = room.path(format!("packed/{name}.gz"));
            let output = Command::new("gzip").arg("-dc").arg(packed).output().unwrap();
            assert!(output.status.success() && output.stdout == content, "{name} with {memory}");
            let packed = Command::new("gzip").arg("-c").arg(room.path(format!("in/{name}"))).output().unwrap();
            room.write(format!("in/{name}.gz"), packed.stdout);
            fs::remove_file(room.path(format!("in/{name}"))).unwrap();
        }
        room.write("flow.toml", unpacking(memory, "100MiB"));
        ended(&room.run(&["run", "flow.toml"]), 0);
        for (name, content) in files {
            assert!(fs::read(room.path(format!("out/{name}"))).unwrap() == content, "{name} with {memory}");
        }
    }
}

#[test]
fn what_gzip_cannot_decompress_is_a_dead_letter() {
    let room = Room::new(&unpacking("1GiB", "4B"));
    fs::create_dir(room.path("in")).unwrap();
    room.write("in/much.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\x03\xcbH\xcd\xc9\xc9\x07\0\x86\xa6\x106\x05\0\0\0");
    room.write("in/text.gz", "text");
    ended(&room.run(&["run", "flow.toml"]), 1);
    let mut messages: Vec<String> =
        room.json_lines("unpacking.dead-letters.jsonl").iter().map(|letter| letter["message"].to_string()).collect();
    messages.sort();
    assert_eq!(messages.len(), 2);
    assert!(messages[0].contains("more than `max_bytes`, 4"), "{messages:?}");
    assert!(messages[1].contains("cannot decompress"), "{messages:?}");
    assert!(!room.path("out").exists());
}

#[test]
fn a_dry_run_shows_what_gzip_makes_and_runs_nothing_on_an_unknown_payload() {
    let room = Room::new(&packing("1GiB"));
    fs::create_dir(room.path("in")).unwrap();
    room.write("in/zeros", vec![0; 100_000]);
    let (out, _) = ended(&room.run(&["run", "flow.toml", "--dry-run"]), 0);
    let size = out.lines().find_map(|line| line.trim().strip_prefix("pack ")).expect("a line of the stage").trim();
    assert!(size.ends_with(" B") && out.contains("to packed/zeros.gz"), "{out}");
    let through = "op = \"exec\"\nexec = [\"cat\"]\n[[stage]]\nname = \"pack\"\nop = \"gzip\"";
    room.write("flow.toml", packing("1GiB").replace("op = \"gzip\"", through).replacen("\"pack\"", "\"cat\"", 1));
    let (out, _) = ended(&room.run(&["run", "flow.toml", "--dry-run"]), 0);
    assert!(out.contains("gzip of the result of cat, which is not known"), "{out}");
    assert!(!room.path("packed").exists());
}
