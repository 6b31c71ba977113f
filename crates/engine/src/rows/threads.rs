//! Runs the work of one run on several threads: rows, lists, blocks of arrays, blocks of tensors. The caller divides
//! the work into shares. If the result of a sum depends on the division, the caller must choose a division that does
//! not depend on the number of threads.

use cembra_value::ProcessPool;
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use rayon::prelude::IndexedParallelIterator;
use smallvec::{SmallVec, smallvec};

/// Calls `one` for each share, and returns the results in the order of the shares. A single share runs on the calling thread. Several shares run in
/// the pool of threads in which the caller runs, or else in the pool of the process; a forked process has a pool of its own.
pub(crate) fn on_threads<W: Send, R: Send>(
    shares: impl IntoIterator<Item = W>,
    one: impl Fn(W) -> R + Sync,
) -> SmallVec<[R; 1]> {
    let mut shares: SmallVec<[W; 1]> = shares.into_iter().collect();
    if shares.len() <= 1 {
        return shares.pop().map_or_else(SmallVec::new, |share| smallvec![one(share)]);
    }
    let pool = match ProcessPool::current() {
        ProcessPool::Given(pool) => Some(pool),
        ProcessPool::Rayons => None,
        ProcessPool::Absent => return shares.into_iter().map(one).collect(),
    };
    let several = || shares.into_vec().into_par_iter().with_max_len(1).map(&one).collect::<Vec<R>>();
    match pool {
        Some(pool) => pool.install(several).into(),
        None => several().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_done_by_the_caller_or_by_the_pool_in_their_order() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        let done = |count: usize| on_threads(0..count, |share| (share, pool.current_thread_index()));
        assert!(done(0).is_empty());
        assert_eq!(done(1)[..], [(0, None)]);
        let several = pool.install(|| done(20));
        assert!(
            several.iter().enumerate().all(|(at, (share, thread))| at == *share && thread.is_some_and(|of| of < 3))
        );
        assert_eq!(on_threads([3, 4], |share| share * 2)[..], [6, 8]);
    }
}
