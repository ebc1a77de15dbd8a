//! `memory`: the peak memory of a run stays near the byte budget, whatever the units contain.

use std::io::Write as _;
use std::process::Stdio;
use std::thread;

use crate::support::{Room, peak_bytes};

const MIB: u64 = 1 << 20;

/// The memory in addition to the byte budget: the program, the stacks and buffers of its threads, the line that the
/// source is reading, and free memory in the allocator.
const BESIDE: u64 = 64 * MIB;

/// The peak memory of a run whose input is `line`, repeated `times` times. A program delays each line.
fn peak_with_lines(stages: &str, line: &[u8], times: usize) -> u64 {
    let room = Room::new(&format!(
        "memory = \"16MiB\"\ninflight = 100\n[source]\nlines = \"-\"\n{stages}\n\
         [[stage]]\nname = \"slow\"\nop = \"exec\"\nexec = [\"sleep\", \"0.2\"]\nstdin = \"null\"\nstdout = \"null\"\n"
    ));
    let mut child = room.command(&["run", "flow.toml"]).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            for _ in 0..times {
                stdin.write_all(line).unwrap();
                stdin.write_all(b"\n").unwrap();
            }
        });
        peak_bytes(child, 0)
    })
}

#[test]
fn long_lines_weigh_what_they_are() {
    let peak = peak_with_lines("", &vec![b'x'; 8 << 20], 24);
    assert!(peak < 16 * MIB + BESIDE, "{} MiB", peak / MIB);
}

#[test]
fn parsed_members_weigh_what_they_are() {
    let parse = "[[stage]]\nname = \"parse\"\nop = \"parse\"\n";
    let long = format!("{{\"a\":\"{}\"}}", "x".repeat(4 << 20));
    let many = format!("{{\"a\":1{}}}", ",\"b\":1".repeat(400_000));
    for line in [long, many] {
        let peak = peak_with_lines(parse, line.as_bytes(), 24);
        assert!(peak < 16 * MIB + BESIDE, "{} MiB for lines of {}", peak / MIB, line.len());
    }
}
