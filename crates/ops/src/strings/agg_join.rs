//! Defines `strings.agg_join`, an aggregation of arrays that joins the strings of each group.

use crate::array::groups::Groups;
use crate::array::{
    ARRAY, ArrayForm, ArrayOperands, ArrayOperator, Order, array_argument, array_of, edge_argument, made,
};
use crate::definition::{OpDef, OverArrays, ex, param, param_or};
use crate::typing::{Argument, Signature, TypeFault, refuse};
use cembra_runtime::{ArrayKind, EdgeType, Fault, FaultKind, QType, Scalar};
use cembra_value::{Array, ArrayBuilder, ScalarValue, Value};

/// Returns the array kind and the element type of the operand `at`, which must be an array of strings.
pub(super) fn strings_argument(
    operator: &str,
    args: &[Argument<'_>],
    at: usize,
) -> Result<(ArrayKind, Scalar), TypeFault> {
    match array_argument(operator, args, at)? {
        (kind, scalar @ (Scalar::Text | Scalar::Bytes)) => Ok((kind, scalar)),
        _ => {
            let found = args[at].qtype;
            refuse(at, format!("{operator} expects an array of texts or bytes, found {found}"))
        }
    }
}

/// Checks that the operand `at`, if it is given, is a separator of type `of` for strings.
///
/// # Errors
/// If the operand has another type.
pub(super) fn separator_argument(
    operator: &str,
    args: &[Argument<'_>],
    at: usize,
    of: Scalar,
) -> Result<(), TypeFault> {
    match args[at].qtype {
        QType::Unspecified => Ok(()),
        QType::Scalar(scalar) | QType::Optional(scalar) if *scalar == of => Ok(()),
        found => refuse(at, format!("{operator} expects a separator of type {of}, found {found}")),
    }
}

/// The bytes of a separator; `None` if the separator is missing or not given.
pub(super) fn separator(value: &Value) -> Option<&[u8]> {
    match value.as_scalar()? {
        ScalarValue::Text(text) => Some(text.as_bytes()),
        ScalarValue::Bytes(bytes) => Some(bytes),
        _ => None,
    }
}

fn types(operator: &'static str, args: &[Argument<'_>]) -> Result<Signature, TypeFault> {
    let (kind, scalar) = strings_argument(operator, args, 0)?;
    edge_argument(operator, args, 1, kind)?;
    separator_argument(operator, args, 2, scalar)?;
    // Without an edge, the result is an array of one element.
    let ret = match args[1].qtype {
        QType::Edge(EdgeType::ToScalar(_)) => QType::Optional(scalar),
        _ => QType::Array(kind, scalar),
    };
    Ok(Signature::unchanged(args, ret))
}

/// A type of strings that can be joined: texts or bytes.
trait Join: Clone {
    /// The borrowed string of an element.
    type Slice: ?Sized;

    /// The string at index `at` of the array; `None` if it is missing.
    fn element(array: &Array, at: usize) -> Option<&Self::Slice>;

    fn add(&mut self, part: &Self::Slice);

    fn of(part: &Self::Slice) -> Self;
}

impl Join for String {
    type Slice = str;

    fn element(array: &Array, at: usize) -> Option<&str> {
        array.text(at)
    }

    fn add(&mut self, part: &str) {
        self.push_str(part);
    }

    fn of(part: &str) -> String {
        part.to_owned()
    }
}

impl Join for Vec<u8> {
    type Slice = [u8];

    fn element(array: &Array, at: usize) -> Option<&[u8]> {
        array.string(at)
    }

    fn add(&mut self, part: &[u8]) {
        self.extend_from_slice(part);
    }

    fn of(part: &[u8]) -> Vec<u8> {
        part.to_vec()
    }
}

/// Joins the strings of each group, with the separator between them; `None` for a group without strings.
fn joined<J: Join>(
    args: &ArrayOperands<'_>,
    array: &Array,
    groups: &Groups<'_>,
    separator: &J::Slice,
    separator_bytes: usize,
) -> Result<Vec<Option<J>>, Fault> {
    let strings = (0..array.len()).filter_map(|at| array.string(at));
    let bytes = strings.fold(0, |all: usize, string| all.saturating_add(string.len()));
    // The strings are joined first, and then copied into an array.
    args.room_for(bytes.saturating_add(array.present_count().saturating_mul(separator_bytes)), 2)?;
    let mut goes_on = Ok(());
    let joined = groups.fold(&None, |so_far: &mut Option<J>, at, _| {
        if goes_on.is_ok() {
            goes_on = args.poll_at(at);
        }
        let (Ok(()), Some(string)) = (goes_on, J::element(array, at)) else { return };
        match so_far {
            None => *so_far = Some(J::of(string)),
            Some(so_far) => {
                so_far.add(separator);
                so_far.add(string);
            }
        }
    });
    goes_on.map(|()| joined)
}

pub(crate) static AGG_JOIN: OpDef = OpDef {
    name: "strings.agg_join",
    summary: "The present strings of each group of the edge `into`, joined with `sep` between them; missing for a group without any. Without `into`, an array with one element for the whole array.",
    params: &[param("x"), param_or("into", Value::Unspecified), param_or("sep", Value::Unspecified)],
    faults: &[FaultKind::ArenaLimit],
    over_arrays: OverArrays::Kernel(&ArrayOperator {
        form: ArrayForm::Reduce(Order::First),
        typing: types,
        evaluate: |args, ret| {
            let array = array_of(&args[0])?;
            let groups = args.groups(1, array.len())?;
            let separator = separator(&args[2]).unwrap_or_default();
            let mut all = ArrayBuilder::new(array.scalar(), groups.count());
            match std::str::from_utf8(separator) {
                Ok(text) if array.scalar() == Scalar::Text => {
                    let strings = joined::<String>(args, array, &groups, text, separator.len())?;
                    strings.into_iter().for_each(|string| all.push_text(string.as_deref()));
                }
                _ => {
                    let strings = joined::<Vec<u8>>(args, array, &groups, separator, separator.len())?;
                    strings.into_iter().for_each(|string| all.push_bytes(string.as_deref()));
                }
            }
            let all = all.finish();
            match ret {
                QType::Array(..) => made(all, ret),
                _ => Ok(all.value(0)),
            }
        },
    }),
    examples: &[
        ex("strings.agg_join([\"a\", missing, \"b\"], sep=\", \")", "['a, b']"),
        ex("strings.agg_join([\"a\", \"b\", \"c\"], edge.from_sizes([2, 0, 1]), \"-\")", "['a-b', NA, 'c']"),
    ],
    ..ARRAY
};

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(all: &[Option<&str>]) -> Array {
        Array::from_scalars(Scalar::Text, all.iter().map(|text| text.map(|text| ScalarValue::Text(text.into()))))
    }

    #[test]
    fn groups_without_strings_are_missing() {
        let array = texts(&[Some("a"), None, Some(""), Some("b"), None]);
        let joined = |edge: &Value| {
            let groups = Groups::of(edge, array.len()).unwrap();
            joined::<String>(&ArrayOperands::of_call(&[]), &array, &groups, "+", 1).unwrap()
        };
        assert_eq!(joined(&Value::Unspecified), [Some("a++b".to_owned())]);
        let sizes = cembra_value::Edge::from_sizes(ArrayKind::Dense, [0, 2, 2, 1]).unwrap();
        assert_eq!(joined(&sizes.into()), [None, Some("a".to_owned()), Some("+b".to_owned()), None]);
    }

    #[test]
    fn a_result_that_is_too_long_is_refused() {
        let array = texts(&[Some(""); 1 << 10]);
        let separator = vec![b'x'; 1 << 19];
        let groups = Groups::of(&Value::Unspecified, array.len()).unwrap();
        let refused = joined::<Vec<u8>>(&ArrayOperands::of_call(&[]), &array, &groups, &separator, separator.len());
        let refused = refused.map_err(|fault| fault.kind);
        assert_eq!(refused, Err(FaultKind::ArenaLimit));
    }
}
