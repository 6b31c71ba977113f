//! Which pass over rows this thread is in. Rows that are evaluated together are evaluated again, each by itself, where one of them fails. Functions of a
//! host that are slow, or count their calls, can answer the second call for a row from the first.

use std::cell::Cell;

thread_local! {
    static PASS: Cell<RowsPass> = const { Cell::new(RowsPass { number: 0, is_again: false }) };
}

/// A pass over rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowsPass {
    /// The number of the rows that are evaluated together, among those of this thread.
    pub number: u64,
    /// True while rows of them are evaluated again.
    pub is_again: bool,
}

impl RowsPass {
    /// The pass that this thread is in.
    #[must_use]
    pub fn current() -> RowsPass {
        PASS.get()
    }

    /// Begins the first pass over rows that are evaluated together.
    pub fn begin() {
        let RowsPass { number, .. } = PASS.get();
        PASS.set(RowsPass { number: number.wrapping_add(1), is_again: false });
    }

    /// Begins the second pass over the same rows, or those of them that failed.
    pub fn repeat() {
        PASS.set(RowsPass { is_again: true, ..PASS.get() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_repeated_until_the_next_begin() {
        RowsPass::begin();
        let first = RowsPass::current();
        RowsPass::repeat();
        assert_eq!(RowsPass::current(), RowsPass { is_again: true, ..first });
        RowsPass::begin();
        assert_eq!(RowsPass::current(), RowsPass { number: first.number + 1, is_again: false });
        std::thread::spawn(|| assert_eq!(RowsPass::current().number, 0)).join().expect("a thread");
    }
}
