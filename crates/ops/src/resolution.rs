//! How operators were resolved for the types of their operands, remembered for scalars as long as the registry lives: models
//! use the same few operators on the same few types all over. The memory is of a fixed size and nobody waits for it; what has
//! no room is resolved anew.

use crate::OpId;
use crate::typing::{Argument, Resolved};
use cembra_runtime::Scalar;
use std::hash::BuildHasher;
use std::sync::OnceLock;

/// How many calls are remembered at most.
const PLACES: usize = 2048;

/// How many places one call is looked for in.
const TRIED: usize = 4;

/// Resolved calls of operators on scalars.
pub(crate) struct Resolutions(Box<[OnceLock<(Key, Resolved)>]>);

/// An operator, and the types of its operands as a number, which says too whether there is a literal: it may have a say.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key(u64);

impl Key {
    /// What a call is remembered by. Only if all operands are scalars, bare or optional, and there are few of them.
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

    /// The places where a call may be remembered.
    fn places(self) -> impl Iterator<Item = usize> {
        let first = rustc_hash::FxBuildHasher.hash_one(self.0) as usize;
        (0..TRIED).map(move |more| first.wrapping_add(more) % PLACES)
    }
}

impl Resolutions {
    /// The call that is remembered by a key.
    pub(crate) fn get(&self, key: Key) -> Option<&Resolved> {
        let known = key.places().filter_map(|at| self.0[at].get()).find(|(known, _)| *known == key);
        known.map(|(_, resolved)| resolved)
    }

    /// Remembers a call, if there is room for it.
    pub(crate) fn remember(&self, key: Key, resolved: &Resolved) {
        // Another thread may have been faster: then it has remembered something as good.
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
    /// Of another registry, which may come to have other operators: nothing is remembered yet.
    fn clone(&self) -> Self {
        Resolutions::default()
    }
}

impl std::fmt::Debug for Resolutions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Resolutions")
    }
}
