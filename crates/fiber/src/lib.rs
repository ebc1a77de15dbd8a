//! Fibers are user-space threads. Each has a stack, and costs about a microsecond and a page or two of memory.
//!
//! A fiber runs plain blocking code. When it waits, it is suspended and its thread runs another fiber, without
//! callbacks or futures. A switch takes a few instructions, makes no system call, and costs the same at any stack
//! depth.
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
//! | to wait for one of several descriptors | [`poll()`] |
//! | to call code that blocks the thread | [`blocking()`] |
//! | to keep a value for each fiber | [`fiber_local!`] |
//! | to see what all fibers do | [`Runtime::dump`], [`Runtime::dump_with_backtraces`], [`Options::on_report`] |
//!
//! # One body, three threading models
//! [`Threads`] selects the threads that run the fibers: one for each fiber (1:1), one for all (1:N), or a number of
//! workers (M:N). The body of a fiber is the same under all three. It also runs on a plain thread, where every wait of
//! this crate blocks the thread.
//!
//! # Where a fiber runs
//! Any worker may take an unstarted fiber. Once started, a fiber stays on its worker's thread until it ends. This makes
//! [`spawn()`] safe: a body and its result must be `Send`, as for a thread, and values on the fiber's stack never move
//! to another thread. Values that are not `Send` may therefore live across waits, and the address of a thread local
//! stays valid.
//!
//! The disadvantage is that load is balanced less well: other workers cannot take over fibers that a worker has started. If a
//! fiber keeps its worker busy for [longer than 10 ms](Options::stall), this is reported, and other workers take the worker's
//! unstarted fibers. If a fiber spawns another fiber and continues to compute, an idle worker starts the new fiber after about 2
//! ms.
//!
//! A worker resumes its ready fibers one after the other; each resumption is a *turn*. Ready fibers come before unstarted ones,
//! so that few stacks are in use: a worker starts a new fiber when none is ready, and at least once in 16 turns.
//!
//! # Thread locals
//! All fibers of a worker share its thread locals. That is sound, but other fibers of the worker may change a value
//! during a wait. Use [`fiber_local!`] for a value that belongs to one fiber. The modes of floating-point arithmetic, such as
//! the direction of rounding, belong to the thread as well: code that changes a mode must restore it before it waits.
//!
//! Some code expects that calls on a thread end in the reverse order in which they began. Such code must not wait. There are two
//! kinds: code that stores a pointer to its stack in a thread local for the duration of a call (the crate `scoped-tls`), and code
//! that holds a lock whose owner is a thread. A reentrant lock, for example, admits every fiber of the holder's thread.
//!
//! # Cancellation
//! [`JoinHandle::cancel`] asks a fiber to end. The fiber unwinds at its next wait, or in its current one: destructors
//! run, and the joiner gets [`JoinError::Cancelled`]. A fiber that has not started never starts. Code that catches the
//! unwinding and continues is unwound again at the next wait. A fiber that returns without another wait returns its
//! value. Code that must not be unwound, such as a callback of a C library, must not wait: the process would abort.
//!
//! Cancellation does not interrupt the wait at the end of a scope or for a blocking call, because other code still uses data
//! borrowed from the fiber. It also does not interrupt a wait in a destructor that runs because the fiber ends or unwinds,
//! because a second panic would abort the process. While such a destructor waits during unwinding, [`std::thread::panicking`] is
//! `true` for all fibers of its worker. As long as it is `true`, a cancelled fiber of that worker does not unwind; it checks
//! again every millisecond. A destructor that runs during unwinding should therefore not wait for the end of a cancelled fiber of
//! its worker.
//!
//! A program compiled with `panic = "abort"` never unwinds. There, a cancelled fiber must poll [`is_cancelled`] and return.
//! Dropping a [`Runtime`] waits until all fibers have done so, which may be never.
//!
//! # Panics
//! A panic ends its fiber and reaches the joiner as [`JoinError::Panicked`]. It never crosses a stack switch or affects
//! another fiber. A detached fiber's panic is reported by the panic hook alone, like a detached thread's. A panic hook
//! must not wait: the process would abort if another fiber of the worker panicked meanwhile.
//!
//! # Stacks
//! Each stack is in reserved address space, above a guard, and its memory is committed as it is touched. On Linux 6.13 and
//! later, guards take no mappings, so a million stacks fit under the kernel's default limits. On older kernels, guards are made
//! by `mprotect`. A process then has room for about 28,000 stacks. Further fibers do not start, and their error names the
//! limit. An overflow aborts the process. A report names the fiber, the stack's size, and the option that raises the size.
//! [`Runtime::stacks`] reports the greatest depth so far.
//!
//! Signal handlers installed without `SA_ONSTACK` run on the fiber's stack, which must have room for them.
//!
//! # Progress and cost
//! Yields, parks, joins and wake-ups take no lock and allocate only when a queue grows. Spawning allocates once, and locks a
//! mutex briefly if the worker already has an unstarted fiber or the spawner is a thread. Sending or receiving a value also
//! locks a mutex briefly. A wake-up makes a system call only if the woken fiber's worker sleeps. Each fiber takes about 500
//! bytes and at least one page of stack. `examples/measure.rs` measures all of this on your machine.
//!
//! # How it is proven
//! Loom models in `src/model.rs` check the waits of fibers and the sleeps of workers, including sleeps in the poller. The
//! models in `src/scheduler/model.rs` check joins, reused control blocks, and the end of a runtime. Another test explores every
//! order in which the senders and receivers of a small channel can make their calls. Every test of descriptors runs under all
//! models of waiting. So do tests that inject faults into system calls: calls are interrupted, delayed, cut short, or fail.
//! Tests race cancellations against arriving data and check that no byte and no descriptor is lost. Stress tests run random
//! fibers whose frames contain canaries, while the kernel preempts threads at any instruction. Others race cancellations
//! against wake-ups, or park 100,000 fibers. Tests of overflows cause real faults in child processes, with both kinds of guards
//! and with foreign signal handlers. One test switches fibers on a thread that may make no system call.
//!
//! # Source of the idea
//! The idea comes from Joe Damato's articles on threads in Ruby 1.8. The articles show how to make green threads several times
//! faster: by switching stacks instead of copying them, by using guard pages, and by avoiding `sigprocmask`. In this crate,
//! `corosensei` provides the switch.

mod backtrace;
mod blocking;
mod contained;
mod dump;
mod error;
pub mod fs;
mod handle;
mod interrupt;
mod io;
mod join;
mod locals;
#[cfg(all(test, loom))]
mod model;
pub mod net;
mod options;
mod outcome;
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
    backtrace::{Backtrace, Frame, NoBacktrace},
    blocking::blocking,
    dump::{Dump, FiberReport, State},
    error::{JoinError, SpawnError, StackError, StartError},
    handle::{Fiber, current, is_cancelled, stack_used_bytes},
    io::{IoModel, PollFd, PollFlags, poll},
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
