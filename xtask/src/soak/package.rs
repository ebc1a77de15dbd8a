//! The archives that a registry would get: every package builds from its archive, and each library passes the tests in
//! its archive.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::{Bench, Part};
use crate::members::Member;
use crate::packages::published;
use crate::step::cargo;

pub(super) fn part(root: &Path) -> Result<Part, String> {
    let members = published(root)?;
    let all = crate::members::all(root)?;
    let private: Vec<String> =
        all.into_iter().filter(|member| !members.contains(member)).map(|member| member.package).collect();
    Ok(Part {
        name: "package".to_owned(),
        group: "package",
        about: "every package builds from its archive, and the archives of libraries pass their tests",
        tools: Vec::new(),
        work: Box::new(move |bench| {
            let mut package = Command::new(cargo());
            package.args(["package", "--workspace", "--allow-dirty", "--target-dir=target/package-soak"]);
            bench.run(package.args(private.iter().map(|package| format!("--exclude={package}"))))?;
            // The folder is outside the workspace, because cargo would otherwise treat the packages as members of it.
            let folder = std::env::temp_dir().join(format!("millstream-archives-{}", std::process::id()));
            let outcome = test(bench, &members, &folder);
            // Failing to remove the folder is not an error.
            drop(fs::remove_dir_all(&folder));
            outcome
        }),
    })
}

/// Unpacks all archives, and tests those of libraries. Dependencies come from the other archives instead of the
/// registry.
fn test(bench: &Bench<'_>, members: &[Member], folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let archives = bench.root.join("target/package-soak/package");
    let version = env!("CARGO_PKG_VERSION");
    let mut replace = Vec::new();
    for Member { package, .. } in members {
        let archive = archives.join(format!("{package}-{version}.crate"));
        bench.run(Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(folder))?;
        let unpacked = folder.join(format!("{package}-{version}"));
        replace.push(format!("--config=patch.crates-io.{package}.path='{}'", unpacked.display()));
    }
    let target = format!("--target-dir={}", bench.root.join("target/package-soak/tests").display());
    for member in members.iter().filter(|member| is_tested(member)) {
        let manifest = folder.join(format!("{}-{version}/Cargo.toml", member.package));
        let mut test = Command::new(cargo());
        test.arg("test").arg(format!("--manifest-path={}", manifest.display())).args(&replace).arg(&target);
        // The workspace's profile has this setting, but the archives do not contain the profile.
        bench.run(test.arg("--config=profile.dev.opt-level=1"))?;
    }
    Ok(())
}

/// Returns whether the tests of a package run from its archive. Those of the commands need flows of the repository, and
/// those of the C bindings need the folders of their own build.
fn is_tested(member: &Member) -> bool {
    member.has_library() && !["c", "cli", "command", "instruments", "runner"].contains(&member.short.as_str())
}
