//! Compiles the loops over liburcu, where its headers and its library are installed (Debian's `liburcu-dev`).

const SOURCE: &str = "src/reclaim/liburcu.c";

fn main() {
    println!("cargo:rerun-if-changed={SOURCE}");
    println!("cargo:rustc-check-cfg=cfg(liburcu)");
    let mut loops = cc::Build::new();
    // No header, no peer: that is no failure, and the report says so.
    if loops.file(SOURCE).opt_level(3).cargo_warnings(false).try_compile("liburcu_loops").is_ok() {
        println!("cargo:rustc-link-lib=urcu-memb");
        println!("cargo:rustc-cfg=liburcu");
    }
}
