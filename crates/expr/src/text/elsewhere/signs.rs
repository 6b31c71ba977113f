//! Words and signs of other languages that are invalid here, and names of arguments. The hints use the same inputs as the hints in `calls`.

use super::{Foreign, ForeignUse, of};

const fn word(names: &'static [&'static str], form: &'static str) -> Foreign {
    of(ForeignUse::Word, names, form)
}

const fn argument(names: &'static [&'static str], form: &'static str) -> Foreign {
    of(ForeignUse::Argument, names, form)
}

const fn of_tensors(names: &'static [&'static str], form: &'static str) -> Foreign {
    of(ForeignUse::TensorArgument, names, form)
}

const fn sign(names: &'static [&'static str], form: &'static str) -> Foreign {
    of(ForeignUse::Sign, names, form)
}

/// The hint for the syntax of comments.
pub(in crate::text) const COMMENT: &str = "a comment begins with `#`, and ends with its line";
const FUNCTION: &str = "write `core.map(fn(v) = v * 2.0, a)`: a function without a name begins with `fn`";
const UNCHANGED: &str = "a name keeps its value: write `let next = x + 1.0`";

/// Words of other languages that are invalid where they stand or make the next token invalid, and names of arguments, each with the hint for what
/// to write.
pub(super) const WORDS: &[Foreign] = &[
    word(&["is"], "write `not has(o)` to ask whether a value is missing, `has(o)` whether there is one"),
    word(
        &["like", "ilike", "rlike", "regexp", "similar", "glob", "matches", "contains"],
        "write `starts_with(s, \"a\")`, `strings.contains(s, \"a\")` or `contains_regex(s, \"^a.*z$\")`",
    ),
    word(&["between"], "write `1.0 <= x and x <= 3.0`, or `x in 1.0..3.0`, which leaves the end out"),
    word(&["if", "case", "when", "unless"], "write `if c then 1 else 2`"),
    word(&["elif", "elsif", "elseif"], "write `if x < 1.0 then 1 else if x < 2.0 then 2 else 3`"),
    word(&["end"], "a condition ends with its value: write `if c then 1 else 2`"),
    word(&["and", "or"], "words of the language are in lower case: write `c and x > 1.0`, `c or x > 1.0`"),
    word(&["not"], "words of the language are in lower case: write `not c`"),
    word(&["in"], "words of the language are in lower case: write `x in [1.0, 2.0]`"),
    word(&["xor"], "write `if c then not (x > 1.0) else x > 1.0`"),
    word(&["mod"], "write `x % z`"),
    word(&["div"], "write `x // z`, which is rounded down"),
    word(&["eq", "ne", "lt", "le", "gt", "ge"], "comparisons are signs: write `x == z`, `x < z` or `x >= z`"),
    word(&["as"], "write `to_int64(x)` or `cast(x, f32)` for another type, `output name = x` for a name"),
    word(
        &["from", "where", "group", "order", "over", "select", "having", "join"],
        "a model is no query: write `output total = x * z`, which is evaluated for each row",
    ),
    word(
        &["for", "while", "foreach", "loop"],
        "operators are applied to each element: write `a * 2.0`; a loop is `core.while_loop(0, fn(i) = i < 10, fn(i) = i + 1)`",
    ),
    word(&["lambda"], FUNCTION),
    word(&["def", "function", "func", "fun", "sub", "macro"], "write `fn twice(v) = v * 2`"),
    word(&["var", "const", "val", "set", "define", "local", "auto"], "write `let total = x * z`"),
    word(&["return", "yield", "print"], "write `output total = x * z`"),
    word(&["import", "include", "require"], "write `use \"common.cem\"`"),
    word(
        &["int", "float", "double", "string", "bool"],
        "write `let total = x * z`, or with a type `let total: f64 = x * z`",
    ),
    word(&["interval"], "write `d + 30` for 30 days, `m + 1h` for an hour"),
    word(&["date"], "write `date\"2026-01-31\"`, without a space"),
    word(&["timestamp"], "write `timestamp\"2026-01-31T10:15:00Z\"`, without a space"),
    argument(
        &["axis", "dim", "keepdims", "keepdim"],
        "an array has one axis: leave this out; of groups it is `sum(a, into=edge.group_by(b))`",
    ),
    of_tensors(&["axis", "dim"], "axes follow by position: write `tensor.sum(x, 0)`, `tensor.sum(x, (0, 1))`"),
    of_tensors(&["keepdims", "keepdim"], "write `tensor.sum(x, 0, keep=true)`"),
    of_tensors(&["dtype"], "write `cast(x, f32)`"),
];

/// Signs of other languages: an invalid token, alone or together with the token directly before or after it.
pub(super) const SIGNS: &[Foreign] = &[
    sign(&["&&"], "write `and`"),
    sign(&["||"], "write `or`; texts are joined by `+`"),
    sign(&["!"], "write `not` for negation, `!=` for inequality"),
    sign(&["~"], "write `not`"),
    sign(&["<>"], "write `!=`"),
    sign(&["=>"], "write `>=`; a function without a name is `fn(v) = v * 2.0`"),
    sign(&["=<"], "write `<=`"),
    sign(&["==="], "write `==`"),
    sign(&["!=="], "write `!=`"),
    sign(&["="], "write `==` to compare, `let name = ..` to define"),
    sign(&["= "], "a formula has no equals sign in front: write `x * z`"),
    sign(&["=~"], "write `contains_regex(s, \"^a.*z$\")`"),
    sign(&[":="], "write `let total = x * z`"),
    sign(&["+=", "-=", "*=", "/="], UNCHANGED),
    sign(&["^"], "write `**` for a power"),
    sign(&["<<", ">>"], "nothing shifts bits: write `n * 8`, `n // 8`"),
    sign(&["@"], "write `sum(a * b)` for arrays; products of matrices are of tensors, and written by labels"),
    sign(&["?"], "write `if condition then value else other`"),
    sign(&["?:"], "write `o ?? 0.0`"),
    sign(&["->"], FUNCTION),
    sign(&["::"], "write `to_int64(x)` for a number, `strings.parse_int64(s)` for a text"),
    sign(&["[:"], "write `array.slice(a, 1, 2)`: from a position, counted from 0, so many elements"),
    sign(
        &["[\""],
        "write `lookup(\"a\", {\"a\": 1})` for a table, `r.name` for a field, `L[\"net amount\"]` for an input",
    ),
    sign(&["0-"], "a day is written `date\"2026-01-31\"`, and a moment `timestamp\"2026-01-31T10:15:00Z\"`"),
    sign(&["."], "write `0.5`, with a digit before the point"),
    sign(&["%"], "a percentage is `50.0 / 100.0`, and `x % z` the remainder"),
    sign(&["//", "/*"], COMMENT),
    sign(&["''"], "a quote inside of a text is written `\"it's\"` or `'it\\'s'`"),
    sign(&["“", "”", "„", "‘", "’", "‚", "«", "»", "`"], "quotes are straight: write `\"a\"` or `'a'`"),
    sign(&["–", "—", "−"], "write `-`"),
    sign(&["×", "·"], "write `*`"),
    sign(&["÷"], "write `/`"),
    sign(&["≤"], "write `<=`"),
    sign(&["≥"], "write `>=`"),
    sign(&["≠"], "write `!=`"),
    sign(&["\u{a0}"], "this is no plain space: type it again"),
    sign(&["$"], "names have no such sign: a column is an input by its name, `x`, or `L[\"net amount\"]`"),
    sign(&["f\""], "write `\"total \" + strings.as_text(x)`"),
    sign(&["r\""], "write `\"a\\\\d\"`, with two backslashes for one"),
];
