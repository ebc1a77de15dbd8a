//! A stream in blocks of whole lines, which several threads process while the results are consumed in order.
//!
//! The workers get the blocks in turn, at most a few ahead of the consumer, so the memory does not depend on the length
//! of the stream. The cost is that an error is reported only when its block is full and its result is consumed.

use std::io::{self, BufRead, Read};
use std::iter;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// The size of a block, without the remainder of its last line. The cost of passing a block of this size to a worker is
/// negligible.
const BLOCK: u64 = if cfg!(test) { 1 << 12 } else { 1 << 20 };

/// The capacity of each worker's two channels: one for blocks, one for results.
const AHEAD: usize = 2;

/// The maximum number of workers. More workers would only wait for input.
const MAX_WORKERS: usize = 8;

/// Applies `work` to each block, and passes the results in order to `take`, until `take` returns an error.
///
/// The last block ends where the stream ends or fails. The inner result is an error if the stream failed.
///
/// # Errors
/// Those of `take`.
pub(super) fn in_order<T: Send, E>(
    input: impl BufRead,
    work: impl Fn(Vec<u8>) -> T + Sync,
    mut take: impl FnMut(T) -> Result<(), E>,
) -> Result<io::Result<()>, E> {
    let mut blocks = Blocks { input, ended: Ok(()) };
    let first = blocks.next().unwrap_or_default();
    // A short stream is not worth a thread.
    let is_short = (first.len() as u64) < BLOCK;
    let cores = if is_short { 0 } else { thread::available_parallelism().map_or(1, usize::from) };
    thread::scope(|scope| {
        let spawn = |_| {
            let (blocks, to_do) = sync_channel::<Vec<u8>>(AHEAD);
            let (done, results) = sync_channel(AHEAD);
            let work = &work;
            let works = move || to_do.into_iter().map(work).try_for_each(|result| done.send(result));
            thread::Builder::new().spawn_scoped(scope, works).ok().map(|_| Worker { blocks, results })
        };
        // If a thread cannot be started, fewer workers suffice.
        let workers: Vec<Worker<T>> = (0..cores.min(MAX_WORKERS)).map_while(spawn).collect();
        let mut blocks = iter::once(first).chain(&mut blocks);
        if workers.is_empty() {
            return blocks.try_for_each(|block| take(work(block)));
        }
        let worker = |block: usize| &workers[block % workers.len()];
        let (mut sent, mut taken) = (0, 0);
        for block in blocks {
            if sent - taken == workers.len() * AHEAD {
                worker(taken).take(&mut take)?;
                taken += 1;
            }
            worker(sent).blocks.send(block).expect("a worker works while there are blocks");
            sent += 1;
        }
        (taken..sent).try_for_each(|block| worker(block).take(&mut take))
    })?;
    Ok(blocks.ended)
}

struct Worker<T> {
    blocks: SyncSender<Vec<u8>>,
    results: Receiver<T>,
}

impl<T> Worker<T> {
    fn take<E>(&self, take: &mut impl FnMut(T) -> Result<(), E>) -> Result<(), E> {
        take(self.results.recv().expect("a worker gives a result for each block"))
    }
}

/// The blocks of a stream. If reading fails, the incomplete last line is dropped.
struct Blocks<R> {
    input: R,
    ended: io::Result<()>,
}

impl<R: BufRead> Iterator for Blocks<R> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        if self.ended.is_err() {
            return None;
        }
        // The extra sixteenth is for the remainder of the last line.
        let mut block = Vec::with_capacity(BLOCK as usize + BLOCK as usize / 16);
        self.ended = self.input.by_ref().take(BLOCK).read_to_end(&mut block).and_then(|read| {
            if read as u64 == BLOCK && !block.ends_with(b"\n") {
                self.input.read_until(b'\n', &mut block)?;
            }
            Ok(())
        });
        if self.ended.is_err() {
            block.truncate(block.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1));
        }
        (!block.is_empty()).then_some(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of increasing length.
    fn lines(bytes: u64) -> Vec<u8> {
        let lines = (0..).flat_map(|n: usize| [n.to_string().repeat(n % 40), "\n".to_owned()]);
        let mut text = Vec::new();
        lines
            .take_while(|line| {
                text.extend_from_slice(line.as_bytes());
                (text.len() as u64) < bytes
            })
            .for_each(drop);
        text
    }

    #[test]
    fn every_line_comes_once_and_in_order() {
        let long = [lines(2 * BLOCK), vec![b'x'; 3 * BLOCK as usize], lines(BLOCK)].concat();
        // Lines of sixteen bytes: each block ends exactly where a line ends.
        let even = "a line of 16 by\n".repeat(3 * BLOCK as usize / 16).into_bytes();
        let texts = [0, 1, 100, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 40 * BLOCK + 77].map(lines);
        for text in texts.into_iter().chain([long, even]) {
            let bytes = text.len() as u64;
            let (mut together, mut blocks) = (Vec::new(), 0);
            let read = in_order(
                &text[..],
                |block| block,
                |block: Vec<u8>| {
                    let ends_in_a_line = block.ends_with(b"\n") || together.len() + block.len() == text.len();
                    assert!(ends_in_a_line, "block {blocks} of {bytes} bytes is cut within a line");
                    blocks += 1;
                    together.extend(block);
                    Ok::<(), ()>(())
                },
            );
            assert!(read.is_ok_and(|read| read.is_ok()));
            assert!(together == text, "{bytes} bytes");
            assert!(blocks * 4 * BLOCK >= bytes, "{blocks} blocks of {bytes} bytes");
        }
    }

    #[test]
    fn an_error_of_the_taker_ends_the_stream() {
        let mut taken = 0;
        let ended = in_order(
            &lines(40 * BLOCK)[..],
            |block| block.len(),
            |_| {
                taken += 1;
                if taken == 3 { Err("enough") } else { Ok(()) }
            },
        );
        assert_eq!((ended.unwrap_err(), taken), ("enough", 3));
    }

    #[test]
    fn blocks_before_a_failure_are_taken() {
        struct Fails;
        impl Read for Fails {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("the cable is out"))
            }
        }
        for bytes in [10, 3 * BLOCK] {
            let text = lines(bytes);
            let mut taken = 0;
            let input = io::BufReader::new((&text[..]).chain(Fails));
            let read = in_order(
                input,
                |block| block.len(),
                |bytes| {
                    taken += bytes;
                    Ok::<(), ()>(())
                },
            );
            assert_eq!(read.unwrap().unwrap_err().to_string(), "the cable is out");
            assert_eq!(taken, text.iter().rposition(|&byte| byte == b'\n').unwrap() + 1);
        }
    }
}
