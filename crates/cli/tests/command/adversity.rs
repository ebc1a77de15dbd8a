//! Adverse machines and inputs: files that cannot be read, names that are not UTF-8, empty inputs, inputs larger than
//! the byte budget, and a file that is not a flow file.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::support::{Room, ended};

/// Reads the files named by lines, and lists their hashes.
const HASH_LINES: &str = r#"
name = "hash"
[source]
lines = "{input}"
[[stage]]
name = "read"
op = "read"
[[stage]]
name = "hash"
op = "blake3"
[[stage]]
name = "list"
op = "append"
path = "list"
line = "{blake3} {size} {line}"
"#;

/// Copies a tree.
const COPY: &str = r#"
name = "copy"
[source]
walk = "{input}"
[[stage]]
name = "read"
op = "read"
[[stage]]
name = "hash"
op = "blake3"
[[stage]]
name = "write"
op = "write"
path = "out/{rel}"
"#;

#[test]
fn an_unreadable_file_is_a_dead_letter_and_the_others_go_on() {
    let room = Room::new(HASH_LINES);
    room.write("sound", "content");
    fs::create_dir(room.path("folder")).unwrap();
    symlink("nowhere", room.path("dangling")).unwrap();
    room.write("in", "folder\nsound\ndangling\nmissing\nsound\n");
    let (out, err) = ended(&room.run(&["run", "flow.toml", "in"]), 1);
    assert_eq!(out, "");
    assert!(err.contains("admitted 5 = retired 2 + dead-lettered 3 + left 0"), "{err}");
    assert!(err.contains("hash.dead-letters.jsonl"), "{err}");
    let hash = blake3::hash(b"content").to_hex();
    assert_eq!(room.read("list"), format!("{hash} 7 sound\n").repeat(2));
    let mut letters = room.json_lines("hash.dead-letters.jsonl");
    letters.sort_by_key(|letter| letter["unit"].as_u64());
    let reasons = [("folder", "a folder"), ("dangling", "No such file"), ("missing", "No such file")];
    assert_eq!(letters.len(), reasons.len());
    for (letter, (line, reason)) in letters.iter().zip(reasons) {
        assert_eq!((&letter["line"], &letter["stage"]), (&line.into(), &"read".into()));
        assert!(letter["message"].as_str().unwrap().contains(reason), "{letter}");
    }
}

#[test]
fn a_path_that_is_not_utf_8_goes_through_every_stage_unchanged() {
    let room = Room::new(COPY);
    let name = Path::new("tree").join(OsStr::from_bytes(b"caf\xe9 \n\xff"));
    fs::create_dir(room.path("tree")).unwrap();
    room.write(&name, "content");
    ended(&room.run(&["run", "flow.toml", "tree"]), 0);
    let copy = room.path("out").join(name.file_name().unwrap());
    assert_eq!(fs::read(copy).unwrap(), b"content");
}

#[test]
fn an_empty_folder_and_an_empty_standard_input_are_runs_of_no_units() {
    let room = Room::new(COPY);
    fs::create_dir(room.path("tree")).unwrap();
    let (_, err) = ended(&room.run(&["run", "flow.toml", "tree"]), 0);
    assert!(err.contains("admitted 0 = retired 0 + dead-lettered 0 + left 0"), "{err}");
    assert!(!room.path("out").exists());
    let room = Room::new(&HASH_LINES.replace("{input}", "-"));
    let (_, err) = ended(&room.run(&["run", "flow.toml"]), 0);
    assert!(err.contains("admitted 0 = retired 0 + dead-lettered 0 + left 0"), "{err}");
}

#[test]
fn random_bytes_are_no_flow_and_nothing_runs() {
    let room = Room::new(COPY);
    fs::create_dir(room.path("tree")).unwrap();
    for seed in 0..8 {
        let mut bytes = vec![0; 4096];
        blake3::Hasher::new().update(&[seed]).finalize_xof().fill(&mut bytes);
        room.write("random.toml", &bytes);
        let (out, err) = ended(&room.run(&["run", "random.toml", "tree"]), 2);
        assert_eq!(out, "");
        assert!(err.contains("random.toml is not a flow file"), "{err}");
        // The same bytes, mapped to printable characters, which the parser does not reject at once.
        let text: String = bytes.iter().map(|byte| char::from(b' ' + byte % 95)).collect();
        room.write("random.toml", text);
        let (_, err) = ended(&room.run(&["run", "random.toml", "tree"]), 2);
        assert!(err.contains("this is not TOML"), "{err}");
    }
}

#[test]
fn bytes_in_flight_stay_within_the_budget() {
    const FILES: usize = 128;
    const SIZE: usize = 512 << 10;
    const BUDGET: u64 = 4 << 20;
    let room = Room::new(COPY);
    fs::create_dir(room.path("tree")).unwrap();
    for file in 0..FILES {
        let first = u8::try_from(file).unwrap();
        room.write(format!("tree/{file}"), [vec![first], vec![0; SIZE - 1]].concat());
    }
    let output = room.run(&["run", "flow.toml", "tree", "--memory", "4MiB", "--report", "report.json"]);
    let (_, err) = ended(&output, 0);
    assert!(err.contains(&format!("retired {FILES} ")), "{err}");
    let report = room.json("report.json");
    let peak = report["peak_bytes_in_flight"].as_u64().unwrap();
    assert!((SIZE as u64..=BUDGET).contains(&peak), "{peak} bytes in flight");
    assert_eq!((&report["memory_cap"], &report["oversize"]), (&BUDGET.into(), &0.into()));
    for file in 0..FILES {
        let copy = fs::read(room.path(format!("out/{file}"))).unwrap();
        assert!(copy.len() == SIZE && usize::from(copy[0]) == file, "file {file}");
    }
}
