//! Files that are not sound slabs lead to typed errors, not to crashes.
#![cfg(not(loom))]

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use millstream_slab::{Error, Inspection, RawSlab, Slab, Work};
use millstream_verify_random::{Random, stress};

/// The bytes of a slab in which some objects are published, some freed, some orphaned.
fn sound(path: &Path) -> Vec<u8> {
    let slab = Slab::<u64>::options(50).chain(4).caches(3).create(path).unwrap();
    let cache = slab.cache().unwrap();
    let mut objects: Vec<_> = (0..40).map(|n| cache.alloc(n).unwrap()).collect();
    for object in objects.drain(..20) {
        object.publish();
    }
    objects.truncate(7);
    std::mem::forget(objects);
    drop(cache);
    drop(slab);
    drop(Slab::<u64>::open(path).unwrap());
    fs::read(path).unwrap()
}

/// Uses the slab in the file as far as possible; every call succeeds or returns an error.
fn use_it(path: &Path) -> Result<(), Error> {
    let slab = RawSlab::open(path)?;
    drop(slab.verify());
    let cache = slab.cache()?;
    let mut bytes = vec![0; slab.object_bytes() as usize];
    let live: Vec<_> = slab.live().collect();
    for object in &live {
        slab.read(object.handle, &mut bytes)?;
    }
    let mut objects = Vec::new();
    for _ in 0..100 {
        match cache.alloc() {
            Ok(mut object) => {
                object.fill(1);
                objects.push(object);
            }
            Err(Error::Full { .. }) => break,
            Err(error) => return Err(error),
        }
    }
    live.iter().try_for_each(|object| cache.free(object.handle))
}

#[test]
fn a_sound_file_can_be_used() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slab");
    sound(&path);
    use_it(&path).unwrap();
    assert!(RawSlab::open(&path).unwrap().verify().is_sound());
}

#[test]
fn flipped_bits_are_errors_or_harmless() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slab");
    let whole = sound(&path);
    let mut random = Random::seeded();
    let (mut refused, mut used) = (0, 0);
    for _ in 0..1500 * stress() {
        let mut bytes = whole.clone();
        for _ in 0..1 + random.below(4) {
            // Half of the flips hit the metadata: the header, the slots, the words and the links.
            let bound = if random.below(2) == 0 { 16384 } else { bytes.len() as u64 };
            let at = match random.below(3) {
                0 => random.below(640),
                _ => random.below(bound),
            };
            bytes[at as usize] ^= 1 << random.below(8);
        }
        fs::write(&path, &bytes).unwrap();
        match use_it(&path) {
            Ok(()) => used += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 100 && used > 100, "{refused} refused, {used} used");
}

#[test]
fn a_damaged_head_or_link_is_rebuilt() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slab");
    let whole = sound(&path);
    let mut random = Random::seeded();
    for _ in 0..300 {
        let mut bytes = whole.clone();
        // The depot's head, the slots' announcements, and the links.
        for byte in (384..400).chain(4096 + 8..4096 + 32).chain(12288..12288 + 400) {
            bytes[byte] = random.below(256) as u8;
        }
        fs::write(&path, &bytes).unwrap();
        use_it(&path).unwrap();
        let slab = RawSlab::open(&path).unwrap();
        assert!(slab.verify().is_sound());
        assert_eq!(slab.usage().allocated(), 0);
    }
}

#[test]
fn a_file_truncated_anywhere_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slab");
    let whole = sound(&path);
    for length in (0..200).chain((200..whole.len()).step_by(997)) {
        fs::write(&path, &whole[..length]).unwrap();
        let error = RawSlab::open(&path).unwrap_err();
        assert!(matches!(error, Error::Truncated { .. } | Error::NotASlab { .. }), "{length}: {error}");
    }
}

#[test]
fn an_invalid_word_is_named_and_left_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slab");
    let mut bytes = sound(&path);
    let word = 8192 + 8 * 5;
    bytes[word..word + 8].copy_from_slice(&0x7fff_ffff_u64.to_le_bytes());
    fs::write(&path, &bytes).unwrap();
    assert!(matches!(RawSlab::open(&path), Err(Error::Damaged { at: 5, .. })));
    let after = fs::read(&path).unwrap();
    assert_eq!(after[4096..], bytes[4096..]);
}

#[test]
fn users_of_another_namespace_are_respected_unless_the_caller_vouches() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slab");
    let slab = Slab::<u64>::options(50).create(&path).unwrap();
    let cache = slab.cache().unwrap();
    let handle = cache.alloc(7).unwrap().publish();
    // As if that cache belonged to a process in another namespace.
    let mut bytes = fs::read(&path).unwrap();
    bytes[8 * 18] ^= 1;
    let copy = folder.path().join("copy");
    fs::write(&copy, bytes).unwrap();
    assert!(matches!(Slab::<u64>::open(&copy), Err(Error::Namespace { .. })));
    assert_eq!(Inspection::of(&copy).unwrap().living_caches(), None, "its PID names another process here");
    // SAFETY: only this test knows of the copy.
    let slab = unsafe { RawSlab::open_alone(&copy) }.unwrap();
    assert!(slab.check(handle).is_ok());
    assert!(slab.verify().is_sound());
    assert_eq!(slab.usage().caches, 0);
}

#[test]
fn processes_of_an_earlier_boot_are_dead() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slab");
    let slab = Slab::<u64>::options(50).create(&path).unwrap();
    let cache = slab.cache().unwrap();
    std::mem::forget(cache.alloc(7).unwrap());
    // A copy in which the cache of this live process belongs to an earlier boot.
    let mut bytes = fs::read(&path).unwrap();
    bytes[8 * 17 + 1] ^= 1;
    let copy = folder.path().join("copy");
    fs::write(&copy, bytes).unwrap();
    let (slab, recovered) = RawSlab::open_and_report(&copy).unwrap();
    assert_eq!((recovered.caches, recovered.orphans), (1, 1));
    assert!(slab.verify().is_sound());
}

/// Makes this process the holder of the rebuild lock: writes the holder to word 20, and the holder's boot and
/// namespaces to word 21, with the bits of `place_flipped` flipped. Returns the file and the words.
fn locked(path: &Path, place_flipped: u64) -> (fs::File, [u64; 2]) {
    let file = fs::File::options().read(true).write(true).open(path).unwrap();
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let started: u64 = stat.rsplit_once(')').unwrap().1.split_ascii_whitespace().nth(22 - 3).unwrap().parse().unwrap();
    let boot = fs::read("/proc/sys/kernel/random/boot_id").unwrap();
    let namespace = fs::metadata("/proc/self/ns/pid").unwrap().ino();
    let digest = |words: Vec<u64>| {
        let bytes = words.iter().flat_map(|word| word.to_le_bytes());
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
    };
    let place = (digest(boot.into_iter().map(u64::from).collect()) | 1) << 32 | digest(vec![namespace]) & 0xffff_ffff;
    let holder = [started << 22 | u64::from(std::process::id()), place ^ place_flipped];
    file.write_all_at(&holder.map(u64::to_le_bytes).concat(), 8 * 20).unwrap();
    (file, holder)
}

#[test]
fn opening_waits_for_a_rebuild_in_another_namespace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slab");
    drop(Slab::<u64>::options(50).create(&path).unwrap());
    // A PID that no process has here.
    let (file, [identity, place]) = locked(&path, 1);
    let nobody = identity | ((1 << 22) - 1);
    file.write_all_at(&[nobody, place].map(u64::to_le_bytes).concat(), 8 * 20).unwrap();
    let began = Instant::now();
    std::thread::scope(|scope| {
        let opener = scope.spawn(|| RawSlab::open(&path).map(drop));
        std::thread::sleep(Duration::from_millis(300));
        assert!(!opener.is_finished(), "the holder may be rebuilding the free list");
        file.write_all_at(&[0; 16], 8 * 20).unwrap();
        opener.join().unwrap().unwrap();
    });
    assert!(began.elapsed() >= Duration::from_millis(300));
}

#[test]
fn a_dead_holder_of_the_rebuild_lock_blocks_no_process() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slab");
    drop(Slab::<u64>::options(50).create(&path).unwrap());
    for (started_earlier, place_flipped) in [(1 << 22, 0), (0, 1 << 32)] {
        let (file, [identity, place]) = locked(&path, place_flipped);
        file.write_all_at(&[identity - started_earlier, place].map(u64::to_le_bytes).concat(), 8 * 20).unwrap();
        let began = Instant::now();
        assert!(RawSlab::open(&path).unwrap().verify().is_sound());
        assert!(began.elapsed() < Duration::from_secs(60));
    }
}

#[test]
fn a_live_holder_of_the_rebuild_lock_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slab");
    drop(Slab::<u64>::options(50).create(&path).unwrap());
    let _locked = locked(&path, 0);
    let error = RawSlab::open(&path).unwrap_err();
    assert!(matches!(error, Error::Busy { pid, .. } if pid == std::process::id()), "{error}");
}

#[test]
fn recovery_skips_other_pid_namespaces() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slab");
    let slab = Slab::<u64>::options(50).caches(1).create(&path).unwrap();
    let supervisor = RawSlab::open(&path).unwrap();
    let cache = slab.cache().unwrap();
    let object = cache.alloc(7).unwrap();
    // As if the cache belonged to a process in another namespace, whose PID no process has here.
    let file = fs::File::options().read(true).write(true).open(&path).unwrap();
    let mut namespace = [0; 8];
    file.read_exact_at(&mut namespace, 8 * 18).unwrap();
    let mut owner = [0; 8];
    file.read_exact_at(&mut owner, 4096).unwrap();
    let nobody = u64::from_le_bytes(owner) | ((1 << 22) - 1);
    file.write_all_at(&nobody.to_le_bytes(), 4096).unwrap();
    file.write_all_at(&(u64::from_le_bytes(namespace) ^ 1).to_le_bytes(), 8 * 18).unwrap();
    assert!(matches!(supervisor.recover(), Err(Error::Namespace { .. })));
    assert!(matches!(supervisor.cache().map(drop), Err(Error::Namespace { .. })), "all caches are in use");
    assert!(matches!(supervisor.check(object.handle()), Err(Error::Held { .. })), "and nothing was taken");
    // Once the process can be watched again, it proves to be dead.
    file.write_all_at(&namespace, 8 * 18).unwrap();
    assert_eq!(supervisor.recover().unwrap().orphans, 1);
    std::mem::forget(object);
    std::mem::forget(cache);
}

#[test]
fn a_slab_is_not_created_through_a_dangling_link() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("link");
    std::os::unix::fs::symlink(folder.path().join("nowhere"), &path).unwrap();
    assert!(matches!(Slab::<u64>::options(50).open_or_create(&path), Err(Error::Exists { .. })));
}

#[test]
fn a_failed_rebuild_is_repeated_before_any_cache_is_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slab");
    let slab = Slab::<u64>::options(50).create(&path).unwrap();
    drop(slab.cache().unwrap().alloc(1).unwrap());
    // A process died during a rebuild, and a word is damaged.
    let (file, [identity, place]) = locked(&path, 0);
    let dead = (identity - (1 << 22)) | 1 << 63;
    file.write_all_at(&[dead, place].map(u64::to_le_bytes).concat(), 8 * 20).unwrap();
    let word = 4096 + 128 * 64;
    let mut sound = [0; 8];
    file.read_exact_at(&mut sound, word).unwrap();
    file.write_all_at(&0x7fff_ffff_u64.to_le_bytes(), word).unwrap();
    assert!(matches!(slab.cache().map(drop), Err(Error::Damaged { at: 0, .. })));
    assert!(matches!(slab.cache().map(drop), Err(Error::Damaged { at: 0, .. })), "half a list serves no cache");
    file.write_all_at(&sound, word).unwrap();
    let cache = slab.cache().unwrap();
    let all: Vec<_> = (0..50).map(|n| cache.alloc(n).unwrap()).collect();
    assert_eq!(all.len(), 50);
}

#[test]
fn a_stopped_rebuild_is_named_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slab");
    drop(Slab::<u64>::options(50).create(&path).unwrap());
    let mut child = Command::new("sleep").arg("1000").spawn().unwrap();
    let pid = child.id();
    // SAFETY: the process is this one's own child and not reaped yet, so no other process has its PID.
    unsafe { libc::kill(pid as libc::pid_t, libc::SIGSTOP) };
    let stat = || fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let field =
        |number: usize| stat().rsplit_once(')').unwrap().1.split_ascii_whitespace().nth(number - 3).unwrap().to_owned();
    while field(3) != "T" {
        std::thread::yield_now();
    }
    let (file, [_, place]) = locked(&path, 0);
    let identity = 1 << 63 | field(22).parse::<u64>().unwrap() << 22 | u64::from(pid);
    file.write_all_at(&[identity, place].map(u64::to_le_bytes).concat(), 8 * 20).unwrap();

    let error = RawSlab::open(&path).unwrap_err();
    child.kill().unwrap();
    child.wait().unwrap();
    let Error::Busy { pid: found, waited_ms, work: Work::Rebuilding, is_stopped: true } = error else {
        panic!("{error}")
    };
    assert!(found == pid && waited_ms < 10_000, "{error}");
    assert!(error.to_string().contains(&format!("is stopped; continue it (kill -CONT {pid})")), "{error}");
    // The child died while it rebuilt the list.
    assert!(RawSlab::open(&path).unwrap().verify().is_sound());
}

#[test]
fn a_damaged_announcement_leaves_other_dead_caches_recoverable() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slab");
    let slab = Slab::<u64>::options(50).caches(3).chain(4).create(&path).unwrap();
    let caches = [(); 3].map(|()| slab.cache().unwrap());
    for cache in &caches {
        std::mem::forget(cache.alloc(1).unwrap());
    }
    // The first two caches belong to dead processes, and the first cache has announced garbage.
    let file = fs::File::options().read(true).write(true).open(&path).unwrap();
    for slot in [4096, 4096 + 128] {
        let mut owner = [0; 8];
        file.read_exact_at(&mut owner, slot).unwrap();
        let dead = u64::from_le_bytes(owner) - (1 << 22);
        file.write_all_at(&dead.to_le_bytes(), slot).unwrap();
    }
    file.write_all_at(&(7_u64 << 32).to_le_bytes(), 4096 + 8).unwrap();
    let recovered = slab.raw().recover().unwrap();
    assert_eq!((recovered.caches, recovered.damaged, recovered.orphans, recovered.freed), (1, 1, 2, 3));
    assert_eq!(slab.raw().recover().unwrap().damaged, 1, "the damaged cache is still reported");

    let [first, second, third] = caches;
    std::mem::forget((first, second));
    drop(third);
    let (slab, recovered) = RawSlab::open_and_report(&path).unwrap();
    assert_eq!((recovered.damaged, recovered.freed), (0, 3), "a process that opens the slab alone repairs it");
    assert!(slab.verify().is_sound());
    assert_eq!(slab.usage().caches, 0);
}

#[test]
fn an_object_whose_generations_are_used_up_is_never_used_again() {
    const LAST: u64 = (1 << 48) - 1;
    type End = fn(&Slab<u64>, &millstream_slab::Cache<u64>, millstream_slab::Handle);
    let ends: [End; 4] = [
        |_, cache, handle| cache.free(handle).unwrap(),
        |_, cache, handle| drop(cache.claim(handle).unwrap()),
        |slab, cache, handle| {
            let mut parcel = slab.parcel().unwrap();
            parcel.push(cache.claim(handle).unwrap()).unwrap();
            parcel.raw().free(cache.raw()).unwrap();
        },
        |slab, cache, handle| {
            let mut parcel = slab.parcel().unwrap();
            parcel.push(cache.claim(handle).unwrap()).unwrap();
            parcel.raw().clear(cache.raw()).unwrap();
            assert_eq!(parcel.raw().kept(), 0);
        },
    ];
    let folder = tempfile::tempdir().unwrap();
    for (number, end) in ends.into_iter().enumerate() {
        let path = folder.path().join(number.to_string());
        let slab = Slab::<u64>::options(50).create(&path).unwrap();
        let first = slab.cache().unwrap().alloc(7).unwrap().publish();
        drop(slab);
        let file = fs::File::options().write(true).open(&path).unwrap();
        let word = LAST << 16 | 0xc000;
        file.write_all_at(&word.to_le_bytes(), 4096 + 128 * 64 + 8 * first.index()).unwrap();

        let slab = Slab::<u64>::open(&path).unwrap();
        let handle = slab.live().next().unwrap().handle;
        assert_eq!((handle.generation(), slab.read(handle).unwrap()), (LAST, 7));
        let cache = slab.cache().unwrap();
        end(&slab, &cache, handle);
        for refused in [cache.free(handle), cache.claim(handle).map(drop), cache.free(first)] {
            assert!(matches!(refused, Err(Error::Stale { .. })));
        }
        let all: Vec<_> = (0..49).map(|n| cache.alloc(n).unwrap()).collect();
        assert!(all.iter().all(|object| object.handle().index() != first.index()));
        assert!(matches!(cache.alloc(0), Err(Error::Full { .. })));
        drop(all);
        drop(cache);
        assert_eq!((slab.raw().usage().retired, slab.raw().usage().free), (1, 49));
        drop(slab);
        let slab = RawSlab::open(&path).unwrap();
        assert!(slab.verify().is_sound());
        assert_eq!(slab.usage().retired, 1);
    }
}
