//! The interactive page: HTML, the operations as JSON, and a script that draws them.

use std::fmt::Write as _;

use super::scene::{Bar, Mark, Scene};
use super::{Timeline, escape, words};
use crate::quoted::Quoted;

pub(super) fn page(timeline: &Timeline<'_>) -> String {
    let scene = Scene::around(timeline, super::MAX_ON_PAGE);
    let title = escape(timeline.title);
    let (verdict, class) = words::verdict(timeline);
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}: {verdict}</title>\n\
         <style>\n{}</style>\n</head>\n<body>\n<header><h1>{title}<span class=\"verdict {class}\">{verdict}</span></h1>\n",
        include_str!("page.css")
    );
    for sentence in words::findings(timeline) {
        let _ = writeln!(page, "<p>{}</p>", escape(&sentence));
    }
    let _ = writeln!(page, "<p class=\"faint\">Shown: {}.</p></header>", escape(&words::extent(timeline, &scene)));
    page += include_str!("page.html");
    page += &table(timeline, &scene);
    // Inside a script element, "<" is the only character that HTML requires to be escaped.
    let data = data(&scene).replace('<', "\\u003c");
    let _ = write!(
        page,
        "<script id=\"data\" type=\"application/json\">{data}</script>\n<script>\n{}</script>\n</body>\n</html>\n",
        include_str!("page.js")
    );
    page
}

/// The counter-example as a table of text, for browsers without scripts and for screen readers.
fn table(timeline: &Timeline<'_>, scene: &Scene) -> String {
    let broken: Vec<&Bar> = scene.bars.iter().filter(|bar| matches!(bar.mark, Mark::Broken | Mark::Subject)).collect();
    if broken.is_empty() {
        return String::new();
    }
    let mut table = String::from(
        "<h2>The counter-example</h2>\n<div class=\"card scroll\"><table>\n\
         <thead><tr><th>row</th><th>process</th><th class=\"words\">operation</th><th>called</th><th>returned</th></tr></thead>\n<tbody>\n",
    );
    for bar in broken {
        let returned = bar.returned.map_or("–".to_owned(), |returned| returned.to_string());
        let _ = writeln!(
            table,
            "<tr class=\"{}\"><td><a href=\"#row={}\">{}</a></td><td>{}</td><td class=\"words\"><code>{}</code></td><td>{}</td><td>{returned}</td></tr>",
            bar.mark.name(),
            bar.row,
            bar.row,
            bar.process,
            escape(&timeline.history.show(bar.row).to_string()),
            bar.call,
        );
    }
    table + "</tbody>\n</table></div>\n"
}

/// The operations as JSON. Times are relative to the first call, so that they fit into the script's floating-point
/// numbers.
fn data(scene: &Scene) -> String {
    let base = scene.bars.iter().map(|bar| bar.call).min().unwrap_or(0);
    let since = |time: u64| time - base;
    let maybe = |number: Option<u64>| number.map_or_else(|| "null".to_owned(), |number| number.to_string());
    let until = maybe(scene.until.map(|until| until.saturating_sub(base)));
    let mut data = format!("{{\"base\":\"{base}\",\"until\":{until},\"bars\":[");
    for (number, bar) in scene.bars.iter().enumerate() {
        let _ = write!(
            data,
            "{}[{},{},{},{},{},{},\"{}\",{},{}]",
            if number > 0 { "," } else { "" },
            bar.row,
            bar.process,
            Quoted(&bar.label),
            since(bar.call),
            maybe(bar.returned.map(since)),
            maybe(bar.settled.map(since)),
            bar.mark.name(),
            maybe(bar.point.map(|(place, _)| place as u64)),
            maybe(bar.point.map(|(_, at)| at.saturating_sub(base))),
        );
    }
    data + "]}"
}

#[cfg(all(test, feature = "formats"))]
mod tests {
    use crate::timeline::Timeline;
    use crate::verdict::{Verdict, Witness};

    #[test]
    fn the_data_of_the_page_are_json_and_end_no_markup() {
        let line = r#"{"process":1,"op":"</script>\"","in":"<b>\n","out":null,"call":5,"return":9}"#;
        let pending = r#"{"process":2,"op":"read","in":null,"call":6}"#;
        let text = format!("{line}\n{pending}\n");
        let history = crate::format::read(text.as_bytes(), crate::format::Format::Json, None).unwrap();
        let verdict = Verdict::Holds(Witness { order: vec![0, 1] });
        let page = Timeline::new("a page", &history, &verdict).html();
        let (_, rest) = page.split_once("type=\"application/json\">").unwrap();
        let (data, _) = rest.split_once("</script>").unwrap();
        let data: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!(data["base"], "5");
        let bars = data["bars"].as_array().unwrap();
        assert_eq!(
            (bars.len(), &bars[0][3], &bars[0][4], &bars[1][4]),
            (2, &0.into(), &4.into(), &serde_json::Value::Null)
        );
        assert!(bars[0][2].as_str().unwrap().contains("</script>"));
    }
}
