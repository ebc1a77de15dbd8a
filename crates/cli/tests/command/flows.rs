//! The ready flows in `flows/`, run on real files, do what their comments promise.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::{Room, ended, peak_bytes};

const ARCHIVE: &str = include_str!("../../../../flows/archive.toml");
const VERIFY: &str = include_str!("../../../../flows/verify.toml");
const COMMANDS: &str = include_str!("../../../../flows/commands.toml");
const UNARCHIVE: &str = include_str!("../../../../flows/unarchive.toml");
const LINES: &str = include_str!("../../../../flows/lines.toml");
const FETCH: &str = include_str!("../../../../flows/fetch.toml");

/// A room with a flow and a folder `in`. The folder has various files, and two of the files are equal.
fn room_with_files(flow: &str) -> Room {
    let room = Room::new(flow);
    let strange = OsStr::from_bytes(b"in/not \xFF text\n.bin");
    fs::create_dir_all(room.path("in/deep/er")).unwrap();
    room.write("in/a.txt", "some text\n".repeat(1000));
    room.write("in/deep/same as a", "some text\n".repeat(1000));
    room.write("in/deep/er/$(touch oops)", "x");
    room.write("in/empty", "");
    room.write("in/large", (0..300_000_u32).flat_map(u32::to_le_bytes).collect::<Vec<u8>>());
    room.write(strange, [0, 255, 0]);
    room
}

/// The regular files below a folder: their paths relative to the folder, and their contents.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                found.insert(path.strip_prefix(folder).unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// A path as a JSON string. A byte that is not UTF-8 becomes a lone surrogate.
fn json_string(path: &Path) -> String {
    let chunks = path.as_os_str().as_bytes().utf8_chunks();
    let inner: String = chunks
        .map(|chunk| {
            let valid = serde_json::to_string(chunk.valid()).expect("text is JSON");
            let invalid: String = chunk.invalid().iter().map(|byte| format!("\\udc{byte:02x}")).collect();
            format!("{}{invalid}", &valid[1..valid.len() - 1])
        })
        .collect();
    format!("\"{inner}\"")
}

/// The lines of an archive's manifest. They are sorted, because units arrive in any order.
fn manifest(room: &Room, archive: &str) -> Vec<String> {
    let mut lines: Vec<String> = room.read(&format!("{archive}/manifest.jsonl")).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn an_archive_has_every_content_once_and_every_file_in_its_manifest() {
    let room = room_with_files(ARCHIVE);
    ended(&room.run(&["run", "flow.toml", "in", "-p", "out=out"]), 0);
    let input = files(&room.path("in"));
    let contents: BTreeSet<&Vec<u8>> = input.values().collect();
    let objects = files(&room.path("out/objects"));
    assert_eq!(objects.len(), contents.len(), "equal contents are stored once");
    for (path, compressed) in &objects {
        let content = zstd::decode_all(compressed.as_slice()).unwrap();
        let hash = blake3::hash(&content).to_hex();
        assert_eq!(path, Path::new(&format!("{}/{hash}.zst", &hash[..2])));
        assert!(contents.contains(&content));
    }
    let mut expected: Vec<String> = input
        .iter()
        .map(|(path, content)| {
            let (name, rel) = (json_string(&Path::new("in").join(path)), json_string(path));
            let (size, hash) = (content.len(), blake3::hash(content).to_hex());
            let mode = fs::metadata(room.path("in").join(path)).unwrap().mode() & 0o7777;
            format!("{{\"path\":{name},\"rel\":{rel},\"size\":{size},\"mode\":\"{mode:o}\",\"blake3\":\"{hash}\"}}")
        })
        .collect();
    expected.sort();
    assert_eq!(manifest(&room, "out"), expected);
    assert_eq!(files(&room.path("out")).len(), objects.len() + 1, "nothing temporary is left");
}

#[test]
fn a_second_archive_run_stores_nothing_new() {
    let room = room_with_files(ARCHIVE);
    let identities = || {
        let identity = |path: &PathBuf| {
            let found = fs::metadata(room.path("out/objects").join(path)).unwrap();
            (path.clone(), found.ino(), found.mtime(), found.mtime_nsec())
        };
        files(&room.path("out/objects")).keys().map(identity).collect::<Vec<_>>()
    };
    ended(&room.run(&["run", "flow.toml", "in", "-p", "out=out"]), 0);
    let (objects, lines) = (identities(), manifest(&room, "out"));
    ended(&room.run(&["run", "flow.toml", "in", "-p", "out=out", "--report", "report.json"]), 0);
    assert_eq!(identities(), objects);
    assert_eq!(manifest(&room, "out"), lines);
    let report = room.json("report.json");
    let zstd = report["stages"].as_array().unwrap().iter().find(|stage| stage["name"] == "zstd").unwrap();
    assert_eq!(zstd["units"], 0, "nothing was compressed for nothing");
}

#[test]
fn an_archive_within_the_archived_folder_does_not_archive_itself() {
    let room = room_with_files(ARCHIVE);
    for _ in 0..2 {
        ended(&room.run(&["run", "flow.toml", "in", "-p", "out=in/archive"]), 0);
        assert_eq!(manifest(&room, "in/archive").len(), 6);
    }
    let (_, err) = ended(&room.run(&["run", "flow.toml", "in", "-p", "out=in"]), 2);
    assert!(err.contains("nothing is left to walk"), "{err}");
}

#[test]
fn verify_accepts_a_sound_archive_and_finds_every_flipped_byte_and_missing_object() {
    let room = room_with_files(ARCHIVE);
    ended(&room.run(&["run", "flow.toml", "in", "-p", "out=out"]), 0);
    room.write("verify.toml", VERIFY);
    let verify = ["run", "verify.toml", "out", "--dead-letters", "dead.jsonl"];
    ended(&room.run(&verify), 0);
    assert!(!room.path("dead.jsonl").exists());

    for (object, sound) in files(&room.path("out/objects")) {
        let hash = object.file_stem().unwrap().to_str().unwrap();
        let files_with_it = manifest(&room, "out").iter().filter(|line| line.contains(hash)).count();
        let path = room.path("out/objects").join(&object);
        let at = sound.len() - 1;
        let mut flipped = sound.clone();
        flipped[at] ^= 0x10;
        for broken in [Some(flipped), Some(sound[..at].to_vec()), None] {
            match broken {
                Some(content) => fs::write(&path, content).unwrap(),
                None => fs::remove_file(&path).unwrap(),
            }
            let (_, err) = ended(&room.run(&verify), 1);
            assert!(room.path("dead.jsonl").exists(), "{err}");
            let letters = room.json_lines("dead.jsonl");
            assert_eq!(letters.len(), files_with_it, "{}", object.display());
            assert!(letters.iter().all(|letter| letter["line"].as_str().unwrap().contains(hash)));
            fs::remove_file(room.path("dead.jsonl")).unwrap();
        }
        fs::write(&path, sound).unwrap();
    }
    ended(&room.run(&verify), 0);
}

#[test]
fn commands_compresses_every_file_but_compressed_ones() {
    let room = room_with_files(COMMANDS);
    room.write("in/old.gz", "left out");
    ended(&room.run(&["run", "flow.toml", "in", "-p", "out=out"]), 0);
    let mut expected = files(&room.path("in"));
    expected.remove(Path::new("old.gz"));
    let compressed = files(&room.path("out"));
    assert_eq!(compressed.len(), expected.len());
    for (path, content) in expected {
        let mut name = path.into_os_string();
        name.push(".gz");
        assert_eq!(gunzip(&compressed[Path::new(&name)]), content, "{}", name.display());
    }
    assert!(!room.path("oops").exists(), "a file's name is no command");
}

fn gunzip(compressed: &[u8]) -> Vec<u8> {
    let mut child = Command::new("gzip").arg("-dc").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(compressed).unwrap());
        child.wait_with_output().unwrap().stdout
    })
}

/// A server that counts how many requests it serves at once.
struct Server {
    address: SocketAddr,
    most_at_once: Arc<AtomicUsize>,
    requests: Arc<AtomicUsize>,
}

impl Server {
    /// Starts the server. The body of each response is the requested path. The path `/none` gets status 404, and the
    /// first two requests for `/late` get status 503.
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server =
            Self { address: listener.local_addr().unwrap(), most_at_once: Arc::default(), requests: Arc::default() };
        let (most, requests) = (Arc::clone(&server.most_at_once), Arc::clone(&server.requests));
        thread::spawn(move || {
            let (at_once, late): (Arc<AtomicUsize>, Arc<AtomicUsize>) = Default::default();
            for stream in listener.incoming() {
                let (mut stream, most, requests) = (stream.unwrap(), Arc::clone(&most), Arc::clone(&requests));
                let (at_once, late) = (Arc::clone(&at_once), Arc::clone(&late));
                thread::spawn(move || {
                    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
                    while let Some(request) = lines.next() {
                        while lines.next().is_some_and(|header| !header.is_empty()) {}
                        most.fetch_max(at_once.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        requests.fetch_add(1, Ordering::SeqCst);
                        thread::sleep(Duration::from_millis(5));
                        let path = request.split(' ').nth(1).unwrap_or("").to_owned();
                        let status = match path.as_str() {
                            "/none" => "404 Not Found",
                            "/late" if late.fetch_add(1, Ordering::SeqCst) < 2 => "503 Service Unavailable",
                            _ => "200 OK",
                        };
                        at_once.fetch_sub(1, Ordering::SeqCst);
                        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{path}", path.len());
                        if stream.write_all(answer.as_bytes()).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        server
    }
}

#[test]
fn fetch_stores_every_page_two_requests_a_host_at_once_and_tries_again() {
    let room = Room::new(FETCH);
    let servers = [Server::start(), Server::start(), Server::start()];
    let mut urls = String::new();
    for server in &servers {
        for page in 0..20 {
            urls += &format!("http://{}/page/{page}?q={page}\n", server.address);
        }
    }
    urls += &format!("http://{0}/late\nhttp://{0}/none\nno url at all\n", servers[0].address);
    room.write("urls", urls);
    let (_, err) = ended(&room.run(&["run", "flow.toml", "urls", "-p", "out=out", "--dead-letters", "dead.jsonl"]), 1);
    assert!(err.contains("2 units dead-lettered"), "{err}");

    for server in &servers {
        let most = server.most_at_once.load(Ordering::SeqCst);
        assert!((1..=2).contains(&most), "{most} requests at once");
    }
    assert_eq!(servers[0].requests.load(Ordering::SeqCst), 20 + 3 + 1, "the late page is asked for three times");
    let lists = fs::read_dir(room.path("out")).unwrap().flatten().map(|entry| entry.path());
    let list = lists.into_iter().find(|path| path.extension().is_some_and(|ending| ending == "partial")).unwrap();
    fs::rename(list, room.path("out/pages.jsonl")).expect("a list that lacks units has no such name");
    let pages = files(&room.path("out"));
    assert_eq!(pages.len(), 61 + 1, "every page is a file, and there is a list");
    for (path, content) in &pages {
        if path != Path::new("pages.jsonl") {
            let name = path.file_name().unwrap().to_str().unwrap();
            assert!(name.starts_with(&blake3::hash(content).to_hex()[..12]), "{name}");
        }
    }
    assert_eq!(room.json_lines("out/pages.jsonl").len(), 61);
    let mut dead: Vec<String> =
        room.json_lines("dead.jsonl").iter().map(|letter| letter["line"].as_str().unwrap().to_owned()).collect();
    dead.sort();
    assert_eq!(dead, [format!("http://{}/none", servers[0].address), "no url at all".to_owned()]);
}

#[test]
fn a_second_archive_run_repairs_damaged_objects() {
    let room = room_with_files(ARCHIVE);
    let archive = ["run", "flow.toml", "in", "-p", "out=out"];
    ended(&room.run(&archive), 0);
    let sound = files(&room.path("out/objects"));
    for (object, packed) in &sound {
        let path = room.path("out/objects").join(object);
        let mut flipped = packed.clone();
        flipped[packed.len() - 1] ^= 0x10;
        for damaged in [&[][..], &packed[..packed.len() - 1], &flipped] {
            fs::write(&path, damaged).unwrap();
            ended(&room.run(&archive), 0);
            assert!(files(&room.path("out/objects")) == sound, "{} after {} bytes", object.display(), damaged.len());
        }
        fs::remove_file(&path).unwrap();
        symlink("/nowhere/at/all", &path).unwrap();
        ended(&room.run(&archive), 0);
        assert!(fs::symlink_metadata(&path).unwrap().is_file());
    }
    assert!(files(&room.path("out/objects")) == sound);
}

#[test]
fn an_archive_is_restored_with_names_contents_and_permissions() {
    let room = room_with_files(ARCHIVE);
    room.write("unarchive.toml", UNARCHIVE);
    for (name, mode) in [("in/a.txt", 0o640), ("in/deep/same as a", 0o755), ("in/empty", 0o444), ("in/large", 0o600)] {
        fs::set_permissions(room.path(name), PermissionsExt::from_mode(mode)).unwrap();
    }
    symlink("a.txt", room.path("in/link")).unwrap();
    fs::create_dir(room.path("in/hollow")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        room.path("in/pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let (_, err) = ended(&room.run(&["run", "flow.toml", "in", "-p", "out=out"]), 0);
    assert!(err.contains("left out by the walk, which takes files: 1 symbolic link, 1 pipe, 1 empty folder"), "{err}");
    ended(&room.run(&["run", "-q", "unarchive.toml", "out", "-p", "out=back"]), 0);
    for name in ["in/link", "in/pipe"] {
        fs::remove_file(room.path(name)).unwrap();
    }
    assert_eq!(files(&room.path("in")), files(&room.path("back")));
    for path in files(&room.path("in")).keys() {
        let mode = |folder: &str| fs::metadata(room.path(folder).join(path)).unwrap().mode();
        assert_eq!(mode("in"), mode("back"), "{}", path.display());
    }
    // Existing files are kept, missing files are restored, and a damaged object produces no file.
    fs::remove_file(room.path("back/empty")).unwrap();
    room.write("back/large", "mine");
    ended(&room.run(&["run", "-q", "unarchive.toml", "out", "-p", "out=back"]), 0);
    assert_eq!((room.read("back/empty"), room.read("back/large")), (String::new(), "mine".to_owned()));
    let (object, _) = files(&room.path("out/objects")).into_iter().max_by_key(|(_, packed)| packed.len()).unwrap();
    room.write(Path::new("out/objects").join(object), "junk");
    fs::remove_file(room.path("back/large")).unwrap();
    ended(&room.run(&["run", "-q", "unarchive.toml", "out", "-p", "out=back"]), 1);
    assert!(!room.path("back/large").exists());
}

#[test]
fn an_archive_keeps_private_files_private() {
    let room = room_with_files(ARCHIVE);
    let source = room.path("in/large");
    fs::set_permissions(&source, PermissionsExt::from_mode(0o600)).unwrap();
    let hash = blake3::hash(&fs::read(&source).unwrap()).to_hex();
    ended(&room.run(&["run", "flow.toml", "in", "-p", "out=out"]), 0);
    let object = fs::metadata(room.path(format!("out/objects/{}/{hash}.zst", &hash[..2]))).unwrap();
    assert_eq!(object.mode() & 0o777, 0o600);
}

#[test]
fn files_of_any_size_are_archived_and_verified_in_little_memory() {
    const MIB: u64 = 1 << 20;
    let room = Room::new(ARCHIVE);
    room.write("verify.toml", VERIFY);
    fs::create_dir(room.path("in")).unwrap();
    File::create(room.path("in/sparse")).unwrap().set_len(400 * MIB).unwrap();
    let mut noise = blake3::Hasher::new().finalize_xof();
    let mut file = File::create(room.path("in/noise")).unwrap();
    let mut piece = vec![0; 1 << 20];
    for _ in 0..100 {
        noise.fill(&mut piece);
        file.write_all(&piece).unwrap();
    }
    drop(file);
    for args in [
        &["run", "--memory", "8MiB", "flow.toml", "in", "-p", "out=out"][..],
        &["run", "--memory", "8MiB", "flow.toml", "in", "-p", "out=out"],
        &["run", "--memory", "8MiB", "verify.toml", "out"],
    ] {
        let child = room.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let peak = peak_bytes(child, 0);
        // The 64 MiB are for the program and, for each worker, a compressor with its window.
        assert!(peak < 8 * MIB + 64 * MIB, "{} MiB: {args:?}", peak / MIB);
    }
    let mut sizes = Vec::new();
    for line in room.json_lines("out/manifest.jsonl") {
        let hash = line["blake3"].as_str().unwrap();
        let object = fs::read(room.path(format!("out/objects/{}/{hash}.zst", &hash[..2]))).unwrap();
        let content = zstd::decode_all(object.as_slice()).unwrap();
        assert_eq!(blake3::hash(&content).to_hex().as_str(), hash);
        sizes.push(content.len() as u64);
    }
    sizes.sort_unstable();
    assert_eq!(sizes, [100 * MIB, 400 * MIB]);
}

#[test]
fn verify_takes_no_more_of_an_object_than_its_manifest_says() {
    let room = Room::new(VERIFY);
    let hash = "ab".repeat(32);
    fs::create_dir_all(room.path("out/objects/ab")).unwrap();
    let mut bomb = zstd::Encoder::new(Vec::new(), 19).unwrap();
    for _ in 0..1000 {
        bomb.write_all(&vec![0; 1 << 20]).unwrap();
    }
    room.write(format!("out/objects/ab/{hash}.zst"), bomb.finish().unwrap());
    for size in ["5", "5000000000"] {
        room.write("out/manifest.jsonl", format!("{{\"path\":\"p\",\"size\":{size},\"blake3\":\"{hash}\"}}\n"));
        let args = ["run", "--memory", "64MiB", "flow.toml", "out", "--dead-letters", "dead.jsonl"];
        let child = room.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let peak = peak_bytes(child, 1);
        assert!(peak < 128 << 20, "{} MiB", peak >> 20);
        let message = room.json_lines("dead.jsonl")[0]["message"].as_str().unwrap().to_owned();
        let expected = if size == "5" { "more than `max_bytes`, 5" } else { "size is 1048576000, expected 5000000000" };
        assert!(message.contains(expected), "{message}");
        fs::remove_file(room.path("dead.jsonl")).unwrap();
    }
}

#[test]
fn the_folder_of_a_process_is_archived_as_far_as_it_can_be_read() {
    let room = Room::new(ARCHIVE);
    let args = ["run", "--memory", "16MiB", "flow.toml", "/proc/self", "-p", "out=out", "--dead-letters", "dead.jsonl"];
    let child = room.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let peak = peak_bytes(child, 1);
    assert!(peak < 80 << 20, "{} MiB", peak >> 20);
    let letters = room.json_lines("dead.jsonl");
    let endless = letters.iter().find(|letter| letter["path"] == "/proc/self/pagemap").unwrap();
    assert!(endless["message"].as_str().unwrap().contains("it goes on for more than"), "{endless}");
    assert!(!files(&room.path("out/objects")).is_empty());
}

#[test]
fn lines_go_to_the_file_of_their_service() {
    let room = Room::new(LINES);
    room.write(
        "log",
        concat!(
            r#"{"service":"shop","level":"Error","ms":8,"message":"a \"b\""}"#,
            "\n",
            r#"{"service":"web","level":"info","ms":500.5,"message":"slow"}"#,
            "\n",
            r#"{"service":"web","level":"info","ms":12,"message":"fine"}"#,
            "\n",
            r#"{"service":"web","level":"info"}"#,
            "\n",
            r#"{"service":"../web","level":"fatal","ms":12,"message":"out of its folder"}"#,
            "\nno JSON\n"
        ),
    );
    ended(&room.run(&["run", "-q", "flow.toml", "log", "-p", &format!("out={}", room.path("o").display())]), 1);
    assert_eq!(room.read("o/shop.jsonl"), "{\"level\":\"Error\",\"message\":\"a \\\"b\\\"\"}\n");
    assert_eq!(room.read("o/web.jsonl"), "{\"level\":\"info\",\"message\":\"slow\"}\n");
    assert_eq!(fs::read_dir(room.path("o")).unwrap().count(), 2);
    assert_eq!(room.json_lines("lines.dead-letters.jsonl").len(), 2);
}

#[test]
fn an_example_is_written_once() {
    let room = Room::new("");
    let (out, _) = ended(&room.run(&["init"]), 0);
    assert!(out.contains("  fetch ") && out.contains("  lines "), "{out}");
    let (_, err) = ended(&room.run(&["init", "fetch"]), 0);
    assert!(err.contains("wrote fetch.toml"), "{err}");
    ended(&room.run(&["plan", "fetch.toml"]), 0);
    room.write("fetch.toml", "mine");
    let (_, err) = ended(&room.run(&["init", "fetch"]), 2);
    assert!(err.contains("fetch.toml is there already") && room.read("fetch.toml") == "mine", "{err}");
    let (out, _) = ended(&room.run(&["init", "fetch", "-o", "-"]), 0);
    assert_eq!(out, FETCH);
    ended(&room.run(&["init", "fetch", "-o", "no/such/folder.toml"]), 4);
    ended(&room.run(&["init", "fetsh"]), 2);
}
