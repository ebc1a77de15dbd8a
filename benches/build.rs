//! Compiles the loops over liburcu, where its headers and its library are installed (Debian's `liburcu-dev`).

use std::path::Path;

const SOURCE: &str = "src/reclaim/liburcu.c";

/// What the source includes, and where systems have it.
const HEADERS: [&str; 2] = ["/usr/include/urcu/urcu-memb.h", "/usr/local/include/urcu/urcu-memb.h"];

fn main() {
    println!("cargo:rerun-if-changed={SOURCE}");
    HEADERS.iter().for_each(|header| watch(Path::new(header)));
    println!("cargo:rerun-if-env-changed=CPATH");
    println!("cargo:rustc-check-cfg=cfg(liburcu)");
    let mut loops = cc::Build::new();
    // No header, no peer: that is no failure, and the report says so.
    if loops.file(SOURCE).opt_level(3).cargo_warnings(false).try_compile("liburcu_loops").is_ok() {
        println!("cargo:rustc-link-lib=urcu-memb");
        println!("cargo:rustc-cfg=liburcu");
    }
}

/// Runs this again when the header comes, goes or changes. What does not exist would count as changed each time, so then it is the
/// innermost folder that does, up to the systems' `include`.
fn watch(header: &Path) {
    if let Some(there) = header.ancestors().take(3).find(|path| path.exists()) {
        println!("cargo:rerun-if-changed={}", there.display());
    }
}
