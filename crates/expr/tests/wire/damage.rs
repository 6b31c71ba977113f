//! Tests of model files that are damaged, hostile or of another version. Reading such a file must give an error with a
//! place, or another program, but must not panic.

use crate::anything::Anything;
use crate::random::program;
use cembra_expr::{Builder, Program, parse, print, read_binary, write_binary};
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

/// Returns the code and the message of the only problem of a file.
#[track_caller]
fn problem(read: Result<Program, Error>) -> (Code, String) {
    let problems = read.expect_err("a problem");
    assert_eq!(problems.diagnostics().len(), 1);
    (problems.diagnostics()[0].code(), problems.diagnostics()[0].message().to_owned())
}

/// Returns the message about a damaged file.
#[track_caller]
fn damage(file: &[u8]) -> String {
    let (code, message) = problem(read_binary(file, &Limits::default()));
    assert_eq!(code, Code::Wire, "{message}");
    message
}

#[test]
fn newer_versions_are_refused_by_both_numbers() {
    // What a later version keeps elsewhere is no concern of this one.
    let mut binary = b"\x0a\x0ecembra-program\x10\x07".to_vec();
    binary.extend(b"\x38\x09\x92\x06\x01x");
    assert_eq!(damage(&binary), "the file has version 7, but this cembra reads versions up to 5");
}

#[test]
fn defaults_are_of_the_types_of_their_inputs() {
    let good = parse("input x: i32? = 1; x", &Anything, &Limits::default()).unwrap();
    let binary = write_binary(&good);
    assert!(read_binary(&binary, &Limits::default()).unwrap() == good);
    // Type names of the same length, for types that the default does not fit.
    let at = binary.windows(4).position(|bytes| bytes == b"i32?").unwrap();
    for (other, message) in
        [(b"u64?", "input `x` is u64?, but its default is i32"), (b"text", "input `x` is text, but its default is i32")]
    {
        let mut damaged = binary.clone();
        damaged[at..at + 4].copy_from_slice(other);
        assert_eq!(damage(&damaged), format!("the file is damaged at inputs[0]: {message}"));
    }
}

#[test]
fn other_files_are_told_apart() {
    assert_eq!(damage(b""), "this is not a program written by cembra");
    assert_eq!(damage(b"\x0a\x06cembra\x10\x01"), "this is not a program written by cembra");
    assert_eq!(
        damage(b"\x0a\x0ecembra-program"),
        "the file is damaged at version: the version must be at least 1, found 0"
    );
}

#[test]
fn a_file_cut_short_is_an_error() {
    let binary = write_binary(&small());
    for end in 0..binary.len() {
        // Without spans, which stand last, no part of a file can be left out.
        let read = read_binary(&binary[..end], &Limits::default());
        assert!(read.is_err(), "{end}");
    }
}

/// The protobuf message of a model file, for making damaged files. Literals are bytes here.
#[derive(Clone, PartialEq, Message)]
struct File {
    #[prost(string, tag = "1")]
    format: String,
    #[prost(uint32, tag = "2")]
    version: u32,
    #[prost(message, repeated, tag = "3")]
    inputs: Vec<FileInput>,
    #[prost(message, repeated, tag = "4")]
    outputs: Vec<FileOutput>,
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

#[derive(Clone, PartialEq, Message)]
struct FileInput {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, optional, tag = "2")]
    qtype: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct FileOutput {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(uint32, tag = "2")]
    node: u32,
}

const LEAF: i32 = 1;
const PLACEHOLDER: i32 = 2;
const LITERAL: i32 = 3;
const OPERATOR: i32 = 4;

/// Makes a file of version 1 without nodes.
fn file() -> File {
    File { format: "cembra-program".to_owned(), version: 1, ..File::default() }
}

/// A file can have functions that no text can express: with parameters that are not placeholders, with a parameter that
/// two functions share, or with a parameter that is used outside of its function.
#[test]
fn odd_functions_are_read_and_printed() {
    /// Returns the literal 1 of type WEAK_FLOAT or INT32, in the bytes of a file.
    fn one() -> Vec<u8> {
        let program = parse("1", &Anything, &Limits::default()).expect("a program");
        File::decode(&write_binary(&program)[..]).expect("a file").literals.swap_remove(0)
    }
    // The graph is a placeholder, a literal, and then operators with their operands.
    let printed = |parameter: &str, operators: &[(&str, &[u32])]| {
        let mut file = file();
        file.names = vec![parameter.to_owned(), "core._lambda".to_owned(), "core._plus".to_owned()];
        (file.kinds, file.subjects, file.literals) = (vec![PLACEHOLDER, LITERAL], vec![0], vec![one()]);
        for (name, operands) in operators {
            let at = file.kinds.len() as u32;
            file.kinds.push(OPERATOR);
            file.subjects.push(file.names.iter().position(|known| known == name).expect("a name") as u32);
            file.arities.push(operands.len() as u32);
            file.operands.extend(operands.iter().map(|operand| at - operand));
        }
        file.outputs = vec![FileOutput { name: "y".to_owned(), node: file.kinds.len() as u32 - 1 }];
        let program = read_binary(&file.encode_to_vec(), &Limits::default()).expect("a program");
        assert!(read_binary(&write_binary(&program), &Limits::default()).expect("the same") == program);
        print(&program, &Anything)
    };
    let (lambda, plus) = ("core._lambda", "core._plus");
    assert_eq!(printed("x", &[(lambda, &[])]), "output y = core._lambda()\n");
    assert_eq!(printed("x", &[(lambda, &[0, 1])]), "output y = core._lambda(P.x, 1)\n");
    assert_eq!(printed("x", &[(lambda, &[1, 0, 0])]), "output y = core._lambda(1, P.x, P.x)\n");
    let function: (&str, &[u32]) = (lambda, &[0, 0]);
    assert_eq!(printed("x", &[function, (lambda, &[2, 0])]), "output y = core._lambda(fn(x) = x, x)\n");
    assert_eq!(
        printed("x", &[function, (plus, &[2, 0]), (plus, &[3, 3])]),
        "let t0 = (fn(x) = x) + x\noutput y = t0 + t0\n"
    );
    assert_eq!(printed("two words", &[function]), "output y = core._lambda(P.two words, P.two words)\n");
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

#[test]
fn problems_have_a_place() {
    let output = |name: &str, node| FileOutput { name: name.to_owned(), node };
    let leaf = File {
        names: vec!["x".to_owned()],
        kinds: vec![LEAF],
        subjects: vec![0],
        outputs: vec![output("y", 0)],
        ..file()
    };
    assert!(read_binary(&leaf.encode_to_vec(), &Limits::default()).is_ok());
    let operator = File { names: vec!["a b".to_owned()], kinds: vec![OPERATOR], arities: vec![0], ..leaf.clone() };
    let twice = File { outputs: vec![output("y", 0), output("y", 0)], ..leaf.clone() };
    let inputs = [("a", None), ("b", Some("(f32, QTYPE)"))];
    let inputs = inputs.map(|(name, qtype)| FileInput { name: name.to_owned(), qtype: qtype.map(str::to_owned) });
    for (file, message) in [
        (operator, "nodes[0]: `a b` cannot be the name of an operator"),
        (twice, "outputs[1]: the output `y` is in the list twice"),
        (File { inputs: inputs.to_vec(), ..leaf.clone() }, "inputs[1]: an input cannot have the type (f32, QTYPE)"),
        (File { outputs: vec![output("y", 1)], ..leaf.clone() }, "outputs[0]: there is no node 1"),
    ] {
        assert_eq!(damage(&file.encode_to_vec()), format!("the file is damaged at {message}"));
    }
    let none = File { outputs: Vec::new(), ..leaf };
    assert_eq!(problem(read_binary(&none.encode_to_vec(), &Limits::default())).0, Code::NoOutput);
}

#[test]
fn every_limit_holds() {
    let program = small();
    for (limits, name) in [
        (Limits::default().nodes(3), "nodes"),
        (Limits::default().name_bytes(7), "name_bytes"),
        (Limits::default().tuple_nesting(0), "tuple_nesting"),
        (Limits::default().operands(1), "operands"),
        (Limits::default().literal_bytes(40), "literal_bytes"),
    ] {
        let (code, message) = problem(read_binary(&write_binary(&program), &limits));
        assert_eq!(code, Code::Limit);
        assert!(message.starts_with(&format!("the model exceeds the limit `{name}`")), "{message}");
    }
}

/// A file can state larger counts than it has elements, for example a tuple with 4,294,967,295 fields. Reading it must
/// be an error.
#[test]
fn claims_are_not_believed() {
    let base = File { names: vec!["f".to_owned()], subjects: vec![0], ..file() };
    // A part that is a tuple of 4,294,967,295 fields.
    let tuple = b"\x0a\x06\x20\xff\xff\xff\xff\x0f".to_vec();
    for (file, message) in [
        (
            File { kinds: vec![3], literals: vec![tuple.clone()], ..base.clone() },
            "nodes[0]: the value of the literal is not complete",
        ),
        (File { kinds: vec![3], literals: vec![tuple.repeat(300)], ..base.clone() }, "limit"),
        (
            File { kinds: vec![3], ..base.clone() },
            "literals: the list of literals ends before the last literal of the nodes",
        ),
        (
            File { kinds: vec![4], arities: vec![u32::MAX], ..base.clone() },
            "operands: the list ends before the last node",
        ),
        (File { kinds: vec![4], arities: vec![1], operands: vec![0], ..base.clone() }, "nodes[0]: operand 0"),
        (File { kinds: vec![4], arities: vec![1], operands: vec![1], ..base.clone() }, "nodes[0]: an operand is"),
        (File { kinds: vec![1], operands: vec![1], ..base.clone() }, "operands: the list goes on"),
        (File { kinds: vec![1], subjects: vec![9], ..base.clone() }, "nodes[0]: there is no name 9"),
        (File { kinds: vec![9], ..base.clone() }, "nodes[0]: the kind of the node is unknown"),
        (File { kinds: vec![1; 4_000_001], ..base.clone() }, "limit"),
    ] {
        let (_, found) = problem(read_binary(&file.encode_to_vec(), &Limits::default()));
        let rest = found.strip_prefix("the file is damaged at ").unwrap_or("limit");
        assert!(rest.starts_with(message), "{found}\ninstead of\n{message}");
    }
}

/// Makes a binary file: the header, and then `fields`. Each is a field number and the field's bytes, or `None` for the
/// number 1.
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

/// The elements for which a reader allocates memory are counted before the file is read, in each encoding that protobuf
/// allows. All files of this test are damaged too, so the error is about a limit only if the limit is checked first.
#[test]
fn what_takes_memory_is_counted_before_it_is_read() {
    let few = Limits::default().nodes(10).operands(20).literal_bytes(30);
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
    fn any_bytes_give_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut file = b"\x0a\x0ecembra-program\x10\x01".to_vec();
        file.extend(&bytes);
        let _answer = read_binary(&file, &Limits::default());
        let _answer = read_binary(&bytes, &Limits::default());
    }
}
