//! A record of the last calls of Python functions in this thread. If a call fails, rows or elements that were evaluated together are evaluated again,
//! one by one. Repeated calls are then answered from the record, so that each row calls a function only once.

use cembra::ScalarValue;
use cembra::doors::RowsPass;
use std::cell::RefCell;
use std::collections::VecDeque;

/// The most calls that are recorded. If rows that are evaluated together, or a row with arrays, make more calls, the earlier ones may be made twice.
const MOST: usize = 1 << 14;

thread_local! {
    static CALLS: RefCell<Calls> = const { RefCell::new(Calls { number: 0, last: VecDeque::new(), has_raised: false }) };
}

/// The result of a call of a Python function: the value, `None` if it is missing, or the message of the exception that the function raised.
pub(crate) type CallResult = Result<Option<ScalarValue>, String>;

/// A recorded call of a Python function: the function, its operands and its result.
struct PastCall {
    /// The address of the function's record, which lives as long as the process.
    function: usize,
    operands: Box<[ScalarValue]>,
    result: CallResult,
}

/// The recorded calls of one pass over rows or elements that are evaluated together.
struct Calls {
    /// The number of the pass that the calls belong to.
    number: u64,
    /// The last calls in their order. A call that is answered is removed.
    last: VecDeque<PastCall>,
    /// True once a call of the pass has raised an exception.
    has_raised: bool,
}

/// Takes the result of an earlier call with the same operands out of the record. `None` if the function must be called. `row` is the number of the
/// evaluation if only one row is evaluated (then the row's elements may be evaluated again after a call raised an exception), and `None` if many rows
/// are evaluated.
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

/// The pass that this thread is in: the joint evaluation of several rows, or the evaluation of a single row with the number `row`.
fn pass_of(row: Option<u64>) -> RowsPass {
    row.map_or_else(RowsPass::current, |number| RowsPass { number, is_again: false })
}

/// Records the result of a call, so that it can be reused if the rows or elements are evaluated again. Does nothing while many rows are evaluated
/// again.
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
