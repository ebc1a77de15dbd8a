//! The processor: its clock, and the features that matter for memory ordering.

use super::Finding;

/// The entry of the first processor in /proc/cpuinfo.
struct Processor {
    text: String,
}

impl Processor {
    fn read() -> Self {
        Processor { text: std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default() }
    }

    fn value(&self, key: &str) -> Option<&str> {
        self.text.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            (name.trim() == key).then(|| value.trim())
        })
    }

    fn has(&self, flag: &str) -> bool {
        self.value("flags").is_some_and(|flags| flags.split(' ').any(|has| has == flag))
    }
}

pub(super) fn findings() -> Vec<Finding> {
    let processor = Processor::read();
    let model = processor.value("model name").unwrap_or(std::env::consts::ARCH);
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let mut findings = vec![Finding::new("processor", format!("{model}; this process may use {cores} of its cores"))];
    if cfg!(target_arch = "x86_64") {
        findings.extend([time_stamp_counter(&processor), base_instructions(&processor), erratum()]);
    }
    findings
}

fn time_stamp_counter(processor: &Processor) -> Finding {
    let steady = processor.has("constant_tsc") && processor.has("nonstop_tsc");
    let clock = super::line("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let clock = clock.unwrap_or_else(|| "unknown".to_owned());
    let rate = if steady { "one rate, never stops" } else { "changes its rate or stops" };
    let finding = Finding::new("time stamp counter", format!("{rate}; the kernel's clock is {clock}"));
    if steady { finding } else { finding.with_note("times taken from it are unreliable") }
}

fn base_instructions(processor: &Processor) -> Finding {
    let found = if processor.has("fsgsbase") { "user programs may use them" } else { "not offered" };
    Finding::new("FSGSBASE instructions", found)
}

fn erratum() -> Finding {
    let finding = |found: &str| Finding::new("Opteron erratum 147", found);
    if super::has_erratum_147() {
        finding("this processor has it")
            .with_note("a lock's acquisition needs a load fence after its locked instruction")
    } else {
        finding("not this processor")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_is_matched_whole() {
        let processor = Processor { text: "processor : 0\nflags\t\t: tsc constant_tsc\n\nflags : rseq".to_owned() };
        assert!(processor.has("tsc") && processor.has("constant_tsc"));
        assert!(
            !processor.has("constant") && !processor.has("rseq"),
            "a flag was not matched whole, or not in the first processor's entry"
        );
    }
}
