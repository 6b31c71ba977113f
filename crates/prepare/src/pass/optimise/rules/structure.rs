//! Rules of the optimiser that simplify tuples and reads of their fields.

use super::{RULE, Rewrite};
use cembra_ops::id;
use cembra_value::ScalarValue;

pub(super) static RULES: &[Rewrite] = &[Rewrite {
    name: "core.get_nth(core.make_tuple(.., e, ..)) -> e",
    skips: true,
    op: id::GET_NTH,
    apply: |site, a| {
        let index = match site.value(a[1])?.as_scalar()? {
            ScalarValue::Int64(index) => usize::try_from(*index).ok()?,
            ScalarValue::Int32(index) => usize::try_from(*index).ok()?,
            _ => return None,
        };
        site.fields(a[0])?.get(index).copied()
    },
    ..RULE
}];
