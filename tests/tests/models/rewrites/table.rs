//! The rewrites at work, and what only looks like one.

/// A rewrite at work: its name, inputs, an expression it changes, and the expression that stands for what comes out.
pub(crate) type Example = (&'static str, &'static str, &'static str, &'static str);

pub(crate) const EXAMPLES: &[Example] = &[
    // Conditionals.
    ("core.where(literal, a, b) -> a or b", "x: f64, y: f64", "where(present, x, y)", "x"),
    ("core.where(literal, a, b) -> a or b", "x: i32?, y: f64", "where(missing[unit], x, y)", "to_optional(y)"),
    ("core.where(literal, a, b) -> a or b", "u: unit, x: f64, y: f64", "where(u, x, y)", "x"),
    ("core.where(literal, a, b) -> a or b", "x: f64, y: f64", "where(false, x, y)", "y"),
    (TO_OPTIONAL_OF_WHERE, "m: unit?, x: i32", "to_optional(where(m, x, 7))", "where(m, to_optional(x), i32?{7})"),
    (
        TO_OPTIONAL_OF_WHERE,
        "m: unit?, x: f64, y: f64?",
        "where(m, 0.5f64, x) + y",
        "where(m, f64?{0.5}, to_optional(x)) + y",
    ),
    (HAS_OF_WHERE, "m: unit?, x: f32?", "has(where(m, x, missing))", "where(m, has(x), missing[unit])"),
    (HAS_OF_WHERE, "m: unit?, t: text?", "has(where(m, text{'a'}, t))", "where(m, present, has(t))"),
    (WHERE_OF_MASKS, "m: unit?, x: f64, y: f64", "x & m | y & (not m)", "to_optional(where(m, x, y))"),
    (WHERE_OF_PRESENCE_AND_OR, "m: unit?, x: i32?, y: i32", "x & m | y & (not m)", "where(m, x, to_optional(y))"),
    (
        WHERE_OF_PRESENCE_AND_OR,
        "v: text?, x: i32, y: i32?",
        "x & has(v) | y & (not has(v))",
        "where(has(v), to_optional(x), y)",
    ),
    (
        WHERE_OF_PRESENCE_AND_OR,
        "m: unit?, x: f64?, y: f64",
        "core._presence_and_or(x, m, y & (not m))",
        "where(m, x, to_optional(y))",
    ),
    (
        WHERE_OF_PRESENCE_AND_OR,
        "m: unit?, x: f64?, y: f64?",
        "core._presence_and_or(x, m, y & (not m))",
        "where(m, x, y)",
    ),
    ("bool.logical_if(c, true, false, m) -> c | m", "c: bool?, m: bool", "logical_if(c, true, false, m)", "c | m"),
    ("bool.logical_if(c, true, false, m) -> c | m", "c: bool?, m: bool?", "logical_if(c, true, false, m)", "c | m"),
    (IF_OR_FALSE, "c: bool?, x: i32, y: i32", "logical_if(c | false, x, y, 5)", "where(c == true, x, y)"),
    (
        IF_OR_FALSE,
        "c: bool?, x: f32?, y: f32",
        "logical_if(c | bool?{false}, x, y, y)",
        "where(c == true, x, to_optional(y))",
    ),
    (IF_OR_TRUE, "c: bool?, x: i32, y: i32", "logical_if(c | true, x, y, 5)", "where(c == false, y, x)"),
    (
        IF_PLAIN,
        "c: bool, x: f64, y: f64, m: f64?",
        "logical_if(c, x, y, m)",
        "where(c == true, to_optional(x), to_optional(y))",
    ),
    (IF_PLAIN, "x: f64, y: f64", "logical_if(bool.less(x, y), x, y, 0.5)", "where(x < y, x, y)"),
    (IF_SAME, "c: bool?, x: f64, y: f64", "logical_if(c, x, y, y)", "where(c == true, x, y)"),
    // Presence.
    ("core.has(plain) -> unit", "x: f64", "has(x)", "unit{}"),
    ("core.has(always present optional) -> present", "x: i32", "has(to_optional(x))", "present"),
    ("core.has(always present optional) -> present", "t: text", "has(cast(t, text?)) & present", "present"),
    ("core.has(mask) -> mask", "m: unit?", "has(m)", "m"),
    ("core.has(mask) -> mask", "x: f64", "has(x > 0)", "x > 0"),
    ("core.has(a | b) -> core.has(a) | core.has(b)", "x: f32?", "has(x | f32?{2})", "has(x) | present"),
    ("core.has(a & m) -> core.has(a) & m", "x: f32?, m: unit?", "has(x & m)", "has(x) & m"),
    ("core.has(a & m) -> core.has(a) & m", "x: text, m: unit?", "has(x & m)", "m"),
    (HAS_OF_PRESENCE_AND_OR, "m: unit?, y: i64?", "has(core._presence_and_or(i64{7}, m, y))", "m | has(y)"),
    (
        HAS_OF_PRESENCE_AND_OR,
        "x: i64?, m: unit?",
        "has(core._presence_and_or(x, m, i64?{7}))",
        "core._presence_and_or(has(x), m, present)",
    ),
    ("core.presence_not(core.has(x)) -> core.presence_not(x)", "x: f32?", "not has(x)", "presence_not(x)"),
    ("core.presence_not(core.has(x)) -> core.presence_not(x)", "t: text?", "not has(t)", "presence_not(t)"),
    ("core.presence_not(always present) -> missing", "x: i64", "presence_not(x)", "missing[unit]"),
    ("core.presence_not(always present) -> missing", "x: i64", "presence_not(to_optional(x))", "missing[unit]"),
    (NOT_OF_MASKED, "x: f64, m: unit?", "presence_not(x & m)", "presence_not(m)"),
    (NOT_OF_MASKED, "m: unit?", "presence_not(i32?{5} & m)", "presence_not(m)"),
    ("core.presence_and(a, present) -> a", "x: f64, u: unit", "x & u", "x"),
    ("core.presence_and(a, present) -> a", "x: f64?, u: unit", "x & u", "x"),
    ("core.presence_and(a, present) -> a", "x: f64", "x & present", "to_optional(x)"),
    ("core.presence_and(a, present) -> a", "x: text?", "x & present", "x"),
    ("core.presence_and(present mask, m) -> m", "m: unit?", "unit{} & m", "m"),
    ("core.presence_and(present mask, m) -> m", "x: i32", "present & (x > 1)", "x > 1"),
    (MASKED_OPTIONAL, "x: f32, m: unit?", "to_optional(x) & m", "x & m"),
    ("core.presence_or(a, b) -> a, for a plain a", "x: f64, y: f64?", "x ?? y", "x"),
    ("core.presence_or(a, b) -> a, for a plain a", "x: i32, y: f64", "x ?? y", "to_float64(x)"),
    ("core.presence_or(missing, b) -> b", "y: f32?", "missing ?? y", "y"),
    ("core.presence_or(missing, b) -> b", "y: text", "missing[text] | y", "y"),
    ("core.presence_or(a, missing) -> a", "x: f64?", "x ?? missing", "x"),
    (FACTORED, "x: f64, a: unit?, b: unit?", "x & a | x & b", "x & (a | b)"),
    (FACTORED, "x: f64?, a: unit?, b: unit?", "x & a | x & b", "x & (a | b)"),
    (MASKED_AFTER, "d: f64?, x: f64, a: unit?, b: unit?", "(d | x & a) | x & b", "d | x & (a | b)"),
    (
        MASKED_AFTER,
        "y: f64?, c: unit?, x: f64?, a: unit?, b: unit?",
        "(y & c | x & a) | x & b",
        "core._presence_and_or(y, c, x & (a | b))",
    ),
    (
        "(a & c) | b -> core._presence_and_or(a, c, b)",
        "x: f64?, m: unit?, y: f64",
        "x & m | y",
        "core._presence_and_or(x, m, y)",
    ),
    (
        "(a & c) | b -> core._presence_and_or(a, c, b)",
        "x: text, m: unit?, y: text?",
        "x & m | y",
        "core._presence_and_or(x, m, y)",
    ),
    (
        "(a & c) | b -> core._presence_and_or(a, c, b)",
        "m: unit?, n: unit?, o: unit?",
        "m and n or o",
        "core._presence_and_or(m, n, o)",
    ),
    (FACTORED, "x: f64?, a: unit?, b: unit?", "core._presence_and_or(x, a, x & b)", "x & (a | b)"),
    (FACTORED, "x: i32, a: unit?, b: unit?", "core._presence_and_or(x, a, x & b)", "x & (a | b)"),
    (
        "core._presence_and_or(a, present, b) -> a | b",
        "x: f64?, y: f64",
        "core._presence_and_or(x, present, y)",
        "x | y",
    ),
    (
        "core._presence_and_or(a, present, b) -> a | b",
        "x: f64?, u: unit, y: f64?",
        "core._presence_and_or(x, u, y)",
        "x | y",
    ),
    (
        "core._presence_and_or(present mask, c, b) -> c | b",
        "m: unit?, n: unit?",
        "core._presence_and_or(present, m, n)",
        "m | n",
    ),
    (
        "core._presence_and_or(present mask, c, b) -> c | b",
        "u: unit, m: unit?, v: unit",
        "core._presence_and_or(u, m, v)",
        "m | v",
    ),
    ("core.to_optional(optional) -> optional", "x: bool?", "to_optional(x)", "x"),
    ("core.to_optional(optional) -> optional", "x: f64", "to_optional(to_optional(x))", "to_optional(x)"),
    (OPTIONAL_DEFAULT, "x: f64?, y: f64?", "(x ?? 0.5f64) + y", "(x | f64?{0.5}) + y"),
    (
        OPTIONAL_PRESENCE_AND_OR,
        "x: i32?, m: unit?",
        "to_optional(core._presence_and_or(x, m, 7))",
        "core._presence_and_or(x, m, i32?{7})",
    ),
    (
        OPTIONAL_PRESENCE_AND_OR,
        "m: unit?, y: i32",
        "to_optional(core._presence_and_or(7, m, y))",
        "core._presence_and_or(i32?{7}, m, to_optional(y))",
    ),
    // Booleans.
    ("bool.logical_not(bool.logical_not(a)) -> a", "b: bool", "not not b", "b"),
    ("bool.logical_not(bool.logical_not(a)) -> a", "b: bool?", "not not not b", "not b"),
    (NOT_EQUAL, "x: f64, y: f64", "not bool.equal(x, y)", "bool.not_equal(x, y)"),
    (NOT_EQUAL, "x: text?, y: text", "not bool.equal(x, y)", "bool.not_equal(x, y)"),
    (NOT_NOT_EQUAL, "x: f32?, y: f32?", "not bool.not_equal(x, y)", "bool.equal(x, y)"),
    (NOT_LESS, "x: i32, y: i32?", "not bool.less(x, y)", "bool.greater_equal(x, y)"),
    (NOT_LESS, "x: u64, y: u64", "not bool.less(x, y)", "bool.greater_equal(x, y)"),
    (NOT_LESS_FLOAT, "x: f64, y: f64", "not bool.less(x, y)", "bool.greater_equal(x, y)"),
    (NOT_LESS_EQUAL, "x: text, y: text", "not bool.less_equal(x, y)", "bool.greater(x, y)"),
    (NOT_LESS_EQUAL, "x: bool?, y: bool", "not bool.less_equal(x, y)", "bool.greater(x, y)"),
    (NOT_LESS_EQUAL_FLOAT, "x: f64?, y: f64", "not bool.less_equal(x, y)", "bool.greater(x, y)"),
    ("core.equal(true, a) -> core.equal(a, true)", "b: bool", "true == b", "b == true"),
    ("core.equal(true, a) -> core.equal(a, true)", "b: bool?", "true == b", "b == true"),
    ("core.equal(bool.cmp(a, b), true) -> core.cmp(a, b)", "x: f64, y: f64", "bool.less(x, y) == true", "x < y"),
    ("core.equal(bool.cmp(a, b), true) -> core.cmp(a, b)", "x: f64, y: f64", "bool.less_equal(x, y) == true", "x <= y"),
    ("core.equal(bool.cmp(a, b), true) -> core.cmp(a, b)", "x: f32, y: f32", "bool.equal(x, y) == true", "x == y"),
    ("core.equal(bool.cmp(a, b), true) -> core.cmp(a, b)", "x: f32, y: f32", "bool.not_equal(x, y) == true", "x != y"),
    ("core.equal(bool.cmp(a, b), true) -> core.cmp(a, b)", "x: i32?, y: i32", "true == bool.greater(x, y)", "x > y"),
    (
        "core.equal(bool.cmp(a, b), true) -> core.cmp(a, b)",
        "x: f64?, y: f64?",
        "bool.greater_equal(x, y) and present",
        "x >= y",
    ),
    (
        "core.equal(bool.cmp(a, b), true) -> core.cmp(a, b)",
        "x: f64, y: f64",
        "to_optional(bool.less(x, y)) == true",
        "x < y",
    ),
    (
        "core.equal(bool.cmp(a, b), true) -> core.cmp(a, b)",
        "x: text, y: text",
        "where(bool.less(x, y), 1, 2)",
        "where(x < y, 1, 2)",
    ),
    (BOTH_TRUE, "x: f64, y: f64, b: bool?", "where(bool.less(x, y) and b, 1, 2)", "where((x < y) & (b == true), 1, 2)"),
    (BOTH_TRUE, "b: bool?", "(b and true) == true", "b == true"),
    (EITHER_TRUE, "x: f64?, y: f64, b: bool", "(b or bool.equal(x, y)) == true", "(to_optional(b) == true) | (x == y)"),
    // Arithmetic.
    ("a + 0 -> a, for integers", "x: i32?", "0 + x", "x"),
    ("a + 0 -> a, for integers", "x: i64", "x + 0", "x"),
    ("a + 0 -> a, for floats", "x: f64", "x + 0", "x"),
    ("a + 0 -> a, for floats", "x: f32?", "0.0 + x", "x"),
    ("a * 1 -> a", "x: f32", "1 * x", "x"),
    ("a * 1 -> a", "x: f64?", "x * 1", "x"),
    ("a * 1 -> a", "x: i64?", "x * 1", "x"),
    (PAIRS_OF_INTEGERS, "a: i64?, b: i64, c: i64", "(a + b) + (c + a)", "math._add4(a, b, c, a)"),
    (PAIRS_OF_FLOATS, "a: f64, b: f64, c: f64", "(a + b) + (c + a)", "math._add4(a, b, c, a)"),
    (FROM_THE_LEFT, "a: f32, b: f32?, c: f32", "a + b + c + a", "math._add4(a, b, c, a)"),
    (
        FROM_THE_LEFT,
        "a: i32, b: i32, c: i32",
        "a + b + c + a + a + b + c",
        "math._add4(math._add4(a, b, c, a), a, b, c)",
    ),
    (FROM_THE_RIGHT_INTEGERS, "a: i32, b: i32, c: i32?", "a + (b + (c + a))", "math._add4(a, b, c, a)"),
    (FROM_THE_RIGHT_FLOATS, "a: f64, b: f64, c: f64", "a + (b + (c + a))", "math._add4(a, b, c, a)"),
    ("math.pow(x, 0.5) -> math._pow_half(x)", "x: f64", "x ** 0.5", "math._pow_half(x)"),
    ("math.pow(x, 0.5) -> math._pow_half(x)", "x: f32", "x ** 0.5", "math._pow_half(x)"),
    ("math.pow(x, 0.5) -> math._pow_half(x)", "x: f64?", "x ** 0.5f32", "math._pow_half(x)"),
    ("math.pow(x, 0.5) -> math._pow_half(x)", "x: i32", "x ** 0.5", "math._pow_half(to_float32(x))"),
    // Structure.
    ("core.get_nth(core.make_tuple(.., e, ..)) -> e", "x: f64, y: f32", "(x, y * 2, x).0", "x"),
    ("core.get_nth(core.make_tuple(.., e, ..)) -> e", "x: f64, y: i32?", "((x, y), x).0.1", "y"),
];

pub(crate) const TO_OPTIONAL_OF_WHERE: &str =
    "core.to_optional(core.where(c, a, b)) -> core.where(c, core.to_optional(a), core.to_optional(b))";
pub(crate) const HAS_OF_WHERE: &str = "core.has(core.where(c, a, b)) -> core.where(c, core.has(a), core.has(b))";
pub(crate) const WHERE_OF_MASKS: &str = "(a & c) | (b & not c) -> core.to_optional(core.where(c, a, b))";
pub(crate) const WHERE_OF_PRESENCE_AND_OR: &str = "core._presence_and_or(a, c, b & not c) -> core.where(c, a, b)";
pub(crate) const IF_OR_FALSE: &str = "bool.logical_if(c | false, a, b, m) -> core.where(c == true, a, b)";
pub(crate) const IF_OR_TRUE: &str = "bool.logical_if(c | true, a, b, m) -> core.where(c == false, b, a)";
pub(crate) const IF_PLAIN: &str = "bool.logical_if(core.to_optional(c), a, b, m) -> core.where(c == true, a, b)";
pub(crate) const IF_SAME: &str = "bool.logical_if(c, a, b, b) -> core.where(c == true, a, b)";
pub(crate) const HAS_OF_PRESENCE_AND_OR: &str =
    "core.has(core._presence_and_or(a, c, b)) -> core._presence_and_or(core.has(a), c, core.has(b))";
pub(crate) const NOT_OF_MASKED: &str = "core.presence_not(a & m) -> core.presence_not(m), for an always present a";
pub(crate) const MASKED_OPTIONAL: &str = "core.presence_and(core.to_optional(a), m) -> core.presence_and(a, m)";
pub(crate) const MASKED_AFTER: &str = "(d | (x & a)) | (x & b) -> d | (x & (a | b))";
pub(crate) const FACTORED: &str = "core._presence_and_or(x, a, x & b) -> x & (a | b)";
pub(crate) const OPTIONAL_DEFAULT: &str = "core.to_optional(a | literal) -> a | core.to_optional(literal)";
pub(crate) const OPTIONAL_PRESENCE_AND_OR: &str =
    "core.to_optional(core._presence_and_or(a, c, b)) -> core._presence_and_or(a, c, core.to_optional(b))";
pub(crate) const NOT_EQUAL: &str = "bool.logical_not(bool.equal(a, b)) -> bool.not_equal(a, b)";
pub(crate) const NOT_NOT_EQUAL: &str = "bool.logical_not(bool.not_equal(a, b)) -> bool.equal(a, b)";
pub(crate) const NOT_LESS: &str = "bool.logical_not(bool.less(a, b)) -> bool.greater_equal(a, b), but for floats";
pub(crate) const NOT_LESS_FLOAT: &str = "bool.logical_not(bool.less(a, b)) -> bool.greater_equal(a, b), for floats";
pub(crate) const NOT_LESS_EQUAL: &str = "bool.logical_not(bool.less_equal(a, b)) -> bool.greater(a, b), but for floats";
pub(crate) const NOT_LESS_EQUAL_FLOAT: &str =
    "bool.logical_not(bool.less_equal(a, b)) -> bool.greater(a, b), for floats";
pub(crate) const BOTH_TRUE: &str =
    "core.equal(bool.logical_and(a, b), true) -> core.presence_and(a == true, b == true)";
pub(crate) const EITHER_TRUE: &str =
    "core.equal(bool.logical_or(a, b), true) -> core.presence_or(a == true, b == true)";
pub(crate) const PAIRS_OF_INTEGERS: &str = "(a + b) + (c + d) -> math._add4(a, b, c, d), for integers";
pub(crate) const PAIRS_OF_FLOATS: &str = "(a + b) + (c + d) -> math._add4(a, b, c, d), for floats";
pub(crate) const FROM_THE_LEFT: &str = "((a + b) + c) + d -> math._add4(a, b, c, d)";
pub(crate) const FROM_THE_RIGHT_INTEGERS: &str = "a + (b + (c + d)) -> math._add4(a, b, c, d), for integers";
pub(crate) const FROM_THE_RIGHT_FLOATS: &str = "a + (b + (c + d)) -> math._add4(a, b, c, d), for floats";

/// Expressions that look like the pattern of a rewrite and must stay as they are.
pub(crate) const UNTOUCHED: &[(&str, &str)] = &[
    ("x: f64", "x ** 0.25"),
    ("x: f64", "0.5 ** x"),
    ("x: f64?, m: unit?", "x & m"),
    ("x: f64?, y: f64", "x ?? y"),
    ("x: f64?", "has(x)"),
    ("x: f64?, y: f64?", "has(x | y)"),
    ("x: f64?, y: f64?, m: unit?", "has(where(m, x, y))"),
    ("x: f64, y: f64, m: unit?", "to_optional(where(m, x, y))"),
    ("m: unit?, x: f64, y: f64", "where(m, x, y)"),
    ("x: f64?, m: unit?", "presence_not(x & m)"),
    ("x: f64, y: f64, a: unit?, b: unit?", "core._presence_and_or(x, a, y & b)"),
    ("c: bool?, x: i32, y: i32", "logical_if(c, x, y, 5)"),
    ("x: i32, y: i32", "logical_if(bool?{true}, x, y, 5)"),
    ("c: bool?, m: bool", "logical_if(c, false, true, m)"),
    ("x: i32, y: i32?", "has(x + y)"),
    ("b: bool", "not b"),
    ("b: bool, c: bool", "b == c"),
    ("b: bool", "b == false"),
    ("b: bool, c: bool", "(b and c) == true"),
    ("x: f64, y: f64", "bool.less(x, y) == false"),
    ("x: u64, y: u64", "bool.less(x, y) == true"),
    ("x: f64", "x + -0.0"),
    ("x: f64", "x * -1"),
    ("x: f64", "x - 0"),
    ("x: f64, y: f64", "not bool.greater(x, y)"),
    ("a: i32, b: i32, c: i32", "a + b + c"),
    ("t: (f64, i32)", "t.0"),
];
