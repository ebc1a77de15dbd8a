//! A test with a processor that goes offline and comes back. Taking it offline disturbs the whole machine, so the test runs only
//! on request.

use std::fs;
use std::time::Duration;

use crate::support::{Daemon, With, pass};

/// If this environment variable is set, the test may take a processor offline for a moment.
const ALLOWED: &str = "MILLSTREAM_HOTPLUG";
const SWITCH: &str = "/sys/devices/system/cpu/cpu1/online";

/// Brings the processor back online when dropped, even if the test fails.
struct Online;

impl Drop for Online {
    fn drop(&mut self) {
        fs::write(SWITCH, "1").unwrap();
    }
}

#[test]
fn fences_skip_offline_processors_and_wait_for_returning_ones() {
    if std::env::var_os(ALLOWED).is_none() {
        return println!("skipped: {ALLOWED} is not set, so no processor is taken offline");
    }
    for with in [With::Bpf, With::FallBacks, With::StatAlone] {
        let Some(daemon) = Daemon::start(with) else { continue };
        let client = daemon.client();
        let online = Online;
        fs::write(SWITCH, "0").unwrap();
        let mut times: Vec<Duration> = (0..20).map(|_| pass(&client)).collect();
        times.sort_unstable();
        println!("{with:?}, offline: median {:?}, worst {:?}", times[10], times[19]);
        assert!(times[10] < Duration::from_millis(100), "{with:?}: {times:?}");
        drop(online);
        let mut times: Vec<Duration> = (0..20).map(|_| pass(&client)).collect();
        times.sort_unstable();
        println!("{with:?}, back: median {:?}, worst {:?}", times[10], times[19]);
        if with == With::Bpf {
            let since = client.now();
            pass(&client);
            std::thread::sleep(Duration::from_millis(50));
            let writes = client.view().times_cpu(1).virtual_time.load(std::sync::atomic::Ordering::Relaxed);
            assert!(writes > since.0, "the program runs there again");
        }
    }
}
