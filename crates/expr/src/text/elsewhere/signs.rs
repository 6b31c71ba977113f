//! Words, signs and names of arguments in other languages that are invalid in cembra, each with the hint for what to
//! write instead. The code in the hints uses the same inputs as the hints in `calls`.

use super::{Foreign, ForeignUse, of};

const fn word(names: &'static [&'static str], hint: &'static str) -> Foreign {
    of(ForeignUse::Word, names, hint)
}

const fn argument(names: &'static [&'static str], hint: &'static str) -> Foreign {
    of(ForeignUse::Argument, names, hint)
}

const fn of_tensors(names: &'static [&'static str], hint: &'static str) -> Foreign {
    of(ForeignUse::TensorArgument, names, hint)
}

const fn sign(names: &'static [&'static str], hint: &'static str) -> Foreign {
    of(ForeignUse::Sign, names, hint)
}

/// The hint for the syntax of comments.
pub(in crate::text) const COMMENT: &str = "write `#` at the start of a comment, which ends with its line";
const FUNCTION: &str = "write `core.map(fn(v) = v * 2.0, a)`: a function without a name starts with `fn`";
const UNCHANGED: &str = "write `let next = x + 1.0`: the value of a name cannot change";

/// Words of other languages, and names of arguments, each with the hint for what to write instead. A word is looked up if it is an invalid token, or
/// if the token after it is invalid.
pub(super) const WORDS: &[Foreign] = &[
    word(&["is"], "write `not has(o)` to ask whether a value is missing, `has(o)` whether it is present"),
    word(
        &["like", "ilike", "rlike", "regexp", "similar", "glob", "matches", "contains"],
        "write `starts_with(s, \"a\")`, `strings.contains(s, \"a\")` or `contains_regex(s, \"^a.*z$\")`",
    ),
    word(&["between"], "write `1.0 <= x and x <= 3.0`, or `x in 1.0..3.0`, which leaves the end out"),
    word(&["if", "case", "when", "unless"], "write `if c then 1 else 2`"),
    word(&["elif", "elsif", "elseif"], "write `if x < 1.0 then 1 else if x < 2.0 then 2 else 3`"),
    word(&["end"], "write `if c then 1 else 2`, without a word at the end"),
    word(&["and", "or"], "write `c and x > 1.0`, `c or x > 1.0`: words of the language are in lower case"),
    word(&["not"], "write `not c`: words of the language are in lower case"),
    word(&["in"], "write `x in [1.0, 2.0]`: words of the language are in lower case"),
    word(&["xor"], "write `if c then not (x > 1.0) else x > 1.0`"),
    word(&["mod"], "write `x % z`"),
    word(&["div"], "write `x // z`, which is rounded down"),
    word(
        &["eq", "ne", "lt", "le", "gt", "ge"],
        "write `x == z`, `x < z` or `x >= z`: comparisons are written as signs",
    ),
    word(&["as"], "write `to_int64(x)` or `cast(x, f32)` for another type, `output name = x` for a name"),
    word(
        &["from", "where", "group", "order", "over", "select", "having", "join"],
        "write `output total = x * z`, which is evaluated for each row: a model is not a query",
    ),
    word(
        &["for", "while", "foreach", "loop"],
        "write `a * 2.0`, which is applied to each element; for a loop `core.while_loop(0, fn(i) = i < 10, fn(i) = i + 1)`",
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
        "leave this out: an array has only one axis; for groups write `sum(a, into=edge.group_by(b))`",
    ),
    of_tensors(&["axis", "dim"], "write `tensor.sum(x, 0)`, `tensor.sum(x, (0, 1))`: axes are given without a name"),
    of_tensors(&["keepdims", "keepdim"], "write `tensor.sum(x, 0, keep=true)`"),
    of_tensors(&["dtype"], "write `cast(x, f32)`"),
];

/// Signs of other languages, each with the hint for what to write instead. A sign is one invalid token, or an invalid token together with the token
/// directly before or after it.
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
    sign(&["= "], "write `x * z`, without an equals sign in front"),
    sign(&["=~"], "write `contains_regex(s, \"^a.*z$\")`"),
    sign(&[":="], "write `let total = x * z`"),
    sign(&["+=", "-=", "*=", "/="], UNCHANGED),
    sign(&["^"], "write `**` for a power"),
    sign(&["<<", ">>"], "write `n * 8`, `n // 8`: no operator shifts bits"),
    sign(&["@"], "write `sum(a * b)` for arrays; use tensors with labels for products of matrices"),
    sign(&["?"], "write `if condition then value else other`"),
    sign(&["?:"], "write `o ?? 0.0`"),
    sign(&["->"], FUNCTION),
    sign(&["::"], "write `to_int64(x)` for a number, `strings.parse_int64(s)` for a text"),
    sign(&["[:"], "write `array.slice(a, 1, 2)`: the position, counted from 0, then the number of elements"),
    sign(
        &["[\""],
        "write `lookup(\"a\", {\"a\": 1})` for a table, `r.name` for a field, `L[\"net amount\"]` for an input",
    ),
    sign(&["0-"], "write a day as `date\"2026-01-31\"`, and a moment as `timestamp\"2026-01-31T10:15:00Z\"`"),
    sign(&["."], "write `0.5`, with a digit before the point"),
    sign(&["%"], "write `50.0 / 100.0` for a percentage; `x % z` is the remainder"),
    sign(&["//", "/*"], COMMENT),
    sign(&["''"], "write `\"it's\"` or `'it\\'s'` for a quote inside a text"),
    sign(&["“", "”", "„", "‘", "’", "‚", "«", "»", "`"], "write `\"a\"` or `'a'`, with straight quotes"),
    sign(&["–", "—", "−"], "write `-`"),
    sign(&["×", "·"], "write `*`"),
    sign(&["÷"], "write `/`"),
    sign(&["≤"], "write `<=`"),
    sign(&["≥"], "write `>=`"),
    sign(&["≠"], "write `!=`"),
    sign(&["\u{a0}"], "type this space again: it is a special space character"),
    sign(&["$"], "write only the name of a column, `x`, or `L[\"net amount\"]`, without a sign in front"),
    sign(&["f\""], "write `\"total \" + strings.as_text(x)`"),
    sign(&["r\""], "write `\"a\\\\d\"`, with two backslashes for one"),
];
