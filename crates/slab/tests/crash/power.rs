//! Power failures: the device has all synced data, and a random part of the other data.
//!
//! A child is traced instruction by instruction. Whenever the file has changed, the changed sectors get a new version;
//! when the child has called `msync`, the sectors of that range are on the device. Power can fail after every
//! instruction, and then each sector has any of its versions since it was synced. A machine that restarts finds such a
//! file.

use std::collections::HashSet;
use std::fs::File;
use std::os::unix::fs::FileExt;

use millstream_slab::{Error, Handle, RawSlab, Slab};
use millstream_verify_random::{Random, stress};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

use crate::stage::{Contents, Stage, contents};
use crate::tracer::Child;

const SECTOR: usize = 512;
/// The number is large enough that the objects' words fill several sectors.
const OBJECTS: u64 = 200;
/// The number of random devices for each state of the file, times the stress. Two further devices have the oldest
/// version of every sector, or the newest.
const DEVICES: u64 = 2;
/// The maximum number of objects promised at once.
const MAX_PROMISED: usize = 16;

/// The objects that must survive a power failure. The child lists them in memory that its parent sees.
#[derive(Clone, Copy)]
#[repr(C)]
struct Promises {
    count: usize,
    objects: [(Handle, Contents); MAX_PROMISED],
}

struct Promised(*mut Promises);

impl Promised {
    fn new() -> Self {
        let (rights, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: `mmap` returned new memory of this size; it is zeroed, and zero is a value of every field.
        Promised(unsafe { mmap_anonymous(std::ptr::null_mut(), size_of::<Promises>(), rights, flags) }.unwrap().cast())
    }

    fn read(&self) -> Vec<(Handle, Contents)> {
        // SAFETY: the memory is mapped, and the child that writes to it is stopped while its parent reads.
        let promises = unsafe { self.0.read_volatile() };
        promises.objects[..promises.count].to_vec()
    }

    fn write(&self, promised: &[(Handle, Contents)]) {
        let mut objects = [(Handle::default(), [0; 2]); MAX_PROMISED];
        objects[..promised.len()].copy_from_slice(promised);
        // The list promises no object while it is being written.
        // SAFETY: the memory is mapped, and no other process writes to it.
        unsafe {
            (&raw mut (*self.0).count).write_volatile(0);
            (&raw mut (*self.0).objects).write_volatile(objects);
            (&raw mut (*self.0).count).write_volatile(promised.len());
        }
    }
}

/// The versions that each sector of the file may have on the device, the oldest first.
struct Device {
    sectors: Vec<Vec<[u8; SECTOR]>>,
}

impl Device {
    fn new(bytes: &[u8]) -> Self {
        Device { sectors: bytes.chunks_exact(SECTOR).map(|sector| vec![sector.try_into().unwrap()]).collect() }
    }

    /// Adds versions of the changed sectors; returns whether any sector has changed.
    fn see(&mut self, bytes: &[u8]) -> bool {
        let mut changed = false;
        for (versions, sector) in self.sectors.iter_mut().zip(bytes.chunks_exact(SECTOR)) {
            if versions.last().unwrap() != sector {
                versions.push(sector.try_into().unwrap());
                changed = true;
            }
        }
        changed
    }

    fn sync(&mut self, offset: usize, bytes: usize) {
        for versions in &mut self.sectors[offset / SECTOR..(offset + bytes).div_ceil(SECTOR)] {
            versions.drain(..versions.len() - 1);
        }
    }

    /// The contents of the device when power fails: `choose` picks the version of each sector, given the number of its
    /// versions.
    fn image(&self, mut choose: impl FnMut(usize) -> usize) -> Vec<u8> {
        self.sectors.iter().flat_map(|versions| versions[choose(versions.len())]).collect()
    }
}

/// Simulates a power failure after every instruction of the workload; returns the number of failures.
pub(crate) fn failures() -> usize {
    let mut random = Random::seeded();
    let stage = Stage::of(OBJECTS, 8);
    let promised = Promised::new();
    let bytes = stage.slab.raw().file().unwrap().try_clone_to_owned().map(File::from).unwrap();
    let length = bytes.metadata().unwrap().len() as usize;
    let read = || {
        let mut image = vec![0; length];
        bytes.read_exact_at(&mut image, 0).unwrap();
        image
    };
    let mut device = Device::new(&read());
    let base = base(&stage);
    let child = Child::start(|mark| workload(&stage, &promised, mark));
    let (mut failures, mut syncs, mut pending) = (0, 0, None);
    child.follow(|registers| {
        let changed = device.see(&read());
        // The call of the previous instruction has returned.
        let synced = std::mem::replace(&mut pending, msync(registers, base));
        if let Some((offset, bytes)) = synced {
            device.sync(offset, bytes);
            syncs += 1;
        }
        if !changed && synced.is_none() {
            return;
        }
        let promised = promised.read();
        let mut fail = |choose: &mut dyn FnMut(usize) -> usize| {
            restart(&device.image(choose), &promised, failures);
            failures += 1;
        };
        fail(&mut |_| 0);
        fail(&mut |versions| versions - 1);
        for _ in 0..DEVICES * stress() {
            fail(&mut |versions| random.below(versions as u64) as usize);
        }
    });
    assert!(syncs > 10, "the workload has called msync {syncs} times");
    println!("{failures} power failures, {syncs} calls of msync");
    failures
}

/// The address of the mapping, here and in a child.
fn base(stage: &Stage) -> usize {
    let objects = stage.slab.raw().pointer(stage.kept[0]).unwrap().addr().get();
    // The four pages before the objects are the header, slots, words and links.
    objects - stage.kept[0].index() as usize * size_of::<Contents>() - 4 * 4096
}

/// The range of the file that the next instruction syncs, if it does.
fn msync(registers: &libc::user_regs_struct, base: usize) -> Option<(usize, usize)> {
    const SYSCALL: [u8; 2] = [0x0f, 0x05];
    if registers.rax != libc::SYS_msync as u64 || registers.rdx != libc::MS_SYNC as u64 {
        return None;
    }
    // SAFETY: the child is a fork of this process and has its program at the same address.
    let next = unsafe { (registers.rip as *const [u8; 2]).read_unaligned() };
    (next == SYSCALL).then(|| (registers.rdi as usize - base, registers.rsi as usize))
}

/// Syncs objects, and the slab as a whole, changes objects and frees them.
fn workload(stage: &Stage, promised: &Promised, mark: &dyn Fn()) {
    let slab = &stage.slab;
    let cache = slab.cache().unwrap();
    let mut list: Vec<(Handle, Contents)> = Vec::new();
    mark();
    // These are more objects than fit before the slab grows, with unsynced ones between the synced ones.
    let mut others = Vec::new();
    for n in 0..8 {
        others.extend((0..12).map(|_| cache.alloc(contents(50)).unwrap()));
        let handle = cache.alloc(contents(n)).unwrap().publish();
        slab.raw().sync_object(handle).unwrap();
        list.push((handle, contents(n)));
        promised.write(&list);
    }
    // Objects are freed: the earlier promise is void.
    for _ in 0..3 {
        let (handle, _) = list.remove(1);
        promised.write(&list);
        cache.free(handle).unwrap();
    }
    drop(cache.alloc(contents(20)).unwrap());
    // Objects are changed.
    let (handle, _) = list.remove(0);
    promised.write(&list);
    let mut object = cache.claim(handle).unwrap();
    *object = contents(21);
    object.publish();
    slab.raw().sync_object(handle).unwrap();
    list.push((handle, contents(21)));
    promised.write(&list);
    drop(others);
    // The slab is synced as a whole, and an unsynced object follows.
    let handles: Vec<_> = (30..33).map(|n| (cache.alloc(contents(n)).unwrap().publish(), contents(n))).collect();
    slab.raw().sync().unwrap();
    list.extend(handles);
    promised.write(&list);
    drop((0..3).map(|n| cache.alloc(contents(40 + n)).unwrap()).collect::<Vec<_>>());
    cache.raw().flush().unwrap();
    mark();
}

/// Opens the file after a power failure.
fn restart(image: &[u8], promised: &[(Handle, Contents)], number: usize) {
    let file = File::from(rustix::fs::memfd_create("device", rustix::fs::MemfdFlags::CLOEXEC).unwrap());
    file.write_all_at(image, 0).unwrap();
    // The machine has booted again.
    let boot: Vec<u8> = image[8 * 17..8 * 18].iter().map(|byte| !byte).collect();
    file.write_all_at(&boot, 8 * 17).unwrap();
    let slab = RawSlab::open_file(file).unwrap_or_else(|error| panic!("failure {number}: {error}"));
    let report = slab.verify();
    assert!(report.is_sound(), "failure {number}: {report:#?}");
    let slab = Slab::<Contents>::try_from(slab).unwrap();
    for &(handle, contents) in promised {
        let found = slab.read(handle).unwrap_or_else(|error| panic!("failure {number}: {handle:?} is lost: {error}"));
        assert_eq!(found, contents, "failure {number}: {handle:?} has other contents");
    }
    let mut seen: HashSet<u64> = slab.live().map(|object| object.handle.index()).collect();
    let cache = slab.cache().unwrap();
    let mut objects = Vec::new();
    loop {
        match cache.alloc(contents(600)) {
            Ok(object) => {
                assert!(seen.insert(object.handle().index()), "failure {number}: allocated twice");
                objects.push(object);
            }
            Err(Error::Full { .. }) => break,
            Err(error) => panic!("failure {number}: {error}"),
        }
    }
    assert_eq!(seen.len() as u64, OBJECTS, "failure {number}: leaked");
    for &(handle, contents) in promised {
        assert_eq!(slab.read(handle).unwrap(), contents, "failure {number}: {handle:?} was overwritten");
    }
}
