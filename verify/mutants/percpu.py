"""Mistakes in restartable sections and in the types built on them, each of which a test must find."""

PACKAGE = "millstream-sync"
FOLDER = "crates/sync"
# The tests to build and run, with their RUSTFLAGS.
RUNS = [
    (["--lib", "--test", "percpu", "--test", "percpu_revocable", "--test", "counter"], ""),
]

# File, source text, its replacement, the mistake.
MUTANTS = [
    ("percpu/x86_64.rs", 'aborted: "mov {outcome:e}, -1", "jmp 88b"', 'aborted: "mov {outcome:e}, 0", "jmp 88b"',
     "the abort handler reports success"),
    ("percpu/x86_64.rs", '            "mov qword ptr fs:[{area} + 8], {scratch}\\n",\n',
     '            "/* {area} {scratch} */\\n",\n', "no descriptor is stored"),
    ("percpu/x86_64.rs", "aborted = label { return Outcome::Aborted },", "aborted = label { return Outcome::Done },",
     "an aborted addition reports success"),
    ("percpu/words.rs", "for _ in 0..MAX_ATTEMPTS {\n                if section(", "loop {\n                if section(",
     "additions are attempted without a limit"),
    ("percpu/words.rs", "self.copy(self.processors + thread_number() % self.processors)", "self.copy(thread_number() % self.processors)",
     "threads without sections use the processors' copies"),
    ("percpu/bag.rs", "let restarted = restart(Sections::All);", "let restarted: std::io::Result<()> = Ok(());",
     "a bag is drained without a restart"),
    ("percpu/revocable.rs", 'restart(Sections::All).expect("sections were restarted when the lock was made");', "",
     "a lock is taken away without a restart"),
]
