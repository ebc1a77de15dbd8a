//! The seeds and dictionaries of `fuzz/`, and mutations of a seed, each reproducible from a number.

use std::path::{Path, PathBuf};

use millstream_verify_random::Random;

/// A number in `0..bound`; 0 if `bound` is 0.
fn below(bound: usize, random: &mut Random) -> usize {
    random.below(bound.max(1) as u64) as usize
}

pub(super) fn pick<'a, T>(items: &'a [T], random: &mut Random) -> &'a T {
    &items[below(items.len(), random)]
}

/// Random bytes, fewer than `bound`.
pub(super) fn noise(bound: usize, random: &mut Random) -> Vec<u8> {
    (0..below(bound, random)).map(|_| random.next() as u8).collect()
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files below a folder of the repository, in the order of their names.
pub(super) fn files(folder: &str) -> Vec<Vec<u8>> {
    let mut paths: Vec<_> =
        std::fs::read_dir(repository().join(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// The words of a dictionary in the format of libFuzzer: a word in quotes on each line, with the escapes `\"`, `\\` and
/// `\xAB`.
pub(super) fn dictionary(target: &str) -> Vec<Vec<u8>> {
    let text = std::fs::read_to_string(repository().join("fuzz/dictionaries").join(target)).unwrap();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| word(line).unwrap_or_else(|| panic!("{target}: {line} is not a word in quotes"))).collect()
}

fn word(line: &str) -> Option<Vec<u8>> {
    let mut rest = line.strip_prefix('"')?.strip_suffix('"')?.as_bytes();
    let mut word = Vec::new();
    while let [first, tail @ ..] = rest {
        let (byte, length) = match (first, tail) {
            (b'\\', [b'x', high, low, ..]) => (u8::from_str_radix(str::from_utf8(&[*high, *low]).ok()?, 16).ok()?, 4),
            (b'\\', [escaped @ (b'"' | b'\\'), ..]) => (*escaped, 2),
            (b'\\' | b'"', _) => return None,
            (plain, _) => (*plain, 1),
        };
        word.push(byte);
        rest = &rest[length..];
    }
    Some(word)
}

/// Returns `seed` with a few changes: pieces are removed, doubled or swapped, and words of the dictionary are inserted.
pub(super) fn mutate(seed: &[u8], words: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..1 + below(6, random) {
        let at = below(bytes.len() + 1, random);
        let end = (at + below(24, random)).min(bytes.len());
        match below(6, random) {
            0 => drop(bytes.drain(at..end)),
            1 => drop(bytes.splice(at..end, pick(words, random).iter().copied())),
            2 => drop(bytes.splice(at..at, pick(words, random).iter().copied())),
            3 => {
                let copy = bytes[at..end].to_vec();
                let to = below(bytes.len() + 1, random);
                bytes.splice(to..to, copy);
            }
            4 if at < bytes.len() => bytes[at] = random.next() as u8,
            _ => {
                // Whole lines are swapped, so that keys move to other tables.
                let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
                let (from, to) = (below(lines.len(), random), below(lines.len(), random));
                lines.swap(from, to);
                bytes = lines.join(&b'\n');
            }
        }
    }
    bytes
}
