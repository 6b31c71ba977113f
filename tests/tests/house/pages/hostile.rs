//! `docs/hostile-models.md` is what the `hostile` command prints. Which models there are, and what becomes of them, is compared; how long
//! they take, and how much memory, is measured, and stays as it is. A new model has dashes until it is.

use super::{hold, read};
use cembra_tests::hostile::{Row, cases, page};

#[test]
fn the_page_of_hostile_models_has_all_of_them() {
    let found = read("docs/hostile-models.md");
    let rows = cases().map(|case| {
        let dash = || "-".to_owned();
        let mut row = Row { name: case.name, outcome: case.outcome.to_owned(), time: dash(), memory: dash() };
        let unmeasured = row.to_string();
        let front = unmeasured.trim_end_matches("- | - |\n");
        let figures = found.lines().find_map(|line| line.strip_prefix(front)?.strip_suffix(" |")?.split_once(" | "));
        if let Some((time, memory)) = figures.filter(|(time, memory)| is_a_figure(time) && is_a_figure(memory)) {
            (row.time, row.memory) = (time.to_owned(), memory.to_owned());
        }
        row
    });
    hold("docs/hostile-models.md", &page(rows));
}

fn is_a_figure(cell: &str) -> bool {
    cell.parse::<u64>().is_ok()
}
