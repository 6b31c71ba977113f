//! Tests of `tile` statements, which cut the axes of labels into tiles, and of inputs with labels: reading, printing,
//! formatting and errors.

use super::common::{Operators, read};
use cembra_expr::{AxisCut, format, parse, print};
use cembra_runtime::{QType, Scalar};
use cembra_value::{Code, Limits};

const TEXT: &str = "tile i, k = 8\ntile a = [-3, 0, 0, 17]\ninput x: tiled[f32, \"i,a\"]\ninput y: tiled[f64, \"\"]\ninput z: tensor[f64, 2]\n";

#[test]
fn cuts_and_labels_are_read_printed_and_compared() {
    let program = read(&format!("{TEXT}x(\"i,a\") += y"));
    let cuts: Vec<(Vec<&str>, AxisCut)> = program
        .tiles
        .iter()
        .map(|rule| (rule.labels.iter().map(|label| &**label).collect(), rule.cut.clone()))
        .collect();
    let boundaries = AxisCut::Boundaries([-3, 0, 0, 17].into());
    assert_eq!(cuts, [(vec!["i", "k"], AxisCut::Blocks(8)), (vec!["a"], boundaries)]);
    let inputs: Vec<_> = program.inputs.iter().map(|input| (input.qtype.clone(), input.labels.as_deref())).collect();
    let tensor = |scalar, rank| Some(QType::Tensor(scalar, rank));
    assert_eq!(inputs[0], (tensor(Scalar::Float32, 2), Some("i,a")));
    assert_eq!(inputs[1], (tensor(Scalar::Float64, 0), Some("")));
    assert_eq!(inputs[2], (tensor(Scalar::Float64, 2), None));
    assert_eq!(program.inputs[0].declared_type().as_deref(), Some("tiled[f32, \"i,a\"]"));
    let printed = print(&program, &Operators);
    assert!(printed.starts_with(TEXT), "{printed}");
    assert!(read(&printed) == program);
    for other in [
        TEXT.replace("= 8", "= 9"),
        TEXT.replace("[-3, 0, 0, 17]", "[-3, 0, 17]"),
        TEXT.replace("\"i,a\"", "\"k,a\""),
        TEXT.replace("tiled[f32, \"i,a\"]", "tensor[f32, 2]"),
        TEXT.replace("tile i, k", "tile k, i"),
    ] {
        assert!(read(&format!("{other}x(\"i,a\") += y")) != program, "{other}");
    }
}

#[test]
fn the_words_are_names_elsewhere() {
    let program = read("input tile: f64, tiled: f64\ntile * tiled");
    assert_eq!((program.tiles.len(), program.inputs.len()), (0, 2));
    // A label may be what other names are, and stand in front of its cut.
    let program = read("input i: tiled[f64, \" i , j \"]\ni(\"i,j\") *= i(\"i,j\")\ntile i = 4; tile j = 1");
    assert_eq!(program.inputs[0].labels.as_deref(), Some("i,j"));
    assert_eq!(program.tiles.len(), 2);
}

#[test]
fn the_layout_is_that_of_other_statements() {
    let source = "tile   i ,j=8\ntile a=[ - 3,0 ,17 ]\ninput x:tiled [ f64,\"i,a\" ]\nx";
    let made = format(source, &Operators, &Limits::default()).expect("a text");
    assert_eq!(made, "tile i, j = 8\ntile a = [-3, 0, 17]\ninput x: tiled[f64, \"i,a\"]\nx\n");
}

#[test]
fn wrong_cuts_and_labels_are_said_at_their_place() {
    let input = "input x: tiled[f64, \"i\"]; x";
    for (text, code, place, message) in [
        ("tile i = 0", Code::Literal, "0", "the number of elements of a tile must be an integer of at least 1"),
        ("tile i = 1.5", Code::Literal, "1.5", "the number of elements of a tile must be an integer of at least 1"),
        (
            "tile i = 99999999999999999999",
            Code::Literal,
            "99999999999999999999",
            "the number of elements of a tile must be an integer of at least 1",
        ),
        ("tile i = [0, 17, 4]", Code::Literal, "4", "the boundary 4 of tiles is after the larger boundary 17"),
        ("tile i = [0, 0.5]", Code::Literal, "0.5", "a boundary of tiles must be an integer"),
        ("tile i = [3]", Code::Literal, "[3]", "tiles must have at least two boundaries"),
        ("tile i = []", Code::Literal, "[]", "tiles must have at least two boundaries"),
        ("tile i, k = 8; tile j, i = 8", Code::Name, "i", "the label `i` is cut twice"),
        (
            "tile i 8",
            Code::Syntax,
            "8",
            "expected `=` and the elements of a tile, or boundaries: `tile i = 8`, found `8`",
        ),
        ("tile i = x", Code::Syntax, "x", "expected the elements of a tile, or boundaries: `tile i = 8`, found `x`"),
        ("tile i = [0 1]", Code::Syntax, "1", "expected `,` or `]`, found `1`"),
        (
            "input y: tiled[f64, 2]",
            Code::Syntax,
            "2",
            "expected the labels of its axes, as in `tiled[f64, \"i,j\"]`, found `2`",
        ),
        ("input y: tiled[text, \"i\"]", Code::Literal, "text", "there are no tensors of text"),
        ("input y: tiled[f64, \"i,,j\"]", Code::Literal, "\"i,,j\"", "labels must be words with commas between them"),
        (
            "input y: tiled[f64, \"a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q\"]",
            Code::Literal,
            "\"a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q\"",
            "a tensor has 0 to 16 axes",
        ),
        ("input y: [tiled[f64, \"i\"]]", Code::UnknownName, "tiled", "there is no type `tiled`"),
        ("let y: tiled[f64, \"i\"] = x", Code::Syntax, "tiled", "only an input can have a tiled type"),
    ] {
        let source = format!("{text}; {input}");
        let problems = parse(&source, &Operators, &Limits::default()).expect_err(text);
        let first = &problems.diagnostics()[0];
        let found = (first.code(), first.span().map_or("-", |span| span.text(&source)), first.message());
        assert_eq!(found, (code, place, message), "{text}");
    }
}

#[test]
fn boundaries_count_as_literals() {
    let limits = Limits::default().literal_bytes(800);
    let text = |count: usize, labels: &str| {
        let boundaries: Vec<String> = (0..count).map(|at| at.to_string()).collect();
        format!("tile {labels} = [{}]\ninput x: tiled[f64, \"i\"]\nx", boundaries.join(", "))
    };
    assert!(parse(&text(100, "i"), &Operators, &limits).is_ok());
    let problems = parse(&text(101, "i"), &Operators, &limits).expect_err("a limit");
    assert_eq!(problems.diagnostics()[0].code(), Code::Limit);
    // Labels of one statement share its boundaries, also in what is printed.
    let labels: Vec<String> = (0..1000).map(|at| format!("l{at}")).collect();
    let source = text(100, &labels.join(", "));
    assert!(print(&read(&source), &Operators).len() < 2 * source.len());
}
