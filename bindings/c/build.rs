//! Gives the shared library its `SONAME`, under which programs look for it. The name has the first two numbers of the
//! version before 1.0, and from then on only the first. `install` creates the links with these names.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let number = |name: &str| env::var(format!("CARGO_PKG_VERSION_{name}")).expect("cargo sets the version");
    let abi = match number("MAJOR").as_str() {
        "0" => format!("0.{}", number("MINOR")),
        major => major.to_owned(),
    };
    if env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| system == "linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libmillstream_c.so.{abi}");
    }
}
