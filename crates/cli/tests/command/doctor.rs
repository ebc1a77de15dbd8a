//! `millstream doctor` prints an answer on any machine.

use crate::support::Room;

#[test]
fn the_doctor_says_which_fences_are_in_force_and_why() {
    let room = Room::new("");
    let asked = |fence: &str| {
        let output = room.command(&["doctor"]).env("MILLSTREAM_FENCE", fence).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let text = asked("");
    for name in [
        "fence, fast",
        "fence, cheap",
        "fence, quiet",
        "processor",
        "kernel",
        "membarrier",
        "io_uring",
        "BPF maps",
        "huge pages",
    ] {
        assert!(text.lines().any(|line| line.starts_with(name)), "no {name} in\n{text}");
    }
    let symmetric = asked("symmetric");
    assert!(symmetric.lines().filter(|line| line.contains("symmetric: a full fence on both sides")).count() == 3);
}
