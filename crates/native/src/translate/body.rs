//! The body of a function that is being built: its instructions so far, the memory that it receives, and the machine values
//! that hold the plan's values. Values stay in registers. Memory is used only for inputs, outputs, string literals, and
//! values that are passed from one of the plan's functions to another.

use super::columns::Row;
use crate::emit::{EmittedValue, FunctionState, Memory, memory, region};
use cembra_plan::{Base, Plan, ValueId, ValueLocation};
use cembra_record::{Datum, MachineValue, Outline, Presence, ScopedValueMap, Values};
use cembra_runtime::{MachineType, QType, Scalar};
use cembra_value::Value;
use cranelift_codegen::ir::{self, AliasRegion, InstBuilder, types};
use cranelift_codegen::isa::TargetIsa;
use cranelift_frontend::FunctionBuilder;

/// The memory that a function of a plan receives: the caller's input, the caller's output, and the frame. They do not
/// overlap.
#[derive(Clone, Copy)]
pub(super) struct Memories {
    /// The addresses of input, output and frame, in this order.
    pub(super) addresses: [ir::Value; 3],
    pub(super) regions: [AliasRegion; 3],
}

impl Memories {
    /// Returns the memory location of `place`, marked as not written during the call.
    fn at(&self, place: ValueLocation) -> Memory {
        let which = match place.base {
            Base::Input => 0,
            Base::Output => 1,
            Base::Frame => 2,
        };
        Memory {
            base: self.addresses[which],
            offset: place.offset,
            region: self.regions[which],
            constant: true,
            aligned: true,
        }
    }

    /// Returns the address of the frame, the memory for the plan's values.
    pub(super) fn frame(&self) -> ir::Value {
        self.addresses[2]
    }
}

/// The body of a function that is being built: its builder, the memory that it receives, and the machine values that hold the plan's values.
pub(super) struct Body<'a, 'b, 'f> {
    pub(super) outline: &'a Outline<'a>,
    pub(super) builder: &'a mut FunctionBuilder<'b>,
    pub(super) state: FunctionState<'f>,
    pub(super) memories: Memories,
    /// The machine values that hold the plan's values. A value that a branch computed or loaded is removed after the branch.
    pub(super) held: &'a mut ScopedValueMap<EmittedValue>,
    /// The current row, if inputs and outputs are columns; else `None`.
    pub(super) row: Option<Row<'a>>,
    /// The alias region of all columns; `None` before the first access to a column. Accesses to columns do not overlap
    /// accesses to other regions.
    columns: Option<AliasRegion>,
    /// True if the branch that ends needs no jump to its join block, because a conditional at the end of the branch has
    /// jumped there already.
    pub(super) has_joined: bool,
}

impl<'a, 'b, 'f> Body<'a, 'b, 'f> {
    /// Begins a body, with an empty entry block. The function's parameters are input, output, frame and context.
    pub(super) fn new(
        outline: &'a Outline<'a>,
        builder: &'a mut FunctionBuilder<'b>,
        isa: &'f dyn TargetIsa,
        held: &'a mut ScopedValueMap<EmittedValue>,
        marks_steps: bool,
    ) -> Self {
        let entry = builder.create_block();
        builder.append_block_params_for_function_params(entry);
        builder.switch_to_block(entry);
        builder.seal_block(entry);
        let [input, output, frame, context] = [0, 1, 2, 3].map(|at| builder.block_params(entry)[at]);
        let regions = [(0, "input"), (1, "output"), (2, "frame")].map(|(number, name)| region(builder, number, name));
        let memories = Memories { addresses: [input, output, frame], regions };
        let state = FunctionState::new(builder, isa, context, marks_steps);
        Body { outline, builder, state, memories, held, row: None, columns: None, has_joined: false }
    }

    /// Returns the alias region (class of memory accesses) for accesses to columns.
    pub(super) fn columns(&mut self) -> AliasRegion {
        *self.columns.get_or_insert_with(|| region(self.builder, 4, "columns"))
    }

    pub(super) fn plan(&self) -> &'a Plan {
        self.outline.plan
    }

    pub(super) fn memory(&self, place: ValueLocation) -> Memory {
        self.memories.at(place)
    }

    /// Returns the machine values that hold `value`. A literal is emitted at each use. A value that the caller or another function of the plan
    /// computed is loaded at its first use.
    pub(super) fn value(&mut self, value: ValueId) -> EmittedValue {
        if let Some(held) = self.held.get(value) {
            return held.clone();
        }
        let (outline, plan) = (self.outline, self.plan());
        if let Some(at) = outline.locations.literal(value) {
            return self.literal(&plan.literals()[at].1, plan.place(value));
        }
        let from = self.source(value);
        let loaded = memory::load(self.builder, &plan.value(value).qtype, from);
        self.held.set(value, loaded.clone());
        loaded
    }

    /// Returns the memory location from which `value` is loaded. The value must not have machine values, and must not
    /// be a literal.
    fn source(&self, value: ValueId) -> Memory {
        let (outline, plan) = (self.outline, self.plan());
        let (place, constant) = outline.locations.place(plan, outline.binding, value);
        debug_assert!(
            self.row.is_none() || place.base == Base::Frame,
            "inputs from columns must be loaded where the row begins"
        );
        debug_assert!(constant || outline.locations.lies_in_slot(value), "{value:?} is used before it is computed");
        Memory { constant, ..self.memory(place) }
    }

    /// Copies a value to a location. A value that is in memory only is copied field by field.
    fn put(&mut self, value: ValueId, place: ValueLocation) {
        let is_in_memory = self.held.get(value).is_none() && self.outline.locations.literal(value).is_none();
        if is_in_memory {
            let (from, to) = (self.source(value), self.memory(place));
            memory::copy(self.builder, &self.outline.plan.value(value).qtype, from, to);
        } else {
            let held = self.value(value);
            self.store(value, &held, place);
        }
    }

    /// Writes a tuple to its memory slot, field by field, without machine values for the whole tuple.
    pub(super) fn make_in_slot(&mut self, tuple: ValueId, fields: &[ValueId]) {
        let (outline, slot) = (self.outline, self.plan().place(tuple));
        for (field, inside) in fields.iter().zip(outline.plan.value(tuple).qtype.field_offsets()) {
            self.put(*field, ValueLocation { offset: slot.offset + inside, ..slot });
        }
    }

    /// Records the machine values that hold `value`. Stores them to the memory slot of `value` if other code loads it from there.
    pub(super) fn made(&mut self, value: ValueId, made: EmittedValue) {
        if self.outline.locations.is_stored(value) {
            self.store(value, &made, self.plan().place(value));
        }
        self.made_in_slot(value, made);
    }

    /// Records the machine values that hold `value`. They need not be stored: the memory slot of `value` has the value already, or no other code
    /// loads it.
    pub(super) fn made_in_slot(&mut self, value: ValueId, made: EmittedValue) {
        if !self.outline.locations.is_in_slot_only(value) {
            self.held.set(value, made);
        }
    }

    /// Emits the store of `value`, whose machine values are `held`, to the location `place`.
    pub(super) fn store(&mut self, value: ValueId, held: &EmittedValue, place: ValueLocation) {
        let to = self.memory(place);
        memory::store(self.builder, &self.outline.plan.value(value).qtype, held, to);
    }

    /// Emits the store of the output at index `at` to its location.
    pub(super) fn output(&mut self, at: usize) {
        let (outline, plan) = (self.outline, self.plan());
        let (value, place) = (plan.outputs()[at].value, outline.binding.outputs[at]);
        if self.row.is_some() {
            let held = self.value(value);
            // The columns of outputs come after the columns of inputs.
            let column = plan.inputs().len() + at;
            if let Some(row) = &mut self.row {
                row.store(self.builder, column, &plan.value(value).qtype, &held);
            }
            return;
        }
        let lies_there = place == plan.place(value) && outline.locations.lies_in_slot(value);
        if !lies_there || self.held.get(value).is_some() {
            self.put(value, place);
        }
    }

    fn literal(&mut self, literal: &Value, place: ValueLocation) -> EmittedValue {
        let qtype = literal.qtype();
        match literal {
            Value::Scalar(v) | Value::Present(v) => {
                let (bits, ins) = (v.bits(), self.builder.ins());
                MachineValue::present(match v.scalar().machine_type() {
                    Some(MachineType::Flag) => Datum::Flag(ins.iconst(types::I8, bits.cast_signed())),
                    Some(MachineType::I32) => Datum::Num(ins.iconst(types::I32, bits.cast_signed())),
                    Some(MachineType::I64) => Datum::Num(ins.iconst(types::I64, bits.cast_signed())),
                    Some(MachineType::F32) => Datum::Num(ins.f32const(f32::from_bits(bits as u32))),
                    Some(MachineType::F64) => Datum::Num(ins.f64const(f64::from_bits(bits))),
                    None if v.scalar() == Scalar::Unit => Datum::Nothing,
                    // The frame's template has the address and length of the text. Code that contains an address could
                    // not be moved.
                    None => {
                        let inside = qtype.optional_value_offset().unwrap_or(0);
                        let from = self.memory(ValueLocation { offset: place.offset + inside, ..place });
                        memory::load(self.builder, &QType::TEXT, from).datum
                    }
                })
            }
            Value::Missing(_) => MachineValue { presence: Presence::Missing, datum: Datum::Nothing },
            Value::Tuple(fields) => {
                let fields = fields
                    .iter()
                    .zip(qtype.field_offsets())
                    .map(|(field, inside)| {
                        self.literal(field, ValueLocation { offset: place.offset + inside, ..place })
                    })
                    .collect();
                MachineValue::present(Datum::Tuple(fields))
            }
            Value::Shape(_)
            | Value::Array(..)
            | Value::ArrayShape(..)
            | Value::Edge(_)
            | Value::Dict(_)
            | Value::Type(_)
            | Value::Nothing
            | Value::Unspecified
            | Value::Tensor(_) => MachineValue::present(Datum::Nothing),
        }
    }
}

impl Values<ir::Value> for Body<'_, '_, '_> {
    fn held(&self, value: ValueId) -> Option<&EmittedValue> {
        self.held.get(value)
    }

    fn bring(&mut self, value: ValueId) -> EmittedValue {
        self.value(value)
    }
}
