//! Tests of the daemon from outside: it runs as a separate process, and is ended in every way.

mod cheap;
mod ends;
mod hostile;
mod hotplug;
mod passes;
mod start;
mod support;
