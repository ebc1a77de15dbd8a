//! A slab in memory: the mapping, and typed access to its parts.

use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use crate::depot::{Depot, Head, NONE};
use crate::mapped::error::Error;
use crate::mapped::file;
use crate::mapped::geometry::{Geometry, PAGE};
use crate::mapped::header::{BOOT, CAPACITY, FRESH, HEAD, Header, NAMESPACE, REBUILD_LOCK};
use crate::mapped::memory::{Memory, Source};
use crate::mapped::process::{self, Identity};
use crate::mapped::rebuild_lock;
use crate::primitive::{AtomicU64, AtomicU128};
use crate::slot::Slot;
use crate::word::Word;

/// The state that all caches and handles of a slab in this process share.
pub(crate) struct Mapping {
    pub(crate) memory: Memory,
    pub(crate) header: Header,
    /// Whether new objects are backed by storage before they can be allocated.
    pub(crate) reserve: bool,
    /// The digest of this machine's boot.
    pub(crate) boot: u64,
}

impl Mapping {
    /// Maps a file whose header was read, or new memory.
    pub(crate) fn map(source: Source, header: Header, reserve: bool) -> Result<Self, Error> {
        let Geometry { huge_pages, .. } = header.geometry;
        let memory = Memory::map(source, header.geometry.file_bytes(), huge_pages)?;
        if huge_pages {
            // This is only advice: if the kernel has no huge pages of this kind, the slab works with small pages.
            memory.advise_huge_pages(header.geometry.objects());
        }
        Self::new(memory, header, reserve)
    }

    /// A slab whose metadata are in this memory.
    pub(crate) fn new(memory: Memory, header: Header, reserve: bool) -> Result<Self, Error> {
        if !AtomicU128::is_lock_free() {
            let source = std::io::ErrorKind::Unsupported;
            return Err(Error::system("exchange 128 bits at once on this processor", source));
        }
        Ok(Mapping { memory, header, reserve, boot: process::boot()? })
    }

    /// Writes the header into memory that is all zero.
    pub(crate) fn initialise(&self, capacity: u64) -> Result<(), Error> {
        for (number, word) in self.header.words().into_iter().enumerate() {
            self.word(number).store(word, Ordering::Relaxed);
        }
        self.head().store(Head { first: NONE, by: 0, tag: 0 }.pack(), Ordering::Relaxed);
        self.back(0, capacity)?;
        self.capacity_word().store(capacity, Ordering::Release);
        Ok(())
    }

    fn word(&self, number: usize) -> &AtomicU64 {
        debug_assert!(number < PAGE as usize / 8);
        // SAFETY: the word is within the header's page, aligned, and alive as long as `self`; other processes change it
        // only atomically.
        unsafe { self.memory.at(8 * number as u64).cast().as_ref() }
    }

    pub(crate) fn rebuild_lock(&self) -> &AtomicU128 {
        self.wide(REBUILD_LOCK)
    }

    pub(crate) fn boot_word(&self) -> &AtomicU64 {
        self.word(BOOT)
    }

    pub(crate) fn namespace_word(&self) -> &AtomicU64 {
        self.word(NAMESPACE)
    }

    pub(crate) fn capacity_word(&self) -> &AtomicU64 {
        self.word(CAPACITY)
    }

    pub(crate) fn fresh(&self) -> &AtomicU64 {
        self.word(FRESH)
    }

    pub(crate) fn head(&self) -> &AtomicU128 {
        self.wide(HEAD)
    }

    /// The first object of the depot's first chain.
    pub(crate) fn first_chain(&self) -> u32 {
        Head::unpack(self.head().load(Ordering::Acquire)).first
    }

    /// Whether a process is rebuilding the free list, or died while rebuilding it.
    pub(crate) fn is_half_rebuilt(&self) -> bool {
        rebuild_lock::is_half_rebuilt(self.rebuild_lock().load(Ordering::Acquire))
    }

    /// Two words that change together; the number of the first is even.
    fn wide(&self, number: usize) -> &AtomicU128 {
        debug_assert!(number.is_multiple_of(2) && number + 1 < PAGE as usize / 8);
        // SAFETY: the words are within the header's page and aligned to 16 bytes; where they change, no access touches
        // only one half.
        unsafe { self.memory.at(8 * number as u64).cast().as_ref() }
    }

    pub(crate) fn slots(&self) -> &[Slot] {
        let Geometry { caches, .. } = self.header.geometry;
        // SAFETY: the geometry reserves `caches` aligned slots there; other processes change them only atomically.
        unsafe {
            std::slice::from_raw_parts(self.memory.at(self.header.geometry.slots()).cast().as_ptr(), caches as usize)
        }
    }

    pub(crate) fn words(&self) -> &[AtomicU64] {
        self.per_object(self.header.geometry.words())
    }

    fn per_object(&self, offset: u64) -> &[AtomicU64] {
        let Geometry { max_objects, .. } = self.header.geometry;
        // SAFETY: the geometry reserves `max_objects` aligned words there; other processes change them only atomically.
        unsafe { std::slice::from_raw_parts(self.memory.at(offset).cast().as_ptr(), max_objects as usize) }
    }

    /// The application's number for the last holder of each object, if the slab keeps owners.
    pub(crate) fn owners(&self) -> Option<&[AtomicU64]> {
        self.header.geometry.owners.then(|| self.per_object(self.header.geometry.owners()))
    }

    /// Marks an object as an orphan of this slot's last user.
    pub(crate) fn orphan(&self, index: u64, slot: u16) {
        let word = &self.words()[index as usize];
        if let (Some(owners), Some(slot)) = (self.owners(), self.slots().get(usize::from(slot))) {
            owners[index as usize].store(slot.user.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        // Release: the owner is written before the word.
        word.store(Word(word.load(Ordering::Relaxed)).generation().orphan(), Ordering::Release);
    }

    pub(crate) fn depot(&self) -> Depot<'_> {
        Depot {
            head: self.head(),
            words: self.words(),
            links: self.per_object(self.header.geometry.links()),
            slots: self.slots(),
            chain: self.header.geometry.chain as usize,
        }
    }

    /// The address of an object.
    pub(crate) fn object(&self, index: u64) -> NonNull<u8> {
        let geometry = &self.header.geometry;
        assert!(index < geometry.max_objects, "an index was checked before");
        self.memory.at(geometry.objects() + index * geometry.object_bytes)
    }

    /// The number of objects that may be used now; never more than the maximum, whatever the word says.
    pub(crate) fn capacity(&self) -> u64 {
        self.capacity_word().load(Ordering::Acquire).min(self.header.geometry.max_objects)
    }

    /// The words of all objects ever used in this boot, and of some unused objects. Reading more would make the kernel
    /// allocate memory for holes of the file.
    pub(crate) fn used_words(&self) -> &[AtomicU64] {
        let used = match self.memory.is_copy() {
            true => self.capacity(),
            // A cache that takes fresh objects, at most a chain of them, raises the number afterwards. So one chain
            // more may be in use than the number says.
            false => {
                self.fresh().load(Ordering::Acquire).saturating_add(self.header.geometry.chain).min(self.capacity())
            }
        };
        &self.words()[..used as usize]
    }

    /// The words of all objects ever used, including those that the header does not count: after a power failure, the
    /// header may be older than the words.
    pub(crate) fn written_words(&self) -> &[AtomicU64] {
        let (words, used) = (self.words(), self.used_words().len());
        let Some(file) = self.memory.file() else { return &words[..used] };
        let start = self.header.geometry.words();
        let beyond = start + 8 * used as u64..start + 8 * words.len() as u64;
        let indices = file::data(file, beyond).flat_map(|range| {
            let index = |offset: u64| ((offset - start) / 8) as usize;
            index(range.start)..index(range.end)
        });
        let last = indices.filter(|&index| words[index].load(Ordering::Relaxed) != 0).last();
        &words[..last.map_or(used, |index| index + 1)]
    }

    /// Raises the number of objects that may be used; returns `false` at the maximum.
    pub(crate) fn grow(&self) -> Result<bool, Error> {
        let capacity = self.capacity();
        let larger = capacity.saturating_mul(2).clamp(1, self.header.geometry.max_objects);
        if larger <= capacity {
            return Ok(false);
        }
        self.back(capacity, larger)?;
        self.capacity_word().fetch_max(larger, Ordering::AcqRel);
        Ok(true)
    }

    /// Makes the file system reserve space for a range of objects, their words and links, if the options ask for it.
    fn back(&self, from: u64, until: u64) -> Result<(), Error> {
        let (true, Some(file)) = (self.reserve, self.memory.file()) else { return Ok(()) };
        let geometry = &self.header.geometry;
        let owners = if geometry.owners { 8 } else { 0 };
        let ranges = [
            (geometry.words(), 8),
            (geometry.links(), 8),
            (geometry.owners(), owners),
            (geometry.objects(), geometry.object_bytes),
        ];
        for (start, bytes) in ranges.into_iter().filter(|&(_, bytes)| bytes > 0) {
            let (offset, bytes) = (start + from * bytes, (until - from) * bytes);
            rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), offset, bytes)
                .map_err(|source| Error::system(format!("reserve {bytes} bytes of the file"), source))?;
        }
        Ok(())
    }

    /// Whether the process that a word of shared memory names is alive; if not, no process will ever act in its name
    /// again.
    pub(crate) fn lives(&self, owner: Identity) -> bool {
        // Every process of an earlier boot is dead, whichever process has that PID and start time now.
        self.boot_word().load(Ordering::Acquire) == self.boot && owner.is_alive()
    }
}
