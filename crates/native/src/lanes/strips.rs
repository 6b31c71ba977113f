//! The loop over rows in vector code. It takes as many rows at a time as there are lanes (a strip), runs the tape on them, and stores the results
//! once no lane has failed. The rows after the last full strip are computed one by one.

use super::Lanes;
use super::player::VectorEmitter as LanePlayer;
use super::ports::{self, Rows};
use super::vectors::Vectors;
use crate::emit::FunctionState;
use crate::scalar;
use cembra_runtime::{MachineType, STATUS_FAULT, STATUS_OK};
use cembra_tape::{Output, Port, Tape};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, AbiParam, BlockArg, InstBuilder, MemFlagsData, types};
use cranelift_codegen::isa::TargetIsa;
use cranelift_frontend::FunctionBuilder;

/// The number of rows whose bits of an output are stored at once, as one 64-bit word.
const WORD_ROWS: i64 = 64;

/// An input of the tape: an array of rows, or the loaded element that all rows share.
enum Input {
    Rows(ir::Value),
    Shared(ir::Value),
}

/// The loop over rows that is being built: its tape, its arrays, the number of rows, and the block for failures.
struct StripLoop<'a> {
    tape: &'a Tape,
    inputs: Vec<(Input, MachineType)>,
    /// The outputs of the tape, each with the port (the layout) and the address of its array.
    outputs: Vec<(Output, Port, ir::Value)>,
    rows: ir::Value,
    failed: ir::Block,
}

/// The state of the loop before a strip (as many rows as there are lanes): the strip's first row, and per mask output
/// the word in which its bits are collected.
struct StripState {
    row: ir::Value,
    words: Vec<ir::Value>,
}

/// Builds a function of the type `Loop`, which runs `tape` on all rows.
pub(super) fn build(
    builder: &mut FunctionBuilder<'_>,
    isa: &dyn TargetIsa,
    tape: &Tape,
    [inputs, outputs]: [&[Port]; 2],
    lanes: Lanes,
) {
    let flags = MemFlagsData::trusted();
    let signature = &mut builder.func.signature;
    signature.call_conv = isa.default_call_conv();
    signature.params.extend([AbiParam::new(types::I64); 3]);
    signature.returns.push(AbiParam::new(types::I32));
    let [entry, failed] = [(); 2].map(|()| builder.create_block());
    builder.append_block_params_for_function_params(entry);
    builder.switch_to_block(entry);
    builder.seal_block(entry);
    builder.set_cold_block(failed);
    let [list, rows, context] = [0, 1, 2].map(|at| builder.block_params(entry)[at]);
    let mut state = FunctionState::new(builder, isa, context, false);

    let mut offsets = (0..).step_by(8);
    let mut array = |builder: &mut FunctionBuilder<'_>| {
        let offset = offsets.next().unwrap_or_default();
        builder.ins().load(types::I64, flags, list, offset)
    };
    let inputs = tape.inputs().zip(inputs).map(|((_, ty), port)| {
        let array = array(builder);
        let input = match port {
            Port::Rows => Input::Rows(array),
            // Inputs have no chains.
            Port::Shared | Port::Chains => Input::Shared(ports::load_shared(builder, array, ty)),
        };
        (input, ty)
    });
    let inputs = inputs.collect();
    let ports = outputs.iter().copied().chain(std::iter::repeat(Port::Rows));
    let outputs = tape.outputs().iter().zip(ports).map(|(output, port)| (*output, port, array(builder))).collect();
    let strips = StripLoop { tape, inputs, outputs, rows, failed };
    let zero = builder.ins().iconst(types::I64, 0);
    let mut at = StripState { row: zero, words: vec![zero; strips.masks().count()] };
    for lanes in (lanes != Lanes::One).then_some(lanes).into_iter().chain([Lanes::One]) {
        at = strips.all(builder, &mut state, lanes, at);
    }
    let status = |builder: &mut FunctionBuilder<'_>, status| {
        let status = builder.ins().iconst(types::I32, i64::from(status));
        builder.ins().return_(&[status]);
    };
    if !at.words.is_empty() {
        let [rest, done] = [(); 2].map(|()| builder.create_block());
        let left = builder.ins().band_imm_s(rows, WORD_ROWS - 1);
        builder.ins().brif(left, rest, &[], done, &[]);
        enter(builder, rest);
        strips.store_words(builder, &at);
        builder.ins().jump(done, &[]);
        enter(builder, done);
    }
    status(builder, STATUS_OK);
    enter(builder, failed);
    status(builder, STATUS_FAULT);
}

impl StripLoop<'_> {
    /// Returns the arrays of the outputs that are masks.
    fn masks(&self) -> impl Iterator<Item = ir::Value> {
        self.outputs.iter().filter(|(output, ..)| matches!(output, Output::Mask(_))).map(|(.., array)| *array)
    }

    fn store_words(&self, builder: &mut FunctionBuilder<'_>, at: &StripState) {
        for (array, word) in self.masks().zip(&at.words) {
            ports::store_word(builder, array, at.row, *word);
        }
    }

    /// Creates a block whose parameters are the loop's state before a strip (as many rows as there are lanes).
    fn beginning(&self, builder: &mut FunctionBuilder<'_>) -> (ir::Block, StripState) {
        let block = builder.create_block();
        let row = builder.append_block_param(block, types::I64);
        (
            block,
            StripState { row, words: self.masks().map(|_| builder.append_block_param(block, types::I64)).collect() },
        )
    }

    /// Emits the loop over all full strips of `lanes` rows each, from the state `from` on. Returns the state after the
    /// last strip.
    fn all(
        &self,
        builder: &mut FunctionBuilder<'_>,
        state: &mut FunctionState<'_>,
        lanes: Lanes,
        from: StripState,
    ) -> StripState {
        let (start, at) = self.beginning(builder);
        let [strip, end] = [(); 2].map(|()| builder.create_block());
        builder.ins().jump(start, &arguments(&from));
        builder.switch_to_block(start);
        let next = builder.ins().iadd_imm_s(at.row, lanes.count() as i64);
        let fits = builder.ins().icmp(IntCC::UnsignedLessThanOrEqual, next, self.rows);
        builder.ins().brif(fits, strip, &[], end, &[]);
        enter(builder, strip);
        let words = match lanes {
            Lanes::One => self.one_row(builder, state, &at),
            Lanes::Two | Lanes::Four => self.several(builder, state, lanes, &at),
        };
        let mut then = StripState { row: next, words };
        if !then.words.is_empty() {
            let full = builder.create_block();
            let inside = builder.ins().band_imm_s(next, WORD_ROWS - 1);
            builder.ins().brif(inside, start, &arguments(&then), full, &[]);
            enter(builder, full);
            self.store_words(builder, &StripState { row: at.row, words: then.words.clone() });
            let zero = builder.ins().iconst(types::I64, 0);
            then.words.fill(zero);
        }
        builder.ins().jump(start, &arguments(&then));
        builder.seal_block(start);
        enter(builder, end);
        at
    }

    /// Emits the code for one row. The code returns from the function at once if the row fails. Returns the words of
    /// mask outputs, with the row's bits inserted.
    fn one_row(
        &self,
        builder: &mut FunctionBuilder<'_>,
        state: &mut FunctionState<'_>,
        at: &StripState,
    ) -> Vec<ir::Value> {
        let inputs = self.inputs.iter().map(|(input, ty)| match input {
            Input::Rows(array) => Rows { array: *array, first: at.row }.load_one(builder, *ty),
            Input::Shared(element) => *element,
        });
        let inputs: Vec<ir::Value> = inputs.collect();
        let mut values = Vec::new();
        scalar::play(builder, state, self.tape, &inputs, &mut values);
        let (mut words, mut bits) = (at.words.iter(), Vec::new());
        for (output, port, array) in &self.outputs {
            let value = values[output.index()];
            debug_assert!(value.is_some(), "outputs are live");
            match (output, value) {
                (Output::Number(_), Some(value)) if *port == Port::Chains => {
                    let sums = Rows::of_chains(builder, *array, at.row);
                    let sum = sums.load_one(builder, MachineType::F64);
                    let sum = builder.ins().fadd(sum, value);
                    sums.store_one(builder, sum);
                }
                (Output::Number(_), Some(value)) => Rows { array: *array, first: at.row }.store_one(builder, value),
                (Output::Mask(_), Some(value)) => bits.extend(words.next().map(|word| {
                    let bit = builder.ins().uextend(types::I64, value);
                    ports::gathered(builder, *word, bit, at.row)
                })),
                (_, None) => {}
            }
        }
        bits
    }

    /// Emits the code for one row per lane. The code jumps to the block `failed`, before it stores results, if one of
    /// these rows fails. Returns the words of mask outputs, with the bits of the rows inserted.
    fn several(
        &self,
        builder: &mut FunctionBuilder<'_>,
        state: &mut FunctionState<'_>,
        lanes: Lanes,
        at: &StripState,
    ) -> Vec<ir::Value> {
        let inputs = self.inputs.iter().map(|(input, ty)| match input {
            Input::Rows(array) => Rows { array: *array, first: at.row }.load(builder, lanes, *ty),
            // The element is copied to all lanes anew in each strip, by one instruction, because many such vectors
            // would not stay in registers.
            Input::Shared(element) => ports::spread(builder, lanes, *ty, *element),
        });
        let inputs: Vec<Vectors> = inputs.collect();
        let mut player = LanePlayer::play(builder, state, self.tape, lanes, inputs);
        if let Some(any) = player.any_failed() {
            let builder = &mut *player.builder;
            let stores = builder.create_block();
            builder.ins().brif(any, self.failed, &[], stores, &[]);
            enter(builder, stores);
        }
        let (mut words, mut bits) = (at.words.iter(), Vec::new());
        for (output, port, array) in &self.outputs {
            match output {
                Output::Number(val) => {
                    let mut numbers = player.numbers(*val);
                    let mut rows = Rows { array: *array, first: at.row };
                    if *port == Port::Chains {
                        rows = Rows::of_chains(player.builder, *array, at.row);
                        let sums = rows.load(player.builder, lanes, MachineType::F64);
                        let added = sums.iter().zip(&numbers).map(|(sum, more)| player.builder.ins().fadd(*sum, *more));
                        numbers = added.collect();
                    }
                    rows.store(player.builder, lanes, self.tape.ty(*val), &numbers);
                }
                Output::Mask(mask) => {
                    let mask = player.mask(*mask, ports::width_of_bits(lanes));
                    bits.extend(words.next().map(|word| {
                        let bits = ports::bits_of(player.builder, &mask);
                        ports::gathered(player.builder, *word, bits, at.row)
                    }));
                }
            }
        }
        bits
    }
}

fn arguments(at: &StripState) -> Vec<BlockArg> {
    std::iter::once(&at.row).chain(&at.words).map(|value| BlockArg::from(*value)).collect()
}

/// Continues emission in a block. All jumps to the block must have been emitted.
fn enter(builder: &mut FunctionBuilder<'_>, block: ir::Block) {
    builder.seal_block(block);
    builder.switch_to_block(block);
}
