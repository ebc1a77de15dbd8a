//! The header in the tree matches the source, and the test programs call every function of it.

use std::path::Path;

/// If this environment variable is set, the test writes the header.
const WRITE: &str = "MILLSTREAM_WRITE_HEADER";

/// Generates the header from the source.
fn made() -> String {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(crate_dir.join("cbindgen.toml")).expect("cbindgen.toml is well-formed");
    let bindings = cbindgen::Builder::new()
        .with_config(config)
        .with_src(crate_dir.join("src/lib.rs"))
        .generate()
        .expect("cbindgen understands the source");
    let mut made = Vec::new();
    bindings.write(&mut made);
    String::from_utf8(made).expect("the source is UTF-8")
}

#[test]
fn the_header_matches_the_source() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/millstream.h");
    let made = made();
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, &made).expect("the header is writable");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == made, "{} is out of date: run this test again with {WRITE}=1", path.display());
}

#[test]
fn programs_call_every_function_of_the_header() {
    let programs =
        [include_str!("every_function.c"), include_str!("slab.c"), include_str!("parcels.c"), include_str!("ring.c")];
    let programs = programs.concat();
    let header = made();
    let is_name = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let before = |at: usize| header[..at].rsplit(|character| !is_name(character)).next().unwrap_or_default();
    let names = header.match_indices('(').map(|(at, _)| before(at)).filter(|name| name.starts_with("millstream_"));
    let uncalled: Vec<&str> = names.filter(|name| !programs.contains(&format!("{name}("))).collect();
    assert!(header.contains("millstream_error_message(") && uncalled.is_empty(), "no program calls {uncalled:?}");
}

/// Structs without a size member. They never change: most are complete pairs of numbers, and one has spare words.
const NEVER_CHANGE: [&str; 6] = [
    "millstream_csm_beta_result",
    "millstream_csm_bounds",
    "millstream_csm_interval_result",
    "millstream_csm_ranks",
    "millstream_slab_handle",
    "millstream_slab_private",
];

#[test]
fn every_struct_that_may_grow_starts_with_its_size() {
    let header = made();
    let mut rigid: Vec<&str> = Vec::new();
    for (at, start) in header.match_indices("typedef struct millstream_") {
        let (name, rest) = header[at + start.len()..].split_once(|c: char| !c.is_alphanumeric() && c != '_').unwrap();
        let Some(members) = rest.strip_prefix('{') else { continue };
        let first = members.lines().map(str::trim).find(|line| line.ends_with(';')).unwrap_or_default();
        if first != "uint64_t struct_bytes;" {
            rigid.push(&header[at + "typedef struct ".len()..][..name.len() + "millstream_".len()]);
        }
    }
    rigid.sort_unstable();
    assert_eq!(rigid, NEVER_CHANGE);
}
