//! Caches the types and overloads that were found for calls of operators on scalars, because models mostly use a few
//! operators on a few types. Each registry has its own cache. The cache has a fixed size, and no thread waits for it. A
//! call for which the cache has no room is resolved each time.

use crate::OpId;
use crate::typing::{Argument, ResolvedCall};
use cembra_runtime::Scalar;
use std::hash::BuildHasher;
use std::sync::OnceLock;

/// The number of entries in the cache.
const PLACES: usize = 2048;

/// The number of consecutive entries in which a call may be stored, and is looked up.
const TRIED: usize = 4;

/// A cache of resolved calls of operators on scalars: their types and overloads.
pub(crate) struct Resolutions(Box<[OnceLock<(Key, ResolvedCall)>]>);

/// The key of a call in the cache: an operator and the types of its operands, encoded as a number. One bit is set if an
/// operand is a literal, because the value of a literal may influence the types.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key(u64);

impl Key {
    /// The key of a call of `op`; `None` if an operand is neither a scalar nor an optional, or if there are too many operands for a key.
    pub(crate) fn of(op: OpId, args: &[Argument<'_>]) -> Option<Key> {
        const BITS: usize = 5;
        const { assert!(Scalar::ALL.len() <= 1 << (BITS - 1), "a type and whether it is optional do not fit") };
        if args.len() >= u32::BITS as usize / BITS {
            return None;
        }
        let (mut types, mut literal) = (1, false);
        for arg in args {
            types = types << BITS | (arg.qtype.scalar()? as u64) << 1 | u64::from(arg.qtype.is_optional());
            literal |= arg.literal.is_some();
        }
        Some(Key((op.index() as u64) << 33 | types << 1 | u64::from(literal)))
    }

    /// The indices of the entries in which a call may be stored.
    fn places(self) -> impl Iterator<Item = usize> {
        let first = rustc_hash::FxBuildHasher.hash_one(self.0) as usize;
        (0..TRIED).map(move |more| first.wrapping_add(more) % PLACES)
    }
}

impl Resolutions {
    /// The resolved call with this key; `None` if the cache does not have the key.
    pub(crate) fn get(&self, key: Key) -> Option<&ResolvedCall> {
        let known = key.places().filter_map(|at| self.0[at].get()).find(|(known, _)| *known == key);
        known.map(|(_, resolved)| resolved)
    }

    /// Adds a resolved call to the cache, if there is room for it.
    pub(crate) fn remember(&self, key: Key, resolved: &ResolvedCall) {
        // Another thread may have filled the place first; then this call is not remembered.
        if let Some(place) = key.places().map(|at| &self.0[at]).find(|place| place.get().is_none()) {
            let _ = place.set((key, resolved.clone()));
        }
    }
}

impl Default for Resolutions {
    fn default() -> Self {
        Resolutions((0..PLACES).map(|_| OnceLock::new()).collect())
    }
}

impl Clone for Resolutions {
    /// Returns an empty cache, because it is for another registry, which may get other operators.
    fn clone(&self) -> Self {
        Resolutions::default()
    }
}

impl std::fmt::Debug for Resolutions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Resolutions")
    }
}
