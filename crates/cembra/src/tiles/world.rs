//! Who computes together. There is one rank as yet, so nothing is shared out; what computes is a [`Run`].

use super::run::Run;
use crate::Error;
use cembra_tiles::Options;
use cembra_tiles::link::{Launch, no_link};

/// The ranks that compute together: one, which is the process.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct World {}

impl World {
    /// The ranks of the launcher that started the process; one without a launcher.
    ///
    /// # Errors
    /// A launcher of MPI started several processes. They do not share work as yet, so each would do all of it.
    pub fn from_environment() -> Result<World, Error> {
        World::of(Launch::of(|name| std::env::var(name).ok())?)
    }

    fn of(launch: Option<Launch>) -> Result<World, Error> {
        match launch {
            Some(Launch { rank, size, .. }) if rank > 0 || size.is_some_and(|size| size > 1) => {
                let all = size.map_or_else(|| "several".to_owned(), |size| size.to_string());
                let message =
                    format!("this process is rank {rank} of {all}, and tiled tensors are evaluated by one process");
                Err(no_link(message).hint("start one process, with as many threads as there are processors"))
            }
            _ => Ok(World {}),
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use cembra_tiles::link::Family;

    #[test]
    fn several_processes_are_an_error_and_not_several_worlds_of_one() {
        let launch = |rank, size| Some(Launch { family: Family::OpenMpi, rank, size });
        for alone in [None, launch(0, Some(1)), launch(0, None)] {
            assert_eq!(World::of(alone).expect("one rank").size(), 1);
        }
        let error = World::of(launch(0, Some(4))).expect_err("one of four");
        assert_eq!(error.code(), "link");
        assert!(error.to_string().starts_with("this process is rank 0 of 4, and tiled tensors are"), "{error}");
        let error = World::of(launch(1, None)).expect_err("one of several");
        assert!(error.to_string().starts_with("this process is rank 1 of several, and"), "{error}");
    }
}
