//! A loop: the flow reads each site page by page, until it reaches the site's last page. A flow is an explicit state
//! machine, so a site that waits for its next page occupies an entry in a queue, but not a thread.
//!
//! - `visit` takes one of the two slots at the site's host, and holds it until the unit leaves `page`, however many
//!   pages that takes. If a host is busy, its sites do not delay others: later sites overtake them.
//! - `page` needs one of eight connections for each page. A page that fails is retried with back-off.
//! - The exit of `page` is a pair: `Left` returns to `page`, and `Right` continues to `summary`.
//!
//! The slot is taken *before* the loop. Suppose that the slot were a need of `page`, held until `summary`: a unit
//! that returns to `page` would ask for a second slot while it holds the first. `build` would refuse that flow and
//! name the reason.
//!
//! `cargo run --example pages`

use std::thread::sleep;
use std::time::Duration;

use millstream_flow::{BuildError, Either, Failure, Flow, Need, Retry};

/// A site, with the pages read from it so far.
#[derive(Clone)]
struct Site {
    host: String,
    name: u32,
    page: u32,
    words: usize,
}

fn main() -> Result<(), BuildError> {
    let mut flow = Flow::builder("pages");
    let host = flow.keyed_tokens("host", 2);
    let connections = flow.tokens("connections", 8);

    let visit = flow.inlet("visit");
    let page = flow.inlet("page");
    let summary = flow.inlet("summary");
    let done = flow.retire();

    flow.update(visit, |_: &mut Site, _| Ok(()))
        .need(Need::keyed(host, |site: &Site| site.host.clone()).until(summary))
        .to(page);

    flow.stage(page, |site: &mut Site, cx| {
        let (text, is_last) = get(site, cx.attempt())?;
        let mut site = site.clone();
        site.words += text.split_whitespace().count();
        site.page += 1;
        Ok(if is_last { Either::Right(site) } else { Either::Left(site) })
    })
    .need(Need::tokens(connections, 1))
    .retry(Retry::times(3).backoff(Duration::from_millis(1)..Duration::from_millis(20)))
    .timeout(Duration::from_secs(5))
    .blocking() // it waits for the network
    .to((page, summary));

    flow.stage(summary, |site: &mut Site, _| {
        Ok(format!("{}/{}: {} pages, {} words", site.host, site.name, site.page, site.words))
    })
    .to(done);

    flow.on_retire(|line: String| println!("{line}"));

    let flow = flow.build(visit)?;
    for pair in &flow.plan().pairs {
        println!("checked: {pair}");
    }
    // The source lists the sites host by host. If later sites could not overtake earlier ones in the queue, only two
    // sites would run at a time.
    let sites = (0..40).map(|name| Site { host: format!("host-{}", name / 8), name, page: 0, words: 0 });
    let report = flow.run(sites);

    let pages = &report.stages[1];
    println!("{} sites, {} pages, {} retries", report.retired, pages.units, pages.retries);
    println!("at most {} slots of one host at once", report.resources[0].peak_in_use);
    Ok(())
}

/// A stand-in for the network: a site has up to five pages, and some pages fail at first.
fn get(site: &Site, attempt: u32) -> Result<(&'static str, bool), Failure> {
    sleep(Duration::from_millis(1));
    if (site.name + site.page).is_multiple_of(6) && attempt == 1 {
        return Err(Failure::msg("503 Service Unavailable"));
    }
    Ok(("words on this page", site.page == site.name % 5))
}
