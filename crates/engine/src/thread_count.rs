//! How many threads a caller may ask for. Memory is made for each, so no more count than there can be work for at the same time; which
//! of them does what is said elsewhere, and results never depend on it.

/// So many shares for each thread that there is leave none without work, however they are asked for.
const SHARES: usize = 4;

/// So many threads as are asked for, or as are of use in a pool: the process's own, or that in which the caller is, if there is none.
pub(crate) fn useful_threads(asked: usize, pool: Option<&rayon::ThreadPool>) -> usize {
    if asked <= 1 {
        return 1;
    }
    let there_are = pool.map_or_else(rayon::current_num_threads, rayon::ThreadPool::current_num_threads);
    asked.min(there_are.saturating_mul(SHARES)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_threads_count_than_are_of_use() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        let useful = |asked| useful_threads(asked, Some(&pool));
        assert_eq!([0, 1, 2, 12, 13, 1 << 62, usize::MAX].map(useful), [1, 1, 2, 12, 12, 12, 12]);
        assert!((1..=4 * rayon::current_num_threads()).contains(&useful_threads(usize::MAX, None)));
    }
}
