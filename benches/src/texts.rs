//! `versus texts`: comparing texts, of which a third are missing in a model of ten rules, and of one kind each in a model of one
//! comparison: how long it takes is to depend little on what is compared.

use crate::measure::Effort;
use crate::record::Record;
use crate::row::{Cell, row};
use crate::scalar;
use crate::subject::{Bare, Family, INTERPRETER, LIMIT, NATIVE_QUICK, NATIVE_TYPED, Nothing, Subject, Typed, Way};
use crate::workload::{Comparison, RawFunction, Workload};
use crate::{Error, agreement};
use cembra::{Scalar, ScalarValue, Value};
use std::ops::Range;

/// Measures the workloads of this command.
///
/// # Errors
/// A model does not compile, or a subject gives another answer than the others.
pub fn run(effort: Effort) -> Result<Vec<Record>, Error> {
    let mut records = visit::<T1>(effort)?;
    records.extend(visit::<T2>(effort)?);
    records.extend(visit::<Missing>(effort)?);
    records.extend(visit::<Empty>(effort)?);
    records.extend(visit::<Equal>(effort)?);
    records.extend(visit::<Shorter>(effort)?);
    records.extend(visit::<Other>(effort)?);
    records.extend(visit::<Last>(effort)?);
    Ok(records)
}

fn visit<W: Workload + 'static>(effort: Effort) -> Result<Vec<Record>, Error> {
    let rows = W::ring(scalar::RING);
    let mut subjects = subjects::<W>()?;
    agreement::check(&mut subjects, &rows)?;
    scalar::measure(&mut subjects, &rows, effort)
}

/// Texts are not in place in a struct, so that compiled code is called as users call it.
fn subjects<W: Workload + 'static>() -> Result<Vec<Box<dyn Subject<W>>>, Error> {
    Ok(vec![
        Box::new(Bare::new(LIMIT, Family::Limit, W::LIMIT, Nothing)),
        Box::new(Typed::<W>::new(INTERPRETER, Way::INTERPRETER, false)?),
        Box::new(Typed::<W>::new(NATIVE_TYPED, Way::NATIVE, false)?),
        Box::new(Typed::<W>::new(NATIVE_QUICK, Way::NATIVE_QUICK, false)?),
    ])
}

/// What random texts are drawn from, by their position.
const WORDS: [&str; 28] = [
    "gold",
    "silver",
    "bronze",
    "none", // tiers
    "CH",
    "DE",
    "AT",
    "FR",
    "IT",
    "US", // countries
    "web",
    "store",
    "partner",
    "phone", // channels
    "CHF",
    "EUR",
    "USD",
    "GBP", // currencies
    "standard",
    "bulky",
    "fragile",
    "refrigerated goods", // goods
    "new",
    "returning",
    "business",
    "staff", // customers
    "",
    "golf", // what is compared alone
];

/// How many of a hundred texts are missing.
const MISSING_PERCENT: u32 = 33;

impl Cell for Option<&'static str> {
    fn random(random: &mut fastrand::Rng, range: Range<f64>) -> Self {
        let word = random.usize(range.start as usize..range.end as usize);
        (random.u32(0..100) >= MISSING_PERCENT).then_some(WORDS[word])
    }

    fn narrow(_: Option<f64>) -> Option<Self> {
        None
    }

    fn parse(field: &str) -> Option<Self> {
        match field {
            "NA" => Some(None),
            field => WORDS.iter().find(|word| **word == field).map(|word| Some(*word)),
        }
    }

    fn value(self) -> Option<f64> {
        WORDS.iter().position(|word| self == Some(word)).map(|at| at as f64)
    }

    fn write_value(self, value: &mut Value) {
        *value = match self {
            Some(text) => Value::Present(ScalarValue::Text(text.into())),
            None => Value::Missing(Scalar::Text),
        };
    }

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Missing(_) => Some(None),
            Value::Present(ScalarValue::Text(text)) => Self::parse(text),
            _ => None,
        }
    }
}

/// What a thing costs whom: ten rules over texts that may be missing.
struct T1;

impl Workload for T1 {
    const NAME: &'static str = "T1";
    const SOURCE: &'static str = "
        input tier, country, channel, currency, goods, customer: text?
        input price: f64
        let r0 = if tier == \"gold\" and country == \"CH\" then 0.88 else 1.0
        let r1 = if tier == \"silver\" and channel == \"web\" then 0.95 else 1.0
        let r2 = if country == \"DE\" or country == \"AT\" then 1.02 else 1.0
        let r3 = if channel == \"partner\" and customer == \"business\" then 0.9 else 1.0
        let r4 = if currency == \"USD\" and country != \"US\" then 1.03 else 1.0
        let r5 = if goods == \"bulky\" then 1.15 else 1.0
        let r6 = if goods == \"refrigerated goods\" and channel != \"store\" then 1.3 else 1.0
        let r7 = if customer == \"new\" and tier == \"none\" then 0.97 else 1.0
        let r8 = if customer == \"staff\" then 0.7 else 1.0
        let r9 = if currency == \"CHF\" and channel == \"phone\" then 1.01 else 1.0
        output y = price * r0 * r1 * r2 * r3 * r4 * r5 * r6 * r7 * r8 * r9";
    const INPUTS: &'static str = "tier,country,channel,currency,goods,customer,price\n\
        gold,CH,web,CHF,standard,new,100\nNA,NA,NA,NA,NA,NA,100\n,DE,store,USD,bulky,staff,100\n";
    const OUTPUTS: &'static str = "y\n88\n100\n84.5733\n";
    const COMPARISON: Comparison = Comparison::Relative(1e-12);
    const LIMIT: RawFunction<u8> = prices;
    type Input = PriceInput;
    type Output = f64;
}

row! {
    /// The input of T1.
    PriceInput {
        tier: Option<&'static str> = 0.0..4.0,
        country: Option<&'static str> = 4.0..10.0,
        channel: Option<&'static str> = 10.0..14.0,
        currency: Option<&'static str> = 14.0..18.0,
        goods: Option<&'static str> = 18.0..22.0,
        customer: Option<&'static str> = 22.0..26.0,
        price: f64 = 1.0..100.0,
    }
}

// SAFETY: BARE-CALL, as [`RawFunction`] says.
unsafe extern "C" fn prices(input: *const u8, output: *mut u8, _: *mut u8, _: *mut u8) -> i32 {
    // SAFETY: BARE-CALL: the caller gives T1's structs.
    let row = unsafe { &*input.cast::<PriceInput>() };
    let differs = |text: Option<&str>, from| text.is_some_and(|text| text != from);
    let rule = |holds: bool, factor: f64| if holds { factor } else { 1.0 };
    let y = row.price
        * rule(row.tier == Some("gold") && row.country == Some("CH"), 0.88)
        * rule(row.tier == Some("silver") && row.channel == Some("web"), 0.95)
        * rule(row.country == Some("DE") || row.country == Some("AT"), 1.02)
        * rule(row.channel == Some("partner") && row.customer == Some("business"), 0.9)
        * rule(row.currency == Some("USD") && differs(row.country, "US"), 1.03)
        * rule(row.goods == Some("bulky"), 1.15)
        * rule(row.goods == Some("refrigerated goods") && differs(row.channel, "store"), 1.3)
        * rule(row.customer == Some("new") && row.tier == Some("none"), 0.97)
        * rule(row.customer == Some("staff"), 0.7)
        * rule(row.currency == Some("CHF") && row.channel == Some("phone"), 1.01);
    // SAFETY: BARE-CALL, as above.
    unsafe { output.cast::<f64>().write(y) };
    0
}

/// The same texts, by what operators find in them.
struct T2;

impl Workload for T2 {
    const NAME: &'static str = "T2";
    const SOURCE: &'static str = "
        input tier, country, channel, currency, goods, customer: text?
        input price: f64
        let r0 = if strings.contains(goods, \"ile\") then 1.1 else 1.0
        let r1 = if strings.length(tier) == 4 then 0.9 else 1.0
        let r2 = if country < \"DF\" then 0.95 else 1.0
        let r3 = if core.has(strings.find(customer, \"e\")) then 0.97 else 1.0
        let r4 = if strings.length(channel) < strings.length(currency) then 1.02 else 1.0
        let r5 = if strings.contains(goods, customer) then 2.0 else 1.0
        output y = price * r0 * r1 * r2 * r3 * r4 * r5";
    const INPUTS: &'static str = "tier,country,channel,currency,goods,customer,price\n\
        gold,CH,web,CHF,fragile,new,100\nNA,NA,NA,NA,NA,NA,100\n,,,USD,bulky,,100\n";
    const OUTPUTS: &'static str = "y\n91.2285\n100\n193.8\n";
    const COMPARISON: Comparison = Comparison::Relative(1e-12);
    const LIMIT: RawFunction<u8> = findings;
    type Input = PriceInput;
    type Output = f64;
}

// SAFETY: BARE-CALL, as [`RawFunction`] says.
unsafe extern "C" fn findings(input: *const u8, output: *mut u8, _: *mut u8, _: *mut u8) -> i32 {
    // SAFETY: BARE-CALL: the caller gives T2's structs.
    let row = unsafe { &*input.cast::<PriceInput>() };
    let rule = |holds: bool, factor: f64| if holds { factor } else { 1.0 };
    let length = |text: &str| text.chars().count();
    let y = row.price
        * rule(row.goods.is_some_and(|text| text.contains("ile")), 1.1)
        * rule(row.tier.map(length) == Some(4), 0.9)
        * rule(row.country.is_some_and(|text| text < "DF"), 0.95)
        * rule(row.customer.is_some_and(|text| text.contains('e')), 0.97)
        * rule(row.channel.zip(row.currency).is_some_and(|(x, y)| length(x) < length(y)), 1.02)
        * rule(row.goods.zip(row.customer).is_some_and(|(goods, part)| goods.contains(part)), 2.0);
    // SAFETY: BARE-CALL, as above.
    unsafe { output.cast::<f64>().write(y) };
    0
}

row! {
    /// The input of the models of one comparison.
    TierInput { tier: Option<&'static str> = 0.0..1.0, }
}

// SAFETY: BARE-CALL, as [`RawFunction`] says.
unsafe extern "C" fn is_gold(input: *const u8, output: *mut u8, _: *mut u8, _: *mut u8) -> i32 {
    // SAFETY: BARE-CALL: the caller gives the structs of these models.
    let row = unsafe { &*input.cast::<TierInput>() };
    let y = if row.tier == Some("gold") { 1.0 } else { 2.0 };
    // SAFETY: BARE-CALL, as above.
    unsafe { output.cast::<f64>().write(y) };
    0
}

macro_rules! alone {
    ($($(#[$doc:meta])* $name:ident = $text:expr;)*) => { $(
        $(#[$doc])*
        struct $name;

        impl Workload for $name {
            const NAME: &'static str = stringify!($name);
            const SOURCE: &'static str = "input tier: text?; output y = if tier == \"gold\" then 1.0 else 2.0";
            const INPUTS: &'static str = "tier\ngold\nsilver\ngolf\nNA\n\"\"\n";
            const OUTPUTS: &'static str = "y\n1\n2\n2\n2\n2\n";
            const COMPARISON: Comparison = Comparison::Exact;
            const LIMIT: RawFunction<u8> = is_gold;
            type Input = TierInput;
            type Output = f64;

            fn ring(rows: usize) -> Vec<TierInput> {
                vec![TierInput { tier: $text }; rows]
            }
        }
    )* };
}

alone! {
    /// A missing text.
    Missing = None;
    /// An empty text.
    Empty = Some("");
    /// The text that it is compared with.
    Equal = Some("gold");
    /// A text of another length.
    Shorter = Some("web");
    /// A text of the same length.
    Other = Some("none");
    /// A text whose last byte differs.
    Last = Some("golf");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_gives_the_same_prices() {
        let rows = T1::ring(2_000);
        agreement::check(&mut subjects::<T1>().expect("it compiles"), &rows).expect("all agree");
        let missing = rows.iter().filter(|row| row.goods.is_none()).count();
        assert!((550..750).contains(&missing), "{missing} of 2000 are missing");
        agreement::check(&mut subjects::<T2>().expect("it compiles"), &rows).expect("all agree");
        agreement::check(&mut subjects::<Last>().expect("it compiles"), &Last::ring(1)).expect("all agree");
    }
}
