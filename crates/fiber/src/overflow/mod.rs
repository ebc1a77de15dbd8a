//! Stack overflows: the report that names the fiber before the process aborts.
//!
//! The first runtime installs a handler for `SIGSEGV`, which runs on its own stack. A fault in the guard of the fiber that runs
//! on the faulting thread is an overflow. The handler writes the fiber's name and the stack's size to standard error and
//! aborts, so that a core dump shows the stack. The fiber cannot continue: it was stopped in the middle of an arbitrary
//! function, and its destructors cannot run.
//!
//! Every other fault is passed to the handler that was installed before, usually the standard library's, which names a thread
//! whose stack overflows. A handler that the program installs later runs first. It should pass on the faults that it does not
//! recognise.
//!
//! The handler reads plain memory and makes system calls; it takes no lock and allocates nothing.

mod handler;
mod signal_stack;
mod text;

pub(crate) use handler::install;
pub(crate) use signal_stack::SignalStack;
