//! Who computes together. There is one rank as yet, so nothing is shared out; what computes is a [`Run`].

use super::run::Run;
use crate::Error;
use cembra_tiles::Options;

/// The ranks that compute together: one, which is the process.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct World {}

impl World {
    /// The ranks of whatever started the process.
    ///
    /// # Errors
    /// None as yet.
    pub const fn from_environment() -> Result<World, Error> {
        Ok(World {})
    }

    /// The number of this rank, from 0 on.
    #[must_use]
    pub const fn rank(&self) -> usize {
        0
    }

    /// How many ranks there are.
    #[must_use]
    pub const fn size(&self) -> usize {
        1
    }

    /// What evaluates texts on tiled tensors, with expressions of elements compiled by the default options. [`Run::new`] takes others.
    #[must_use]
    pub fn evaluator(&self, options: Options) -> Run {
        Run::new(options, &crate::Options::default())
    }
}
