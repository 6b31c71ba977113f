//! Numbers and masks in lanes, as vectors of 128 bits: as many as the lanes' numbers fill, one at least. Two lanes of 32 bits
//! fill half a vector; what its other half holds nobody looks at. Here they are taken apart, put together and converted.

use super::Lanes;
use crate::cells::clif_type;
use crate::instructions::splat;
use cembra_runtime::MachineType;
use cranelift_codegen::ir::{self, Endianness, InstBuilder, MemFlagsData, types};
use cranelift_frontend::FunctionBuilder;
use smallvec::{SmallVec, smallvec};

/// The vectors that numbers in lanes are made of, the first lanes first.
pub(crate) type Vectors = SmallVec<[ir::Value; 2]>;

/// The size of a vector in bytes.
const SIZE: usize = 16;

/// The width of the lanes of a mask, which has all ones or all zeros in each. It is that of the numbers that were compared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Width {
    Single,
    Double,
}

impl Width {
    /// That of numbers of a type.
    pub(crate) const fn of(ty: MachineType) -> Width {
        match ty {
            MachineType::I64 | MachineType::F64 => Width::Double,
            MachineType::I32 | MachineType::F32 | MachineType::Flag => Width::Single,
        }
    }

    /// Integers of the width.
    pub(crate) const fn integer(self) -> MachineType {
        match self {
            Width::Single => MachineType::I32,
            Width::Double => MachineType::I64,
        }
    }
}

/// The type of a vector of numbers.
pub(crate) const fn vector_type(ty: MachineType) -> ir::Type {
    match ty {
        MachineType::I32 | MachineType::Flag => types::I32X4,
        MachineType::I64 => types::I64X2,
        MachineType::F32 => types::F32X4,
        MachineType::F64 => types::F64X2,
    }
}

/// How many numbers of a type are in a vector.
pub(crate) fn per_vector(ty: MachineType) -> usize {
    vector_type(ty).lane_count() as usize
}

/// How many vectors the numbers of a type fill.
pub(crate) fn count(lanes: Lanes, ty: MachineType) -> usize {
    lanes.count().div_ceil(per_vector(ty))
}

/// The bits of a vector as one of another type.
pub(crate) fn recast(builder: &mut FunctionBuilder<'_>, to: ir::Type, vector: ir::Value) -> ir::Value {
    if builder.func.dfg.value_type(vector) == to {
        return vector;
    }
    builder.ins().bitcast(to, MemFlagsData::new().with_endianness(Endianness::Little), vector)
}

/// The same number in all lanes.
pub(crate) fn constant(builder: &mut FunctionBuilder<'_>, lanes: Lanes, ty: MachineType, bits: u64) -> Vectors {
    let vector = splat(builder, vector_type(ty), bits);
    smallvec![vector; count(lanes, ty)]
}

/// The number in a lane.
pub(crate) fn lane(builder: &mut FunctionBuilder<'_>, vectors: &Vectors, lane: usize) -> ir::Value {
    let per = builder.func.dfg.value_type(vectors[0]).lane_count() as usize;
    builder.ins().extractlane(vectors[lane / per], (lane % per) as u8)
}

/// Vectors of the numbers of all lanes.
pub(crate) fn from_lanes(builder: &mut FunctionBuilder<'_>, ty: MachineType, numbers: &[ir::Value]) -> Vectors {
    let vector = |numbers: &[ir::Value]| {
        let first = builder.ins().scalar_to_vector(vector_type(ty), numbers[0]);
        let rest = numbers.iter().zip(0_u8..).skip(1);
        rest.fold(first, |vector, (number, lane)| builder.ins().insertlane(vector, *number, lane))
    };
    numbers.chunks(per_vector(ty)).map(vector).collect()
}

/// A vector of bytes of two, by their numbers.
fn bytes(builder: &mut FunctionBuilder<'_>, a: ir::Value, b: ir::Value, which: [u8; SIZE]) -> ir::Value {
    let (ty, which) = (builder.func.dfg.value_type(a), builder.func.dfg.immediates.push(which.to_vec().into()));
    let (a, b) = (recast(builder, types::I8X16, a), recast(builder, types::I8X16, b));
    let bytes = builder.ins().shuffle(a, b, which);
    recast(builder, ty, bytes)
}

/// The lower halves of two vectors.
fn lower_halves(builder: &mut FunctionBuilder<'_>, a: ir::Value, b: ir::Value) -> ir::Value {
    bytes(builder, a, b, [0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23])
}

/// Vectors of 32 bits a lane, cut so that the lower half of each has the lanes that 64 bits a lane fill a vector with.
fn halves(builder: &mut FunctionBuilder<'_>, lanes: Lanes, vector: ir::Value) -> Vectors {
    match lanes {
        Lanes::Four => {
            let upper = bytes(builder, vector, vector, [8, 9, 10, 11, 12, 13, 14, 15, 8, 9, 10, 11, 12, 13, 14, 15]);
            smallvec![vector, upper]
        }
        Lanes::One | Lanes::Two => smallvec![vector],
    }
}

/// The opposite of `halves`.
fn joined(builder: &mut FunctionBuilder<'_>, vectors: &Vectors) -> ir::Value {
    match vectors[..] {
        [low, high] => lower_halves(builder, low, high),
        _ => vectors[0],
    }
}

/// Integers of 64 bits without their upper halves.
fn narrowed(builder: &mut FunctionBuilder<'_>, vectors: &Vectors) -> ir::Value {
    let (low, high) = (vectors[0], vectors[vectors.len() - 1]);
    let even = bytes(builder, low, high, [0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27]);
    recast(builder, types::I32X4, even)
}

/// Numbers of one type as numbers of another, as `Un::Convert` has it; nothing where the processor does that one by one.
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
                // These two together are one conversion: the backend has neither of them alone.
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

/// A mask of one width as one of the other.
pub(crate) fn rewidened(builder: &mut FunctionBuilder<'_>, lanes: Lanes, from: Width, mask: &Vectors) -> Vectors {
    match from {
        Width::Single => {
            let halves = halves(builder, lanes, mask[0]);
            halves.into_iter().map(|half| builder.ins().swiden_low(half)).collect()
        }
        Width::Double => smallvec![narrowed(builder, mask)],
    }
}

/// Where numbers, or the bytes of a mask, lie: an array and the row of the first lane.
#[derive(Clone, Copy)]
pub(crate) struct Rows {
    pub(crate) array: ir::Value,
    pub(crate) first: ir::Value,
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
    pub(crate) fn load_one(self, builder: &mut FunctionBuilder<'_>, ty: MachineType) -> ir::Value {
        let ty = clif_type(ty);
        let from = self.address(builder, ty.bytes());
        builder.ins().load(ty, Rows::FLAGS, from, 0)
    }

    /// Stores the number of one row, or the byte of a mask.
    pub(crate) fn store_one(self, builder: &mut FunctionBuilder<'_>, value: ir::Value) {
        let to = self.address(builder, builder.func.dfg.value_type(value).bytes());
        builder.ins().store(Rows::FLAGS, value, to, 0);
    }

    /// Loads numbers.
    pub(crate) fn load(self, builder: &mut FunctionBuilder<'_>, lanes: Lanes, ty: MachineType) -> Vectors {
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
    pub(crate) fn store(self, builder: &mut FunctionBuilder<'_>, lanes: Lanes, ty: MachineType, numbers: &Vectors) {
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
    pub(crate) fn load_mask(self, builder: &mut FunctionBuilder<'_>, lanes: Lanes) -> Vectors {
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
        smallvec![builder.ins().icmp(ir::condcodes::IntCC::NotEqual, wide, zero)]
    }

    /// Stores a mask of `Width::Single` as bytes that are 0 or 1.
    pub(crate) fn store_mask(self, builder: &mut FunctionBuilder<'_>, lanes: Lanes, mask: &Vectors) {
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
