//! Tests of the slab's guarantees while all its users live.
#![cfg(not(loom))]

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;

use millstream_slab::{Error, Handle, Holder, Inspection, Private, RawSlab, Recovered, Slab};
use millstream_verify_random::stress;

fn sound(slab: &RawSlab) {
    let report = slab.verify();
    assert!(report.is_sound(), "{report:?}");
}

#[test]
fn all_objects_can_be_allocated_and_each_once() {
    for (objects, chain) in [(1, 1), (2, 64), (63, 64), (64, 64), (1000, 7), (5000, 64)] {
        let slab = Slab::<[u64; 3]>::options(objects).chain(chain).private().unwrap();
        let cache = slab.cache().unwrap();
        let all: Vec<_> = (0..objects).map(|n| cache.alloc([n; 3]).unwrap()).collect();
        assert!(matches!(cache.alloc([0; 3]), Err(Error::Full { objects: full }) if full == objects));
        for (n, object) in (0..).zip(&all) {
            assert_eq!(**object, [n; 3]);
        }
        assert_eq!(all.iter().map(|object| object.handle().index()).collect::<HashSet<_>>().len() as u64, objects);
        drop(all);
        sound(slab.raw());
        drop(cache);
        let usage = slab.raw().usage();
        assert_eq!((usage.free, usage.cached, usage.allocated(), usage.caches), (objects, 0, 0, 0));
        sound(slab.raw());
    }
}

#[test]
fn a_double_free_and_a_stale_handle_are_always_errors() {
    let slab = Slab::<u64>::options(3).chain(1).private().unwrap();
    let cache = slab.cache().unwrap();
    let handle = cache.alloc(1).unwrap().publish();
    cache.free(handle).unwrap();
    for round in 0..1000 {
        for refused in [cache.free(handle), slab.read(handle).map(drop), cache.claim(handle).map(drop)] {
            assert!(matches!(refused, Err(Error::Stale { generation: 1, found, .. }) if found >= 2), "{round}");
        }
        let next = cache.alloc(2).unwrap().publish();
        assert_ne!(next, handle);
        cache.free(next).unwrap();
    }
    sound(slab.raw());
}

#[test]
fn a_foreign_handle_is_an_error() {
    let ours = Slab::<u64>::options(10).private().unwrap();
    let other = Slab::<u64>::options(10).private().unwrap();
    let cache = ours.cache().unwrap();
    let mine = cache.alloc(1).unwrap().publish();
    let theirs = other.cache().unwrap().alloc(2).unwrap().publish();
    assert_eq!((mine.index(), mine.generation()), (theirs.index(), theirs.generation()));
    let words: [u64; 2] = bytemuck::cast(mine);
    let outside: Handle = bytemuck::cast([words[0] | 0xffff_ffff, words[1]]);
    for wrong in [theirs, outside, Handle::default()] {
        assert!(matches!(cache.free(wrong), Err(Error::Foreign)));
        assert!(matches!(ours.read(wrong), Err(Error::Foreign)));
        assert!(matches!(cache.claim(wrong), Err(Error::Foreign)));
    }
    assert_eq!(ours.read(mine).unwrap(), 1);
}

#[test]
fn of_concurrent_frees_of_one_object_one_succeeds() {
    let slab = Slab::<u64>::options(1000).private().unwrap();
    let handles: Vec<_> = {
        let cache = slab.cache().unwrap();
        (0..500).map(|n| cache.alloc(n).unwrap().publish()).collect()
    };
    let freed: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let cache = slab.cache().unwrap();
                    handles.iter().filter(|&&handle| cache.free(handle).is_ok()).count()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(freed, handles.len());
    assert_eq!(slab.raw().usage().allocated(), 0);
    sound(slab.raw());
}

#[test]
fn a_claimed_object_is_out_of_reach_and_its_handle_stays_valid() {
    let slab = Slab::<u64>::options(10).private().unwrap();
    let (cache, other) = (slab.cache().unwrap(), slab.cache().unwrap());
    let handle = cache.alloc(1).unwrap().publish();
    let mut object = other.claim(handle).unwrap();
    *object = 2;
    let pid = std::process::id();
    for refused in [cache.free(handle), slab.read(handle).map(drop), cache.claim(handle).map(drop)] {
        assert!(matches!(refused, Err(Error::Held { pid: found, .. }) if found == pid));
    }
    assert_eq!(slab.live().next().unwrap().holder, Holder::Process { pid });
    assert_eq!(object.publish(), handle);
    assert_eq!(slab.read(handle).unwrap(), 2);

    // Dropping the object frees it and makes its handles stale.
    drop(other.claim(handle).unwrap());
    assert!(matches!(slab.read(handle), Err(Error::Stale { .. })));
    sound(slab.raw());
}

#[test]
fn a_slab_grows_up_to_its_maximum_and_objects_stay_where_they_are() {
    let slab = Slab::<u64>::options(1000).capacity(10).chain(4).private().unwrap();
    let cache = slab.cache().unwrap();
    assert_eq!(slab.raw().usage().capacity, 10);
    let first = cache.alloc(77).unwrap().publish();
    let place = slab.raw().pointer(first).unwrap();
    let others: Vec<_> = (1..1000).map(|n| cache.alloc(n).unwrap()).collect();
    assert!(matches!(cache.alloc(0), Err(Error::Full { objects: 1000 })));
    assert_eq!(slab.raw().pointer(first).unwrap(), place);
    assert_eq!(slab.read(first).unwrap(), 77);
    drop(others);
    assert_eq!(slab.raw().usage().capacity, 1000);
    sound(slab.raw());
}

#[test]
fn a_reserved_slab_has_its_blocks_and_another_has_holes() {
    use std::os::unix::fs::MetadataExt;
    let folder = tempfile::tempdir().unwrap();
    let blocks = |name: &str, options: millstream_slab::Options<Slab<[u8; 4096]>>| {
        let path = folder.path().join(name);
        let slab = options.create(&path).unwrap();
        drop(slab.cache().unwrap().alloc([1; 4096]).unwrap());
        let metadata = std::fs::metadata(path).unwrap();
        (metadata.blocks() * 512, metadata.len())
    };
    let options = Slab::<[u8; 4096]>::options(4000).capacity(1000);
    let (holes, bytes) = blocks("holes", options.clone());
    assert!(bytes > 4000 * 4096 && holes < 1000 * 4096, "{holes} of {bytes}");
    let (reserved, _) = blocks("reserved", options.reserve());
    assert!((1000 * 4096..2000 * 4096).contains(&reserved), "{reserved}");
}

#[test]
fn huge_pages_are_asked_for_and_objects_are_aligned_to_them() {
    let slab = Slab::<[u64; 8]>::options(100_000).huge_pages().private().unwrap();
    let cache = slab.cache().unwrap();
    let handle = cache.alloc([1; 8]).unwrap().publish();
    let start = slab.raw().pointer(handle).unwrap().addr().get() - handle.index() as usize * 64;
    assert_eq!(start % (2 << 20), 0);
    assert_eq!(slab.read(handle).unwrap(), [1; 8]);
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let mapping = maps.split("\nVmFlags:").find(|mapping| {
        mapping.lines().any(|line| {
            let range = line.split_once(' ').and_then(|(range, _)| range.split_once('-'));
            let parsed = range.and_then(|(from, until)| {
                Some(usize::from_str_radix(from, 16).ok()?..usize::from_str_radix(until, 16).ok()?)
            });
            parsed.is_some_and(|range| range.contains(&start))
        })
    });
    let flags = maps.split_once(mapping.unwrap()).unwrap().1.lines().nth(1).unwrap();
    assert!(flags.split_ascii_whitespace().any(|flag| flag == "hg"), "{flags}");
}

#[test]
fn caches_are_limited_and_a_dropped_cache_makes_room() {
    let slab = Slab::<u64>::options(100).caches(2).private().unwrap();
    let first = slab.cache().unwrap();
    let second = slab.cache().unwrap();
    assert!(matches!(slab.cache(), Err(Error::NoCache { caches: 2 })));
    drop(first);
    drop(slab.cache().unwrap());
    drop(second);
}

#[test]
fn a_flush_returns_the_objects_of_a_cache() {
    let slab = Slab::<u64>::options(8).chain(4).private().unwrap();
    let (one, two) = (slab.cache().unwrap(), slab.cache().unwrap());
    drop((0..8).map(|n| one.alloc(n).unwrap()).collect::<Vec<_>>());
    assert_eq!(one.raw().cached(), 8);
    assert!(matches!(two.alloc(0), Err(Error::Full { .. })));
    one.raw().flush().unwrap();
    assert_eq!(one.raw().cached(), 0);
    let all: Vec<_> = (0..8).map(|n| two.alloc(n).unwrap()).collect();
    assert_eq!(all.len(), 8);
}

#[test]
fn a_reopened_file_has_the_published_objects() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slab");
    let slab = Slab::<u64>::options(1000).tag(99).create(&path).unwrap();
    assert!(matches!(Slab::<u64>::options(1000).create(&path), Err(Error::Exists { .. })));
    let handles: Vec<Handle> = {
        let cache = slab.cache().unwrap();
        let all: Vec<_> = (0..500).map(|n| cache.alloc(n).unwrap()).collect();
        all.into_iter().filter(|object| **object % 3 == 0).map(Private::publish).collect()
    };
    slab.raw().sync().unwrap();
    slab.raw().sync_object(handles[0]).unwrap();
    drop(slab);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "a draft was left behind");

    assert!(matches!(Slab::<[u64; 2]>::open(&path), Err(Error::OtherObjects { what: "size", .. })));
    #[derive(Clone, Copy, bytemuck::Pod, bytemuck::Zeroable)]
    #[repr(C, align(16))]
    struct Aligned([u64; 2]);
    assert!(matches!(Slab::<Aligned>::open(&path), Err(Error::OtherObjects { .. })));

    let slab = Slab::<u64>::open(&path).unwrap();
    assert_eq!(slab.raw().tag(), 99);
    assert_eq!(slab.live().map(|object| object.handle).collect::<Vec<_>>(), handles);
    for (n, &handle) in (0..).zip(&handles) {
        assert_eq!(slab.read(handle).unwrap(), 3 * n);
    }
    let usage = slab.raw().usage();
    assert_eq!((usage.published, usage.cached, usage.held), (handles.len() as u64, 0, 0));
    assert_eq!(usage.free + usage.virgin + usage.published, 1000);
    sound(slab.raw());
}

#[test]
fn a_memfd_is_opened_by_its_descriptor() {
    let slab = Slab::<u64>::options(10).memfd().unwrap();
    let handle = slab.cache().unwrap().alloc(5).unwrap().publish();
    let file = std::fs::File::from(slab.raw().file().unwrap().try_clone_to_owned().unwrap());
    let other = Slab::<u64>::open_file(file).unwrap();
    assert_eq!(other.read(handle).unwrap(), 5);
    other.cache().unwrap().free(handle).unwrap();
    assert!(matches!(slab.read(handle), Err(Error::Stale { .. })));
    assert!(Slab::<u64>::options(1).private().unwrap().raw().file().is_none());
}

#[test]
fn threads_hand_objects_to_each_other_and_none_is_lost() {
    let rounds = 20_000 * stress();
    let slab = Slab::<[u64; 2]>::options(3000).chain(16).private().unwrap();
    let (sender, receiver) = std::sync::mpsc::sync_channel::<Handle>(1000);
    std::thread::scope(|scope| {
        for thread in 0..3_u64 {
            let (slab, sender) = (&slab, sender.clone());
            scope.spawn(move || {
                let cache = slab.cache().unwrap();
                for n in 0..rounds {
                    let object = cache.alloc([thread, thread ^ n]).unwrap();
                    if n % 4 != 0 {
                        sender.send(object.publish()).unwrap();
                    }
                }
            });
        }
        drop(sender);
        let slab = &slab;
        scope.spawn(move || {
            let cache = slab.cache().unwrap();
            for handle in receiver {
                let [thread, n] = slab.read(handle).unwrap();
                assert!(thread < 3 && n ^ thread < rounds);
                cache.free(handle).unwrap();
            }
        });
    });
    assert_eq!(slab.raw().usage().allocated(), 0);
    sound(slab.raw());
}

#[test]
fn a_copy_never_mixes_two_lives() {
    let slab = Slab::<[u64; 4]>::options(4).chain(1).private().unwrap();
    let current = std::sync::Mutex::new(slab.cache().unwrap().alloc([0; 4]).unwrap().publish());
    let over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let cache = slab.cache().unwrap();
            for n in 1.. {
                let handle = cache.alloc([n; 4]).unwrap().publish();
                let old = std::mem::replace(&mut *current.lock().unwrap(), handle);
                cache.free(old).unwrap();
                if over.load(std::sync::atomic::Ordering::Relaxed) {
                    break;
                }
            }
        });
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        let (mut copies, mut refused) = (0, 0);
        while (copies < 10_000 || refused < 1000) && std::time::Instant::now() < deadline {
            let handle = *current.lock().unwrap();
            for _ in 0..20 {
                match slab.read(handle) {
                    Ok(copy) => {
                        assert!(copy.iter().all(|&word| word == copy[0]), "{copy:?}");
                        copies += 1;
                    }
                    Err(Error::Stale { .. }) => refused += 1,
                    Err(error) => panic!("{error}"),
                }
            }
        }
        over.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(copies > 0, "{copies} copies, {refused} refused");
    });
}

#[test]
fn objects_of_odd_sizes_come_back_whole() {
    let slab = Slab::<[u8; 11]>::options(10).private().unwrap();
    assert_eq!(slab.raw().object_bytes(), 16);
    let handle = slab.cache().unwrap().alloc(*b"odd and all").unwrap().publish();
    assert_eq!(&slab.read(handle).unwrap(), b"odd and all");
    assert!(matches!(slab.raw().read(handle, &mut [0; 11]), Err(Error::OtherObjects { what: "size", .. })));

    let nothing = Slab::<()>::options(10).private().unwrap();
    let handle = nothing.cache().unwrap().alloc(()).unwrap().publish();
    nothing.read(handle).unwrap();
}

#[test]
fn options_out_of_range_are_errors() {
    for options in [
        RawSlab::options(8, 0),
        RawSlab::options(8, 10).capacity(11),
        RawSlab::options(8, 10).capacity(0),
        RawSlab::options(8, 10).caches(0),
        RawSlab::options(8, 10).caches(20_000),
        RawSlab::options(8, 10).chain(65),
        RawSlab::options(8, 10).chain(0),
        RawSlab::options(1 << 31, 10),
    ] {
        assert!(matches!(options.private(), Err(Error::OutOfRange { .. })), "{options:?}");
    }
}

#[test]
fn a_parcel_carries_objects_to_another_thread() {
    let slab = Slab::<u64>::options(1000).memfd().unwrap();
    let mut parcel = slab.parcel().unwrap();
    let cache = slab.cache().unwrap();
    for round in 0..5 {
        (0..150).for_each(|n| parcel.push(cache.alloc(round * 1000 + n).unwrap()).unwrap());
        assert_eq!((parcel.raw().len(), slab.raw().usage().allocated()), (150, 150));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let cache = slab.cache().unwrap();
                let last = parcel.pop(&cache).unwrap().unwrap();
                assert_eq!(*last, round * 1000 + 149);
                drop(last);
                let published = parcel.pop(&cache).unwrap().unwrap().publish();
                assert_eq!(slab.read(published).unwrap(), round * 1000 + 148);
                cache.free(published).unwrap();
                parcel.raw().free(cache.raw()).unwrap();
            });
        });
        assert!(parcel.raw().is_empty() && parcel.pop(&cache).unwrap().is_none());
        assert_eq!(slab.raw().usage().allocated(), 0);
    }
    assert!(slab.raw().verify().is_sound());
}

#[test]
fn objects_in_a_parcel_live_as_long_as_the_parcel() {
    let slab = Slab::<u64>::options(1000).caches(2).memfd().unwrap();
    let mut parcel = slab.parcel().unwrap();
    let cache = slab.cache().unwrap();
    let stale = {
        let object = cache.alloc(7).unwrap();
        let handle = object.handle();
        parcel.push(object).unwrap();
        handle
    };
    drop(cache);
    assert!(slab.raw().verify().is_sound(), "the object is not held by a cache that is gone");
    let other = slab.cache().unwrap();
    assert!(matches!(other.free(stale), Err(Error::Held { .. })));
    assert_eq!(slab.raw().usage().allocated(), 1);
    drop(parcel);
    assert_eq!(slab.raw().usage().allocated(), 0);
    assert!(matches!(other.free(stale), Err(Error::Stale { .. })));
    assert!(slab.raw().verify().is_sound());
}

#[test]
fn an_object_taken_out_of_a_parcel_outlives_it() {
    let slab = Slab::<u64>::options(1000).caches(3).memfd().unwrap();
    let (from, to) = (slab.cache().unwrap(), slab.cache().unwrap());
    let mut parcel = slab.parcel().unwrap();
    (0..3).for_each(|n| parcel.push(from.alloc(n).unwrap()).unwrap());
    let kept = parcel.pop(&to).unwrap().unwrap();
    parcel.raw().free(to.raw()).unwrap();
    drop(parcel);
    assert!(slab.raw().verify().is_sound());
    assert_eq!(slab.raw().recover().unwrap().orphans, 0, "the object is held by a parcel that is gone");
    assert_eq!(*kept, 2);
    drop(kept);
    assert_eq!(slab.raw().usage().allocated(), 0);
}

#[test]
fn an_object_exchanged_for_a_kept_one_outlives_the_cache_it_came_from() {
    let slab = Slab::<u64>::options(1000).caches(2).memfd().unwrap();
    let mut parcel = slab.parcel().unwrap();
    let cache = slab.cache().unwrap();
    let object = cache.alloc(2).unwrap();
    parcel.alloc(&cache, 1).unwrap();
    parcel.raw().clear(cache.raw()).unwrap();
    parcel.push(object).unwrap();
    assert_eq!((parcel.raw().len(), parcel.raw().kept()), (1, 0), "the kept object went to the cache in exchange");
    drop(cache);
    assert!(slab.raw().verify().is_sound());
    assert_eq!(slab.raw().recover().unwrap().orphans, 0, "the object is held by a cache that is gone");
    let other = slab.cache().unwrap();
    assert_eq!(*parcel.pop(&other).unwrap().unwrap(), 2);
    assert_eq!(slab.raw().usage().allocated(), 0);
}

#[test]
fn a_parcel_is_refused_by_another_slab() {
    let [ours, foreign] = [(); 2].map(|()| Slab::<u64>::options(1000).memfd().unwrap());
    let mut parcel = ours.parcel().unwrap();
    let (cache, other) = (ours.cache().unwrap(), foreign.cache().unwrap());
    assert!(matches!(parcel.push(other.alloc(1).unwrap()), Err(Error::Foreign)));
    assert_eq!(foreign.raw().usage().allocated(), 0, "the refused object is freed");
    parcel.push(cache.alloc(2).unwrap()).unwrap();
    assert!(matches!(parcel.pop(&other), Err(Error::Foreign)));
    assert!(matches!(parcel.raw().free(other.raw()), Err(Error::Foreign)));
    assert_eq!(parcel.pop(&cache).unwrap().map(|object| *object), Some(2));
}

#[test]
fn a_parcel_that_goes_to_and_fro_is_filled_with_the_objects_freed_in_it() {
    let slab = Slab::<u64>::options(200).chain(16).memfd().unwrap();
    let cache = slab.cache().unwrap();
    let mut parcel = slab.parcel().unwrap();
    let mut seen = HashMap::new();
    for round in 0..100_u64 {
        parcel.extend(&cache, (0..150).map(|n| round * 1000 + n)).unwrap();
        assert_eq!((parcel.raw().len(), parcel.raw().kept()), (150, 0));
        assert_eq!((slab.raw().usage().allocated(), slab.raw().usage().held), (150, 150));
        for object in slab.raw().live() {
            // The object has a new generation each time.
            assert!(seen.insert(object.handle.index(), object.handle.generation()) < Some(object.handle.generation()));
        }
        let slab = slab.clone();
        parcel = std::thread::spawn(move || {
            let other = slab.cache().unwrap();
            // The objects that were put in last come out first, as they were written.
            let last = parcel.pop(&other).unwrap().unwrap();
            assert_eq!(*last, round * 1000 + 149);
            drop(last);
            parcel.raw().clear(other.raw()).unwrap();
            assert!(parcel.pop(&other).unwrap().is_none(), "the kept objects are not in the parcel");
            parcel
        })
        .join()
        .unwrap();
        assert_eq!((parcel.raw().len(), parcel.raw().kept()), (0, 149));
    }
    assert_eq!(slab.raw().usage().allocated(), 0);
    sound(slab.raw());
    drop(parcel);
    assert_eq!(slab.raw().usage().cached, cache.raw().cached() as u64, "the kept objects are in the depot");
    sound(slab.raw());
}

#[test]
fn a_parcel_keeps_at_most_its_largest_fill_until_it_is_flushed() {
    let slab = Slab::<u64>::options(100).chain(4).memfd().unwrap();
    let cache = slab.cache().unwrap();
    let mut parcel = slab.parcel().unwrap();
    for _ in 0..50 {
        // The cache gets the parcel's kept objects in exchange for its own.
        (0..10).for_each(|n| parcel.push(cache.alloc(n).unwrap()).unwrap());
        parcel.raw().clear(cache.raw()).unwrap();
        assert_eq!(parcel.raw().kept(), 10);
        sound(slab.raw());
    }
    // Other caches can't allocate the kept objects until the parcel is flushed.
    parcel.alloc(&cache, 7).unwrap();
    cache.raw().flush().unwrap();
    let others = || slab.raw().usage().free + slab.raw().usage().virgin;
    assert_eq!(others(), 90);
    parcel.raw().flush(cache.raw()).unwrap();
    assert_eq!((others(), parcel.raw().kept(), parcel.raw().len()), (99, 0, 1));
    assert_eq!(parcel.pop(&cache).unwrap().map(|object| *object), Some(7));
    sound(slab.raw());
}

#[test]
fn a_parcel_is_filled_and_cleared_by_caches_of_its_slab_only() {
    let (ours, theirs) = (Slab::<u64>::options(10).memfd().unwrap(), Slab::<u64>::options(10).memfd().unwrap());
    let (mut parcel, cache, other) = (ours.parcel().unwrap(), ours.cache().unwrap(), theirs.cache().unwrap());
    assert!(matches!(parcel.alloc(&other, 1), Err(Error::Foreign)));
    assert!(matches!(parcel.raw().fill(other.raw(), 1, |_| {}), Err(Error::Foreign)));
    parcel.extend(&cache, 0..10).unwrap();
    assert!(matches!(parcel.raw().clear(other.raw()), Err(Error::Foreign)));
    assert!(matches!(parcel.raw().flush(other.raw()), Err(Error::Foreign)));
    // The slab is full, and the objects allocated before the error are in the parcel.
    assert!(matches!(parcel.alloc(&cache, 1), Err(Error::Full { .. })));
    assert_eq!((parcel.raw().len(), theirs.raw().usage().allocated()), (10, 0));
    assert_eq!(parcel.pop(&cache).unwrap().map(|object| *object), Some(9));
}

#[test]
fn published_objects_and_orphans_name_their_last_owner() {
    let slab = Slab::<u64>::options(20).owners().memfd().unwrap();
    let (one, two) = (slab.cache().unwrap(), slab.cache().unwrap());
    one.set_owner(1);
    two.set_owner(2);
    let handles = [one.alloc(10).unwrap().publish(), two.alloc(20).unwrap().publish()];
    assert_eq!(handles.map(|handle| slab.raw().owner(handle).unwrap()), [1, 2]);
    let claimed = two.claim(handles[0]).unwrap();
    assert_eq!(slab.live().map(|object| object.owner).collect::<Vec<_>>(), [2, 2], "the second cache has it now");
    assert_eq!(slab.raw().owner(claimed.publish()).unwrap(), 2);

    // The objects that a cache held when it ended belong to that cache's owner. The next cache in the slot has another
    // owner.
    std::mem::forget(one.alloc(11).unwrap());
    drop(one);
    let mut expected = Recovered::default();
    expected.orphans = 1;
    assert_eq!(slab.raw().recover().unwrap(), expected);
    let three = slab.cache().unwrap();
    let nobodys = three.alloc(30).unwrap().publish();
    let orphan = slab.live().find(|object| object.holder == Holder::Orphan).unwrap();
    assert_eq!((orphan.owner, slab.read(orphan.handle).unwrap(), slab.raw().owner(nobodys).unwrap()), (1, 11, 0));
    let of_the_second: Vec<_> = slab.live().filter(|object| object.owner == 2).collect();
    of_the_second.iter().for_each(|object| three.free(object.handle).unwrap());
    assert_eq!(of_the_second.len(), 2);
    assert!(slab.raw().verify().is_sound());
}

#[test]
fn a_slab_without_owners_answers_zero() {
    let slab = Slab::<u64>::options(20).private().unwrap();
    let cache = slab.cache().unwrap();
    cache.set_owner(7);
    assert_eq!(slab.raw().owner(cache.alloc(1).unwrap().publish()).unwrap(), 0);
}

#[test]
fn a_forgotten_object_is_an_orphan_once_its_cache_has_ended() {
    let slab = Slab::<u64>::options(20).private().unwrap();
    let (cache, other) = (slab.cache().unwrap(), slab.cache().unwrap());
    let kept = other.alloc(1).unwrap();
    std::mem::forget(cache.alloc(2).unwrap());
    assert_eq!(slab.raw().recover().unwrap().orphans, 0, "its cache may still use it");
    drop(cache);
    assert!(slab.raw().verify().is_sound());
    assert_eq!(slab.raw().recover().unwrap().orphans, 1);
    assert_eq!(*kept, 1);
    let orphan = slab.live().find(|object| object.holder == Holder::Orphan).unwrap();
    assert_eq!(*other.claim(orphan.handle).unwrap(), 2);
}

#[test]
fn an_inspection_changes_nothing_and_needs_no_write_permission() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slab");
    let slab = Slab::<u64>::options(100).chain(4).tag(5).create(&path).unwrap();
    let cache = slab.cache().unwrap();
    let published = cache.alloc(7).unwrap().publish();
    let held = cache.alloc(8).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
    let before = fs::read(&path).unwrap();
    let inspection = Inspection::of(&path).unwrap();
    let report = inspection.report();
    assert!(report.is_sound(), "{report:?}");
    assert_eq!((report.usage, inspection.living_caches(), inspection.tag()), (slab.raw().usage(), Some(1), 5));
    let mut bytes = [0; 8];
    inspection.read(published, &mut bytes).unwrap();
    assert_eq!(u64::from_ne_bytes(bytes), 7);
    assert!(matches!(inspection.read(held.handle(), &mut bytes), Err(Error::Held { .. })));
    assert_eq!(inspection.live().count(), 2);
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn concurrent_creators_get_the_same_slab() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slab");
    let options = Slab::<u64>::options(100).tag(5);
    let make = || {
        let slab = options.open_or_create(&path).unwrap();
        slab.cache().unwrap().alloc(1).unwrap().publish()
    };
    let handles: Vec<Handle> =
        std::thread::scope(|scope| [0; 4].map(|_| scope.spawn(make)).map(|thread| thread.join().unwrap()).to_vec());
    let slab = options.open_or_create(&path).unwrap();
    handles.iter().for_each(|&handle| assert_eq!(slab.read(handle).unwrap(), 1));
    let other = options.clone().tag(6).open_or_create(&path).unwrap_err();
    assert!(matches!(other, Error::OtherObjects { what: "tag", expected: 6, found: 5 }), "{other}");
    let mode = fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!((mode & 0o777, fs::read_dir(folder.path()).unwrap().count()), (0o600, 1), "no drafts are left");
}

#[test]
fn unused_objects_take_no_memory() {
    use std::os::unix::fs::MetadataExt;
    let slab = Slab::<u64>::options(4_000_000).memfd().unwrap();
    let file = || std::fs::File::from(slab.raw().file().unwrap().try_clone_to_owned().unwrap());
    let handle = slab.cache().unwrap().alloc(7).unwrap().publish();
    let other = Slab::<u64>::open_file(file()).unwrap();
    let cache = other.cache().unwrap();
    std::mem::forget(cache.alloc(8).unwrap());
    drop(cache);
    assert_eq!(slab.raw().recover().unwrap().orphans, 1);
    assert_eq!(other.live().count(), 2);
    let usage = other.raw().usage();
    assert_eq!((usage.published, usage.orphans, usage.free + usage.virgin), (1, 1, 3_999_998));
    assert!(other.raw().verify().is_sound());
    assert_eq!(slab.read(handle).unwrap(), 7);
    let bytes = file().metadata().unwrap().blocks() * 512;
    assert!(bytes < 1 << 20, "{bytes} bytes of memory are in use");
}
