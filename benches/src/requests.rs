//! `versus requests`: the price of an order with a list of items, from structs and from JSON, beside the function by hand; and what a
//! list, a dictionary and an optional struct add to a model of one product.

use crate::Error;
use crate::allocations;
use crate::measure::{Effort, Run, Task, interleave};
use crate::record::Record;
use crate::subject::{INTERPRETER, LIMIT, NATIVE_TYPED, Way};
use crate::workload::Comparison;
use cembra::{Model, ModelExecutor, Output};
use example_quote::{MODEL, Order, Quote, by_hand, random};
use std::collections::HashMap;
use std::hint::black_box;

/// Different requests of each workload, evaluated one after the other.
const REQUESTS: usize = 64;

/// The workloads of the quote, with the number of items of an order.
const QUOTES: [(&str, usize); 5] =
    [("quote-0", 0), ("quote-3", 3), ("quote-30", 30), ("quote-300", 300), ("quote-3000", 3000)];

/// The most items for which the sums by hand have the order of the model's.
const MOST_IN_ORDER: usize = 64;

/// The library's reader and writer of JSON, without structs in between.
const NATIVE_JSON: &str = "native-json";

const NS_PER_CALL: &str = "ns_per_call";
/// From the text of a request to the text of its answer.
const NS_PER_JSON: &str = "ns_per_json";
/// The nanoseconds that an input adds to a call of a model without it.
const NS_ADDED: &str = "ns_added";
const ALLOCATIONS: &str = "allocations_per_call";
const JSON_ALLOCATIONS: &str = "allocations_per_json";

/// Measures the requests.
///
/// # Errors
/// A model does not compile, or gives another answer than the function by hand.
pub fn run(effort: Effort) -> Result<Vec<Record>, Error> {
    let mut records = Vec::new();
    for (workload, items) in QUOTES {
        let mut random = fastrand::Rng::with_seed(items as u64);
        let orders: Vec<Order> = (0..REQUESTS).map(|_| random::order(&mut random, items)).collect();
        check(workload, &orders)?;
        records.extend(quotes(workload, &orders, effort)?);
    }
    records.extend(additions(effort)?);
    Ok(records)
}

/// A run over all requests: the workload, the runner, and the names of its two figures, which are a time and a number of allocations.
struct Subject<'a> {
    workload: &'static str,
    subject: &'static str,
    metrics: [&'static str; 2],
    run: Run<'a>,
}

/// The times of subjects that take turns, and how often each allocates once it is warm.
fn measured(subjects: Vec<Subject<'_>>, effort: Effort) -> Result<Vec<Record>, Error> {
    let (mut workloads, mut counts, mut tasks) = (Vec::new(), Vec::new(), Vec::new());
    for Subject { workload, subject, metrics: [metric, allocated], mut run } in subjects {
        run()?;
        let before = allocations::so_far();
        run()?;
        let count = (allocations::so_far() - before) as f64 / REQUESTS as f64;
        workloads.push(workload);
        counts.push(Record::count(workload, subject, allocated, "", count));
        tasks.push(Task { subject, metric, unit: "ns", per_second: 1e9, calls: REQUESTS, run });
    }
    let samples = interleave(&mut tasks, effort)?;
    let measured = workloads.iter().zip(tasks.iter().zip(&samples));
    let times = measured.map(|(workload, (task, samples))| Record::of(workload, task, samples));
    Ok(times.chain(counts).collect())
}

/// The executor of a model on structs.
fn executor<I: cembra::Input, O: Output>(
    workload: &'static str,
    model: &str,
    way: Way,
) -> Result<ModelExecutor<I, O>, Error> {
    let made = Model::parse(model).and_then(|model| model.executor(&way.options()));
    made.map_err(|source| Error::Model { workload, source: Box::new(source) })
}

/// A run of a model over all requests, each into the same output.
fn into_kept<'a, I: cembra::Input<At<'a> = I> + 'a, O: Output + Default + 'a>(
    (workload, model): (&'static str, &str),
    way: Way,
    requests: &'a [I],
) -> Result<Run<'a>, Error> {
    let mut executor = executor::<I, O>(workload, model, way)?;
    let mut kept = O::default();
    Ok(Box::new(move || {
        for request in black_box(requests) {
            let made = executor.run_into(request, &mut kept);
            made.map_err(|source| Error::Model { workload, source: Box::new(source) })?;
        }
        black_box(&kept);
        Ok(())
    }))
}

/// The numbers of a quote.
fn numbers(quote: &Quote) -> Vec<Option<f64>> {
    let one = [quote.total, quote.discount, quote.freight, quote.tax, quote.parcels as f64, quote.pay_by.0.into()];
    let lines = quote.lines.iter().map(|line| Some(line.amount));
    one.into_iter().map(Some).chain([quote.dearest, quote.balance_left]).chain(lines).collect()
}

/// Compares the ways with the function by hand: bit for bit, except for sums of many items, which have another order.
fn check(workload: &'static str, orders: &[Order]) -> Result<(), Error> {
    for way in [Way::NATIVE, Way::INTERPRETER] {
        let mut executor = executor::<Order, Quote>(workload, MODEL, way)?;
        for (row, order) in orders.iter().enumerate() {
            let expected = by_hand::quote(order);
            let found = executor.run(order).map_err(|source| Error::Model { workload, source: Box::new(source) })?;
            let in_order = order.items.len() <= MOST_IN_ORDER;
            let comparison = if in_order { Comparison::Exact } else { Comparison::Relative(1e-12) };
            let [known, ours] = [numbers(&expected), numbers(&found)];
            let texts = |quote: &Quote| (quote.needs_approval, quote.reference.clone(), quote.note.clone());
            let of_lines = |quote: &Quote| quote.lines.iter().map(|line| line.article.clone()).collect::<Vec<_>>();
            let same_texts = texts(&expected) == texts(&found) && of_lines(&expected) == of_lines(&found);
            if !same_texts || !comparison.accepts(&known, &ours) {
                let (subject, reference) = (way.name, LIMIT);
                return Err(Error::Disagreement { workload, subject, reference, row, expected: known, found: ours });
            }
        }
    }
    Ok(())
}

/// Measures the quote, from structs into a kept output, and from JSON to JSON.
fn quotes(workload: &'static str, orders: &[Order], effort: Effort) -> Result<Vec<Record>, Error> {
    let json = |source| Error::Json { workload, source };
    let texts: Vec<String> = orders.iter().map(serde_json::to_string).collect::<Result<_, _>>().map_err(json)?;
    let (structs, text) = ([NS_PER_CALL, ALLOCATIONS], [NS_PER_JSON, JSON_ALLOCATIONS]);
    let mut kept = Quote::default();
    let by_hand_on_structs = move || {
        for order in black_box(orders) {
            by_hand::quote_into(order, &mut kept);
        }
        black_box(&kept);
        Ok(())
    };
    let mut kept = Quote::default();
    let by_hand_on_json = || {
        for text in black_box(&texts) {
            by_hand::quote_into(&serde_json::from_str(text).map_err(json)?, &mut kept);
            black_box(serde_json::to_string(&kept).map_err(json)?);
        }
        Ok(())
    };
    let mut executor = executor::<Order, Quote>(workload, MODEL, Way::NATIVE)?;
    let mut kept = Quote::default();
    let model_on_json = || {
        for text in black_box(&texts) {
            let made = executor.run_into(&serde_json::from_str(text).map_err(json)?, &mut kept);
            made.map_err(|source| Error::Model { workload, source: Box::new(source) })?;
            black_box(serde_json::to_string(&kept).map_err(json)?);
        }
        Ok(())
    };
    let made = Model::parse(MODEL).and_then(|model| model.json_executor(&Way::NATIVE.options()));
    let mut answers = made.map_err(|source| Error::Model { workload, source: Box::new(source) })?;
    let mut answer = String::new();
    let json_to_json = || {
        for text in black_box(&texts) {
            let made = answers.run_into(text, &mut answer);
            made.map_err(|source| Error::Model { workload, source: Box::new(source) })?;
            black_box(&answer);
        }
        Ok(())
    };
    let model = (workload, MODEL);
    let subject = |subject, metrics, run| Subject { workload, subject, metrics, run };
    let subjects = vec![
        subject(LIMIT, structs, Box::new(by_hand_on_structs)),
        subject(NATIVE_TYPED, structs, into_kept::<Order, Quote>(model, Way::NATIVE, orders)?),
        subject(INTERPRETER, structs, into_kept::<Order, Quote>(model, Way::INTERPRETER, orders)?),
        subject(LIMIT, text, Box::new(by_hand_on_json)),
        subject(NATIVE_TYPED, text, Box::new(model_on_json)),
        subject(NATIVE_JSON, text, Box::new(json_to_json)),
    ];
    measured(subjects, effort)
}

#[derive(cembra::Input)]
struct Priced {
    price: f64,
}

#[derive(cembra::Input)]
struct Reduction {
    factor: f64,
}

/// The inputs of the small models, each of which asks for some of them.
#[derive(cembra::Input)]
struct Small {
    x: f64,
    items: Vec<Priced>,
    rates: HashMap<String, f64>,
    currency: String,
    reduction: Option<Reduction>,
}

impl Small {
    fn random(random: &mut fastrand::Rng) -> Small {
        let currencies = ["CHF", "EUR", "USD", "GBP"];
        Small {
            x: random.f64(),
            items: Vec::new(),
            rates: currencies.map(|currency| (currency.to_owned(), random.f64())).into(),
            currency: currencies[random.usize(..4)].to_owned(),
            reduction: random.bool().then(|| Reduction { factor: random.f64() }),
        }
    }
}

/// A small model, and the same by hand.
struct Addition {
    workload: &'static str,
    model: &'static str,
    by_hand: fn(&Small) -> f64,
}

impl Addition {
    /// Compares the model with the function by hand, bit for bit.
    fn check(&self, rows: &[Small]) -> Result<(), Error> {
        let Addition { workload, model, by_hand } = *self;
        let mut executor = executor::<Small, f64>(workload, model, Way::NATIVE)?;
        for (row, small) in rows.iter().enumerate() {
            let found = executor.run(small).map_err(|source| Error::Model { workload, source: Box::new(source) })?;
            let [expected, found] = [by_hand(small), found].map(|number| vec![Some(number)]);
            if !Comparison::Exact.accepts(&expected, &found) {
                let (subject, reference) = (NATIVE_TYPED, LIMIT);
                return Err(Error::Disagreement { workload, subject, reference, row, expected, found });
            }
        }
        Ok(())
    }
}

/// The first is the model that the others have an input more than.
const ADDITIONS: [Addition; 4] = [
    Addition { workload: "product", model: "input x: f64; x * 1.5", by_hand: |small| small.x * 1.5 },
    Addition {
        workload: "empty-list",
        model: "input x: f64; input items: [{price: f64}]; x * 1.5 + sum(items.price)",
        by_hand: |small| small.x * 1.5 + small.items.iter().fold(0.0, |sum, item| sum + item.price),
    },
    Addition {
        workload: "dictionary",
        model: "input x: f64; input rates: dict[text, f64]; input currency: text; x * lookup(currency, rates, 1.5f64)",
        by_hand: |small| small.x * small.rates.get(&small.currency).copied().unwrap_or(1.5),
    },
    Addition {
        workload: "optional-struct",
        model: "input x: f64; input reduction: {factor: f64}?; x * (reduction.factor ?? 1.5f64)",
        by_hand: |small| small.x * small.reduction.as_ref().map_or(1.5, |reduction| reduction.factor),
    },
];

/// Measures the small models, and how much longer than the first each of the others takes.
fn additions(effort: Effort) -> Result<Vec<Record>, Error> {
    let mut random = fastrand::Rng::with_seed(4);
    let rows: Vec<Small> = (0..REQUESTS).map(|_| Small::random(&mut random)).collect();
    let rows = &rows[..];
    let mut subjects = Vec::new();
    for addition in &ADDITIONS {
        addition.check(rows)?;
        let Addition { workload, model, by_hand } = *addition;
        let by_hand = black_box(by_hand);
        let on_rows = move || {
            for row in black_box(rows) {
                black_box(by_hand(row));
            }
            Ok(())
        };
        let subject = |subject, run| Subject { workload, subject, metrics: [NS_PER_CALL, ALLOCATIONS], run };
        subjects.push(subject(LIMIT, Box::new(on_rows)));
        subjects.push(subject(NATIVE_TYPED, into_kept::<Small, f64>((workload, model), Way::NATIVE, rows)?));
    }
    let mut records = measured(subjects, effort)?;
    let is_ours = |record: &&Record| record.subject == NATIVE_TYPED && record.metric == NS_PER_CALL;
    let mut ours = records.iter().filter(is_ours);
    let Some(without) = ours.next() else { return Ok(records) };
    let added = ours.map(|with| {
        let (min, median) = (with.min - without.min, with.median - without.median);
        Record { metric: NS_ADDED, min, median, ..with.clone() }
    });
    let added: Vec<Record> = added.collect();
    records.extend(added);
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn each_workload_has_the_same_figures_by_hand_and_by_the_model() {
        let records = run(Effort { rounds: 1, warm_up: 0, fill: Duration::ZERO }).expect("all agree");
        let of = |subject: &str| {
            let ours = records.iter().filter(|record| record.subject == subject);
            ours.map(|record| (record.workload, record.metric)).collect::<Vec<_>>()
        };
        // Of a quote there are two times and two counts, of a small model a time and a count, and of three of these a difference.
        let (limit, mut ours) = (of(LIMIT), of(NATIVE_TYPED));
        assert_eq!(limit.len(), QUOTES.len() * 4 + ADDITIONS.len() * 2);
        assert_eq!(ours.split_off(limit.len()).len(), ADDITIONS.len() - 1);
        assert_eq!(limit, ours);
    }
}
