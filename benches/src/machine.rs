//! A line about the machine, for the interpretation of printed figures.

use std::fs;

/// Describes processor, usable cores and kernel in one line.
#[must_use]
pub fn describe() -> String {
    format!("Machine: {}, {} cores, {}.", cpu_model(), cores(), kernel())
}

/// The number of cores this process may use.
#[must_use]
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The processor's name, with family and model, because many virtual processors have the same name.
fn cpu_model() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let value = |key| first_value(&text, key);
    match (value("model name"), value("cpu family"), value("model")) {
        (Some(name), Some(family), Some(model)) => format!("{name}, family {family}, model {model}"),
        (Some(name), ..) => name,
        _ => std::env::consts::ARCH.to_owned(),
    }
}

fn kernel() -> String {
    let name = rustix::system::uname();
    format!("{} {}", name.sysname().to_string_lossy(), name.release().to_string_lossy())
}

/// The highest resident set size of this process so far, in KiB; `None` without `/proc`.
///
/// This is `VmHWM`, which belongs to the address space. `ru_maxrss` does not work: it starts at the parent's resident
/// set size at the time of the spawn.
#[must_use]
pub fn peak_rss_kib() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    first_value(&text, "VmHWM")?.strip_suffix(" kB")?.trim().parse().ok()
}

/// The value of the first line `key : value`.
fn first_value(text: &str, key: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim().to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_matched_whole() {
        let text = "VmHWMx: 1 kB\nVmHWM:\t  4096 kB\nVmHWM: 2 kB\n";
        assert_eq!(first_value(text, "VmHWM").as_deref(), Some("4096 kB"));
        assert_eq!(first_value(text, "Vm"), None);
    }

    #[test]
    fn peak_memory_grows_with_the_pages_touched() {
        let Some(before) = peak_rss_kib() else {
            return; // Without /proc, the report leaves the column out.
        };
        let block = std::hint::black_box(vec![1u8; 64 << 20]);
        let after = peak_rss_kib().unwrap();
        assert!(after >= before.max(64 << 10), "{before} KiB, then {after} KiB");
        drop(block);
    }
}
