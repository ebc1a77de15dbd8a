//! The list of commands in `millstream --help`, with a paragraph for each family of commands; clap itself makes a
//! single list.

use clap::Command;
use clap::builder::StyledStr;

/// The heading of each family and its first command; a family ends before the first command of the next one. `help` has
/// no family.
const FAMILIES: [(&str, &str); 5] =
    [("Flows", "run"), ("Streams", "stream"), ("Evidence", "slo"), ("Machine", "slab"), ("", "help")];

/// Returns the command with a help that lists its subcommands by family.
pub(crate) fn by_family(command: Command) -> Command {
    let styles = command.get_styles().clone();
    let (heading, literal) = (styles.get_header(), styles.get_literal());
    let starts = FAMILIES.map(|(family, first)| (family, format!("  {literal}{first}{literal:#}")));
    let mut list = String::new();
    for line in command.clone().help_template("{subcommands}").render_help().ansi().to_string().trim_end().lines() {
        if let Some((family, _)) = starts.iter().find(|(_, start)| line.starts_with(start)) {
            list += if list.is_empty() { "" } else { "\n" };
            if !family.is_empty() {
                list += &format!("{heading}{family}:{heading:#}\n");
            }
        }
        list += line;
        list.push('\n');
    }
    let page = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}\n{heading}Options:{heading:#}\n{{options}}{{after-help}}"
    );
    command.help_template(StyledStr::from(page))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    #[test]
    fn every_command_is_listed_in_its_family() {
        let mut listed = by_family(Cli::command());
        for page in [listed.render_help(), listed.render_long_help()] {
            let page = page.to_string();
            // A line that is indented further continues the line above it.
            let word = |line: &str| line.strip_prefix("  ").unwrap_or(line).split(' ').next().map(str::to_owned);
            let first_words =
                |paragraph: &str| paragraph.lines().filter_map(word).filter(|word| !word.is_empty()).collect();
            let families: Vec<Vec<String>> = page.split("\n\n").map(first_words).collect();
            for family in [
                &[
                    "Flows:", "run", "plan", "each", "init", "test", "retry", "status", "top", "explain", "fibers",
                    "set", "whatif", "page",
                ][..],
                &["Streams:", "stream", "tee"],
                &["Evidence:", "slo", "compare", "csm", "history"],
                &["Machine:", "slab", "barrierd", "doctor"],
                &["help"],
            ] {
                assert!(families.iter().any(|found| found == family), "{family:?} in\n{page}");
            }
            assert!(page.contains("\n\nOptions:\n  -h, --help"), "{page}");
        }
    }
}
