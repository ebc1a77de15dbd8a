//! Draws all runs, one per line.

use millstream_command::screen::text;

use super::pen::{Pen, Tone};
use super::table::{Column, Table};
use crate::screen::frame::phase;
use crate::top::view::{Listed, View};

pub(super) fn draw(pen: &mut Pen<'_>, view: &View, list: &[Listed]) {
    let live = list.iter().filter(|listed| !listed.ended).count();
    pen.text(0, 0, Tone::Strong, &format!("millstream top: {} running", text::counted(live as u64, "flow")));
    if list.is_empty() {
        return pen.text(0, 2, Tone::Plain, "no flow is running; flows appear here when they begin");
    }
    let cells = |of: &dyn Fn(&Listed) -> (Tone, String)| list.iter().map(of).collect::<Vec<_>>();
    let number = |of: fn(&millstream_flow::Snapshot) -> u64| {
        move |listed: &Listed| {
            (Tone::Plain, listed.state.as_ref().map_or_else(|_| String::new(), |now| text::count(of(now))))
        }
    };
    let columns = vec![
        Column::names("run", cells(&|listed| (Tone::Strong, listed.run.name.clone()))),
        Column::words(
            "",
            2,
            9,
            cells(&|listed| match &listed.state {
                _ if listed.ended => (Tone::Faint, "ended".to_owned()),
                Ok(now) => (Tone::Plain, phase(now.phase).to_owned()),
                Err(_) => (Tone::Bad, "silent".to_owned()),
            }),
        ),
        Column::numbers(
            "for",
            5,
            cells(&|listed| {
                (Tone::Plain, listed.state.as_ref().map_or_else(|_| String::new(), |now| text::clock(now.wall_ns)))
            }),
        ),
        Column::numbers("retired", 1, cells(&number(|now| now.retired))),
        Column::numbers("dead", 3, cells(&number(|now| now.dead_lettered))),
        Column::numbers("in flight", 4, cells(&number(|now| now.in_flight))),
        Column::words(
            "limited by",
            6,
            usize::MAX,
            cells(&|listed| match &listed.state {
                Ok(now) => (Tone::Plain, now.held_by()),
                Err(why) => (Tone::Bad, why.clone()),
            }),
        ),
    ];
    let table = Table { columns, selected: Some(view.selected(list)) };
    let rows = pen.rows() - 4;
    table.draw(pen, 2, rows);
}
