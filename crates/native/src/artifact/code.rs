//! Generation of a plan's machine code. The functions of the code are built and compiled one after the other in the thread's scratch memory and
//! concatenated, and then the calls between them are resolved. The code can be placed anywhere, because these calls are relative and nothing else
//! refers to an address.

use super::isa::{Codegen, Tier};
use crate::error::{Error, ErrorKind};
use crate::translate::{Workspace, translate};
use cembra_plan::{Base, Binding, Plan, StepId, ValueLocation};
use cembra_record::Outline;
use cembra_runtime::{ColumnForm, LineKind, Listing};
use cembra_value::{Budget, Limit};
use cranelift_codegen::binemit::Reloc;
use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{self, AbiParam, ExternalName, UserFuncName, types};
use cranelift_codegen::isa::TargetIsa;
use cranelift_codegen::{CompiledCode, FinalizedRelocTarget};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use std::cell::RefCell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The most stack that an evaluation of a plan may take, in bytes: the sum over the plan's functions that are active at
/// the same time.
pub const STACK_BYTES: usize = 256 << 10;

/// The stack that a call takes besides the function's frame, in bytes: the return address and the caller's frame pointer.
const CALL_STACK: usize = 16;

/// The alignment of each function in the machine code, and of the whole code, in bytes.
pub(crate) const ALIGNMENT: usize = 16;

/// The bytes between functions: on x86-64 an instruction that traps.
const PADDING: u8 = 0xCC;

/// The largest capacity, in values of a plan, with which a thread keeps its workspace for the next compilation. A
/// larger workspace is freed.
const MOST_KEPT: usize = 1 << 12;

/// The machine code of a plan, and the stack that it needs.
#[derive(Debug)]
pub(crate) struct Code {
    /// The machine code's bytes. They start with the entry function, of type `RawFunction`.
    pub(crate) bytes: Vec<u8>,
    /// The most stack that the machine code takes, in bytes, not counting the external functions that it calls.
    pub(crate) stack: usize,
}

/// The listings of a plan's compilation, which `explain` shows: the functions in Cranelift's form, and the machine code.
#[derive(Clone, Debug, Default)]
pub struct Listings {
    /// The plan's functions in Cranelift's textual form (CLIF), as passed to the code generator. Each line has its origins: the indices of the plan's
    /// steps that it was made for.
    pub clif: Listing,
    /// The machine code as text, printed by the code generator.
    pub vcode: String,
    /// The bytes of the plan's machine code.
    pub code: Vec<u8>,
    /// The ranges of bytes in the machine code that belong to single steps of the plan, in ascending order, each with its step. Bytes outside of
    /// these ranges belong to a function as a whole, not to a step.
    pub steps: Vec<(Range<usize>, StepId)>,
}

/// Memory for compiling, reused from one plan to the next.
struct Scratch {
    context: cranelift_codegen::Context,
    builder: FunctionBuilderContext,
    workspace: Workspace,
}

impl Scratch {
    fn new() -> Self {
        Scratch {
            context: cranelift_codegen::Context::new(),
            builder: FunctionBuilderContext::new(),
            workspace: Workspace::default(),
        }
    }
}

thread_local! {
    /// The scratch memory of the thread's last compilation. `None` during a compilation, and when the thread is ending.
    static SCRATCH: RefCell<Option<Box<Scratch>>> = const { RefCell::new(None) };
}

/// Generates the machine code of a plan with `codegen`. If `listings` are given, adds the plan's listings to them.
///
/// # Errors
/// If a limit is exceeded, or the code generator fails.
pub(crate) fn generate(
    plan: &Plan,
    binding: &Binding,
    tier: Tier,
    codegen: &Codegen,
    budget: &Budget,
    listings: Option<&mut Listings>,
) -> Result<Code, Error> {
    let outline = Outline::of(plan, binding, codegen.optimising.is_some(), budget)?;
    of_outline(&outline, tier, codegen, budget, listings, None)
}

/// Generates the machine code of a plan as a loop over the rows of columns. `columns` are the memory layouts of these
/// columns: first of the columns for the plan's inputs, then of those for its outputs. `None` if the plan is split into
/// several functions.
///
/// # Errors
/// The errors of `generate`.
pub(crate) fn generate_rows(
    plan: &Plan,
    columns: &[ColumnForm],
    tier: Tier,
    codegen: &Codegen,
    budget: &Budget,
) -> Result<Option<Code>, Error> {
    // The offsets are not used, because the values are in columns.
    let elsewhere = |base, count| vec![ValueLocation { base, offset: 0 }; count];
    let binding = Binding {
        inputs: elsewhere(Base::Input, plan.inputs().len()),
        outputs: elsewhere(Base::Output, plan.outputs().len()),
    };
    let outline = Outline::of(plan, &binding, codegen.optimising.is_some(), budget)?;
    if !outline.pieces.is_whole() {
        return Ok(None);
    }
    of_outline(&outline, tier, codegen, budget, None, Some(columns)).map(Some)
}

fn of_outline(
    outline: &Outline<'_>,
    tier: Tier,
    codegen: &Codegen,
    budget: &Budget,
    listings: Option<&mut Listings>,
    columns: Option<&[ColumnForm]>,
) -> Result<Code, Error> {
    let kept = SCRATCH.try_with(RefCell::take).unwrap_or_default();
    let mut scratch = kept.unwrap_or_else(|| Box::new(Scratch::new()));
    // The code generator may panic on input that it does not support; then its state is dropped.
    let made = catch_unwind(AssertUnwindSafe(|| all(&mut scratch, outline, tier, codegen, budget, listings, columns)));
    let made = made.map_err(|_| generator("the code generator failed on the model"))?;
    if scratch.workspace.capacity() > MOST_KEPT {
        scratch.workspace = Workspace::default();
    }
    // This fails if the thread is ending; then nothing is stored.
    let _ = SCRATCH.try_with(|place| place.replace(Some(scratch)));
    made
}

fn generator(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::CodeGenerator, message)
}

/// A compiled function: its offset in the machine code, and the stack that it takes, both in bytes.
struct FunctionPlacement {
    start: usize,
    stack: usize,
}

/// A call from one function of the plan (with the index `from`) to another (with the index `to`). The distance between
/// them is filled in when the offsets of all functions are known.
struct Call {
    from: usize,
    /// The offset of the four bytes for the distance, in the calling function's code.
    at: usize,
    to: usize,
    addend: i64,
}

fn all(
    scratch: &mut Scratch,
    outline: &Outline<'_>,
    tier: Tier,
    codegen: &Codegen,
    budget: &Budget,
    mut listings: Option<&mut Listings>,
    columns: Option<&[ColumnForm]>,
) -> Result<Code, Error> {
    let (limits, isa) = (budget.limits(), &codegen.fast);
    let mut bytes = Vec::new();
    let (mut placed, mut calls) = (Vec::new(), Vec::new());
    // On processors without fused multiply-add, mathematical functions are called in any tier.
    let inlined = tier == Tier::Optimised && isa.has_native_fma() && outline.pieces.inlines();
    scratch.workspace.reset(outline.plan, inlined);
    for number in 0..outline.pieces.list().len() {
        budget.check_time()?;
        scratch.context.clear();
        scratch.context.set_disasm(listings.is_some());
        let func = &mut scratch.context.func;
        func.name = UserFuncName::user(0, number as u32);
        func.signature = signature(&**isa);
        let mut builder = FunctionBuilder::new(func, &mut scratch.builder);
        let marks_steps = listings.is_some();
        let improvable = translate(&mut builder, &**isa, outline, number, &mut scratch.workspace, marks_steps, columns);
        builder.finalize(isa.frontend_config());
        if let Some(listings) = &mut listings {
            list_function(&mut listings.clif, &scratch.context.func);
        }
        let refused = |inner| generator(format!("the code generator refused the model: {inner}"));
        let isa = codegen.optimising.as_ref().filter(|_| improvable).unwrap_or(isa);
        scratch.context.compile(&**isa, &mut ControlPlane::default()).map_err(|e| refused(e.inner))?;
        let code = scratch.context.compiled_code().ok_or_else(|| generator("the code generator made no code"))?;
        check_alignment(code)?;
        let start = bytes.len().next_multiple_of(ALIGNMENT);
        bytes.resize(start, PADDING);
        if let Some(listings) = &mut listings {
            listings.vcode.push_str(code.vcode.as_deref().unwrap_or_default());
            listings.steps.extend(marked_steps(code, start));
        }
        bytes.extend_from_slice(code.code_buffer());
        if bytes.len() > limits.code_bytes {
            return Err(limits.exceeded(Limit::CodeBytes).into());
        }
        placed.push(FunctionPlacement { start, stack: stack(code) });
        note_calls(code, &scratch.context.func, number, &mut calls)?;
    }
    budget.check_time()?;
    for call in &calls {
        fill_in(&mut bytes, &placed, call)?;
    }
    let stack = deepest(&placed, &calls);
    check_stack(stack)?;
    if let Some(listings) = listings {
        listings.code.clone_from(&bytes);
    }
    Ok(Code { bytes, stack })
}

/// Checks a separately compiled function. Fails if its code needs relocations or a larger alignment, or exceeds the limit
/// for code or for stack.
pub(crate) fn check_alone(code: &CompiledCode, budget: &Budget) -> Result<(), Error> {
    let limits = budget.limits();
    if !code.buffer.relocs().is_empty() {
        return Err(generator("the machine code has relocations, which are not supported here"));
    }
    if code.code_buffer().len() > limits.code_bytes {
        return Err(limits.exceeded(Limit::CodeBytes).into());
    }
    check_alignment(code)?;
    check_stack(stack(code))
}

fn check_alignment(code: &CompiledCode) -> Result<(), Error> {
    if code.buffer.alignment as usize > ALIGNMENT {
        return Err(generator("the machine code needs a larger alignment than is supported"));
    }
    Ok(())
}

fn check_stack(stack: usize) -> Result<(), Error> {
    if stack > STACK_BYTES {
        let message = format!("the model needs {stack} bytes of stack; the limit for native code is {STACK_BYTES}");
        return Err(Error::new(ErrorKind::Stack, message));
    }
    Ok(())
}

/// Returns the stack that a function takes, in bytes, without the functions that it calls.
fn stack(code: &CompiledCode) -> usize {
    code.buffer.frame_layout().map_or(0, |frame| frame.frame_to_fp_offset as usize) + CALL_STACK
}

/// Returns the signature of compiled plans, as a value of the code generator. The Rust type `RawFunction` has the same
/// signature.
pub(crate) fn signature(isa: &dyn TargetIsa) -> ir::Signature {
    let mut signature = ir::Signature::new(isa.default_call_conv());
    signature.params.extend([AbiParam::new(types::I64); 4]);
    // Where registers are wider, the calling convention requires that the whole register is defined.
    signature.returns.push(AbiParam::new(types::I32).sext());
    signature
}

/// Appends the lines of a function in Cranelift's textual form. An instruction with a source location begins with it, as in `@001f`: see
/// [`FunctionState::mark`](crate::emit::FunctionState::mark).
fn list_function(listing: &mut Listing, func: &ir::Function) {
    for line in func.display().to_string().lines() {
        let location = line.trim_start().strip_prefix('@').and_then(|rest| rest.split_once(' '));
        let step = location.and_then(|(digits, _)| u32::from_str_radix(digits, 16).ok());
        listing.push(LineKind::Code, step, line);
    }
}

/// Returns the byte ranges in a function's code that belong to a step. `start` is the function's offset.
fn marked_steps(code: &CompiledCode, start: usize) -> impl Iterator<Item = (Range<usize>, StepId)> {
    let marked = code.buffer.get_srclocs_sorted().iter().filter(|range| !range.loc.is_default());
    marked.map(move |range| {
        let bytes = start + range.start as usize..start + range.end as usize;
        (bytes, StepId::from_index(range.loc.bits() as usize))
    })
}

/// Records the calls from a function to other functions of the plan. Fails if the code refers to any other address,
/// because the code could then not be moved.
fn note_calls(code: &CompiledCode, func: &ir::Function, from: usize, calls: &mut Vec<Call>) -> Result<(), Error> {
    for reloc in code.buffer.relocs() {
        let callee = match (&reloc.target, reloc.kind) {
            (FinalizedRelocTarget::ExternalName(ExternalName::User(name)), Reloc::X86CallPCRel4) => {
                func.params.user_named_funcs().get(*name)
            }
            _ => None,
        };
        let callee =
            callee.ok_or_else(|| generator("the machine code has relocations, which are not supported here"))?;
        calls.push(Call { from, at: reloc.offset as usize, to: callee.index as usize, addend: reloc.addend });
    }
    Ok(())
}

/// Writes the distance to a called function: four bytes, relative to their own position and corrected by the addend of the
/// relocation.
fn fill_in(bytes: &mut [u8], placed: &[FunctionPlacement], call: &Call) -> Result<(), Error> {
    let at = placed[call.from].start + call.at;
    let distance = placed[call.to].start as i64 - at as i64 + call.addend;
    let distance = i32::try_from(distance)
        .map_err(|_| generator("the machine code is too large: a call does not reach its function"))?;
    bytes[at..at + 4].copy_from_slice(&distance.to_le_bytes());
    Ok(())
}

/// Returns the most stack that a sequence of nested calls takes, in bytes. In `placed`, a function must come before the
/// functions that it calls.
fn deepest(placed: &[FunctionPlacement], calls: &[Call]) -> usize {
    let mut below = vec![0; placed.len()];
    for call in calls.iter().rev() {
        below[call.from] = below[call.from].max(below[call.to] + placed[call.to].stack);
    }
    placed.first().map_or(0, |entry| entry.stack + below[0])
}
