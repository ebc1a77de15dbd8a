//! Tests both kinds of guards, recycling, trimming and depth on the real kernel.

use std::ptr;

use super::chunk::Chunk;
use super::guard::Guards;
use super::layout::{Layout, page_bytes};
use super::{Stack, StackCache, StackPool};
use crate::error::StackError;

fn kinds() -> Vec<Guards> {
    // If the kernel has no marks, only the other kind can be tested.
    if Guards::best() == Guards::Marks { vec![Guards::Marks, Guards::Mappings] } else { vec![Guards::Mappings] }
}

fn pool(guards: Guards, max_warm: usize) -> StackPool {
    StackPool::new(Layout::new(64 << 10, 16 << 10), guards, max_warm)
}

/// Returns whether the byte at `address` can be read. A system call reads it: for an invalid address, the call returns an error,
/// whereas a load would fault.
fn is_readable(address: usize) -> bool {
    let mut ends = [0; 2];
    // SAFETY: the calls fill `ends` and use the descriptors in it; `write` checks the address itself.
    unsafe {
        assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
        let written = libc::write(ends[1], address as *const libc::c_void, 1);
        libc::close(ends[0]);
        libc::close(ends[1]);
        written == 1
    }
}

/// Writes to the stack at `depth` bytes below its top.
fn touch(stack: &Stack, depth: usize) {
    let (_, top) = stack.span();
    // SAFETY: the test owns the stack, and the address is in the stack.
    unsafe { ptr::write_volatile((top - depth) as *mut u8, 7) };
}

#[test]
fn every_guard_faults_and_every_stack_is_usable() {
    for kind in kinds() {
        let pool = pool(kind, 16);
        let mut stacks = Vec::new();
        while stacks.len() < 200 {
            pool.acquire(&mut stacks, 8).unwrap();
        }
        for stack in &stacks {
            let (limit, top) = stack.span();
            let floor = limit + pool.layout.guard_bytes;
            assert_eq!(top - floor, 64 << 10);
            for guarded in [limit, limit + page_bytes(), floor - 1] {
                assert!(!is_readable(guarded), "{kind:?}: {guarded:x} is in a guard");
            }
            touch(stack, 1);
            touch(stack, 64 << 10);
            assert!(is_readable(floor) && is_readable(top - 1));
        }
        pool.release(stacks.into_iter());
    }
}

#[test]
fn guards_survive_the_trimming_of_their_stack() {
    for kind in kinds() {
        let pool = pool(kind, 0);
        let mut cache = StackCache::default();
        let stack = cache.take(&pool).unwrap();
        let span = stack.span();
        touch(&stack, 8 << 10);
        cache.put(stack, &pool);
        cache.clear(&pool);
        assert_eq!((pool.report().warm, pool.used_bytes(span)), (0, 0), "{kind:?}: the pages are gone");
        assert!(!is_readable(span.0) && is_readable(span.1 - 1), "{kind:?}: the guard is there, the stack usable");
    }
}

#[test]
fn stacks_are_reused_last_in_first_out() {
    let pool = pool(Guards::best(), 16);
    let mut cache = StackCache::default();
    let (first, second) = (cache.take(&pool).unwrap(), cache.take(&pool).unwrap());
    let (first_span, second_span) = (first.span(), second.span());
    assert_ne!(first_span, second_span);
    cache.put(first, &pool);
    cache.put(second, &pool);
    assert_eq!(cache.take(&pool).unwrap().span(), second_span);
    assert_eq!(cache.take(&pool).unwrap().span(), first_span);
}

#[test]
fn idle_stacks_beyond_the_limit_lose_their_pages() {
    let pool = pool(Guards::best(), 10);
    let mut stacks = Vec::new();
    pool.acquire(&mut stacks, 30).unwrap();
    stacks.iter().for_each(|stack| touch(stack, 1));
    let spans: Vec<_> = stacks.iter().map(Stack::span).collect();
    pool.release(stacks.into_iter());
    let report = pool.report();
    assert_eq!((report.warm, report.trimmed, report.reserved), (10, 54, 64));
    let touched = spans.into_iter().filter(|&span| pool.used_bytes(span) > 0).count();
    assert_eq!(touched, 10);
}

#[test]
fn the_high_water_mark_counts_whole_pages_and_outlives_trimming() {
    let page = page_bytes();
    let pool = pool(Guards::best(), 0);
    let mut stacks = Vec::new();
    pool.acquire(&mut stacks, 3).unwrap();
    assert_eq!(pool.report().high_water_bytes, 0);
    touch(&stacks[0], 1);
    assert_eq!(pool.used_bytes(stacks[0].span()), page);
    touch(&stacks[1], 2 * page + 1);
    assert_eq!(pool.report().high_water_bytes, 3 * page);
    pool.release(stacks.into_iter());
    assert_eq!(pool.report().high_water_bytes, 3 * page, "it is kept when the stack is trimmed");
}

#[test]
fn sizes_are_rounded_to_pages_within_the_limits() {
    let page = page_bytes();
    let smallest = Layout::new(0, 0);
    assert_eq!((smallest.stack_bytes, smallest.guard_bytes), ((16_usize << 10).next_multiple_of(page), page));
    let odd = Layout::new((64 << 10) + 1, page + 1);
    assert_eq!((odd.stack_bytes, odd.guard_bytes), (((64_usize << 10) + 1).next_multiple_of(page), 2 * page));
    assert_eq!(Layout::new(usize::MAX, usize::MAX).stride(), (1 << 30) + (1 << 20));
}

#[test]
fn more_mapped_guards_than_the_kernel_allows_are_an_error_with_the_limit() {
    let pool = StackPool::new(Layout::new(16 << 10, 4 << 10), Guards::Mappings, 0);
    let mut stacks = Vec::new();
    let error = loop {
        match pool.acquire(&mut stacks, 4096) {
            // The machine's limit on mappings is so high that the test cannot reach it.
            Ok(()) if stacks.len() > 200_000 => return,
            Ok(()) => {}
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("vm.max_map_count") && error.contains("Linux 6.13"), "{error}");
    // The rest of the program still gets mappings, and the existing stacks remain usable.
    touch(stacks.last().unwrap(), 1);
    assert!(std::thread::spawn(|| vec![0u8; 1 << 20].len()).join().is_ok());
    pool.release(stacks.into_iter());
}

#[test]
fn a_refusal_of_address_space_is_an_error_with_the_size() {
    let layout = Layout::new(1 << 30, 0);
    for stacks in [1 << 20, usize::MAX / 2] {
        let source = Chunk::map(layout, stacks, Guards::best()).unwrap_err();
        assert_eq!(source.kind(), std::io::ErrorKind::OutOfMemory);
        let error = StackError::Memory { bytes: 2 << 50, stacks: 3, source }.to_string();
        assert!(error.contains("address space beside 3 stacks"), "{error}");
    }
}
