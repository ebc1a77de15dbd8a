//! The library is installed to a fresh prefix, and used with its header, pkg-config and CMake.

mod support;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

use support::{SONAME, library, path};
use tempfile::TempDir;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Installs the libraries of this build to `prefix`, below `root` if there is one.
fn install(prefix: &Path, root: Option<&Path>) {
    let built = TempDir::new().expect("a temporary folder");
    for ending in [".a", ".so"] {
        let name = built.path().join(format!("libmillstream_c{ending}"));
        symlink(library(ending), name).expect("the folder is writable");
    }
    let mut install = Command::new(path("install"));
    install.arg(prefix).arg(built.path()).env_remove("DESTDIR").envs(root.map(|root| ("DESTDIR", root)));
    succeed(&mut install);
}

/// A fresh prefix with the library in it.
fn installed() -> TempDir {
    let prefix = TempDir::new().expect("a temporary folder");
    install(prefix.path(), None);
    prefix
}

/// Whether a program that only this test needs is installed; prints a message if not.
fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        println!("skipped: {program} is not installed");
    }
    found
}

/// Runs a command that must succeed.
fn succeed(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let [printed, complaints] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{command:?}: {}\n{printed}{complaints}", output.status);
    output
}

/// A shell in `folder` whose pkg-config searches the prefix.
fn shell(line: &str, folder: &Path, prefix: &Path) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-ec", line]).current_dir(folder).env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"));
    shell.env_remove("LD_LIBRARY_PATH").env("PKG_CONFIG_ALLOW_SYSTEM_CFLAGS", "1");
    shell
}

/// A folder with `program.c`, which prints "holds after …".
fn program() -> TempDir {
    let folder = TempDir::new().expect("a temporary folder");
    fs::copy(path("examples/decide.c"), folder.path().join("program.c")).expect("the example is readable");
    folder
}

#[test]
fn links_and_names_are_those_of_the_version_and_nothing_is_left_for_debuggers() {
    let prefix = installed();
    let lib = prefix.path().join("lib");
    let target = |name: &str| fs::read_link(lib.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(target("libmillstream_c.so"), Path::new(SONAME));
    assert_eq!(target(SONAME), Path::new(&format!("libmillstream_c.so.{VERSION}")));
    let dynamic = succeed(Command::new("readelf").arg("--dynamic").arg(lib.join("libmillstream_c.so")));
    assert!(String::from_utf8_lossy(&dynamic.stdout).contains(&format!("soname: [{SONAME}]")));
    for (name, ending) in [(format!("libmillstream_c.so.{VERSION}"), ".so"), ("libmillstream_c.a".to_owned(), ".a")] {
        let sections = succeed(Command::new("readelf").args(["--sections", "--wide"]).arg(lib.join(&name)));
        assert!(!String::from_utf8_lossy(&sections.stdout).contains(".debug_info"), "{name}");
        let bytes = |path: &Path| path.metadata().expect("the library is there").len();
        assert!(bytes(&lib.join(&name)) < bytes(&library(ending)), "{name}");
    }
}

#[test]
fn a_package_is_laid_out_below_destdir_and_says_only_the_prefix() {
    let root = TempDir::new().expect("a temporary folder");
    install(Path::new("/opt/mill-stream"), Some(root.path()));
    let staged = root.path().join("opt/mill-stream");
    for file in [
        "include/millstream.h",
        "lib/libmillstream_c.a",
        "lib/libmillstream_c.so",
        "lib/pkgconfig/millstream.pc",
        "lib/cmake/millstream/millstream-config.cmake",
        "lib/cmake/millstream/millstream-config-version.cmake",
    ] {
        assert!(staged.join(file).is_file(), "{file}");
        let text = fs::read(staged.join(file)).expect("the file is readable");
        let root = root.path().as_os_str().as_encoded_bytes();
        assert!(!text.windows(root.len()).any(|part| part == root), "{file} names the root of the package");
        assert!(!text.windows(9).any(|part| part == b"@version@" || part == b"@prefix@\n"), "{file} is not filled");
    }
    for (prefix, expected) in [
        ("relative", "expected an absolute PREFIX, found 'relative'"),
        ("/two words", "expected a PREFIX without spaces"),
        ("/this&that", "found '/this&that'"),
    ] {
        let refused = Command::new(path("install")).arg(prefix).arg("/nowhere").output().expect("the script starts");
        assert_eq!(refused.status.code(), Some(2), "{prefix}");
        let message = String::from_utf8_lossy(&refused.stderr);
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn the_compile_line_of_the_header_makes_a_program_that_runs() {
    if !has("pkg-config") {
        return;
    }
    let (prefix, folder) = (installed(), program());
    let header = fs::read_to_string(prefix.path().join("include/millstream.h")).expect("the header is readable");
    let (_, line) = header.split_once("Compile with\n").expect("the header has a compile line");
    let line = line.lines().next().unwrap_or_default().trim_start_matches([' ', '*']);
    assert!(line.starts_with("cc program.c $(pkg-config"), "{line}");
    let output = succeed(&mut shell(&format!("{line} -o program -lm; ./program"), folder.path(), prefix.path()));
    assert!(String::from_utf8_lossy(&output.stdout).contains("holds after"));
}

/// The first block of a language in the README.
fn block<'a>(readme: &'a str, language: &str) -> &'a str {
    let (_, rest) = readme.split_once(&format!("```{language}\n")).expect("the README has the block");
    rest.split_once("```").expect("the block ends").0
}

#[test]
fn the_program_of_the_readme_compiles_by_its_lines_and_runs() {
    if !has("pkg-config") || !has("c++") || !has("cmake") {
        return;
    }
    let (prefix, folder) = (installed(), TempDir::new().expect("a temporary folder"));
    let readme = fs::read_to_string(path("README.md")).expect("the README is readable");
    fs::write(folder.path().join("program.c"), block(&readme, "c")).expect("the folder is writable");
    fs::write(folder.path().join("CMakeLists.txt"), block(&readme, "cmake")).expect("the folder is writable");
    let lines = readme.lines().filter(|line| line.ends_with("-o program"));
    let cmake = "cmake -DCMAKE_PREFIX_PATH=/opt/millstream -S . -B build && cmake --build build";
    assert!(readme.contains(&format!("`{cmake}`")), "the README says how CMake builds");
    let cmake = cmake.replace("/opt/millstream", &prefix.path().display().to_string()) + "; mv build/program .";
    let lines: Vec<&str> = lines.chain([cmake.as_str()]).collect();
    assert_eq!(lines.len(), 4);
    for line in lines {
        let output = succeed(&mut shell(&format!("{line}; ./program"), folder.path(), prefix.path()));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.contains("the median is from 0.0"), "{line}: {text}");
    }
}

#[test]
fn pkg_config_links_static_programs() {
    if !has("pkg-config") {
        return;
    }
    let (prefix, folder) = (installed(), program());
    for statically in ["-static $(pkg-config --static", "$(pkg-config --static"] {
        let line = format!(
            "cc -Werror program.c {statically} --cflags --libs millstream) -o program;
             LD_LIBRARY_PATH=$(pkg-config --variable=libdir millstream) ./program"
        );
        let output = succeed(&mut shell(&line, folder.path(), prefix.path()));
        assert!(String::from_utf8_lossy(&output.stdout).contains("holds after"), "{statically}");
    }
    let version = succeed(&mut shell("pkg-config --modversion millstream", folder.path(), prefix.path()));
    assert_eq!(String::from_utf8_lossy(&version.stdout).trim(), VERSION);
}

#[test]
fn cplusplus_compiles_the_header_and_runs() {
    if !has("c++") {
        return;
    }
    let (prefix, folder) = (installed(), TempDir::new().expect("a temporary folder"));
    let (lib, source) = (prefix.path().join("lib"), path("tests/plain.cpp"));
    for standard in ["-std=c++11", "-std=c++17"] {
        let mut compile = Command::new("c++");
        compile.args([standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-o", "program"]).arg(&source);
        compile.arg("-I").arg(prefix.path().join("include")).arg("-L").arg(&lib).arg("-lmillstream_c");
        succeed(compile.arg(format!("-Wl,-rpath,{}", lib.display())).current_dir(folder.path()));
        succeed(Command::new("./program").current_dir(folder.path()).env_remove("LD_LIBRARY_PATH"));
    }
}

#[test]
fn cmake_finds_the_shared_and_the_static_library() {
    if !has("cmake") {
        return;
    }
    let (prefix, folder) = (installed(), program());
    let project = "cmake_minimum_required(VERSION 3.13)
        project(example C)
        find_package(millstream 0.1 REQUIRED)
        add_executable(shared program.c)
        target_link_libraries(shared millstream::millstream m)
        add_executable(static program.c)
        target_link_libraries(static millstream::static)";
    let write = |text: &str| fs::write(folder.path().join("CMakeLists.txt"), text).expect("the folder is writable");
    let configure = || {
        let mut cmake = Command::new("cmake");
        let prefix = format!("-DCMAKE_PREFIX_PATH={}", prefix.path().display());
        cmake.args(["-S", ".", "-B", "build"]).arg(prefix).current_dir(folder.path());
        cmake
    };
    write(project);
    succeed(&mut configure());
    succeed(Command::new("cmake").args(["--build", "build"]).current_dir(folder.path()));
    for program in ["shared", "static"] {
        let output = succeed(&mut Command::new(folder.path().join("build").join(program)));
        assert!(String::from_utf8_lossy(&output.stdout).contains("holds after"), "{program}");
    }
    // The package refuses programs for other versions.
    for version in ["0.2", "1.0", "0.1.9"] {
        write(&project.replace("millstream 0.1 REQUIRED", &format!("millstream {version} REQUIRED")));
        assert!(!configure().output().expect("cmake starts").status.success(), "{version}");
    }
}
