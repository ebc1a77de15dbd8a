//! `machine`: the limits on the machine's load and free memory beyond which no program starts.

use super::super::model::MachineSpec;
use super::super::reader::Entry;

pub(super) fn machine(entry: &Entry<'_>) -> Option<MachineSpec> {
    let mut section = entry.section("`machine`", "a table such as `{ load = 8, memory_free = \"2GiB\" }`")?;
    let load = section.get("load").map(|entry| match entry.as_integer() {
        Some(_) => entry.count(),
        None => entry.parsed("a number of threads, or a share of the cores such as \"100%\"", load_limit),
    });
    let memory_free = section.get("memory_free").map(|entry| entry.bytes_cap());
    section.finish();
    Some(MachineSpec { load: load.flatten(), memory_free: memory_free.flatten() })
}

/// Reads a limit on runnable threads: `8`, or `150%` of the cores.
///
/// # Errors
/// The text is neither.
pub fn load_limit(text: &str) -> Result<u64, String> {
    let expected = || format!("expected a number of threads, or a share of the cores such as 100%, not `{text}`");
    let load = match text.strip_suffix('%') {
        Some(percent) => {
            let cores = std::thread::available_parallelism().map_or(1, usize::from) as u64;
            percent.parse::<u64>().map_err(|_| expected())?.saturating_mul(cores).div_ceil(100)
        }
        None => text.parse().map_err(|_| expected())?,
    };
    if load == 0 { Err("at a load of zero nothing would start".to_owned()) } else { Ok(load) }
}
