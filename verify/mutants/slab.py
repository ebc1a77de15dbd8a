"""Mistakes in the order of the slab's instructions, each of which the crash harness must find, and in who may recover."""

PACKAGE = "millstream-slab"
FOLDER = "crates/slab"
# What is built and run, with which RUSTFLAGS.
RUNS = [(["--test", "open", "--test", "slab"], ""), (["--test", "crash"], "")]

# File, what is there, what is put in its place, what went wrong.
MUTANTS = [
    ("depot.rs", "self.slots[usize::from(slot)].announce(Intent::Give(first), head.tag.wrapping_add(STEP));",
     "", "a chain is given without an announcement"),
    ("depot.rs", "            own.announce(Intent::Take(head.first), head.tag.wrapping_add(STEP));\n", "",
     "a chain is taken without an announcement"),
    ("depot.rs", "        let taken = self.walk(head.first, |index, word| {\n            if",
     "        own.settle();\n        let taken = self.walk(head.first, |index, word| {\n            if",
     "the announcement is withdrawn before the chain's words are written"),
    ("depot.rs", "other.done.fetch_max(head.tag, Ordering::AcqRel);", "let _ = other;",
     "nobody notes whose exchange he covers"),
    ("depot.rs", "Intent::Give(first) => (!done).then_some(first),", "Intent::Give(first) => Some(first),",
     "a survivor takes a chain that was given already"),
    ("depot.rs", "Intent::Take(first) => done.then_some(first),", "Intent::Take(_) => None,",
     "a survivor forgets a chain that was taken"),
    ("mapped/cache.rs", "            for index in from..until {", "            shared.fresh().fetch_max(until, Ordering::AcqRel);\n"
     "            for index in from..until {", "fresh objects are counted as used before they are in anybody's hands"),
    ("mapped/cache.rs", "word.compare_exchange(published, next.cached(self.slot),",
     "word.compare_exchange(published, next.free(),", "a freed object is the depot's before it is in the depot"),
    ("mapped/recover.rs", "        let mut is_dead = vec![false; self.slots().len()];",
     "        for &slot in dead {\n"
     "            self.slots()[usize::from(slot)].owner.store(Identity::NOBODY, Ordering::Release);\n        }\n"
     "        let mut is_dead = vec![false; self.slots().len()];",
     "a survivor gives a slot up before its objects are found"),
    ("mapped/recover.rs", "        for &slot in dead {\n            self.depot().settle(slot)?;\n        }\n", "",
     "a survivor does not bring to an end what the dead cache was doing"),
    ("mapped/cache.rs", "        if self.flush().is_ok() {\n",
     "        self.shared.slots()[usize::from(self.slot)].owner.store(Identity::NOBODY, Ordering::Release);\n"
     "        if self.flush().is_ok() {\n",
     "a cache gives its slot up before its objects"),
    ("mapped/cache.rs", "        word.store(cached.allocated(), Ordering::Release);\n", "        let _ = cached;\n",
     "an allocation is not written down"),
    ("mapped/parcel.rs", "            cache.hand_over(index, self.slot);\n            std::mem::forget(object);\n            self.indices",
     "            std::mem::forget(object);\n            self.indices", "what is in a parcel is still the sender's"),
    ("mapped/parcel.rs", "            cache.hand_over(index, self.slot);\n            std::mem::forget(object);\n            cache",
     "            std::mem::forget(object);\n            cache", "what was exchanged for a free object is still the sender's"),
    ("mapped/parcel.rs", "        cache.take_over(index);\n", "", "what was taken out of a parcel is still the parcel's"),
    ("mapped/parcel.rs", "            cache.hand_over(u64::from(kept), self.slot);\n", "",
     "an object that a parcel kept is not written down as allocated"),
    ("mapped/cache.rs", "        word.store(generation.cached(self.slot), Ordering::Release);\n        // Pairs",
     "        let _ = generation;\n        // Pairs", "what was exchanged for an object is still the parcel's"),
    ("mapped/parcel.rs", "        let mut chains = Chains::new(&self.shared, self.slot);\n",
     "        self.shared.slots()[usize::from(self.slot)].owner.store(Identity::NOBODY, Ordering::Release);\n"
     "        let mut chains = Chains::new(&self.shared, self.slot);\n", "a parcel gives its slot up before its objects"),
    ("mapped/gate.rs", "let must_remake = inherited != 0;", "let must_remake = false;", "whoever comes after a killed opener does not begin again"),
    ("mapped/gate.rs", "if self.is_half_made.get() { REMAKES } else { OPEN }", "OPEN", "who could not make the list anew opens the gate"),
    ("mapped/attach.rs", "        self.check_namespace(namespace)?;\n        self.recover_at_the_gate(thoroughly)", "        self.recover_at_the_gate(thoroughly)",
     "who recovers does not ask whether he can watch the others"),
    ("mapped/recover.rs", " || is(ended, slot)", "", "what was forgotten is nobody's"),
    ("mapped/shared.rs", "            owners[index as usize].store(slot.user.load(Ordering::Relaxed), Ordering::Relaxed);\n", "            let _ = (owners, slot);\n",
     "an orphan does not say whose it is"),
    ("mapped/attach.rs", "                        slot.user.store(NO_OWNER, Ordering::Relaxed);\n", "", "a new cache has the owner of the one before"),
]
