//! The barrier daemon, if one runs.

use std::sync::atomic::Ordering;

use super::Finding;
use crate::barrierd::Client;
use crate::barrierd::layout::SOURCE_BPF;

pub(super) fn finding() -> Finding {
    match Client::connect() {
        Ok(client) => Finding::new("barrierd", about(&client)),
        Err(refused) => Finding::new("barrierd", refused.to_string())
            .with_note("`millstream barrierd` starts one; cheap fences then interrupt no core"),
    }
}

fn about(client: &Client) -> String {
    let (view, page) = (client.view(), client.view().page());
    let source = if page.source == SOURCE_BPF { "its program in the kernel" } else { "fallbacks alone" };
    let passed = (0..view.cpus()).filter(|cpu| view.times_cpu(*cpu).virtual_time.load(Ordering::Relaxed) > 0).count();
    format!("process {}, with {source}; {passed} of {} processors have written their times", page.daemon, view.cpus())
}
