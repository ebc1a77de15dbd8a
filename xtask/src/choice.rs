//! The arguments of `cargo xtask test`: which steps run, for which packages.

use std::path::Path;

use crate::checks::{self, Scope};
use crate::fast::{SLOW_PROGRAMS, SLOW_TESTS};
use crate::members::{self, Member};
use crate::names::unknown;
use crate::step::{self, Step};

/// A requested run.
#[derive(Debug)]
pub(crate) struct Choice {
    is_fast: bool,
    /// The chosen packages; empty for the whole workspace.
    members: Vec<Member>,
    /// The chosen steps; empty for every step that the packages have.
    steps: Vec<String>,
}

impl Choice {
    /// Reads `[--fast] [CRATE]… [STEP]…`, in any order.
    ///
    /// # Errors
    /// Names a word that is neither a crate nor a step, and lists the known ones.
    pub(crate) fn parse(args: &[String], root: &Path) -> Result<Self, String> {
        let known = members::all(root)?;
        let steps: Vec<&str> = every_step(&known).iter().map(|step| step.name).collect();
        let mut choice = Choice { is_fast: false, members: Vec::new(), steps: Vec::new() };
        for arg in args {
            if arg == "--fast" {
                choice.is_fast = true;
            } else if let Some(member) = known.iter().find(|member| member.short == *arg) {
                choice.members.push(member.clone());
            } else if steps.contains(&arg.as_str()) {
                choice.steps.push(arg.clone());
            } else {
                let shorts = known.iter().map(|member| member.short.as_str());
                let names: Vec<&str> = steps.iter().copied().chain(shorts).collect();
                return Err(unknown("step or crate", arg, &names));
            }
        }
        Ok(choice)
    }

    /// Returns the chosen steps, in their order.
    ///
    /// # Errors
    /// Names a step that the chosen packages do not have.
    fn plan(&self, root: &Path) -> Result<Vec<Step>, String> {
        let is_workspace = self.members.is_empty();
        let all = if is_workspace { members::all(root)? } else { Vec::new() };
        let members = if is_workspace { &all } else { &self.members };
        let mut steps = checks::all(&Scope { members, is_workspace, is_fast: self.is_fast });
        if let Some(absent) = self.steps.iter().find(|name| steps.iter().all(|step| step.name != **name)) {
            return Err(format!("there is no step `{absent}` for {}", self.crates()));
        }
        steps.retain(|step| {
            let is_named = self.steps.iter().any(|name| name == step.name);
            let is_meant = self.steps.is_empty() && (is_workspace || step.narrows) && (!self.is_fast || step.is_fast);
            is_named || is_meant
        });
        Ok(steps)
    }

    /// Runs the chosen steps, and names the steps that `--fast` left out.
    ///
    /// # Errors
    /// Names the step that failed, and the command that repeats it.
    pub(crate) fn run(&self, root: &Path) -> Result<(), String> {
        let steps = self.plan(root)?;
        let mut repeat = if self.is_fast { "--fast ".to_owned() } else { String::new() };
        self.members.iter().for_each(|member| repeat.push_str(&format!("{} ", member.short)));
        let fast: Vec<&str> = steps.iter().map(|step| step.name).collect();
        step::run_all(steps, &repeat, root)?;
        if self.is_fast {
            let whole = Choice { is_fast: false, members: self.members.clone(), steps: self.steps.clone() };
            println!("{}", left_out(&fast, &whole.plan(root)?));
        }
        Ok(())
    }

    fn crates(&self) -> String {
        let shorts: Vec<&str> = self.members.iter().map(|member| member.short.as_str()).collect();
        shorts.join(", ")
    }
}

/// Returns the steps that a fast run left out.
fn left_out(fast: &[&str], whole: &[Step]) -> String {
    let steps: Vec<&str> = whole.iter().map(|step| step.name).filter(|name| !fast.contains(name)).collect();
    let mut text = String::new();
    if !steps.is_empty() {
        text.push_str(&format!("   left out by --fast: the steps {};\n", steps.join(", ")));
    }
    text.push_str(&format!(
        "   left out of unit: the examples in the docs, unit tests named {}, and the programs {}",
        SLOW_TESTS.join(", "),
        SLOW_PROGRAMS.join(", ")
    ));
    text
}

/// Returns every step of the workspace.
pub(crate) fn every_step(members: &[Member]) -> Vec<Step> {
    checks::all(&Scope { members, is_workspace: true, is_fast: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Choice, String> {
        Choice::parse(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>(), crate::root())
    }

    fn plan(args: &[&str]) -> Vec<&'static str> {
        parse(args).unwrap().plan(crate::root()).unwrap().iter().map(|step| step.name).collect()
    }

    #[test]
    fn no_words_choose_every_step() {
        let members = members::all(crate::root()).unwrap();
        let every: Vec<&str> = every_step(&members).iter().map(|step| step.name).collect();
        assert_eq!(plan(&[]), every);
    }

    #[test]
    fn named_steps_run_in_their_order() {
        assert_eq!(plan(&["doc", "fmt"]), ["fmt", "doc"]);
        assert_eq!(plan(&["ring", "promises", "unit"]), ["promises", "unit"]);
    }

    #[test]
    fn a_crate_chooses_the_steps_that_narrow_to_it() {
        assert_eq!(plan(&["ring"]), ["fmt", "clippy", "unit", "doc", "loom"]);
        assert_eq!(plan(&["cli"]), ["fmt", "clippy", "unit", "doc"]);
        assert_eq!(plan(&["--fast", "ring"]), ["fmt", "clippy", "unit"]);
    }

    #[test]
    fn a_fast_run_says_what_it_leaves_out() {
        let whole = parse(&[]).unwrap().plan(crate::root()).unwrap();
        let text = left_out(&plan(&["--fast"]), &whole);
        assert!(text.contains("features, bare, doc, python, loom") && text.contains("reclaim_torture"), "{text}");
    }

    #[test]
    fn a_step_that_a_crate_does_not_have_is_an_error() {
        let error = parse(&["flow", "loom"]).unwrap().plan(crate::root()).err();
        assert_eq!(error.as_deref(), Some("there is no step `loom` for flow"));
    }

    #[test]
    fn an_unknown_word_lists_steps_and_crates_and_names_the_nearest() {
        let error = parse(&["clipy"]).unwrap_err();
        assert!(error.contains("`clipy`. Did you mean `clippy`?") && error.contains("barrierd"), "{error}");
    }
}
