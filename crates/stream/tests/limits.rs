//! Tests that the check of large numbers, long chains and awkward clocks returns a correct result or a clear error, and never
//! hangs.

use millstream_stream::check::{CheckError, check};
use millstream_stream::clock::Pass;
use millstream_stream::graph::{Graph, Operator};

/// Returns two paths from one source, joined by a zip.
fn joined(paths: [&[Operator]; 2]) -> Graph {
    let mut graph = Graph::new();
    let x = graph.add(Operator::Source, &[], "x");
    let ends = paths.map(|path| path.iter().fold(x, |node, operator| graph.add(operator.clone(), &[node], "step")));
    let zip = graph.add(Operator::Zip, &ends, "zip");
    graph.add(Operator::Sink, &[zip], "out");
    graph
}

fn every(first: u64, step: u64) -> Operator {
    Operator::Pass(Pass::Every { first, step })
}

#[test]
fn clocks_that_repeat_too_late_are_a_clear_error() {
    for graph in [
        joined([&[every(0, 1 << 40)], &[every(1, 1 << 40)]]),
        joined([&[every(1 << 40, 1)], &[]]),
        joined([&[every(u64::MAX, 1)], &[]]),
        joined([&[Operator::Repeat(1 << 32), every(0, 1 << 32)], &[]]),
    ] {
        match check(&graph) {
            Err(error @ CheckError::PeriodTooLong { .. }) => {
                assert!(error.to_string().contains("1048576 firings"), "{error}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn large_rates_that_differ_are_refused_with_exact_figures() {
    let graph = joined([&[every(0, u64::MAX)], &[every(0, u64::MAX - 1)]]);
    let Err(CheckError::Refused(refusal)) = check(&graph) else { panic!("it was not refused") };
    assert_eq!(refusal.growing, 1);
    let gap = refusal.growth.unwrap();
    assert_eq!((gap.values(), gap.of()), (1, u128::from(u64::MAX) * u128::from(u64::MAX - 1)));
    // The overflow would come after more firings than the check follows.
    assert_eq!(refusal.overflows_at(10), None);
}

#[test]
fn rates_beyond_128_bits_are_an_error_and_never_wrap() {
    let deep = vec![every(0, u64::MAX); 3];
    assert!(matches!(check(&joined([&deep, &[]])), Err(CheckError::RateTooLarge { .. })));
}

#[test]
fn values_that_may_wait_in_two_places_wait_where_they_are_smaller() {
    for lag in [2, 20, 3000] {
        for [before, behind] in [[8, 100], [100, 8]] {
            let mut graph = joined([&[Operator::Prefix(lag)], &[]]);
            let mut sized = Graph::new();
            for (id, node) in std::mem::take(&mut graph).nodes().iter().enumerate() {
                let mut node = node.clone();
                node.value_bytes = if id == 0 { before } else { behind };
                sized.add_node(node);
            }
            let proof = check(&sized).unwrap();
            let bounds: Vec<u64> = proof.edges().iter().map(|bound| bound.values).collect();
            // In this order: the queues in front of the prefix, behind it, on the other path, and in front of the sink.
            let expected = if before < behind { [lag, 1, 1, 1] } else { [1, lag, 1, 1] };
            assert_eq!(bounds, expected);
        }
    }
}

#[test]
fn a_large_lag_is_found_exactly() {
    for lag in [1000, 65_536, 100_001] {
        let proof = check(&joined([&[every(lag, 1)], &[]])).unwrap();
        let largest = proof.edges().iter().map(|bound| bound.values).max();
        assert_eq!(largest, Some(lag + 1));
    }
}

#[test]
fn a_wide_join_and_a_deep_chain_of_joins_are_checked() {
    let mut graph = Graph::new();
    let x = graph.add(Operator::Source, &[], "x");
    let late: Vec<usize> = (0..60).map(|first| graph.add(every(first, 1), &[x], "late")).collect();
    let zip = graph.add(Operator::Zip, &late, "zip");
    graph.add(Operator::Sink, &[zip], "out");
    let bounds: Vec<u64> = check(&graph).unwrap().edges().iter().map(|bound| bound.values).collect();
    assert_eq!(bounds[..60], (1..=60).rev().collect::<Vec<_>>());

    let mut graph = Graph::new();
    let mut node = graph.add(Operator::Source, &[], "x");
    for _ in 0..1000 {
        let late = graph.add(every(2, 1), &[node], "late");
        node = graph.add(Operator::Zip, &[late, node], "zip");
    }
    graph.add(Operator::Sink, &[node], "out");
    let proof = check(&graph).unwrap();
    assert!(proof.edges().iter().filter(|bound| bound.port == 1).all(|bound| bound.values == 3));
}
