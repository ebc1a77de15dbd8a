//! The scenes that a child plays while it is killed.

use millstream_slab::{Error, Holder, Slab};

use crate::stage::{After, OBJECTS, Stage, Survivor, contents};

pub(crate) struct Scene {
    pub(crate) name: &'static str,
    prepare: fn() -> Stage,
    /// Calls its argument where the scene begins and where it ends.
    pub(crate) play: fn(&Stage, &dyn Fn()),
    /// Checks the slab after a death at the end of the scene.
    pub(crate) after: After,
    /// Whether the scene moves chains to or from the depot.
    pub(crate) moves_chains: bool,
}

impl Scene {
    pub(crate) fn stage(&self) -> Stage {
        (self.prepare)()
    }
}

/// A way to recover.
pub(crate) struct Recovery {
    pub(crate) name: &'static str,
    /// Changes the stage after the first death.
    pub(crate) prepare: fn(&mut Stage),
    /// Whether the recovery has the slab to itself while it rebuilds the free list.
    pub(crate) rebuilds: bool,
    /// The survivor, if a child is killed in this recovery: a process that has the slab open, or one that opens it.
    pub(crate) survivors: &'static [Survivor],
    pub(crate) play: fn(&Stage, &dyn Fn()),
}

fn open(stage: &Stage, mark: &dyn Fn()) {
    let file = stage.file();
    mark();
    Slab::<[u64; 2]>::open_file(file).unwrap();
    mark();
}

pub(crate) const RECOVERIES: [Recovery; 3] = [
    Recovery {
        name: "recovery",
        prepare: |_| {},
        rebuilds: false,
        survivors: &[Survivor::Lives],
        play: |stage, mark| {
            mark();
            stage.slab.raw().recover().unwrap();
            mark();
        },
    },
    Recovery {
        name: "opening",
        prepare: Stage::leave,
        rebuilds: false,
        survivors: &[Survivor::Dies, Survivor::Lives],
        play: open,
    },
    Recovery {
        name: "rebuilding",
        prepare: |stage| {
            stage.leave();
            stage.reboot();
        },
        rebuilds: true,
        survivors: &[Survivor::Dies],
        play: open,
    },
];

fn full_size() -> Stage {
    Stage::new(OBJECTS)
}

fn orphans_are(expected: usize, orphans: usize) {
    assert_eq!(orphans, expected, "orphans");
}

pub(crate) const ALL: &[Scene] = &[
    Scene {
        name: "allocation",
        prepare: full_size,
        play: |stage, mark| {
            let cache = stage.slab.cache().unwrap();
            drop(cache.alloc(contents(1)).unwrap());
            mark();
            let object = cache.alloc(contents(2)).unwrap();
            mark();
            drop(object);
        },
        after: |_, orphans| orphans_are(1, orphans),
        moves_chains: false,
    },
    Scene {
        name: "free of a private object",
        prepare: full_size,
        play: |stage, mark| {
            let cache = stage.slab.cache().unwrap();
            let object = cache.alloc(contents(1)).unwrap();
            mark();
            drop(object);
            mark();
        },
        after: |_, orphans| orphans_are(0, orphans),
        moves_chains: false,
    },
    Scene {
        name: "publication",
        prepare: full_size,
        play: |stage, mark| {
            let cache = stage.slab.cache().unwrap();
            let object = cache.alloc(contents(1)).unwrap();
            mark();
            object.publish();
            mark();
        },
        after: |stage, orphans| {
            orphans_are(0, orphans);
            let published = stage.slab.live().filter(|object| object.holder == Holder::Published).count();
            assert_eq!(published, stage.kept.len() + stage.offered.len() + 1);
        },
        moves_chains: false,
    },
    Scene {
        name: "free of a published object",
        prepare: full_size,
        play: |stage, mark| {
            let cache = stage.slab.cache().unwrap();
            mark();
            cache.free(stage.offered[0]).unwrap();
            mark();
        },
        after: |stage, _| {
            assert!(matches!(stage.slab.read(stage.offered[0]), Err(Error::Stale { .. })));
            assert!(stage.slab.read(stage.offered[1]).is_ok());
        },
        moves_chains: false,
    },
    Scene {
        name: "claim, change and publication",
        prepare: full_size,
        play: |stage, mark| {
            let cache = stage.slab.cache().unwrap();
            mark();
            let mut object = cache.claim(stage.offered[0]).unwrap();
            *object = contents(7);
            object.publish();
            mark();
        },
        after: |stage, _| assert_eq!(stage.slab.read(stage.offered[0]).unwrap(), contents(7)),
        moves_chains: false,
    },
    Scene {
        name: "refill from the depot",
        prepare: full_size,
        play: |stage, mark| {
            let cache = stage.slab.cache().unwrap();
            mark();
            let object = cache.alloc(contents(1)).unwrap();
            mark();
            drop(object);
        },
        after: |_, orphans| orphans_are(1, orphans),
        moves_chains: true,
    },
    Scene {
        name: "refill with fresh objects, and growth",
        prepare: || {
            let mut stage = Stage::new(8);
            stage.exhaust_depot();
            stage
        },
        play: |stage, mark| {
            let cache = stage.slab.cache().unwrap();
            mark();
            let objects: Vec<_> = (0..5).map(|n| cache.alloc(contents(n)).unwrap()).collect();
            mark();
            drop(objects);
        },
        after: |_, orphans| orphans_are(5, orphans),
        moves_chains: false,
    },
    Scene {
        name: "spill of a full magazine",
        prepare: full_size,
        play: |stage, mark| {
            let cache = stage.slab.cache().unwrap();
            let mut objects: Vec<_> = (0..9).map(|n| cache.alloc(contents(n)).unwrap()).collect();
            // The magazine holds six objects.
            let last = objects.pop().unwrap();
            let before = objects.pop().unwrap();
            objects.truncate(2);
            std::mem::forget(objects);
            mark();
            drop(before);
            drop(last);
            mark();
        },
        after: |_, orphans| orphans_are(2, orphans),
        moves_chains: true,
    },
    Scene {
        name: "transfer by a parcel",
        prepare: full_size,
        play: |stage, mark| {
            let (from, to) = (stage.slab.cache().unwrap(), stage.slab.cache().unwrap());
            let mut parcel = stage.slab.parcel().unwrap();
            let objects: Vec<_> = (0..2).map(|n| from.alloc(contents(n)).unwrap()).collect();
            mark();
            objects.into_iter().for_each(|object| parcel.push(object).unwrap());
            // An object in the parcel no longer belongs to this cache, and one that was taken out no longer belongs to
            // the parcel.
            drop(from);
            let kept = parcel.pop(&to).unwrap();
            parcel.raw().free(to.raw()).unwrap();
            drop(parcel);
            mark();
            drop(kept);
        },
        after: |_, orphans| orphans_are(1, orphans),
        moves_chains: true,
    },
    Scene {
        name: "parcel to and fro",
        prepare: full_size,
        play: |stage, mark| {
            let (here, there) = (stage.slab.cache().unwrap(), stage.slab.cache().unwrap());
            let mut parcel = stage.slab.parcel().unwrap();
            let object = here.alloc(contents(0)).unwrap();
            mark();
            parcel.extend(&here, (1..4).map(contents)).unwrap();
            parcel.raw().clear(there.raw()).unwrap();
            // One of the kept objects is exchanged, one is allocated again, and one goes to the depot.
            parcel.push(object).unwrap();
            parcel.alloc(&here, contents(4)).unwrap();
            drop(here);
            parcel.raw().flush(there.raw()).unwrap();
            mark();
            drop(parcel);
        },
        after: |stage, orphans| {
            orphans_are(2, orphans);
            let free = stage.slab.raw().usage();
            assert_eq!(free.held + free.published, 1 + (stage.kept.len() + stage.offered.len()) as u64, "{free:?}");
        },
        moves_chains: true,
    },
    Scene {
        name: "exchange with a parcel",
        prepare: full_size,
        play: |stage, mark| {
            let cache = stage.slab.cache().unwrap();
            let mut parcel = stage.slab.parcel().unwrap();
            parcel.alloc(&cache, contents(0)).unwrap();
            parcel.raw().clear(cache.raw()).unwrap();
            let object = cache.alloc(contents(1)).unwrap();
            mark();
            parcel.push(object).unwrap();
            // The object that the cache got in exchange no longer belongs to the parcel.
            drop(parcel);
            mark();
        },
        after: |_, orphans| orphans_are(0, orphans),
        moves_chains: false,
    },
    Scene {
        name: "end of a parcel",
        prepare: full_size,
        play: |stage, mark| {
            let cache = stage.slab.cache().unwrap();
            let mut parcel = stage.slab.parcel().unwrap();
            // More objects than a chain holds.
            (0..5).for_each(|n| parcel.push(cache.alloc(contents(n)).unwrap()).unwrap());
            mark();
            drop(parcel);
            mark();
        },
        after: |_, orphans| orphans_are(0, orphans),
        moves_chains: true,
    },
    Scene {
        name: "life of a cache",
        prepare: full_size,
        play: |stage, mark| {
            mark();
            let cache = stage.slab.cache().unwrap();
            let objects: Vec<_> = (0..4).map(|n| cache.alloc(contents(n)).unwrap()).collect();
            drop(objects);
            cache.free(stage.offered[1]).unwrap();
            drop(cache);
            mark();
        },
        after: |_, orphans| orphans_are(0, orphans),
        moves_chains: true,
    },
];
