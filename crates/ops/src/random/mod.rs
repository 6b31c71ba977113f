//! Operators that derive random numbers from their operands. They have no state: equal operands give equal numbers, as
//! for all operators.

mod cityhash;
pub(crate) mod mersenne;
pub(crate) mod sample;

use crate::definition::{Meaning, OpDef, Typing, UNARY, ex, param};
use crate::kernel::strict;
use crate::strings::convert::{quoted, with_float, with_integer};
use crate::typing::{Argument, Signature, TypeFault, refuse};
use cembra_runtime::{Bytes, FaultKind, QType, Scalar, Text};
use cityhash::city_hash_64_with_seed;
use smallvec::smallvec;

/// The hash of a text; its highest bit is cleared, so that the number is not negative.
fn hash(text: impl AsRef<[u8]>, seed: i64) -> i64 {
    (city_hash_64_with_seed(text.as_ref(), seed.cast_unsigned()) & i64::MAX.cast_unsigned()).cast_signed()
}

fn types(args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let (value, seed) = (args[0].qtype, args[1].qtype);
    if value.scalar().is_none() {
        return refuse(0, format!("random.cityhash expects a scalar for `x`, found {value}"));
    }
    if !matches!(seed, QType::Scalar(Scalar::Int32 | Scalar::Int64)) {
        return refuse(1, format!("random.cityhash expects an integer that is not optional for `seed`, found {seed}"));
    }
    let int64 = QType::of(Scalar::Int64, value.is_optional());
    Ok(Signature { operands: smallvec![value.clone(), int64.clone()], ret: int64 })
}

pub(crate) static CITYHASH: OpDef = OpDef {
    name: "random.cityhash",
    summary: "A number from 0 to 2^63 - 1 that depends on the value and the seed, by version 1.1 of Google's CityHash. It is the hash of the text that `strings.as_text` gives, so values with equal texts have equal hashes, whatever their types are.",
    params: &[param("x"), param("seed")],
    faults: &[FaultKind::ArenaLimit],
    typing: Typing::Rule(types),
    meaning: Meaning::Overloads(&[
        strict!(|_x: (), seed: i64| -> i64 { hash("present", seed) }),
        strict!(|x: bool, seed: i64| -> i64 { hash(if x { "true" } else { "false" }, seed) }),
        strict!(|x: i32, seed: i64| -> i64 { with_integer(x, |text| hash(text, seed)) }),
        strict!(|x: i64, seed: i64| -> i64 { with_integer(x, |text| hash(text, seed)) }),
        strict!(|x: u64, seed: i64| -> i64 { with_integer(x, |text| hash(text, seed)) }),
        strict!(|x: f32, seed: i64| -> i64 { with_float(x, |text| hash(text, seed)) }),
        strict!(|x: f64, seed: i64| -> i64 { with_float(x, |text| hash(text, seed)) }),
        strict!(|x: Text<'static>, seed: i64| -> i64 { hash(x.as_str(), seed) }),
        strict!(try in context |x: Bytes<'static>, seed: i64| -> i64 { Ok(hash(quoted(context, x)?.as_slice(), seed)) }),
    ]),
    examples: &[
        ex("random.cityhash(\"abc\", 1)", "i64{3895058647784523247}"),
        ex("random.cityhash(1.5, 42) == random.cityhash(\"1.5\", 42)", "present"),
        ex("random.cityhash(missing[i32], 42)", "i64?{NA}"),
    ],
    ..UNARY
};
