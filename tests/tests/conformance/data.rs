//! The golden data are whole: every file the README lists is there with as many lines as it says, and they read.

use cembra_tests::files;
use cembra_tests::record::{Case, Record};
use serde_json::Value as Json;
use std::collections::BTreeMap;

/// The stride between the calls that are read here: few, because `.ci/run` has `conform` read all.
const ONE_IN: usize = 32;

/// The table of files in the README: name and number of lines.
fn documented() -> BTreeMap<String, usize> {
    let text = std::fs::read_to_string(files::own().join("README.md")).expect("the README");
    let row = |line: &str| {
        let (name, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
        let count = rest.split_once(" |")?.0.replace(',', "").parse().ok()?;
        Some((name.to_owned(), count))
    };
    text.lines().filter_map(row).collect()
}

#[test]
fn every_file_has_the_documented_lines() {
    let mut counted = BTreeMap::new();
    let (mut rows, mut tags, mut reference_bugs) = (0, 0, 0);
    for file in files::find(&[files::own()]).expect("the files") {
        let mut lines = 0;
        files::for_each_line(&file, |number, text| {
            lines += 1;
            assert_eq!(number, lines, "an empty line");
            let is_of_call = |name: &str| name.starts_with("pointwise");
            if !number.is_multiple_of(ONE_IN) && file.file_name().and_then(|name| name.to_str()).is_some_and(is_of_call)
            {
                return Ok(());
            }
            let record = Record::parse(text).unwrap_or_else(|problem| panic!("{file:?}, line {number}: {problem}"));
            if let Ok(Case::Signature(signature)) = record.case {
                reference_bugs += usize::from(signature.reference_bug);
            }
            if record.subject == "expressions" {
                // Expressions that are skipped count too.
                let json: Json = serde_json::from_str(text).expect("JSON");
                rows += json["rows"].as_array().expect("a list").len();
                tags += usize::from(json.get("tag").is_some());
            }
            Ok(())
        })
        .expect("a readable file");
        counted.insert(file.file_name().expect("a name").to_string_lossy().into_owned(), lines);
    }
    assert_eq!(counted.len(), 18);
    assert_eq!(counted, documented());
    assert_eq!((rows, tags, reference_bugs), (34_716, 47, 6));
}
