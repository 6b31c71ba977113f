//! Which types each operator takes: exactly those the golden data list, with the types they list, and no others.

use cembra::Options;
use cembra_runtime::{QType, Scalar};
use cembra_tests::backend::CembraEngine;
use cembra_tests::engine::Engine;
use cembra_tests::files;
use cembra_tests::operator::Callee;
use cembra_tests::record::{Case, Record, SignatureCase};
use cembra_tests::universe::{Unlisted, unlisted};
use std::collections::{BTreeMap, HashSet};

/// All listed signatures.
fn listed() -> Vec<(String, SignatureCase)> {
    let mut listed = Vec::new();
    files::for_each_line(&files::own().join("signatures.jsonl.gz"), |_, text| {
        let record = Record::parse(text).expect("a signature");
        match record.case {
            Ok(Case::Signature(signature)) => listed.push((record.name, signature)),
            Ok(_) => panic!("no signature: {text}"),
            Err(missing) => panic!("{missing}: {text}"),
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
    assert_eq!(listed.len(), 10_118);
    for (name, signature) in listed {
        let found = found(&signature.callee, &signature.operands);
        assert_eq!(found.as_ref(), Some(&signature.ret), "{name} of {:?}", signature.operands);
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

/// Calls with an operand of a kind that is never listed for it. Operators of three and four operands were tried on few types;
/// that none of a kind is listed for an operand still means that the operand is never of that kind.
fn of_foreign_kinds(listed: &[(String, SignatureCase)]) -> Vec<Unlisted> {
    let mut operators: BTreeMap<(&str, usize), Listed<'_>> = BTreeMap::new();
    for (name, signature) in listed {
        let operator = operators.entry((name, signature.operands.len())).or_default();
        operator.signatures.push(signature);
        operator.kinds.resize_with(signature.operands.len(), HashSet::new);
        for (kinds, operand) in operator.kinds.iter_mut().zip(&signature.operands) {
            kinds.insert(kind(operand));
        }
    }
    // Arolla has no dates; which operators take them is in `dates.rs`.
    let scalars = Scalar::ALL.into_iter().filter(|scalar| !scalar.is_quoted());
    let types: Vec<QType> = scalars.flat_map(|s| [QType::Scalar(s), QType::Optional(s)]).collect();
    let mut found = Vec::new();
    for ((name, arity), Listed { signatures, kinds }) in operators {
        for (signature, at) in signatures.into_iter().flat_map(|one| (0..arity).map(move |at| (one, at))) {
            for foreign in types.iter().filter(|foreign| !kinds[at].contains(&kind(foreign))) {
                let mut operands = signature.operands.clone();
                operands[at] = foreign.clone();
                found.push(Unlisted { name: name.to_owned(), callee: signature.callee.clone(), operands });
            }
        }
    }
    found
}

#[test]
fn types_that_are_not_listed_are_rejected() {
    let listed = listed();
    let mut tried = HashSet::new();
    for Unlisted { name, callee, operands } in unlisted(&listed).into_iter().chain(of_foreign_kinds(&listed)) {
        if tried.insert((name.clone(), operands.clone()))
            && let Some(found) = found(&callee, &operands)
        {
            panic!("{name} takes {operands:?} and gives {found}");
        }
    }
    assert!(tried.len() >= 20_000, "{} not listed", tried.len());
}
