//! The same tests with other fences.

use std::process::Command;

/// The environment variable that selects the fences.
const FENCE: &str = "MILLSTREAM_FENCE";

/// Runs this test program again, in a separate process, with full fences on both sides.
pub(crate) fn again_with_symmetric_fences(this_test: &str) {
    if std::env::var(FENCE).is_ok() {
        return; // This is that process.
    }
    let this_program = std::env::current_exe().unwrap();
    let output = Command::new(this_program).args(["--skip", this_test]).env(FENCE, "symmetric").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("test result: ok") && !text.contains(" 0 passed"), "{text}");
}
