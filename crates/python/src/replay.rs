//! The last calls of functions of Python in a run of many rows. Where a row fails, rows that were evaluated together are evaluated again from that row
//! on, each by itself: the calls of the failed row, which are the last ones, are answered from here, so that each row calls a function once.

use cembra::ScalarValue;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most calls of one row that are known. The first calls of a row with more are made twice if it fails.
const MOST: usize = 1024;

/// The number of runs that have begun: calls of one run are no calls of another.
static RUNS: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static CALLS: RefCell<Calls> = const { RefCell::new(Calls { run: 0, last: VecDeque::new(), next: None }) };
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
    run: u64,
    /// The last calls in their order.
    last: VecDeque<PastCall>,
    /// After one that raised: the call of `last` that comes next in the row that is evaluated again, or `last.len()` before its first.
    next: Option<usize>,
}

/// Begins a run.
pub(crate) fn begin() {
    RUNS.fetch_add(1, Ordering::Relaxed);
}

/// The result of a call that the row before the failure has made already.
pub(crate) fn known(function: usize, operands: &[ScalarValue]) -> Option<CallResult> {
    CALLS.with_borrow_mut(|calls| {
        let next = calls.next.take()?;
        if calls.run != RUNS.load(Ordering::Relaxed) {
            calls.last.clear();
            return None;
        }
        let is_this = |call: &PastCall| call.function == function && *call.operands == *operands;
        let at = match calls.last.get(next) {
            Some(call) => is_this(call).then_some(next),
            // The first call of the row: the last such one.
            None => calls.last.iter().rposition(is_this),
        };
        let Some(at) = at else {
            calls.last.clear();
            return None;
        };
        let result = calls.last[at].result.clone();
        // The one that raised is the last.
        if at + 1 < calls.last.len() {
            calls.next = Some(at + 1);
        } else {
            calls.last.clear();
        }
        Some(result)
    })
}

/// Keeps the result of a call.
pub(crate) fn keep(function: usize, operands: &[ScalarValue], result: &CallResult) {
    CALLS.with_borrow_mut(|calls| {
        let run = RUNS.load(Ordering::Relaxed);
        if calls.run != run {
            calls.last.clear();
            calls.run = run;
        }
        if calls.last.len() == MOST {
            calls.last.pop_front();
        }
        calls.last.push_back(PastCall { function, operands: operands.into(), result: result.clone() });
        calls.next = result.is_err().then_some(calls.last.len());
    });
}
