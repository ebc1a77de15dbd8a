//! `millstream slab`.

use std::os::unix::fs::{FileExt, PermissionsExt};

use millstream_command::hex;
use millstream_slab::{RawSlab, Slab};

use crate::support::Room;

fn run(room: &Room, args: &[&str]) -> (i32, String, String) {
    let output = room.command(args).output().expect("the command runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().expect("it ends by itself"), text(&output.stdout), text(&output.stderr))
}

#[test]
fn a_slab_is_made_inspected_and_dumped() {
    let room = Room::new("");
    let made = ["slab", "create", "pool", "--object", "16", "--objects", "1000", "--tag", "7", "--capacity", "10"];
    assert_eq!(run(&room, &made), (0, String::new(), String::new()));
    let (status, _, error) = run(&room, &made);
    assert_eq!(status, 2);
    assert!(error.contains("pool exists already"), "{error}");

    let slab = RawSlab::open(room.path("pool")).expect("the slab");
    let cache = slab.cache().expect("a cache");
    let mut object = cache.alloc().expect("an object");
    object.copy_from_slice(b"sixteen bytes !!");
    let handle = object.publish();
    let private = cache.alloc().expect("an object");

    let (status, text, _) = run(&room, &["slab", "stat", "pool", "--json"]);
    let facts: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(status, 0);
    for (name, value) in
        [("published", 1), ("held", 1), ("tag", 7), ("capacity", 10), ("caches", 1), ("living_caches", 1)]
    {
        assert_eq!(facts[name], value, "{name} in {text}");
    }
    let (_, text, _) = run(&room, &["slab", "stat", "pool"]);
    assert!(text.lines().any(|line| line.split_whitespace().eq(["published", "1"])), "{text}");

    let (status, text, _) = run(&room, &["slab", "dump", "pool"]);
    assert_eq!(status, 0);
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(lines.len(), 2, "{text}");
    let shown = lines.iter().find(|line| line[0] == handle.index().to_string()).expect("the published one");
    assert_eq!(shown[3..], ["published", "0", "7369787465656e206279746573202121"], "{text}");
    let (_, text, _) = run(&room, &["slab", "dump", "pool", "--json"]);
    let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let pid = std::process::id();
    assert!(lines.iter().any(|line| line["holder"] == format!("process {pid}") && line["bytes"].is_null()), "{text}");
    drop(private);
    drop(cache);

    let (status, text, _) = run(&room, &["slab", "check", "pool"]);
    assert_eq!((status, &*text), (0, "sound: 1 of 1000 objects are allocated\n"));
}

#[test]
fn a_file_that_is_not_a_slab_is_refused_with_a_reason() {
    let room = Room::new("");
    room.write(
        "text",
        "this is a text and not a slab, and it is longer than a header of a hundred bytes would be at most",
    );
    Slab::<u64>::options(1000).create(room.path("cut")).expect("a slab");
    let file = std::fs::File::options().write(true).open(room.path("cut")).expect("the slab");
    file.set_len(5000).expect("a shorter file");
    for (file, reason) in [("text", "not a slab"), ("cut", "cut off"), ("missing", "No such file")] {
        for verb in ["stat", "check", "dump", "recover"] {
            let (status, _, error) = run(&room, &["slab", verb, file]);
            assert_eq!(status, 2, "{verb} {file}");
            assert!(error.contains(reason), "{verb} {file}: {error}");
        }
    }
    let (status, _, error) = run(&room, &["slab", "create", "bad", "--object", "8", "--objects", "0"]);
    assert_eq!(status, 2);
    assert!(error.contains("max_objects is 0"), "{error}");
}

#[test]
fn the_remains_of_a_crash_are_shown_and_recovered_only_by_recover() {
    let room = Room::new("");
    let path = room.path("pool");
    let made = ["slab", "create", "pool", "--object", "8", "--objects", "100", "--owners", "--mode", "640"];
    assert_eq!(run(&room, &made), (0, String::new(), String::new()));
    let mode = std::fs::metadata(&path).expect("the slab").permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    let slab = Slab::<u64>::open(&path).expect("the slab");
    {
        let cache = slab.cache().expect("a cache");
        cache.set_owner(4711);
        cache.alloc(1).expect("an object").publish();
        std::mem::forget(cache.alloc(2).expect("an object"));
        cache.set_owner(4712);
        cache.alloc(3).expect("an object").publish();
    }
    let before = std::fs::read(&path).expect("the slab");
    let (_, text, _) = run(&room, &["slab", "dump", "pool", "--owner", "4711"]);
    assert_eq!(text.lines().count(), 1, "{text}");
    let (status, text, _) = run(&room, &["slab", "check", "pool"]);
    assert_eq!((status, &*text), (0, "sound: 3 of 100 objects are allocated\n"));
    assert_eq!(std::fs::read(&path).expect("the slab"), before, "looking changes nothing");
    drop(slab);
    let (status, text, _) = run(&room, &["slab", "recover", "pool"]);
    assert_eq!(status, 0);
    assert!(text.lines().any(|line| line.split_whitespace().eq(["recovered_orphans", "1"])), "{text}");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).expect("other permissions");
    let (status, _, error) = run(&room, &["slab", "recover", "pool"]);
    assert_eq!(status, 2);
    assert!(error.contains("mode 666") && error.contains("--trust-others"), "{error}");
    assert_eq!(run(&room, &["slab", "recover", "pool", "--trust-others"]).0, 0);
    let (_, text, _) = run(&room, &["slab", "dump", "pool", "--orphans"]);
    assert!(text.contains("\torphan\t4712\t0200000000000000"), "{text}");
}

#[test]
fn problems_are_printed_and_are_the_exit_status_although_the_slab_cannot_be_opened() {
    let room = Room::new("");
    let path = room.path("pool");
    let slab = Slab::<u64>::options(100).chain(4).create(&path).expect("a slab");
    let cache = slab.cache().expect("a cache");
    let handle = cache.alloc(5).expect("an object").publish();
    drop((0..20).map(|n| cache.alloc(n).expect("an object")).collect::<Vec<_>>());
    drop(cache);
    drop(slab);
    let file = std::fs::File::options().read(true).write(true).open(&path).expect("the slab");
    // The words begin after the header and the slots. One word gets a senseless value, and another an invalid index.
    let word = |index: u64| 4096 + 8192 + 8 * index;
    file.write_all_at(&0x7fff_ffff_u64.to_le_bytes(), word(50)).expect("a word");
    file.write_all_at(&(9_u64 << 16).to_le_bytes(), word(51)).expect("a word");
    let (status, text, _) = run(&room, &["slab", "check", "pool"]);
    assert_eq!(status, 1, "{text}");
    assert!(text.contains("the word of object 50 makes no sense"), "{text}");
    assert!(text.contains("object 51 is free and lost"), "{text}");
    let (status, text, _) = run(&room, &["slab", "dump", "pool"]);
    assert_eq!((status, text.lines().count()), (0, 1), "what is sound can be saved: {text}");
    assert!(text.contains(&hex::encode(bytemuck::bytes_of(&handle))), "{text}");
    let (status, _, error) = run(&room, &["slab", "recover", "pool"]);
    assert_eq!(status, 2);
    assert!(error.contains("(50)"), "{error}");
}
