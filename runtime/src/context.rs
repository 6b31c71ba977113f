//! The evaluation context: the state of an evaluation besides its frame. Kernels and generated code report a fault by filling the context's fault
//! record and returning a status. The interpreter and compiled code fill the same record, so a fault gives the same error with both.

use crate::flag::NEVER;
use crate::layout::layout;
use crate::{
    Arena, Cancellation, Fault, FaultKind, FramePtr, KernelCall, STATUS_FAULT, Tally, TimeLimit, compare, functions,
};
use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;
use std::time::{Duration, Instant};

/// The record of the fault that stopped an evaluation.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FaultRecord {
    /// The index of the step that failed, in the plan.
    pub site: u32,
    /// The number of the fault's [`FaultKind`].
    pub kind: u32,
    /// The operands of the fault, as its kind defines them.
    pub operands: [u64; 2],
}

/// The state of one evaluation, passed to kernels and generated code.
///
/// Generated code reads and writes it by the `*_OFFSET` constants; nothing else depends on its layout.
#[repr(C)]
#[derive(Debug)]
pub struct Context {
    functions: *const functions::Address,
    calls: *const KernelCall,
    fault: FaultRecord,
    /// The address of the state byte of the token's flag, for generated code; without a token, the address of `NEVER`.
    cancel: *const AtomicU8,
    iterations: u64,
    /// The number of loop rounds that are left, unless generated code has it in a register.
    rounds_left: u64,
    /// The most work on strings that an evaluation may do, in units of about the time to read one byte.
    work: i64,
    /// The work on strings that this evaluation may still do; generated code changes it too. Negative after a comparison that exceeded the limit.
    work_left: i64,
    arena: Arena,
    token: Option<Cancellation>,
    /// The time limit of each run with this context. If there is one, `token` is the token of the limit.
    time_limit: Option<TimeLimit>,
    /// The reason for the last fault that an operator of the user caused, and the operator's error code for it, if any.
    reason: (Box<str>, Option<&'static str>),
    /// The counter of this context's evaluations; `None` if they are not counted.
    tally: Option<Arc<Tally>>,
    /// True if there is a time limit or a tally, so that contexts without either test one byte only.
    is_watched: bool,
    /// The caller's input struct, for kernels that copy values from it. Generated code has its address in a register.
    input: FramePtr,
    output: FramePtr,
}

impl Default for Context {
    fn default() -> Self {
        Context::new()
    }
}

layout! {
    Context: i32 {
        /// Offset in a [`Context`] of the pointer to the table of runtime functions.
        pub FUNCTIONS_OFFSET = (offset of functions);
        /// Offset in a [`Context`] of the pointer to the table of kernel calls.
        pub CALLS_OFFSET = (offset of calls);
        /// Offset in a [`Context`] of a pointer to the byte that is not 0 once the evaluation is cancelled. The pointer is never null.
        pub CANCEL_OFFSET = (offset of cancel);
        /// Offset in a [`Context`] of the fault record's site.
        pub FAULT_SITE_OFFSET = (offset of fault.site);
        /// Offset in a [`Context`] of the fault record's kind.
        pub FAULT_KIND_OFFSET = (offset of fault.kind);
        /// Offset in a [`Context`] of the first operand of the fault record; the second follows 8 bytes later.
        pub FAULT_OPERANDS_OFFSET = (offset of fault.operands);
        /// Offset in a [`Context`] of the limit for the rounds that all loops of one evaluation may run together.
        pub ITERATIONS_OFFSET = (offset of iterations);
        /// Offset in a [`Context`] of the number of rounds that the loops of this evaluation may still run. Generated code initialises it.
        pub ROUNDS_LEFT_OFFSET = (offset of rounds_left);
        /// Offset in a [`Context`] of the work on strings that this evaluation may still do: 8 bytes, a number of units of about the time to read one
        /// byte. The number is negative after a comparison that needed more work than was left.
        pub WORK_LEFT_OFFSET = (offset of work_left);
    }
}

impl Context {
    /// The default for the most rounds that the loops of one evaluation may run together.
    pub const ITERATIONS: u64 = 10_000_000;

    /// The default for the most work on strings that one evaluation may do. A unit of work is about the time to read one byte.
    pub const STRING_WORK: u64 = 1 << 30;
    /// The least work, in units, before which the cancellation token is polled.
    const POLLED_WORK: i64 = 1 << 16;
    /// The number of bytes below which a comparison counts as no work.
    const COMPARED_FREE: usize = 256;

    /// A context with no fault recorded.
    #[must_use]
    pub fn new() -> Self {
        Context {
            functions: functions::table(),
            calls: std::ptr::null(),
            cancel: &raw const NEVER,
            fault: FaultRecord::default(),
            iterations: Context::ITERATIONS,
            rounds_left: 0,
            work: Context::STRING_WORK.cast_signed(),
            work_left: Context::STRING_WORK.cast_signed(),
            arena: Arena::new(Arena::LIMIT),
            token: None,
            time_limit: None,
            reason: (Box::default(), None),
            tally: None,
            is_watched: false,
            input: FramePtr::from_raw(std::ptr::null_mut()),
            output: FramePtr::from_raw(std::ptr::null_mut()),
        }
    }

    /// Sets the table of kernel calls for generated code.
    ///
    /// # Safety
    /// CODE-ALIVE (`docs/safety.md`): the table must belong to the code that runs with this context from now on, and must live as long as calls are
    /// made.
    #[inline]
    pub unsafe fn set_calls(&mut self, calls: *const KernelCall) {
        self.calls = calls;
    }

    /// Sets the addresses of the caller's structs for the evaluation that begins.
    ///
    /// # Safety
    /// CALL (`docs/safety.md`): `input` and `output` must be the memory that the evaluation was given.
    #[inline]
    pub unsafe fn set_structs(&mut self, input: FramePtr, output: FramePtr) {
        (self.input, self.output) = (input, output);
    }

    /// The caller's input struct, as passed to `set_structs`.
    #[inline]
    #[must_use]
    pub fn input(&self) -> FramePtr {
        self.input
    }

    /// The caller's output struct, as passed to `set_structs`.
    #[inline]
    #[must_use]
    pub fn output(&self) -> FramePtr {
        self.output
    }

    /// A context whose evaluations each make at most `limit` bytes of strings.
    #[must_use]
    pub fn with_arena_limit(limit: usize) -> Self {
        Context { arena: Arena::new(limit), ..Context::new() }
    }

    /// Makes a context with the same limits and the same token, for evaluations inside of this context's evaluation.
    #[must_use]
    pub fn like(&self) -> Self {
        let mut other = Context::with_arena_limit(self.arena.limit());
        (other.iterations, other.work) = (self.iterations, self.work);
        other.set_cancellation(self.token.clone());
        other
    }

    /// Sets the most rounds that the loops of one evaluation may run together.
    pub fn set_iterations(&mut self, limit: u64) {
        self.iterations = limit;
    }

    /// The most rounds that the loops of one evaluation may run together.
    #[must_use]
    pub fn iterations(&self) -> u64 {
        self.iterations
    }

    /// Sets the most work on strings that one evaluation may do, from the next evaluation on.
    pub fn set_string_work(&mut self, limit: u64) {
        self.work = i64::try_from(limit).unwrap_or(i64::MAX);
    }

    /// The most work on strings that one evaluation may do.
    #[must_use]
    pub fn string_work(&self) -> u64 {
        self.work.unsigned_abs()
    }

    /// The work on strings that this evaluation has done so far.
    #[must_use]
    pub fn work_done(&self) -> u64 {
        self.work.abs_diff(self.work_left.max(0))
    }

    /// Returns true if this evaluation may do `work` more units of work on strings and make `bytes` more bytes of strings.
    #[must_use]
    pub fn has_room(&self, work: u64, bytes: usize) -> bool {
        u64::try_from(self.work_left).is_ok_and(|left| left >= work)
            && self.arena.limit().saturating_sub(self.arena.used()) >= bytes
    }

    /// Begins an evaluation: frees the strings of the last evaluation and resets the work to zero.
    #[inline]
    pub fn begin(&mut self) {
        self.arena.reset();
        self.work_left = self.work;
    }

    /// Ends an evaluation whose compiled function returned `status`, and returns the evaluation's final status: a fault if a comparison exceeded the
    /// work limit, else `status`.
    #[inline]
    #[must_use]
    pub fn end(&mut self, status: i32) -> i32 {
        if self.work_left < 0 { self.end_without_work() } else { status }
    }

    #[cold]
    #[inline(never)]
    fn end_without_work(&mut self) -> i32 {
        self.fail(self.no_work())
    }

    /// Charges work on strings before it is done: one unit for each byte that is read once, more if a byte takes longer. Long work polls the token
    /// too, so an evaluation can end between any two operators.
    ///
    /// # Errors
    /// If less work than `units` is left, or the evaluation was cancelled.
    #[inline]
    pub fn charge(&mut self, units: usize) -> Result<(), Fault> {
        match self.work_after(units) {
            Some(left) => {
                self.work_left = left;
                Ok(())
            }
            None => Err(self.no_work()),
        }
    }

    /// Polls the token after an operator that has done `units` units of work on strings, if `units` is large.
    ///
    /// # Errors
    /// If the evaluation was cancelled, or its time is over.
    #[inline]
    pub fn check_after(&self, units: usize) -> Result<(), Fault> {
        if i64::try_from(units).is_ok_and(|units| units < Context::POLLED_WORK) || !self.poll_cancelled() {
            return Ok(());
        }
        Err(Fault::new(FaultKind::Cancelled))
    }

    /// Compares strings byte by byte. Comparisons of short strings count as no work. A comparison never reports a fault, because generated code
    /// cannot stop at a comparison: once no work is left, all long strings compare as equal, and the evaluation ends with a fault before its outputs
    /// are written. A caller that can fail must call `check_compared` afterwards.
    #[inline]
    pub fn compare(&mut self, x: &[u8], y: &[u8]) -> Ordering {
        if self.may_compare(x.len().min(y.len())) { compare::order(x, y) } else { Ordering::Equal }
    }

    /// Returns true if two strings are equal. It charges work as [`compare`](Context::compare) does.
    #[inline]
    pub fn equal(&mut self, x: &[u8], y: &[u8]) -> bool {
        x.len() == y.len() && (!self.may_compare(x.len()) || compare::equal(x, y))
    }

    /// Checks that the comparisons of this evaluation did not exceed the limit for work on strings.
    ///
    /// # Errors
    /// If the comparisons exceeded the limit, or the evaluation was cancelled.
    #[inline]
    pub fn check_compared(&self) -> Result<(), Fault> {
        if self.work_left < 0 { Err(self.no_work()) } else { Ok(()) }
    }

    /// Charges the comparison of `bytes` bytes; returns false if there is not enough work left.
    #[inline]
    fn may_compare(&mut self, bytes: usize) -> bool {
        if bytes < Context::COMPARED_FREE {
            return true;
        }
        let left = self.work_after(bytes);
        self.work_left = left.unwrap_or(-1);
        left.is_some()
    }

    /// The work that is left after `units` more; `None` if there is not enough, or the evaluation was cancelled.
    #[inline]
    fn work_after(&self, units: usize) -> Option<i64> {
        let units = i64::try_from(units).unwrap_or(i64::MAX);
        let left = self.work_left.wrapping_sub(units);
        let stops = left < 0 || (units >= Context::POLLED_WORK && self.poll_cancelled());
        (!stops).then_some(left)
    }

    /// The fault for refused work: the token's if that is cancelled, else the work limit.
    #[cold]
    fn no_work(&self) -> Fault {
        if self.poll_cancelled() {
            return Fault::new(FaultKind::Cancelled);
        }
        Fault::with(FaultKind::WorkLimit, self.string_work())
    }

    /// Sets the token that later evaluations poll; `None` removes it. A time limit for runs is removed.
    pub fn set_cancellation(&mut self, token: Option<Cancellation>) {
        self.cancel = token.as_ref().map_or(&raw const NEVER, Cancellation::flag);
        self.token = token;
        self.time_limit = None;
        self.is_watched = self.tally.is_some();
    }

    /// Sets the tally (counter) of later evaluations; `None` removes the tally.
    pub fn set_tally(&mut self, tally: Option<Arc<Tally>>) {
        self.tally = tally;
        self.is_watched = self.tally.is_some() || self.time_limit.is_some();
    }

    /// Adds one evaluation to the context's tally (counter), if the context has one.
    #[inline]
    pub fn count_evaluation(&self) {
        if let Some(tally) = &self.tally {
            tally.add(1);
        }
    }

    /// Returns true if the context's runs have a time limit, or a tally counts its evaluations.
    #[inline]
    #[must_use]
    pub const fn is_watched(&self) -> bool {
        self.is_watched
    }

    /// Returns true if the context's runs have a time limit.
    #[inline]
    #[must_use]
    pub const fn has_time_limit(&self) -> bool {
        self.time_limit.is_some()
    }

    /// Sets a time limit for each later run, and the token that can cancel runs. A run that takes longer than `limit` ends with
    /// [`FaultKind::Deadline`]. A run is the time from [`begin_run`](Context::begin_run) to [`end_run`](Context::end_run). With a limit of zero, no
    /// run begins.
    pub fn set_time_limit(&mut self, token: Option<Cancellation>, limit: Duration) {
        let token = token.unwrap_or_default();
        if limit.is_zero() {
            return self.set_cancellation(Some(token.until(Instant::now())));
        }
        let limit = TimeLimit::new(&token, limit);
        self.set_cancellation(Some(limit.token()));
        self.put_time_limit(limit);
    }

    /// Removes the time limit and returns it, so that several later runs can be timed as one run. The token of the limit remains.
    pub fn take_time_limit(&mut self) -> Option<TimeLimit> {
        self.is_watched = self.tally.is_some();
        self.time_limit.take()
    }

    /// Restores a time limit that [`take_time_limit`](Context::take_time_limit) removed.
    pub fn put_time_limit(&mut self, limit: TimeLimit) {
        self.time_limit = Some(limit);
        self.is_watched = true;
    }

    /// Begins a run. The whole time limit of the run, if there is one, starts now.
    #[inline]
    pub fn begin_run(&self) {
        if let Some(limit) = &self.time_limit {
            limit.begin();
        }
    }

    /// Ends the run that `begin_run` began.
    #[inline]
    pub fn end_run(&self) {
        if let Some(limit) = &self.time_limit {
            limit.end();
        }
    }

    /// Returns true if no new run may begin, because the token was cancelled. If the last run only exceeded its time limit, a new run may begin.
    #[inline]
    #[must_use]
    pub fn is_run_refused(&self) -> bool {
        self.poll_cancelled() && self.time_limit.as_ref().is_none_or(TimeLimit::is_ended)
    }

    /// The token that evaluations poll; `None` without one.
    #[must_use]
    pub fn cancellation(&self) -> Option<Cancellation> {
        self.token.clone()
    }

    /// Returns true if the evaluation has a token that was cancelled; then it must end with `FaultKind::Cancelled`. Everything that may run long
    /// polls the token: the interpreter after a fixed number of steps, generated code through `CANCEL_OFFSET`.
    #[inline]
    #[must_use]
    pub fn poll_cancelled(&self) -> bool {
        self.token.as_ref().is_some_and(Cancellation::is_cancelled)
    }

    /// The context's arena: the memory for strings that an evaluation makes.
    #[inline]
    pub fn arena(&mut self) -> &mut Arena {
        &mut self.arena
    }

    /// The bytes of memory that the context's arena holds.
    #[must_use]
    pub fn arena_bytes(&self) -> usize {
        self.arena.memory_bytes()
    }

    /// Records a fault and returns the status that stops the evaluation. The caller of a kernel adds the site (the index of the plan's step).
    #[cold]
    pub fn fail(&mut self, fault: Fault) -> i32 {
        self.fault = FaultRecord { site: 0, kind: fault.kind as u32, operands: fault.operands };
        STATUS_FAULT
    }

    /// Makes a fault of the kind [`FaultKind::Invalid`] with the text `reason`. The context stores the text until the next fault with a reason.
    /// `code` is the operator's own error code for the reason, if it has one.
    #[cold]
    pub fn refuse(&mut self, reason: String, code: Option<&'static str>) -> Fault {
        self.reason = (reason.into(), code);
        let reason = &self.reason.0;
        Fault { kind: FaultKind::Invalid, operands: [reason.as_ptr() as u64, reason.len() as u64] }
    }

    /// The operator's own error code for the recorded fault; `None` if the fault has no reason, or the reason no code.
    #[must_use]
    pub fn reason_code(&self) -> Option<&'static str> {
        let (reason, code) = &self.reason;
        let is_recorded =
            self.fault.kind == FaultKind::Invalid as u32 && self.fault.operands[0] == reason.as_ptr() as u64;
        code.filter(|_| is_recorded)
    }

    /// Sets the step that the recorded fault belongs to.
    pub fn set_site(&mut self, site: u32) {
        self.fault.site = site;
    }

    /// The record of the last fault. If an evaluation was stopped by its token, the kind comes from the token: cancelled or deadline.
    #[must_use]
    pub fn record(&self) -> FaultRecord {
        match &self.token {
            Some(token) if self.fault.kind == FaultKind::Cancelled as u32 => {
                FaultRecord { kind: token.fault() as u32, ..self.fault }
            }
            _ => self.fault,
        }
    }
}

// SAFETY: FUNCTION-TABLE: the pointers are to the immutable table of functions, to a table of calls that its owner keeps, unchanged, as long as calls
// are made, and to the atomic flag of the token that the context owns. CALL: only the call that was given the structs accesses them.
unsafe impl Send for Context {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::STATUS_OK;

    fn with_work(work: u64) -> Context {
        let mut context = Context::new();
        context.set_string_work(work);
        context.begin();
        context
    }

    #[test]
    fn work_is_counted_down_and_given_again() {
        let mut context = with_work(10);
        assert_eq!(context.charge(7), Ok(()));
        assert_eq!(context.charge(4), Err(Fault::with(FaultKind::WorkLimit, 10)));
        // A refused charge is not subtracted.
        assert_eq!((context.charge(3), context.work_done()), (Ok(()), 10));
        assert_eq!(context.end(STATUS_OK), STATUS_OK);
        context.begin();
        assert_eq!((context.charge(10), context.charge(0)), (Ok(()), Ok(())));
        for units in [usize::MAX, isize::MAX as usize] {
            assert!(context.charge(units).is_err());
        }
    }

    #[test]
    fn comparisons_fail_at_the_end() {
        let (long, short) = ([1_u8; 300], [2_u8; 200]);
        let mut context = with_work(299);
        assert_eq!(context.compare(&short, &long), Ordering::Greater);
        assert_eq!(context.end(STATUS_OK), STATUS_OK);
        assert_eq!(context.compare(&[0; 300], &long), Ordering::Equal);
        assert_eq!(context.charge(0), Err(Fault::with(FaultKind::WorkLimit, 299)));
        assert_eq!(context.check_compared(), context.charge(0));
        assert_eq!(context.end(STATUS_OK), STATUS_FAULT);
        assert_eq!(context.record().kind, FaultKind::WorkLimit as u32);
        context.begin();
        assert_eq!(context.end(STATUS_OK), STATUS_OK);
        let mut enough = with_work(300);
        assert_eq!((enough.compare(&[0; 300], &long), enough.end(STATUS_OK)), (Ordering::Less, STATUS_OK));
    }

    #[test]
    fn long_work_looks_at_the_token() {
        let mut context = with_work(1 << 30);
        let token = Cancellation::new();
        context.set_cancellation(Some(token.clone()));
        assert_eq!(context.charge(1 << 20), Ok(()));
        token.cancel();
        assert_eq!(context.charge(1 << 20), Err(Fault::new(FaultKind::Cancelled)));
        let long = vec![0; 1 << 20];
        assert_eq!((context.compare(&long, &long), context.end(STATUS_OK)), (Ordering::Equal, STATUS_FAULT));
        assert_eq!(context.record().kind, FaultKind::Cancelled as u32);
    }
}
