//! Golden programs as texts: what a graph prints as reads back as the same graph. Golden graphs have no marks of numbers. Mixed ones have marks
//! beside operands without: a file of `numbers f32` is used by one without a head.

use cembra_expr::{Program, Sources, UsedFile, parse, parse_sources, print};
use cembra_ops::Registry;
use cembra_tests::files;
use cembra_tests::record::{Case, Record};
use cembra_value::Limits;
use std::collections::BTreeSet;
use std::io;

/// The stride between the calls that are read here: most calls are of the programs of signatures.
const ONE_CALL_IN: usize = 64;

/// The text of a program, which reads back as the program.
#[track_caller]
fn read_back(program: &Program, of: &str) -> String {
    let registry = Registry::standard();
    let text = print(program, registry);
    match parse(&text, registry, &Limits::default()) {
        Ok(again) => assert!(again == *program, "{of}\nprints as\n{text}\nand reads as\n{}", print(&again, registry)),
        Err(error) => panic!("{of}\nprints as\n{text}\n{error}"),
    }
    text
}

/// The programs of some golden files, each with the line that it was read from.
fn golden(names: &[&str], one_in: usize) -> Vec<(String, Program)> {
    let mut found = Vec::new();
    for name in names {
        let path = files::own().join(format!("{name}.jsonl.gz"));
        files::for_each_line(&path, |line, text| {
            if line % one_in != 0 {
                return Ok(());
            }
            let record = Record::parse(text).unwrap_or_else(|problem| panic!("{name}, line {line}: {problem}"));
            let program = match record.case {
                Ok(Case::Expression(case)) => case.program,
                Ok(Case::Signature(case)) => case.callee.program(&case.operands).expect("a program"),
                Ok(Case::Operator(case)) => {
                    let types: Vec<_> = case.operands.iter().map(cembra_value::Value::qtype).collect();
                    case.callee.program(&types).expect("a program")
                }
                Ok(Case::Tensor(_)) | Err(_) => return Ok(()),
            };
            found.push((format!("{name}, line {line}: {}", record.name), program));
            Ok(())
        })
        .expect("a readable file");
    }
    found
}

#[test]
fn golden_programs_read_back_from_their_texts() {
    let mut texts = BTreeSet::new();
    for (of, program) in golden(&["exprs", "signatures"], 1) {
        texts.insert(read_back(&program, &of));
    }
    let calls =
        ["pointwise_math", "pointwise_core", "pointwise_bool", "pointwise_bitwise", "pointwise_strings", "arrays"];
    for (of, program) in golden(&calls, ONE_CALL_IN) {
        texts.insert(read_back(&program, &of));
    }
    // Both ways of printing are among them.
    let with_head = texts.iter().filter(|text| text.starts_with("numbers f32\n")).count();
    assert!(
        texts.len() > 10_000 && with_head > 1_000 && with_head + 1_000 < texts.len(),
        "{with_head} of {}",
        texts.len()
    );
}

/// The model `m` of two files.
fn mixed(main: &str, used: &str) -> (Program, String) {
    let find =
        |name: &str, _: &str| -> io::Result<UsedFile> { Ok(UsedFile { name: name.to_owned(), text: used.into() }) };
    let sources = Sources::gather("m", main, &Limits::default(), &find);
    let of = format!("{main}\n-- and\n{used}");
    match parse_sources(&sources, Registry::standard(), &Limits::default()) {
        Ok(program) => (program, of),
        Err(error) => panic!("{of}\n{error}"),
    }
}

#[test]
fn programs_of_two_rules_of_numbers_read_back_from_their_texts() {
    // Golden expressions as functions of a file of the one rule, with what is marked by the other around them.
    let mut count = 0;
    for (of, program) in golden(&["exprs"], 3) {
        let text = read_back(&program, &of);
        let (mut names, mut body) = (Vec::new(), String::new());
        for line in text.lines() {
            if let Some(input) = line.strip_prefix("input ") {
                names.extend(input.split_once(':').map(|(name, _)| name));
            } else if line.starts_with("let ") {
                body = format!("{body}{line} in ");
            } else if let Some((_, value)) = line.strip_prefix("output ").and_then(|line| line.split_once(" = ")) {
                body += value;
            }
        }
        let Some(first) = names.first() else { continue };
        let inputs: String =
            text.lines().filter(|line| line.starts_with("input ")).map(|line| format!("{line}\n")).collect();
        let call = format!("golden({})", names.join(", "));
        let used = format!("numbers f32\nfn golden({}) = {body}\n", names.join(", "));
        for around in ["{call} / 2", "({call} * 0.5, {call} + 1, {first} / 3)", "if {first} == 1 then {call} else 1.5"]
        {
            let around = around.replace("{call}", &call).replace("{first}", first);
            let (program, of) = mixed(&format!("use \"g\"\n{inputs}output \"made\" = {around}\n"), &used);
            read_back(&program, &of);
            count += 1;
        }
    }
    assert!(count > 2_500, "{count}");
    // Each pair of short texts, once with each rule inside.
    let texts = [
        "x / 2",
        "x / y",
        "x * 0.5",
        "x * 1",
        "x + y",
        "x // y",
        "x % 2",
        "x ** 2",
        "2 ** 3",
        "-x",
        "sqrt(x)",
        "min(x, 1)",
        "x < 1.5",
        "x == y",
        "x ?? 1",
        "x ?? 0.5",
        "if x > 1 then x else 0.5",
        "[x, 1]",
        "[1, 2.5]",
        "x in [1, 2.5]",
        "x in 0..1",
        "(x, 0.5)",
        "round(x)",
        "core.to_float32(x) * 2",
        "x * 0.5f32",
        "2.5f64 * y",
        "sum([x, y])",
        "mean([x, 1])",
        "lookup(x, {1: 0.5}, 1)",
        "1 / 3",
    ];
    let inputs = [
        "x, y",
        "x, y: i64",
        "x: i32; input y: f32",
        "x: f32; input y: i64",
        "x: f64; input y: i32",
        "x: i64?; input y: f32?",
    ];
    for (at, inside) in texts.iter().enumerate() {
        for (other, outside) in texts.iter().enumerate() {
            let inputs = inputs[(at + other) % inputs.len()];
            let main = format!(
                "input {inputs}; output a = {outside}; output b = inner(x, y) * 2; output c = ({outside}) / inner(y, x)"
            );
            for (head, used) in [("", "numbers f32"), ("numbers f32\n", ""), ("", "numbers f64"), ("numbers f64\n", "")]
            {
                let (program, of) =
                    mixed(&format!("{head}use \"g\"\n{main}\n"), &format!("{used}\nfn inner(x, y) = {inside}\n"));
                read_back(&program, &of);
            }
        }
    }
}
