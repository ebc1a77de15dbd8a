//! `--explain`: the queues of a program with their clocks and bounds.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};
use millstream_command::screen::text;
use millstream_stream::check::{Bound, Guarantee, Proof};
use millstream_stream::graph::{Graph, Operator};

/// Returns a line for each queue, and the sum.
pub(super) fn table(graph: &Graph, proof: &Proof) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING);
    table.set_header(["values of", "wait for", "clock", "rate", "at most", "bytes", ""]);
    for bound in proof.edges() {
        table.add_row(row(graph, bound));
    }
    for column in [4, 5] {
        table.column_mut(column).expect("a column").set_cell_alignment(CellAlignment::Right);
    }
    let unbounded = proof.edges().iter().any(|bound| bound.guarantee == Guarantee::Spill);
    let disk = if unbounded { ", and the data spilled to disk" } else { "" };
    format!(
        "{}\n\nconstant space: {} for values that wait{disk}, not counting the memory of their texts\n",
        table.trim_fmt(),
        text::bytes(proof.bytes())
    )
}

fn row(graph: &Graph, bound: &Bound) -> [String; 7] {
    let label = |node: usize| graph.nodes()[node].label.clone();
    let to = &graph.nodes()[bound.to];
    let to = match &to.operator {
        Operator::Sink => "output".to_owned(),
        _ if to.inputs.len() > 1 => format!("input {} of {}", bound.port + 1, to.label),
        _ => to.label.clone(),
    };
    [
        label(bound.through),
        to,
        bound.clock.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string),
        bound.rate.map_or_else(|| "by the data".to_owned(), |rate| rate.to_string()),
        text::count(bound.values),
        text::count(bound.bytes),
        match bound.guarantee {
            Guarantee::Proven => "proven",
            Guarantee::Buffer => "a buffer: the run fails when it is full",
            Guarantee::Spill => "and more on disk",
        }
        .to_owned(),
    ]
}
