//! Progress without a terminal: lines at intervals, with the numbers of the live frame.

use millstream_command::screen::line::Line;
use millstream_command::screen::look::Look;
use millstream_command::screen::text;
use millstream_flow::Snapshot;

use super::frame;
use super::meter::Pace;

/// One line about the whole flow.
///
/// ```text
/// archive running 0:42 · 12,185 retired · 2 dead-lettered · 213 in flight · 12.5 MiB · 293/s · held by disk: …
/// ```
pub(crate) fn line(snapshot: &Snapshot, pace: &Pace) -> String {
    let mut line = Line::new(usize::MAX, Look::FILE);
    line.part(
        None,
        &format!(
            "{} {} {}",
            text::printable(&snapshot.flow),
            frame::phase(snapshot.phase),
            text::clock(snapshot.wall_ns)
        ),
    );
    match pace.total {
        Some(total) => line.part(None, &format!("{} retired of {}", text::count(snapshot.retired), text::count(total))),
        None => line.part(None, &format!("{} retired", text::count(snapshot.retired))),
    };
    if snapshot.dead_lettered > 0 {
        line.part(None, &format!("{} dead-lettered", text::count(snapshot.dead_lettered)));
    }
    line.part(None, &format!("{} in flight", text::count(snapshot.in_flight)));
    line.part(None, &text::bytes(snapshot.bytes_in_flight));
    line.part(None, &text::rate(pace.gone_per_s));
    if let Some(left_ns) = pace.left_ns {
        line.part(None, &format!("ETA {}", text::clock(left_ns)));
    }
    line.part(None, &format!("held by {}", text::printable(&snapshot.held_by())));
    line.done()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::sample::snapshot;

    #[test]
    fn the_line_holds_the_whole_flow() {
        let pace = Pace { gone_per_s: 293.4, ..Pace::default() };
        assert_eq!(
            line(&snapshot(), &pace),
            "archive running 0:42 · 12,185 retired · 2 dead-lettered · 213 in flight · 12.5 MiB · 293/s · held by disk: \
             10 units wait for it in write"
        );
    }
}
