//! Runs on a file system on which any call may fail. The command's messages must be true, and its files must not be
//! damaged.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::{Arc, Mutex};

use millstream_verify_random::{Random, seed};

use crate::support::{Room, code, ended, text};
use crate::syscalls::{Answer, CHANGES, Call, answer};

const FILES: usize = 24;

/// Copies a tree with `write` and with a program. Lists the files in a fresh file, and in a file to which other runs
/// have written.
const COPY: &str = r#"
    name = "faulty"
    [source]
    walk = "from"
    [[stage]]
    name = "read"
    op = "read"
    [[stage]]
    name = "write"
    op = "write"
    path = "out/{rel}"
    skip_existing = true
    [[stage]]
    name = "cat"
    op = "exec"
    exec = ["cat"]
    stdout = { file = "made/{rel}" }
    [[stage]]
    name = "list"
    op = "append"
    path = "list"
    line = "{rel} of {size} bytes"
    fresh = true
    [[stage]]
    name = "log"
    op = "append"
    path = "log"
    line = "{rel} of {size} bytes"
"#;

const RUN: &[&str] = &["run", "flow.toml", "--report", "report.json"];

/// A room with a tree to copy, and the files of earlier runs.
fn room() -> Room {
    let room = Room::new(COPY);
    for file in 0..FILES {
        let name = format!("from/{}/{file}", file % 3);
        fs::create_dir_all(room.path(&name).parent().unwrap()).unwrap();
        room.write(&name, content(file));
    }
    room.write("log", "an earlier line\n");
    room.write("list", "an earlier list\n");
    room
}

fn content(file: usize) -> Vec<u8> {
    vec![b'a' + file as u8; file * file * 100]
}

fn line(file: usize) -> String {
    format!("{}/{file} of {} bytes", file % 3, file * file * 100)
}

/// Whether a call concerns a file that a run creates in its folder.
fn is_made(call: &Call, room: &Path) -> bool {
    let path = call.path.strip_prefix(room).unwrap_or(&call.path);
    // Pipes and sockets have no relative path, and are not files of the room.
    call.writes && path.is_relative() && !path.starts_with("runtime") && !path.to_string_lossy().contains(':')
}

/// Runs the command. `fault` answers the command's calls on the files that it creates. Returns `None` if this system
/// does not allow that.
fn run(room: &Room, mut fault: impl FnMut(&Call) -> Answer + Send + 'static) -> Option<Output> {
    let folder = room.path("").canonicalize().unwrap();
    let mut command = room.command(RUN);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let decide = move |call: &Call| if is_made(call, &folder) { fault(call) } else { Answer::Go };
    let (child, serving) = answer(&mut command, CHANGES, decide)?;
    let output = child.wait_with_output().unwrap();
    serving.join().unwrap();
    Some(output)
}

/// The numbers of `admitted A = retired R + dead-lettered D + left L`.
fn tally(err: &str) -> [usize; 4] {
    let line = err.lines().find(|line| line.contains("admitted ")).unwrap_or_else(|| panic!("no report: {err}"));
    let number = |word: &str| {
        let rest = &line[line.find(word).unwrap() + word.len()..];
        rest.split_whitespace().next().unwrap().replace(',', "").parse().unwrap()
    };
    ["admitted ", "retired ", "dead-lettered ", "left "].map(number)
}

/// All files below a folder, as paths relative to the folder.
fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(&entry.path()).into_iter().map(|below| format!("{name}/{below}")));
        } else {
            found.push(name);
        }
    }
    found
}

fn temporary(room: &Room) -> Vec<String> {
    files(&room.path("")).into_iter().filter(|name| name.contains(".millstream-")).collect()
}

/// Checks that every file under its final name is complete.
fn assert_whole(room: &Room) {
    for folder in ["out", "made"] {
        for name in files(&room.path(folder)).iter().filter(|name| !name.contains(".millstream-")) {
            let file: usize = name.rsplit('/').next().unwrap().parse().unwrap();
            assert!(fs::read(room.path(folder).join(name)).unwrap() == content(file), "{folder}/{name} is not whole");
        }
    }
}

/// The lines of a list. Each line must be whole.
fn lines(room: &Room, name: &str) -> Vec<String> {
    let text = room.read(name);
    assert!(text.is_empty() || text.ends_with('\n'), "{name}: {text:?}");
    let known: BTreeSet<String> = (0..FILES).map(line).collect();
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for line in &lines {
        assert!(
            line.starts_with("an earlier li") || line.trim().is_empty() || known.contains(line),
            "{name}: {line:?}"
        );
    }
    lines.into_iter().filter(|line| known.contains(line)).collect()
}

#[test]
fn whichever_call_fails_the_messages_are_true_and_the_files_sound() {
    const ERRORS: [i32; 6] = [libc::EIO, libc::ESTALE, libc::EDQUOT, libc::EROFS, libc::ENOSPC, libc::EINTR];
    let first = seed();
    for seed in first..first + 10 {
        let room = room();
        let mut random = Random::new(seed);
        let faults = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&faults);
        let mut full = BTreeSet::new();
        let Some(output) = run(&room, move |call| {
            let answer = if call.number == libc::SYS_write && full.remove(&call.path) {
                Answer::Fail(libc::ENOSPC)
            } else if random.below(16) != 0 {
                return Answer::Go;
            } else if call.number == libc::SYS_write && call.length > 1 && random.below(2) == 0 {
                if random.below(2) == 0 {
                    full.insert(call.path.clone());
                }
                Answer::Short(1 + random.below(call.length as u64 - 1) as usize)
            } else {
                Answer::Fail(ERRORS[random.below(ERRORS.len() as u64) as usize])
            };
            noted.lock().unwrap().push(format!("{call:?}: {answer:?}"));
            answer
        }) else {
            return;
        };
        let faults = faults.lock().unwrap().join("\n");
        let (err, status) = (text(&output.stderr), code(output.status));
        let said = format!("seed {seed}\n{err}\nfaults:\n{faults}");
        assert!(!err.contains("panicked"), "{said}");
        if status == 2 {
            // The run has refused to start because of the fault.
            assert!(err.contains("cannot be written") && err.contains("(os error "), "{said}");
            assert!(!room.path("out").exists(), "{said}");
            continue;
        }
        let [admitted, retired, dead, left] = tally(&err);
        assert_eq!((admitted, left), (retired + dead, 0), "{said}");
        let could_not = err.lines().any(|line| line.starts_with("error: "));
        let expected = if could_not { 4 } else { i32::from(dead > 0) };
        assert_eq!(status, expected, "{said}");
        // A part of a line remains if the file cannot be shortened and the part cannot be overwritten with blanks.
        let may_have_parts =
            [libc::SYS_ftruncate, libc::SYS_pwrite64].into_iter().all(|call| has_failed(&faults, call));
        for letter in err.lines().filter(|line| line.starts_with('{')).map(str::to_owned).chain(letters(&room)) {
            let letter: serde_json::Value = match serde_json::from_str(&letter) {
                Ok(letter) => letter,
                Err(_) if may_have_parts => continue,
                Err(error) => panic!("{error}: {letter}: {said}"),
            };
            let message = letter["message"].as_str().unwrap();
            assert!(message.contains("cannot ") && message.contains("(os error "), "{message}: {said}");
        }
        assert_whole(&room);
        assert!(room.read("log").starts_with("an earlier line\n"), "{said}");
        let names = files(&room.path(""));
        if !may_have_parts {
            assert_eq!(lines(&room, "log").len(), retired, "{said}");
            for name in names.iter().filter(|name| name.starts_with("list")) {
                lines(&room, name);
            }
        }
        assert!(names.iter().any(|name| name.starts_with("list") && room.read(name).contains("earlier")), "{said}");
        let may_stay = has_failed(&faults, libc::SYS_unlink);
        if !may_stay {
            assert_eq!(temporary(&room), [""; 0], "{said}");
        }
        // On a file system without faults, the next run does the remaining work. It also removes the temporary files of
        // this run that are in the list.
        ended(&room.run(RUN), 0);
        assert_whole(&room);
        let outputs = files(&room.path("out")).into_iter().filter(|name| !name.contains(".millstream-")).count();
        assert_eq!(outputs, FILES, "{said}");
        if !(may_stay && err.contains("its temporary files stay")) {
            assert_eq!(temporary(&room), [""; 0], "{said}");
        }
        assert_eq!(lines(&room, "list").len(), FILES, "{said}");
    }
}

fn has_failed(faults: &str, call: libc::c_long) -> bool {
    faults.lines().any(|fault| fault.contains(&format!("number: {call},")))
}

/// The letters in the file. A blank line replaces a part of a letter that could not be removed.
fn letters(room: &Room) -> Vec<String> {
    let text = fs::read_to_string(room.path("report.dead-letters.jsonl")).unwrap_or_default();
    text.lines().filter(|line| !line.trim().is_empty()).map(str::to_owned).collect()
}

/// Faults as if the disk were full for one line: only a part of the third line that is written to `name` fits. In
/// addition, calls with the number `refused` fail.
fn full_for_one_line(name: &'static str, refused: libc::c_long) -> impl FnMut(&Call) -> Answer + Send {
    let mut writes = 0;
    move |call| {
        let path = call.path.to_string_lossy();
        let lies_there = path.ends_with(name) || name == "list" && path.contains("/.millstream-");
        if call.number == refused && lies_there {
            return Answer::Fail(libc::EIO);
        }
        let of_a_line = call.number == libc::SYS_write && lies_there && call.length < 40;
        writes += usize::from(of_a_line);
        match (of_a_line, writes) {
            (true, 3) => Answer::Short(7),
            (true, 4) => Answer::Fail(libc::ENOSPC),
            _ => Answer::Go,
        }
    }
}

#[test]
fn a_line_that_does_not_fit_is_removed_and_the_next_follows_the_previous_one() {
    for name in ["log", "list"] {
        let room = room();
        fs::remove_file(room.path("list")).unwrap();
        room.write("flow.toml", LISTS);
        let Some(output) = run(&room, full_for_one_line(name, -1)) else { return };
        let (_, err) = ended(&output, 1);
        assert_eq!(tally(&err), [FILES, FILES - 1, 1, 0], "{err}");
        assert!(letters(&room)[0].contains("No space left on device (os error 28)"));
        room.take_partial("list");
        for name in ["log", "list"] {
            assert!(lines(&room, name).len() >= FILES - 1, "{}", room.read(name));
            assert!(!room.read(name).contains('\0') && !room.read(name).contains(" \n"), "{}", room.read(name));
        }
    }
}

#[test]
fn a_part_of_a_line_that_cannot_be_removed_becomes_a_blank_line() {
    let room = room();
    room.write("flow.toml", LISTS);
    let Some(output) = run(&room, full_for_one_line("log", libc::SYS_ftruncate)) else { return };
    ended(&output, 1);
    assert_eq!(lines(&room, "log").len(), FILES - 1);
    assert_eq!(room.read("log").lines().filter(|line| *line == "      ").count(), 1, "{}", room.read("log"));
}

#[test]
fn a_line_of_another_program_within_a_line_stays_and_the_line_is_written_again() {
    const FOREIGN: &str = "an earlier line than this one's end\n";
    for then in [Answer::Go, Answer::Short(3)] {
        let room = room();
        room.write("flow.toml", LISTS);
        let mut writes = 0;
        let Some(output) = run(&room, move |call| {
            if call.number != libc::SYS_write || !call.path.ends_with("log") {
                return Answer::Go;
            }
            writes += 1;
            match writes {
                3 => Answer::Short(7),
                4 => {
                    // This appends a line without a lock, like another program.
                    let mut log = fs::File::options().append(true).open(&call.path).unwrap();
                    log.write_all(FOREIGN.as_bytes()).unwrap();
                    then
                }
                _ => Answer::Go,
            }
        }) else {
            return;
        };
        let (_, err) = ended(&output, 0);
        assert_eq!(tally(&err), [FILES, FILES, 0, 0], "{err}");
        let log = room.read("log");
        assert_eq!(lines(&room, "log").len(), FILES, "{log}");
        assert!(log.contains(&format!("\n      \n{FOREIGN}")), "{log}");
    }
}

/// A flow that only writes lists.
const LISTS: &str = r#"
    name = "faulty"
    [source]
    walk = "from"
    [[stage]]
    name = "list"
    op = "append"
    path = "list"
    line = "{rel} of {size} bytes"
    fresh = true
    [[stage]]
    name = "log"
    op = "append"
    path = "log"
    line = "{rel} of {size} bytes"
"#;

#[test]
fn runs_that_append_to_one_file_keep_each_others_lines_on_a_full_disk() {
    let room = room();
    room.write(
        "flow.toml",
        LISTS.replace("path = \"list\"", "path = \"list-{input}\"").replace("\"from\"", "\"{input}\""),
    );
    let runs: Vec<_> = ["from", "./from"]
        .into_iter()
        .enumerate()
        .map_while(|(index, input)| {
            let letters = format!("letters-{index}");
            let mut command = room.command(&["run", "flow.toml", input, "--dead-letters", &letters]);
            command.stdout(Stdio::null()).stderr(Stdio::piped());
            let mut writes = index;
            let decide = move |call: &Call| {
                if call.number != libc::SYS_write || !call.path.ends_with("log") {
                    return Answer::Go;
                }
                writes += 1;
                match writes % 5 {
                    3 => Answer::Short(call.length / 2),
                    4 => Answer::Fail(libc::ENOSPC),
                    _ => Answer::Go,
                }
            };
            answer(&mut command, CHANGES, decide)
        })
        .collect();
    let mut retired = 0;
    for (child, serving) in runs {
        let (_, err) = ended(&child.wait_with_output().unwrap(), 1);
        serving.join().unwrap();
        retired += tally(&err)[1];
    }
    assert_eq!(lines(&room, "log").len(), retired);
}

#[test]
fn a_file_whose_close_fails_is_not_put_in_place() {
    let room = room();
    let Some(output) = run(&room, |call| {
        let of_out = call.path.to_string_lossy().contains("/out/");
        if of_out && call.number == libc::SYS_close { Answer::Fail(libc::EDQUOT) } else { Answer::Go }
    }) else {
        return;
    };
    let (_, err) = ended(&output, 1);
    assert_eq!(tally(&err), [FILES, 0, FILES, 0], "{err}");
    assert_eq!(files(&room.path("out")), [""; 0]);
    let quota = format!("(os error {})", libc::EDQUOT);
    assert!(letters(&room).iter().all(|letter| letter.contains("cannot write out/") && letter.contains(&quota)));
}

/// Whether the system has no user except root, or does not let root act as another user, as in some containers.
fn is_one_user(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::PermissionDenied)
}

#[test]
fn two_users_of_a_sticky_folder_keep_their_own_files() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can be two users");
        return;
    }
    let [one, other] = [60_001, 60_002];
    let room = Room::new(
        r#"
        name = "sticky"
        [source]
        args = true
        [[stage]]
        name = "log"
        op = "append"
        path = "shared/log"
        line = "{line}"
        [[stage]]
        name = "read"
        op = "read"
        path = "flow.toml"
        [[stage]]
        name = "write"
        op = "write"
        path = "shared/file"
        overwrite = true
        "#,
    );
    fs::create_dir(room.path("shared")).unwrap();
    for (name, mode) in [("", 0o755), ("shared", 0o1777), ("runtime", 0o777)] {
        fs::set_permissions(room.path(name), fs::Permissions::from_mode(mode)).unwrap();
    }
    for (name, mode) in [("shared/log", 0o666), ("shared/file", 0o644)] {
        room.write(name, "theirs\n");
        fs::set_permissions(room.path(name), fs::Permissions::from_mode(mode)).unwrap();
        match std::os::unix::fs::chown(room.path(name), Some(one), Some(one)) {
            Err(error) if is_one_user(&error) => {
                println!("skipped: a file cannot be given to another user: {error}");
                return;
            }
            given => given.unwrap(),
        }
    }
    let mut command = room.command(&["run", "flow.toml", "line", "--dead-letters", "shared/letters.jsonl"]);
    let output = match command.uid(other).gid(other).output() {
        Err(error) if is_one_user(&error) => {
            println!("skipped: the command cannot be run by another user: {error}");
            return;
        }
        output => output.unwrap(),
    };
    ended(&output, 1);
    assert_eq!(room.read("shared/log"), "theirs\nline\n");
    assert_eq!(room.read("shared/file"), "theirs\n");
    let letter = &room.json_lines("shared/letters.jsonl")[0];
    assert!(
        letter["message"].as_str().unwrap().contains("cannot write shared/file: Operation not permitted"),
        "{letter}"
    );
    assert_eq!(temporary(&room), [""; 0]);
}
