//! Files of models that claim more than they hold, or hold more than they should.

use super::{Case, Source, quick, slow};

const MANY: usize = 10 << 20;

/// A number as protobuf writes it.
fn varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// The header of a file, and behind it fields of bytes: number, length as claimed, bytes.
fn file(fields: &[(u64, u64, &[u8])]) -> Vec<u8> {
    let mut out = Vec::new();
    for (number, length, bytes) in [(1, 14, &b"cembra-program"[..])].iter().chain(fields.first().map(|_| &VERSION)) {
        field(*number, *length, bytes, &mut out);
    }
    for (number, length, bytes) in fields {
        field(*number, *length, bytes, &mut out);
    }
    out
}

const VERSION: (u64, u64, &[u8]) = (2, 1, &[]);

fn field(number: u64, length: u64, bytes: &[u8], out: &mut Vec<u8>) {
    // The version is a number, all else are bytes.
    varint(number << 3 | if number == 2 { 0 } else { 2 }, out);
    varint(length, out);
    out.extend_from_slice(bytes);
}

/// A file of many fields that are empty.
fn empty_fields(number: u64, count: usize) -> Source {
    let (mut bytes, mut one) = (file(&[(number, 0, b"")]), Vec::new());
    field(number, 0, b"", &mut one);
    bytes.extend(one.repeat(count - 1));
    Source::Binary(bytes)
}

/// A file of one leaf and operators of a million operands each.
fn operands(millions: usize) -> Source {
    const MILLION: usize = 1_000_000;
    let (mut kinds, mut subjects, mut arities) = (vec![1], vec![0], Vec::new());
    let mut column = Vec::with_capacity(millions * MILLION);
    for number in 1..=millions {
        kinds.push(4);
        subjects.push(1);
        varint(MILLION as u64, &mut arities);
        let mut distance = Vec::new();
        varint(number as u64, &mut distance);
        column.extend(distance.repeat(MILLION));
    }
    let long = |bytes: &[u8]| bytes.len() as u64;
    Source::Binary(file(&[
        (4, 3, b"\x0a\x01y"),
        (5, 1, b"x"),
        (5, 15, b"core.make_tuple"),
        (7, long(&kinds), &kinds),
        (8, long(&subjects), &subjects),
        (9, long(&arities), &arities),
        (10, long(&column), &column),
    ]))
}

pub(super) const CASES: &[Case] = &[
    quick("15 operators of a million operands each, as a file", "missing-input-type", || operands(15)),
    quick("58 operators of a million operands each, as a file", "limit operands", || operands(58)),
    slow("190 operators of a million operands each, as a file", "limit operands", || operands(190)),
    // Each kind is a field of its own, not one column of them.
    quick("10 MiB of node kinds, each a field of a file", "limit nodes", || {
        let mut bytes = file(&[(5, 1, b"x")]);
        bytes.extend([0x38, 1].repeat(MANY / 2));
        Source::Binary(bytes)
    }),
    quick("a literal of 20 million names", "limit literal_bytes", || {
        let names = [0x0a, 0].repeat(20_000_000);
        let (mut part, mut literal) = (Vec::new(), Vec::new());
        field(7, names.len() as u64, &names, &mut part);
        field(1, part.len() as u64, &part, &mut literal);
        Source::Binary(file(&[(6, literal.len() as u64, &literal)]))
    }),
    quick("a file that ends in its header", "wire", || Source::Binary(file(&[])[..7].to_vec())),
    quick("a file that claims 2^60 names", "wire", || Source::Binary(file(&[(5, 1 << 60, b"a")]))),
    quick("a file that claims 2^32 node kinds", "wire", || Source::Binary(file(&[(7, 1 << 32, &[1])]))),
    quick("10 MiB of empty inputs", "limit nodes", || empty_fields(3, MANY / 2)),
    quick("10 MiB of empty outputs", "limit nodes", || empty_fields(4, MANY / 2)),
    quick("10 MiB of empty names", "limit nodes", || empty_fields(5, MANY / 2)),
    quick("10 MiB of empty literals", "limit nodes", || empty_fields(6, MANY / 2)),
    quick("10 MiB of node kinds", "limit nodes", || Source::Binary(file(&[(7, MANY as u64, &vec![1; MANY])]))),
    slow("a literal of 10 million empty parts", "wire", || {
        let parts = [10, 0].repeat(MANY);
        Source::Binary(file(&[(6, parts.len() as u64, &parts)]))
    }),
    quick("a tuple that claims 2^32 fields", "wire", || {
        // One literal node whose only part is a tuple.
        let literal = [10, 6, 32, 0xff, 0xff, 0xff, 0xff, 0x0f];
        Source::Binary(file(&[(6, 8, &literal), (7, 1, &[3])]))
    }),
    quick("nested tuples, as a file", "limit tuple_nesting", || {
        let parts = [10, 2, 32, 1].repeat(100_000);
        Source::Binary(file(&[(6, parts.len() as u64, &parts), (7, 1, &[3])]))
    }),
    quick("a node that is its own operand", "wire", || {
        Source::Binary(file(&[(5, 8, b"math.add"), (7, 1, &[4]), (8, 1, &[0]), (9, 1, &[1]), (10, 1, &[0])]))
    }),
    quick("an operand before the first node", "wire", || {
        Source::Binary(file(&[(5, 8, b"math.add"), (7, 1, &[4]), (8, 1, &[0]), (9, 1, &[1]), (10, 1, &[7])]))
    }),
    quick("an operator that claims 2^32 operands", "wire", || {
        let claimed = [0xff, 0xff, 0xff, 0xff, 0x0f];
        Source::Binary(file(&[(5, 8, b"math.add"), (7, 1, &[4]), (8, 1, &[0]), (9, 5, &claimed), (10, 1, &[1])]))
    }),
    quick("300 MiB of a file", "limit file_bytes", || Source::Binary(vec![0; 300 << 20])),
];
