//! Tests that run the daemon as a separate process, and end it in every possible way.

mod cheap;
mod ends;
mod hostile;
mod hotplug;
mod passes;
mod start;
mod support;
