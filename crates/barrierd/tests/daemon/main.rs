//! The daemon as its clients see it: a process of its own, ended in every way.

mod cheap;
mod ends;
mod hostile;
mod hotplug;
mod passes;
mod start;
mod support;
