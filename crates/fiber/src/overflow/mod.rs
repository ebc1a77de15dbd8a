//! Overflows of fibers' stacks: the report that names the fiber, before the process ends.
//!
//! The first runtime installs a handler for `SIGSEGV`, which runs on a stack of its own. A fault in the guard of the
//! fiber that runs on the faulting thread is an overflow: the handler writes the fiber's name and the stack's size to
//! standard error and aborts, so that a core dump shows the stack. Going on is impossible: the fiber stands in the
//! middle of any function, and its destructors cannot run.
//!
//! Every other fault goes to the handler that was installed before, such as the standard library's, which names threads
//! whose stack overflows. A handler that is installed later comes first, and passes on what it does not know.
//!
//! The handler reads plain memory and makes system calls; it takes no lock and allocates nothing.

mod handler;
mod signal_stack;
mod text;

pub(crate) use handler::install;
pub(crate) use signal_stack::SignalStack;
