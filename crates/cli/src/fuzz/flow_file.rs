//! The text of a flow file: it is read, checked and planned, and its templates and quantities are formatted again.

use std::path::Path;
use std::sync::Arc;

use millstream_command::{size, time};
use millstream_runner::file::parse::parse;
use millstream_runner::file::template::Template;
use millstream_runner::wire;

use super::assert_printable;
use crate::plan;

/// Reads the bytes as a flow file and plans the flow; returns whether they are a flow file.
///
/// # Panics
/// An error without text, text that controls the terminal, or a template or size that changes when it is formatted and
/// read again.
pub fn flow_file(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    // The texts between quotes include all that the parser reads as templates, sizes and times.
    for piece in text.split(['"', '\'']) {
        comes_back(piece);
    }
    let planned = parse(Path::new("fuzz.toml"), &text, &[("out".to_owned(), "x".to_owned())]).and_then(|mut flow| {
        if let Some(warnings) = flow.render_warnings() {
            assert_printable(&warnings);
        }
        // A flow whose source takes no INPUT rightly refuses this one.
        let _ = flow.bind_inputs(&["in".into()]).map_err(|error| error.render());
        let wired = wire::wire(&flow, |_| {}, None, Arc::default())?;
        Ok(plan::describe(&flow, wired.flow.plan()))
    });
    match planned {
        Ok(page) => {
            assert_printable(&page);
            true
        }
        Err(error) => {
            let shown = error.render();
            assert!(!shown.is_empty() && !error.to_string().is_empty(), "an error says what is wrong");
            assert_printable(&shown);
            false
        }
    }
}

/// Reads a text as each kind of value that a flow file can contain, and formats the value again.
fn comes_back(text: &str) {
    if let Ok(template) = Template::parse(text) {
        let shown = template.to_string();
        let again = Template::parse(&shown).expect("a template is shown as one");
        assert_eq!(again.to_string(), shown, "{text:?}");
        assert!(again.fields().map(|(field, _)| field).eq(template.fields().map(|(field, _)| field)), "{text:?}");
    }
    if let Ok(bytes) = size::parse(text) {
        let shown = size::show(bytes);
        assert_eq!(size::parse(&shown), Ok(bytes), "{text:?} is shown as {shown}");
    }
    if let Ok(span) = time::parse(text) {
        let shown = time::show(span);
        assert_eq!(time::parse(&shown), Ok(span), "{text:?} is shown as {shown}");
    }
    let _ = (time::parse_range(text), time::parse_rate(text));
}
