//! The table of the types in a typed graph. A node has the number of its type in the table, not the type itself. Nearly
//! all types are scalars, plain or optional, and these have the same numbers in every graph. So a new node needs no
//! clone of a type. (A clone is slow, because the compiled code writes it field by field and then reads all of it at
//! once.)

use cembra_runtime::{QType, Scalar};
use std::sync::LazyLock;

/// The number of a type in a graph's table of types.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TypeId(u32);

/// The types of a graph's nodes, by number. Scalars and optionals are not in the table, because their numbers are
/// fixed.
#[derive(Clone, Debug, Default)]
pub(crate) struct TypeTable(Vec<QType>);

/// The scalar types, each plain and then optional.
static SCALARS: LazyLock<Vec<QType>> = LazyLock::new(|| {
    Scalar::ALL.into_iter().flat_map(|scalar| [false, true].map(|optional| QType::of(scalar, optional))).collect()
});

const SCALAR_COUNT: u32 = 2 * Scalar::ALL.len() as u32;

fn number(scalar: Scalar, optional: bool) -> u32 {
    2 * scalar as u32 + u32::from(optional)
}

/// The type of the scalar `scalar`, plain or optional.
pub(crate) fn scalar_type(scalar: Scalar, optional: bool) -> &'static QType {
    &SCALARS[number(scalar, optional) as usize]
}

impl TypeTable {
    /// Returns the number of the type `qtype`. A type that is neither a scalar nor an optional is added to the table.
    #[inline]
    pub(crate) fn enter(&mut self, qtype: &QType) -> TypeId {
        TypeId(match qtype {
            QType::Scalar(scalar) => number(*scalar, false),
            QType::Optional(scalar) => number(*scalar, true),
            other => {
                self.0.push(other.clone());
                SCALAR_COUNT + self.0.len() as u32 - 1
            }
        })
    }

    /// The type with the number `id`.
    #[inline]
    pub(crate) fn get(&self, id: TypeId) -> &QType {
        match id.0.checked_sub(SCALAR_COUNT) {
            Some(other) => &self.0[other as usize],
            None => &SCALARS[id.0 as usize],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_found_again() {
        let mut table = TypeTable::default();
        let mut types = vec![QType::Meta, QType::tuple([QType::MASK, QType::tuple([])]), QType::Function];
        types.extend(
            Scalar::ALL.into_iter().flat_map(|scalar| [false, true].map(|optional| QType::of(scalar, optional))),
        );
        let ids: Vec<TypeId> = types.iter().map(|qtype| table.enter(qtype)).collect();
        for (at, (id, qtype)) in ids.iter().zip(&types).enumerate() {
            assert_eq!(table.get(*id), qtype);
            assert!(!ids[..at].contains(id), "{qtype}");
            if let Some(scalar) = qtype.scalar() {
                assert_eq!(scalar_type(scalar, qtype.is_optional()), qtype);
            }
        }
    }
}
