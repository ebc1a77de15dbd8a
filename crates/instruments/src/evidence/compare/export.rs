//! The times as files, in the formats of hyperfine.

use super::commands::Command;
use super::times::Summary;
use crate::evidence::json::Object;
use crate::evidence::number::exact;

/// `{"results":[…]}`, each result with all its times in seconds.
pub(super) fn json(commands: &[Command]) -> String {
    let results: Vec<Object> = commands
        .iter()
        .filter_map(|command| command.times.summary().map(|summary| (command, summary)))
        .map(|(command, summary)| {
            let statuses: Vec<String> = command
                .times
                .statuses
                .iter()
                .map(|status| status.map_or_else(|| "null".to_owned(), |status| status.to_string()))
                .collect();
            let times: Vec<String> = command.times.wall.iter().map(|time| exact(*time)).collect();
            let parameters =
                command.values.iter().fold(Object::new(), |object, (name, value)| object.text(name, value.as_str()));
            figures(Object::new().text("command", command.name.as_str()), &summary)
                .raw("times", &format!("[{}]", times.join(",")))
                .raw("exit_codes", &format!("[{}]", statuses.join(",")))
                .object("parameters", &parameters)
        })
        .collect();
    format!("{}\n", Object::new().list("results", &results).done())
}

/// Adds the members that summarise the times of a command.
pub(super) fn figures(object: Object, summary: &Summary) -> Object {
    object
        .number("mean", summary.mean)
        .maybe("stddev", summary.deviation)
        .number("median", summary.median)
        .number("user", summary.user)
        .number("system", summary.system)
        .number("min", summary.min)
        .number("max", summary.max)
}

/// Returns a line for each command.
pub(super) fn csv(commands: &[Command]) -> String {
    let names = commands.first().map_or(&[][..], |command| command.values.as_slice());
    let mut out = "command,mean,stddev,median,user,system,min,max".to_owned();
    names.iter().for_each(|(name, _)| out += &format!(",{}", quoted(&format!("parameter_{name}"))));
    out.push('\n');
    for command in commands {
        let Some(summary) = command.times.summary() else { continue };
        let Summary { mean, deviation, median, user, system, min, max, .. } = summary;
        let deviation = deviation.map_or_else(String::new, exact);
        let [mean, median, user, system, min, max] = [mean, median, user, system, min, max].map(exact);
        out += &format!("{},{mean},{deviation},{median},{user},{system},{min},{max}", quoted(&command.name));
        command.values.iter().for_each(|(_, value)| out += &format!(",{}", quoted(value)));
        out.push('\n');
    }
    out
}

/// Returns a field of CSV.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_field_with_a_comma_or_a_quote_is_quoted() {
        assert_eq!(quoted("sort -n"), "sort -n");
        assert_eq!(quoted("echo \"a,b\""), "\"echo \"\"a,b\"\"\"");
    }
}
