//! How operators were settled on the types of their operands, remembered for scalars: a model uses the same few
//! operators on the same few types all over.

use cembra_ops::{Argument, OpId, Registry, Resolved, TypeFault};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// Operators on scalars that were settled.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settled(FxHashMap<(OpId, u32, bool), Arc<Resolved>>);

impl Settled {
    /// Settles the types of an operator.
    ///
    /// # Errors
    /// The operator does not take these types.
    pub(crate) fn resolve<'a>(
        &mut self,
        registry: &Registry,
        op: OpId,
        args: impl ExactSizeIterator<Item = Argument<'a>> + Clone,
    ) -> Result<Arc<Resolved>, TypeFault> {
        let key = scalar_types(args.clone()).map(|(types, literal)| (op, types, literal));
        if let Some(known) = key.and_then(|key| self.0.get(&key)) {
            return Ok(known.clone());
        }
        let def = registry.get(op);
        let args: SmallVec<[Argument<'_>; 4]> = args.collect();
        let resolved = Arc::new(def.resolve(&args)?);
        if let Some(key) = key.filter(|_| args.iter().all(|arg| arg.literal.is_none()) || def.is_typed_by_types()) {
            self.0.insert(key, resolved.clone());
        }
        Ok(resolved)
    }
}

/// The types of arguments as a number, and whether there is a literal, which may have a say too. Only if all are scalars,
/// bare or optional, and there are few of them.
fn scalar_types<'a>(mut args: impl ExactSizeIterator<Item = Argument<'a>>) -> Option<(u32, bool)> {
    const BITS: u32 = 5;
    if args.len() as u32 >= u32::BITS / BITS {
        return None;
    }
    args.try_fold((1, false), |(types, literal), arg| {
        let number = (arg.qtype.scalar()? as u32) << 1 | u32::from(arg.qtype.is_optional());
        Some((types << BITS | number, literal || arg.literal.is_some()))
    })
}
