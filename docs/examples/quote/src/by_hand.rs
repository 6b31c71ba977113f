//! The quote of the model, written by hand. Sums are taken one after the other, as the model's are for up to 64 items.

use crate::{Item, Level, Line, Order, Quote};
use std::io::Write;

/// The amount of an article.
fn amount(item: &Item) -> f64 {
    let scale = match item.pieces {
        48.. => 0.85,
        12.. => 0.93,
        _ => 1.0,
    };
    item.price * item.pieces as f64 * scale
}

/// `amount` rounded to cents as on paper, halves away from zero: the digits are the shortest that read back as `amount`. Right for
/// amounts below 90,000,000,000,000, whose cents a float has exactly.
#[must_use]
pub fn cents(amount: f64) -> f64 {
    // Most amounts are farther from a half than their shortest digits are from them.
    let scaled = amount.abs() * 100.0;
    let below = scaled as u64;
    let beyond_half = scaled - below as f64 - 0.5;
    if scaled < 1e15 && beyond_half.abs() > scaled * f64::EPSILON * 4.0 {
        return ((below + u64::from(beyond_half > 0.0)) as f64 / 100.0).copysign(amount);
    }
    // `1.2345e-7`: no float has more than 25 characters.
    let mut text = [0; 32];
    let mut rest = &mut text[..];
    let _ = write!(rest, "{:e}", amount.abs());
    let free = rest.len();
    let text = std::str::from_utf8(&text[..32 - free]).unwrap_or_default();
    let (mantissa, exponent) = text.split_once('e').unwrap_or(("0", "0"));
    let digits = mantissa.bytes().filter(u8::is_ascii_digit);
    let number = digits.fold(0, |number, digit| 10 * number + u64::from(digit - b'0'));
    let decimals = mantissa.split_once('.').map_or(0, |(_, decimals)| decimals.len() as i32);
    let cut = decimals - exponent.parse().unwrap_or(0) - 2;
    if cut <= 0 {
        return amount;
    }
    // There are at most 17 digits: if 18 or more are cut, none is left and nothing is rounded up.
    let unit = 10_u64.pow(cut.min(18) as u32);
    let kept = number / unit + u64::from(2 * (number % unit) >= unit);
    (kept as f64 / 100.0).copysign(amount)
}

/// The quote for an order.
#[must_use]
pub fn quote(order: &Order) -> Quote {
    let mut quote = Quote::default();
    quote_into(order, &mut quote);
    quote
}

/// The quote for an order, written over another one, whose texts and lines keep their memory.
pub fn quote_into(order: &Order, quote: &mut Quote) {
    let Order { customer, voucher, delivery, items, rates, currency, ordered, today } = order;
    let (mut goods, mut tools, mut kilograms, mut dearest) = (0.0, 0.0, 0.0, None);
    quote.lines.truncate(items.len());
    for (at, item) in items.iter().enumerate() {
        let amount = amount(item);
        goods += amount;
        if item.category == "tools" {
            tools += amount;
        }
        kilograms += item.kilograms.unwrap_or(0.3) * item.pieces as f64;
        dearest = Some(dearest.map_or(amount, |dearest: f64| dearest.max(amount)));
        match quote.lines.get_mut(at) {
            Some(line) => {
                line.article.clone_from(&item.article);
                line.amount = amount;
            }
            None => quote.lines.push(Line { article: item.article.clone(), amount }),
        }
    }

    let by_level = match customer.level {
        Level::Trade => 0.12,
        Level::Club => 0.05,
        Level::Guest => 0.0,
    };
    let by_years = match customer.since.years_to(*today) {
        8.. => 0.03,
        3.. => 0.01,
        _ => 0.0,
    };
    let by_voucher = match voucher {
        Some(voucher) if *today <= voucher.last_day => goods * voucher.percent / 100.0,
        _ => 0.0,
    };
    let discount = f64::min(goods * (by_level + by_years) + by_voucher, goods * 0.25);
    let net = goods - discount;

    let parcels = (kilograms / 20.0_f64).ceil();
    let north = (delivery.place.lat - 46.948) * 111.2;
    let east = (delivery.place.lon - 7.447) * 75.9;
    let distance = (north * north + east * east).sqrt();
    let (zone, vat) = match delivery.country.as_str() {
        "CH" | "LI" => (1.0, 0.081),
        "DE" => (1.4, 0.19),
        "AT" => (1.5, 0.2),
        _ => (2.2, 0.0),
    };
    let is_free = goods >= 300.0 && delivery.country == "CH" && !delivery.express;
    let by_express = if delivery.express { 12.0 } else { 0.0 };
    let freight = if is_free { 0.0 } else { (6.5 * parcels + 0.015 * distance) * zone + by_express };
    let tax = tools * vat + (goods - tools) * vat * 0.35;
    let rate = rates.get(currency).copied().unwrap_or(1.0);

    quote.total = cents((net + freight + tax) * rate);
    quote.discount = discount;
    quote.freight = freight;
    quote.tax = tax;
    quote.parcels = parcels as i64;
    quote.dearest = dearest;
    quote.balance_left = customer.balance.map(|balance| balance - net);
    quote.needs_approval = goods > 5000.0 || ordered.time().0 < 6 && goods > 1000.0;
    // Only the year 9999 has a day without one a month later.
    quote.pay_by = today.add_months(1).unwrap_or(*today);
    quote.reference.clone_from(&customer.number);
    if let Some(voucher) = voucher {
        quote.reference.push('/');
        quote.reference.push_str(&voucher.code);
    }
    quote.note.clear();
    quote.note.push_str(if is_free {
        "free delivery"
    } else if parcels > 3.0 {
        "by truck"
    } else {
        "by parcel"
    });
}
