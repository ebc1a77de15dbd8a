//! Pictures of histories: a lane per process, a bar per operation from its call to its return.
//!
//! | I want | use |
//! | --- | --- |
//! | to explore: zoom, hover, see which operations overlapped | [`Timeline::html`]: one self-contained file, light and dark |
//! | a picture for a page or a report | [`Timeline::svg`]: the counter-example and its surroundings |
//!
//! If the history fails, the page opens at the failure. The operations of the counter-example have a red edge, and the
//! operation that the reason is about is filled with red. A dashed line shows where the longest legal prefix ends; the
//! operation whose return comes next has a dashed edge. If the history is legal, a dot in each bar shows the
//! linearization point, a moment at which the operation may have taken effect. The dots from left to right are the
//! witness.
//!
//! By default the axis shows the order of calls and returns, and each bar is as wide as its label needs. The reader
//! needs to see which bars overlap. True times, which differ by factors of a thousand, would hide that. The page can
//! show true time, too.
//!
//! ```
//! use millstream_history::{Builder, Op, Operation, Options, Value, Verdict, check, timeline::Timeline};
//!
//! let mut builder = Builder::new();
//! builder.push(Operation { ret: Some(10), ..Operation::new(0, Op::ENQUEUE, Value::int(7)) })?;
//! builder.push(Operation { call: 20, ret: Some(30), ..Operation::new(1, Op::DEQUEUE, Value::NULL) })?;
//! let history = builder.finish()?;
//! let verdict = check(&history, &"queue".parse()?, &Options::default())?;
//! let Verdict::Fails(example) = &verdict else { panic!("the queue held 7 all the while") };
//! let timeline = Timeline::new("my queue", &history, &verdict);
//! assert!(timeline.svg().contains("enqueue(7)"));
//! assert_eq!(example.operations, [0, 1]);
//! assert!(timeline.html().contains("dequeue"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod html;
mod layout;
mod scene;
mod svg;
mod words;

use crate::history::History;
use crate::verdict::Verdict;

/// The maximum number of operations on a page.
const MAX_ON_PAGE: usize = 20_000;

/// The maximum number of operations in a static picture.
const MAX_IN_PICTURE: usize = 40;

/// A history and its verdict, ready to be drawn.
#[derive(Debug, Clone, Copy)]
pub struct Timeline<'a> {
    title: &'a str,
    history: &'a History,
    verdict: &'a Verdict,
}

impl<'a> Timeline<'a> {
    /// The picture of `history`; the verdict must belong to it.
    pub fn new(title: &'a str, history: &'a History, verdict: &'a Verdict) -> Self {
        Timeline { title, history, verdict }
    }

    /// An interactive page in one file of 20 kB plus about 150 bytes per operation. If there are more than 20,000
    /// operations, only those around the failure are shown.
    pub fn html(&self) -> String {
        html::page(self)
    }

    /// A static picture that follows the reader's light or dark setting. If there are more than 40 operations, only
    /// those around the failure are shown, or only the counter-example.
    pub fn svg(&self) -> String {
        svg::picture(self)
    }
}

/// Escapes text for markup.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // XML does not permit these characters, even escaped.
            c if c.is_control() && c != '\n' && c != '\t' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}
