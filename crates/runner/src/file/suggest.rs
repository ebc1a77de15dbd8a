//! "Did you mean": the known word nearest to a mistyped one.

/// The word of `known` that `word` was most likely meant to be, if one is near enough.
///
/// A word is near enough if at most a third of its letters are wrong (swapped neighbours count once); a single wrong
/// letter is always allowed.
pub fn closest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // The comparison's cost grows with the product of the lengths, and no known word is this long.
    if word.len() > 64 {
        return None;
    }
    let normal = word.replace('_', "-").to_lowercase();
    known
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&normal, &candidate.replace('_', "-").to_lowercase()), candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.chars().count() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::closest;

    #[test]
    fn a_misspelling_is_recognised() {
        assert_eq!(closest("neds", ["name", "needs", "next"]), Some("needs"));
        assert_eq!(closest("Timeout", ["timeout", "times"]), Some("timeout"));
        assert_eq!(closest("after-failure", ["after_failure"]), Some("after_failure"));
    }

    #[test]
    fn a_different_word_is_not_suggested() {
        assert_eq!(closest("frobnicate", ["name", "needs", "next"]), None);
        assert_eq!(closest(&"x".repeat(100_000), ["name"]), None);
    }
}
