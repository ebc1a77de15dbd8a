//! The Rust interfaces of published libraries since the last release: a breaking change requires a new version.

use std::path::Path;
use std::process::Command;

use super::{Bench, Part};
use crate::interface::is_promised;
use crate::packages::published;
use crate::step::cargo;
use crate::tools::Tool;

pub(super) fn part(root: &Path) -> Result<Part, String> {
    let libraries = published(root)?.into_iter().filter(is_promised);
    let packages: Vec<String> = libraries.map(|member| format!("--package={}", member.package)).collect();
    Ok(Part {
        name: "semver".to_owned(),
        group: "semver",
        about: "no library breaks its users since the newest tag, or the revision of --baseline-rev",
        tools: vec![Tool::cargo_semver_checks()],
        work: Box::new(move |bench| {
            let Some(revision) = baseline(bench)? else {
                bench.say(
                    "   no release is tagged, so nothing was promised; --baseline-rev names a revision to compare with",
                );
                return Ok(());
            };
            let mut check = Command::new(cargo());
            check.args(["semver-checks", "--baseline-rev", &revision]).args(&packages);
            bench.run(&mut check)
        }),
    })
}

/// Returns the revision to compare with: the chosen one, or the newest tag among the ancestors of the current commit.
fn baseline(bench: &Bench<'_>) -> Result<Option<String>, String> {
    if let Some(revision) = bench.baseline {
        return Ok(Some(revision.to_owned()));
    }
    newest_tag(bench.root)
}

fn newest_tag(root: &Path) -> Result<Option<String>, String> {
    let tags = Command::new("git").args(["tag", "--merged", "HEAD", "--sort=-creatordate"]).current_dir(root).output();
    let tags = tags.map_err(|error| format!("could not start git: {error}"))?;
    if !tags.status.success() {
        return Err(format!("git tag: {}", String::from_utf8_lossy(&tags.stderr).trim()));
    }
    Ok(String::from_utf8_lossy(&tags.stdout).lines().next().map(str::to_owned))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_newest_tag_is_the_baseline_unless_another_revision_is_chosen() {
        let root = std::env::temp_dir().join(format!("millstream-tags-{}", std::process::id()));
        fs::create_dir_all(&root).unwrap();
        let git = |args: &str, day: u32| {
            let date = format!("2026-01-{day:02}T00:00:00Z");
            let mut git = Command::new("git");
            git.args(["-c", "user.name=x", "-c", "user.email=x@example.com", "-c", "commit.gpgsign=false"]);
            git.args(args.split(' ')).current_dir(&root).env("GIT_COMMITTER_DATE", &date).env("GIT_AUTHOR_DATE", &date);
            assert!(git.output().unwrap().status.success(), "git {args}");
        };
        git("init --quiet", 1);
        git("commit --quiet --allow-empty -m one", 1);
        assert_eq!(newest_tag(&root).unwrap(), None);
        git("tag v0.10.0", 1);
        git("commit --quiet --allow-empty -m two", 2);
        git("tag v0.9.1", 2);
        assert_eq!(newest_tag(&root).unwrap().as_deref(), Some("v0.9.1"), "the newest, not the greatest name");
        let bench = Bench { root: &root, time: std::time::Duration::ZERO, baseline: Some("v0.10.0"), log: None };
        assert_eq!(baseline(&bench).unwrap().as_deref(), Some("v0.10.0"));
        fs::remove_dir_all(&root).unwrap();
    }

    #[test]
    fn the_libraries_are_compared_and_the_commands_are_not() {
        let members = published(crate::root()).unwrap();
        let compared = |short: &str| members.iter().any(|member| member.short == short && is_promised(member));
        assert!(compared("ring") && compared("millstream") && !compared("cli") && !compared("c"));
    }
}
