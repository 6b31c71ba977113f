//! `docs/rewrites.md` is the list of rewrites with an example each. Set `CEMBRA_REWRITE` to write it instead of comparing.

use crate::rewrites::table::EXAMPLES;
use cembra::operators::Mode;
use cembra_prepare::rewrites;
use std::fmt::Write as _;
use std::path::Path;

const HEAD: &str = "\
# Rewrites

The rewrites of the optimiser, in the order in which it tries them. This page is made from the table of rewrites.

*Strict* rewrites are always used: they keep every bit of every result. *Compat* rewrites are those of Arolla that may change
bits; they are used only with `Options::compat`. A rewrite that *skips* may leave operands unevaluated that the model as written
evaluates, so their errors may disappear; it does not skip operators on literals that fail. `Options::without_rewrite` leaves out
the rewrite with a name from the first column.

In this page, `a | b` means `core.presence_or(a, b)`, `a & b` means `core.presence_and(a, b)`, `not a` means
`core.presence_not(a)`, and `a == b` means `core.equal(a, b)`. Operators on literals are computed before the rewrites, and again
wherever a rewrite makes such an operator.

Some rewrites that Arolla has for arrays and dictionaries do not exist yet: for operators on `core.const_with_shape` of arrays,
for `core.shape_of` of it, for lookups in dictionaries with boolean keys, and for a broadcast condition of `core.where`. Arolla's
`core._short_circuit_where` is made by the pass `where`, not by a rewrite.

";

fn page() -> String {
    let mut page = String::from(HEAD);
    for (mode, title) in [(Mode::Strict, "Strict"), (Mode::Compat, "Compat")] {
        let _ = write!(page, "## {title}\n\n| rewrite | | example |\n|---|---|---|\n");
        for rewrite in rewrites().filter(|rewrite| rewrite.mode == mode) {
            let example = EXAMPLES.iter().find(|(name, ..)| *name == rewrite.name);
            let example = example.map_or(String::new(), |(_, _, from, to)| format!("`{from}` is `{to}`"));
            let skips = if rewrite.skips { "skips" } else { "" };
            let comma = if rewrite.skips && !rewrite.note.is_empty() { "; " } else { "" };
            let cell = |text: &str| text.replace('|', "\\|");
            let (name, note) = (cell(&format!("`{}`", rewrite.name)), cell(rewrite.note));
            let _ = writeln!(page, "| {name} | {skips}{comma}{note} | {} |", cell(&example));
        }
        page.push('\n');
    }
    page.truncate(page.trim_end().len());
    page + "\n"
}

#[test]
fn the_page_of_rewrites_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/rewrites.md");
    let page = page();
    if std::env::var_os("CEMBRA_REWRITE").is_some() {
        std::fs::write(&path, &page).expect("the page is written");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == page, "docs/rewrites.md is out of date: run this test with CEMBRA_REWRITE=1");
}
