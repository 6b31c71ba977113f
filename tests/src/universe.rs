//! The types that the golden signatures were tried on. What was tried and is not listed is a type error.

use crate::operator::Callee;
use crate::record::SignatureCase;
use cembra_runtime::{QType, Scalar};
use std::collections::{BTreeMap, HashSet};

/// A call that must be rejected: its operator, as the data name it, and the types of its operands.
#[derive(Clone, Debug)]
pub struct Unlisted {
    /// The operator's name.
    pub name: String,
    /// The operator.
    pub callee: Callee,
    /// The types it does not take.
    pub operands: Vec<QType>,
}

/// The calls that were tried and are not among the listed signatures, for the operators and arities that are.
#[must_use]
pub fn unlisted(listed: &[(String, SignatureCase)]) -> Vec<Unlisted> {
    let mut callees: BTreeMap<(&str, usize), &Callee> = BTreeMap::new();
    let mut accepted: HashSet<(&str, &[QType])> = HashSet::new();
    for (name, signature) in listed {
        callees.insert((name, signature.operands.len()), &signature.callee);
        accepted.insert((name, &signature.operands));
    }
    let mut found = Vec::new();
    for ((name, arity), callee) in callees {
        let rejected = tried(name, arity).into_iter().filter(|operands| !accepted.contains(&(name, operands)));
        found.extend(rejected.map(|operands| Unlisted { name: name.to_owned(), callee: callee.clone(), operands }));
    }
    found
}

/// The types cembra has among those that were tried for an operator of this arity.
fn tried(name: &str, arity: usize) -> Vec<Vec<QType>> {
    // Dates and timestamps are cembra's own, so nobody tried them.
    let plain: Vec<QType> = Scalar::ALL.into_iter().filter(|s| !s.is_quoted()).map(QType::Scalar).collect();
    let all = with_optional(&plain);
    let numbers: Vec<QType> = Scalar::ALL.into_iter().filter(|s| s.is_numeric()).map(QType::Scalar).collect();
    let choices = match (name, arity) {
        (_, 1 | 2) => vec![all; arity],
        ("core.where", 3) => vec![vec![QType::UNIT, QType::MASK, QType::BOOLEAN], all.clone(), all],
        ("core._presence_and_or", 3) => vec![all.clone(), vec![QType::UNIT, QType::MASK], all],
        ("math.sigmoid", 3) => vec![with_optional(&numbers), numbers.clone(), numbers],
        ("bool.logical_if", 4) => {
            let values = vec![QType::INT32, QType::FLOAT32, QType::FLOAT32.to_optional(), QType::TEXT, QType::BOOLEAN];
            vec![with_optional(&[QType::BOOLEAN]), values.clone(), values.clone(), values]
        }
        _ => return Vec::new(),
    };
    let mut product = vec![Vec::new()];
    for choice in &choices {
        let extended = |prefix: &Vec<QType>| -> Vec<Vec<QType>> {
            choice.iter().map(|qtype| [prefix.as_slice(), std::slice::from_ref(qtype)].concat()).collect()
        };
        product = product.iter().flat_map(extended).collect();
    }
    product
}

fn with_optional(plain: &[QType]) -> Vec<QType> {
    plain.iter().cloned().chain(plain.iter().map(QType::to_optional)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_tried_is_listed_or_unlisted() {
        let signature = SignatureCase {
            callee: Callee::parse("core.where").expect("an operator"),
            operands: vec![QType::MASK, QType::INT32, QType::FLOAT32],
            ret: QType::FLOAT32,
            reference_bug: false,
        };
        let unlisted = unlisted(&[("core.where".to_owned(), signature.clone())]);
        assert_eq!(unlisted.len(), 3 * 20 * 20 - 1);
        assert!(unlisted.iter().all(|call| call.operands != signature.operands));
        assert_eq!(tried("core._presence_and_or", 3).len(), 20 * 2 * 20);
        assert_eq!(tried("math.sigmoid", 3).len(), 10 * 5 * 5);
        assert_eq!(tried("bool.logical_if", 4).len(), 2 * 5 * 5 * 5);
        assert_eq!(tried("math.add", 2).len(), 400);
        assert!(tried("math._add4", 4).is_empty());
    }
}
