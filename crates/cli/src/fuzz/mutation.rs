//! Seeds and dictionaries of `fuzz/`, and mutations of a seed that a number replays.

use std::path::{Path, PathBuf};

/// A small generator of random numbers (splitmix64), so that a seed replays a case.
pub(super) struct Random(pub(super) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    pub(super) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    pub(super) fn bytes(&mut self, most: usize) -> Vec<u8> {
        (0..self.below(most)).map(|_| self.next() as u8).collect()
    }
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

/// The words of a dictionary, as libFuzzer reads it: a word in quotes on each line, `\"`, `\\` and `\xAB` in it.
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

/// A few changes to `seed`: pieces go, come twice or change places, and words of the dictionary come in.
pub(super) fn mutate(seed: &[u8], words: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..1 + random.below(6) {
        let at = random.below(bytes.len() + 1);
        let end = (at + random.below(24)).min(bytes.len());
        match random.below(6) {
            0 => drop(bytes.drain(at..end)),
            1 => drop(bytes.splice(at..end, random.pick(words).iter().copied())),
            2 => drop(bytes.splice(at..at, random.pick(words).iter().copied())),
            3 => {
                let copy = bytes[at..end].to_vec();
                let to = random.below(bytes.len() + 1);
                bytes.splice(to..to, copy);
            }
            4 if at < bytes.len() => bytes[at] = random.next() as u8,
            _ => {
                // Whole lines change places, which makes keys land in other tables.
                let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
                let (from, to) = (random.below(lines.len()), random.below(lines.len()));
                lines.swap(from, to);
                bytes = lines.join(&b'\n');
            }
        }
    }
    bytes
}
