//! Names on the command line, and the message for an unknown name.

/// Returns the message that reports `given` as unknown. It lists the `known` names and suggests the nearest.
pub(crate) fn unknown(kind: &str, given: &str, known: &[&str]) -> String {
    let mut message = format!("there is no {kind} `{given}`.");
    if let Some(nearest) = nearest(given, known) {
        message.push_str(&format!(" Did you mean `{nearest}`?"));
    }
    message.push_str(&format!(" There are: {}", known.join(", ")));
    message
}

/// Returns the known name that differs from `given` in the fewest letters, if it is similar at all.
fn nearest<'a>(given: &str, known: &[&'a str]) -> Option<&'a str> {
    let distance = |name: &&str| strsim::damerau_levenshtein(given, name);
    known.iter().copied().min_by_key(distance).filter(|name| distance(name) <= 1 + given.chars().count() / 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_offered_if_it_is_near() {
        let known = ["clippy", "unit", "doc"];
        assert_eq!(
            unknown("step", "clipy", &known),
            "there is no step `clipy`. Did you mean `clippy`? There are: clippy, unit, doc"
        );
        assert_eq!(
            unknown("step", "everything", &known),
            "there is no step `everything`. There are: clippy, unit, doc"
        );
    }
}
