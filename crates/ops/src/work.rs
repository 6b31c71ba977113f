//! Charges the work of operators on strings, so that an evaluation can be limited. Every built-in body (the Rust
//! function of an operator) without a lowering rule is charged for its string arguments before it runs. The function
//! that makes the body's kernels does this, so that no operator can avoid it. A unit of work is reading one byte once.
//! Bodies that take longer per byte charge the rest themselves. Results are not charged, because `arena_bytes` limits
//! them.
//!
//! Operators with a lowering rule do not read strings, except for comparisons, which charge in `Context::compare`, in
//! machine code too.

use crate::direct::WeakF64;
use cembra_runtime::{Bytes, Text, for_each_scalar};

/// A type that arguments of an operator may have, with the work of reading an argument.
pub trait Work {
    /// True if the type is a string, or an optional one.
    const STRING: bool;

    /// The work of reading the argument: the bytes of a string; 0 for other types.
    fn work(&self) -> usize;
}

macro_rules! no_work {
    ([$($more:ty),*] $unit:ident $unit_rows:tt plain { $($(#[$doc:meta])* $plain:ident($rust:ty) $facts:tt)* } $($rest:tt)*) => {
        no_work!($($more,)* $($rust,)*);
    };
    ($($ty:ty,)*) => { $(
        impl Work for $ty {
            const STRING: bool = false;

            #[inline]
            fn work(&self) -> usize {
                0
            }
        }
    )* };
}

for_each_scalar!(no_work [(), WeakF64]);

impl Work for Text<'_> {
    const STRING: bool = true;

    #[inline]
    fn work(&self) -> usize {
        self.as_bytes().work()
    }
}

impl Work for Bytes<'_> {
    const STRING: bool = true;

    #[inline]
    fn work(&self) -> usize {
        self.as_slice().len()
    }
}

impl<T: Work> Work for Option<T> {
    const STRING: bool = T::STRING;

    #[inline]
    fn work(&self) -> usize {
        self.as_ref().map_or(0, Work::work)
    }
}

#[cfg(test)]
mod tests {
    use crate::call::call_overload;
    use crate::{Lower, OpDef, OperandType, Overload, Promotion, Registry, ResolvedCall, Signature, Typing};
    use cembra_runtime::{Context, FaultKind, QType, Scalar};
    use cembra_value::{ScalarValue, Value};
    use smallvec::SmallVec;

    /// A value of a type; strings have `length` bytes.
    fn value(scalar: Scalar, optional: bool, length: usize) -> Value {
        let value = match scalar {
            Scalar::Text => ScalarValue::Text("1".repeat(length).into()),
            Scalar::Bytes => ScalarValue::Bytes(b"1".repeat(length).into()),
            scalar => ScalarValue::from_bits(scalar, 0).expect("a number"),
        };
        if optional { Value::Present(value) } else { Value::Scalar(value) }
    }

    /// Runs an overload on strings of `length` bytes, with `work` units allowed, and returns its fault; `None` without
    /// a fault.
    fn run(overload: &Overload, lifted: bool, length: usize, work: u64) -> Option<FaultKind> {
        let operands: SmallVec<_> = (0..overload.args.len()).map(|at| overload.takes(at, lifted)).collect();
        let of = |(qtype, arg): (&QType, &OperandType)| value(arg.scalar, qtype.is_optional(), length);
        let values: Vec<Value> = operands.iter().zip(overload.args).map(of).collect();
        let ret = QType::of(overload.ret.scalar, overload.ret.optional || lifted);
        let resolved = ResolvedCall { signature: Signature { operands, ret }, overload: None, lifted };
        let mut context = Context::new();
        context.set_string_work(work);
        context.begin();
        call_overload(&mut context, overload, &resolved, &values).err().map(|fault| fault.kind)
    }

    /// Returns true if an overload reads its strings. An overload with a rule reads them only to compare them.
    fn reads_strings(def: &OpDef, overload: &Overload) -> bool {
        let compares = matches!(def.typing, Typing::Promote(Promotion::Comparable));
        matches!(overload.lower, Lower::Kernel) || compares
    }

    #[test]
    fn every_operator_that_reads_strings_is_charged_for_them() {
        let mut read = 0;
        for (_, def) in Registry::standard().iter() {
            let reads = |overload: &&Overload| overload.args.iter().any(|arg| arg.scalar.is_string());
            // An overload that is compiled with a model is not called here, because there is no model.
            for overload in def.overloads().iter().filter(reads).filter(|overload| overload.compile.is_none()) {
                for lifted in [false, true].into_iter().filter(|lifted| !lifted || overload.lifted.is_some()) {
                    let charged = run(overload, lifted, 300, 299) == Some(FaultKind::WorkLimit);
                    assert_eq!(charged, reads_strings(def, overload), "{} {:?}", def.name, overload.args);
                    let enough = run(overload, lifted, 300, 1_000_000);
                    assert_ne!(enough, Some(FaultKind::WorkLimit), "{} {:?}", def.name, overload.args);
                    read += usize::from(charged);
                }
            }
        }
        assert!(read > 100, "{read}");
    }
}
