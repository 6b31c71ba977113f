//! The state of a function that is being built, besides its instructions: its environment, the signatures that it imports once for all calls, and
//! facts that are used after the function is built.

use super::memory::clif_type;
use cembra_runtime::{Context, FaultKind, RuntimeFn, STATUS_FAULT};
use cranelift_codegen::ir::{
    self, AbiParam, AliasRegion, AliasRegionData, InstBuilder, MemFlagsData, SigRef, SourceLoc, StackSlot,
    StackSlotData, StackSlotKind, types,
};
use cranelift_codegen::isa::{CallConv, TargetIsa};
use cranelift_frontend::FunctionBuilder;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The fixed surroundings of a function that is being built: the target, and the evaluation's context.
#[derive(Clone, Copy)]
pub(crate) struct Environment<'a> {
    pub(crate) isa: &'a dyn TargetIsa,
    /// The address of the evaluation's context, as a value in the function.
    pub(crate) context: ir::Value,
    pub(crate) context_region: AliasRegion,
    /// True if each instruction is marked with the step that it belongs to. Marking takes time, and only listings need it.
    pub(crate) marks_steps: bool,
}

/// The signatures of called functions, each imported into the function once.
#[derive(Default)]
struct Imports {
    signatures: FxHashMap<RuntimeFn, SigRef>,
    preserving: Option<Preserving>,
}

/// The imports for calls that preserve all registers.
#[derive(Clone, Copy)]
struct Preserving {
    signature: SigRef,
    /// The stack slot through which calls that preserve all registers get their operands and return their result.
    words: StackSlot,
}

/// Facts about a function that are found while it is built and used when it is completed: the replaced loads, and whether optimisation is worthwhile.
#[derive(Default)]
pub(crate) struct Findings {
    /// Loads in the function that were replaced by other loads.
    pub(crate) replaced: Vec<ir::Inst>,
    /// True if the function contains something that gains from the code generator's optimisation.
    pub(crate) is_improvable: bool,
}

/// The state of a function that is being built, besides its instructions: its environment, its imported signatures and its findings.
pub(crate) struct FunctionState<'a> {
    pub(crate) environment: Environment<'a>,
    imports: Imports,
    pub(crate) findings: Findings,
}

impl<'a> FunctionState<'a> {
    /// Returns the state for a function that has no instructions yet.
    pub(crate) fn new(
        builder: &mut FunctionBuilder<'_>,
        isa: &'a dyn TargetIsa,
        context: ir::Value,
        marks_steps: bool,
    ) -> Self {
        let context_region = region(builder, 3, "context");
        FunctionState {
            environment: Environment { isa, context, context_region, marks_steps },
            imports: Imports::default(),
            findings: Findings::default(),
        }
    }

    /// Returns the memory flags for accesses to fields of the context that may change during a call.
    pub(crate) fn context_flags(&self) -> MemFlagsData {
        MemFlagsData::trusted().with_alias_region(Some(self.environment.context_region))
    }

    /// Marks the instructions that follow as belonging to a `step` of the plan; `None` marks them as belonging to the
    /// function as a whole.
    pub(crate) fn mark(&self, builder: &mut FunctionBuilder<'_>, step: Option<u32>) {
        if self.environment.marks_steps {
            builder.set_srcloc(step.map_or_else(SourceLoc::default, SourceLoc::new));
        }
    }

    /// Emits a return from the function with a fault of `kind`. The code stores `kind`, `site` and the bits of `operands` to the fault record in the
    /// evaluation's context.
    pub(crate) fn fail(&self, builder: &mut FunctionBuilder<'_>, kind: FaultKind, operands: [ir::Value; 2], site: u32) {
        let (flags, context) = (self.context_flags(), self.environment.context);
        for (value, offset) in [(site, Context::FAULT_SITE_OFFSET), (kind as u32, Context::FAULT_KIND_OFFSET)] {
            let value = builder.ins().iconst(types::I32, i64::from(value));
            builder.ins().store(flags, value, context, offset);
        }
        for (at, bits) in operands.into_iter().enumerate() {
            builder.ins().store(flags, bits, context, Context::FAULT_OPERANDS_OFFSET + 8 * at as i32);
        }
        let status = builder.ins().iconst(types::I32, i64::from(STATUS_FAULT));
        builder.ins().return_(&[status]);
    }

    /// Emits a call of a runtime function through the context's table.
    pub(crate) fn call(
        &mut self,
        builder: &mut FunctionBuilder<'_>,
        function: RuntimeFn,
        args: &[ir::Value],
    ) -> ir::Value {
        let isa = self.environment.isa;
        let signature = *self.imports.signatures.entry(function).or_insert_with(|| {
            let mut signature = ir::Signature::new(isa.default_call_conv());
            let (params, ret) = function.signature();
            signature.params.extend(function.takes_context().then_some(AbiParam::new(types::I64)));
            signature.params.extend(params.iter().map(|ty| AbiParam::new(clif_type(*ty))));
            signature.returns.push(AbiParam::new(clif_type(ret)));
            builder.import_signature(signature)
        });
        let [entry] = self.addresses(builder, [function as usize]);
        let context = function.takes_context().then_some(self.environment.context);
        let args: SmallVec<[ir::Value; 6]> = context.into_iter().chain(args.iter().copied()).collect();
        let call = builder.ins().call_indirect(signature, entry, &args);
        builder.inst_results(call)[0]
    }

    /// Emits a call of a runtime function on floats. The call preserves all registers, so the operands and the result are passed in memory.
    pub(crate) fn call_preserving(
        &mut self,
        builder: &mut FunctionBuilder<'_>,
        function: RuntimeFn,
        args: &[ir::Value],
    ) -> ir::Value {
        let preserving = *self.imports.preserving.get_or_insert_with(|| {
            let mut signature = ir::Signature::new(CallConv::PreserveAll);
            signature.params.extend([AbiParam::new(types::I64); 2]);
            let words = StackSlotData::new(StackSlotKind::ExplicitSlot, 16, 3);
            Preserving { signature: builder.import_signature(signature), words: builder.create_sized_stack_slot(words) }
        });
        for (at, arg) in args.iter().enumerate() {
            builder.ins().stack_store(types::I64, *arg, preserving.words, 8 * at as i32);
        }
        let [entry, caller] = self.addresses(builder, [function as usize, RuntimeFn::CALL_PRESERVING]);
        let words = builder.ins().stack_addr(types::I64, preserving.words, 0);
        builder.ins().call_indirect(preserving.signature, caller, &[entry, words]);
        builder.ins().stack_load(types::I64, clif_type(function.signature().1), preserving.words, 0)
    }

    /// Loads the addresses of runtime functions from the context's table. `positions` are their indices in the table.
    fn addresses<const N: usize>(&self, builder: &mut FunctionBuilder<'_>, positions: [usize; N]) -> [ir::Value; N] {
        let flags = MemFlagsData::trusted().with_readonly().with_can_move();
        let table = builder.ins().load(types::I64, flags, self.environment.context, Context::FUNCTIONS_OFFSET);
        positions.map(|at| builder.ins().load(types::I64, flags, table, 8 * at as i32))
    }
}

/// Makes an alias region: a class of memory accesses that do not overlap those of any other region.
pub(crate) fn region(builder: &mut FunctionBuilder<'_>, number: u32, name: &'static str) -> AliasRegion {
    builder.func.dfg.alias_regions.insert(AliasRegionData { user_id: number, description: name.into() })
}
