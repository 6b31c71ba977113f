//! The server that the load of `cembra-serve` is compared with: a bare handler of axum that reads the same request with serde and computes the same
//! outputs by hand. It has no limits, no checks and no metrics.
//!
//! `bare [ADDRESS]` answers `POST /v1/models/fraud`, by default at 127.0.0.1:8081. `load.sh` runs it.

use axum::extract::Json;
use axum::routing::post;
use axum::{Router, serve};
use serde::{Deserialize, Serialize};
use std::error::Error;

/// The inputs of `docs/examples/service/models/fraud.cem`.
#[derive(Deserialize)]
struct Payment {
    amount: f64,
    currency: String,
    country: Option<String>,
    card_country: Option<String>,
    account_days: Option<i64>,
    failures: Option<i64>,
}

/// The outputs of that model.
#[derive(Serialize)]
struct Verdict {
    score: f64,
    decision: &'static str,
}

fn in_euros(amount: f64, currency: &str) -> Option<f64> {
    let rate = match currency {
        "EUR" => 1.0,
        "CHF" => 1.05,
        "USD" => 0.92,
        "GBP" => 1.17,
        _ => return None,
    };
    Some(amount * rate)
}

fn verdict(payment: &Payment) -> Verdict {
    let Payment { amount, currency, country, card_country, account_days, failures } = payment;
    let value = in_euros(*amount, currency).unwrap_or(*amount);
    let mut points = -4.0;
    if value > 500.0 {
        points += 1.5;
    }
    // A comparison with a missing value does not hold.
    if let (Some(country), Some(card)) = (country, card_country)
        && country != card
    {
        points += 2.0;
    }
    if country.as_deref().is_some_and(|country| ["KP", "IR"].contains(&country)) {
        points += 3.0;
    }
    if (0..7).contains(&account_days.unwrap_or(0)) {
        points += 1.0;
    }
    points += 0.5 * failures.unwrap_or(0).clamp(0, 6) as f64;
    let score = 1.0 / (1.0 + f64::exp(-points));
    let decision = if score > 0.8 {
        "block"
    } else if score > 0.3 {
        "review"
    } else {
        "accept"
    };
    Verdict { score, decision }
}

async fn fraud(Json(payment): Json<Payment>) -> Json<Verdict> {
    Json(verdict(&payment))
}

fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8081".to_owned());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(address).await?;
        serve(listener, Router::new().route("/v1/models/fraud", post(fraud))).await?;
        Ok(())
    })
}
