//! The rewrite rules on elementwise operators, one entry each. Whether a rule is exact was tested on hardware, with
//! special values and random bits of both float types, and is compared with golden data. A rule that is not exact must
//! be allowed explicitly.

use super::Exactness;
use super::pattern::RuleMatch;

/// A rewrite rule: its replacement takes the place of its pattern.
///
/// A pattern such as `add(multiply(#c, x), x)` consists of operators by name, variables that stand for any node, variables with `#` that stand for
/// constants, and numbers. Operands of commutative operators are matched in either order.
#[derive(Clone, Copy, Debug)]
pub struct RewriteRule<'t> {
    /// The rule's name, under which its uses are counted.
    pub name: &'t str,
    /// The pattern: the expression that the rule replaces.
    pub pattern: &'t str,
    /// The replacement: the expression that takes the place of the pattern.
    pub replacement: &'t str,
    /// A further condition on the matched nodes; `None` if the rule has no further condition.
    pub guard: Option<fn(&RuleMatch<'_>) -> bool>,
    /// The way in which the rule may change results; `Exact` if it does not.
    pub exactness: Exactness,
    /// True if the rule also applies to integers.
    pub integers: bool,
}

impl<'t> RewriteRule<'t> {
    /// Makes an exact rule for floats and truth values.
    #[must_use]
    pub const fn exact(name: &'t str, pattern: &'t str, replacement: &'t str) -> Self {
        RewriteRule { name, pattern, replacement, guard: None, exactness: Exactness::Exact, integers: false }
    }

    /// Makes the rule apply to integers too, in addition to floats.
    #[must_use]
    pub const fn of_integers(self) -> Self {
        RewriteRule { integers: true, ..self }
    }

    /// Makes the rule apply only to matches for which `guard` returns true.
    #[must_use]
    pub const fn when(self, guard: fn(&RuleMatch<'_>) -> bool) -> Self {
        RewriteRule { guard: Some(guard), ..self }
    }

    /// Marks the rule as one that may change results in the way `exactness`.
    #[must_use]
    pub const fn relaxed(self, exactness: Exactness) -> Self {
        RewriteRule { exactness, ..self }
    }
}

fn is_power_of_two(number: f64) -> bool {
    const MANTISSA: u64 = (1 << 52) - 1;
    number.is_normal() && number.to_bits() & MANTISSA == 0
}

/// Returns true if the constant `c` has an exact inverse.
fn has_inverse(found: &RuleMatch<'_>) -> bool {
    let (number, inverse) = (found.number("c"), found.rounded("c", 1.0 / found.number("c")));
    is_power_of_two(number)
        && is_power_of_two(inverse)
        && found.rounded("c", number) == number
        && !is_subnormal(found, inverse)
}

fn is_subnormal(found: &RuleMatch<'_>, number: f64) -> bool {
    if found.scalar("c") == Some(cembra_runtime::Scalar::Float32) {
        !(number as f32).is_normal()
    } else {
        !number.is_normal()
    }
}

/// Returns true if `c * (d * x)` may become `(c * d) * x` without a change of any bit.
fn folds(found: &RuleMatch<'_>) -> bool {
    if is_integer(found) {
        return true;
    }
    let (c, d) = (found.number("c"), found.number("d"));
    let halves = c == 0.5 && d == 0.5;
    let large = is_power_of_two(d) && d >= 1.0 && c.abs() >= 1.0 && found.rounded("c", c * d).is_finite();
    halves || large
}

fn is_integer(found: &RuleMatch<'_>) -> bool {
    found.scalar("c").is_some_and(|scalar| !scalar.is_float())
}

/// Returns true if `c * x + x` may become `(c + 1) * x`: always for integers, and for floats if `c` is 2, 3 or 4.
fn counts(found: &RuleMatch<'_>) -> bool {
    is_integer(found) || [2.0, 3.0, 4.0].contains(&found.number("c"))
}

/// The rewrite rules of the library, in the order in which they are tried.
#[must_use]
pub fn rules() -> &'static [RewriteRule<'static>] {
    use Exactness::{FiniteOnly, Inverses, Reassociate, SignedZeros};
    const RULES: &[RewriteRule<'static>] = &[
        RewriteRule::exact("add_self_to_2x", "add(x, x)", "multiply(2, x)").of_integers(),
        RewriteRule::exact("add_multiple", "add(multiply(#c, x), x)", "multiply(add(#c, 1), x)")
            .of_integers()
            .when(counts),
        RewriteRule::exact("neg_neg", "neg(neg(x))", "x").of_integers(),
        RewriteRule::exact("abs_abs", "abs(abs(x))", "abs(x)").of_integers(),
        RewriteRule::exact("abs_neg", "abs(neg(x))", "abs(x)").of_integers(),
        RewriteRule::exact("abs_square", "abs(multiply(x, x))", "multiply(x, x)"),
        RewriteRule::exact("abs_mul", "multiply(abs(x), abs(y))", "abs(multiply(x, y))"),
        RewriteRule::exact("abs_div", "divide(abs(x), abs(y))", "abs(divide(x, y))"),
        RewriteRule::exact("neg_mul_cancel", "multiply(neg(x), neg(y))", "multiply(x, y)").of_integers(),
        RewriteRule::exact("neg_mul_pull", "multiply(neg(x), y)", "neg(multiply(x, y))").of_integers(),
        RewriteRule::exact("neg_div_cancel", "divide(neg(x), neg(y))", "divide(x, y)"),
        RewriteRule::exact("neg_div_pull", "divide(neg(x), y)", "neg(divide(x, y))"),
        RewriteRule::exact("div_neg_pull", "divide(x, neg(y))", "neg(divide(x, y))"),
        RewriteRule::exact("add_neg_to_sub", "add(neg(x), y)", "subtract(y, x)").of_integers(),
        RewriteRule::exact("sub_neg_to_add", "subtract(x, neg(y))", "add(x, y)").of_integers(),
        RewriteRule::exact("mul_one", "multiply(1, x)", "x").of_integers(),
        RewriteRule::exact("mul_minus_one", "multiply(-1, x)", "neg(x)").of_integers(),
        RewriteRule::exact("div_one", "divide(x, 1)", "x"),
        RewriteRule::exact("div_minus_one", "divide(x, -1)", "neg(x)"),
        RewriteRule::exact("div_pow2_to_mul", "divide(x, #c)", "multiply(divide(1, #c), x)").when(has_inverse),
        RewriteRule::exact("sub_zero", "subtract(x, 0)", "x").of_integers(),
        RewriteRule::exact("add_minus_zero", "add(-0, x)", "x"),
        RewriteRule::exact("add_zero_twice", "add(0, add(0, x))", "add(0, x)").of_integers(),
        RewriteRule::exact("scale_fold_pow2_const", "multiply(#c, multiply(#d, x))", "multiply(multiply(#c, #d), x)")
            .of_integers()
            .when(folds),
        RewriteRule::exact("square_def", "tensor.square(x)", "multiply(x, x)").of_integers(),
        RewriteRule::exact("recip_def", "tensor.recip(x)", "divide(1, x)"),
        RewriteRule::exact("max_self", "tensor.maximum(x, x)", "x").of_integers(),
        RewriteRule::exact("min_self", "tensor.minimum(x, x)", "x").of_integers(),
        RewriteRule::exact("max_again", "tensor.maximum(x, tensor.maximum(x, y))", "tensor.maximum(x, y)")
            .of_integers(),
        RewriteRule::exact("min_again", "tensor.minimum(x, tensor.minimum(x, y))", "tensor.minimum(x, y)")
            .of_integers(),
        RewriteRule::exact("max_to_abs", "tensor.maximum(x, neg(x))", "abs(x)").of_integers(),
        RewriteRule::exact("min_neg_to_max", "tensor.minimum(neg(x), neg(y))", "neg(tensor.maximum(x, y))"),
        RewriteRule::exact("max_neg_to_min", "tensor.maximum(neg(x), neg(y))", "neg(tensor.minimum(x, y))"),
        RewriteRule::exact("relu_relu", "tensor.relu(tensor.relu(x))", "tensor.relu(x)").of_integers(),
        RewriteRule::exact("max_zero_to_relu", "tensor.maximum(0, x)", "tensor.relu(x)").of_integers(),
        RewriteRule::exact("floor_floor", "floor(floor(x))", "floor(x)").of_integers(),
        RewriteRule::exact("ceil_ceil", "ceil(ceil(x))", "ceil(x)").of_integers(),
        RewriteRule::exact("trunc_trunc", "tensor.trunc(tensor.trunc(x))", "tensor.trunc(x)").of_integers(),
        RewriteRule::exact("round_round", "tensor.round(tensor.round(x))", "tensor.round(x)").of_integers(),
        RewriteRule::exact("ceil_neg_floor", "ceil(neg(x))", "neg(floor(x))").of_integers(),
        RewriteRule::exact("floor_neg_ceil", "floor(neg(x))", "neg(ceil(x))").of_integers(),
        RewriteRule::exact("where_same", "tensor.where(c, z, z)", "z").of_integers(),
        RewriteRule::exact("where_true", "tensor.where(#c, x, y)", "x")
            .of_integers()
            .when(|found| found.number("c") == 1.0),
        RewriteRule::exact("where_false", "tensor.where(#c, x, y)", "y")
            .of_integers()
            .when(|found| found.number("c") == 0.0),
        RewriteRule::exact("where_not", "tensor.where(bool.logical_not(c), x, y)", "tensor.where(c, y, x)")
            .of_integers(),
        RewriteRule::exact("not_not", "bool.logical_not(bool.logical_not(c))", "c").of_integers(),
        RewriteRule::exact("gt_to_lt", "bool.greater(x, y)", "bool.less(y, x)").of_integers(),
        RewriteRule::exact("ge_to_le", "bool.greater_equal(x, y)", "bool.less_equal(y, x)").of_integers(),
        RewriteRule::exact("add_zero", "add(0, x)", "x").relaxed(SignedZeros),
        RewriteRule::exact("zero_sub", "subtract(0, x)", "neg(x)").relaxed(SignedZeros),
        RewriteRule::exact("neg_of_sub", "neg(subtract(x, y))", "subtract(y, x)").relaxed(SignedZeros),
        RewriteRule::exact("neg_add_neg", "subtract(neg(x), y)", "neg(add(x, y))").relaxed(SignedZeros),
        RewriteRule::exact("sub_self", "subtract(x, x)", "0").relaxed(FiniteOnly),
        RewriteRule::exact("div_self", "divide(x, x)", "1").relaxed(FiniteOnly),
        RewriteRule::exact("mul_zero", "multiply(0, x)", "0").relaxed(FiniteOnly),
        RewriteRule::exact("max_absorb", "tensor.maximum(x, tensor.minimum(x, y))", "x").relaxed(FiniteOnly),
        RewriteRule::exact("div_const_to_mul", "divide(x, #c)", "multiply(divide(1, #c), x)").relaxed(Reassociate),
        RewriteRule::exact("scale_fold", "multiply(#c, multiply(#d, x))", "multiply(multiply(#c, #d), x)")
            .relaxed(Reassociate),
        RewriteRule::exact("cancel_add_sub", "subtract(add(x, y), y)", "x").relaxed(Reassociate),
        RewriteRule::exact("div_div", "divide(divide(x, y), z)", "divide(x, multiply(y, z))").relaxed(Reassociate),
        RewriteRule::exact("sqrt_square", "sqrt(multiply(x, x))", "abs(x)").relaxed(Inverses),
        RewriteRule::exact("log_exp", "log(exp(x))", "x").relaxed(Inverses),
        RewriteRule::exact("sqrt_mul", "multiply(sqrt(x), sqrt(y))", "sqrt(multiply(x, y))").relaxed(Inverses),
    ];
    RULES
}
