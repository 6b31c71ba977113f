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

/// Who orders.
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

/// Where an order goes, and how.
#[derive(cembra::Input, Serialize, Deserialize, Clone, PartialEq, Debug)]
pub struct Delivery {
    /// Two letters.
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
    /// What it is: tools, or something that lives.
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
    /// Who orders.
    pub customer: Customer,
    /// A voucher, if there is one.
    pub voucher: Option<Voucher>,
    /// Where the order goes.
    pub delivery: Delivery,
    /// What is ordered.
    pub items: Vec<Item>,
    /// What a franc is in other currencies.
    pub rates: HashMap<String, f64>,
    /// The currency of the total.
    pub currency: String,
    /// When it was ordered.
    #[serde(with = "moments::moment")]
    pub ordered: Timestamp,
    /// The day of the quote.
    #[serde(with = "moments::day")]
    pub today: Date,
}

/// What an article comes to.
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
    /// All together, in the customer's currency.
    pub total: f64,
    /// What is taken off the goods.
    pub discount: f64,
    /// What the way costs.
    pub freight: f64,
    /// The tax on the goods.
    pub tax: f64,
    /// The number of parcels.
    pub parcels: i64,
    /// The largest amount of an article.
    pub dearest: Option<f64>,
    /// What is left of the customer's credit.
    pub balance_left: Option<f64>,
    /// True if a person is to look at it.
    pub needs_approval: bool,
    /// The day by which it is to be paid.
    #[serde(with = "moments::day")]
    pub pay_by: Date,
    /// The customer's number, with the code of the voucher.
    pub reference: String,
    /// How the order is delivered.
    pub note: String,
    /// What each article comes to.
    pub lines: Vec<Line>,
}

/// The model, compiled for these structs.
///
/// # Errors
/// The model is broken.
pub fn executor() -> Result<ModelExecutor<Order, Quote>, Error> {
    Model::parse(MODEL)?.executor(&Options::default())
}
