//! Compiles the loops over liburcu if its headers and its library are installed (Debian's `liburcu-dev`).

use std::path::Path;

const SOURCE: &str = "src/reclaim/liburcu.c";

/// The header that the source includes, in the folders in which systems install it.
const HEADERS: [&str; 2] = ["/usr/include/urcu/urcu-memb.h", "/usr/local/include/urcu/urcu-memb.h"];

fn main() {
    println!("cargo:rerun-if-changed={SOURCE}");
    HEADERS.iter().for_each(|header| watch(Path::new(header)));
    println!("cargo:rerun-if-env-changed=CPATH");
    println!("cargo:rustc-check-cfg=cfg(liburcu)");
    let mut loops = cc::Build::new();
    // Without the header, only this peer is missing: the build continues, and the report mentions it.
    if loops.file(SOURCE).opt_level(3).cargo_warnings(false).try_compile("liburcu_loops").is_ok() {
        println!("cargo:rustc-link-lib=urcu-memb");
        println!("cargo:rustc-cfg=liburcu");
    }
}

/// Runs this script again when the header appears, disappears or changes. Cargo treats a missing path as changed on
/// every build, so for a missing header the script watches its innermost existing folder, up to the system's
/// `include`.
fn watch(header: &Path) {
    if let Some(there) = header.ancestors().take(3).find(|path| path.exists()) {
        println!("cargo:rerun-if-changed={}", there.display());
    }
}
