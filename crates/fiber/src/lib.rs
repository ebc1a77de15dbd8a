//! Fibers: threads of a program's own, each with a stack, that cost a microsecond and a page or two of memory.
//!
//! A fiber runs plain blocking code. Where it waits, it is suspended, and its thread runs another fiber: no callback,
//! no future, no thread that sleeps. A switch is a few instructions, makes no system call, and costs the same however
//! deep the stack is.
//!
//! ```
//! use millstream_fiber::sync::channel;
//! use millstream_fiber::{Options, Runtime, Threads};
//!
//! let runtime = Runtime::start(Options::new(Threads::Workers(2)))?;
//! let (sender, receiver) = channel(16);
//! let adder = runtime.spawn(move || receiver.iter().sum::<u64>());
//! runtime.scope(|scope| {
//!     for n in 1..=100 {
//!         let sender = &sender;
//!         scope.spawn(move || sender.send(n).unwrap());
//!     }
//! });
//! drop(sender);
//! assert_eq!(adder.join().unwrap(), 5050);
//! # Ok::<(), millstream_fiber::StartError>(())
//! ```
//!
//! | I want | look at |
//! | --- | --- |
//! | to choose threads, stacks, limits | [`Options`], [`Threads`] |
//! | to start fibers and get their results | [`Runtime`], [`spawn()`], [`scope()`], [`Builder`], [`JoinHandle`] |
//! | to wait | [`yield_now`], [`park`], [`sleep`], [`JoinHandle::join`] |
//! | to share values | [`sync`]: mutex, event, channel |
//! | sockets, files and processes | [`net`], [`fs`], [`process`], and [`IoModel`] for how fibers wait for them |
//! | to call code that blocks the thread | [`blocking()`] |
//! | a value for each fiber | [`fiber_local!`] |
//! | to see what all fibers do | [`Runtime::dump`], [`Options::on_report`] |
//!
//! # One body, three threading models
//! [`Threads`] says which threads run the fibers: one each (1:1), one for all (1:N), or a number of workers (M:N). The
//! body of a fiber is the same under all three, and on a plain thread: there, every wait of this crate blocks the
//! thread.
//!
//! # Where a fiber runs
//! An unstarted fiber is taken by any worker. Once it has started it stays on its worker's thread until it ends. This
//! is why [`spawn()`] is safe: it asks that a body and its result be `Send`, as a thread does, and nothing of what the
//! body makes on its stack ever changes its thread. So values that are not `Send` may live across waits, and an address
//! of a thread local does not become that of another thread.
//!
//! The price is balance: a worker that is left with long fibers is not relieved of those that it has started. One that
//! keeps its worker for [longer than 10 ms](Options::stall) is reported, and the unstarted fibers behind it go to other
//! workers. If a fiber spawns another one and goes on computing, an idle worker fetches the other after about 2 ms.
//!
//! A worker runs its ready fibers in turn, and an unstarted one when none is ready, at the latest every 16 turns:
//! fibers that have a stack come first, so that there are few.
//!
//! # Thread locals
//! All fibers of a worker share its thread locals. That is sound, as it is for functions that call each other; but a
//! value may be another after a wait, as neighbours run meanwhile. A fiber's own value is a [`fiber_local!`].
//!
//! Two kinds of code expect that calls on a thread end in the reverse order of their beginning, and must not wait
//! inside: code that stores a pointer to its stack in a thread local for the duration of a call (the crate
//! `scoped-tls`), and locks that know their owner by its thread. A reentrant lock lets every fiber of the holder's
//! thread in.
//!
//! # Cancellation
//! [`JoinHandle::cancel`] asks a fiber to end. It unwinds at its next wait, or in the one it is in: destructors run,
//! and the joiner gets [`JoinError::Cancelled`]. A fiber that has not started never does. Code that catches the
//! unwinding and goes on is unwound again at the next wait. A fiber that returns without another wait returns its
//! value. Code that must not be unwound, such as a callback of a C library, must not wait: the process would abort.
//!
//! A scope's end and a blocking call are waits that are not cut short, since others use what the fiber lent them. Nor
//! is a wait in a destructor that runs because the fiber ends or unwinds, where a second panic would abort the process.
//! While one fiber of a worker waits in this way, [`std::thread::panicking`] is `true` for its neighbours as well; one
//! of them that is cancelled and begins a wait unwinds only after that, and looks for it every millisecond. For this
//! reason a destructor should not wait, while its fiber unwinds, for a neighbour's cancellation.
//!
//! In a program that is compiled with `panic = "abort"`, nothing unwinds: a cancelled fiber only finds out by
//! [`is_cancelled`], and dropping a [`Runtime`] waits for fibers that may never end.
//!
//! # Panics
//! A panic ends its fiber and reaches the joiner as [`JoinError::Panicked`]. It passes no switch of stacks, and no
//! other fiber. A detached fiber's panic is reported by the panic hook alone, like a detached thread's. A panic hook
//! must not wait: the process would abort if a neighbour panicked meanwhile.
//!
//! # Stacks
//! Stacks lie in reserved address space, each above a guard, and memory is committed as it is touched. On Linux 6.13
//! and later guards take no mappings, so a million stacks fit under the kernel's default limits; before, `mprotect`
//! limits a process to some 28,000 stacks, and the error says so. An overflow stops the process with the fiber's name,
//! the stack's size and the way to raise it. [`Runtime::stacks`] says how deep stacks have been.
//!
//! Signal handlers that were installed without `SA_ONSTACK` run on the fiber's stack, which must have room for them.
//!
//! # Progress and cost
//! Yields, parks and wake-ups take no lock and, but for the growth of a queue, allocate nothing. Spawning takes two
//! short locks. A wake-up makes a system call only if the other worker sleeps. Memory is one page for each stack at
//! least, and some 500 bytes for the fiber. `examples/measure.rs` takes the figures on your machine.
//!
//! # How it is proven
//! Loom models check waits and workers' sleeps, in the poller as well (`src/model.rs`). Every test of descriptors runs under
//! all models of waiting, and so do faults: calls that are interrupted, late, short or failed. Cancellations race with data,
//! and no byte and no descriptor is lost. Stress tests run random fibers, whose frames carry
//! canaries, while threads lose their processor at any instruction; others race cancellations with wake-ups, and park
//! 100,000 fibers. Overflows, faults and foreign handlers are real ones, in child processes, with both kinds of guards.
//! A thread that may make no system call switches fibers.
//!
//! # Source of the idea
//! Joe Damato's articles on threads in Ruby 1.8, in which stacks that are switched rather than copied, guard pages, and
//! a switch without `sigprocmask` make green threads several times faster. The switch itself is that of the crate
//! `corosensei`.

mod blocking;
mod contained;
mod dump;
mod error;
pub mod fs;
mod handle;
mod io;
mod join;
mod locals;
#[cfg(all(test, loom))]
mod model;
pub mod net;
mod options;
mod overflow;
mod park;
mod primitive;
pub mod process;
mod report;
mod runtime;
mod scheduler;
mod scope;
mod spawn;
mod stack;
pub mod sync;
mod waiter;

pub use {
    blocking::blocking,
    dump::{Dump, FiberReport, State},
    error::{JoinError, SpawnError, StackError, StartError},
    handle::{Fiber, current, is_cancelled},
    io::IoModel,
    join::JoinHandle,
    locals::{AccessError, FiberLocal},
    options::{Options, Threads},
    park::{park, park_timeout, sleep, yield_now},
    report::Report,
    runtime::Runtime,
    scheduler::state::Reason,
    scope::{Scope, ScopedJoinHandle, scope},
    spawn::{Builder, spawn},
    stack::{Guards, StackReport},
};
