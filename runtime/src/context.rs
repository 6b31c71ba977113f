//! The evaluation context: what a call carries besides its frame. Kernels and generated code report a fault by filling
//! the fault record and returning a status; both backends build the same error from the same record.

use crate::flag::NEVER;
use crate::layout::layout;
use crate::{
    Arena, Cancellation, Fault, FaultKind, FramePtr, KernelCall, STATUS_FAULT, Tally, TimeLimit, compare, functions,
};
use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::AtomicU8;
use std::time::{Duration, Instant};

/// What a context knows of the fault that stopped an evaluation.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FaultRecord {
    /// Which step of the plan failed.
    pub site: u32,
    /// The number of the `FaultKind`.
    pub kind: u32,
    /// The fault's operands.
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
    /// The flag of the token, for generated code; `NEVER` without one.
    cancel: *const AtomicU8,
    iterations: u64,
    /// How many rounds are left, where generated code does not keep that in a register.
    rounds_left: u64,
    /// How much work on strings an evaluation may do.
    work: i64,
    /// How much of it is left, for generated code too; negative once a comparison would have taken more.
    work_left: i64,
    arena: Arena,
    token: Option<Cancellation>,
    /// The time limit of each run with this context. The token is that of the limit then.
    time_limit: Option<TimeLimit>,
    /// The last reason that an operator of the user gave for a fault, and its code, if that is one of its own.
    reason: (Box<str>, Option<&'static str>),
    /// The counter of evaluations, if there is one.
    tally: Option<Arc<Tally>>,
    /// True if there is a time limit or a tally: one byte to look at for those without.
    is_watched: bool,
    /// The caller's structs, for calls in a row that copy from or to them. Generated code has them in registers.
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
        /// Offset of the pointer to the table of runtime functions.
        pub FUNCTIONS_OFFSET = (offset of functions);
        /// Offset of the pointer to the table of kernel calls.
        pub CALLS_OFFSET = (offset of calls);
        /// Offset of the pointer to the byte that is not 0 once the evaluation is cancelled. There always is such a byte.
        pub CANCEL_OFFSET = (offset of cancel);
        /// Offset of the fault record's site.
        pub FAULT_SITE_OFFSET = (offset of fault.site);
        /// Offset of the fault record's kind.
        pub FAULT_KIND_OFFSET = (offset of fault.kind);
        /// Offset of the first operand of the fault record; the second follows 8 bytes later.
        pub FAULT_OPERANDS_OFFSET = (offset of fault.operands);
        /// Offset of the number of times that the loops of one evaluation may run.
        pub ITERATIONS_OFFSET = (offset of iterations);
        /// Offset of the number of times that the loops of this evaluation may run on. Generated code sets it first.
        pub ROUNDS_LEFT_OFFSET = (offset of rounds_left);
        /// Offset of the work on strings that is left, 8 bytes: negative once a comparison would have taken more.
        pub WORK_LEFT_OFFSET = (offset of work_left);
    }
}

impl Context {
    /// How often the loops of one evaluation may run together, unless a caller says otherwise.
    pub const ITERATIONS: u64 = 10_000_000;

    /// How much work on strings one evaluation may do, unless a caller says otherwise: as much as reading so many bytes takes.
    pub const STRING_WORK: u64 = 1 << 30;
    /// Whatever does as much work at once looks at the token before.
    const POLLED_WORK: i64 = 1 << 16;
    /// Strings that are shorter are compared for nothing.
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

    /// Gives generated code its table of kernel calls.
    ///
    /// # Safety
    /// CODE-ALIVE: the table is that of the code that runs with this context from now on, and lives as long as calls are made.
    #[inline]
    pub unsafe fn set_calls(&mut self, calls: *const KernelCall) {
        self.calls = calls;
    }

    /// Says where the caller's structs are during the evaluation that begins.
    ///
    /// # Safety
    /// CALL: they are the memory that the evaluation was given.
    #[inline]
    pub unsafe fn set_structs(&mut self, input: FramePtr, output: FramePtr) {
        (self.input, self.output) = (input, output);
    }

    /// The caller's input struct, as `set_structs` said.
    #[inline]
    #[must_use]
    pub fn input(&self) -> FramePtr {
        self.input
    }

    /// The caller's output struct, as `set_structs` said.
    #[inline]
    #[must_use]
    pub fn output(&self) -> FramePtr {
        self.output
    }

    /// A context whose evaluations make up to `limit` bytes of strings each.
    #[must_use]
    pub fn with_arena_limit(limit: usize) -> Self {
        Context { arena: Arena::new(limit), ..Context::new() }
    }

    /// A context of the same limits and with the same token, for evaluations in the midst of this one's.
    #[must_use]
    pub fn like(&self) -> Self {
        let mut other = Context::with_arena_limit(self.arena.limit());
        (other.iterations, other.work) = (self.iterations, self.work);
        other.set_cancellation(self.token.clone());
        other
    }

    /// Sets how often the loops of one evaluation may run together.
    pub fn set_iterations(&mut self, limit: u64) {
        self.iterations = limit;
    }

    /// How often the loops of one evaluation may run together.
    #[must_use]
    pub fn iterations(&self) -> u64 {
        self.iterations
    }

    /// Sets how much work on strings one evaluation may do, beginning with the next.
    pub fn set_string_work(&mut self, limit: u64) {
        self.work = i64::try_from(limit).unwrap_or(i64::MAX);
    }

    /// How much work on strings one evaluation may do.
    #[must_use]
    pub fn string_work(&self) -> u64 {
        self.work.unsigned_abs()
    }

    /// How much work on strings this evaluation has done.
    #[must_use]
    pub fn work_done(&self) -> u64 {
        self.work.abs_diff(self.work_left.max(0))
    }

    /// True if this evaluation may do so much work on strings more, and make so many bytes of them.
    #[must_use]
    pub fn has_room(&self, work: u64, bytes: usize) -> bool {
        u64::try_from(self.work_left).is_ok_and(|left| left >= work)
            && self.arena.limit().saturating_sub(self.arena.used()) >= bytes
    }

    /// Begins an evaluation: takes back the memory of the last one's strings, and none of its work counts any more.
    #[inline]
    pub fn begin(&mut self) {
        self.arena.reset();
        self.work_left = self.work;
    }

    /// What an evaluation came to whose function returned this status: a fault if a comparison found no work left.
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

    /// Takes work on strings out of what an evaluation may do, before it is done: a unit for each byte that is read once, more
    /// where a byte takes long. Long work looks at the token too, so that an evaluation ends between any two operators.
    ///
    /// # Errors
    /// There is not so much left, or the evaluation was cancelled.
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

    /// Looks at the token behind an operator that has done so much work on strings, if that was long.
    ///
    /// # Errors
    /// The evaluation was cancelled, or its time is over.
    #[inline]
    pub fn check_after(&self, units: usize) -> Result<(), Fault> {
        if i64::try_from(units).is_ok_and(|units| units < Context::POLLED_WORK) || !self.poll_cancelled() {
            return Ok(());
        }
        Err(Fault::new(FaultKind::Cancelled))
    }

    /// Compares strings, byte by byte; short ones are no more work than numbers. It cannot fail, as generated code could not
    /// leave there: once there is no work left all long strings are equal to it, and the evaluation comes to a fault before its
    /// outputs are written. Who can fail calls `check_compared` behind it.
    #[inline]
    pub fn compare(&mut self, x: &[u8], y: &[u8]) -> Ordering {
        if self.may_compare(x.len().min(y.len())) { compare::order(x, y) } else { Ordering::Equal }
    }

    /// True if two strings are the same, as [`compare`](Context::compare) says.
    #[inline]
    pub fn equal(&mut self, x: &[u8], y: &[u8]) -> bool {
        x.len() == y.len() && (!self.may_compare(x.len()) || compare::equal(x, y))
    }

    /// Says whether there was work left for all comparisons.
    ///
    /// # Errors
    /// There was not, or the evaluation was cancelled.
    #[inline]
    pub fn check_compared(&self) -> Result<(), Fault> {
        if self.work_left < 0 { Err(self.no_work()) } else { Ok(()) }
    }

    /// Takes the work of comparing so many bytes; false if there is not so much left.
    #[inline]
    fn may_compare(&mut self, bytes: usize) -> bool {
        if bytes < Context::COMPARED_FREE {
            return true;
        }
        let left = self.work_after(bytes);
        self.work_left = left.unwrap_or(-1);
        left.is_some()
    }

    /// How much work is left, if that is as much.
    #[inline]
    fn work_after(&self, units: usize) -> Option<i64> {
        let units = i64::try_from(units).unwrap_or(i64::MAX);
        let left = self.work_left.wrapping_sub(units);
        let stops = left < 0 || (units >= Context::POLLED_WORK && self.poll_cancelled());
        (!stops).then_some(left)
    }

    /// The fault of work that is not to be done.
    #[cold]
    fn no_work(&self) -> Fault {
        if self.poll_cancelled() {
            return Fault::new(FaultKind::Cancelled);
        }
        Fault::with(FaultKind::WorkLimit, self.string_work())
    }

    /// Gives the evaluations to come a token to look at, or none. They have no time limit then.
    pub fn set_cancellation(&mut self, token: Option<Cancellation>) {
        self.cancel = token.as_ref().map_or(&raw const NEVER, Cancellation::flag);
        self.token = token;
        self.time_limit = None;
        self.is_watched = self.tally.is_some();
    }

    /// Counts the evaluations to come there, or nowhere.
    pub fn set_tally(&mut self, tally: Option<Arc<Tally>>) {
        self.tally = tally;
        self.is_watched = self.tally.is_some() || self.time_limit.is_some();
    }

    /// Counts an evaluation, if evaluations are counted.
    #[inline]
    pub fn count_evaluation(&self) {
        if let Some(tally) = &self.tally {
            tally.add(1);
        }
    }

    /// True if runs have a time limit, or are counted.
    #[inline]
    #[must_use]
    pub const fn is_watched(&self) -> bool {
        self.is_watched
    }

    /// True if runs have a time limit.
    #[inline]
    #[must_use]
    pub const fn has_time_limit(&self) -> bool {
        self.time_limit.is_some()
    }

    /// Gives each run to come a time limit, and a token beside it: a run ends with [`FaultKind::Deadline`] once it takes longer. Runs are those between
    /// [`begin_run`](Context::begin_run) and [`end_run`](Context::end_run). If the limit is zero, none begins.
    pub fn set_time_limit(&mut self, token: Option<Cancellation>, limit: Duration) {
        let token = token.unwrap_or_default();
        if limit.is_zero() {
            return self.set_cancellation(Some(token.until(Instant::now())));
        }
        let limit = TimeLimit::new(&token, limit);
        self.set_cancellation(Some(limit.token()));
        self.put_time_limit(limit);
    }

    /// Takes the time limit out, so that the runs to come are parts of one. The token still is that of the limit.
    pub fn take_time_limit(&mut self) -> Option<TimeLimit> {
        self.is_watched = self.tally.is_some();
        self.time_limit.take()
    }

    /// Puts a time limit back that [`take_time_limit`](Context::take_time_limit) took out.
    pub fn put_time_limit(&mut self, limit: TimeLimit) {
        self.time_limit = Some(limit);
        self.is_watched = true;
    }

    /// Begins a run, which has the whole time limit, if there is one.
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

    /// True if the token says that no run may begin. That the last run took longer than its time limit does not count.
    #[inline]
    #[must_use]
    pub fn lets_none_begin(&self) -> bool {
        self.poll_cancelled() && self.time_limit.as_ref().is_none_or(TimeLimit::is_ended)
    }

    /// The token that evaluations look at.
    #[must_use]
    pub fn cancellation(&self) -> Option<Cancellation> {
        self.token.clone()
    }

    /// True if the evaluation has a token and that was cancelled: then it ends with `FaultKind::Cancelled`. Whatever may
    /// run long looks here now and then: the interpreter every so many steps, generated code through `CANCEL_OFFSET`.
    #[inline]
    #[must_use]
    pub fn poll_cancelled(&self) -> bool {
        self.token.as_ref().is_some_and(Cancellation::is_cancelled)
    }

    /// Where strings that an evaluation makes are put.
    #[inline]
    pub fn arena(&mut self) -> &mut Arena {
        &mut self.arena
    }

    /// Bytes of memory that the arena holds.
    #[must_use]
    pub fn arena_bytes(&self) -> usize {
        self.arena.memory_bytes()
    }

    /// Records a fault and returns the status that stops the evaluation. The caller of a kernel adds the site.
    #[cold]
    pub fn fail(&mut self, fault: Fault) -> i32 {
        self.fault = FaultRecord { site: 0, kind: fault.kind as u32, operands: fault.operands };
        STATUS_FAULT
    }

    /// Makes a fault of the kind [`FaultKind::Invalid`] for a reason, which the context keeps until it keeps another. `code` is the code of its own that
    /// the reason has, if it has one.
    #[cold]
    pub fn refuse(&mut self, reason: String, code: Option<&'static str>) -> Fault {
        self.reason = (reason.into(), code);
        let reason = &self.reason.0;
        Fault { kind: FaultKind::Invalid, operands: [reason.as_ptr() as u64, reason.len() as u64] }
    }

    /// The code of the recorded fault, if an operator of the user gave a reason with a code of its own.
    #[must_use]
    pub fn reason_code(&self) -> Option<&'static str> {
        let (reason, code) = &self.reason;
        let is_recorded =
            self.fault.kind == FaultKind::Invalid as u32 && self.fault.operands[0] == reason.as_ptr() as u64;
        code.filter(|_| is_recorded)
    }

    /// Says which step the recorded fault belongs to.
    pub fn set_site(&mut self, site: u32) {
        self.fault.site = site;
    }

    /// The record of the last fault. Who ends an evaluation only sees that its flag is raised; why, the token says here.
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

// SAFETY: FUNCTION-TABLE: the pointers are to the immutable table of functions, to a table of calls that its owner
// keeps, unchanged, as long as calls are made, and to the atomic flag of the token that the context owns. CALL: the structs
// are looked at only by the call that was given them.
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
        // What is refused is not taken.
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
