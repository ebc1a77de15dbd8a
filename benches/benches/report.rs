//! `cargo bench -p millstream-benches -- [WORKLOAD] [OPTIONS]`: the same program as `cargo run`.

use std::process::ExitCode;

fn main() -> ExitCode {
    millstream_benches::main()
}
