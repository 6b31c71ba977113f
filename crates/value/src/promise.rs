//! Promises: properties of an input's values that its type does not state, for example that an array has no missing
//! elements, or that the groups of an edge are contiguous. Operators and overloads ignore promises. A value of the
//! right type may break a promise, so values are checked.

use crate::{Code, Diagnostic, EdgeForm, Value};
use cembra_runtime::{ArrayKind, EdgeType, QType};

/// A property that an input promises for its values, in addition to their type. Only an input that is an array or an
/// edge can promise something, not an input that is a tuple of arrays or edges.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Promise {
    /// The input promises nothing in addition to its type, as for `[f64?]` and `edge`.
    #[default]
    Nothing,
    /// The input promises that no element of its array is missing, as for `[f64]`.
    Full,
    /// The input promises that its edge (grouping) states the group of each element, as for `mapping`.
    Mapping,
    /// The input promises that the groups of its edge (grouping) are contiguous, as for `splits`.
    Splits,
}

/// The way in which a value breaks the promise of its input (a property that the input's type does not state).
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BrokenPromise {
    /// The array has a missing element; the first one has this index.
    #[error("element {0} of the array is missing")]
    Missing(usize),
    /// The edge has split points instead of a mapping, which was promised.
    #[error("the edge has sizes or split points instead of a mapping")]
    NoMapping,
    /// The edge has a mapping instead of split points, which were promised.
    #[error("the edge has a mapping instead of sizes or split points")]
    NoSplits,
}

impl Promise {
    /// The word for this promise in listings; `None` for no promise.
    #[must_use]
    pub const fn word(self) -> Option<&'static str> {
        match self {
            Promise::Nothing => None,
            Promise::Full => Some("full"),
            Promise::Mapping => Some("mapping"),
            Promise::Splits => Some("splits"),
        }
    }

    /// Returns true if values of the type `qtype` can keep or break this promise.
    #[must_use]
    pub const fn is_of(self, qtype: &QType) -> bool {
        match self {
            Promise::Nothing => true,
            Promise::Full => matches!(qtype, QType::Array(ArrayKind::Dense, _)),
            Promise::Mapping | Promise::Splits => matches!(qtype, QType::Edge(EdgeType::Arrays(ArrayKind::Dense))),
        }
    }
}

impl Promise {
    /// Checks whether the input `name` of the type `qtype` can have this promise.
    ///
    /// # Errors
    /// If the input cannot have the promise.
    pub fn admit(self, name: &str, qtype: &QType) -> Result<(), Diagnostic> {
        if self.is_of(qtype) {
            return Ok(());
        }
        let message = format!("the input `{name}` cannot promise {self:?}: its type is {qtype}");
        let hint = "`Full` is for arrays such as [f64?], `Mapping` and `Splits` are for an edge";
        Err(Diagnostic::new(Code::InputType, message).hint(hint))
    }

    /// Checks whether `value` keeps this promise. For an array with presence bits this reads a word per 64 elements;
    /// else it takes constant time.
    ///
    /// # Errors
    /// If the value breaks the promise.
    pub fn check(self, value: &Value) -> Result<(), BrokenPromise> {
        match (self, value) {
            (Promise::Full, Value::Array(_, array)) => {
                array.first_missing().map_or(Ok(()), |first| Err(BrokenPromise::Missing(first)))
            }
            (Promise::Mapping, Value::Edge(edge)) if matches!(edge.form(), EdgeForm::Splits(_)) => {
                Err(BrokenPromise::NoMapping)
            }
            (Promise::Splits, Value::Edge(edge)) if matches!(edge.form(), EdgeForm::Mapping(..)) => {
                Err(BrokenPromise::NoSplits)
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Array, ArrayData, Edge, ScalarValue, Words};
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

    #[test]
    fn a_full_array_has_each_element() {
        let array = |len: usize, presence: Option<Vec<u64>>| {
            let array = Array::from_parts(Scalar::Int64, len, ArrayData::Numbers(Words::zeros(len)), presence).unwrap();
            Promise::Full.check(&Value::Array(ArrayKind::Dense, array.into()))
        };
        assert_eq!(array(0, None), Ok(()));
        assert_eq!(array(100, None), Ok(()));
        // Bits after the last element have no meaning.
        assert_eq!(array(0, Some(vec![])), Ok(()));
        assert_eq!(array(64, Some(vec![u64::MAX, 0])), Ok(()));
        assert_eq!(array(70, Some(vec![u64::MAX, 0b11_1111])), Ok(()));
        assert_eq!(array(70, Some(vec![u64::MAX, 0b01_1111])), Err(BrokenPromise::Missing(69)));
        assert_eq!(array(70, Some(vec![u64::MAX, 0])), Err(BrokenPromise::Missing(64)));
        assert_eq!(array(70, Some(vec![!(1 << 63 | 1 << 7), 0])), Err(BrokenPromise::Missing(7)));
        assert_eq!(array(1, Some(vec![!1])), Err(BrokenPromise::Missing(0)));
    }

    #[test]
    fn edges_are_of_the_form_that_was_promised() {
        let groups = Array::from_scalars(Scalar::Int64, [Some(ScalarValue::Int64(0))]);
        let mapping = Value::from(Edge::from_mapping(ArrayKind::Dense, groups, 1).unwrap());
        let splits = Value::from(Edge::from_sizes(ArrayKind::Dense, [1]).unwrap());
        assert_eq!(Promise::Mapping.check(&mapping), Ok(()));
        assert_eq!(Promise::Splits.check(&splits), Ok(()));
        assert_eq!(Promise::Mapping.check(&splits), Err(BrokenPromise::NoMapping));
        assert_eq!(Promise::Splits.check(&mapping), Err(BrokenPromise::NoSplits));
        assert_eq!([mapping, splits].map(|edge| Promise::Nothing.check(&edge)), [Ok(()), Ok(())]);
    }
}
