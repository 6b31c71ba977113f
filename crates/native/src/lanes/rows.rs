//! Memory in lanes: the elements of an array at the rows of a strip, loaded into vectors and stored from them. Numbers lie in
//! an array as they are, masks as bytes.

use super::Lanes;
use super::vectors::{SIZE, Vectors, count, per_vector, recast, vector_type};
use crate::emit::{clif_type, instructions::splat};
use cembra_runtime::MachineType;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, MemFlagsData, types};
use cranelift_frontend::FunctionBuilder;
use smallvec::smallvec;

/// Where numbers, or the bytes of a mask, lie: an array and the row of the first lane.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub(super) array: ir::Value,
    pub(super) first: ir::Value,
}

impl Rows {
    /// Nothing is known of an array's alignment beyond that of its elements.
    const FLAGS: MemFlagsData = MemFlagsData::new().with_notrap();

    fn address(self, builder: &mut FunctionBuilder<'_>, element: u32) -> ir::Value {
        let shift = builder.ins().iconst(types::I32, i64::from(element.trailing_zeros()));
        let offset = builder.ins().ishl(self.first, shift);
        builder.ins().iadd(self.array, offset)
    }

    /// Loads the number of one row, or the byte of a mask.
    pub(super) fn load_one(self, builder: &mut FunctionBuilder<'_>, ty: MachineType) -> ir::Value {
        let ty = clif_type(ty);
        let from = self.address(builder, ty.bytes());
        builder.ins().load(ty, Rows::FLAGS, from, 0)
    }

    /// Stores the number of one row, or the byte of a mask.
    pub(super) fn store_one(self, builder: &mut FunctionBuilder<'_>, value: ir::Value) {
        let to = self.address(builder, builder.func.dfg.value_type(value).bytes());
        builder.ins().store(Rows::FLAGS, value, to, 0);
    }

    /// Loads numbers.
    pub(super) fn load(self, builder: &mut FunctionBuilder<'_>, lanes: Lanes, ty: MachineType) -> Vectors {
        let from = self.address(builder, clif_type(ty).bytes());
        if lanes.count() < per_vector(ty) {
            let half = builder.ins().load(types::I64, Rows::FLAGS, from, 0);
            let vector = builder.ins().scalar_to_vector(types::I64X2, half);
            return smallvec![recast(builder, vector_type(ty), vector)];
        }
        let offsets = (0..count(lanes, ty)).map(|number| (SIZE * number) as i32);
        offsets.map(|offset| builder.ins().load(vector_type(ty), Rows::FLAGS, from, offset)).collect()
    }

    /// Stores numbers.
    pub(super) fn store(self, builder: &mut FunctionBuilder<'_>, lanes: Lanes, ty: MachineType, numbers: &Vectors) {
        let to = self.address(builder, clif_type(ty).bytes());
        if lanes.count() < per_vector(ty) {
            let vector = recast(builder, types::F64X2, numbers[0]);
            let half = builder.ins().extractlane(vector, 0);
            builder.ins().store(Rows::FLAGS, half, to, 0);
            return;
        }
        for (number, vector) in numbers.iter().enumerate() {
            builder.ins().store(Rows::FLAGS, *vector, to, (SIZE * number) as i32);
        }
    }

    /// Loads a mask of `Width::Single`, from bytes that are 0 where it does not hold.
    pub(super) fn load_mask(self, builder: &mut FunctionBuilder<'_>, lanes: Lanes) -> Vectors {
        let from = self.address(builder, 1);
        let word = match lanes {
            Lanes::Four => builder.ins().load(types::I32, Rows::FLAGS, from, 0),
            Lanes::One | Lanes::Two => builder.ins().uload16(types::I32, Rows::FLAGS, from, 0),
        };
        let vector = builder.ins().scalar_to_vector(types::I32X4, word);
        let bytes = recast(builder, types::I8X16, vector);
        let words = builder.ins().uwiden_low(bytes);
        let wide = builder.ins().uwiden_low(words);
        let zero = splat(builder, types::I32X4, 0);
        smallvec![builder.ins().icmp(IntCC::NotEqual, wide, zero)]
    }

    /// Stores a mask of `Width::Single` as bytes that are 0 or 1.
    pub(super) fn store_mask(self, builder: &mut FunctionBuilder<'_>, lanes: Lanes, mask: &Vectors) {
        let to = self.address(builder, 1);
        let words = builder.ins().snarrow(mask[0], mask[0]);
        let bytes = builder.ins().snarrow(words, words);
        let vector = recast(builder, types::I32X4, bytes);
        let ones = builder.ins().extractlane(vector, 0);
        let each = builder.ins().iconst(types::I32, 0x0101_0101);
        let flags = builder.ins().band(ones, each);
        match lanes {
            Lanes::Four => builder.ins().store(Rows::FLAGS, flags, to, 0),
            Lanes::One | Lanes::Two => builder.ins().istore16(Rows::FLAGS, flags, to, 0),
        };
    }
}
