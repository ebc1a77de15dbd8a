//! The interactive page: a frame of markup, the operations as data, and a script that draws them.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};

use super::scene::{Bar, Mark, Scene};
use super::{Timeline, escape, words};

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
    // The markup's parser reacts only to "<" here.
    let data = data(&scene).to_string().replace('<', "\\u003c");
    let _ = write!(
        page,
        "<script id=\"data\" type=\"application/json\">{data}</script>\n<script>\n{}</script>\n</body>\n</html>\n",
        include_str!("page.js")
    );
    page
}

/// The counter-example as text, which needs no script and can be read aloud.
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

/// Times are relative to the first call, so that the script's numbers represent them exactly.
fn data(scene: &Scene) -> Json {
    let base = scene.bars.iter().map(|bar| bar.call).min().unwrap_or(0);
    let since = |time: u64| time - base;
    let bars: Vec<Json> = scene
        .bars
        .iter()
        .map(|bar| {
            json!([
                bar.row,
                bar.process,
                bar.label,
                since(bar.call),
                bar.returned.map(since),
                bar.settled.map(since),
                bar.mark.name(),
                bar.point.map(|(place, _)| place),
                bar.point.map(|(_, at)| at.saturating_sub(base)),
            ])
        })
        .collect();
    json!({ "base": base.to_string(), "until": scene.until.map(|until| until.saturating_sub(base)), "bars": bars })
}
