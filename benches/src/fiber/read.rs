//! Reads of a file, under each model of waiting, compared with fio's loop over io_uring.

use std::fs;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use millstream_fiber::fs::File;
use millstream_fiber::{IoModel, Options, Runtime, Threads};

use super::row::Row;
use crate::error::Error;

/// The bytes of a read.
const BLOCK: usize = 4096;

/// The number of reads at a time.
const DEPTH: u64 = 32;

/// The file, in the competitor's folder.
const FILE: &str = "file";

/// Writes the file that the competitors read.
pub(super) fn write_file(folder: &Path, blocks: u64) -> Result<(), Error> {
    let path = folder.join(FILE);
    let write = || {
        let mut file = fs::File::create(&path)?;
        for block in 0..blocks {
            file.write_all(&block.to_le_bytes().repeat(BLOCK / 8))?;
        }
        file.sync_all()
    };
    write().map_err(Error::at(&path))
}

/// The model of waiting with this name, other than the one that is compared with the peers.
pub(super) fn model(name: &str) -> Option<IoModel> {
    match name {
        "readiness" => Some(IoModel::Readiness),
        "nonblocking" => Some(IoModel::NonBlocking),
        "blocking" => Some(IoModel::Blocking),
        _ => None,
    }
}

/// The wall time and the processor time of a read, in nanoseconds.
pub(super) fn run(peer: &str, row: Row, count: u64) -> Result<[f64; 2], Error> {
    let path = Path::new(FILE);
    let file = fs::File::open(path).map_err(Error::at(path))?;
    let blocks = file.metadata().map_err(Error::at(path))?.len() / BLOCK as u64;
    if row == Row::ReadHot {
        fs::read(path).map_err(Error::at(path))?;
    } else {
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)
            .map_err(|error| Error::at(path)(error.into()))?;
    }
    match peer {
        "fio" => fio(row, count),
        "threads" => {
            let next = AtomicU64::new(0);
            Ok(timed(count, || {
                std::thread::scope(|scope| {
                    for _ in 0..DEPTH {
                        scope.spawn(|| read_all(&next, count, blocks, |buf, at| file.read_at(buf, at)));
                    }
                });
            }))
        }
        name => {
            let model = model(name).unwrap_or(IoModel::Completion);
            let runtime = Runtime::start(Options::new(Threads::One).io(model)).map_err(Error::refused)?;
            let (file, next) = (Arc::new(File::from(file)), Arc::new(AtomicU64::new(0)));
            Ok(timed(count, || {
                let readers = (0..DEPTH).map(|_| {
                    let (file, next) = (Arc::clone(&file), Arc::clone(&next));
                    runtime.spawn(move || read_all(&next, count, blocks, |buf, at| file.read_at(buf, at)))
                });
                let readers: Vec<_> = readers.collect();
                readers.into_iter().for_each(|reader| reader.join().expect("the file can be read"));
            }))
        }
    }
}

/// Reads blocks in a scattered order until `count` have been read by all readers.
fn read_all(next: &AtomicU64, count: u64, blocks: u64, read: impl Fn(&mut [u8], u64) -> std::io::Result<usize>) {
    let mut buf = [0; BLOCK];
    loop {
        let index = next.fetch_add(1, Relaxed);
        if index >= count {
            return;
        }
        // The factor is odd and `blocks` a power of two, so each block is read once per round.
        let block = index.wrapping_mul(0x9e37_79b1) % blocks;
        assert_eq!(read(&mut buf, block * BLOCK as u64).ok(), Some(BLOCK));
        assert_eq!(buf[..8], block.to_le_bytes());
    }
}

/// The wall time and the processor time per step of work that has `count` steps, in nanoseconds.
fn timed(count: u64, work: impl FnOnce()) -> [f64; 2] {
    let (began, spent) = (Instant::now(), processor_time());
    work();
    [began.elapsed().as_nanos() as f64 / count as f64, (processor_time() - spent) / count as f64]
}

/// The processor time of this process so far, in nanoseconds.
fn processor_time() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Runs fio with the same reads.
fn fio(row: Row, count: u64) -> Result<[f64; 2], Error> {
    let program = Path::new("fio");
    let mut command = Command::new(program);
    command.args(["--name=read", "--rw=randread", "--bs=4k", "--ioengine=io_uring", "--iodepth=32", "--thread"]);
    // fio submits and completes whatever is ready, like the fibers' worker.
    command.args(["--iodepth_batch_submit=32", "--iodepth_batch_complete_min=1", "--iodepth_batch_complete_max=32"]);
    command.args(["--filename=file", "--output-format=json", &format!("--io_size={}", count * BLOCK as u64)]);
    if row == Row::ReadHot {
        command.args(["--invalidate=0", "--norandommap"]);
    }
    let output = command.stderr(Stdio::inherit()).output().map_err(Error::at(program))?;
    let parsed = || {
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
        let job = json.get("jobs")?.get(0)?;
        let wall = 1e9 / job["read"]["iops"].as_f64()?;
        Some([wall, wall * (job["usr_cpu"].as_f64()? + job["sys_cpu"].as_f64()?) / 100.0])
    };
    parsed().ok_or_else(|| Error::new(format!("fio ended with {} and printed no figures", output.status)))
}
