//! Compilation of a plan: its machine code is generated, made executable, and wrapped so that it cannot be called after its
//! pages are freed.

use super::code::{self, Listings};
use super::isa::{self, Tier};
use super::store;
use crate::error::Error;
use cembra_plan::{Binding, CompiledLiteral, Function, Plan, StepId};
use cembra_record::{Callee, callees};
use cembra_runtime::{CodePages, Context, FramePtr, KernelCall, KernelChain, RawFunction};
use cembra_value::Budget;
use std::sync::Arc;

/// A compiled plan: machine code that can be called. The code lives as long as this value, or a clone of its pages.
#[derive(Debug)]
pub struct Compiled {
    pages: Arc<CodePages>,
    function: RawFunction,
    calls: Calls,
    stack: usize,
    was_cached: bool,
}

/// The operator functions that the machine code calls. The code finds them in `table`, with one entry per step that
/// makes a call. The context has the address of the table.
#[derive(Debug)]
struct Calls {
    table: Box<[KernelCall]>,
    /// The data that the table's pointers refer to. It must live as long as the table.
    owned: (KernelChain, Vec<CompiledLiteral>),
}

// SAFETY: OPERATOR-DATA; the other pointers are into the chain beside the table, which lives as long.
unsafe impl Send for Calls {}
// SAFETY: OPERATOR-DATA, and nothing is ever written through the pointers.
unsafe impl Sync for Calls {}

impl Calls {
    fn of(plan: &Plan) -> Calls {
        let mut row = KernelChain::default();
        let mut positions = Vec::new();
        for (id, callee) in callees(plan) {
            positions.push(row.position());
            if let Callee::Kernel(kernel) = callee {
                let step = plan.step(id);
                let slots = plan.args(step).iter().chain([&step.out]).map(|value| plan.value(*value).slot);
                row.push(kernel, plan.data(id).as_ptr(), id.index() as u32, slots);
                row.end();
            }
        }
        // Before pointers into it are taken.
        row.shrink_to_fit();
        let entry = |((id, callee), position): ((StepId, Callee), usize)| {
            let (function, data) = (callee.address(), plan.data(id).as_ptr());
            KernelCall { function, call: row.call(position), data }
        };
        let table = callees(plan).zip(positions).map(entry).collect();
        Calls { table, owned: (row, plan.states()) }
    }
}

impl Compiled {
    /// Returns the entry function of the machine code. It is valid only while this value, or a clone of its pages, lives.
    #[must_use]
    pub fn raw(&self) -> RawFunction {
        self.function
    }

    /// Sets the table of kernel calls in `context`. A caller of the raw function must call this before; `call` does so itself.
    pub fn prepare_context(&self, context: &mut Context) {
        // SAFETY: CODE-ALIVE: a caller of the bare function owns the compiled plan, which has the table.
        unsafe { context.set_calls(self.calls.table.as_ptr()) };
    }

    /// The most stack that a call of the compiled plan takes, in bytes. External functions, such as kernels, need more.
    #[must_use]
    pub fn stack_bytes(&self) -> usize {
        self.stack
    }

    /// Returns true if the machine code came from a cache.
    #[must_use]
    pub fn was_cached(&self) -> bool {
        self.was_cached
    }

    /// The memory pages that hold the machine code of the compiled plan.
    #[must_use]
    pub fn pages(&self) -> &Arc<CodePages> {
        &self.pages
    }
}

impl Function for Compiled {
    // SAFETY: CALL, as the trait says.
    #[inline]
    unsafe fn call(&self, input: FramePtr, output: FramePtr, frame: FramePtr, context: &mut Context) -> i32 {
        // SAFETY: CODE-ALIVE: the table lives as long as self, which is called.
        unsafe { context.set_calls(self.calls.table.as_ptr()) };
        // SAFETY: CALL, promised by the caller; CODE-ALIVE: the pages live as long as self.
        unsafe { (self.function)(input.as_ptr(), output.as_ptr(), frame.as_ptr(), context) }
    }

    fn memory_bytes(&self) -> usize {
        let (row, states) = &self.calls.owned;
        size_of_val(&*self.calls.table)
            + row.memory_bytes()
            + states.len() * size_of::<CompiledLiteral>()
            + self.pages.size()
    }
}

/// Compiles a plan to machine code with the effort `tier`. `binding` gives the memory locations of the plan's inputs and outputs.
///
/// # Errors
/// If the machine is not supported, a limit is exceeded, or there is no memory for the code.
pub fn compile(plan: &Plan, binding: &Binding, tier: Tier, budget: &Budget) -> Result<Compiled, Error> {
    let code = code::generate(plan, binding, tier, &isa::host(tier)?, budget, None)?;
    // SAFETY: CODE-ENTRY: the code was made of the plan just above.
    unsafe { install(plan, &code.bytes, code.stack, false) }
}

/// Makes machine code executable and returns it as a compiled plan.
///
/// # Safety
/// `code::generate` must have made `bytes` from this plan for this machine (rule CODE-ENTRY in `docs/safety.md`).
pub(crate) unsafe fn install(plan: &Plan, bytes: &[u8], stack: usize, was_cached: bool) -> Result<Compiled, Error> {
    let pages = store::publish(bytes)?;
    // SAFETY: CODE-ENTRY, promised by the caller.
    let function = unsafe { std::mem::transmute::<*const u8, RawFunction>(pages.as_ptr()) };
    Ok(Compiled { pages, function, calls: Calls::of(plan), stack, was_cached })
}

/// Compiles a plan and returns the listings of its machine code, without making the code executable.
///
/// # Errors
/// The errors of `compile`.
pub fn listings(plan: &Plan, binding: &Binding, tier: Tier, budget: &Budget) -> Result<Listings, Error> {
    let mut listings = Listings::default();
    code::generate(plan, binding, tier, &isa::host(tier)?, budget, Some(&mut listings))?;
    Ok(listings)
}
