//! Tests of the errors for invalid texts: code, message, place and hint of each, several errors in one text, limits,
//! and hostile texts.

use crate::common::Operators;
use cembra_expr::{parse, parse_type, parse_value};
use cembra_value::{Code, Diagnostic, Error, Limits, Span};

fn problems(source: &str) -> Error {
    match parse(source, &Operators, &Limits::default()) {
        Err(problems) => problems,
        Ok(program) => panic!("{source}\nis understood as\n{}", cembra_expr::print(&program, &Operators)),
    }
}

/// The code of a problem, the text at its place, its message, and its first hint.
fn told<'a>(problem: &'a Diagnostic, source: &'a str) -> (Code, &'a str, &'a str, &'a str) {
    let place = problem.span().map_or("-", |span| span.text(source));
    (problem.code(), place, problem.message(), problem.hints().first().map_or("", String::as_str))
}

#[track_caller]
fn one(source: &str, code: Code, place: &str, message: &str, hint: &str) {
    let found = problems(source);
    assert_eq!(told(&found.diagnostics()[0], source), (code, place, message, hint), "{source}");
    assert_eq!(found.diagnostics().len(), 1, "{source}\n{found}");
}

#[test]
fn written_numbers_that_do_not_fit() {
    let month = "30 * 24 * 3600 * 1000000";
    let is_month = "`30 * 24 * 3600 * 1000000` is 2592000000000, which is too large for i32";
    one(&format!("t + {month}"), Code::Literal, month, is_month, "write `30i64` for `30`");
    // Brackets, nothing but one error for what is made of it, and the place of the innermost that does not fit.
    let text = "1 + ((2_000_000_000) + -(-2_000_000_000)) * 5";
    let (place, exact) = ("(2_000_000_000) + -(-2_000_000_000)", "4000000000, which is too large for i32");
    one(text, Code::Literal, place, &format!("`{place}` is {exact}"), "write `2_000_000_000i64` for `2_000_000_000`");
    for (text, exact) in [
        ("2147483647 + 1", "2147483648"),
        ("-2147483647 - 2", "-2147483649"),
        ("46341 * 46341", "2147488281"),
        ("-(-2147483648)", "2147483648"),
        ("--2147483648", "2147483648"),
    ] {
        let found = problems(text);
        assert_eq!(found.diagnostics()[0].message(), format!("`{text}` is {exact}, which is too large for i32"));
    }
    let long = "9223372036854775807i64 * -9223372036854775808";
    let found = problems(long);
    let exact = format!("`{long}` is -85070591730234615856620279821087277056, which is too large for i64");
    let hint = "use f64, which rounds the value: give the first number the suffix `f64`";
    assert_eq!(told(&found.diagnostics()[0], long), (Code::Literal, long, &*exact, hint));
    let power = "`10 ** 39` is too large for i32";
    one("x * (10 ** 39)", Code::Literal, "10 ** 39", power, "write `10.0` for `10`");
    let power = "`7 ** 20` is 79792266297612001, which is too large for i32";
    one("7 ** 20", Code::Literal, "7 ** 20", power, "write `7i64` for `7`");
    let power = "`(7i64) ** 30` is 22539340290692258087863249, which is too large for i64";
    one("(7i64) ** 30", Code::Literal, "(7i64) ** 30", power, "write the first number with a fraction, as in `2.0`");
    one(
        "INT32{2} * 2000000000",
        Code::Literal,
        "INT32{2} * 2000000000",
        "`INT32{2} * 2000000000` is 4000000000, which is too large for i32",
        "give the first number the suffix `i64`",
    );
    for fits in [
        "2147483646 + 1",
        "-2147483647 - 1",
        "46340 * 46340",
        "-(2147483648)",
        "x * 2147483647 * 2",
        "30i64 * 24 * 3600 * 1000000",
        "7 // 2 * 2147483647",
        "math.add(2147483647, 1)",
        "2 ** 30",
        "(-2) ** 31",
        "2i64 ** 62",
        "(-1) ** 9223372036854775807",
        "10 ** -40",
        "0 ** -1",
        "2.5 * 2147483647 * 2147483647",
        "let a = 2147483647; a * 2",
        "(let a = 2147483647 in a * 2)",
        "fn f(x) = x * 2; f(2147483647)",
    ] {
        assert!(parse(fits, &Operators, &Limits::default()).is_ok(), "{fits}");
    }
    // A declared type reaches them, but no call and no name.
    for fits in [
        "output x: i64 = 7 ** 20",
        "output x: f64 = 1 + (7 ** 20) * k",
        "output x: f64 = 2 ** 100",
        "output x: i64 = 30 * 24 * 3600 * 1000000",
        "output x: f64 = -(2147483647 + 1)",
        "output x: i64? = (if a then 2147483647 * 2 else 0) - 2147483647 - 2147483647",
        "output x: f64 = 9223372036854775807i64 * 2",
    ] {
        assert!(parse(fits, &Operators, &Limits::default()).is_ok(), "{fits}");
    }
    let calls = "output x: f64 = sqrt(2147483647 * 2 * 2) + 2147483647 * 2";
    let is_call = "`2147483647 * 2` is 4294967294, which is too large for i32";
    one(calls, Code::Literal, "2147483647 * 2", is_call, "write `2147483647i64` for `2147483647`");
    assert_eq!(problems(calls).diagnostics()[0].span(), Some(Span::new(21, 35)));
    let long = "output x: i64 = 4000000000 * 2 * 4000000000";
    assert_eq!(
        problems(long).diagnostics()[0].message(),
        "`4000000000 * 2 * 4000000000` is 32000000000000000000, which is too large for i64"
    );
    // Of a long sum every part is looked at once.
    let long = format!("1{}", " + 1".repeat(200_000));
    assert!(parse(&long, &Operators, &Limits::default()).is_ok());
    let long = format!("2147283647{}", " + 1".repeat(200_001));
    let found = problems(&long);
    assert_eq!((found.diagnostics().len(), found.diagnostics()[0].span()), (1, Some(Span::new(0, 10 + 4 * 200_001))));
}

#[test]
fn syntax() {
    use Code::{Bracket, Syntax};
    one("let a =\noutput y = 1", Syntax, "", "expected a value, found the end of the statement", "");
    one("output y = 1 +", Syntax, "", "expected a value, found the end of the text", "");
    one("a b", Syntax, "b", "expected an operator or the end of the statement, found `b`", "");
    one(
        "x = 1",
        Syntax,
        "=",
        "expected an operator or the end of the statement, found `=`",
        "write `==` to compare, `let name = ..` to define",
    );
    one(
        "a, b",
        Syntax,
        ",",
        "expected an operator or the end of the statement, found `,`",
        "write a tuple in brackets: `(a, b)`",
    );
    one("output y = a && b", Syntax, "&", "expected a value, found `&`", "write `and`");
    one("output y = a || b", Syntax, "|", "expected a value, found `|`", "write `or`; texts are joined by `+`");
    one(
        "output y = !a",
        Syntax,
        "!",
        "`!` is not part of the language",
        "write `not` for negation, `!=` for inequality",
    );
    one("a <> b", Syntax, ">", "expected a value, found `>`", "write `!=`");
    one(
        "a ? b : c",
        Syntax,
        "?",
        "expected an operator or the end of the statement, found `?`",
        "write `if condition then value else other`",
    );
    one(
        "größe * 2",
        Syntax,
        "ö",
        "`ö` is not part of the language",
        "quote a name with letters other than `a` to `z`: `L[\"größe\"]`",
    );
    one(
        "let a = 1 let b = 2; a + b",
        Syntax,
        "let",
        "a statement must begin on its own line",
        "write the statement on a new line, or after a `;`",
    );
    one("output y 1", Syntax, "1", "expected `=`, found `1`", "");
    one("let (a) = 1; 2", Syntax, "(", "expected a name, found `(`", "");
    let form = "write `if condition then value else other`";
    one("if a", Syntax, "", "expected an operator or `then`, found the end of the text", form);
    one("(if a)", Syntax, ")", "expected an operator or `then`, found `)`", form);
    one(
        "a then b",
        Syntax,
        "then",
        "there is no `if` before this `then`",
        "write `if condition then value else other`",
    );
    one("if a else b", Syntax, "else", "expected an operator or `then`, found `else`", "");
    one(
        "a + not b",
        Syntax,
        "not",
        "`not` binds weaker than the `+` before it",
        "put the expression in brackets: `(not ..)`",
    );
    one(
        "-if a then b",
        Syntax,
        "if",
        "`if` binds weaker than the `-` before it",
        "put the expression in brackets: `(if ..)`",
    );
    one("a[0, 1]", Syntax, ",", "an array must have one index", "");
    one("a[]", Syntax, "]", "expected a value, found `]`", "");
    one("[1, 2", Bracket, "[", "this bracket is never closed", "");
    one("{a: 1, b: 2, a: 3}", Code::Name, "a", "two fields are named `a`", "");
    one(
        "{a: 1, \"b,c\": 2}",
        Code::Name,
        "\"b,c\"",
        "`b,c` cannot be the name of a field: a name is not empty and has no comma in it and no white space around it",
        "",
    );
    one("{a: 1, 2}", Syntax, "2", "expected the name of a field, as in `{x: ..}`, found `2`", "");
    one("{a 1}", Syntax, "a", "expected the name of a field, as in `{x: ..}`, found `a`", "");
    one("{a: 1)", Bracket, ")", "expected an operator, `,` or `}`, found `)`", "");
    one("(a: 1}", Syntax, ":", "expected an operator, `,` or `)`, found `:`", "");
    one("{a: 1", Bracket, "{", "this bracket is never closed", "");
    one(
        "(a)(b)",
        Syntax,
        "(",
        "a value cannot be called",
        "name the value with `let` and call the name, or write `core.apply(f, ..)`",
    );
    let field = "a field of an input that is not declared is written `L.no.b`";
    one("no.b", Code::UnknownName, "no.b", "there is no operator `no.b`", field);
    let form = "write `let name = value in expression`";
    one("(let t = 1)", Syntax, ")", "expected an operator or `in`, found `)`", form);
    one("output y = let t = 1", Syntax, "", "expected an operator or `in`, found the end of the text", form);
    one(
        "1 + let t = 1 in t",
        Syntax,
        "let",
        "`let` binds weaker than the `+` before it",
        "put the expression in brackets: `(let ..)`",
    );
    one("1..2", Syntax, "..", "expected an operator, found `..`", "write a range only after `in`, as in `x in 3..7`");
    one(
        "a in 1..2..3",
        Syntax,
        "..",
        "expected an operator, found `..`",
        "write a range only after `in`, as in `x in 3..7`",
    );
    one(
        "a == b in [c]",
        Code::ChainedComparison,
        "a == b in",
        "a comparison cannot be compared again",
        "put the comparison in brackets: `(a == b) in ..`",
    );
    one("a in [c", Bracket, "[", "this bracket is never closed", "");
    one(
        "1 + fn(x) = x",
        Syntax,
        "fn",
        "`fn` binds weaker than the `+` before it",
        "put the expression in brackets: `(fn ..)`",
    );
    one("f.g(fn(x) x)", Syntax, "x", "expected `=` and the value of the function, found `x`", "");
    one("f.g(fn x = x)", Syntax, "x", "expected `(` and the parameters, found `x`", "");
    one("f.g(fn(x, x) = x)", Code::Name, "x", "the parameter `x` is named twice", "");
    one(
        "let h = fn(x) = x; h(x=1)",
        Code::Arguments,
        "x",
        "the arguments for a function that is a value must not have names",
        "write the arguments in order, without names",
    );
    one(
        "input a; a.b(1)",
        Syntax,
        "a.b",
        "a field of a value cannot be called",
        "write `M.word.name(..)` to call an operator whose first word is also the name of a value",
    );
    one("(a,,b)", Syntax, ",", "expected a value, found `,`", "");
    one("clip(x=)", Syntax, ")", "expected a value, found `)`", "");
    one(
        "clip(x=y=1)",
        Syntax,
        "=",
        "expected an operator, `,` or `)`, found `=`",
        "write `==` to compare, `let name = ..` to define",
    );
    one(
        "a + 1\na * 2",
        Syntax,
        "a + 1",
        "an expression by itself must be the last statement",
        "write `let name = ..` or `output name = ..`",
    );
    one(
        "output y = a\na * 2",
        Syntax,
        "a * 2",
        "only one expression can stand by itself as the output",
        "write `output name = ..` or `let name = ..`",
    );
    one("(a + b", Bracket, "(", "this bracket is never closed", "");
    one("let a = f.g(1, (2\noutput y = a", Bracket, "(", "this bracket is never closed", "");
    one("a + b)", Bracket, ")", "this bracket closes nothing", "");
    one("(a + b]", Bracket, "]", "expected an operator, `,` or `)`, found `]`", "");
    one("f.g(", Bracket, "(", "this bracket is never closed", "");
    one("missing[f32", Bracket, "[", "this bracket is never closed", "");
    one("f32{1]", Bracket, "]", "expected `}`, found `]`", "");
}

#[test]
fn comparisons_are_not_chained() {
    let code = Code::ChainedComparison;
    let message = "a comparison cannot be compared again";
    one("a < b < c", code, "a < b < c", message, "write `a < b and b < c`");
    one(
        "x and a*2 <= f.g(b) == c + 1",
        code,
        "a*2 <= f.g(b) == c + 1",
        message,
        "write `a*2 <= f.g(b) and f.g(b) == c + 1`",
    );
    one("a < b < c < d", code, "a < b < c", message, "write `a < b and b < c`");
    one("a <\nb < c", code, "a <\nb < c", message, "write `a < b and b < c`");
}

#[test]
fn comparisons_that_signs_join_are_told_apart() {
    let code = Code::ChainedComparison;
    let message = "a comparison cannot be compared again";
    let and = "`&` binds tighter than a comparison";
    let or = "`|` binds tighter than a comparison";
    one("a > 18 & a < 30", code, "a > 18 & a < 30", message, &format!("write `a > 18 and a < 30`: {and}"));
    let three = "a > 18 & a < 30 & b > 2";
    one(three, code, "a > 18 & a < 30 & b", message, &format!("write `a > 18 and a < 30 and ..`: {and}"));
    let equal = "a == 1 | a == 2 | a == 3";
    one(equal, code, "a == 1 | a == 2 | a", message, &format!("write `a == 1 or a == 2 or ..`: {or}"));
    // The first joiner of the right side counts, not that which binds the loosest.
    let mixed = "a == 1 & a == 2 & c & d | e == 3";
    one(mixed, code, "a == 1 & a == 2 & c & d | e", message, &format!("write `a == 1 and a == 2 and ..`: {and}"));
}

#[test]
fn literals() {
    let code = Code::Literal;
    one(
        "9223372036854775808",
        code,
        "9223372036854775808",
        "`9223372036854775808` is too large for i64",
        "write a fraction, as in `1.0`: a float can be larger",
    );
    one(
        "2147483648i32",
        code,
        "2147483648i32",
        "`2147483648i32` is too large for i32",
        "write the number with the suffix `i64`",
    );
    one("a - 1e999", code, "1e999", "`1e999` is too large for weak_float", "write `inf` for infinity");
    one("-1e39f32", code, "-1e39f32", "`-1e39f32` is too large for f32", "write `inf` for infinity");
    one("5.", code, "5.", "`5.` has no digits after the dot", "write `5.0`");
    one("1_", code, "1_", "`1_` has a `_` that is not between two digits", "");
    one("0xFF", code, "0xFF", "`0xFF` is not decimal", "write the number in decimal");
    one("-1u64", code, "-1u64", "`-1u64` is negative, but u64 has no negative numbers", "");
    one(
        "7x",
        code,
        "7x",
        "`7x` is not a number",
        "end a number with `i32`, `i64`, `f32` or `f64`; write a duration as `1w 2d 3h 4min 5s 6ms 7us`",
    );
    one("1.5i32", code, "1.5i32", "`1.5i32` is not an integer, but i32 is an integer type", "");
    one("i64{1f32}", code, "1f32", "`1f32` is not of type i64", "");
    one("i64{inf}", code, "inf", "`inf` is not of type i64", "");
    one("f32{nan:0x1}", code, "0x1", "`0x1` are not the bits of a NaN of type f32", "");
    one("missing[f32?]", code, "f32?", "there is no missing value of type f32?", "write `missing[f32]`");
    one(
        "x.99999999999999999999",
        code,
        "99999999999999999999",
        "`99999999999999999999` is not the position of a field",
        "",
    );
    one(
        "\"abc",
        code,
        "\"abc",
        "this text has no closing quote",
        "close the quote on the same line; write a line end inside a text as `\\n`",
    );
    one(
        r#"a + "b\q""#,
        code,
        r"\q",
        "this escape does not exist",
        r#"write one of `\n`, `\t`, `\r`, `\\`, `\"`, `\'`, `\0` and `\u{..}`"#,
    );
    one(
        r#""\u{d800}""#,
        code,
        r"\u{d800}",
        "this is not the number of a character",
        r"write the character's number in hexadecimal: `\u{1F332}`",
    );
    one("c\"x\"", code, "c\"x\"", "a literal cannot be written as `c\"..\"`", "");
    one("NOTHING{1}", code, "NOTHING", "NOTHING has no literals", "");
    one("bool{1}", Code::Syntax, "1", "expected a value of type bool, found `1`", "");
    one("f32{NA}", Code::Syntax, "NA", "expected a value of type f32, found `NA`", "");
}

#[test]
fn types() {
    let all = "the types are `unit`, `bool`, `i32`, `i64`, `u64`, `f32`, `f64`, `date`, `timestamp`, `duration`, `bytes`, `text`, `T?`, `[T]`, `(A, B)` and `tensor[T, 2]`";
    let code = Code::UnknownName;
    let scalars = "write `?` only after a scalar or a struct of scalars: `{x: f32, y: text}?`";
    one("input x: [[f32]]; x", Code::Syntax, "[", "expected the type of an array's elements, found `[`", "");
    one("input x: [f32]?; x", Code::Syntax, "?", "an array cannot be missing, only its elements can", "write `[f64?]`");
    one("input x: {a: f32, a: i32}; x", Code::Name, "a", "two fields are named `a`", "");
    one("input x: {f32}; x", Code::Syntax, "f32", "expected the name of a field, as in `{x: ..}`, found `f32`", "");
    one("input x: {a: f32}??; x", Code::Syntax, "??", "{a: f32} cannot be optional", scalars);
    one("input x: ({a: f32}?)?; x", Code::Syntax, "?", "a type can be optional only once", "");
    one("input x: {a: [f32]}?; x", Code::Syntax, "?", "{a: [f32?]} cannot be optional", scalars);
    one(
        "input x: [{a: f32}]?; x",
        Code::Syntax,
        "?",
        "a list cannot be missing, only its elements can",
        "write `[{..}?]`",
    );
    let nested =
        "use a scalar or a struct of scalars as the element, `[{x: f64, y: text?}]`: arrays and lists cannot be nested";
    one("input x: [{a: [f32]}]; x", Code::Syntax, "[{a: [f32]}]", "there are no lists of {a: [f32?]}", nested);
    one(
        "input x: [({a: [{b: i32}]},)]; x",
        Code::Syntax,
        "[({a: [{b: i32}]},)]",
        "there are no lists of ({a: [{b: i32}]},)",
        nested,
    );
    one("input x: [()]; x", Code::Syntax, "[()]", "there are no lists of ()", "give the struct at least one field");
    one("input x: [{a: i32}, i32]; x", Code::Syntax, ",", "expected `]`, found `,`", "");
    one(
        "input x: NAMEDTUPLE; x",
        Code::Syntax,
        "NAMEDTUPLE",
        "`NAMEDTUPLE` is not a type by itself",
        "write a tuple type as `(f32, text?)`, or with names as `{x: f32, y: text?}`",
    );
    one("input x: float32; x", code, "float32", "there is no type `float32`", "did you mean `f32`?");
    one("input x: F64; x", code, "F64", "there is no type `F64`", "did you mean `f64`?");
    one("input x: double; x", code, "double", "there is no type `double`", "did you mean `f64`?");
    one("input x: thing; x", code, "thing", "there is no type `thing`", all);
    one("input x: f32??; x", Code::Syntax, "??", "a type can be optional only once", "");
    one("input x: (f32, edge)?; x", Code::Syntax, "?", "(f32, edge) cannot be optional", scalars);
    one(
        "input x: (f32, QTYPE); x",
        Code::InputType,
        "(f32, QTYPE)",
        "an input cannot have the type (f32, QTYPE)",
        "declare another type: values of this type exist only inside a model's text",
    );
    one("input x:\noutput y = x", Code::Syntax, "", "expected a type, found the end of the statement", "");
}

#[test]
fn names() {
    let code = Code::Name;
    let above = "define a name above its uses, and without using the name itself";
    one("output y = d\nlet d = 1", code, "d", "`d` is used before it is defined", above);
    one("let d = d + 1; d", code, "d", "`d` is used before it is defined", above);
    one("output y = a\ninput a: f32", code, "a", "`a` is used before it is defined", above);
    one("output y = f(1)\nfn f(x) = x", code, "f", "`f` is used before it is defined", above);
    one("fn f(x) = f(x); f(1)", code, "f", "`f` is used before it is defined", above);
    one("output y = sqrt(a)\nfn sqrt(x) = x", code, "sqrt", "`sqrt` is used before it is defined", above);
    one("let a = 1; let a = 2; a", code, "a", "`a` is defined twice", "");
    one(
        "input a; fn a(x) = x; a",
        code,
        "a",
        "`a` is defined twice",
        "write `output \"a\"` for an output with this name",
    );
    one(
        "input a; output a = a + 1",
        code,
        "a",
        "`a` is defined twice",
        "write `output \"a\"` for an output with this name",
    );
    one("let d = 1; output d = 2", code, "d", "`d` is defined twice", "");
    one("output y = 1; output \"y\" = 2", code, "\"y\"", "the output `y` is defined twice", "");
    one("input x, \"x\"; x", code, "\"x\"", "the input `x` is declared twice", "");
    one(
        "let f32 = 1; 2",
        code,
        "f32",
        "`f32` is a word of the language and cannot be a name",
        "write another name, as `f32_1`",
    );
    one("fn f(x, x) = x; f(1, 2)", code, "x", "the parameter `x` is named twice", "");
    let operator = "the operator of this name is `M.a(..)`";
    one("let a = 1; a(2)", code, "a", "`a` is not a function and cannot be called", operator);
    one("let a = b + 1; a(2)", code, "a", "`a` is not a function and cannot be called", operator);
    one("input a; a(2)", code, "a", "`a` is not a function and cannot be called", operator);
    let source = "output y = d\nlet d = 1";
    let found = problems(source);
    assert_eq!(found.diagnostics()[0].span(), Some(Span::new(11, 12)));
    assert_eq!(
        (found.diagnostics()[0].others()[0].span, &*found.diagnostics()[0].others()[0].text),
        (Span::new(17, 18), "defined here")
    );
    one("", Code::NoOutput, "-", "the model has no output", "write `output name = expression`");
    one("input a: f32", Code::NoOutput, "-", "the model has no output", "write `output name = expression`");
}

#[test]
fn calls() {
    let code = Code::Arguments;
    let clip = "its form is `math.clip(x, lo=0, hi=1.0)`";
    one("clip()", code, "clip()", "`clip` lacks the argument `x`", clip);
    one("a + clip(1, 2, 3, 4)", code, "clip(1, 2, 3, 4)", "`clip` takes 3 arguments, 4 given", clip);
    one("clip(1, y=2)", code, "y", "`clip` has no parameter `y`", clip);
    one("clip(1, x=2)", code, "x", "the argument `x` is given twice", clip);
    one("clip(x=1, 2)", code, "clip(x=1, 2)", "an argument without a name must not follow an argument with a name", "");
    one(
        "M.math.sqrt(1, 2)",
        code,
        "M.math.sqrt(1, 2)",
        "`M.math.sqrt` takes 1 argument, 2 given",
        "its form is `math.sqrt(x)`",
    );
    one("fn f(a, b) = a; f(1)", code, "f(1)", "`f` lacks the argument `b`", "its form is `f(a, b)`");
    one("any(k=1)", code, "k", "`any` has no parameter `k`", "its form is `core.any(..)`");
    let code = Code::UnknownName;
    one("1 + no.sqr(2)", code, "no.sqr", "there is no operator `no.sqr`", "did you mean `math.sqrt` or `sqrt`?");
    one("M.foo(2)", code, "M.foo", "there is no operator `foo`", "");
}

#[test]
fn one_run_reports_what_it_can() {
    let source = "input a: f31\nlet b = (1 +\nlet c = foo(b) + clip()\nfn f(x, = x\n\
                  output y = f(1) + b + bar(2) < 1 < 2\noutput z = late * 7x\n] * 2\nlet late = 1";
    let found = problems(source);
    let told: Vec<_> = found.diagnostics().iter().map(|p| (p.code(), p.span().unwrap().text(source))).collect();
    assert_eq!(
        told,
        [
            (Code::UnknownName, "f31"),
            (Code::Bracket, "("),
            (Code::UnknownName, "foo"),
            (Code::Arguments, "clip()"),
            (Code::Syntax, "="),
            (Code::UnknownName, "bar"),
            (Code::Name, "late"),
            (Code::Literal, "7x"),
            (Code::Syntax, "]"),
        ]
    );
    assert!(found.to_string().starts_with("there is no type `f31`"));
}

#[test]
fn an_error_is_told_once() {
    one(
        "let a = foo(1)\nlet b = a + a\nfn f(x) = x + b\noutput y = f(b) == a",
        Code::UnknownName,
        "foo",
        "there is no operator `foo`",
        "",
    );
    one(
        "fn f(x = 1\noutput y = f(2)",
        Code::Syntax,
        "=",
        "expected `,` or `)`, found `=`",
        "write `==` to compare, `let name = ..` to define",
    );
}

#[test]
fn values_and_types_by_themselves() {
    let message = |text: &str| parse_value(text).unwrap_err().diagnostics()[0].message().to_owned();
    assert_eq!(message("x"), "expected a literal, found `x`");
    assert_eq!(message("1 2"), "expected the end of the text, found `2`");
    assert_eq!(message("-true"), "expected a number, found `true`");
    assert_eq!(message(""), "expected a literal, found the end of the text");
    assert_eq!(message("1e999"), "`1e999` is too large for weak_float");
    assert_eq!(message("(1, 2"), "this bracket is never closed");
    let message = |text: &str| parse_type(text).unwrap_err().diagnostics()[0].message().to_owned();
    assert_eq!(message("f32 f32"), "expected the end of the text, found `f32`");
    assert_eq!(message("(f32 f32)"), "expected `,` or `)`, found `f32`");
    assert_eq!(message("TUPLE"), "`TUPLE` is not a type by itself");
}

fn limited(source: &str, limits: Limits) -> Option<String> {
    match parse(source, &Operators, &limits) {
        Ok(_) => None,
        Err(problems) => {
            assert_eq!(problems.diagnostics()[0].code(), Code::Limit, "{problems}");
            Some(problems.diagnostics()[0].message().to_owned())
        }
    }
}

#[test]
fn nesting_is_allowed_to_256_and_of_tuples_to_64_and_no_deeper() {
    let message = "the model exceeds the limit `nesting` of 256 levels of nesting";
    let tuples = "the model exceeds the limit `tuple_nesting` of 64 levels of tuples";
    for (open, close) in
        [("(", ")"), ("sqrt(", ")"), ("(-", ")"), ("(1, ", ")"), ("if ", " then b else c"), ("if a then ", " else c")]
    {
        let nested = |depth| format!("{}a{}", open.repeat(depth), close.repeat(depth));
        assert_eq!(limited(&nested(256), Limits::default()), None, "{open}");
        assert_eq!(limited(&nested(257), Limits::default()).as_deref(), Some(message), "{open}");
    }
    for (open, close) in [("TUPLE{", "}"), ("(", ")")] {
        let nested = |depth| format!("{}{}", open.repeat(depth), close.repeat(depth));
        assert!(parse_value(&nested(64)).is_ok());
        assert_eq!(parse_value(&nested(65)).unwrap_err().diagnostics()[0].message(), tuples);
    }
    let nested = |depth| format!("{}{}", "(".repeat(depth), ")".repeat(depth));
    assert!(parse_type(&nested(64)).is_ok());
    assert_eq!(parse_type(&nested(65)).unwrap_err().diagnostics()[0].message(), tuples);
    let source = "(".repeat(300);
    assert_eq!(problems(&source).diagnostics()[0].span(), Some(Span::new(256, 257)));
}

#[test]
fn other_limits_are_exact_too() {
    let with = |source: &str, change: fn(&mut Limits)| {
        let mut limits = Limits::default();
        change(&mut limits);
        limited(source, limits)
    };
    assert_eq!(with("a + 12345", |l| l.source_bytes = 9), None);
    assert_eq!(
        with("a + 123456", |l| l.source_bytes = 9).unwrap(),
        "the model exceeds the limit `source_bytes` of 9 bytes of text"
    );
    assert_eq!(with("a + a * b", |l| l.nodes = 4), None);
    assert_eq!(with("a + a * b", |l| l.nodes = 3).unwrap(), "the model exceeds the limit `nodes` of 3 nodes");
    assert_eq!(with("\"abc\" + 1", |l| l.literal_bytes = 23), None);
    assert_eq!(
        with("\"abc\" + 1", |l| l.literal_bytes = 22).unwrap(),
        "the model exceeds the limit `literal_bytes` of 22 bytes of literals"
    );
    let message = "the model exceeds the limit `name_bytes` of 4 bytes of a name";
    for source in ["abcd + 1", "f.gh(1)", "L[\"ab\"]", "input \"ab\"; 1"] {
        assert_eq!(with(source, |l| l.name_bytes = 4), None, "{source}");
    }
    for source in ["abcde + 1", "f.ghi(1)", "L[\"abc\"]", "input \"abc\"; 1", "fn f(abcde) = 1"] {
        assert_eq!(with(source, |l| l.name_bytes = 4).as_deref(), Some(message), "{source}");
    }
    let source = "fn f(x) = x + x * x; f(a) - f(b)";
    assert_eq!(with(source, |l| l.instantiation = 12), None);
    assert_eq!(
        with(source, |l| l.instantiation = 11).unwrap(),
        "the model exceeds the limit `instantiation` of 11 steps of calls and sequences"
    );
    let source = "foo(1)\n".repeat(50);
    let found = parse(&source, &Operators, &Limits::default().problems(7)).unwrap_err();
    assert_eq!(found.diagnostics().len(), 7);
}

#[test]
fn functions_that_explode_meet_a_limit() {
    let mut source = "fn f0(x) = x * x - 1\n".to_owned();
    for n in 1..40 {
        source.push_str(&format!("fn f{n}(x) = f{m}(f{m}(x + {n}) + {n})\n", m = n - 1));
    }
    source.push_str("output y = f39(a)");
    let limits = Limits::default().nodes(50_000);
    assert!(limited(&source, limits).unwrap().contains("`nodes`"));
    let limits = Limits::default().instantiation(50_000);
    assert!(limited(&source, limits).unwrap().contains("`instantiation`"));
}

#[test]
fn hostile_texts_end() {
    let found = problems(&"(".repeat(10_000_000));
    assert_eq!((found.diagnostics().len(), found.diagnostics()[0].code()), (1, Code::Limit));
    for source in [
        "(",
        ")",
        "[",
        "{",
        "{a:",
        "fn() = ",
        "let a = ",
        "(let a = 1 in ",
        "-",
        "not ",
        "a.",
        "a(",
        "if ",
        "else ",
        "\"",
        "=",
        "L[",
        "**",
        "1.",
        "\n)",
        "x ",
        "0x",
        ";",
        "\\",
        "a . ",
        "fn f(",
    ] {
        let source = source.repeat(200_000 / source.len());
        let found = problems(&source);
        assert!(found.diagnostics().len() <= 100);
    }
    for source in [
        "((((",
        "no.b.c",
        "f.g(fn(",
        "let t = let",
        "(let t = 1 in let",
        "f.g(x=",
        "if if",
        "output",
        "let let = let",
        "fn f(",
        "input a:",
        "L[\"",
        "TUPLE{(",
        "f32{-",
        "x ?? ??",
        "\u{0}",
        "\"\\",
        "🌲",
        "1..2",
    ] {
        assert!(!problems(source).diagnostics()[0].message().is_empty(), "{source}");
    }
}

/// The time limit of a compilation also applies to reading: it is checked every few thousand tokens and nodes.
#[test]
fn the_limit_of_time_ends_reading() {
    let limits = Limits::default().compile_time(std::time::Duration::ZERO);
    let functions: String =
        (1..16).map(|at| format!("fn f{at}(x) = f{0}(x + {at}) * f{0}(x * 2 + {at})\n", at - 1)).collect();
    let rows: String = (0..2_000).map(|at| format!("  {at}, {at}.5\n")).collect();
    let texts = [
        format!("fn f0(x) = x + 1\n{functions}output y = f15(L.x)"),
        format!("output y = 1\ntest 't' {{\n  x => y\n{}}}", rows.replace(", ", " => ")),
        format!("output y = [{}]", "1, ".repeat(4_000)),
        (0..2_000).map(|at| format!("let a{at} = 1;")).collect(),
    ];
    for text in &texts {
        let start = &text[..20];
        let problem = limited(text, limits).unwrap_or_else(|| panic!("{start} took no time"));
        assert_eq!(problem, "the model exceeds the limit `compile_time` of 0ns", "{start}");
        assert!(cembra_expr::format(text, &Operators, &limits).is_err(), "{start}");
    }
    assert_eq!(limited("output y = x + 1", limits), None);
}

/// A call copies only the nodes that depend on the function's parameters, including such inner functions. All other
/// nodes are shared between calls.
#[test]
fn calls_copy_no_more_than_what_depends_on_parameters() {
    let text = "let k = a + b
        fn f(x, y) = if x > k then sqrt(k) * y + x else (y - k) * (x + y) - sqrt(k)
        fn g(x) = core.apply(fn(z) = z * x + core.apply(fn(w) = w + z, k * 2), k) + core.apply(fn(v) = v * k, 3)
        fn h(x) = x
        fn i(x) = k
        output p = f(c, d) + f(d, c) + g(c) + g(d) + g(c) + h(c) + i(d)";
    let written = "let k = a + b
        let s = sqrt(k)
        let t = k * 2
        let v = core.apply(fn(v) = v * k, 3)
        let g = core.apply(fn(z) = z * c + core.apply(fn(w) = w + z, k * 2), k) + v
        output p = (if c > k then sqrt(k) * d + c else (d - k) * (c + d) - sqrt(k))
            + (if d > k then sqrt(k) * c + d else (c - k) * (d + c) - sqrt(k))
            + g + (core.apply(fn(z) = z * d + core.apply(fn(w) = w + z, k * 2), k) + v) + g + c + k";
    let parsed = |text: &str| parse(text, &Operators, &Limits::default()).expect("a model");
    let shown = |text: &str| {
        // Parameters get numbers, which the one text uses more of.
        let printed = cembra_expr::print(&parsed(text), &Operators);
        let mut numbers = printed.split('_');
        let first = numbers.next().unwrap_or_default().to_owned();
        numbers.fold(first, |all, part| all + part.trim_start_matches(|c: char| c.is_ascii_digit()))
    };
    assert_eq!(shown(text), shown(written));
}
