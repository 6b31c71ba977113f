//! The pass over rows that this thread is in. If one of some rows that are evaluated together fails, the rows are evaluated again, one by one.
//! Functions of a host that are slow, or that count their calls, can use the pass to answer the second call for a row from the first.

use std::cell::Cell;

thread_local! {
    static PASS: Cell<RowsPass> = const { Cell::new(RowsPass { number: 0, is_again: false }) };
}

/// A pass over rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowsPass {
    /// The number of this group of rows among those that this thread has evaluated.
    pub number: u64,
    /// True during the second pass, which evaluates rows of the group again.
    pub is_again: bool,
}

impl RowsPass {
    /// The pass that this thread is in.
    #[must_use]
    pub fn current() -> RowsPass {
        PASS.get()
    }

    /// Begins the first pass over a group of rows that are evaluated together.
    pub fn begin() {
        let RowsPass { number, .. } = PASS.get();
        PASS.set(RowsPass { number: number.wrapping_add(1), is_again: false });
    }

    /// Begins the second pass, over the same group or those of its rows that failed.
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
