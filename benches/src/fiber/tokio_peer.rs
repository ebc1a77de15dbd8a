//! The rows on tasks of tokio.

use std::net;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, Semaphore, mpsc};

use super::alone::{memory, per_step, waiting};
use super::row::{RING, Row, WAITING};

/// With one worker, this is tokio's single-threaded runtime.
fn start(workers: usize) -> Runtime {
    let built = match workers {
        1 => Builder::new_current_thread().enable_all().build(),
        _ => Builder::new_multi_thread().worker_threads(workers).enable_all().build(),
    };
    built.expect("the system has a thread")
}

pub(super) fn run(row: Row, count: u64, workers: usize) -> Option<f64> {
    let runtime = start(workers);
    Some(match row {
        Row::Yield => per_step(count, || {
            runtime.block_on(async {
                let yields = || async move {
                    for _ in 0..count / 2 {
                        tokio::task::yield_now().await;
                    }
                };
                let (one, other) = (tokio::spawn(yields()), tokio::spawn(yields()));
                one.await.and(other.await).expect("it only yields");
            });
        }),
        Row::Hop => runtime.block_on(async move { tokio::spawn(hop(count)).await.expect("the ring is whole") }),
        Row::Spawn => per_step(count, || {
            runtime.block_on(async {
                for n in 0..count {
                    assert_eq!(tokio::spawn(async move { n }).await.ok(), Some(n));
                }
            });
        }),
        Row::Fresh => per_step(count, || {
            runtime.block_on(async {
                let tasks: Vec<_> = (0..count).map(|n| tokio::spawn(async move { n })).collect();
                for task in tasks {
                    task.await.expect("it only returns");
                }
            });
        }),
        _ => return None,
    })
}

async fn hop(count: u64) -> f64 {
    let rounds = count / RING as u64 + 1;
    let (first, mut inbox) = mpsc::channel::<u64>(1);
    for _ in 0..RING {
        let (outbox, next) = mpsc::channel(1);
        let mut receiver = std::mem::replace(&mut inbox, next);
        tokio::spawn(async move {
            while let Some(token) = receiver.recv().await {
                if outbox.send(token).await.is_err() {
                    break;
                }
            }
        });
    }
    first.send(0).await.expect("the ring is whole");
    inbox.recv().await.expect("the ring is whole");
    let began = std::time::Instant::now();
    for round in 0..rounds {
        first.send(round).await.expect("the ring is whole");
        inbox.recv().await.expect("the ring is whole");
    }
    began.elapsed().as_nanos() as f64 / (rounds * RING as u64) as f64
}

pub(super) fn parked(count: u64) -> Vec<f64> {
    let runtime = start(1);
    waiting(count, || {
        runtime.block_on(async {
            let release = Arc::new(Notify::new());
            let wait = |_| {
                let release = Arc::clone(&release);
                tokio::spawn(async move { release.notified().await })
            };
            let tasks: Vec<_> = (0..count).map(wait).collect();
            // Tasks run in the order in which they were spawned.
            tokio::spawn(async {}).await.expect("it only returns");
            tasks
        })
    })
}

/// The memory of the process per task, for `count` tasks: 10,000 of them have a permit and wait, and the others wait
/// for a permit.
pub(super) fn units(count: u64) -> f64 {
    start(1).block_on(async {
        let (release, permits) = (Arc::new(Notify::new()), Arc::new(Semaphore::new(WAITING)));
        let wait = |_| {
            let (release, permits) = (Arc::clone(&release), Arc::clone(&permits));
            tokio::spawn(async move {
                let _permit = permits.acquire().await.expect("it stays open");
                release.notified().await;
            })
        };
        let tasks: Vec<_> = (0..count).map(wait).collect();
        tokio::spawn(async {}).await.expect("it only returns");
        let figure = memory() / count as f64;
        std::mem::forget(tasks);
        figure
    })
}

pub(super) fn serve(listener: net::TcpListener, workers: usize) {
    start(workers).block_on(async move {
        listener.set_nonblocking(true).expect("a listener");
        let listener = TcpListener::from_std(listener).expect("a listener");
        while let Ok((mut stream, _)) = listener.accept().await {
            stream.set_nodelay(true).expect("a connection");
            tokio::spawn(async move {
                let mut buf = [0; 4096];
                while let Ok(bytes @ 1..) = stream.read(&mut buf).await {
                    if stream.write_all(&buf[..bytes]).await.is_err() {
                        break;
                    }
                }
            });
        }
    });
}

/// Serves a page to each client, `late` after its request.
pub(super) fn serve_pages(listener: net::TcpListener, late: Duration) {
    const PAGE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";
    start(1).block_on(async move {
        listener.set_nonblocking(true).expect("a listener");
        let listener = TcpListener::from_std(listener).expect("a listener");
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut buf = [0; 4096];
                // Requests are so short that a single read returns all of one.
                if matches!(stream.read(&mut buf).await, Ok(1..)) {
                    tokio::time::sleep(late).await;
                    let _ = stream.write_all(PAGE).await;
                }
            });
        }
    });
}
