//! Whatever a flow file holds, reading it ends in a flow or in errors that can be shown, never in a panic.
//!
//! The seed is printed when a case fails; `MILLSTREAM_FUZZ_CASES` sets how many cases run.

use std::panic::catch_unwind;
use std::path::Path;

use millstream_cli::file;

/// A small generator of random numbers (splitmix64), so that a seed replays a case.
struct Random(u64);

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

    fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

/// Pieces that a mutation puts in: what the parser looks for, at its limits and out of place.
const PIECES: [&str; 46] = [
    "0",
    "-1",
    "9223372036854775807",
    "1e999",
    "nan",
    "true",
    "\"\"",
    "''",
    "\"x\"",
    "[]",
    "{}",
    "[[stage]]",
    "[stage]",
    "[source]",
    "\nname = \"a\"\n",
    "\nop = \"exec\"\n",
    "\nop = \"filter\"\n",
    "when = { not = { not = { all = [] } } }",
    "else = \"a\"",
    "next = \"end\"",
    "{",
    "}",
    "{{",
    "{json:",
    "[..2]}",
    "{path}",
    "{param.}",
    "{blake3}",
    ":",
    "..",
    "cores",
    "64MiB",
    "5/s",
    "1970-01-01",
    "\"\"\"",
    "'''",
    "\\u0000",
    "\u{7f}",
    "é",
    "\u{1F600}",
    "\u{202e}",
    "\t",
    "\r\n",
    "#",
    "=",
    "\"host:*\" = { rate = \"1/s\", max_keys = 0 }",
];

fn valid_flows() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../flows");
    let mut flows: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    flows.sort();
    assert!(flows.len() >= 4, "the ready flows are there");
    flows.iter().map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

fn mutate(text: &str, random: &mut Random) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..1 + random.below(6) {
        let at = random.below(bytes.len() + 1);
        let end = (at + random.below(24)).min(bytes.len());
        match random.below(6) {
            0 => drop(bytes.drain(at..end)),
            1 => drop(bytes.splice(at..end, random.pick(&PIECES).bytes())),
            2 => drop(bytes.splice(at..at, random.pick(&PIECES).bytes())),
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

/// Reads the bytes and shows what came of it; says whether it is a flow.
fn read(bytes: &[u8]) -> bool {
    // `parse` takes text; `load` refuses other bytes before it, which its own test shows.
    let text = String::from_utf8_lossy(bytes);
    match file::parse(Path::new("fuzz.toml"), &text, &[("out".to_owned(), "x".to_owned())]) {
        Ok(mut flow) => {
            let _ = flow.bind_inputs(&["in".into()]).map_err(|error| error.render());
            true
        }
        Err(error) => {
            assert!(!error.render().is_empty() && !error.to_string().is_empty());
            false
        }
    }
}

fn cases() -> u64 {
    std::env::var("MILLSTREAM_FUZZ_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(4_000)
}

#[test]
fn mutated_flow_files_never_panic() {
    let flows = valid_flows();
    let mut accepted = 0;
    for seed in 0..cases() {
        let mut random = Random(seed);
        let flow: &String = random.pick(&flows);
        let bytes = mutate(flow, &mut random);
        match catch_unwind(|| read(&bytes)) {
            Ok(flow) => accepted += u64::from(flow),
            Err(_) => panic!("seed {seed} panics:\n{}", String::from_utf8_lossy(&bytes)),
        }
    }
    // Otherwise the mutations are so wild, or so tame, that one half of the parser is never tried.
    assert!(accepted > cases() / 100 && accepted < cases() * 9 / 10, "{accepted} of {} were accepted", cases());
}

#[test]
fn random_bytes_never_panic() {
    for seed in 0..cases() {
        let mut random = Random(seed);
        let bytes: Vec<u8> = (0..random.below(300)).map(|_| random.next() as u8).collect();
        assert!(catch_unwind(|| read(&bytes)).is_ok(), "seed {seed} panics: {bytes:?}");
    }
}

#[test]
fn deep_nesting_never_overflows_the_stack() {
    for (open, close) in [("[", "]"), ("{ not = ", "}"), ("{ a.b.c = ", "}")] {
        let text = format!(
            "[source]\nlines = \"-\"\n[[stage]]\nname = \"a\"\nop = \"filter\"\nwhen = {}1{}",
            open.repeat(20_000),
            close.repeat(20_000)
        );
        assert!(!read(text.as_bytes()));
    }
}
