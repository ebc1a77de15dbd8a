//! The smallest useful flow: it reads files, at most two at once, and counts their lines on all cores.
//!
//! `cargo run --example first_flow -- FILE…`

use std::path::PathBuf;

use millstream_flow::{BuildError, Flow, Need};

fn main() -> Result<(), BuildError> {
    let mut flow = Flow::builder("count lines");
    let disk = flow.tokens("disk", 2);
    let (read, count, done) = (flow.inlet("read"), flow.inlet("count"), flow.retire());

    flow.stage(read, |path: &mut PathBuf, _| Ok(std::fs::read_to_string(path)?))
        .need(Need::tokens(disk, 1)) // granted before a thread is spent on the file
        .to(count);
    flow.stage(count, |text: &mut String, _| Ok(text.lines().count())).to(done);
    flow.on_retire(|lines: usize| println!("{lines} lines"));

    let files: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let report = flow.build(read)?.run(files);
    println!("{} counted, {} given up on", report.retired, report.dead_lettered);
    for letter in &report.dead_letters {
        println!("{:?}: {letter}", letter.input::<PathBuf>());
    }
    Ok(())
}
