//! C programs are compiled with the header and linked with either library, as users do it.

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

/// The compiler's options, without those for warnings.
const C99: &[&str] = &["-std=c99"];
const CPP17: &[&str] = &["-std=c++17", "-x", "c++"];
const SANITIZED: &[&str] = &["-std=c99", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

/// Compiles `source` with all warnings, runs it, and returns its output.
fn run(source: &Path, link: Link) -> Output {
    run_with(source, link, C99, &[])
}

/// Like [`run`], with options for the compiler and arguments for the program.
fn run_with(source: &Path, link: Link, options: &[&str], arguments: &[&OsStr]) -> Output {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = TempDir::new().expect("a temporary folder");
    let program = folder.path().join("program");
    let library = library(match link {
        Link::Static => ".a",
        Link::Shared => ".so",
    });
    let mut compile = Command::new(if options == CPP17 { cpp_compiler() } else { compiler() });
    compile.args(options).args(["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-g", "-I"]).arg(here.join("include"));
    // The library is not C++ source.
    compile.arg(source).args(["-x", "none"]).arg(&library).arg("-o").arg(&program);
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

fn compiler() -> String {
    std::env::var("CC").unwrap_or_else(|_| "cc".to_owned())
}

fn cpp_compiler() -> String {
    std::env::var("CXX").unwrap_or_else(|_| "c++".to_owned())
}

/// Whether the compiler supports these options; prints a message if not.
fn compiles(compiler: &str, options: &[&str]) -> bool {
    let folder = TempDir::new().expect("a temporary folder");
    let source = folder.path().join("empty.c");
    std::fs::write(&source, "int main(void) { return 0; }\n").expect("the folder is writable");
    let mut compile = Command::new(compiler);
    compile.args(options).arg(&source).arg("-o").arg(folder.path().join("empty"));
    let found = compile.output().is_ok_and(|output| output.status.success());
    if !found {
        println!("skipped: {compiler} does not compile with {options:?}");
    }
    found
}

/// The standard output of a program that must succeed.
fn printed(output: &Output, what: &str) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{what}: {}\n{text}{}", output.status, String::from_utf8_lossy(&output.stderr));
    text
}

#[test]
fn the_examples_are_programs_of_c99_and_of_cplusplus17() {
    let expected = [
        ("ring.c", true, "40000 readings, 20.003 degrees on average\n"),
        ("parcels.c", false, "sum 4950, kept 49, left 0\n"),
        ("latencies.c", false, "in time: holds\nmean: holds\nmedian: 0.01"),
    ];
    for (name, takes_file, expected) in expected {
        for (options, link) in [(C99, Link::Static), (C99, Link::Shared), (CPP17, Link::Static), (CPP17, Link::Shared)]
        {
            if options == CPP17 && !compiles(&cpp_compiler(), CPP17) {
                continue;
            }
            let folder = TempDir::new().expect("a temporary folder");
            let file = folder.path().join("file");
            let arguments: &[&OsStr] = if takes_file { &[file.as_os_str()] } else { &[] };
            let output = run_with(&path(&format!("examples/{name}")), link, options, arguments);
            let what = format!("{name}, {options:?}, {link:?}");
            let text = printed(&output, &what);
            assert!(text.starts_with(expected), "{what}: {text}");
        }
    }
}

#[test]
fn misuse_of_rings_and_parcels_has_its_status() {
    for name in ["ring.c", "parcels.c"] {
        let folder = TempDir::new().expect("a temporary folder");
        let output = run_with(&path(&format!("tests/{name}")), Link::Static, C99, &[folder.path().as_os_str()]);
        printed(&output, name);
    }
}

#[test]
fn sanitizers_find_nothing_in_any_misuse() {
    if !compiles(&compiler(), SANITIZED) {
        return;
    }
    for name in ["every_function.c", "slab.c", "ring.c", "parcels.c"] {
        let folder = TempDir::new().expect("a temporary folder");
        let source = path(&format!("tests/{name}"));
        printed(&run_with(&source, Link::Shared, SANITIZED, &[folder.path().as_os_str()]), name);
    }
}

#[test]
fn the_example_decides_with_either_library() {
    for link in [Link::Static, Link::Shared] {
        let output = run(&path("examples/decide.c"), link);
        let text = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{link:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
        assert!(text.contains("holds after"), "{link:?}: {text}");
        // The level in the article, -17.23855…, differs from the sixth digit on, because it uses simpler bounds on
        // factorials.
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
            let output = run_with(&path("examples/slab.c"), link, C99, &[file.as_os_str()]);
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
        let output = run_with(&path("tests/slab.c"), link, C99, &[folder.path().as_os_str()]);
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
