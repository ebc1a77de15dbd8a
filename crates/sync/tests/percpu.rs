//! Tests of areas and per-CPU words, by one thread and by many undisturbed threads, with every kind of area.
#![cfg(all(feature = "std", not(loom)))]

#[path = "support/sources.rs"]
mod sources;

use std::thread;

use millstream_sync::percpu::{Area, Sections, Source, Words, restart};

/// Pins this thread to its processor, so that it finds again what it stored there.
fn stay() {
    // SAFETY: the calls only read and write `one`, and zeros are a valid mask.
    unsafe {
        let mut one: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(libc::sched_getcpu() as usize, &mut one);
        assert_eq!(libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &one), 0);
    }
}

#[test]
fn the_environment_selects_the_source() {
    let wish = std::env::var("MILLSTREAM_RSEQ").unwrap_or_default();
    let told_not_to = std::env::var("GLIBC_TUNABLES").is_ok_and(|tunables| tunables.contains("rseq=0"));
    let sources: Vec<Source> =
        (0..3).flat_map(|_| thread::spawn(|| [Area::source(), Area::source()]).join().unwrap()).collect();
    let allowed: &[Source] = match wish.as_str() {
        "off" => &[Source::None],
        // The kernel may lack the call, or glibc may have registered the thread first.
        "own" if told_not_to => &[Source::Own],
        "own" => &[Source::Own, Source::None],
        _ => &[Source::Libc, Source::Own, Source::None],
    };
    assert!(sources.iter().all(|source| allowed.contains(source)), "{sources:?} by MILLSTREAM_RSEQ={wish}");
}

#[test]
fn words_add_raise_and_update() {
    let words = Words::new(3);
    thread::scope(|scope| {
        for thread in 0..4 {
            let words = &words;
            scope.spawn(move || {
                for i in 0..10_000 {
                    words.word(0).add(2);
                    words.word(1).raise(thread * 10_000 + i);
                    words.word(2).update(|old| old + 3);
                }
            });
        }
    });
    assert_eq!(words.word(0).copies().sum::<u64>(), 80_000);
    assert_eq!(words.word(1).copies().max(), Some(39_999));
    assert_eq!(words.word(2).copies().sum::<u64>(), 120_000);
}

#[test]
fn update_returns_the_former_value() {
    thread::spawn(|| {
        stay();
        let words = Words::new(1);
        // Only a change of the concurrency id can interfere, and then the other copy starts at zero.
        let old: Vec<u64> = (0..100).map(|_| words.word(0).update(|old| old + 1)).collect();
        assert_eq!(words.word(0).copies().sum::<u64>(), 100);
        assert!(old.iter().all(|&old| old < 100) && old.windows(2).filter(|two| two[1] == two[0] + 1).count() > 50);
    })
    .join()
    .unwrap();
}

#[test]
fn sections_are_restarted_where_the_kernel_can() {
    // Only a kernel before 5.10 or a sandbox refuses these, and then it refuses both.
    let all = restart(Sections::All).map_err(|error| error.raw_os_error());
    let one = restart(Sections::On(0)).map_err(|error| error.raw_os_error());
    assert_eq!(all, one);
    assert!(all.is_ok() || matches!(all, Err(Some(libc::EINVAL | libc::ENOSYS | libc::EPERM))), "{all:?}");
}

#[test]
fn again_with_other_areas() {
    sources::again_with_other_areas("again_with_other_areas", "");
}
