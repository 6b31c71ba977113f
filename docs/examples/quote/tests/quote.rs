//! The model and the function by hand give the same bits, and a quote that is written over another one allocates nothing.

#[expect(dead_code, reason = "other tests ask how much memory is held")]
#[path = "../../../../crates/ops/tests/counting/mod.rs"]
mod counting;

use cembra::{Model, Options};
use example_quote::{MODEL, ORDER, Order, Quote, by_hand, executor, random};
use fastrand::Rng;

/// The bits of all numbers of a quote.
fn bits(quote: &Quote) -> Vec<Option<u64>> {
    let numbers = [Some(quote.total), Some(quote.discount), Some(quote.freight), Some(quote.tax), quote.dearest];
    let amounts = quote.lines.iter().map(|line| Some(line.amount));
    numbers.into_iter().chain([quote.balance_left]).chain(amounts).map(|number| number.map(f64::to_bits)).collect()
}

#[test]
fn the_tests_of_the_model_pass() {
    Model::parse(MODEL).unwrap().run_tests(&Options::default()).check().unwrap();
}

#[test]
fn the_model_and_the_function_give_the_same_bits() {
    let mut executor = executor().unwrap();
    let mut random = Rng::with_seed(29);
    let (mut kept, mut kept_by_hand) = (Quote::default(), Quote::default());
    for number in 0..10_000 {
        let items = random.usize(0..65);
        let order = random::order(&mut random, items);
        executor.run_into(&order, &mut kept).unwrap();
        by_hand::quote_into(&order, &mut kept_by_hand);
        assert_eq!(kept, kept_by_hand, "order {number}: {order:?}");
        assert_eq!(bits(&kept), bits(&kept_by_hand), "order {number}: {order:?}");
    }
    // A new quote is as one that is written over another one.
    let order = random::order(&mut random, 7);
    assert_eq!(executor.run(&order).unwrap(), by_hand::quote(&order));
}

#[test]
fn amounts_are_rounded_as_the_operator_rounds_them() {
    #[derive(cembra::Input)]
    struct Amount {
        x: f64,
    }
    let mut rounded =
        Model::parse("round_decimal(x, 2)").unwrap().executor::<Amount, f64>(&Options::default()).unwrap();
    let mut random = Rng::with_seed(2);
    let special = [0.0, -0.0, 1.005, -1.005, 0.005, 0.0049, 1e-9, -1e-300, 5e-324, 99.995, 1e13, 123_456.785];
    for number in special.into_iter().chain((0..10_000).map(|_| (random.f64() - 0.5) * 1e6)) {
        assert_eq!(by_hand::cents(number).to_bits(), rounded.run(&Amount { x: number }).unwrap().to_bits(), "{number}");
    }
}

#[test]
fn a_quote_that_is_written_over_another_allocates_nothing() {
    let mut executor = executor().unwrap();
    let mut random = Rng::with_seed(3);
    for items in [0, 3, 30, 300, 3000] {
        let orders: Vec<Order> = (0..16).map(|_| random::order(&mut random, items)).collect();
        let mut quote = Quote::default();
        let mut run = || orders.iter().for_each(|order| executor.run_into(order, &mut quote).unwrap());
        // Texts grow until each has room for the longest.
        (0..3).for_each(|_| run());
        let before = counting::so_far();
        run();
        assert_eq!(counting::so_far() - before, 0, "{items} items");
    }
}

#[test]
fn the_order_that_is_printed_is_priced() {
    let order: Order = serde_json::from_str(ORDER).unwrap();
    let quote = executor().unwrap().run(&order).unwrap();
    assert_eq!(quote, by_hand::quote(&order));
    assert_eq!((quote.reference.as_str(), quote.note.as_str()), ("c-1042/SPRING", "by parcel"));
    let written = serde_json::to_string(&quote).unwrap();
    assert!(written.starts_with(r#"{"total":283.7,"discount":32.4"#), "{written}");
    assert!(written.contains(r#""pay_by":"2027-04-01","reference""#), "{written}");
}
