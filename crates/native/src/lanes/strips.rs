//! The loop over rows: it takes them in strips of as many as there are lanes, plays the tape on each strip, and stores its
//! results once it is known that no lane of it fails. What is left after the last whole strip is for another loop.

use super::player::Player as LanePlayer;
use super::rows::Rows;
use super::vectors::{Vectors, Width};
use super::{Lanes, Progress};
use crate::emit::FunctionState;
use crate::scalar;
use cembra_runtime::{MachineType, STATUS_OK};
use cembra_tape::{Output, Tape};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, AbiParam, InstBuilder, MemFlagsData, types};
use cranelift_codegen::isa::TargetIsa;
use cranelift_frontend::FunctionBuilder;
use std::mem::offset_of;

/// Where `Progress` has the row to begin with.
const NEXT: i32 = offset_of!(Progress, next) as i32;

/// And the one to end before.
const END: i32 = offset_of!(Progress, end) as i32;

/// Builds a function of the type `Loop`.
pub(super) fn build(builder: &mut FunctionBuilder<'_>, isa: &dyn TargetIsa, tape: &Tape, lanes: Lanes) {
    let flags = MemFlagsData::trusted();
    let signature = &mut builder.func.signature;
    signature.call_conv = isa.default_call_conv();
    signature.params.extend([AbiParam::new(types::I64); 4]);
    signature.returns.push(AbiParam::new(types::I32));
    let [entry, start, strip, done] = [(); 4].map(|()| builder.create_block());

    builder.append_block_params_for_function_params(entry);
    builder.switch_to_block(entry);
    builder.seal_block(entry);
    let [inputs, results, progress, context] = [0, 1, 2, 3].map(|at| builder.block_params(entry)[at]);
    let first = builder.ins().load(types::I64, flags, progress, NEXT);
    let end = builder.ins().load(types::I64, flags, progress, END);
    let mut arrays = |list: ir::Value, count: usize| -> Vec<ir::Value> {
        (0..count).map(|number| builder.ins().load(types::I64, flags, list, 8 * number as i32)).collect()
    };
    let inputs = arrays(inputs, tape.inputs().len());
    let results = arrays(results, tape.outputs().len());
    let row = builder.append_block_param(start, types::I64);
    builder.ins().jump(start, &[first.into()]);

    builder.switch_to_block(start);
    let step = builder.ins().iconst(types::I64, lanes.count() as i64);
    let next = builder.ins().iadd(row, step);
    let fits = builder.ins().icmp(IntCC::UnsignedLessThanOrEqual, next, end);
    builder.ins().brif(fits, strip, &[], done, &[]);
    builder.seal_block(strip);

    builder.switch_to_block(strip);
    let state = FunctionState::new(builder, isa, context, false);
    let strip = Strip { tape, lanes, row, inputs, results };
    match lanes {
        Lanes::One => strip.one_row(builder, state),
        Lanes::Two | Lanes::Four => strip.rows(builder, state, done),
    }
    builder.ins().store(flags, next, progress, NEXT);
    builder.ins().jump(start, &[next.into()]);
    builder.seal_block(start);
    builder.seal_block(done);

    builder.switch_to_block(done);
    let status = builder.ins().iconst(types::I32, i64::from(STATUS_OK));
    builder.ins().return_(&[status]);
}

/// The rows from `row` on.
struct Strip<'a> {
    tape: &'a Tape,
    lanes: Lanes,
    row: ir::Value,
    /// The array of each input of the tape.
    inputs: Vec<ir::Value>,
    /// The array of each output.
    results: Vec<ir::Value>,
}

impl Strip<'_> {
    fn at(&self, array: ir::Value) -> Rows {
        Rows { array, first: self.row }
    }

    /// The inputs, each with its type.
    fn inputs(&self) -> impl Iterator<Item = (Rows, MachineType)> {
        self.inputs.iter().map(|array| self.at(*array)).zip(self.tape.inputs().map(|(_, ty)| ty))
    }

    /// The outputs, each with where it goes.
    fn outputs(&self) -> impl Iterator<Item = (Rows, Output)> {
        self.results.iter().map(|array| self.at(*array)).zip(self.tape.outputs().iter().copied())
    }

    /// One row, whose fault leaves the function at once.
    fn one_row(&self, builder: &mut FunctionBuilder<'_>, mut state: FunctionState<'_>) {
        let inputs: Vec<ir::Value> = self.inputs().map(|(rows, ty)| rows.load_one(builder, ty)).collect();
        let mut values = Vec::new();
        scalar::play(builder, &mut state, self.tape, &inputs, &mut values);
        for (rows, output) in self.outputs() {
            if let Some(value) = values[output.index()] {
                rows.store_one(builder, value);
            }
        }
    }

    /// A row in each lane; goes to `failed` if one of them fails.
    fn rows(&self, builder: &mut FunctionBuilder<'_>, mut state: FunctionState<'_>, failed: ir::Block) {
        let load = |(rows, ty): (Rows, MachineType)| match ty {
            MachineType::Flag => rows.load_mask(builder, self.lanes),
            _ => rows.load(builder, self.lanes, ty),
        };
        let inputs: Vec<Vectors> = self.inputs().map(load).collect();
        let mut player = LanePlayer::play(builder, &mut state, self.tape, self.lanes, inputs);
        if let Some(any) = player.any_failed() {
            let builder = &mut *player.builder;
            let stores = builder.create_block();
            builder.ins().brif(any, failed, &[], stores, &[]);
            builder.seal_block(stores);
            builder.switch_to_block(stores);
        }
        for (rows, output) in self.outputs() {
            match output {
                Output::Number(val) => {
                    let numbers = player.numbers(val);
                    rows.store(player.builder, self.lanes, self.tape.ty(val), &numbers);
                }
                Output::Mask(mask) => {
                    let mask = player.mask(mask, Width::Single);
                    rows.store_mask(player.builder, self.lanes, &mask);
                }
            }
        }
    }
}
