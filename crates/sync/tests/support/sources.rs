//! The same tests with each kind of rseq area, and without one.

use std::process::Command;

const SOURCE: &str = "MILLSTREAM_RSEQ";
const TUNABLES: &str = "GLIBC_TUNABLES";

/// Runs the tests of this program whose names contain `filter` three more times. The first run uses our own areas, and
/// glibc is told not to register threads. The second also uses our own areas, but glibc registers threads, so our
/// registration fails wherever glibc has registered the thread. The third has no areas.
pub(crate) fn again_with_other_areas(this_test: &str, filter: &str) {
    if std::env::var(SOURCE).is_ok() {
        return; // This is one of those processes.
    }
    for (source, tunables) in [("own", "glibc.pthread.rseq=0"), ("own", ""), ("off", "")] {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([filter, "--skip", this_test]).env(SOURCE, source).env(TUNABLES, tunables);
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success(),
            "{SOURCE}={source} {TUNABLES}={tunables}\n{text}\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
        assert!(text.contains("test result: ok") && !text.contains(" 0 passed"), "{text}");
    }
}
