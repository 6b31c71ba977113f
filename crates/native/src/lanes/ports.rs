//! The tape's inputs and outputs in vector code: loading the elements of several rows from arrays into vectors, and storing vectors
//! to arrays. Numbers are stored directly, masks as one bit per row. The bits of an output mask are collected in a 64-bit word,
//! which is stored when it is full.

use super::Lanes;
use super::vectors::{SIZE, Vectors, Width, count, per_vector, recast, vector_type};
use crate::emit::clif_type;
use cembra_runtime::{CHAINS, MachineType};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, MemFlagsData, types};
use cranelift_frontend::FunctionBuilder;
use smallvec::smallvec;

/// The memory flags of accesses to arrays, whose alignment is not known.
const FLAGS: MemFlagsData = MemFlagsData::new().with_notrap();

/// Loads an element of type `ty` that all rows share. If `ty` is a mask, the element is loaded as a byte.
pub(super) fn load_shared(builder: &mut FunctionBuilder<'_>, from: ir::Value, ty: MachineType) -> ir::Value {
    builder.ins().load(clif_type(ty), FLAGS, from, 0)
}

/// Returns vectors of type `ty` with `element` in all lanes. A mask has `Width::Single`.
pub(super) fn spread(builder: &mut FunctionBuilder<'_>, lanes: Lanes, ty: MachineType, element: ir::Value) -> Vectors {
    let element = match ty {
        MachineType::Flag => {
            let wide = builder.ins().uextend(types::I32, element);
            builder.ins().ineg(wide)
        }
        _ => element,
    };
    let vector = builder.ins().splat(vector_type(ty), element);
    smallvec![vector; count(lanes, ty)]
}

/// Consecutive rows of an array, one per lane: the array's address, and the index of the first lane's row.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub(super) array: ir::Value,
    pub(super) first: ir::Value,
}

impl Rows {
    /// Returns the accumulators (chains) of an output that is summed, for the rows from `row` on: row `r` is added to
    /// the accumulator `r % CHAINS` in `array`. There must be at most [`CHAINS`] rows, and `row` must be a multiple of
    /// the number of rows.
    pub(super) fn of_chains(builder: &mut FunctionBuilder<'_>, array: ir::Value, row: ir::Value) -> Rows {
        Rows { array, first: builder.ins().band_imm_s(row, CHAINS as i64 - 1) }
    }

    fn address(self, builder: &mut FunctionBuilder<'_>, element: u32) -> ir::Value {
        let shift = builder.ins().iconst(types::I32, i64::from(element.trailing_zeros()));
        let offset = builder.ins().ishl(self.first, shift);
        builder.ins().iadd(self.array, offset)
    }

    /// Loads the byte that has the bit of the first row, and shifts it so that this bit is the lowest.
    fn load_bits(self, builder: &mut FunctionBuilder<'_>) -> ir::Value {
        let byte = builder.ins().ushr_imm_u(self.first, 3);
        let from = builder.ins().iadd(self.array, byte);
        let byte = builder.ins().uload8(types::I32, FLAGS, from, 0);
        let first = builder.ins().ireduce(types::I32, self.first);
        let bit = builder.ins().band_imm_s(first, 7);
        builder.ins().ushr(byte, bit)
    }

    /// Loads the element of the first of these rows only; an element of a mask is loaded as 0 or 1.
    pub(super) fn load_one(self, builder: &mut FunctionBuilder<'_>, ty: MachineType) -> ir::Value {
        if ty == MachineType::Flag {
            let bits = self.load_bits(builder);
            let bit = builder.ins().band_imm_s(bits, 1);
            return builder.ins().ireduce(types::I8, bit);
        }
        let ty = clif_type(ty);
        let from = self.address(builder, ty.bytes());
        builder.ins().load(ty, FLAGS, from, 0)
    }

    /// Stores `value`, a number, to the first of these rows only.
    pub(super) fn store_one(self, builder: &mut FunctionBuilder<'_>, value: ir::Value) {
        let to = self.address(builder, builder.func.dfg.value_type(value).bytes());
        builder.ins().store(FLAGS, value, to, 0);
    }

    /// Loads the elements of all lanes: numbers, or a mask of `Width::Single`.
    pub(super) fn load(self, builder: &mut FunctionBuilder<'_>, lanes: Lanes, ty: MachineType) -> Vectors {
        if ty == MachineType::Flag {
            return self.load_mask(builder);
        }
        let from = self.address(builder, clif_type(ty).bytes());
        if lanes.count() < per_vector(ty) {
            let half = builder.ins().load(types::I64, FLAGS, from, 0);
            let vector = builder.ins().scalar_to_vector(types::I64X2, half);
            return smallvec![recast(builder, vector_type(ty), vector)];
        }
        let offsets = (0..count(lanes, ty)).map(|number| (SIZE * number) as i32);
        offsets.map(|offset| builder.ins().load(vector_type(ty), FLAGS, from, offset)).collect()
    }

    /// Stores the numbers of all lanes to their rows.
    pub(super) fn store(self, builder: &mut FunctionBuilder<'_>, lanes: Lanes, ty: MachineType, numbers: &Vectors) {
        let to = self.address(builder, clif_type(ty).bytes());
        if lanes.count() < per_vector(ty) {
            let vector = recast(builder, types::F64X2, numbers[0]);
            let half = builder.ins().extractlane(vector, 0);
            builder.ins().store(FLAGS, half, to, 0);
            return;
        }
        for (number, vector) in numbers.iter().enumerate() {
            builder.ins().store(FLAGS, *vector, to, (SIZE * number) as i32);
        }
    }

    /// Loads a mask of `Width::Single`. The bits of all lanes are in one byte, because the index of the first row is a
    /// multiple of the number of lanes.
    fn load_mask(self, builder: &mut FunctionBuilder<'_>) -> Vectors {
        let bits = self.load_bits(builder);
        let all = builder.ins().splat(types::I32X4, bits);
        let bytes: Vec<u8> = [1_u32, 2, 4, 8].iter().flat_map(|bit| bit.to_le_bytes()).collect();
        let each = builder.func.dfg.constants.insert(bytes.into());
        let each = builder.ins().vconst(types::I32X4, each);
        let own = builder.ins().band(all, each);
        smallvec![builder.ins().icmp(IntCC::Equal, own, each)]
    }
}

/// Returns the width at which the lanes of a mask fill exactly one vector. The bits of output masks are made from masks of this width.
pub(super) const fn width_of_bits(lanes: Lanes) -> Width {
    match lanes {
        Lanes::Four => Width::Single,
        Lanes::One | Lanes::Two => Width::Double,
    }
}

/// Returns the bits of `mask` as a 64-bit word, one bit per lane. The mask must have the width `width_of_bits`.
pub(super) fn bits_of(builder: &mut FunctionBuilder<'_>, mask: &Vectors) -> ir::Value {
    let bits = builder.ins().vhigh_bits(types::I32, mask[0]);
    builder.ins().uextend(types::I64, bits)
}

/// Inserts `bits`, one per lane, into `word`, from the bit for the row `first` on. The bits of `word` at these positions must be zeros.
pub(super) fn gathered(
    builder: &mut FunctionBuilder<'_>,
    word: ir::Value,
    bits: ir::Value,
    first: ir::Value,
) -> ir::Value {
    // The processor takes the shift modulo 64.
    let bits = builder.ins().ishl(bits, first);
    builder.ins().bor(word, bits)
}

/// Stores `word`, the 64 bits that include the bit for `row`, to its place in an array of bits.
pub(super) fn store_word(builder: &mut FunctionBuilder<'_>, array: ir::Value, row: ir::Value, word: ir::Value) {
    let number = builder.ins().ushr_imm_u(row, 6);
    let offset = builder.ins().ishl_imm_u(number, 3);
    let to = builder.ins().iadd(array, offset);
    builder.ins().store(FLAGS, word, to, 0);
}
