//! Rings compared with the original: the LMAX Disruptor, in a Java process that takes turns with ours.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::{CAPACITY, Load, Pass, Wanted, ours, timed};
use crate::args::Args;
use crate::compare::{Competitor, Role, alternate};
use crate::error::Error;

/// The number of uncounted passes, in which the Java compiler optimises the hot code.
const WARM_UPS: u32 = 3;

/// Compares one and three producers, if Java is installed and Maven can fetch the library.
pub(super) fn run(args: &Args, events: u64) -> Result<(), Error> {
    let folder = tempfile::tempdir().map_err(Error::at(&std::env::temp_dir()))?;
    let java = &match Java::start(folder.path()) {
        Ok(java) => RefCell::new(java),
        Err(reason) => {
            println!("The LMAX Disruptor is skipped: {reason}\n");
            return Ok(());
        }
    };
    let cases: [(u64, &str, Pass); 2] =
        [(1, "spsc", ours::spsc::<u64, CAPACITY>), (3, "mpsc", ours::mpsc::<u64, CAPACITY>)];
    for (producers, ours, pass) in cases {
        let competitor =
            |name, queue| Competitor::new(name, Role::Peer, move || java.borrow_mut().timed(queue, producers, events));
        let competitors = vec![
            Competitor::new(ours, Role::Ours, move || timed(Load::to_one(producers, events), pass)),
            competitor("LMAX Disruptor 4.0, yielding", "disruptor"),
            competitor("ArrayBlockingQueue", "queue"),
        ];
        println!("{producers} to 1\n");
        let comparison = alternate("ns per event", WARM_UPS, args.rounds, competitors)?;
        println!("{}\n", comparison.render());
        let wanted = Wanted { ours, peer: "LMAX Disruptor 4.0, yielding", times: 1.0 };
        println!("{}\n", wanted.verdict(&comparison));
    }
    Ok(())
}

/// The Java process. For each pass, it reads a line and writes a line.
struct Java {
    process: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Java {
    /// Fetches the library and compiles the program into `folder`.
    fn start(folder: &Path) -> Result<Self, Error> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("lmax");
        let into = format!("-DoutputDirectory={}", folder.display());
        let fetch = ["-q", "-B", "dependency:copy-dependencies", into.as_str(), "-f"];
        succeed(Command::new("mvn").args(fetch).arg(source.join("pom.xml")))?;
        let path = format!("{0}:{0}/*", folder.display());
        succeed(Command::new("javac").args(["-cp", &path, "-d"]).arg(folder).arg(source.join("Lmax.java")))?;
        let mut process = Command::new("java")
            .args(["-cp", &path, "Lmax"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(Error::at(Path::new("java")))?;
        let questions = process.stdin.take().expect("the input is a pipe");
        let answers = BufReader::new(process.stdout.take().expect("the output is a pipe"));
        Ok(Java { process, questions, answers })
    }

    /// Nanoseconds per event.
    fn timed(&mut self, queue: &str, producers: u64, events: u64) -> Result<f64, Error> {
        let each = events / producers;
        let io = Error::at(Path::new("java"));
        let mut answer = String::new();
        writeln!(self.questions, "{queue} {producers} {each}")
            .and_then(|()| self.answers.read_line(&mut answer))
            .map_err(io)?;
        let parsed = answer.trim().split_once(' ').and_then(|(ns, sum)| Some((ns.parse().ok()?, sum.parse().ok()?)));
        let (nanoseconds, sum): (f64, u64) =
            parsed.ok_or_else(|| Error::new(format!("the Java program printed `{}`", answer.trim())))?;
        let expected = producers * (each * (each - 1) / 2);
        match sum == expected {
            true => Ok(nanoseconds / (producers * each) as f64),
            false => Err(Error::new(format!("the numbers sent add up to {expected}, those received to {sum}"))),
        }
    }
}

impl Drop for Java {
    fn drop(&mut self) {
        // The process also ends when its input does. An error means that it has already ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Runs a command whose output does not matter; fails if the command cannot be started or fails.
fn succeed(command: &mut Command) -> Result<(), Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| Error::new(format!("{program} cannot be started ({error})")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    let reason = said.lines().find(|line| line.contains("ERROR")).unwrap_or("it gave no reason");
    Err(Error::new(format!("{program} failed: {reason}")))
}
