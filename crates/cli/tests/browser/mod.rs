//! A browser that opens pages of the command.

use std::path::Path;
use std::process::{Command, Stdio};

/// The name of the first browser that can be started.
pub(crate) fn browser() -> Option<&'static str> {
    let starts = |name: &&str| {
        let version = Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        version.is_ok_and(|status| status.success())
    };
    let found = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(starts);
    if found.is_none() {
        println!("no Chromium here: the page was not opened");
    }
    found
}

/// The document of a page in the browser, after the page's script has run.
pub(crate) fn opened(browser: &str, profile: &Path, page: &Path, fragment: &str) -> String {
    opened_at(browser, profile, &format!("file://{}{fragment}", page.display()))
}

/// The document of the page at `url` in the browser, after the page's script has run.
pub(crate) fn opened_at(browser: &str, profile: &Path, url: &str) -> String {
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--window-size=1200,700",
            "--virtual-time-budget=2000",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(url)
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}
