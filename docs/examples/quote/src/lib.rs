//! The price of an order of a nursery: a model on Rust structs that has what requests of services have, which is a nested customer, an
//! optional voucher, a list of items, a dictionary of rates, dates, texts, and a list of structs as an output. `by_hand` computes
//! the same without the library: tests compare the two bit for bit, and `versus requests` compares their times.
//!
//! Run it with `cargo run -p example-quote`.

pub mod by_hand;
mod moments;
pub mod random;

use cembra::{Date, Error, Model, ModelExecutor, Options, Timestamp};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// The text of the model.
pub const MODEL: &str = include_str!("../quote.cem");

/// The order that the program prints a quote for.
pub const ORDER: &str = include_str!("../order.json");

/// The level of a customer, a text in the model.
#[derive(cembra::FieldType, Serialize, Deserialize, Clone, Copy, PartialEq, Debug)]
#[cembra(rename_all = "lowercase")]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Everybody.
    Guest,
    /// Members of the club.
    Club,
    /// Gardeners by profession.
    Trade,
}

/// A customer.
#[derive(cembra::Input, Serialize, Deserialize, Clone, PartialEq, Debug)]
pub struct Customer {
    /// The customer's number.
    pub number: String,
    /// The customer's level.
    pub level: Level,
    /// The day of the first order.
    #[serde(with = "moments::day")]
    pub since: Date,
    /// The credit in francs, if the customer has any.
    pub balance: Option<f64>,
}

/// A voucher that the customer has.
#[derive(cembra::Input, Serialize, Deserialize, Clone, PartialEq, Debug)]
pub struct Voucher {
    /// The word that is on it.
    pub code: String,
    /// The percentage by which goods are cheaper.
    pub percent: f64,
    /// The last day on which it is taken.
    #[serde(with = "moments::day")]
    pub last_day: Date,
}

/// A place on earth.
#[derive(cembra::Input, Serialize, Deserialize, Clone, Copy, PartialEq, Debug)]
pub struct Place {
    /// Degrees north of the equator.
    pub lat: f64,
    /// Degrees east of Greenwich.
    pub lon: f64,
}

/// The destination of an order.
#[derive(cembra::Input, Serialize, Deserialize, Clone, PartialEq, Debug)]
pub struct Delivery {
    /// The code of the country, two letters.
    pub country: String,
    /// The place in that country.
    pub place: Place,
    /// True if it is to be there on the next day.
    pub express: bool,
}

/// An article of an order.
#[derive(cembra::Input, Serialize, Deserialize, Clone, PartialEq, Debug)]
pub struct Item {
    /// The name of the article.
    pub article: String,
    /// The category of the article, such as `tools` or `plants`.
    pub category: String,
    /// Francs for a piece.
    pub price: f64,
    /// The number of pieces.
    pub pieces: i64,
    /// The weight of a piece, if it is known.
    pub kilograms: Option<f64>,
}

/// The inputs of the model. Fields are matched by name, those of structs inside of it too.
#[derive(cembra::Input, Serialize, Deserialize, Clone, PartialEq, Debug)]
pub struct Order {
    /// The customer who orders.
    pub customer: Customer,
    /// A voucher, if there is one.
    pub voucher: Option<Voucher>,
    /// The destination.
    pub delivery: Delivery,
    /// The articles of the order.
    pub items: Vec<Item>,
    /// The price of a franc in each other currency.
    pub rates: HashMap<String, f64>,
    /// The currency of the total.
    pub currency: String,
    /// The time of the order.
    #[serde(with = "moments::moment")]
    pub ordered: Timestamp,
    /// The day of the quote.
    #[serde(with = "moments::day")]
    pub today: Date,
}

/// A line of the quote.
#[derive(cembra::Output, Serialize, Clone, PartialEq, Debug)]
pub struct Line {
    /// The name of the article.
    pub article: String,
    /// Francs for all pieces of it.
    pub amount: f64,
}

/// The outputs of the model: amounts are in francs, except for the total.
#[derive(cembra::Output, Serialize, Clone, Default, PartialEq, Debug)]
pub struct Quote {
    /// The amount to pay, in the currency of the order.
    pub total: f64,
    /// The discount on the goods.
    pub discount: f64,
    /// The cost of the delivery.
    pub freight: f64,
    /// The tax on the goods.
    pub tax: f64,
    /// The number of parcels.
    pub parcels: i64,
    /// The largest amount of an article.
    pub dearest: Option<f64>,
    /// The customer's credit after the order.
    pub balance_left: Option<f64>,
    /// True if a person is to look at it.
    pub needs_approval: bool,
    /// The day by which it is to be paid.
    #[serde(with = "moments::day")]
    pub pay_by: Date,
    /// The customer's number, with the code of the voucher.
    pub reference: String,
    /// The kind of delivery, as a text.
    pub note: String,
    /// The lines, one per article.
    pub lines: Vec<Line>,
}

/// The model, compiled for these structs.
///
/// # Errors
/// The model is broken.
pub fn executor() -> Result<ModelExecutor<Order, Quote>, Error> {
    Model::parse(MODEL)?.executor(&Options::default())
}
