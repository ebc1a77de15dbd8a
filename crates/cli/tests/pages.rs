//! Every complete flow file on the pages of the documentation can run.

use std::path::Path;
use std::process::Command;

/// The blocks of TOML on a page, except those that are marked as fragments.
fn flows(page: &str) -> Vec<String> {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(page)).unwrap();
    let blocks = text.split("\n```toml\n").skip(1);
    blocks.map(|rest| rest.split_once("\n```").expect("a block ends").0.to_owned()).collect()
}

#[test]
fn every_flow_file_on_the_pages_can_run() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("flow.toml");
    for (page, count) in [("README.md", 1), ("docs/guide.md", 12)] {
        let flows = flows(page);
        assert_eq!(flows.len(), count, "{page}");
        for flow in flows {
            std::fs::write(&file, &flow).unwrap();
            let output = Command::new(env!("CARGO_BIN_EXE_millstream")).arg("plan").arg(&file).output().unwrap();
            assert!(output.status.success(), "{page}: {}\n{flow}", String::from_utf8_lossy(&output.stderr));
        }
    }
}
