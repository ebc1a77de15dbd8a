//! Channels that deliver values at certain times. A thread sends them.

use std::thread;
use std::time::{Duration, Instant};

use crate::{bounded, Receiver, TrySendError};

pub fn after(time: Duration) -> Receiver<Instant> {
    let (sender, receiver) = bounded(1);
    if time.is_zero() {
        let _ = sender.send(Instant::now());
        std::mem::forget(sender);
        return receiver;
    }
    thread::spawn(move || {
        thread::sleep(time);
        let _ = sender.send(Instant::now());
        // The leaked sender keeps the channel connected.
        std::mem::forget(sender);
    });
    receiver
}

pub fn tick(period: Duration) -> Receiver<Instant> {
    let (sender, receiver) = bounded(1);
    if period.is_zero() {
        let _ = sender.send(Instant::now());
    }
    thread::spawn(move || loop {
        thread::sleep(period);
        if sender.try_send(Instant::now()).is_err_and(|error| matches!(error, TrySendError::Disconnected(_))) {
            break;
        }
    });
    receiver
}

pub fn never<T>() -> Receiver<T> {
    let (sender, receiver) = bounded(1);
    std::mem::forget(sender);
    receiver
}
