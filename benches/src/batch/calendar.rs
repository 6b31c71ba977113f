//! Calendars, durations and tables of ranges over columns, beside loops written by hand over the same columns. Their columns have types that the
//! workloads of the other modules do not have: dates, timestamps and durations.

use super::{Plan, SIZES, Size};
use crate::Error;
use crate::measure::{Task, interleave};
use crate::record::Record;
use crate::subject::LIMIT_INLINED;
use cembra::columns::{ColumnMut, InputColumn};
use cembra::operators::Registry;
use cembra::program::{Sources, UsedFile};
use cembra::{Batch, Date, Duration, Limits, Model, Options, RunOptions, Timestamp};
use std::collections::HashMap;
use std::hint::black_box;

/// The workloads, in their order.
pub const WORKLOADS: [&str; 8] = ["age", "month", "apart", "hours", "ranges-10", "ranges-1e3", "ranges-1e6", "as-of"];

/// The subject: the player that a batch chooses.
const NATIVE_BATCH: &str = "native-batch";

/// How many shares there are in the table of prices.
const SHARES: usize = 1_000;

/// How many prices each of them has.
const PRICES: usize = 1_000;

/// How many rows are measured.
const SIZE: Size = SIZES[1];

/// Year, month from March and day from 0, as the days of a date are commonly taken apart.
fn from_march(date: Date) -> (i32, i32, i32) {
    let days = date.0 + 719_468;
    let (cycle, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    (year + 400 * cycle, month, of_year - (153 * month + 2) / 5)
}

/// Full years from one date to a later one.
fn age(born: Date, today: Date) -> i32 {
    let [(born, born_month, born_day), (now, month, day)] = [born, today].map(from_march);
    // Both count years from March, so that they are compared alike.
    now - born - i32::from((month, day) < (born_month, born_day))
}

/// The first day of the month.
fn month_of(date: Date) -> Date {
    Date(date.0 - from_march(date).2)
}

fn batch(source: &str) -> Result<Batch, cembra::Error> {
    Model::parse(source)?.batch(&Options::default())
}

/// A model with a table of `ranges` ranges, in which it looks `x` up.
fn lookup(ranges: usize) -> Result<Batch, cembra::Error> {
    let mut rows = "from,value\n".to_owned();
    for at in 0..ranges {
        // A text takes all that is written.
        let _never_fails = std::fmt::Write::write_fmt(&mut rows, format_args!("{at}.0,{}.5\n", at % 1000));
    }
    let text = "table bands: ranges of f64 -> f64 = \"bands.csv\"\ninput x: f64\noutput y = lookup(x, bands, 0.0)";
    batch_of(text, &rows)
}

/// The prices of a share: the moments from which on each holds, in ascending order, and the prices.
type Prices = (Vec<Timestamp>, Vec<f64>);

/// A model with a table of prices as of moments, in which it looks shares up.
fn price(prices: &[(String, Prices)]) -> Result<Batch, cembra::Error> {
    let mut rows = "share,from,price\n".to_owned();
    for (share, (from, prices)) in prices {
        for (from, price) in from.iter().zip(prices) {
            let _never_fails = std::fmt::Write::write_fmt(&mut rows, format_args!("{share},{from},{price}\n"));
        }
    }
    let text = "table prices: (text, ranges of timestamp) -> f64 = \"prices.csv\"\ninput share: text, at: timestamp\n\
        output y = lookup((share, at), prices, 0.0)";
    batch_of(text, &rows)
}

/// The model of a text that uses one file, with these rows.
fn batch_of(text: &str, rows: &str) -> Result<Batch, cembra::Error> {
    let limits = Limits::default().source_bytes(1 << 28).literal_bytes(1 << 30);
    let used = |name: &str, _: &str| Ok(UsedFile { name: name.to_owned(), text: rows.into() });
    let sources = Sources::gather("model.cem", text, &limits, &used);
    Model::parse_sources(sources, Registry::standard(), &limits)?.batch(&Options::default().limits(limits))
}

/// Adds to each moment how far it is behind another; false where that does not fit into 64 bits.
fn apart<T>(to: &mut [T], [later, earlier]: [&[Timestamp]; 2], of: impl Fn(i64) -> T) -> bool {
    let mut rows = to.iter_mut().zip(later.iter().zip(earlier));
    // The first overflow ends the loop.
    rows.all(|(to, (t, u))| t.0.checked_sub(u.0).map(|micros| *to = of(micros)).is_some())
}

struct Run<'a> {
    plan: &'a Plan,
    records: Vec<Record>,
}

impl Run<'_> {
    /// Measures a model over columns, and a loop that gives the same.
    fn compare<T: Clone + Default + PartialEq>(
        &mut self,
        workload: &'static str,
        batch: &Batch,
        columns: &[InputColumn<'_>],
        output: fn(&mut [T]) -> ColumnMut<'_>,
        by_hand: impl Fn(&mut [T]) -> bool,
    ) -> Result<(), Error> {
        let (mut found, mut expected) = (vec![T::default(); SIZE.rows], vec![T::default(); SIZE.rows]);
        let stage = |source: Box<dyn std::error::Error + Send + Sync>| Error::Stage { workload, source };
        let ours = |to: &mut [T]| {
            let made = batch.run_into(&RunOptions::new(), columns, vec![Some(output(to))]);
            made.map(drop).map_err(|error| stage(error.into()))
        };
        ours(&mut found)?;
        if !by_hand(&mut expected) || found != expected {
            return Err(stage("the loop has other results".into()));
        }
        let task = |subject, run| {
            let (metric, calls) = (SIZE.metrics[0], SIZE.rows);
            Task { subject, metric, unit: "ns", per_second: 1e9, calls, run }
        };
        let hand = || {
            black_box(by_hand(&mut expected));
            Ok(())
        };
        let mut tasks = [task(NATIVE_BATCH, Box::new(|| ours(&mut found))), task(LIMIT_INLINED, Box::new(hand))];
        let samples = interleave(&mut tasks, self.plan.effort_for(SIZE))?;
        self.records.extend(tasks.iter().zip(&samples).map(|(task, samples)| Record::of(workload, task, samples)));
        Ok(())
    }
}

/// Measures those that the plan wants.
///
/// # Errors
/// A model does not compile or fails, or gives something else than the loop.
pub fn run(plan: &Plan) -> Result<Vec<Record>, Error> {
    let mut run = Run { plan, records: Vec::new() };
    if SIZE.rows > plan.most_rows || !WORKLOADS.iter().any(|name| plan.wants(name)) {
        return Ok(run.records);
    }
    let model = |workload| move |error: cembra::Error| Error::Stage { workload, source: error.into() };
    let mut random = fastrand::Rng::with_seed(7);
    let today = Date::of(2026, 11, 26).unwrap_or_default();
    let born: Vec<Date> = (0..SIZE.rows).map(|_| Date(today.0 - random.i32(0..36_000))).collect();
    let moments: Vec<Timestamp> = (0..SIZE.rows).map(|_| Timestamp(random.i64(0..1 << 50))).collect();
    let earlier: Vec<Timestamp> = moments.iter().map(|at| Timestamp(at.0 - random.i64(0..1 << 40))).collect();
    let shared = today.into();
    let dates = [InputColumn::values(&born), InputColumn::shared(&shared)];
    let both = [InputColumn::values(&moments), InputColumn::values(&earlier)];
    let [age_of, month, of_moments, in_hours, ranges @ .., as_of] = WORKLOADS;
    if plan.wants(age_of) {
        let ages = batch("input born, today: date; date.years_between(born, today)").map_err(model(age_of))?;
        run.compare(
            age_of,
            &ages,
            &dates,
            |to| ColumnMut::values(to),
            |to: &mut [i64]| {
                to.iter_mut().zip(&born).for_each(|(to, born)| *to = age(*born, black_box(today)).into());
                true
            },
        )?;
    }
    if plan.wants(month) {
        let months = batch("input born: date; date.truncate(born, \"month\")").map_err(model(month))?;
        run.compare(
            month,
            &months,
            &dates[..1],
            |to| ColumnMut::values(to),
            |to: &mut [Date]| {
                to.iter_mut().zip(&born).for_each(|(to, born)| *to = month_of(*born));
                true
            },
        )?;
    }
    if plan.wants(of_moments) {
        let differences = batch("input t, u: timestamp; t - u").map_err(model(of_moments))?;
        run.compare(
            of_moments,
            &differences,
            &both,
            |to| ColumnMut::values(to),
            |to| apart(to, [&moments, &earlier], Duration),
        )?;
    }
    if plan.wants(in_hours) {
        let hours = batch("input t, u: timestamp; duration.hours(t - u)").map_err(model(in_hours))?;
        run.compare(
            in_hours,
            &hours,
            &both,
            |to| ColumnMut::values(to),
            |to| apart(to, [&moments, &earlier], |micros| micros as f64 / 3.6e9),
        )?;
    }
    for (workload, count) in ranges.into_iter().zip([10, 1_000, 1_000_000]).filter(|(name, _)| plan.wants(name)) {
        let bands = lookup(count).map_err(model(workload))?;
        let bounds: Vec<f64> = (0..count).map(|at| at as f64).collect();
        let values: Vec<f64> = (0..count).map(|at| (at % 1000) as f64 + 0.5).collect();
        // Some keys are below the first range.
        let keys: Vec<f64> = (0..SIZE.rows).map(|_| (random.f64() * 1.01 - 0.01) * count as f64).collect();
        run.compare(
            workload,
            &bands,
            &[InputColumn::values(&keys)],
            |to| ColumnMut::values(to),
            |to: &mut [f64]| {
                for (to, key) in to.iter_mut().zip(&keys) {
                    let at = bounds.partition_point(|bound| bound <= key);
                    *to = at.checked_sub(1).map_or(0.0, |at| values[at]);
                }
                true
            },
        )?;
    }
    if plan.wants(as_of) {
        let mut shares: Vec<(String, Prices)> = Vec::with_capacity(SHARES);
        for share in 0..SHARES {
            let mut at = 1_700_000_000_000_000 + random.i64(0..1 << 40);
            let mut next = || {
                at += random.i64(1..1 << 36);
                Timestamp(at)
            };
            let from = (0..PRICES).map(|_| next()).collect();
            let prices = (0..PRICES).map(|_| f64::from(random.u16(0..10_000)) / 100.0).collect();
            shares.push((format!("SHARE-{share:04}"), (from, prices)));
        }
        let model_of_prices = price(&shares).map_err(model(as_of))?;
        // Some shares have no prices, and some moments are before the first price.
        let names: Vec<String> = (0..SIZE.rows).map(|_| format!("SHARE-{:04}", random.usize(0..SHARES + 10))).collect();
        let last = 1_700_000_000_000_000 + (1 << 35) * PRICES as i64;
        let times: Vec<Timestamp> =
            (0..SIZE.rows).map(|_| Timestamp(random.i64(1_700_000_000_000_000..last))).collect();
        let by_name: HashMap<&str, &Prices, foldhash::fast::RandomState> =
            shares.iter().map(|(name, prices)| (name.as_str(), prices)).collect();
        let texts: Vec<&str> = names.iter().map(String::as_str).collect();
        run.compare(
            as_of,
            &model_of_prices,
            &[InputColumn::texts(&texts), InputColumn::values(&times)],
            |to| ColumnMut::values(to),
            |to: &mut [f64]| {
                for (to, (name, at)) in to.iter_mut().zip(texts.iter().zip(&times)) {
                    let price = |(from, prices): &&Prices| {
                        from.partition_point(|from| from <= at).checked_sub(1).map(|at| prices[at])
                    };
                    *to = by_name.get(name).and_then(price).unwrap_or(0.0);
                }
                true
            },
        )?;
    }
    Ok(run.records)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Effort;

    #[test]
    fn loops_by_hand_give_what_models_give() {
        let effort = Effort { rounds: 1, warm_up: 0, fill: std::time::Duration::ZERO };
        // A table of a million prices takes seconds to read without optimisations.
        let wanted = &WORKLOADS[..WORKLOADS.len() - 1];
        let workloads = wanted.iter().map(|name| (*name).to_owned()).collect();
        let plan = Plan { effort, workloads, most_rows: SIZE.rows };
        let records = run(&plan).expect("all agree");
        assert!(records.chunks(2).map(|of| of[0].workload).eq(wanted.iter().copied()));
    }
}
