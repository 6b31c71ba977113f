//! Comparison operators, in two variants: `core.less` and the other operators `core.*` return a mask (present where the
//! condition holds), `bool.less` and the other operators `bool.*` return a boolean. A NaN is unequal to every number
//! and has no order; texts are compared by bytes; `false` is less than `true`; a unit equals a unit. If an operand is
//! missing, the result is missing with both variants, so `core.not_equal(missing, x)` is missing too.

use crate::definition::{BINARY, Law, Meaning, OpDef, Typing, ex};
use crate::derivative::FLAT;
use crate::kernel::{MaskValue, mask, strict};
use crate::scalars::for_scalars;
use crate::work::Work;
use crate::{Overload, Promotion};
use cembra_runtime::{Bytes, Context, MachineType, RuntimeFn, Text};
use cembra_tape::{Bin, Cell, Cmp, Datum, Mask, Tape, Val};
use std::cmp::Ordering;

/// A type whose values can be compared. The work of comparing strings is charged to the evaluation's context.
trait Ordered: Sized {
    fn order(self, other: Self, context: &mut Context) -> Option<Ordering>;

    fn same(self, other: Self, context: &mut Context) -> bool {
        self.order(other, context) == Some(Ordering::Equal)
    }
}

macro_rules! ordered {
    ($($ty:ty => |$x:ident, $y:ident| $order:expr;)*) => { $(
        impl Ordered for $ty {
            fn order(self, other: Self, _: &mut Context) -> Option<Ordering> {
                let ($x, $y) = (self, other);
                $order
            }
        }
    )* };
}

ordered! {
    () => |_x, _y| Some(Ordering::Equal);
    bool => |x, y| Some(x.cmp(&y));
    i32 => |x, y| Some(x.cmp(&y));
    i64 => |x, y| Some(x.cmp(&y));
    f32 => |x, y| x.partial_cmp(&y);
    f64 => |x, y| x.partial_cmp(&y);
    u64 => |x, y| Some(x.cmp(&y));
}

impl Ordered for Bytes<'static> {
    fn order(self, other: Self, context: &mut Context) -> Option<Ordering> {
        Some(context.compare(self.as_slice(), other.as_slice()))
    }

    #[inline]
    fn same(self, other: Self, context: &mut Context) -> bool {
        context.equal(self.as_slice(), other.as_slice())
    }
}

impl Ordered for Text<'static> {
    fn order(self, other: Self, context: &mut Context) -> Option<Ordering> {
        self.as_bytes().order(other.as_bytes(), context)
    }

    fn same(self, other: Self, context: &mut Context) -> bool {
        self.as_bytes().same(other.as_bytes(), context)
    }
}

/// Records a comparison of two present values of one type.
fn record(t: &mut Tape, op: Cmp, a: Datum, b: Datum) -> Mask {
    match (a, b) {
        (Datum::Num(x), Datum::Num(y)) => t.cmp(op, x, y),
        (Datum::Flag(x), Datum::Flag(y)) => flags(t, op, x, y),
        (Datum::Text { ptr: xp, len: xn }, Datum::Text { ptr: yp, len: yn }) => {
            let zero = t.konst(MachineType::I32, 0);
            let found = match op {
                Cmp::Eq | Cmp::Ne => texts_differ(t, [xp, xn], [yp, yn]),
                _ => t.call(RuntimeFn::CompareText, &[xp, xn, yp, yn]),
            };
            t.cmp(op, found, zero)
        }
        _ => t.mconst(matches!(op, Cmp::Eq | Cmp::Le | Cmp::Ge)),
    }
}

/// Records 0 if two texts, each given by pointer and length, are equal, else 1. If their lengths differ, no bytes are
/// read. This is the most frequent case; a missing text counts as a text of length 0.
fn texts_differ(t: &mut Tape, [xp, xn]: [Val; 2], [yp, yn]: [Val; 2]) -> Val {
    let alike = t.cmp(Cmp::Eq, xn, yn);
    let [equal, unlike] = [0, 1].map(|found| t.konst(MachineType::I32, found));
    // A literal goes last, because its length is known, and it is present.
    let (first, last, length) = if t.known_bits(yn).is_some() { (xp, yp, yn) } else { (yp, xp, xn) };
    if t.known_bits(length) == Some(0) {
        return t.select(alike, equal, unlike);
    }
    t.call_where(alike, RuntimeFn::TextsDiffer, &[first, last, length], unlike)
}

/// Records a comparison of unsigned numbers: their sign bits are flipped, and then they are compared as signed numbers.
fn unsigned(t: &mut Tape, op: Cmp, a: &[Cell]) -> Mask {
    let (x, y) = (a[0].val(t), a[1].val(t));
    let sign = t.konst(MachineType::I64, 1 << 63);
    let (x, y) = (t.bin(Bin::Xor, x, sign), t.bin(Bin::Xor, y, sign));
    t.cmp(op, x, y)
}

fn flags(t: &mut Tape, op: Cmp, x: Mask, y: Mask) -> Mask {
    match op {
        Cmp::Ne => t.mxor(x, y),
        Cmp::Eq => {
            let differ = t.mxor(x, y);
            t.mnot(differ)
        }
        Cmp::Lt => {
            let not = t.mnot(x);
            t.mand(not, y)
        }
        Cmp::Le => {
            let not = t.mnot(x);
            t.mor(not, y)
        }
        Cmp::Gt => flags(t, Cmp::Lt, y, x),
        Cmp::Ge => flags(t, Cmp::Le, y, x),
    }
}

const COMPARISON: OpDef = OpDef { typing: Typing::Promote(Promotion::Comparable), derivative: Some(FLAT), ..BINARY };

macro_rules! overloads {
    (@each $how:ident, |$found:ident| $holds:expr => $ret:ty, $rule:expr; $($ty:ty),*) => {
        [$(strict!(
            try in context |x: $ty, y: $ty| -> $ret {
                let $found = x.$how(y, context);
                if const { <$ty as Work>::STRING } {
                    context.check_compared()?;
                }
                Ok($holds)
            },
            $rule
        )),*]
    };
    // UINT64 has comparisons for equality that return a mask, and all comparisons that return a boolean.
    (mask, $cmp:expr, |$order:ident| $holds:expr) => {
        Meaning::Overloads(const { &for_scalars!(ordered overloads!(
            @each order, |$order| mask($holds) => MaskValue, |t, a| Cell::mask(record(t, $cmp, a[0].datum, a[1].datum));
        )) })
    };
    (equality, $cmp:expr, |$same:ident| $holds:expr) => {
        Meaning::Overloads(const { &for_scalars!(overloads!(
            @each same, |$same| mask($holds) => MaskValue, |t, a| Cell::mask(record(t, $cmp, a[0].datum, a[1].datum));
        )) })
    };
    (bool $how:ident, $cmp:expr, |$found:ident| $holds:expr) => {
        Meaning::Overloads(const { &join(
            for_scalars!(ordered overloads!(
                @each $how, |$found| $holds => bool, |t, a| Cell::flag(record(t, $cmp, a[0].datum, a[1].datum));
            )),
            overloads!(@each $how, |$found| $holds => bool, |t, a| Cell::flag(unsigned(t, $cmp, a)); u64),
        ) })
    };
}

/// Joins the two lists.
const fn join(many: [Overload; 8], [last]: [Overload; 1]) -> [Overload; 9] {
    let [a, b, c, d, e, f, g, h] = many;
    [a, b, c, d, e, f, g, h, last]
}

pub(crate) static EQUAL: OpDef = OpDef {
    name: "core.equal",
    aliases: &["equal"],
    summary: "Present if `x` equals `y`. Written `==`.",
    meaning: overloads!(equality, Cmp::Eq, |same| same),
    laws: &[Law::Commutative],
    examples: &[ex("1 == 1.0", "present"), ex("nan == nan", "missing"), ex("\"a\" == \"b\"", "missing")],
    ..COMPARISON
};

pub(crate) static NOT_EQUAL: OpDef = OpDef {
    name: "core.not_equal",
    aliases: &["not_equal"],
    summary: "Present if `x` differs from `y`. Written `!=`.",
    meaning: overloads!(equality, Cmp::Ne, |same| !same),
    laws: &[Law::Commutative],
    examples: &[ex("nan != nan", "present"), ex("missing[i32] != 1", "missing")],
    ..COMPARISON
};

pub(crate) static LESS: OpDef = OpDef {
    name: "core.less",
    aliases: &["less"],
    summary: "Present if `x` is less than `y`. Written `<`.",
    meaning: overloads!(mask, Cmp::Lt, |o| o == Some(Ordering::Less)),
    examples: &[ex("1 < 2", "present"), ex("false < true", "present"), ex("nan < 1", "missing")],
    ..COMPARISON
};

pub(crate) static LESS_EQUAL: OpDef = OpDef {
    name: "core.less_equal",
    aliases: &["less_equal"],
    summary: "Present if `x` is less than or equal to `y`. Written `<=`.",
    meaning: overloads!(mask, Cmp::Le, |o| matches!(o, Some(Ordering::Less | Ordering::Equal))),
    examples: &[ex("2 <= 2", "present"), ex("\"b\" <= \"a\"", "missing")],
    ..COMPARISON
};

pub(crate) static GREATER: OpDef = OpDef {
    name: "core.greater",
    aliases: &["greater"],
    summary: "Present if `x` is greater than `y`. Written `>`.",
    meaning: overloads!(mask, Cmp::Gt, |o| o == Some(Ordering::Greater)),
    examples: &[ex("2 > 1", "present"), ex("1 > nan", "missing")],
    ..COMPARISON
};

pub(crate) static GREATER_EQUAL: OpDef = OpDef {
    name: "core.greater_equal",
    aliases: &["greater_equal"],
    summary: "Present if `x` is greater than or equal to `y`. Written `>=`.",
    meaning: overloads!(mask, Cmp::Ge, |o| matches!(o, Some(Ordering::Greater | Ordering::Equal))),
    examples: &[ex("0f32 >= -0f32", "present"), ex("1 >= 2", "missing")],
    ..COMPARISON
};

pub(crate) static BOOL_EQUAL: OpDef = OpDef {
    name: "bool.equal",
    summary: "True if `x` equals `y`.",
    meaning: overloads!(bool same, Cmp::Eq, |same| same),
    laws: &[Law::Commutative],
    examples: &[ex("bool.equal(1, 2)", "false"), ex("bool.equal(1, missing[i32])", "bool?{NA}")],
    ..COMPARISON
};

pub(crate) static BOOL_NOT_EQUAL: OpDef = OpDef {
    name: "bool.not_equal",
    summary: "True if `x` differs from `y`.",
    meaning: overloads!(bool same, Cmp::Ne, |same| !same),
    laws: &[Law::Commutative],
    examples: &[ex("bool.not_equal(nan, nan)", "true")],
    ..COMPARISON
};

pub(crate) static BOOL_LESS: OpDef = OpDef {
    name: "bool.less",
    summary: "True if `x` is less than `y`.",
    meaning: overloads!(bool order, Cmp::Lt, |o| o == Some(Ordering::Less)),
    examples: &[ex("bool.less(1, 2)", "true"), ex("bool.less(nan, 2)", "false")],
    ..COMPARISON
};

pub(crate) static BOOL_LESS_EQUAL: OpDef = OpDef {
    name: "bool.less_equal",
    summary: "True if `x` is less than or equal to `y`.",
    meaning: overloads!(bool order, Cmp::Le, |o| matches!(o, Some(Ordering::Less | Ordering::Equal))),
    examples: &[ex("bool.less_equal(2, 2)", "true")],
    ..COMPARISON
};

pub(crate) static BOOL_GREATER: OpDef = OpDef {
    name: "bool.greater",
    summary: "True if `x` is greater than `y`.",
    meaning: overloads!(bool order, Cmp::Gt, |o| o == Some(Ordering::Greater)),
    examples: &[ex("bool.greater(2, 1)", "true")],
    ..COMPARISON
};

pub(crate) static BOOL_GREATER_EQUAL: OpDef = OpDef {
    name: "bool.greater_equal",
    summary: "True if `x` is greater than or equal to `y`.",
    meaning: overloads!(bool order, Cmp::Ge, |o| matches!(o, Some(Ordering::Greater | Ordering::Equal))),
    examples: &[ex("bool.greater_equal(1, 2)", "false")],
    ..COMPARISON
};
