//! The table of `versus batch`: a line for each workload and subject, a column for each metric, and ratios to the limits.

use super::subject::LIMIT_256;
use super::{BYTES, COMPILE, OVERHEAD, RATES, SIZES};
use crate::record::Record;
use crate::subject::LIMIT_INLINED;
use comfy_table::{CellAlignment, Table, presets};
use std::io::{self, Write};

/// Writes the minima of all records, and beside those of one thread their ratios to the limits'.
///
/// # Errors
/// Those of the writer.
pub fn write_table(records: &[Record], mut out: impl Write) -> io::Result<()> {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    let one = SIZES.map(|size| size.metrics[0]);
    let two = SIZES.map(|size| size.metrics[1]);
    let metrics: Vec<&str> = one.into_iter().chain(two).chain(RATES).chain([OVERHEAD, COMPILE, BYTES]).collect();
    let ratio = |limit: &str| one.map(|metric| format!("{}/{limit}", metric.trim_start_matches("ns_per_row_")));
    let header = ["workload", "subject"].into_iter().chain(metrics.iter().copied()).map(str::to_owned);
    table.set_header(header.chain(ratio(LIMIT_INLINED)).chain(ratio(LIMIT_256)));
    let min = |workload: &str, subject: &str, metric: &str| {
        let same = |record: &&Record| (record.workload, record.subject, record.metric) == (workload, subject, metric);
        records.iter().find(same).map(|record| record.min).filter(|min| min.is_finite())
    };
    let number = |number: Option<f64>| number.map_or(String::new(), |number| format!("{number:.3}"));
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for record in records {
        let (workload, subject) = (record.workload, record.subject);
        if seen.contains(&(workload, subject)) || record.left_out.is_some() {
            continue;
        }
        let is_first = seen.last().is_none_or(|last| last.0 != workload);
        seen.push((workload, subject));
        let mut row = vec![if is_first { workload.to_owned() } else { String::new() }, subject.to_owned()];
        row.extend(metrics.iter().map(|metric| number(min(workload, subject, metric))));
        for limit in [LIMIT_INLINED, LIMIT_256] {
            let ratio = |metric| Some(min(workload, subject, metric)? / min(workload, limit, metric)?);
            row.extend(one.map(|metric| ratio(metric).map_or(String::new(), |ratio| format!("{ratio:.2}"))));
        }
        table.add_row(row);
    }
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    writeln!(out, "{}", table.trim_fmt())?;
    let mut reasons: Vec<&str> = records.iter().filter_map(|record| record.left_out.as_deref()).collect();
    reasons.sort_unstable();
    reasons.dedup();
    reasons.iter().try_for_each(|reason| writeln!(out, "left out: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_to_the_limits_of_the_same_metric() {
        let record = |subject, metric, time| Record::count("B1", subject, metric, "ns", time);
        let records = [
            record(LIMIT_INLINED, "ns_per_row_1e5", 0.5),
            record(LIMIT_256, "ns_per_row_1e5", 1.0),
            record(LIMIT_256, "ns_per_row_1e3", 0.25),
            record("native-batch", "ns_per_row_1e5", 0.75),
            Record::left_out("B1", "lanes-128", "ns_per_row_1e3", "ns", "not yet"),
        ];
        let mut out = Vec::new();
        write_table(&records, &mut out).expect("memory takes all");
        let text = String::from_utf8(out).expect("it is text");
        let line = text.lines().find(|line| line.contains("native-batch")).expect("a line");
        let cells: Vec<&str> = line.split('|').map(str::trim).filter(|cell| !cell.is_empty()).collect();
        assert_eq!(cells, ["native-batch", "0.750", "1.50", "0.75"]);
        assert!(!text.contains("lanes-128") && text.ends_with("left out: not yet\n"), "{text}");
    }
}
