//! Compiling a plan: contexts reused per thread, the code checked to be free of relocations, published, and wrapped so
//! that nobody can call it after its pages are gone.

use crate::copies::copies;
use crate::error::{Error, ErrorKind};
use crate::{call, isa, lower, store};
use cembra_expr::{Budget, Limit};
use cembra_ops::{State, Tape};
use cembra_plan::{Binding, Function, Plan, StepId};
use cembra_runtime::{CodePages, Context, Extent, FramePtr, KernelCall};
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{self, AbiParam, types};
use cranelift_codegen::isa::OwnedTargetIsa;
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use std::cell::RefCell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// The largest stack frame of a compiled function, in bytes.
const MOST_STACK: u32 = 16 << 10;

/// The signature of compiled code: input struct, output struct, frame, context; returns a status.
///
/// Calling it is unsafe: the contract is CALL, stated at `cembra_plan::Function::call`.
pub type RawFunction = unsafe extern "C" fn(*const u8, *mut u8, *mut u8, *mut Context) -> i32;

/// A compiled plan. Its code lives as long as it does.
#[derive(Debug)]
pub struct Compiled {
    pages: Arc<CodePages>,
    function: RawFunction,
    calls: Calls,
}

/// The functions of operators that the code calls, with their slots.
#[derive(Debug)]
struct Calls {
    table: Box<[KernelCall]>,
    #[expect(dead_code, reason = "keeps what the entries of the table point to alive")]
    owned: (Box<[u32]>, Vec<State>),
}

// SAFETY: OPERATOR-DATA; the other pointers are to the slots beside the table, which live as long.
unsafe impl Send for Calls {}
// SAFETY: OPERATOR-DATA, and nothing is ever written through the pointers.
unsafe impl Sync for Calls {}

impl Calls {
    fn of(plan: &Plan) -> Calls {
        let steps: Vec<_> = call::steps(plan).collect();
        let mut slots = Vec::new();
        for (id, _) in &steps {
            let step = plan.step(*id);
            slots.extend(plan.args(step).iter().chain([&step.out]).map(|value| plan.value(*value).slot));
        }
        let slots = slots.into_boxed_slice();
        let mut rest = &slots[..];
        let table = steps.into_iter().map(|(id, callee)| {
            let (own, others) = rest.split_at(plan.args(plan.step(id)).len() + 1);
            rest = others;
            KernelCall { function: callee.address(), slots: own.as_ptr(), data: plan.data(id).as_ptr() }
        });
        Calls { table: table.collect(), owned: (slots, plan.states()) }
    }
}

impl Compiled {
    /// The code's entry. It stays valid only while this value, or a clone of its pages, lives.
    #[must_use]
    pub fn raw(&self) -> RawFunction {
        self.function
    }

    /// Gives a context the table that the code calls kernels by; `call` does so itself, the bare function cannot.
    pub fn prepare_context(&self, context: &mut Context) {
        context.set_calls(self.calls.table.as_ptr());
    }

    /// The memory the code lives in.
    #[must_use]
    pub fn pages(&self) -> &Arc<CodePages> {
        &self.pages
    }
}

impl Function for Compiled {
    #[inline]
    unsafe fn call(&self, input: FramePtr, output: FramePtr, frame: FramePtr, context: &mut Context) -> i32 {
        context.set_calls(self.calls.table.as_ptr());
        // SAFETY: CALL, promised by the caller; CODE-ALIVE: the pages live as long as self.
        unsafe { (self.function)(input.as_ptr(), output.as_ptr(), frame.as_ptr(), context) }
    }

    fn memory_bytes(&self) -> usize {
        size_of::<Compiled>() + size_of_val(&*self.calls.table) + self.pages.size()
    }
}

/// What `explain` shows of a compilation.
#[derive(Clone, Debug)]
pub struct Listings {
    /// The function as given to the code generator.
    pub clif: String,
    /// The machine code as the code generator prints it.
    pub vcode: String,
    /// The machine code's bytes.
    pub code: Vec<u8>,
    /// Ranges of the code that are there for a step of the plan, in order; elsewhere it is of the function itself.
    pub steps: Vec<(Range<usize>, StepId)>,
}

/// How much goes into machine code. All tiers give the same bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Tier {
    /// Less code in less time: mathematical functions are called.
    Quick,
    /// The fastest code: mathematical functions are part of it.
    #[default]
    Optimised,
}

struct Scratch {
    context: cranelift_codegen::Context,
    builder: FunctionBuilderContext,
    tape: Tape,
}

impl Scratch {
    fn new() -> Self {
        Scratch {
            context: cranelift_codegen::Context::new(),
            builder: FunctionBuilderContext::new(),
            tape: Tape::new(),
        }
    }
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::new(Scratch::new());
}

/// Compiles a plan for the given places of its inputs and outputs, in a tier.
///
/// # Errors
/// The machine is not supported, a limit is exceeded, or there is no memory for the code.
pub fn compile(plan: &Plan, binding: &Binding, tier: Tier, budget: &Budget) -> Result<Compiled, Error> {
    with_code(plan, binding, tier, budget, false, |isa, context| {
        let code = context.compiled_code().ok_or_else(|| generator("no code was made"))?;
        let alignment = u64::from(code.buffer.alignment);
        let pages = store::publish(isa, &context.func.signature, alignment, code.code_buffer())?;
        // SAFETY: CODE-ENTRY: the pages start with a function of this signature, compiled just above.
        let function = unsafe { std::mem::transmute::<*const u8, RawFunction>(pages.as_ptr()) };
        Ok(Compiled { pages, function, calls: Calls::of(plan) })
    })
}

/// Compiles a plan and shows what became of it, without making it runnable.
///
/// # Errors
/// As for `compile`.
pub fn listings(plan: &Plan, binding: &Binding, tier: Tier, budget: &Budget) -> Result<Listings, Error> {
    with_code(plan, binding, tier, budget, true, |_, context| {
        let code = context.compiled_code().ok_or_else(|| generator("no code was made"))?;
        Ok(Listings {
            clif: String::new(),
            vcode: code.vcode.clone().unwrap_or_default(),
            code: code.code_buffer().to_vec(),
            steps: marked_steps(code),
        })
    })
    .and_then(|mut listings| {
        listings.clif = clif(plan, binding, tier)?;
        Ok(listings)
    })
}

/// The ranges of code that carry a step.
fn marked_steps(code: &cranelift_codegen::CompiledCode) -> Vec<(Range<usize>, StepId)> {
    let marked = code.buffer.get_srclocs_sorted().iter().filter(|range| !range.loc.is_default());
    marked
        .map(|range| (range.start as usize..range.end as usize, StepId::from_index(range.loc.bits() as usize)))
        .collect()
}

/// How much there is to compile, in steps, copies of steps and fields of tuples; counted up to a little more than `most`.
fn size(plan: &Plan, most: usize) -> usize {
    let inputs = plan.inputs().iter().map(|input| input.value);
    let outputs = plan.outputs().iter().map(|output| output.value);
    let steps = (0..plan.step_count()).map(|at| plan.step(StepId::from_index(at)).out);
    let mut size = plan.step_count();
    for value in inputs.chain(outputs).chain(steps) {
        if size > most {
            break;
        }
        size += plan.value(value).qtype.extent(Extent { fields: most, nesting: usize::MAX }).fields;
    }
    if size > most { size } else { size.saturating_add(copies(plan)) }
}

fn generator(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::CodeGenerator, message)
}

/// The function before optimisation.
fn clif(plan: &Plan, binding: &Binding, tier: Tier) -> Result<String, Error> {
    let isa = isa::host()?;
    let mut scratch = Scratch::new();
    build(&mut scratch, &isa, plan, binding, tier, false);
    Ok(scratch.context.func.display().to_string())
}

fn build(scratch: &mut Scratch, isa: &OwnedTargetIsa, plan: &Plan, binding: &Binding, tier: Tier, marks_steps: bool) {
    let func = &mut scratch.context.func;
    func.signature = ir::Signature::new(isa.default_call_conv());
    func.signature.params.extend([AbiParam::new(types::I64); 4]);
    func.signature.returns.push(AbiParam::new(types::I32));
    let mut builder = FunctionBuilder::new(func, &mut scratch.builder);
    // Without the instruction that they are made of, functions are better called in any tier.
    scratch.tape.set_inlining(tier == Tier::Optimised && isa.has_native_fma());
    lower::lower(&mut builder, &**isa, plan, binding, &mut scratch.tape, marks_steps);
    builder.finalize(isa.frontend_config());
}

/// Compiles in the thread's scratch memory and hands the context with the code to `finish`.
fn with_code<R>(
    plan: &Plan,
    binding: &Binding,
    tier: Tier,
    budget: &Budget,
    disassemble: bool,
    finish: impl FnOnce(&OwnedTargetIsa, &cranelift_codegen::Context) -> Result<R, Error>,
) -> Result<R, Error> {
    let limits = budget.limits();
    if size(plan, limits.native_steps) > limits.native_steps {
        return Err(limits.exceeded(Limit::NativeSteps).into());
    }
    let isa = isa::host()?;
    SCRATCH.with_borrow_mut(|scratch| {
        // The code generator may panic on what it does not support; its state is thrown away then.
        let compiled = catch_unwind(AssertUnwindSafe(|| {
            scratch.context.clear();
            scratch.context.set_disasm(disassemble);
            build(scratch, &isa, plan, binding, tier, disassemble);
            budget.check_time()?;
            let code = scratch
                .context
                .compile(&*isa, &mut ControlPlane::default())
                .map_err(|e| generator(format!("the code generator refused the model: {}", e.inner)))?;
            check(code, budget)
        }));
        match compiled {
            Ok(result) => {
                result?;
                finish(&isa, &scratch.context)
            }
            Err(_) => {
                *scratch = Scratch::new();
                Err(generator("the code generator failed on the model"))
            }
        }
    })
}

/// Code must be movable and must not need much stack.
fn check(code: &cranelift_codegen::CompiledCode, budget: &Budget) -> Result<(), Error> {
    budget.check_time()?;
    if code.code_buffer().len() > budget.limits().code_bytes {
        return Err(budget.limits().exceeded(Limit::CodeBytes).into());
    }
    if !code.buffer.relocs().is_empty() {
        return Err(generator("the code would need relocations"));
    }
    let stack = code.buffer.frame_layout().map_or(0, |frame| frame.frame_to_fp_offset);
    if stack > MOST_STACK {
        return Err(Error::new(
            ErrorKind::Stack,
            format!("the model needs {stack} bytes of stack; native code takes up to {MOST_STACK}"),
        ));
    }
    Ok(())
}
