//! Files that are damaged, of another version or hostile: an error with a place, or another program, but never a panic.

use crate::random::program;
use cembra_expr::{Builder, Program, read_binary, read_json, write_binary, write_json};
use cembra_value::{Code, Error, Limits, Value};
use proptest::prelude::*;
use prost::Message;

fn small() -> Program {
    let b = Builder::new();
    let x = b.typed_leaf("x", cembra_runtime::QType::FLOAT32);
    let pair = b.literal(Value::Tuple([Value::from("a"), Value::Missing(cembra_runtime::Scalar::Int64)].into()));
    b.output("y", x + 1.5);
    b.output("z", pair);
    b.build().expect("a program")
}

/// The only problem's message.
#[track_caller]
fn problem(read: Result<Program, Error>) -> (Code, String) {
    let problems = read.expect_err("a problem");
    assert_eq!(problems.diagnostics().len(), 1);
    (problems.diagnostics()[0].code(), problems.diagnostics()[0].message().to_owned())
}

#[track_caller]
fn json_problem(text: &str) -> String {
    let (code, message) = problem(read_json(text, &Limits::default()));
    assert_eq!(code, Code::Wire, "{message}");
    message
}

#[test]
fn newer_versions_are_refused_by_both_numbers() {
    let expected = (Code::Wire, "the file is of version 7, and this cembra reads versions up to 4".to_owned());
    // What a later version keeps elsewhere is no concern of this one.
    let json = r#"{"nodes": {"else": [[[]]]}, "version": 7, "format": "cembra-program", "new": null}"#;
    assert_eq!(problem(read_json(json, &Limits::default())), expected);
    let mut binary = b"\x0a\x0ecembra-program\x10\x07".to_vec();
    binary.extend(b"\x38\x09\x92\x06\x01x");
    assert_eq!(problem(read_binary(&binary, &Limits::default())), expected);
}

#[test]
fn defaults_are_of_the_types_of_their_inputs() {
    let file = |input: &str| {
        format!(
            r#"{{"format": "cembra-program", "version": 2, "inputs": [{input}], "nodes": [{{"leaf": "x"}}], "outputs": [{{"name": "y", "node": 0}}]}}"#
        )
    };
    let refused = |input: &str| json_problem(&file(input)).replacen("the file is damaged at ", "", 1);
    let plain = "inputs[0]: it has a default, but is of no optional type";
    assert_eq!(refused(r#"{"name": "x", "type": "i32", "default": "1"}"#), plain);
    assert_eq!(refused(r#"{"name": "x", "default": "1"}"#), plain);
    let other = refused(r#"{"name": "x", "type": "i32?", "default": "1.5"}"#);
    assert_eq!(other, "inputs[0]: `1.5` is not an integer, and i32 is a type of integers");
    let good = read_json(&file(r#"{"name": "x", "type": "i32?", "default": "1"}"#), &Limits::default()).unwrap();
    let mut binary = write_binary(&good);
    assert!(read_binary(&binary, &Limits::default()).unwrap() == good);
    // A type of the same length, whose default it is not.
    let at = binary.windows(4).position(|bytes| bytes == b"i32?").unwrap();
    binary[at..at + 4].copy_from_slice(b"u64?");
    let (code, message) = problem(read_binary(&binary, &Limits::default()));
    assert_eq!(
        (code, &*message),
        (Code::Wire, "the file is damaged at inputs[0]: input `x` is u64?, and its default of type i32")
    );
}

#[test]
fn other_files_are_told_apart() {
    let message = "this is not a program written by cembra";
    assert_eq!(json_problem("{}"), message);
    assert_eq!(json_problem(r#"{"format": "cembra", "version": 1}"#), message);
    assert_eq!(problem(read_binary(b"", &Limits::default())), (Code::Wire, message.to_owned()));
    let none = json_problem(r#"{"format": "cembra-program"}"#);
    assert_eq!(none, "the file is damaged at version: there is no version 0");
}

#[test]
fn a_file_cut_short_is_an_error() {
    let (binary, json) = (write_binary(&small()), write_json(&small()));
    for end in 0..binary.len() {
        // Without spans, which stand last, no part of a file can be left out.
        let read = read_binary(&binary[..end], &Limits::default());
        assert!(read.is_err(), "{end}");
    }
    for end in 0..json.trim_end().len() {
        assert_eq!(problem(read_json(&json[..end], &Limits::default())).0, Code::Wire, "{end}");
    }
}

/// Files may say of functions what no text can: parameters that are none, that two functions have, or that stand outside.
#[test]
fn odd_functions_are_read_and_printed() {
    let file = |nodes: &str, result: usize| {
        let text = format!(
            r#"{{"format": "cembra-program", "version": 1, "nodes": [{nodes}], "outputs": [{{"name": "y", "node": {result}}}]}}"#
        );
        let program = read_json(&text, &Limits::default()).expect("a program");
        assert!(read_json(&write_json(&program), &Limits::default()).expect("the same") == program);
        cembra_expr::print(&program)
    };
    let x = r#"{"placeholder": "x"}, {"literal": "1"}"#;
    let lambda = |operands: &str| format!(r#"{{"operator": "core._lambda", "operands": [{operands}]}}"#);
    for (nodes, result, printed) in [
        (format!("{x}, {}", lambda("")), 2, "output y = core._lambda()\n"),
        (format!("{x}, {}", lambda("0, 1")), 2, "output y = core._lambda(P.x, 1)\n"),
        (format!("{x}, {}", lambda("1, 0, 0")), 2, "output y = core._lambda(1, P.x, P.x)\n"),
        (
            format!(r#"{x}, {}, {{"operator": "core._lambda", "operands": [2, 0]}}"#, lambda("0, 0")),
            3,
            "output y = core._lambda(fn(x) = x, x)\n",
        ),
        (
            format!(
                r#"{x}, {}, {{"operator": "core._plus", "operands": [2, 0]}}, {{"operator": "core._plus", "operands": [3, 3]}}"#,
                lambda("0, 0")
            ),
            4,
            "let t0 = (fn(x) = x) + x\noutput y = t0 + t0\n",
        ),
        (
            r#"{"placeholder": "two words"}, {"operator": "core._lambda", "operands": [0, 0]}"#.to_owned(),
            1,
            "output y = core._lambda(P.two words, P.two words)\n",
        ),
    ] {
        assert_eq!(file(&nodes, result), printed);
    }
    let mut binary = write_binary(&small());
    binary.extend(b"\x32\x07\x0a\x05\x3a\x03\x0a\x01,");
    assert!(read_binary(&binary, &Limits::default()).is_err());
}

#[test]
fn every_flipped_bit_gives_an_answer() {
    let binary = write_binary(&small());
    let mut refused = 0;
    for bit in 0..binary.len() * 8 {
        let mut damaged = binary.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        match read_binary(&damaged, &Limits::default()) {
            // Another number or letter is another program.
            Ok(program) => assert_eq!(read_binary(&write_binary(&program), &Limits::default()).ok(), Some(program)),
            Err(_) => refused += 1,
        }
    }
    assert!(refused > binary.len() * 4, "{refused}");
}

/// A file with these nodes.
fn with_nodes(nodes: &str) -> String {
    format!(
        r#"{{"format": "cembra-program", "version": 1, "nodes": [{nodes}], "outputs": [{{"name": "y", "node": 0}}]}}"#
    )
}

#[test]
fn problems_of_json_have_a_place() {
    for (nodes, message) in [
        (r#"{"leaf": 5}"#, "line 1, column 63: invalid type: integer `5`, expected a string"),
        (r#"{"laef": "x"}"#, ""),
        (r#"{"leaf": "x", "literal": "1"}"#, ""),
        (r#"{"operator": "math.neg"}"#, ""),
        (r#"{"leaf": "x", "operands": []}"#, ""),
        (r#"{"operator": "f", "operands": [-1]}"#, ""),
        (
            r#"{"leaf": "x"}, {"operator": "f", "operands": [0, 1]}"#,
            "nodes[1]: its operand 1 is the node 1, which is not before it",
        ),
        (r#"{"operator": "a b", "operands": []}"#, "nodes[0]: `a b` cannot be the name of an operator"),
        (r#"{"literal": "1 2"}"#, "nodes[0]: expected the end of the text, found `2`"),
        (r#"{"literal": "x"}"#, "nodes[0]: "),
        (r#"{"leaf": "x", "spans": [[3, 2]]}"#, "nodes[0]: a span ends before it begins"),
        ("", "outputs[0]: there is no node 0"),
    ] {
        let found = json_problem(&with_nodes(nodes));
        let Some(rest) = found.strip_prefix("the file is damaged at ") else { panic!("{found}") };
        if message.is_empty() {
            assert!(rest.starts_with("line 1, column "), "{found}");
        } else {
            assert!(rest.starts_with(message), "{found}\ninstead of\n{message}");
        }
    }
    let twice = with_nodes(r#"{"leaf": "x"}"#).replace("}]}", r#"}, {"name": "y", "node": 0}]}"#);
    assert_eq!(json_problem(&twice), "the file is damaged at outputs[1]: the output `y` is there twice");
    let input = with_nodes(r#"{"leaf": "x"}"#)
        .replace(r#""nodes""#, r#""inputs": [{"name": "a"}, {"name": "b", "type": "(f32, QTYPE)"}], "nodes""#);
    assert_eq!(json_problem(&input), "the file is damaged at inputs[1]: no input is of type (f32, QTYPE)");
    let read =
        read_json(&with_nodes(r#"{"leaf": "x"}"#).replace(r#"{"name": "y", "node": 0}"#, ""), &Limits::default());
    assert_eq!(problem(read).0, Code::NoOutput);
}

#[test]
fn every_limit_holds() {
    let program = small();
    for (limits, name) in [
        (Limits { nodes: 3, ..Limits::default() }, "nodes"),
        (Limits { name_bytes: 7, ..Limits::default() }, "name_bytes"),
        (Limits { tuple_nesting: 0, ..Limits::default() }, "tuple_nesting"),
        (Limits { operands: 1, ..Limits::default() }, "operands"),
        (Limits { literal_bytes: 40, ..Limits::default() }, "literal_bytes"),
    ] {
        for read in [read_binary(&write_binary(&program), &limits), read_json(&write_json(&program), &limits)] {
            let (code, message) = problem(read);
            assert_eq!(code, Code::Limit);
            assert!(message.starts_with(&format!("the model exceeds the limit `{name}`")), "{message}");
        }
    }
}

/// A binary file that claims much more than it holds.
#[test]
fn claims_are_not_believed() {
    #[derive(Clone, PartialEq, Message)]
    struct Hostile {
        #[prost(string, tag = "1")]
        format: String,
        #[prost(uint32, tag = "2")]
        version: u32,
        #[prost(string, repeated, tag = "5")]
        names: Vec<String>,
        #[prost(bytes = "vec", repeated, tag = "6")]
        literals: Vec<Vec<u8>>,
        #[prost(int32, repeated, tag = "7")]
        kinds: Vec<i32>,
        #[prost(uint32, repeated, tag = "8")]
        subjects: Vec<u32>,
        #[prost(uint32, repeated, tag = "9")]
        arities: Vec<u32>,
        #[prost(uint32, repeated, tag = "10")]
        operands: Vec<u32>,
    }
    let base = Hostile {
        format: "cembra-program".to_owned(),
        version: 1,
        names: vec!["f".to_owned()],
        subjects: vec![0],
        ..Hostile::default()
    };
    // A part that is a tuple of 4,294,967,295 fields.
    let tuple = b"\x0a\x06\x20\xff\xff\xff\xff\x0f".to_vec();
    for (file, message) in [
        (Hostile { kinds: vec![3], literals: vec![tuple.clone()], ..base.clone() }, "nodes[0]: a part of its value"),
        (Hostile { kinds: vec![3], literals: vec![tuple.repeat(300)], ..base.clone() }, "limit"),
        (Hostile { kinds: vec![3], ..base.clone() }, "literals: a literal is not there"),
        (Hostile { kinds: vec![4], arities: vec![u32::MAX], ..base.clone() }, "operands: it ends before the nodes do"),
        (Hostile { kinds: vec![4], arities: vec![1], operands: vec![0], ..base.clone() }, "nodes[0]: its operand 0"),
        (Hostile { kinds: vec![4], arities: vec![1], operands: vec![1], ..base.clone() }, "nodes[0]: an operand is"),
        (Hostile { kinds: vec![1], operands: vec![1], ..base.clone() }, "operands: it goes on"),
        (Hostile { kinds: vec![1], subjects: vec![9], ..base.clone() }, "nodes[0]: there is no name 9"),
        (Hostile { kinds: vec![9], ..base.clone() }, "nodes[0]: there is no such kind of node"),
        (Hostile { kinds: vec![1; 4_000_001], ..base.clone() }, "limit"),
    ] {
        let (_, found) = problem(read_binary(&file.encode_to_vec(), &Limits::default()));
        let rest = found.strip_prefix("the file is damaged at ").unwrap_or("limit");
        assert!(rest.starts_with(message), "{found}\ninstead of\n{message}");
    }
}

/// The header of a binary file, and fields behind it: key, and bytes with their length, or a number.
fn fields(fields: &[(u8, Option<&[u8]>)]) -> Vec<u8> {
    let mut file = b"\x0a\x0ecembra-program\x10\x01".to_vec();
    for (number, bytes) in fields {
        file.push(number << 3 | if bytes.is_some() { 2 } else { 0 });
        match bytes {
            Some(bytes) => {
                prost::encoding::encode_varint(bytes.len() as u64, &mut file);
                file.extend_from_slice(bytes);
            }
            None => file.push(1),
        }
    }
    file
}

/// What a file makes its reader allocate is counted before, in whatever form it stands there. All of these are damaged too, so
/// that a limit is only said if it was looked at first.
#[test]
fn what_takes_memory_is_counted_before_it_is_read() {
    let few = Limits { nodes: 10, operands: 20, literal_bytes: 30, ..Limits::default() };
    let check = |file: &[u8], limit: Option<&str>| {
        let (_, found) = problem(read_binary(file, &few));
        let expected =
            limit.map_or("the file is damaged".to_owned(), |name| format!("the model exceeds the limit `{name}`"));
        assert!(found.starts_with(&expected), "{found}\ninstead of\n{expected}");
    };
    for (number, most, limit) in [
        (7, 10, "nodes"),
        (8, 10, "nodes"),
        (9, 10, "nodes"),
        (10, 20, "operands"),
        (11, 10, "nodes"),
        (12, 20, "operands"),
        (13, 20, "operands"),
    ] {
        // A column is one field of many numbers, or a field for each; numbers may take several bytes.
        let one = |count: usize| fields(&[(number, Some(&[0x81, 0x01].repeat(count)))]);
        let each = |count: usize| fields(&vec![(number, None); count]);
        let both = |count: usize| [each(count - 1), one(1)[18..].to_vec()].concat();
        for form in [&one as &dyn Fn(usize) -> Vec<u8>, &each, &both] {
            check(&form(most), None);
            check(&form(most + 1), Some(limit));
        }
    }
    // A literal of one part, which is a named tuple; each name is a part too.
    let named = |names: usize| {
        let names = [0x0a, 0].repeat(names);
        let part = [&[0x3a, names.len() as u8][..], &names].concat();
        fields(&[(6, Some(&[&[0x0a, part.len() as u8][..], &part].concat()))])
    };
    check(&named(29), None);
    check(&named(30), Some("literal_bytes"));
}

/// Operands of a JSON file are counted while it is read, and so are places.
#[test]
fn operands_of_json_are_counted_while_they_are_read() {
    let few = Limits { operands: 5, ..Limits::default() };
    let file = |operands: usize, spans: usize| {
        let (operands, spans) = (vec!["0"; operands].join(","), vec!["[0,1]"; spans].join(","));
        format!(
            r#"{{"format":"cembra-program","version":1,"nodes":[{{"leaf":"x"}},{{"operator":"f","operands":[{operands}],"spans":[{spans}]}}],"outputs":[{{"name":"y","node":1}}]}}"#
        )
    };
    assert_eq!(read_json(&file(5, 5), &few).expect("a program").graph.operand_count(), 5);
    for text in [file(6, 0), file(0, 6)] {
        let (code, message) = problem(read_json(&text, &few));
        assert!(code == Code::Limit && message.contains("`operands`"), "{message}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn damaged_binary_files_give_an_answer(
        program in program(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        end in any::<prop::sample::Index>(),
    ) {
        let mut bytes = write_binary(&program);
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        for bytes in [&bytes[..], &bytes[..end.index(bytes.len())]] {
            if let Ok(program) = read_binary(bytes, &Limits::default()) {
                prop_assert_eq!(read_binary(&write_binary(&program), &Limits::default()).ok(), Some(program));
            }
        }
    }

    #[test]
    fn edited_json_files_give_an_answer(
        program in program(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..4, "[0-9\\[\\]{}\",:a-z\\\\-]{0,2}"), 1..4),
    ) {
        let mut text = write_json(&program);
        for (at, length, new) in edits {
            let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            let start = at.index(places.len());
            let end = places.get(start + length).copied().unwrap_or(text.len());
            text.replace_range(places[start]..end, &new);
        }
        if let Ok(program) = read_json(&text, &Limits::default()) {
            prop_assert_eq!(read_json(&write_json(&program), &Limits::default()).ok(), Some(program));
        }
    }

    #[test]
    fn any_bytes_give_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut file = b"\x0a\x0ecembra-program\x10\x01".to_vec();
        file.extend(&bytes);
        let _answer = read_binary(&file, &Limits::default());
        let _answer = read_binary(&bytes, &Limits::default());
    }
}
