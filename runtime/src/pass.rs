//! Which pass over rows this thread is in. Rows that are evaluated together are evaluated again, each by itself, where one of them fails. Functions of a
//! host that are slow, or count their calls, can answer the second call for a row from the first.

use std::cell::Cell;

thread_local! {
    static PASS: Cell<RowsPass> = const { Cell::new(RowsPass { number: 0, again: None }) };
}

/// A pass over rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowsPass {
    /// The number of the rows that are evaluated together, among those of this thread.
    pub number: u64,
    /// The first of them that is evaluated again, while they are.
    pub again: Option<usize>,
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
        PASS.set(RowsPass { number: number.wrapping_add(1), again: None });
    }

    /// Begins the second pass over the same rows, from row `first` of them on.
    pub fn repeat(first: usize) {
        PASS.set(RowsPass { again: Some(first), ..PASS.get() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_repeated_until_the_next_begin() {
        RowsPass::begin();
        let first = RowsPass::current();
        RowsPass::repeat(3);
        assert_eq!(RowsPass::current(), RowsPass { again: Some(3), ..first });
        RowsPass::begin();
        assert_eq!(RowsPass::current(), RowsPass { number: first.number + 1, again: None });
        std::thread::spawn(|| assert_eq!(RowsPass::current().number, 0)).join().expect("a thread");
    }
}
