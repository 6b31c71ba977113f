//! Random orders, the same for the same seed: some have no voucher, no balance, no weights, a currency without a rate.

use crate::{Customer, Delivery, Item, Level, Order, Place, Voucher};
use cembra::{Date, Timestamp};
use fastrand::Rng;
use std::ops::Range;

/// A word of up to 19 characters.
fn word(random: &mut Rng) -> String {
    let length = random.usize(1..20);
    (0..length).map(|_| random.alphanumeric()).collect()
}

/// A random text out of `texts`.
fn one_of(random: &mut Rng, texts: &[&str]) -> String {
    texts[random.usize(..texts.len())].to_owned()
}

/// A day, by its distance from the first day of 1970.
fn day(random: &mut Rng, days: Range<i32>) -> Date {
    Date(random.i32(days))
}

/// Currencies that most orders have a rate for.
const CURRENCIES: [&str; 4] = ["CHF", "EUR", "USD", "GBP"];

/// A rate for a currency, or none.
fn rate(random: &mut Rng, currency: &str) -> Option<(String, f64)> {
    (random.u8(..4) > 0).then(|| (currency.to_owned(), 0.5 + random.f64()))
}

/// An article of an order.
fn item(random: &mut Rng) -> Item {
    Item {
        article: word(random),
        category: one_of(random, &["plants", "tools", "seeds"]),
        price: f64::from(random.u32(..20_000)) / 100.0,
        pieces: random.i64(0..80),
        kilograms: random.bool().then(|| random.f64() * 9.0),
    }
}

/// An order with `items` items.
pub fn order(random: &mut Rng, items: usize) -> Order {
    Order {
        customer: Customer {
            number: word(random),
            level: [Level::Guest, Level::Club, Level::Trade][random.usize(..3)],
            since: day(random, 11_000..20_700),
            balance: random.bool().then(|| random.f64() * 5e3),
        },
        voucher: random.bool().then(|| Voucher {
            code: word(random),
            percent: f64::from(random.u32(..60)) / 2.0,
            last_day: day(random, 20_500..21_500),
        }),
        delivery: Delivery {
            country: one_of(random, &["CH", "LI", "DE", "AT", "FR", "\u{fc}"]),
            place: Place { lat: 42.0 + 10.0 * random.f64(), lon: 5.0 + 12.0 * random.f64() },
            express: random.u8(..4) == 0,
        },
        items: (0..items).map(|_| item(random)).collect(),
        rates: CURRENCIES.iter().filter_map(|currency| rate(random, currency)).collect(),
        currency: one_of(random, &["CHF", "EUR", "USD", "GBP", "JPY"]),
        ordered: Timestamp(random.i64(1_600_000_000_000_000..1_800_000_000_000_000)),
        today: day(random, 20_700..20_900),
    }
}
