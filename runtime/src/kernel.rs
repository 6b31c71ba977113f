//! Functions that are called with a context: compiled models, and kernels. A kernel computes one operator on frame slots and
//! goes on with the next call of its chain. The interpreter runs such chains; generated code calls the kernels of operators
//! for which it has no instructions, through a table in the context.

use crate::layout::layout;
use crate::{Context, Fault, FramePtr, STATUS_FAULT, STATUS_OK};

/// A kernel. It reads its arguments from frame slots, writes its result to a slot, and goes on with the next call of
/// the chain (calls that are stored one after the other). After the last call the status is `STATUS_OK`. A kernel that
/// fails fills the context's fault record and returns a status.
///
/// Calling a kernel is unsafe: the call must be in a complete chain, and its slots in the frame must have the kernel's types (rule KERNEL-ROW in
/// `docs/safety.md`).
pub type Kernel = unsafe extern "C" fn(context: &mut Context, frame: FramePtr, call: Call) -> i32;

/// A word of a kernel chain.
#[derive(Clone, Copy)]
union Word {
    kernel: Kernel,
    data: *const (),
    numbers: [u32; 2],
}

/// Calls of kernels, stored one after the other in memory in the order of execution. A call consists of its kernel, its data, the site for faults,
/// the slots of its arguments, and the slot of its result. A kernel knows the length of its call, so it finds the next one at no cost. Each kernel
/// ends with its own jump to the next kernel, which the branch predictor can learn.
#[derive(Clone, Default)]
pub struct KernelChain(Vec<Word>);

// SAFETY: OPERATOR-DATA: functions, and data that is Send and Sync and outlives its use.
unsafe impl Send for KernelChain {}
// SAFETY: OPERATOR-DATA, and nothing is ever written through the pointers.
unsafe impl Sync for KernelChain {}

impl std::fmt::Debug for KernelChain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KernelChain").field("words", &self.0.len()).finish()
    }
}

impl KernelChain {
    /// Appends a call. `slots` are the offsets of the arguments, then of the result. `data` is the data of a user operator,
    /// null for other kernels.
    pub fn push(&mut self, kernel: Kernel, data: *const (), site: u32, slots: impl IntoIterator<Item = u32>) {
        let mut numbers = std::iter::once(site).chain(slots);
        // Reserves room for the end of the row too, in case this is its only call.
        self.0.reserve(4 + numbers.size_hint().0 / 2);
        self.0.extend([Word { kernel }, Word { data }]);
        while let Some(number) = numbers.next() {
            self.0.push(Word { numbers: [number, numbers.next().unwrap_or(0)] });
        }
    }

    /// Ends a sequence of calls: the last appended call does not go on with a call that is appended later.
    pub fn end(&mut self) {
        // SAFETY: KERNEL-ROW, of which this kernel needs nothing.
        unsafe extern "C" fn end(_: &mut Context, _: FramePtr, _: Call) -> i32 {
            STATUS_OK
        }
        self.0.push(Word { kernel: end });
    }

    /// Frees the memory that this chain of kernel calls has reserved for more calls.
    pub fn shrink_to_fit(&mut self) {
        self.0.shrink_to_fit();
    }

    /// The position in this chain, in words, at which the next call is appended.
    #[must_use]
    pub fn position(&self) -> usize {
        self.0.len()
    }

    /// The call at `position`, which `position()` returned before the call was appended. It is valid while the chain lives
    /// and neither grows nor shrinks.
    #[inline]
    #[must_use]
    pub fn call(&self, position: usize) -> Call {
        Call(self.0.as_ptr().wrapping_add(position))
    }

    /// The bytes of memory that this chain of kernel calls holds.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.0.len() * size_of::<Word>()
    }
}

/// The address of a call in a kernel chain (calls of kernels that are stored one after the other).
#[repr(transparent)]
#[derive(Clone, Copy)]
pub struct Call(*const Word);

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Call")
    }
}

impl Call {
    /// Runs this call and the calls that follow it in the chain, and returns their status.
    ///
    /// # Safety
    /// KERNEL-ROW (`docs/safety.md`): the chain must be alive and complete, and `frame` must have the layout that its calls were made for.
    #[inline(always)]
    pub unsafe fn run(self, context: &mut Context, frame: FramePtr) -> i32 {
        // SAFETY: KERNEL-ROW, promised by the caller.
        unsafe { ((*self.0).kernel)(context, frame, self) }
    }

    /// Runs the next call of the chain and returns its status. `slots` is the number of slots of this call. A kernel must do
    /// nothing afterwards, so that the compiler can turn this call into a jump.
    ///
    /// # Safety
    /// KERNEL-ROW (`docs/safety.md`): the chain must be alive and complete. This call must have `slots` slots.
    #[inline(always)]
    pub unsafe fn go_on(self, slots: usize, context: &mut Context, frame: FramePtr) -> i32 {
        // SAFETY: KERNEL-ROW, promised by the caller: the next call is after the kernel, the data and the numbers.
        unsafe { Call(self.0.add(2 + (1 + slots).div_ceil(2))).run(context, frame) }
    }

    /// Records a fault of this call and returns the status that stops the evaluation.
    ///
    /// # Safety
    /// KERNEL-ROW (`docs/safety.md`): the chain that contains this call must be alive and complete.
    #[cold]
    pub unsafe fn fail(self, context: &mut Context, fault: Fault) -> i32 {
        context.fail(fault);
        // SAFETY: KERNEL-ROW, promised by the caller.
        context.set_site(unsafe { self.number(0) });
        STATUS_FAULT
    }

    /// The data of this call's operator, if that is a user operator; null for other kernels.
    ///
    /// # Safety
    /// KERNEL-ROW (`docs/safety.md`): the chain that contains this call must be alive and complete.
    #[inline]
    #[must_use]
    pub unsafe fn data(self) -> *const () {
        // SAFETY: KERNEL-ROW, promised by the caller.
        unsafe { (*self.0.add(1)).data }
    }

    /// The slot of argument `at`, or of the result, which comes after the arguments.
    ///
    /// # Safety
    /// KERNEL-ROW (`docs/safety.md`): the chain that contains this call must be alive and complete, and the call must have more than `at` slots.
    #[inline(always)]
    #[must_use]
    pub unsafe fn slot(self, at: usize) -> u32 {
        // SAFETY: KERNEL-ROW, promised by the caller.
        unsafe { self.number(1 + at) }
    }

    /// The number at index `at`: the site, then the slots.
    ///
    /// # Safety
    /// KERNEL-ROW (`docs/safety.md`): the chain that contains this call must be alive and complete, and the call must have that many numbers.
    #[inline(always)]
    unsafe fn number(self, at: usize) -> u32 {
        // SAFETY: KERNEL-ROW, promised by the caller.
        unsafe { self.0.add(2).cast::<u32>().add(at).read() }
    }
}

/// The signature of compiled models: input struct, output struct, frame, context; returns a status.
///
/// # Safety
/// CALL: the contract is stated at `cembra_plan::Function::call`.
pub type RawFunction = unsafe extern "C" fn(*const u8, *mut u8, *mut u8, *mut Context) -> i32;

/// The result of a function that takes its arguments in registers. Both fields of the result are returned in registers too.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RegisterResult {
    status: u64,
    bits: u64,
}

layout! {
    RegisterResult: u32 {
        /// Offset in a [`RegisterResult`] of the status, which is returned in the first register.
        STATUS_OFFSET = (offset of status);
        /// Offset in a [`RegisterResult`] of the result's bits, which are returned in the second register.
        BITS_OFFSET = (offset of bits);
    }
}

impl RegisterResult {
    /// The status of a call that takes its arguments in registers and whose result is missing.
    pub const STATUS_MISSING: i32 = 2;
    /// A missing result.
    pub const MISSING: RegisterResult = RegisterResult { status: RegisterResult::STATUS_MISSING as u64, bits: 0 };
    /// The result of a call that failed: the context's fault record has the fault.
    pub const FAULT: RegisterResult = RegisterResult { status: STATUS_FAULT as u64, bits: 0 };

    /// A present result with the bits `bits`, zero-extended.
    #[must_use]
    pub const fn value(bits: u64) -> RegisterResult {
        RegisterResult { status: STATUS_OK as u64, bits }
    }
}

/// A call of an operator's function, for generated code: an entry of the table that is passed to `Context::set_calls`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct KernelCall {
    /// The address of the kernel, or of a function that takes its arguments in registers. The code that uses the entry knows
    /// which of the two it is.
    pub function: *const (),
    /// The call that is passed to `function` if that is a kernel.
    pub call: Call,
    /// The data that is passed to `function` if that takes its arguments in registers.
    pub data: *const (),
}

layout! {
    KernelCall: i32 {
        /// The size of a [`KernelCall`] in bytes.
        pub SIZE = (size);
        /// Offset of the function's address in a [`KernelCall`].
        pub FUNCTION_OFFSET = (offset of function);
        /// Offset in a [`KernelCall`] of the call that is passed to a kernel.
        pub CALL_OFFSET = (offset of call);
        /// Offset in a [`KernelCall`] of the data that is passed to a function on registers.
        pub DATA_OFFSET = (offset of data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{FaultKind, Frame, Slot};
    use std::ptr::without_provenance;

    /// Adds its data to the number in a slot, at most up to 100.
    // SAFETY: KERNEL-ROW, with two slots and data that is a number.
    unsafe extern "C" fn add(context: &mut Context, frame: FramePtr, call: Call) -> i32 {
        // SAFETY: KERNEL-ROW and FRAME-SLOT: calls below have two slots of a frame of two words.
        unsafe {
            let sum = frame.read(Slot::<u64>::at(call.slot(0))) + call.data().addr() as u64;
            if sum == 100 {
                return call.fail(context, Fault::new(FaultKind::Invalid));
            }
            frame.write(Slot::at(call.slot(1)), sum);
            call.go_on(2, context, frame)
        }
    }

    fn run(row: &KernelChain, position: usize, frame: &mut Frame) -> (i32, Context) {
        let mut context = Context::new();
        // SAFETY: KERNEL-ROW: a row begins there, of calls of `add` on a frame of two words.
        let status = unsafe { row.call(position).run(&mut context, frame.ptr()) };
        (status, context)
    }

    fn words(frame: &mut Frame) -> [u64; 2] {
        // SAFETY: FRAME-SLOT: frames below are of two words.
        unsafe { frame.ptr().read(Slot::at(0)) }
    }

    #[test]
    fn calls_go_on_with_each_other_to_the_end_of_their_row() {
        let mut row = KernelChain::default();
        row.push(add, without_provenance(1), 0, [0, 8]);
        row.push(add, without_provenance(20), 1, [8, 0]);
        row.end();
        let second = row.position();
        row.push(add, without_provenance(300), 2, [0, 8]);
        row.end();
        let mut frame = Frame::zeroed(16);
        assert_eq!(run(&row, 0, &mut frame).0, STATUS_OK);
        assert_eq!(words(&mut frame), [21, 1]);
        assert_eq!(run(&row, second, &mut frame).0, STATUS_OK);
        assert_eq!(words(&mut frame), [21, 321]);
    }

    #[test]
    fn a_call_that_fails_names_its_site_and_stops_the_row() {
        let mut row = KernelChain::default();
        for (site, data) in [(7, 60), (8, 40), (9, 1)] {
            row.push(add, without_provenance(data), site, [0, 0]);
        }
        row.end();
        let mut frame = Frame::zeroed(16);
        let (status, context) = run(&row, 0, &mut frame);
        assert_eq!(
            (status, context.record().site, context.record().kind),
            (STATUS_FAULT, 8, FaultKind::Invalid as u32)
        );
        assert_eq!(words(&mut frame), [60, 0]);
    }
}
