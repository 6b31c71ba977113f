//! What the pages show of cembra names types as the text language does. Other tests hold what they show against what cembra prints.

use super::links::pages;
use super::read;
use cembra_tests::vocabulary::foreign_names;
use std::path::Path;

/// Pages that are made from the registry.
const MADE: [&str; 3] = ["docs/operators.md", "docs/rewrites.md", "docs/hostile-models.md"];

/// What a line of a block in the language claims of the model, behind the word that says so.
fn claim(line: &str) -> Option<&str> {
    let (_, comment) = line.rsplit_once('#')?;
    ["gives ", "fails: ", "error: "].iter().find_map(|word| comment.split_once(word)).map(|(_, claim)| claim)
}

/// What a page shows that cembra prints: outputs of the command, and what models of the page are said to give.
fn printed(text: &str) -> Vec<&str> {
    let blocks = |kind| text.split(kind).skip(1).filter_map(|rest| rest.split("```").next());
    let outputs = blocks("```console\n").flat_map(str::lines).filter(|line| !line.starts_with("$ "));
    // What a line of an excerpt says behind its number is the model's.
    let outputs = outputs.filter(|line| !line.trim_start().starts_with(|c: char| c.is_ascii_digit()));
    outputs.chain(blocks("```cem\n").flat_map(str::lines).filter_map(claim)).collect()
}

#[test]
fn pages_name_types_as_models_do() {
    let mut wrong = Vec::new();
    let mut lines = 0;
    for page in pages() {
        let text = read(&page);
        let is_made = MADE.iter().any(|made| page == Path::new(made));
        for line in if is_made { text.lines().collect() } else { printed(&text) } {
            let names = foreign_names(line);
            if !names.is_empty() {
                wrong.push(format!("{}: {names:?} in {line}", page.display()));
            }
            lines += 1;
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(lines > 1000, "{lines} lines");
}

/// Words that users of other systems look for.
const ELSEWHERE: &str = "VLOOKUP XLOOKUP HLOOKUP IFERROR IFNA ISBLANK ISNA SUMIF SUMIFS COUNTIFS CHOOSE CONCAT TODAY ROUNDUP #N/A \
    COALESCE IFNULL NVL ISNULL DECODE CASE CAST LEAST GREATEST BETWEEN LIKE DATEDIFF date_trunc extract substring lag JOIN NULL try_cast \
    groupby fillna isna where mask clip astype apply rolling shift cumsum merge nunique idxmax transform map_batches pl.when np.where np.select \
    NaN None searchsorted argsort bincount vmap grad jit einsum softmax logsumexp has( size( startsWith DenseArray presence_or";

#[test]
fn words_of_other_systems_are_on_the_pages() {
    let text: String = pages().iter().map(read).collect();
    let absent: Vec<&str> = ELSEWHERE.split_whitespace().filter(|word| !text.contains(word)).collect();
    assert!(absent.is_empty(), "{absent:?}");
}
