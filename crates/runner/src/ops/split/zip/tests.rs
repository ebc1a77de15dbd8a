use std::fs::File;
use std::io::Write as _;

use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};

use super::*;
use crate::payload::Stream;

/// Writes an archive whose entries may be wrong.
#[derive(Default)]
struct Builder {
    bytes: Vec<u8>,
    entries: Vec<u8>,
    count: u16,
}

/// A file for the archive, and the errors in its entry.
#[derive(Clone, Copy)]
struct Added<'a> {
    name: &'a str,
    content: &'a [u8],
    method: u16,
    flags: u16,
    /// The mode of a file on Unix.
    mode: u32,
    /// The length in the entry, if it differs from the real length.
    announced: Option<u32>,
    /// The name in the file's own header, if it differs from the name in the entry.
    own_name: Option<&'a str>,
}

fn file<'a>(name: &'a str, content: &'a [u8]) -> Added<'a> {
    Added { name, content, method: DEFLATED, flags: 0, mode: 0o100_644, announced: None, own_name: None }
}

impl Builder {
    fn add(mut self, added: Added<'_>) -> Self {
        let at = self.bytes.len() as u32;
        let content = if added.method == DEFLATED {
            let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(added.content).unwrap();
            encoder.finish().unwrap()
        } else {
            added.content.to_vec()
        };
        let own_name = added.own_name.unwrap_or(added.name);
        self.bytes.extend(b"PK\x03\x04");
        self.bytes.extend([0; 22]);
        self.bytes.extend((own_name.len() as u16).to_le_bytes());
        self.bytes.extend(3u16.to_le_bytes());
        self.bytes.extend(own_name.as_bytes());
        self.bytes.extend(b"xyz");
        self.bytes.extend(&content);
        self.entry(added, content.len() as u32, at)
    }

    /// Adds an entry to the directory only.
    fn entry(mut self, added: Added<'_>, compressed: u32, at: u32) -> Self {
        let mut crc = Crc::new();
        crc.update(added.content);
        let bytes = added.announced.unwrap_or(added.content.len() as u32);
        let entry = &mut self.entries;
        entry.extend(b"PK\x01\x02\x14\x03\x14\x00");
        entry.extend([added.flags, added.method, 0, 0].iter().flat_map(|number| number.to_le_bytes()));
        entry.extend([crc.sum(), compressed, bytes].iter().flat_map(|number| number.to_le_bytes()));
        entry.extend([added.name.len() as u16, 0, 0, 0, 0].iter().flat_map(|number| number.to_le_bytes()));
        entry.extend([added.mode << 16, at].iter().flat_map(|number| number.to_le_bytes()));
        entry.extend(added.name.as_bytes());
        self.count += 1;
        self
    }

    fn end(self) -> Vec<u8> {
        self.end_with(b"a comment with PK\x05\x06 in it, as long as some")
    }

    fn end_with(mut self, comment: &[u8]) -> Vec<u8> {
        let (at, len) = (self.bytes.len() as u32, self.entries.len() as u32);
        self.bytes.append(&mut self.entries);
        self.bytes.extend(b"PK\x05\x06\0\0\0\0");
        self.bytes.extend([self.count, self.count].iter().flat_map(|number| number.to_le_bytes()));
        self.bytes.extend([len, at].iter().flat_map(|number| number.to_le_bytes()));
        self.bytes.extend((comment.len() as u16).to_le_bytes());
        self.bytes.extend(comment);
        self.bytes
    }

    /// Writes the end of an archive whose numbers need 64 bits.
    fn end_large(mut self) -> Vec<u8> {
        let (at, len) = (self.bytes.len() as u64, self.entries.len() as u64);
        self.bytes.append(&mut self.entries);
        let end_at = self.bytes.len() as u64;
        self.bytes.extend(b"PK\x06\x06");
        self.bytes.extend(44u64.to_le_bytes());
        self.bytes.extend([0; 12]);
        let count = u64::from(self.count);
        self.bytes.extend([count, count, len, at].iter().flat_map(|number| number.to_le_bytes()));
        self.bytes.extend(b"PK\x06\x07\0\0\0\0");
        self.bytes.extend(end_at.to_le_bytes());
        self.bytes.extend(1u32.to_le_bytes());
        self.bytes.extend(b"PK\x05\x06\0\0\0\0");
        self.bytes.extend([0xff; 12]);
        self.bytes.extend([0, 0]);
        self.bytes
    }
}

fn members(archive: &[u8], most: usize) -> Vec<Result<Cut, Torn>> {
    let stream = Stream::of_bytes(archive.to_vec(), 0);
    Members::new(stream.random_access().unwrap(), most).collect()
}

/// The name of each file, with the file's content or the fault.
fn shown(archive: &[u8], most: usize) -> Vec<(String, String)> {
    let members = members(archive, most).into_iter().map(|cut| match cut {
        Ok(Cut { kind: Kind::Member(name), content, fault, .. }) => {
            let content = String::from_utf8_lossy(&content).into_owned();
            (String::from_utf8_lossy(&name).into_owned(), fault.unwrap_or(content))
        }
        Ok(cut) => panic!("every file has a path: {cut:?}"),
        Err(Torn::Senseless(reason)) => ("torn".to_owned(), reason),
        Err(Torn::Unread(error)) => ("unread".to_owned(), error.to_string()),
    });
    members.collect()
}

fn pair(name: &str, content: &str) -> (String, String) {
    (name.to_owned(), content.to_owned())
}

fn plain() -> Builder {
    Builder::default()
        .add(file("d/", b""))
        .add(file("d/a", b"first"))
        .add(Added { mode: 0o120_777, ..file("link", b"d/a") })
        .add(Added { method: STORED, ..file("b", b"second") })
        .add(file("empty", b""))
}

#[test]
fn files_come_with_their_paths_and_contents() {
    let expected = [pair("d/a", "first"), pair("b", "second"), pair("empty", "")];
    assert_eq!(shown(&plain().end(), 100), expected);
    assert_eq!(shown(&plain().end_with(b""), 100), expected);
    assert_eq!(shown(&plain().end_large(), 100), expected);
    let behind_a_program = [b"#!/bin/sh\n".as_slice(), &plain().end()].concat();
    assert_eq!(shown(&behind_a_program, 100), expected);
    let large_behind_a_program = [b"#!/bin/sh\n".as_slice(), &plain().end_large()].concat();
    assert_eq!(shown(&large_behind_a_program, 100), expected);
    assert_eq!(shown(&Builder::default().end(), 100), []);
}

#[test]
fn an_archive_on_the_disk_is_read_at_its_offsets() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.zip");
    let archive = plain().end();
    std::fs::write(&path, &archive).unwrap();
    let stream = Stream::of_file(File::open(&path).unwrap(), archive.len() as u64, &path, 0);
    let mut members = Members::new(stream.random_access().unwrap(), 100);
    assert!(members.next().is_some_and(|first| first.unwrap().content == b"first"));
    File::options().write(true).open(&path).unwrap().set_len(20).unwrap();
    let Some(Err(Torn::Unread(error))) = members.next() else { panic!("the file is gone") };
    let failure = stream.failure(&error).to_string();
    assert!(failure.contains("a.zip") && failure.contains("shorter"), "{failure}");
    assert!(members.next().is_none());
}

#[test]
fn an_archive_that_an_earlier_stage_has_read_is_compared_with_that_reading() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.zip");
    let [before, after] = [b"first", b"other"].map(|content| Builder::default().add(file("a", content)).end());
    assert_eq!(before.len(), after.len());
    std::fs::write(&path, &before).unwrap();
    let stream = Stream::of_file(File::open(&path).unwrap(), before.len() as u64, &path, 0);
    std::io::copy(&mut stream.reader().unwrap(), &mut std::io::sink()).unwrap();
    let mut unchanged = Members::new(stream.random_access().unwrap(), 100);
    assert!(unchanged.next().unwrap().unwrap().content == b"first" && unchanged.next().is_none());
    std::fs::write(&path, &after).unwrap();
    let mut changed = Members::new(stream.random_access().unwrap(), 100);
    assert!(changed.next().unwrap().unwrap().content == b"other");
    let Some(Err(Torn::Unread(error))) = changed.next() else { panic!("it is another archive now") };
    assert!(stream.failure(&error).to_string().contains("it has changed while this unit was in flight"));
}

#[test]
fn a_file_that_cannot_be_taken_fails_alone() {
    let before = 500;
    let archive = Builder { bytes: vec![0; before], ..Builder::default() }
        .add(Added { flags: 1, ..file("secret", b"x") })
        .add(Added { method: 12, ..file("bzipped", b"x") })
        .add(file("large", &[7; 101]))
        .add(Added { announced: Some(3), ..file("bomb", &[0; 1_000_000]) })
        .add(Added { announced: Some(50), ..file("short", b"x") })
        .add(Added { own_name: Some("other"), ..file("liar", b"x") })
        .entry(file("nowhere", b"x"), 1, u32::MAX - 1)
        .entry(file("overlong", b"x"), 400, before as u32)
        .entry(file("headless", b"x"), 1, 0)
        .add(file("good", b"x"))
        .end();
    let found = shown(&archive, 100);
    for (found, (name, reason)) in found.iter().zip([
        ("secret", "secret is encrypted"),
        ("bzipped", "bzipped is compressed by bzip2"),
        ("large", "large has 101 bytes, more than the 100 of `max_bytes`"),
        ("bomb", "bomb has more bytes than the 3 that the directory says"),
        ("short", "short has 1 bytes, and the directory says 50"),
        ("liar", "liar is damaged: it has another name"),
        ("nowhere", "nowhere is damaged: it lies outside"),
        ("overlong", "overlong is damaged: it has another name"),
        ("headless", "headless is damaged: it has no header"),
        ("good", "x"),
    ]) {
        assert!(found.0 == name && found.1.starts_with(reason), "{found:?}");
    }
    assert_eq!(found.len(), 10);
    let mut torn = plain().end();
    let content = torn.windows(6).position(|window| window == b"second").unwrap();
    torn[content] ^= 1;
    let found = shown(&torn, 100);
    assert!(found[1].1.starts_with("b is damaged: its checksum") && found[2] == pair("empty", ""), "{found:?}");
}

#[test]
fn files_that_share_their_bytes_end_the_archive() {
    let mut archive = Builder::default().add(Added { method: STORED, ..file("a", &[b'x'; 90]) });
    for _ in 0..10 {
        archive = archive.entry(Added { method: STORED, ..file("a", &[b'x'; 90]) }, 90, 0);
    }
    let found = shown(&archive.end(), 100);
    assert!(
        found.len() == 2 && found[1].0 == "torn" && found[1].1.contains("more compressed bytes than the archive"),
        "{found:?}"
    );
}

#[test]
fn what_is_no_archive_or_a_damaged_one_ends() {
    let archive = plain().end();
    for other in [&b""[..], b"PK", &[0; 100_000], b"PK\x05\x06\0\0\0\0\x01\0\x01\0\xff\xff\0\0\0\0\0\0\0\0"] {
        let found = shown(other, 100);
        assert!(matches!(&found[..], [(torn, reason)] if torn == "torn" && reason.contains("zip")), "{found:?}");
    }
    for cut in 0..archive.len() {
        let found = shown(&archive[..cut], 100);
        assert!(found.last().is_some_and(|last| last.0 == "torn"), "{cut}: {found:?}");
    }
    // Reading ends, whichever byte is changed.
    for place in 0..archive.len() {
        for bit in [1, 0x80] {
            let mut other = archive.clone();
            other[place] ^= bit;
            assert!(shown(&other, 100).len() <= 6, "{place}");
        }
    }
    let of_several = {
        let mut archive = Builder::default().add(file("a", b"x")).end_with(b"");
        let end = archive.len() - 22;
        archive[end + 4] = 1;
        archive
    };
    assert!(shown(&of_several, 100)[0].1.contains("one part of several"));
}
