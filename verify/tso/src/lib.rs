//! All executions of small programs on the x86-TSO machine.
//!
//! Some code relies on more than a language's memory model can express: a read-modify-write without a lock prefix is
//! not atomic for other cores, but an interrupt cannot cut it in two. Loom cannot check such code. This crate therefore
//! models the machine itself (memory, a FIFO store buffer for each thread, instructions of one or two steps, interrupts
//! that drain, the kernel's futex) and enumerates every state that a program can reach.
//!
//! | module | contents |
//! | --- | --- |
//! | [`machine`] | instructions, a thread's state, and the possible results of each step |
//! | [`explore`] | the search for executions that end with a thread asleep |
//! | [`eventcount`] | the event counts of `millstream-sync` as programs, with each removable part |
//! | [`flag_flip`] | readers and reclaimers: hazard pointers and epochs, with each removable part |
//!
//! The machine is that of Sewell, Sarkar, Owens, Zappa Nardelli and Myreen, "x86-TSO: a rigorous and usable
//! programmer's model for x86 multiprocessors" (2010). Theirs has no interrupts; here an interrupt arrives between
//! instructions and drains the buffer, as Intel's and AMD's manuals say of `IRET`. Spontaneous interrupts need not
//! even drain: see [`machine::Stamp`].

pub mod eventcount;
pub mod explore;
pub mod flag_flip;
pub mod machine;
