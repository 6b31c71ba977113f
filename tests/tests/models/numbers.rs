//! The rule of numbers of texts without a head. The parser leaves out marks where the declared types of inputs say that they would change nothing, and
//! it finds types by a short rule of its own. A text whose inputs are declared must have the types of the same text whose inputs are not.

use cembra::values::parse_type;
use cembra::{Model, Options, QType};
use fastrand::Rng;

const INPUTS: [(&str, &str); 12] = [
    ("i", "i32"),
    ("l", "i64?"),
    ("u", "u64"),
    ("x", "f32"),
    ("y", "f32?"),
    ("z", "f64"),
    ("d", "date"),
    ("t", "timestamp"),
    ("s", "duration"),
    ("p", "[i64]"),
    ("q", "[f32?]"),
    ("b", "bool"),
];
const LITERALS: [&str; 7] = ["2", "7i64", "0.5", "0.5f32", "0.5f64", "2d", "missing"];

/// An expression of some levels of operators on these leaves, which are few so that they meet often.
fn expression(random: &mut Rng, leaves: &[&str; 4], depth: usize) -> String {
    if depth == 0 || random.u8(..8) == 0 {
        return leaves[random.usize(..leaves.len())].to_owned();
    }
    let mut operand = || expression(random, leaves, depth - 1);
    let [v, w] = [operand(), operand()];
    match random.u8(..19) {
        0..2 => format!("({v} + {w})"),
        2..4 => format!("({v} - {w})"),
        4..6 => format!("({v} * {w})"),
        6..8 => format!("({v} / {w})"),
        8 => format!("({v} // {w})"),
        9 => format!("({v} % {w})"),
        10 => format!("({v} ** {w})"),
        11 => format!("(if b then {v} else {w})"),
        12 => format!("({v} ?? {w})"),
        13 => format!("({v} & ({w} > 0))"),
        14 => format!("[{v}, {w}]"),
        15 => format!("[{v}][0]"),
        16 => format!("max({v}, {w})"),
        17 => format!("sqrt({v})"),
        _ => format!("(-{v})"),
    }
}

/// The types of the outputs; nothing if the model has none.
fn types(text: &str, options: &Options) -> Option<Vec<QType>> {
    let signature = Model::parse(text).ok()?.signature(options).ok()?;
    Some(signature.outputs.into_iter().map(|output| output.qtype).collect())
}

#[test]
fn declared_inputs_leave_out_marks_that_change_nothing() {
    let declared: String = INPUTS.iter().map(|(name, qtype)| format!("input {name}: {qtype}\n")).collect();
    let promised = |name: &str, qtype: &str| (name.to_owned(), parse_type(qtype).expect("a type"));
    let given: Vec<_> = INPUTS.iter().map(|(name, qtype)| promised(name, qtype)).collect();
    let options = given.iter().fold(Options::default(), |all, (name, qtype)| all.input_type(name, qtype.clone()));
    let (mut random, mut right) = (Rng::with_seed(69), 0);
    for _ in 0..12_000 {
        let [v, w] = [0; 2].map(|_| INPUTS[random.usize(..INPUTS.len())].0);
        let [k, l] = [0; 2].map(|_| LITERALS[random.usize(..LITERALS.len())]);
        let made = expression(&mut random, &[v, w, k, l], 3);
        let output = ["output r = ", "output r = ", "output r: f64? = ", "output r: i64? = "][random.usize(..4)];
        let text = format!("{output}{made}\n");
        let (known, found) = (types(&format!("{declared}{text}"), &Options::default()), types(&text, &options));
        right += usize::from(known.is_some());
        assert_eq!(known, found, "{text}");
    }
    assert!(right > 500, "{right}");
}
