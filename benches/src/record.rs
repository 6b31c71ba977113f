//! The results of a run: one record per workload, subject and metric, as a table for people and as JSON to keep.

use crate::measure::{Samples, Task};
use crate::subject::LIMIT;
use comfy_table::{CellAlignment, Table, presets};
use serde_json::json;
use std::io::{self, Write};

/// One measured number.
#[derive(Clone, Debug)]
pub struct Record {
    /// The workload's name.
    pub workload: &'static str,
    /// The subject's name.
    pub subject: &'static str,
    /// What was measured.
    pub metric: &'static str,
    /// In which unit.
    pub unit: &'static str,
    /// The shortest time of all rounds.
    pub min: f64,
    /// The median of all rounds.
    pub median: f64,
}

impl Record {
    /// The record of one measured task.
    #[must_use]
    pub fn of(workload: &'static str, task: &Task<'_>, samples: &Samples) -> Self {
        let (min, median) = (samples.min(), samples.median());
        Record { workload, subject: task.subject, metric: task.metric, unit: task.unit, min, median }
    }
}

/// Writes the records as a JSON list, one record a line.
///
/// # Errors
/// Those of the writer.
pub fn write_json(records: &[Record], mut out: impl Write) -> io::Result<()> {
    writeln!(out, "[")?;
    for (index, record) in records.iter().enumerate() {
        let object = json!({
            "workload": record.workload,
            "subject": record.subject,
            "metric": record.metric,
            "unit": record.unit,
            "min": thousandths(record.min),
            "median": thousandths(record.median),
        });
        writeln!(out, "  {object}{}", if index + 1 < records.len() { "," } else { "" })?;
    }
    writeln!(out, "]")
}

/// No clock is better than this.
fn thousandths(time: f64) -> f64 {
    (time * 1000.0).round() / 1000.0
}

/// Writes the records as a table, with the ratios to the limit where the same metric was measured of the limit.
///
/// # Errors
/// Those of the writer.
pub fn write_table(records: &[Record], mut out: impl Write) -> io::Result<()> {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.set_header(["workload", "subject", "metric", "unit", "min", "median", "min/limit", "median/limit"]);
    let mut previous = "";
    for record in records {
        let limit = records
            .iter()
            .find(|limit| (limit.workload, limit.metric, limit.subject) == (record.workload, record.metric, LIMIT));
        let ratio = |ours: f64, limit: Option<f64>| limit.map_or(String::new(), |limit| format!("{:.2}", ours / limit));
        table.add_row([
            if record.workload == previous { String::new() } else { record.workload.to_owned() },
            record.subject.to_owned(),
            record.metric.to_owned(),
            record.unit.to_owned(),
            format!("{:.2}", record.min),
            format!("{:.2}", record.median),
            ratio(record.min, limit.map(|limit| limit.min)),
            ratio(record.median, limit.map(|limit| limit.median)),
        ]);
        previous = record.workload;
    }
    for column in table.column_iter_mut().skip(4) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    writeln!(out, "{}", table.trim_fmt())
}

/// What the numbers depend on: processor, compiler, versions.
#[must_use]
pub fn machine() -> String {
    let processor = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    let processor = processor.as_deref().unwrap_or(std::env::consts::ARCH);
    let profile = if cfg!(debug_assertions) { "DEBUG BUILD: the numbers mean nothing" } else { "release build" };
    format!("{processor}; {}; {profile}", env!("CEMBRA_BENCH_RUSTC"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records() -> Vec<Record> {
        let record =
            |subject, min, median| Record { workload: "S1", subject, metric: "ns_per_call", unit: "ns", min, median };
        vec![record(LIMIT, 1.5, 1.6), record("native", 3.0004, 4.0)]
    }

    #[test]
    fn json_has_exactly_the_agreed_fields() {
        let mut out = Vec::new();
        write_json(&records(), &mut out).expect("memory takes all");
        let read: serde_json::Value = serde_json::from_slice(&out).expect("it is JSON");
        assert_eq!(
            read[1],
            json!({"workload": "S1", "subject": "native", "metric": "ns_per_call", "unit": "ns", "min": 3.0, "median": 4.0})
        );
        assert_eq!(read.as_array().map(Vec::len), Some(2));
        write_json(&[], &mut Vec::new()).expect("no records are fine");
    }

    #[test]
    fn the_table_shows_ratios_to_the_limit() {
        let mut out = Vec::new();
        write_table(&records(), &mut out).expect("memory takes all");
        let text = String::from_utf8(out).expect("it is text");
        let native = text.lines().find(|line| line.contains("native")).expect("a line");
        let cells: Vec<&str> = native.split('|').map(str::trim).filter(|cell| !cell.is_empty()).collect();
        assert_eq!(cells, ["native", "ns_per_call", "ns", "3.00", "4.00", "2.00", "2.50"]);
    }
}
