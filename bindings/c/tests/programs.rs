//! C programs, compiled with the header and linked with either library, as users do.

mod support;

use std::ffi::OsStr;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use support::{SONAME, library, path};
use tempfile::TempDir;

/// The library that a program is linked with.
#[derive(Debug, Clone, Copy)]
enum Link {
    Static,
    Shared,
}

/// Compiles `source` with all warnings, runs it, and returns its output.
fn run(source: &Path, link: Link) -> Output {
    run_with(source, link, &[])
}

/// Does the same with arguments for the program.
fn run_with(source: &Path, link: Link, arguments: &[&OsStr]) -> Output {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = TempDir::new().expect("a temporary folder");
    let program = folder.path().join("program");
    let library = library(match link {
        Link::Static => ".a",
        Link::Shared => ".so",
    });
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    let mut compile = Command::new(compiler);
    compile.args(["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-g"]);
    compile.arg("-I").arg(here.join("include")).arg(source).arg(&library).arg("-o").arg(&program);
    compile.args(["-lutil", "-lrt", "-lpthread", "-lm", "-ldl"]);
    let compiled = compile.output().expect("a C compiler is installed, as Rust needs one to link");
    assert!(compiled.status.success(), "{compile:?}\n{}", String::from_utf8_lossy(&compiled.stderr));
    // The program looks for the shared library under the library's own name.
    symlink(&library, folder.path().join(SONAME)).expect("the folder is writable");
    Command::new(program)
        .args(arguments)
        .env("LD_LIBRARY_PATH", folder.path())
        .output()
        .expect("the program that was just linked starts")
}

#[test]
fn the_example_decides_with_either_library() {
    for link in [Link::Static, Link::Shared] {
        let output = run(&path("examples/decide.c"), link);
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{link:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
        assert!(text.contains("holds after"), "{link:?}: {text}");
        // The article's level, -17.23855…, differs from the sixth digit on, due to its bounds on factorials.
        assert!(text.contains("stop: yes, level -17.2385685324"), "{link:?}: {text}");
    }
}

#[test]
fn published_objects_survive_the_kill_of_their_process() {
    for link in [Link::Static, Link::Shared] {
        let folder = TempDir::new().expect("a temporary folder");
        let file = folder.path().join("sessions");
        // The first run creates the slab, the second opens it.
        for run in 1..=2 {
            let output = run_with(&path("examples/slab.c"), link, &[file.as_os_str()]);
            let text = String::from_utf8_lossy(&output.stdout);
            let complaints = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "{link:?}, run {run}: {text}{complaints}");
            assert!(text.starts_with("recovered: the private object of the child\n"), "{link:?}, run {run}: {text}");
            for line in
                ["ada: 2 visits\n", "bob: not finished\n", "a second free: object ", "left: 0 objects, 0 problems\n"]
            {
                assert!(text.contains(line), "{link:?}, run {run}: no `{line}` in {text}");
            }
        }
    }
}

#[test]
fn every_slab_function_answers_or_explains_its_failure() {
    for link in [Link::Static, Link::Shared] {
        let folder = TempDir::new().expect("a temporary folder");
        let output = run_with(&path("tests/slab.c"), link, &[folder.path().as_os_str()]);
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{link:?}: {}, {complaints}", output.status);
    }
}

#[test]
fn every_function_answers_or_explains_its_failure() {
    for link in [Link::Static, Link::Shared] {
        let output = run(&path("tests/every_function.c"), link);
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{link:?}: {}, {complaints}", output.status);
    }
}
