//! Which types each operator takes: exactly those the golden data list, with the types they list, and no others.

use cembra::Options;
use cembra_runtime::{QType, Scalar};
use cembra_tests::backend::CembraEngine;
use cembra_tests::engine::Engine;
use cembra_tests::files;
use cembra_tests::operator::Callee;
use cembra_tests::record::{Case, Record, SignatureCase};
use cembra_tests::universe::unlisted;
use std::collections::{BTreeMap, HashSet};

/// The signatures of operators and types that cembra has.
fn listed() -> Vec<(String, SignatureCase)> {
    let mut listed = Vec::new();
    files::for_each_line(&files::own().join("signatures.jsonl.gz"), |_, text| {
        let record = Record::parse(text).expect("a signature");
        if let Ok(Case::Signature(signature)) = record.case {
            listed.push((record.name, signature));
        }
        Ok(())
    })
    .expect("a readable file");
    listed
}

/// The type that a call of an operator has, if it takes these operands.
fn found(callee: &Callee, operands: &[QType]) -> Option<QType> {
    let program = callee.program(operands).expect("as many operands as a listed call has");
    CembraEngine::interpreter(Options::default()).output_type(&program).ok()
}

#[test]
fn listed_types_are_accepted_and_give_the_listed_type() {
    let listed = listed();
    assert!(listed.len() > 5_200, "{} listed", listed.len());
    for (name, signature) in listed {
        let found = found(&signature.callee, &signature.operands);
        assert_eq!(found.as_ref(), Some(&signature.ret), "{name} of {:?}", signature.operands);
    }
}

#[test]
fn tried_types_that_are_not_listed_are_rejected() {
    let calls = unlisted(&listed());
    assert!(calls.len() > 14_900, "{} not listed", calls.len());
    for call in calls {
        if let Some(found) = found(&call.callee, &call.operands) {
            panic!("{} takes {:?} and gives {found}", call.name, call.operands);
        }
    }
}

/// What types must share to stand for one another as an operand: all numbers are one kind, other scalars one each.
fn kind(qtype: &QType) -> Option<Scalar> {
    let scalar = qtype.scalar()?;
    Some(if scalar.is_numeric() { Scalar::Float64 } else { scalar })
}

/// The listed signatures of an operator with some number of operands.
#[derive(Default)]
struct Listed<'a> {
    signatures: Vec<&'a SignatureCase>,
    /// The kinds listed for each operand.
    kinds: Vec<HashSet<Option<Scalar>>>,
}

#[test]
fn operands_of_a_kind_that_is_never_listed_are_rejected() {
    // Operators of three and four operands were tried on few types. That none of a kind is listed for an operand still
    // means that the operand is never of that kind.
    let listed = listed();
    let mut operators: BTreeMap<(&str, usize), Listed<'_>> = BTreeMap::new();
    for (name, signature) in &listed {
        let operator = operators.entry((name, signature.operands.len())).or_default();
        operator.signatures.push(signature);
        operator.kinds.resize_with(signature.operands.len(), HashSet::new);
        for (kinds, operand) in operator.kinds.iter_mut().zip(&signature.operands) {
            kinds.insert(kind(operand));
        }
    }
    let types: Vec<QType> = Scalar::ALL.into_iter().flat_map(|s| [QType::Scalar(s), QType::Optional(s)]).collect();
    let operators: Vec<_> = operators.into_iter().collect();
    let mut random = fastrand::Rng::with_seed(20_261_120);
    let mut left = 20_000;
    while left > 0 {
        let ((name, arity), Listed { signatures, kinds }) = &operators[random.usize(..operators.len())];
        let signature = signatures[random.usize(..signatures.len())];
        let (at, foreign) = (random.usize(..*arity), &types[random.usize(..types.len())]);
        if kinds[at].contains(&kind(foreign)) {
            // Some operators take every kind: then another is drawn.
            continue;
        }
        left -= 1;
        let mut operands = signature.operands.clone();
        operands[at] = foreign.clone();
        if let Some(found) = found(&signature.callee, &operands) {
            panic!("{name} takes {operands:?} and gives {found}");
        }
    }
}
