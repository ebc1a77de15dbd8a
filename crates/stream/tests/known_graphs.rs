//! Tests eight graphs on which other systems hang or grow. Here, each runs within its bounds or is refused.
//!
//! | graph | known from |
//! | --- | --- |
//! | every other value zipped with every value | the article that poses the problem; `tee`, two pipes and `paste`; `itertools.tee` |
//! | a broadcast, one branch without its first values, zipped | Akka streams |
//! | one filtered branch joined with the other | two pipes and `grep` |
//! | one branch that is twice as long | interleaving a stream with itself |
//! | a join that waits for an aggregate of its own input | hash joins fed from one scan |
//! | two consumers, one of them slow | multiplexers into a file and a query |
//! | branches that are cut and joined in groups | repartitioned scans |
//! | a chain of forks that join | pipelines of operators |

use millstream_stream::check::{Cause, CheckError, Proof, Refusal};
use millstream_stream::{Program, RunError, Stream};

fn x(values: u64) -> Stream<u64> {
    Program::new().iter("x", 0..values).share()
}

fn refused<T: Clone + 'static>(stream: &Stream<T>) -> Refusal {
    match stream.check() {
        Err(CheckError::Refused(refusal)) => *refusal,
        other => panic!("{other:?}"),
    }
}

/// Runs a stream to its end and returns the number of its values.
fn count<T: Clone + 'static>(stream: &Stream<T>) -> u64 {
    stream.run().unwrap().for_each(|_| {}).unwrap().values
}

fn most(proof: &Proof) -> u64 {
    proof.edges().iter().map(|bound| bound.values).max().unwrap()
}

#[test]
fn every_other_value_beside_every_value_is_refused() {
    let x = x(1);
    let refusal = refused(&x.every(2).zip(&x));
    assert_eq!((refusal.cause, refusal.growing), (Cause::Rates, 1));
    assert_eq!(refusal.growth.unwrap().to_string(), "1 of 2");
}

#[test]
fn a_branch_without_its_first_values_is_bounded_by_their_number() {
    let x = x(100_000);
    let pairs = x.skip(5).zip(&x);
    assert_eq!(most(&pairs.check().unwrap()), 6);
    assert_eq!(count(&pairs), 99_995);
}

#[test]
fn a_filtered_branch_beside_the_other_is_refused_and_runs_with_marks() {
    let x = x(10_000);
    let rare = x.filter(|n| n % 1000 == 999);
    assert_eq!(refused(&rare.zip(&x)).cause, Cause::Data);
    assert_eq!(count(&rare.align(&x).zip(&x)), 10_000);
}

#[test]
fn a_branch_of_twice_the_length_is_refused() {
    let x = x(1);
    let refusal = refused(&x.repeat(2).zip(&x));
    assert_eq!((refusal.cause, refusal.growing), (Cause::Rates, 0));
    assert_eq!(refusal.growth.unwrap().to_string(), "1 of 1");
    // With a pattern that matches the rates, the merge runs.
    let merged = Stream::merge_by(&[x.repeat(2), x.clone()], &[0, 0, 1]);
    assert_eq!(most(&merged.check().unwrap()), 1);
}

#[test]
fn a_join_that_waits_for_an_aggregate_of_its_input_is_refused_and_runs_with_a_spill() {
    let folder = tempfile::tempdir().unwrap();
    let x = x(50_000);
    let sum = x.reduce(0, |sum, n| *sum += n);
    assert_eq!(refused(&sum.zip(&x)).cause, Cause::End);
    let pairs: Result<Vec<(u64, u64)>, RunError> = sum.zip(&x.spill(folder.path())).run().unwrap().values().collect();
    assert_eq!(pairs.unwrap(), [(49_999 * 25_000, 0)]);
}

#[test]
fn two_consumers_of_one_stream_never_wait_for_each_other() {
    let x = x(20_000);
    let (quick, slow) = (x.map(|n| n + 1), x.windows(100, 50).map(|window| window[0]));
    // Only the final results of the two consumers are joined.
    let ends = quick.reduce(0, |sum, n| *sum += n).zip(&slow.reduce(0, |sum, n| *sum += n));
    assert_eq!(most(&ends.check().unwrap()), 1);
    assert_eq!(count(&ends), 1);
}

#[test]
fn branches_that_are_cut_and_joined_in_groups_have_the_smallest_bound() {
    let x = x(30_000);
    let heads = x.every_from(3, 2).repeat(3);
    let pairs = heads.zip(&x);
    assert_eq!(most(&pairs.check().unwrap()), 3);
    assert_eq!(count(&pairs), 30_000);
}

#[test]
fn a_chain_of_forks_that_join_is_bounded_link_by_link() {
    let mut stream = x(2_000);
    for _ in 0..250 {
        stream = stream.skip(1).map(|n| n % 7).zip_with(&stream, |a, b| a ^ b);
    }
    let proof = stream.check().unwrap();
    assert!(proof.edges().len() > 500);
    assert_eq!(most(&proof), 2);
    assert_eq!(count(&stream), 2_000 - 250);
}
