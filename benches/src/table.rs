//! Tables that read well on a terminal and are valid Markdown.

use comfy_table::{CellAlignment, Row, Table, presets};

/// A table whose first column holds names and whose other columns hold numbers.
pub fn render<R: Into<Row>>(header: impl Into<Row>, rows: impl IntoIterator<Item = R>) -> String {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN).set_header(header).add_rows(rows);
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_right_aligned() {
        let text = render(["", "seconds"], [["rayon", "1.5"], ["tokio", "12.5"]]);
        assert!(text.lines().any(|line| line == "| rayon |     1.5 |"), "{text}");
    }
}
