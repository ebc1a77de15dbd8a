//! Readers and reclaimers with all parts never miss each other; if any one of the parts is removed, they can.

use std::collections::BTreeMap;

use millstream_verify_tso::flag_flip::{Fast, Outcome, Slow, interleavings};
use millstream_verify_tso::machine::Stamp;

fn misses(fast: Fast, slow: Slow) -> Vec<String> {
    let found = interleavings(fast, slow);
    println!("{fast:?}, {slow:?}:");
    found.iter().for_each(|(order, outcome)| println!("  {order}: {outcome}"));
    assert!(found.values().any(|outcome| !outcome.is_use_after_free()), "every execution ends in a use after free");
    found.into_iter().filter(|(_, outcome)| outcome.is_use_after_free()).map(|(order, _)| order).collect()
}

const NONE: [String; 0] = [];
/// The reader checks before its publication is visible, and both steps of the reclaimer come in between.
const FSSF: &str = "lWLp";

#[test]
fn without_a_fence_the_one_bad_interleaving_is_fssf() {
    assert_eq!(misses(Fast::Free, Slow::Fenced), [FSSF]);
}

#[test]
fn a_fence_on_the_readers_side_rules_it_out() {
    assert_eq!(misses(Fast::Fenced, Slow::Fenced), NONE);
}

#[test]
fn an_interrupt_on_the_reclaimers_side_rules_it_out() {
    assert_eq!(misses(Fast::Free, Slow::Interrupting), NONE);
}

#[test]
fn a_spontaneous_interrupt_rules_it_out() {
    assert_eq!(misses(Fast::Free, Slow::Awaiting(Stamp::InOrder)), NONE);
}

#[test]
fn the_interrupt_must_come_after_the_reclaimers_write() {
    assert_eq!(misses(Fast::Free, Slow::InterruptingTooEarly), [FSSF]);
    assert_eq!(misses(Fast::Free, Slow::AwaitingFromTooEarly), [FSSF]);
}

#[test]
fn the_time_of_an_interrupt_must_not_be_seen_before_earlier_stores() {
    assert_eq!(misses(Fast::Free, Slow::Awaiting(Stamp::OutOfOrder)), [FSSF]);
}

#[test]
fn a_reader_that_does_not_recheck_is_missed_whatever_the_fence() {
    for slow in [Slow::Fenced, Slow::Interrupting, Slow::Awaiting(Stamp::InOrder)] {
        assert!(!misses(Fast::Blind, slow).is_empty());
    }
}

/// The table in `docs/reclaim.md`.
#[test]
fn the_machine_agrees_with_the_table_in_the_docs() {
    const COLUMNS: [(Fast, Slow); 4] = [
        (Fast::Free, Slow::Fenced),
        (Fast::Fenced, Slow::Fenced),
        (Fast::Free, Slow::Interrupting),
        (Fast::Free, Slow::Awaiting(Stamp::InOrder)),
    ];
    let found: Vec<BTreeMap<String, Outcome>> = COLUMNS.iter().map(|&(fast, slow)| interleavings(fast, slow)).collect();
    let docs = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reclaim.md")).unwrap();
    for order in found[0].keys() {
        let outcome = found[0][order];
        let cell = |found: &BTreeMap<String, Outcome>| if found.contains_key(order) { "possible" } else { "–" };
        let cells: Vec<&str> = found.iter().map(cell).collect();
        let row = format!("| `{order}` | {outcome} | {} |", cells.join(" | "));
        assert!(docs.contains(&row), "docs/reclaim.md should have the row: {row}");
    }
    assert!(found.iter().all(|found| found.keys().all(|order| docs.contains(&format!("| `{order}` |")))));
}
