//! A tree of source-like text files, made from a seed.
//!
//! The tree resembles real source trees. File sizes are log-normal (the median is near a third of the mean, and the
//! tail is long). The text compresses about as well as source code. One file in fifty repeats an earlier file, like
//! licences and vendored copies.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use crate::random::Random;

/// Size and seed of a tree.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Number of files.
    pub files: usize,
    /// Sum of the file sizes in bytes, exact to a byte per file.
    pub bytes: u64,
    /// Seed; the same seed makes the same tree.
    pub seed: u64,
}

impl Shape {
    /// The tree behind the published figures.
    pub const FULL: Self = Self { files: 52_000, bytes: 667_000_000, seed: 52 };
    /// A small tree for trying the program.
    pub const QUICK: Self = Self { files: 600, bytes: 6_000_000, seed: 52 };
}

/// Standard deviation of the size's logarithm: mean / median = exp(1.5² / 2) = 3.1.
const SIGMA: f64 = 1.5;
const FILES_PER_FOLDER: usize = 40;
/// One file in this many repeats an earlier one.
const REPEAT_EVERY: usize = 50;

/// The text of a file, determined by these two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Text {
    seed: u64,
    bytes: usize,
}

/// Writes the tree below `root`, which must exist.
///
/// # Errors
/// Returns the first I/O error, with its path.
pub fn generate(root: &Path, shape: Shape) -> Result<(), crate::error::Error> {
    let vocabulary = vocabulary(shape.seed);
    texts(shape).par_chunks(FILES_PER_FOLDER).enumerate().try_for_each(|(folder, texts)| {
        let folder_path = root.join(format!("package-{folder:04}")).join("src");
        fs::create_dir_all(&folder_path).map_err(crate::error::Error::at(&folder_path))?;
        for (index, text) in texts.iter().enumerate() {
            let path = folder_path.join(format!("part_{index:02}.rs"));
            fs::write(&path, render(*text, &vocabulary)).map_err(crate::error::Error::at(&path))?;
        }
        Ok(())
    })
}

/// The sizes and seeds of the files, in order.
fn texts(shape: Shape) -> Vec<Text> {
    let mut random = Random::new(shape.seed);
    let mut weights: Vec<f64> = Vec::with_capacity(shape.files);
    let mut seeds: Vec<u64> = Vec::with_capacity(shape.files);
    for index in 0..shape.files {
        if index % REPEAT_EVERY == REPEAT_EVERY - 1 {
            let earlier = random.below(index);
            weights.push(weights[earlier]);
            seeds.push(seeds[earlier]);
        } else {
            weights.push((SIGMA * random.normal()).exp());
            seeds.push(random.next_u64());
        }
    }
    let scale = shape.bytes as f64 / weights.iter().sum::<f64>();
    let sizes = weights.iter().map(|weight| (weight * scale).round() as usize);
    sizes.zip(seeds).map(|(bytes, seed)| Text { seed, bytes }).collect()
}

/// The words that identifiers are composed of.
fn vocabulary(seed: u64) -> Vec<String> {
    const SYLLABLES: [&str; 24] = [
        "ac", "bu", "cer", "di", "el", "for", "gra", "ha", "in", "jo", "ka", "len", "ma", "no", "or", "pre", "qui",
        "ra", "set", "tra", "un", "ve", "wi", "zen",
    ];
    let mut random = Random::new(seed ^ 0x766f_6361_6275_6c61);
    (0..4000)
        .map(|_| {
            let syllables = 1 + random.below(4);
            (0..syllables).map(|_| SYLLABLES[random.below(SYLLABLES.len())]).collect()
        })
        .collect()
}

/// Writes the file's text: lines of a few patterns, filled mostly with the file's own small vocabulary.
fn render(text: Text, vocabulary: &[String]) -> Vec<u8> {
    /// `$` is replaced by a word, and `@` by a number.
    const PATTERNS: [&str; 12] = [
        "pub fn $_$(&self, $: &$, $: usize) -> Result<$, Error> {\n",
        "    let $ = self.$_$.get($)?;\n",
        "    let mut $ = Vec::with_capacity(@);\n",
        "    if $.len() > @ {\n        return Err(Error::$($));\n    }\n",
        "    for $ in $.iter() {\n        $.push($ + @);\n    }\n",
        "    // $ the $ before $ and $ are $: $ $ $.\n",
        "    match $ {\n        Some($) => $($),\n        None => @,\n    }\n",
        "}\n\n",
        "    /// $ $ $ the $ of $, $ when @ $ $.\n",
        "#[derive(Debug, Clone)]\npub struct $_$ {\n    $: u64,\n    $_$: String,\n}\n\n",
        "    assert_eq!($.$_$(), @, \"$ $ $\");\n",
        "    self.$ += $.$ as u64;\n",
    ];
    let mut random = Random::new(text.seed);
    let own: Vec<&str> = (0..48).map(|_| vocabulary[random.below(vocabulary.len())].as_str()).collect();
    let mut out = Vec::with_capacity(text.bytes + 256);
    while out.len() < text.bytes {
        for byte in PATTERNS[random.below(PATTERNS.len())].bytes() {
            match byte {
                b'$' if random.below(8) == 0 => {
                    out.extend_from_slice(vocabulary[random.below(vocabulary.len())].as_bytes());
                }
                // The product of two draws favours the first words, as programmers favour a few names.
                b'$' => out.extend_from_slice(own[random.below(48) * random.below(48) / 48].as_bytes()),
                b'@' => out.extend_from_slice(random.below(4096).to_string().as_bytes()),
                other => out.push(other),
            }
        }
    }
    out.truncate(text.bytes);
    out
}

/// Reads every file below `root` once, so that it is in the page cache, and returns the numbers of files and bytes.
///
/// # Errors
/// Returns the first I/O error, with its path.
pub fn warm(root: &Path) -> Result<(u64, u64), crate::error::Error> {
    let mut buffer = Vec::new();
    let mut total = (0, 0);
    for entry in crate::archive::work::walk(root) {
        let entry = entry.map_err(crate::error::Error::at(root))?;
        buffer.clear();
        read_into(&entry.path, &mut buffer).map_err(crate::error::Error::at(&entry.path))?;
        total = (total.0 + 1, total.1 + buffer.len() as u64);
    }
    Ok(total)
}

fn read_into(path: &PathBuf, buffer: &mut Vec<u8>) -> io::Result<usize> {
    io::Read::read_to_end(&mut fs::File::open(path)?, buffer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sizes_add_up_to_the_requested_sum() {
        let sum: usize = texts(Shape::FULL).iter().map(|text| text.bytes).sum();
        let difference = (sum as i64 - Shape::FULL.bytes as i64).unsigned_abs();
        assert!(difference <= Shape::FULL.files as u64, "{sum}");
    }

    #[test]
    fn sizes_have_a_long_tail() {
        let mut sizes: Vec<usize> = texts(Shape::FULL).iter().map(|text| text.bytes).collect();
        sizes.sort_unstable();
        let median = sizes[sizes.len() / 2];
        let mean = Shape::FULL.bytes as usize / sizes.len();
        assert!((2..=4).contains(&(mean / median)), "mean {mean}, median {median}");
        assert!(sizes[sizes.len() - 1] > 50 * mean);
    }

    #[test]
    fn the_same_seed_makes_the_same_text_of_the_requested_size() {
        let vocabulary = vocabulary(1);
        let text = Text { seed: 9, bytes: 10_000 };
        let rendered = render(text, &vocabulary);
        assert_eq!(rendered.len(), 10_000);
        assert_eq!(rendered, render(text, &vocabulary));
        assert_ne!(rendered, render(Text { seed: 10, ..text }, &vocabulary));
    }

    #[test]
    fn the_text_compresses_like_source_code() {
        let rendered = render(Text { seed: 9, bytes: 13_000 }, &vocabulary(1));
        let ratio = 13_000.0 / zstd::bulk::compress(&rendered, 3).unwrap().len() as f64;
        assert!((2.5..6.0).contains(&ratio), "{ratio}");
    }

    #[test]
    fn some_files_repeat_earlier_ones() {
        let texts = texts(Shape::QUICK);
        let repeats = (1..texts.len()).filter(|&i| texts[..i].contains(&texts[i])).count();
        assert_eq!(repeats, Shape::QUICK.files / REPEAT_EVERY);
    }
}
