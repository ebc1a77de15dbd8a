"""Mistakes in the order of the slab's instructions and in the conditions of recovery, each of which a test must find."""

PACKAGE = "millstream-slab"
FOLDER = "crates/slab"
# The tests to build and run, with their RUSTFLAGS.
RUNS = [(["--test", "open", "--test", "slab", "--test", "trust", "--test", "fork"], ""), (["--test", "crash"], "")]

# File, original text, replacement, mistake.
MUTANTS = [
    ("depot.rs", "self.slots[usize::from(slot)].announce(Intent::Give(first), head.tag.wrapping_add(STEP));",
     "", "a chain is given without an announcement"),
    ("depot.rs", "            own.announce(Intent::Take(head.first), head.tag.wrapping_add(STEP));\n", "",
     "a chain is taken without an announcement"),
    ("depot.rs", "        let taken = self.walk(head.first, |index, word| {\n            if",
     "        own.settle();\n        let taken = self.walk(head.first, |index, word| {\n            if",
     "the announcement is withdrawn before the chain's words are written"),
    ("depot.rs", "other.done.fetch_max(head.tag, Ordering::AcqRel);", "let _ = other;",
     "a cache does not note the exchange that it covers"),
    ("depot.rs", "Intent::Give(first) => (!done).then_some(first),", "Intent::Give(first) => Some(first),",
     "a survivor takes a chain that was given already"),
    ("depot.rs", "Intent::Take(first) => done.then_some(first),", "Intent::Take(_) => None,",
     "a survivor forgets a chain that was taken"),
    ("mapped/cache.rs", "            for index in from..until {", "            mapping.fresh().fetch_max(until, Ordering::AcqRel);\n"
     "            for index in from..until {", "fresh objects are counted as used before a cache has them"),
    ("mapped/cache.rs", "word.compare_exchange(published, next.cached(self.slot),",
     "word.compare_exchange(published, next.free(),", "a freed object is the depot's before it is in the depot"),
    ("mapped/recover.rs", "        for (index, word) in (0..).zip(self.mapping.used_words()) {\n            self.recover_object",
     "        for number in 0..self.slots.len() {\n            self.replace_owner(number, Identity::NONE);\n        }\n"
     "        for (index, word) in (0..).zip(self.mapping.used_words()) {\n            self.recover_object",
     "a survivor gives a slot up before its objects are found"),
    ("mapped/recover.rs", "                ward.is_damaged = self.mapping.depot().settle(number).is_err();\n",
     "                let _ = (number, ward);\n",
     "a survivor does not complete the operation of the dead cache"),
    ("mapped/recover.rs", "let chains = Chains::new(self.mapping, number);", "let chains = Chains::new(self.mapping, 0);",
     "a survivor gives objects of one dead cache in the name of another"),
    ("mapped/attach.rs", "        if let Some(recovered) = self.recover_beside(thoroughly, Passage::Unlocked)? {\n"
     "            return Ok(recovered);\n        }\n", "", "recovery waits for the rebuild lock"),
    ("mapped/recover.rs", "ward.is_damaged || ward.before == Identity::NONE", "ward.before == Identity::NONE",
     "an announcement that makes no sense is written over"),
    ("mapped/cache.rs", "        if self.flush().is_ok() {\n",
     "        self.mapping.slots()[usize::from(self.slot)].owner.store(Identity::NONE, Ordering::Release);\n"
     "        if self.flush().is_ok() {\n",
     "a cache gives its slot up before its objects"),
    ("mapped/cache.rs", "        word.store(cached.allocated(), Ordering::Release);\n", "        let _ = cached;\n",
     "an allocation is not recorded"),
    ("mapped/parcel.rs", "            cache.hand_over(index, self.slot);\n            std::mem::forget(object);\n            self.indices",
     "            std::mem::forget(object);\n            self.indices", "an object in a parcel is still the sender's"),
    ("mapped/parcel.rs", "            cache.hand_over(index, self.slot);\n            std::mem::forget(object);\n            cache",
     "            std::mem::forget(object);\n            cache", "an object exchanged for a free one is still the sender's"),
    ("mapped/parcel.rs", "        cache.take_over(index);\n", "", "an object taken out of a parcel is still the parcel's"),
    ("mapped/parcel.rs", "            cache.hand_over(u64::from(kept), self.slot);\n", "",
     "an object that a parcel kept is not recorded as allocated"),
    ("mapped/cache.rs", "        word.store(generation.cached(self.slot), Ordering::Release);\n        // Pairs",
     "        let _ = generation;\n        // Pairs", "a free object exchanged for another is still the parcel's"),
    ("mapped/parcel.rs", "        let mut chains = Chains::new(&self.mapping, self.slot);\n",
     "        self.mapping.slots()[usize::from(self.slot)].owner.store(Identity::NONE, Ordering::Release);\n"
     "        let mut chains = Chains::new(&self.mapping, self.slot);\n", "a parcel gives its slot up before its objects"),
    ("mapped/rebuild_lock.rs", "let must_rebuild = inherited != 0;", "let must_rebuild = false;", "the process after a killed opener does not rebuild"),
    ("mapped/rebuild_lock.rs", "if self.is_half_rebuilt.get() { HALF_REBUILT } else { UNLOCKED }", "UNLOCKED", "a process whose rebuild failed frees the lock"),
    ("mapped/recover.rs", "        self.check_namespace(namespace)?;\n", "",
     "a recovery does not check that it can watch the others"),
    ("mapped/recover.rs", " || thoroughly && self.take_over_ended(number)", "", "a forgotten object is not recovered"),
    ("mapped/mapping.rs", "            owners[index as usize].store(slot.user.load(Ordering::Relaxed), Ordering::Relaxed);\n", "            let _ = (owners, slot);\n",
     "an orphan has no owner"),
    ("mapped/register.rs", "            slot.user.store(NO_OWNER, Ordering::Relaxed);\n", "", "a new cache has the owner of the one before"),
    ("mapped/raw.rs", "self.mapping.memory.sync(geometry.words() + 8 * index, 8)", "Ok(())", "the word of a synced object is not synced"),
    ("mapped/raw.rs", "self.mapping.memory.sync(geometry.objects() + index * geometry.object_bytes, geometry.object_bytes)?;", "",
     "the bytes of a synced object are not synced"),
    ("mapped/mapping.rs", "last.map_or(used, |index| index + 1)", "last.map_or(used, |_| used)",
     "objects beyond the number of those in use are leaked by a power failure"),
    ("mapped/cache.rs", "        // In the child of a `fork`, the object is the parent's to free.\n        if !self.is_ours() {", "        if false {",
     "a child frees its parent's object"),
    ("mapped/rebuild.rs", "Some(State::Virgin) => chains.push(Entry { generation: Generation::FIRST, index })?,", "Some(State::Virgin) => {}",
     "objects whose words a power failure took are leaked"),
]
