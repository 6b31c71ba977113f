//! What an input promises of its values beyond their type: that an array has all of its elements, or which form an edge has.
//! It is no part of the type: operators and overloads know nothing of it, and values of one type may keep it or not.

use cembra_runtime::{ArrayKind, EdgeType, QType};

/// What an input promises of its values. Only arrays and edges that are whole inputs promise anything: those inside of tuples
/// do not.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Promise {
    /// Nothing, as `[f64?]` and `edge`.
    #[default]
    Nothing,
    /// That no element of the array is missing, as `[f64]`.
    Full,
    /// That the edge names the group of each element, as `mapping`.
    Mapping,
    /// That the edge's groups lie one behind the other, as `splits`.
    Splits,
}

impl Promise {
    /// The word for it in listings; none for what promises nothing.
    #[must_use]
    pub const fn word(self) -> Option<&'static str> {
        match self {
            Promise::Nothing => None,
            Promise::Full => Some("full"),
            Promise::Mapping => Some("mapping"),
            Promise::Splits => Some("splits"),
        }
    }

    /// True if values of this type can keep the promise or break it; there is nothing to promise of others.
    #[must_use]
    pub const fn is_of(self, qtype: &QType) -> bool {
        match self {
            Promise::Nothing => true,
            Promise::Full => matches!(qtype, QType::Array(ArrayKind::Dense, _)),
            Promise::Mapping | Promise::Splits => matches!(qtype, QType::Edge(EdgeType::Arrays(ArrayKind::Dense))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cembra_runtime::Scalar;

    #[test]
    fn promises_are_of_arrays_and_edges() {
        let array = QType::Array(ArrayKind::Dense, Scalar::Float64);
        let edge = QType::Edge(EdgeType::Arrays(ArrayKind::Dense));
        let of = |qtype: &QType| {
            [Promise::Nothing, Promise::Full, Promise::Mapping, Promise::Splits].map(|promise| promise.is_of(qtype))
        };
        assert_eq!(of(&array), [true, true, false, false]);
        assert_eq!(of(&edge), [true, false, true, true]);
        for other in [
            QType::FLOAT64,
            QType::tuple([array]),
            QType::Array(ArrayKind::Sparse, Scalar::Float64),
            QType::Edge(EdgeType::ToScalar(ArrayKind::Dense)),
        ] {
            assert_eq!(of(&other), [true, false, false, false], "{other}");
        }
    }
}
