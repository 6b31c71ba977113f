//! The calls of functions of Python in the rows, or in the row, that this thread evaluates. Where one fails, rows and elements that were evaluated together
//! are evaluated again, each by itself: their calls are answered from here, so that each row calls a function once.

use cembra::ScalarValue;
use cembra::doors::RowsPass;
use std::cell::RefCell;
use std::collections::VecDeque;

/// The most calls that are known. Rows that are evaluated together, and a row with arrays, may make the calls before these twice.
const MOST: usize = 1 << 14;

thread_local! {
    static CALLS: RefCell<Calls> = const { RefCell::new(Calls { number: 0, last: VecDeque::new(), has_raised: false }) };
}

/// The result of a call, or the text of the exception that it raised.
pub(crate) type CallResult = Result<Option<ScalarValue>, String>;

/// A call.
struct PastCall {
    /// The address of the function's record, which lives as long as the process.
    function: usize,
    operands: Box<[ScalarValue]>,
    result: CallResult,
}

struct Calls {
    /// The number of the pass that they are of.
    number: u64,
    /// The last calls in their order, without those that were answered again.
    last: VecDeque<PastCall>,
    /// True once one of them raised.
    has_raised: bool,
}

/// The result of a call that was made before. `row` is the number of the evaluation of one row, whose elements may be evaluated again once a call raised;
/// `None` for many rows.
pub(crate) fn known(function: usize, operands: &[ScalarValue], row: Option<u64>) -> Option<CallResult> {
    let pass = pass_of(row);
    CALLS.with_borrow_mut(|calls| {
        let is_again = if row.is_some() { calls.has_raised } else { pass.is_again };
        if !is_again || calls.number != pass.number {
            return None;
        }
        let is_this = |call: &PastCall| call.function == function && *call.operands == *operands;
        let at = calls.last.iter().position(is_this)?;
        calls.last.remove(at).map(|call| call.result)
    })
}

/// The pass that this thread is in: rows that are evaluated together, or one row, which is one pass.
fn pass_of(row: Option<u64>) -> RowsPass {
    row.map_or_else(RowsPass::current, |number| RowsPass { number, is_again: false })
}

/// Keeps the result of a call of the first pass.
pub(crate) fn keep(function: usize, operands: &[ScalarValue], result: &CallResult, row: Option<u64>) {
    let RowsPass { number, is_again: false } = pass_of(row) else { return };
    CALLS.with_borrow_mut(|calls| {
        if calls.number != number {
            *calls = Calls { number, last: std::mem::take(&mut calls.last), has_raised: false };
            calls.last.clear();
        }
        if calls.last.len() == MOST {
            calls.last.pop_front();
        }
        calls.last.push_back(PastCall { function, operands: operands.into(), result: result.clone() });
        calls.has_raised |= result.is_err();
    });
}
