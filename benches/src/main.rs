//! `cargo xtask bench [WORKLOAD] [OPTIONS]`.

use std::process::ExitCode;

fn main() -> ExitCode {
    millstream_benches::main()
}
