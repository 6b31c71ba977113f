//! The results of a run: one record per workload, subject and metric, as a table for people and as JSON to keep.

use crate::measure::{Samples, Task};
use crate::subject::{INTERPRETER, LIMIT, NATIVE, NATIVE_TYPED};
use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;
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
    /// The 99th and the 99.9th percentile, where single times were taken.
    pub tail: Option<[f64; 2]>,
    /// Why there are no times, where the subject cannot do the workload: they are NaN.
    pub left_out: Option<String>,
}

impl Record {
    /// The record of one measured task.
    #[must_use]
    pub fn of(workload: &'static str, task: &Task<'_>, samples: &Samples) -> Self {
        let (min, median) = (samples.min(), samples.median());
        Record {
            workload,
            subject: task.subject,
            metric: task.metric,
            unit: task.unit,
            min,
            median,
            tail: None,
            left_out: None,
        }
    }

    /// The record of a subject that cannot do a workload.
    #[must_use]
    pub fn left_out(
        workload: &'static str,
        subject: &'static str,
        metric: &'static str,
        unit: &'static str,
        reason: &str,
    ) -> Self {
        let left_out = Some(reason.to_owned());
        Record { workload, subject, metric, unit, min: f64::NAN, median: f64::NAN, tail: None, left_out }
    }

    /// The record of times whose tail counts.
    #[must_use]
    pub fn with_tail(
        workload: &'static str,
        subject: &'static str,
        metric: &'static str,
        unit: &'static str,
        samples: &Samples,
    ) -> Self {
        let tail = Some([samples.quantile(0.99), samples.quantile(0.999)]);
        Record { workload, subject, metric, unit, min: samples.min(), median: samples.median(), tail, left_out: None }
    }

    /// The record of a number that is no time.
    #[must_use]
    pub fn count(
        workload: &'static str,
        subject: &'static str,
        metric: &'static str,
        unit: &'static str,
        number: f64,
    ) -> Self {
        Record { workload, subject, metric, unit, min: number, median: number, tail: None, left_out: None }
    }
}

/// A record as it is written, with the keys in this order.
#[derive(Serialize)]
struct Line<'a> {
    workload: &'a str,
    subject: &'a str,
    metric: &'a str,
    unit: &'a str,
    min: f64,
    median: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    p99: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p999: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<&'a str>,
}

/// Writes the records as a JSON list, one record a line.
///
/// # Errors
/// Those of the writer.
pub fn write_json(records: &[Record], mut out: impl Write) -> io::Result<()> {
    writeln!(out, "[")?;
    for (index, record) in records.iter().enumerate() {
        let line = Line {
            workload: record.workload,
            subject: record.subject,
            metric: record.metric,
            unit: record.unit,
            min: thousandths(record.min),
            median: thousandths(record.median),
            p99: record.tail.map(|[p99, _]| thousandths(p99)),
            p999: record.tail.map(|[_, p999]| thousandths(p999)),
            left_out: record.left_out.as_deref(),
        };
        let line = serde_json::to_string(&line)?;
        writeln!(out, "  {line}{}", if index + 1 < records.len() { "," } else { "" })?;
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
    let mut header = vec!["workload", "subject", "metric", "unit", "min", "median"];
    let (tails, limits) = (records.iter().any(|r| r.tail.is_some()), records.iter().any(|r| r.subject == LIMIT));
    header.extend(["p99", "p99.9"].iter().filter(|_| tails));
    header.extend(["min/limit", "median/limit"].iter().filter(|_| limits));
    table.set_header(header);
    let mut previous = "";
    for record in records {
        let limit = records
            .iter()
            .find(|limit| (limit.workload, limit.metric, limit.subject) == (record.workload, record.metric, LIMIT));
        // Nothing is so many times as often as never.
        let counts = |limit: &f64| record.left_out.is_none() && *limit != 0.0;
        let ratio = |ours: f64, limit: Option<f64>| match limit.filter(counts) {
            Some(limit) => format!("{:.2}", ours / limit),
            None => String::new(),
        };
        let mut row = vec![
            if record.workload == previous { String::new() } else { record.workload.to_owned() },
            record.subject.to_owned(),
            record.metric.to_owned(),
            record.unit.to_owned(),
            record.left_out.clone().unwrap_or_else(|| format!("{:.2}", record.min)),
            if record.left_out.is_some() { String::new() } else { format!("{:.2}", record.median) },
        ];
        if tails {
            row.extend(
                record.tail.map_or([String::new(), String::new()], |tail| tail.map(|time| format!("{time:.2}"))),
            );
        }
        if limits {
            row.push(ratio(record.min, limit.map(|limit| limit.min)));
            row.push(ratio(record.median, limit.map(|limit| limit.median)));
        }
        table.add_row(row);
        previous = record.workload;
    }
    for column in table.column_iter_mut().skip(4) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    writeln!(out, "{}", table.trim_fmt())
}

/// Writes how the interpreter stands: beside native code, and beside the fastest of the given peers.
///
/// # Errors
/// Those of the writer.
pub fn write_interpreter_ratios(records: &[Record], peers: &[&str], mut out: impl Write) -> io::Result<()> {
    let metrics = ["ns_per_call", "ns_per_call_dependent", "us_total"];
    let ours = records.iter().filter(|record| record.subject == INTERPRETER && metrics.contains(&record.metric));
    for ours in ours {
        let rivals = || records.iter().filter(|other| (other.workload, other.metric) == (ours.workload, ours.metric));
        let fastest = |record: &&Record| peers.contains(&record.subject) && record.left_out.is_none();
        let native = [NATIVE, NATIVE_TYPED].into_iter().find_map(|name| rivals().find(|record| record.subject == name));
        let peer = rivals().filter(fastest).min_by(|a, b| a.median.total_cmp(&b.median));
        for rival in native.into_iter().chain(peer) {
            let (workload, metric, subject) = (ours.workload, ours.metric, rival.subject);
            let (min, median) = (ours.min / rival.min, ours.median / rival.median);
            writeln!(out, "{workload} {metric}: {INTERPRETER} / {subject} = {min:.2} (min), {median:.2} (median)")?;
        }
    }
    Ok(())
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
    use serde_json::json;

    fn records() -> Vec<Record> {
        let record = |subject, min, median| Record {
            workload: "S1",
            subject,
            metric: "ns_per_call",
            unit: "ns",
            min,
            median,
            tail: None,
            left_out: None,
        };
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
    fn a_subject_that_is_left_out_says_why() {
        let records = [Record::left_out("S2", "fasteval", "ns_per_call", "ns", "no missing values")];
        let (mut table, mut json) = (Vec::new(), Vec::new());
        write_table(&records, &mut table).expect("memory takes all");
        write_json(&records, &mut json).expect("memory takes all");
        let (table, json) = (String::from_utf8(table).expect("text"), String::from_utf8(json).expect("text"));
        assert!(table.contains("no missing values") && !table.contains("NaN"), "{table}");
        assert!(json.contains(r#""min":null,"median":null,"left_out":"no missing values""#), "{json}");
    }

    #[test]
    fn the_interpreter_is_compared_with_native_code_and_the_fastest_peer() {
        let record = |subject, median| Record { subject, min: median / 2.0, median, ..records().remove(0) };
        let mut records = vec![record("interpreter", 20.0), record("native", 5.0), record("slow", 40.0)];
        records.extend([record("fast", 10.0), record("other", 1.0)]);
        records.push(Record::left_out("S1", "unable", "ns_per_call", "ns", "it cannot"));
        let mut out = Vec::new();
        write_interpreter_ratios(&records, &["slow", "fast", "unable"], &mut out).expect("memory takes all");
        let text = String::from_utf8(out).expect("it is text");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "S1 ns_per_call: interpreter / native = 4.00 (min), 4.00 (median)",
                "S1 ns_per_call: interpreter / fast = 2.00 (min), 2.00 (median)"
            ]
        );
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
