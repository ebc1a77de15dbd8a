//! The oldest toolchain that the manifest promises: everything published builds with it.

use std::path::Path;

use super::Part;
use crate::msrv;
use crate::tools::Tool;

pub(super) fn part(root: &Path) -> Result<Part, String> {
    Ok(Part {
        name: "oldest".to_owned(),
        group: "oldest",
        about: "everything published builds with the oldest promised toolchain",
        tools: vec![Tool::oldest_rust(root)?],
        work: Box::new(|bench| bench.run(&mut msrv::build(bench.root)?)),
    })
}
