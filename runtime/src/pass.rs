//! The pass in which the current thread evaluates a group of rows. If a row of a group fails, rows of the group are evaluated again, one by one, so a
//! host function may be called twice for a row. A function that is slow, or that counts its calls, can tell from the pass whether a call may repeat
//! an earlier one.

use std::cell::Cell;

thread_local! {
    static PASS: Cell<RowsPass> = const { Cell::new(RowsPass { number: 0, is_again: false }) };
}

/// A pass over a group of rows: the first, or the second, which evaluates rows of the group again because a row failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowsPass {
    /// The number of the group of rows that is evaluated. Each group that this thread begins has the next number.
    pub number: u64,
    /// True during the second pass over a group, which evaluates its rows again.
    pub is_again: bool,
}

impl RowsPass {
    /// The current pass of this thread over a group of rows: the pass that it began last.
    #[must_use]
    pub fn current() -> RowsPass {
        PASS.get()
    }

    /// Begins the first pass over a group of rows that are evaluated together.
    pub fn begin() {
        let RowsPass { number, .. } = PASS.get();
        PASS.set(RowsPass { number: number.wrapping_add(1), is_again: false });
    }

    /// Begins the second pass, over all rows of the same group or over its failed rows.
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
