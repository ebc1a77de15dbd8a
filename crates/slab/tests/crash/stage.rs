//! A slab with a survivor, and the properties that must hold after a death.

use std::collections::HashSet;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

use millstream_slab::{Cache, Error, Handle, Holder, Inspection, Slab};

/// Any number, and the same number in a second encoding, which shows whether the contents were written completely.
pub(crate) type Contents = [u64; 2];

pub(crate) const OBJECTS: u64 = 24;
const DISGUISE: u64 = 0x5eed_5eed_5eed_5eed;

pub(crate) fn contents(number: u64) -> Contents {
    [number, number ^ DISGUISE]
}

fn is_whole([number, disguised]: Contents) -> bool {
    number ^ DISGUISE == disguised
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Survivor {
    /// The survivor continues its work, and recovers.
    Lives,
    /// The survivor dies, too, and another process opens the slab.
    Dies,
}

/// A slab, the survivor's cache, and the objects in the slab.
pub(crate) struct Stage {
    pub(crate) slab: Slab<Contents>,
    pub(crate) cache: Option<Cache<Contents>>,
    /// Published, and never freed.
    pub(crate) kept: Vec<Handle>,
    /// Published, and the child may free or claim them.
    pub(crate) offered: Vec<Handle>,
}

impl Stage {
    /// The survivor has held every object once, so that a stale word names another live process.
    pub(crate) fn new(capacity: u64) -> Stage {
        Stage::of(OBJECTS, capacity)
    }

    pub(crate) fn of(objects: u64, capacity: u64) -> Stage {
        let slab = Slab::options(objects).capacity(capacity).chain(3).caches(6).memfd().unwrap();
        let cache: Cache<Contents> = slab.cache().unwrap();
        let all: Vec<_> = (0..capacity).map(|n| cache.alloc(contents(n)).unwrap()).collect();
        drop(all);
        let kept = (0..2).map(|n| cache.alloc(contents(100 + n)).unwrap().publish()).collect();
        let offered = (0..2).map(|n| cache.alloc(contents(200 + n)).unwrap().publish()).collect();
        std::mem::forget(cache.alloc(contents(300)).unwrap());
        cache.raw().flush().unwrap();
        Stage { slab, cache: Some(cache), kept, offered }
    }

    /// Takes all objects out of the depot with the survivor's cache, so that the next allocation needs fresh objects.
    pub(crate) fn exhaust_depot(&mut self) {
        let cache = self.cache.as_ref().unwrap();
        while self.slab.raw().usage().free > 0 {
            std::mem::forget(cache.alloc(contents(400)).unwrap());
        }
    }

    /// The file of the slab.
    pub(crate) fn file(&self) -> File {
        File::from(self.slab.raw().file().unwrap().try_clone_to_owned().unwrap())
    }

    /// Pretends that the machine has booted again: every earlier process is dead.
    pub(crate) fn reboot(&self) {
        let file = self.file();
        let mut boot = [0; 8];
        file.read_exact_at(&mut boot, 8 * 17).unwrap();
        file.write_all_at(&boot.map(|byte| !byte), 8 * 17).unwrap();
    }

    /// The survivor leaves; the objects that it held are orphans.
    pub(crate) fn leave(&mut self) {
        drop(self.cache.take());
    }
}

/// The properties that must hold if the child finished its scene.
pub(crate) type After = fn(&Stage, orphans: usize);

/// The way in which the children died.
#[derive(Clone, Copy)]
pub(crate) enum Death {
    /// This number of children died, each possibly while it was writing to an object of its own.
    Midway(usize),
    /// One child died, which had finished its scene.
    After(After),
}

/// Checks that no object is lost, allocated twice or leaked.
pub(crate) fn aftermath(mut stage: Stage, survivor: Survivor, death: Death, context: &str) {
    let file = format!("/proc/self/fd/{}", stage.slab.raw().file().unwrap().as_raw_fd());
    let found = Inspection::of(file).unwrap().report();
    assert!(found.is_sound(), "{context}: before anything was recovered: {found:#?}");
    let slab = match survivor {
        Survivor::Lives => {
            // The survivor first continues its work, so that the depot's head changes between the death and the
            // recovery.
            if let Some(cache) = &stage.cache {
                let taken: Vec<_> = (0..2).map_while(|n| cache.alloc(contents(500 + n)).ok()).collect();
                drop(taken);
                cache.raw().flush().unwrap();
            }
            stage.slab.raw().recover().unwrap_or_else(|error| panic!("{context}: {error}"));
            stage.slab.clone()
        }
        Survivor::Dies => {
            stage.leave();
            Slab::open_file(stage.file()).unwrap_or_else(|error| panic!("{context}: {error}"))
        }
    };
    let report = slab.raw().verify();
    assert!(report.is_sound(), "{context}: {report:#?}");
    let caches = u64::from(stage.cache.is_some());
    assert_eq!(report.usage.caches, caches, "{context}: {report:#?}");

    for handle in &stage.kept {
        slab.read(*handle).unwrap_or_else(|error| panic!("{context}: lost: {error}"));
    }
    let (mut orphans, mut torn) = (0, 0);
    for object in slab.live() {
        match object.holder {
            Holder::Process { .. } => assert!(stage.cache.is_some(), "{context}: held by the dead"),
            Holder::Orphan => {
                orphans += 1;
                torn += usize::from(!is_whole(slab.read(object.handle).unwrap()));
            }
            Holder::Published => assert!(is_whole(slab.read(object.handle).unwrap()), "{context}: contents"),
        }
    }
    let may_be_torn = if let Death::Midway(dead) = death { dead } else { 0 };
    assert!(torn <= may_be_torn, "{context}: {torn} of {orphans} orphans do not have the contents that were written");
    if survivor == Survivor::Lives
        && let Death::After(after) = death
    {
        after(&stage, orphans);
    }

    // Every object that is not allocated can be allocated, each once.
    let allocated = report.usage.allocated();
    let cache = slab.cache().unwrap();
    if let Some(survivor) = &stage.cache {
        survivor.raw().flush().unwrap();
    }
    let mut seen: HashSet<u64> = slab.live().map(|object| object.handle.index()).collect();
    assert_eq!(seen.len() as u64, allocated, "{context}");
    let mut objects = Vec::new();
    loop {
        match cache.alloc(contents(600)) {
            Ok(object) => {
                assert!(seen.insert(object.handle().index()), "{context}: allocated twice");
                objects.push(object);
            }
            Err(Error::Full { .. }) => break,
            Err(error) => panic!("{context}: {error}"),
        }
    }
    assert_eq!(seen.len() as u64, OBJECTS, "{context}: leaked");
    for handle in &stage.kept {
        slab.read(*handle).unwrap_or_else(|error| panic!("{context}: overwritten: {error}"));
    }
}
