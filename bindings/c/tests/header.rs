//! The header in the tree is the one that the source makes.

use std::path::Path;

/// Run with this set to write the header.
const WRITE: &str = "MILLSTREAM_WRITE_HEADER";

#[test]
fn the_header_is_that_of_the_source() {
    let crate_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = crate_dir.join("include/millstream.h");
    let config = cbindgen::Config::from_file(crate_dir.join("cbindgen.toml")).expect("cbindgen.toml is well-formed");
    let bindings = cbindgen::Builder::new()
        .with_config(config)
        .with_src(crate_dir.join("src/lib.rs"))
        .generate()
        .expect("cbindgen understands the source");
    let mut made = Vec::new();
    bindings.write(&mut made);
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, &made).expect("the header is writable");
    }
    let found = std::fs::read(&path).unwrap_or_default();
    assert!(found == made, "{} is out of date: run this test again with {WRITE}=1", path.display());
}
