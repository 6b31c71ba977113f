//! Tests of blocks of tensors (ranges of tiles): reading, printing, formatting and errors.

use super::common::{Operators, list, lists, read};
use cembra_expr::{format, parse, print};
use cembra_value::{Code, Limits};

const INPUT: &str = "input a: tensor[f64, 2]\n";

/// The first output of a model as a nested list. The model consists of an input and the lines `lines`.
fn of(lines: &str) -> String {
    lists(&format!("{INPUT}{lines}")).remove(0)
}

#[test]
fn a_block_stands_behind_labels_and_is_an_operator_on_the_tensor() {
    let block = "(tensor.block a (make_tuple 0 1) (make_tuple 2 3))";
    assert_eq!(
        of("a(\"i,j\").block([0, 1], [2, 3,]).sum()"),
        format!("(tensor._whole.sum (tensor._at {block} \"i,j\"))")
    );
    // The tensor may be named with labels in brackets, and a block is what another block is of.
    assert_eq!(
        of("(a(\"i,j\")).block([0, 1], [2, 3]).block([0, 0], [1, 2]).norm()"),
        format!("(tensor._whole.norm (tensor._at (tensor.block {block} (make_tuple 0 0) (make_tuple 1 2)) \"i,j\"))")
    );
    // Without labels it is a call, which takes lists and tuples; a number is that of the only axis.
    for call in ["tensor.block(a, [0, 1], [2, 3])", "tensor.block(a, (0, 1), (2, 3))"] {
        assert_eq!(of(call), block, "{call}");
    }
    assert_eq!(of("tensor.block(a, 0, [ 5000000000 ])"), "(tensor.block a 0 (make_tuple 5000000000i64))");
    assert_eq!(of("tensor.block(a, [], [])"), "(tensor.block a (make_tuple) (make_tuple))");
    // Elsewhere a list is an array, and a name may be that of the method.
    assert_eq!(of("f.g([0, 1], a)"), "(f.g (array.make_dense_array 0 1) a)");
    assert_eq!(lists("input block: f64\nblock.block"), ["(namedtuple.get_field block \"block\")"]);
}

#[test]
fn a_block_is_printed_as_it_is_read() {
    for (lines, printed) in [
        (
            "let t = 1; b(\"i,j\") = a(\"i,j\").block([0, 1], [2, 3])",
            "output b(\"i,j\") = a(\"i,j\").block([0, 1], [2, 3])\n",
        ),
        (
            "b(\"i,j\") = a(\"i,k\").block([0, 0], [2, 2]) * a(\"k,j\").block([0, 0], [2, 2]).block([1, 0], [2, 1])",
            "let t0 = tensor.block(a, (0, 0), (2, 2))\n\
             output b(\"i,j\") = t0(\"i,k\") * t0(\"k,j\").block([1, 0], [2, 1])\n",
        ),
        // Lists are written wherever they stand, and methods stand behind them.
        (
            "output n = a(\"i,j\").block([0, 0], [2, 2]).norm() + a(\"i,j\").block([2, 2], [4, 4]).sum()",
            "output n = a(\"i,j\").block([0, 0], [2, 2]).norm() + a(\"i,j\").block([2, 2], [4, 4]).sum()\n",
        ),
        // What is defined by labels has a name.
        (
            "let t(\"i,j\") = a(\"i,k\") * a(\"k,j\"); b(\"i,j\") = t(\"i,j\").block([0, 0], [1, 1])",
            "let t0(\"i,j\") = a(\"i,k\") * a(\"k,j\")\noutput b(\"i,j\") = t0(\"i,j\").block([0, 0], [1, 1])\n",
        ),
        ("output b = tensor.block(a, [0, 1], [2, 3])", "output b = tensor.block(a, (0, 1), (2, 3))\n"),
        ("output b = tensor.block(a, 0, [3])", "output b = tensor.block(a, 0, (3,))\n"),
        (
            "fn f(x) = x(\"i,j\").block([0, 0], [1, 1]); b(\"i,j\") = f(a)",
            "output b(\"i,j\") = a(\"i,j\").block([0, 0], [1, 1])\n",
        ),
        // Numbers of another type than lists have, or none, stand in calls.
        (
            "let t = tensor.block(a, (0i64, 0), (-1, 2)); b(\"i,j\") = t(\"i,j\")",
            "let t0 = tensor.block(a, (0i64, 0), (-1, 2))\noutput b(\"i,j\") = t0(\"i,j\")\n",
        ),
    ] {
        let program = read(&format!("{INPUT}{lines}"));
        let found = print(&program, &Operators);
        assert!(read(&found) == program, "{lines}: {found}");
        assert_eq!(found, format!("{INPUT}{printed}"), "{lines}");
    }
    // Long chains of blocks do not nest too deep.
    let chain = format!("{INPUT}b(\"i,j\") = a(\"i,j\"){}", ".block([0, 0], [9, 9])".repeat(1000));
    let program = read(&chain);
    assert!(read(&print(&program, &Operators)) == program);
    assert!(list(&program.graph, program.outputs[0].node).len() > 1000 * "(tensor.block )".len());
}

#[test]
fn the_layout_is_that_of_other_calls() {
    let source = "input a:tensor[f64,2]\nb( \"i,j\" )=a(\"i,j\") . block( [0,1] ,[ 2,3 ] )+tensor.block(a,[0,0],[1,1])";
    let made = format(source, &Operators, &Limits::default()).expect("a text");
    assert_eq!(
        made,
        "input a: tensor[f64, 2]\nb(\"i,j\") = a(\"i,j\").block([0, 1], [2, 3]) + tensor.block(a, [0, 0], [1, 1])\n"
    );
}

#[test]
fn wrong_blocks_are_said_at_their_place() {
    let list = "expected a list with the number of a tile for each axis, as in `[0, 1]`";
    let number = "the number of a tile must be an integer of at least 0";
    for (text, code, place, message) in [
        ("a(\"i,j\").block(0, 1)", Code::Syntax, "0", format!("{list}, found `0`")),
        ("a(\"i,j\").block((0, 0), (1, 1))", Code::Syntax, "(", format!("{list}, found `(`")),
        ("a(\"i,j\").block()", Code::Syntax, ")", format!("{list}, found `)`")),
        ("a(\"i,j\").block([0, 0], x)", Code::Syntax, "x", format!("{list}, found `x`")),
        (
            "a(\"i,j\").block([0, 0])",
            Code::Bracket,
            ")",
            "expected `,` and the list of the tiles after the end of the block, as in `[2, 3]`, found `)`".to_owned(),
        ),
        ("a(\"i,j\").block([0, 0], [1, 1], [2, 2])", Code::Syntax, ",", "expected `)`, found `,`".to_owned()),
        ("a(\"i,j\").block([0, 1.5], [1, 1])", Code::Literal, "1.5", number.to_owned()),
        ("a(\"i,j\").block([0, -1], [1, 1])", Code::Literal, "-1", number.to_owned()),
        ("tensor.block(a, [0, -1], [1, 1])", Code::Literal, "-1", number.to_owned()),
        (
            "a(\"i,j\").block([0, 99999999999999999999], [1, 1])",
            Code::Literal,
            "99999999999999999999",
            number.to_owned(),
        ),
        (
            "a(\"i,j\").block([0, x], [1, 1])",
            Code::Syntax,
            "x",
            "expected the number of a tile or `]`, found `x`".to_owned(),
        ),
        ("a(\"i,j\").block([0 1], [1, 1])", Code::Syntax, "1", "expected `,` or `]`, found `1`".to_owned()),
        ("a(\"i,j\").block([0, 0", Code::Bracket, "[", "this bracket is never closed".to_owned()),
        (
            "a(\"i,j\").block([0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,7], [1])",
            Code::Literal,
            "7",
            "a tensor has 0 to 16 axes".to_owned(),
        ),
        (
            "(a(\"i,k\") * a(\"k,j\")).block([0, 0], [1, 1])",
            Code::Syntax,
            "(a(\"i,k\") * a(\"k,j\"))",
            "`block` must follow a name with labels".to_owned(),
        ),
        ("(a).block([0, 0], [1, 1])", Code::Syntax, "(a)", "`block` must follow a name with labels".to_owned()),
        ("a.block([0, 0], [1, 1])", Code::Syntax, "a.block", "a field of a value cannot be called".to_owned()),
    ] {
        let source = format!("{INPUT}output b = {text}");
        let problems = parse(&source, &Operators, &Limits::default()).expect_err(text);
        let first = &problems.diagnostics()[0];
        let found = (first.code(), first.span().map_or("-", |span| span.text(&source)), first.message());
        assert_eq!(found, (code, place, &*message), "{text}");
        assert_eq!(problems.diagnostics().len(), 1, "{text}");
    }
}

#[test]
fn a_line_does_not_assign_to_a_block() {
    for sign in ["=", "+=", "-=", "*="] {
        let target = "c(\"i,j\").block([0, 0], [2, 2])";
        let source = format!("{INPUT}c(\"i,j\") = a(\"i,j\")\n{target} {sign} a(\"i,j\")\nd(\"i,j\") = c(\"i,j\")");
        let problems = parse(&source, &Operators, &Limits::default()).expect_err(sign);
        let first = &problems.diagnostics()[0];
        let found = (first.code(), first.span().map_or("-", |span| span.text(&source)), first.message());
        assert_eq!(found, (Code::Syntax, target, "a block of a tensor cannot be assigned to"), "{sign}");
        assert_eq!(problems.diagnostics().len(), 1, "{sign}");
    }
    // A comparison is none.
    assert!(
        parse(&format!("{INPUT}a(\"i,j\").block([0, 0], [1, 1]).sum() == 1.0"), &Operators, &Limits::default()).is_ok()
    );
    assert!(parse(&format!("{INPUT}a(\"i,j\").block([0, 0], [1, 1]) == 1.0"), &Operators, &Limits::default()).is_ok());
}
