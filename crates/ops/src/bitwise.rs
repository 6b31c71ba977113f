//! Operators on the bits of integers in two's complement. Booleans have other operators, such as `bool.logical_and`.

use crate::definition::{BINARY, Law, Meaning, OpDef, Typing, UNARY, ex};
use crate::kernel::{strict, two};
use crate::{Promotion, Rule};
use cembra_runtime::MachineType;
use cembra_tape::{Bin, Cell, Shift, Tape, Un, Val};

const AND_RULE: Rule = |t, a| two(t, Bin::And, a);
pub(crate) static BITWISE_AND: OpDef = OpDef {
    name: "bitwise.bitwise_and",
    aliases: &["bitwise_and"],
    summary: "The bits that are set in both integers.",
    meaning: Meaning::Overloads(&[
        strict!(|x: i32, y: i32| -> i32 { x & y }, AND_RULE),
        strict!(|x: i64, y: i64| -> i64 { x & y }, AND_RULE),
    ]),
    laws: &[Law::Commutative],
    examples: &[ex("bitwise_and(12, 10)", "8"), ex("bitwise_and(-1, 7i64)", "i64{7}")],
    typing: Typing::Promote(Promotion::Integer),
    ..BINARY
};

const OR_RULE: Rule = |t, a| two(t, Bin::Or, a);
pub(crate) static BITWISE_OR: OpDef = OpDef {
    name: "bitwise.bitwise_or",
    aliases: &["bitwise_or"],
    summary: "The bits that are set in at least one of the integers.",
    meaning: Meaning::Overloads(&[
        strict!(|x: i32, y: i32| -> i32 { x | y }, OR_RULE),
        strict!(|x: i64, y: i64| -> i64 { x | y }, OR_RULE),
    ]),
    laws: &[Law::Commutative],
    examples: &[ex("bitwise_or(12, 10)", "14"), ex("bitwise_or(1, missing[i32])", "i32?{NA}")],
    typing: Typing::Promote(Promotion::Integer),
    ..BINARY
};

const XOR_RULE: Rule = |t, a| two(t, Bin::Xor, a);
pub(crate) static BITWISE_XOR: OpDef = OpDef {
    name: "bitwise.bitwise_xor",
    aliases: &["bitwise_xor"],
    summary: "The bits that are set in exactly one of the integers.",
    meaning: Meaning::Overloads(&[
        strict!(|x: i32, y: i32| -> i32 { x ^ y }, XOR_RULE),
        strict!(|x: i64, y: i64| -> i64 { x ^ y }, XOR_RULE),
    ]),
    laws: &[Law::Commutative],
    examples: &[ex("bitwise_xor(12, 10)", "6")],
    typing: Typing::Promote(Promotion::Integer),
    ..BINARY
};

const INVERT_RULE: Rule = |t, a| {
    let x = a[0].val(t);
    let all = t.konst_like(x, -1.0);
    Cell::num(t.bin(Bin::Xor, x, all))
};
pub(crate) static INVERT: OpDef = OpDef {
    name: "bitwise.invert",
    aliases: &["invert"],
    summary: "The bits that are not set in the integer: `-1 - x`.",
    meaning: Meaning::Overloads(&[
        strict!(|x: i32| -> i32 { !x }, INVERT_RULE),
        strict!(|x: i64| -> i64 { !x }, INVERT_RULE),
    ]),
    laws: &[Law::Involution],
    examples: &[ex("invert(0)", "-1"), ex("invert(5i64)", "i64{-6}")],
    typing: Typing::Promote(Promotion::Integer),
    ..UNARY
};

/// Records a constant of the type of `x`, from a 64-bit pattern that is truncated to the width of the type.
fn pattern(t: &mut Tape, x: Val, bits: u64) -> Val {
    match t.ty(x) {
        MachineType::I32 => t.konst(MachineType::I32, bits & 0xFFFF_FFFF),
        ty => t.konst(ty, bits),
    }
}

/// Counts bits in pairs, then in groups of four and of eight; a product adds the bytes up in the highest byte.
const COUNT_RULE: Rule = |t, a| {
    let x = a[0].val(t);
    let (odd, pairs) = (pattern(t, x, 0x5555_5555_5555_5555), pattern(t, x, 0x3333_3333_3333_3333));
    let (nibbles, bytes) = (pattern(t, x, 0x0F0F_0F0F_0F0F_0F0F), pattern(t, x, 0x0101_0101_0101_0101));
    let upper = t.shift(Shift::Right, x, 1);
    let upper = t.bin(Bin::And, upper, odd);
    let twos = t.bin(Bin::Sub, x, upper);
    let (low, high) = (t.bin(Bin::And, twos, pairs), t.shift(Shift::Right, twos, 2));
    let high = t.bin(Bin::And, high, pairs);
    let fours = t.bin(Bin::Add, low, high);
    let high = t.shift(Shift::Right, fours, 4);
    let both = t.bin(Bin::Add, fours, high);
    let eights = t.bin(Bin::And, both, nibbles);
    let sum = t.bin(Bin::Mul, eights, bytes);
    match t.ty(x) {
        MachineType::I32 => Cell::num(t.shift(Shift::Right, sum, 24)),
        _ => {
            let count = t.shift(Shift::Right, sum, 56);
            Cell::num(t.un(Un::Convert(MachineType::I32), count))
        }
    }
};
pub(crate) static COUNT: OpDef = OpDef {
    name: "bitwise.count",
    aliases: &["count_bits"],
    summary: "The number of bits that are set in two's complement, as an i32.",
    meaning: Meaning::Overloads(&[
        strict!(|x: i32| -> i32 { x.count_ones().cast_signed() }, COUNT_RULE),
        strict!(|x: i64| -> i32 { x.count_ones().cast_signed() }, COUNT_RULE),
    ]),
    examples: &[ex("bitwise.count(7)", "3"), ex("count_bits(-1i64)", "64")],
    typing: Typing::Promote(Promotion::Integer),
    ..UNARY
};
