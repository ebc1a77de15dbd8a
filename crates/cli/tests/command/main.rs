//! The command as its users meet it: each test runs `millstream` in a folder of its own.

mod support;

mod adversity;
mod doctor;
mod evidence;
mod evidence_docs;
mod evidence_functions;
mod flows;
mod ops;
mod run;
mod signals;
mod steer;
mod terminal;
