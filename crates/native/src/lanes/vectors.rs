//! Numbers and masks of several rows, one row per lane, in one or two 128-bit vectors. Two lanes of 32 bits fill half a vector, whose other half is
//! ignored. This module extracts, combines and converts lanes.

use super::Lanes;
use crate::emit::instructions::splat;
use cembra_runtime::MachineType;
use cranelift_codegen::ir::{self, Endianness, InstBuilder, MemFlagsData, types};
use cranelift_frontend::FunctionBuilder;
use smallvec::{SmallVec, smallvec};

/// The vectors that together hold one value per lane, the first lanes first.
pub(crate) type Vectors = SmallVec<[ir::Value; 2]>;

/// The size in bytes of a 128-bit vector.
pub(crate) const SIZE: usize = 16;

/// The width of the lanes of a mask: the width of the numbers whose comparison gave the mask. Each lane is all ones or all zeros.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Width {
    /// The mask's lanes have 32 bits each.
    Single,
    /// The mask's lanes have 64 bits each.
    Double,
}

impl Width {
    /// Returns the width of a mask that was made by comparing numbers of type `ty`.
    pub(crate) const fn of(ty: MachineType) -> Width {
        match ty {
            MachineType::I64 | MachineType::F64 => Width::Double,
            MachineType::I32 | MachineType::F32 | MachineType::Flag => Width::Single,
        }
    }

    /// Returns the other width: `Double` for `Single`, and `Single` for `Double`.
    pub(crate) const fn other(self) -> Width {
        match self {
            Width::Single => Width::Double,
            Width::Double => Width::Single,
        }
    }

    /// Returns the integer type whose numbers have this width.
    pub(crate) const fn integer(self) -> MachineType {
        match self {
            Width::Single => MachineType::I32,
            Width::Double => MachineType::I64,
        }
    }
}

/// Returns the type of a vector whose lanes have type `ty`.
pub(crate) const fn vector_type(ty: MachineType) -> ir::Type {
    match ty {
        MachineType::I32 | MachineType::Flag => types::I32X4,
        MachineType::I64 => types::I64X2,
        MachineType::F32 => types::F32X4,
        MachineType::F64 => types::F64X2,
    }
}

/// The number of lanes in one vector of type `ty`.
pub(crate) fn per_vector(ty: MachineType) -> usize {
    vector_type(ty).lane_count() as usize
}

/// The number of vectors that `lanes` values of type `ty` fill, at least one.
pub(crate) fn count(lanes: Lanes, ty: MachineType) -> usize {
    lanes.count().div_ceil(per_vector(ty))
}

/// Reinterprets the bits of a vector as a vector of type `to`.
pub(crate) fn recast(builder: &mut FunctionBuilder<'_>, to: ir::Type, vector: ir::Value) -> ir::Value {
    if builder.func.dfg.value_type(vector) == to {
        return vector;
    }
    builder.ins().bitcast(to, MemFlagsData::new().with_endianness(Endianness::Little), vector)
}

/// Returns vectors that have the constant with these bits in all lanes.
pub(crate) fn constant(builder: &mut FunctionBuilder<'_>, lanes: Lanes, ty: MachineType, bits: u64) -> Vectors {
    let vector = splat(builder, vector_type(ty), bits);
    smallvec![vector; count(lanes, ty)]
}

/// Extracts the value in lane `lane` from vectors.
pub(crate) fn lane(builder: &mut FunctionBuilder<'_>, vectors: &Vectors, lane: usize) -> ir::Value {
    let per = builder.func.dfg.value_type(vectors[0]).lane_count() as usize;
    builder.ins().extractlane(vectors[lane / per], (lane % per) as u8)
}

/// Builds vectors from one number per lane.
pub(crate) fn from_lanes(builder: &mut FunctionBuilder<'_>, ty: MachineType, numbers: &[ir::Value]) -> Vectors {
    let vector = |numbers: &[ir::Value]| {
        let first = builder.ins().scalar_to_vector(vector_type(ty), numbers[0]);
        let rest = numbers.iter().zip(0_u8..).skip(1);
        rest.fold(first, |vector, (number, lane)| builder.ins().insertlane(vector, *number, lane))
    };
    numbers.chunks(per_vector(ty)).map(vector).collect()
}

/// Emits a vector whose bytes are selected from the bytes of `a` and `b` by the indices `which`; those of `b` start at
/// 16.
fn bytes(builder: &mut FunctionBuilder<'_>, a: ir::Value, b: ir::Value, which: [u8; SIZE]) -> ir::Value {
    let (ty, which) = (builder.func.dfg.value_type(a), builder.func.dfg.immediates.push(which.to_vec().into()));
    let (a, b) = (recast(builder, types::I8X16, a), recast(builder, types::I8X16, b));
    let bytes = builder.ins().shuffle(a, b, which);
    recast(builder, ty, bytes)
}

/// Emits a vector of the lower halves of two vectors.
fn lower_halves(builder: &mut FunctionBuilder<'_>, a: ir::Value, b: ir::Value) -> ir::Value {
    bytes(builder, a, b, [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23])
}

/// Splits a vector with 32 bits per lane, so that the lower half of each result has the lanes of one vector with 64 bits per
/// lane.
fn halves(builder: &mut FunctionBuilder<'_>, lanes: Lanes, vector: ir::Value) -> Vectors {
    match lanes {
        Lanes::Four => {
            let upper = bytes(builder, vector, vector, [8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15]);
            smallvec![vector, upper]
        }
        Lanes::One | Lanes::Two => smallvec![vector],
    }
}

/// Joins vectors as `halves` returns them to one vector: the inverse of `halves`.
fn joined(builder: &mut FunctionBuilder<'_>, vectors: &Vectors) -> ir::Value {
    match vectors[..] {
        [low, high] => lower_halves(builder, low, high),
        _ => vectors[0],
    }
}

/// Emits the lower 32 bits of each lane of 64 bits.
fn narrowed(builder: &mut FunctionBuilder<'_>, vectors: &Vectors) -> ir::Value {
    let (low, high) = (vectors[0], vectors[vectors.len() - 1]);
    let even = bytes(builder, low, high, [0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27]);
    recast(builder, types::I32X4, even)
}

/// Converts numbers to another type as `Un::Convert` does; `None` if processors have no vector instruction for this conversion.
pub(crate) fn convert(
    builder: &mut FunctionBuilder<'_>,
    lanes: Lanes,
    from: MachineType,
    to: MachineType,
    numbers: &Vectors,
) -> Option<Vectors> {
    use MachineType::{F32, F64, I32, I64};
    let halves = |builder: &mut FunctionBuilder<'_>| halves(builder, lanes, numbers[0]);
    Some(match (from, to) {
        _ if from == to => numbers.clone(),
        (I32, I64) => halves(builder).into_iter().map(|half| builder.ins().swiden_low(half)).collect(),
        (I32, F64) => {
            let wide = convert(builder, lanes, I32, I64, numbers)?;
            return convert(builder, lanes, I64, F64, &wide);
        }
        (F32, F64) => halves(builder).into_iter().map(|half| builder.ins().fvpromote_low(half)).collect(),
        (I32, F32) | (I64, F64) => {
            numbers.iter().map(|vector| builder.ins().fcvt_from_sint(vector_type(to), *vector)).collect()
        }
        (F32, I32) => smallvec![builder.ins().fcvt_to_sint_sat(types::I32X4, numbers[0])],
        (I64, I32) => smallvec![narrowed(builder, numbers)],
        (F64, F32) => {
            let narrow = numbers.iter().map(|vector| builder.ins().fvdemote(*vector)).collect();
            smallvec![joined(builder, &narrow)]
        }
        (F64, I32) => {
            let narrow = numbers.iter().map(|vector| {
                // The code generator supports these two instructions only together, as one conversion.
                let (wide, zero) =
                    (builder.ins().fcvt_to_sint_sat(types::I64X2, *vector), splat(builder, types::I64X2, 0));
                builder.ins().snarrow(wide, zero)
            });
            let narrow = narrow.collect();
            smallvec![joined(builder, &narrow)]
        }
        _ => return None,
    })
}

/// Converts `mask`, whose lanes have the width `from`, to the other width.
pub(crate) fn rewidened(builder: &mut FunctionBuilder<'_>, lanes: Lanes, from: Width, mask: &Vectors) -> Vectors {
    match from {
        Width::Single => {
            let halves = halves(builder, lanes, mask[0]);
            halves.into_iter().map(|half| builder.ins().swiden_low(half)).collect()
        }
        Width::Double => smallvec![narrowed(builder, mask)],
    }
}
