//! `cargo run --release -p millstream-benches -- [WORKLOAD] [OPTIONS]`.

use std::process::ExitCode;

fn main() -> ExitCode {
    millstream_benches::main()
}
