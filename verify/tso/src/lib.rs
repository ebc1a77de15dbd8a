//! All executions of small programs on the x86-TSO machine.
//!
//! Some code relies on facts that no language's memory model expresses. For example, a read-modify-write without a lock
//! prefix is not atomic for other cores, but an interrupt cannot cut it in two. Loom cannot check such code. This crate
//! therefore models the machine itself, and enumerates every state that a program can reach. The model has memory, a
//! FIFO store buffer for each thread, instructions of one or two steps, interrupts that drain the buffer, and the
//! kernel's futex.
//!
//! | module | contents |
//! | --- | --- |
//! | [`machine`] | instructions, a thread's state, and the possible results of each step |
//! | [`explore`] | the search for executions that end with a thread asleep |
//! | [`eventcount`] | the event counts of `millstream-sync` as programs, from which each part can be removed |
//! | [`flag_flip`] | readers and reclaimers (hazard pointers and epochs) as programs, from which each part can be removed |
//!
//! The machine is that of Sewell, Sarkar, Owens, Zappa Nardelli and Myreen, "x86-TSO: a rigorous and usable
//! programmer's model for x86 multiprocessors" (2010). That machine has no interrupts. In this model, an interrupt
//! arrives between instructions and drains the buffer, as Intel's and AMD's manuals say of `IRET`. Spontaneous
//! interrupts need not drain the buffer: see [`machine::Stamp`].

pub mod eventcount;
pub mod explore;
pub mod flag_flip;
pub mod machine;
