//! The data structures of lane programs (models for many rows at once): columns and segments. The crate `cembra-record`
//! builds them and backends run them. The offsets of intermediate columns in scratch memory are chosen in `scratch.rs`.

use crate::{Port, Tape};
use cembra_runtime::{KernelChain, LONG_STRIP_ROWS, MachineType, STRIP_ROWS};

/// The index of a column in its lane program (a model for many rows at once).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ColumnId(u32);

impl ColumnId {
    /// Makes the id of the column with the index `index`.
    #[must_use]
    pub const fn from_index(index: usize) -> Self {
        ColumnId(index as u32)
    }

    /// The index of the column in its lane program.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A part of a value, such as its presence or its number. Every part of an input, an output or an intermediate value is
/// a column of its own, so tapes work only on dense arrays.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ValuePart {
    /// The presence of an optional value, as a mask.
    Presence,
    /// The value without its presence, if it is a number.
    Number,
    /// The value without its presence, if it is a boolean, as a mask.
    Flag,
    /// The address of the value's bytes, an `I64`, if the value is a string.
    Pointer,
    /// The length of the value in bytes, an `I64`, if the value is a string.
    Length,
}

impl ValuePart {
    /// The number of variants.
    const COUNT: usize = ValuePart::Length as usize + 1;
}

/// The memory that contains a column's elements: an input, an output, a frame (the memory of one evaluation), or
/// scratch memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Origin {
    /// The column is a part of an input of the model.
    Input {
        /// The index of the input among the model's inputs.
        index: u32,
        /// The part of the input's value (such as its presence) that the column contains.
        part: ValuePart,
    },
    /// The column is a part of an output of the model. Segments after the one that writes the column may read it.
    Output {
        /// The index of the output among the model's outputs.
        index: u32,
        /// The part of the output's value (such as its presence) that the column contains.
        part: ValuePart,
    },
    /// The column is one number that all rows share, in every frame made from the plan's template: the address of a
    /// literal string.
    Frame {
        /// The offset of the number in the frame, in bytes.
        offset: u32,
    },
    /// The column is an intermediate value with an element per row, in scratch memory.
    Scratch {
        /// The offset of the column in bytes for a capacity of 64 rows; it is multiplied by the capacity divided by 64.
        offset: u32,
    },
    /// The column is a value that all rows share and that a segment computes once per call. The value takes 8 bytes.
    Once {
        /// The offset of the value in bytes, from the start of the memory for values that are computed once per call.
        offset: u32,
    },
}

/// A column of a lane program (a model for many rows at once). It has a part of a value, such as the presence or the
/// number: one element per row, or one for all rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LaneColumn {
    /// The type of the column's elements; `Flag` for a mask, which has a bit per row, or a byte if all rows share it.
    pub ty: MachineType,
    /// The memory layout of the column's elements. Only an output can have the layout [`Port::Chains`] (partial sums),
    /// and no segment reads it.
    pub port: Port,
    /// The memory that has the column's elements.
    pub origin: Origin,
}

impl LaneColumn {
    /// The bytes that the column's elements take for 64 rows.
    #[must_use]
    pub const fn bytes_for_64_rows(&self) -> u32 {
        bytes_for_64_rows(self.ty)
    }
}

/// The bytes that elements of type `ty` take for 64 rows.
pub(crate) const fn bytes_for_64_rows(ty: MachineType) -> u32 {
    match ty {
        MachineType::Flag => 8,
        MachineType::I32 | MachineType::F32 => 4 * 64,
        MachineType::I64 | MachineType::F64 => 8 * 64,
    }
}

/// A lane program: a model for many rows at once. It has columns, and segments (tapes and calls of kernels) that read
/// and write the columns.
#[derive(Clone, Debug)]
pub struct LaneProgram {
    /// The columns of the program: inputs, outputs and intermediate values.
    pub columns: Vec<LaneColumn>,
    /// The segments of the program, in order. Segments that run once per call come first.
    pub segments: Vec<Segment>,
    pub(crate) scratch: u32,
    pub(crate) once: u32,
}

/// A segment of a lane program (a model for many rows at once): a tape, the calls of a kernel, or a program per
/// dictionary value. It runs for all rows before the next segment begins.
#[derive(Clone, Debug)]
pub struct Segment {
    /// True if the segment runs once per call of the program, and not per row. The inputs of such a segment are shared
    /// by all rows, and its outputs are [`Origin::Once`].
    pub once: bool,
    /// The work that the segment does.
    pub body: Body,
}

/// The work that a segment of a lane program (a model for many rows at once) does: running a tape, calling a kernel, or
/// running a program per dictionary value.
#[derive(Clone, Debug)]
pub enum Body {
    /// The segment runs a tape.
    Tape(TapeSegment),
    /// The segment calls a kernel.
    Kernel(KernelSegment),
    /// The segment runs a program once for each value of a dictionary.
    Memo(Box<MemoSegment>),
}

/// The contents of a segment that runs a tape: the tape, and the columns of its inputs and outputs.
#[derive(Clone, Debug)]
pub struct TapeSegment {
    /// The tape, which is finished and has no unneeded instructions. Stretches of the tape (skippable ranges of instructions) pass
    /// [`Tape::check_stretches`].
    pub tape: Tape,
    /// The column that each input of the tape is read from.
    pub inputs: Vec<ColumnId>,
    /// The column that each output of the tape is written to.
    pub outputs: Vec<ColumnId>,
}

/// The contents of a segment that calls a kernel row by row, on a frame (the memory of one evaluation) made from the
/// plan's template. For rows without a call, zeros are stored: the number 0, false, missing, or an empty string.
#[derive(Clone, Debug)]
pub struct KernelSegment {
    /// The kernel's name in listings.
    pub label: &'static str,
    /// The index of the plan's step that the kernel's faults are reported for.
    pub site: u32,
    /// The reason why the step is computed by calls of a kernel and not by a tape.
    pub why: KernelReason,
    /// A chain with one call of the kernel, at position 0. The compiled states of the plan's operators must stay alive
    /// as long as the call may run, because the kernel uses them (OPERATOR-DATA).
    pub call: KernelChain,
    /// The mask of the rows to call the kernel for; `None` for all rows.
    pub rows: Option<ColumnId>,
    /// The kernel's arguments, which are written to the frame before a call. While the segment runs, nothing else
    /// writes to the offsets of the arguments. So shared and constant arguments can be written once, before the first
    /// row.
    pub loads: Vec<Load>,
    /// The kernel's results, which are read from the frame after a call. If a result's presence is 0, its payload is
    /// not read, and zeros are stored.
    pub stores: Vec<Store>,
}

/// The reason why a step of the plan is computed by calls of a kernel and not by a tape.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KernelReason {
    /// The step's operator has no lowering rule.
    NoRule,
    /// The lowering rule of the step's operator has an instruction that the backend does not support.
    Unsupported,
}

/// A part of a kernel's argument (such as its presence): the source that it is read from, and the offset in the frame
/// that it is written to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Load {
    /// The column or constant that the argument's part is read from.
    pub from: Source,
    /// The type of the argument's part; a `Flag` is a byte, 0 or 1.
    pub ty: MachineType,
    /// The offset in the frame that the argument's part is written to.
    pub offset: u32,
}

/// The column or constant that a part of a kernel's argument is read from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// The argument's part is the element of this column in the current row.
    Column(ColumnId),
    /// The argument's part has these bits in all rows.
    Constant(u64),
}

/// A part of a kernel's result (such as its presence): its offset in the frame, and the column that it is stored in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Store {
    /// The offset of the result's part in the frame. A `Flag` is a byte; any byte but 0 is true.
    pub offset: u32,
    /// The column that the result's part is stored in.
    pub column: ColumnId,
    /// True if this part of the result is its presence. In a row whose result is missing, the result's other parts are
    /// not valid.
    pub is_presence: bool,
}

/// The contents of a segment whose results depend only on one dictionary-encoded input and on values that all rows
/// share. Rows with equal dictionary indices have equal results, so the segment's inner program runs once per
/// dictionary value, when the first row needs the result. For rows that do not need a result, zeros are stored, as for
/// kernels.
#[derive(Clone, Debug)]
pub struct MemoSegment {
    /// The index of the input that is the dictionary.
    pub input: u32,
    /// The mask of the rows that need results; `None` for all rows.
    pub rows: Option<ColumnId>,
    /// The program that is run once per dictionary value: each of its rows is a value of the dictionary. This inner
    /// program has the inputs of the enclosing program, and reads only the dictionary and inputs that all rows share.
    /// The outputs of the inner program are the results. The inner program contains no `MemoSegment`.
    pub program: LaneProgram,
    /// The results to copy, each with the column that it is copied to.
    pub stores: Vec<MemoStore>,
}

/// A copy of one part (such as the presence) of a result that is computed once per dictionary value. The part is copied
/// to a column with an element per row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoStore {
    /// The source of the copy: a column of the inner program (`MemoSegment::program`). It belongs to an output of that
    /// program, and contains this part (such as the presence) of the output's value.
    pub result: ColumnId,
    /// The destination of the copy: a column of the enclosing program, with an element per row.
    pub column: ColumnId,
}

/// The most bytes that all columns of a strip (a block of rows) should take together, so that they stay in the
/// first-level cache.
const STRIP_BYTES: usize = 24 << 10;

/// The most bytes of scratch memory per 64 rows for which a program without kernels has strips (blocks of rows) of
/// `MASKS_STRIP` rows. They are enough for a few masks.
const FEW_MASKS: usize = 64;
/// The number of rows per strip (block of rows) of a program without kernels whose scratch memory holds only a few
/// masks.
const MASKS_STRIP: usize = 1 << 12;

/// The columns of a lane program's outputs, indexed by output and part. The table is built once, for callers that look
/// up many columns.
#[derive(Clone, Debug, Default)]
pub struct OutputColumns(Vec<[Option<ColumnId>; ValuePart::COUNT]>);

impl OutputColumns {
    /// The column that contains the part `part` (such as the presence) of the output with index `index`; `None` if the
    /// output has no such part.
    #[must_use]
    pub fn get(&self, index: usize, part: ValuePart) -> Option<ColumnId> {
        self.0.get(index)?[part as usize]
    }
}

impl LaneProgram {
    /// Returns the column with this id.
    #[must_use]
    pub fn column(&self, id: ColumnId) -> &LaneColumn {
        &self.columns[id.index()]
    }

    /// The size in bytes of the scratch memory for `rows` rows, rounded up to a multiple of 64 rows. The memory must be
    /// aligned to 64 bytes.
    #[must_use]
    pub fn scratch_bytes(&self, rows: usize) -> usize {
        self.scratch as usize * rows.div_ceil(64)
    }

    /// The offset of a column in scratch memory, in bytes, if the memory was allocated for `rows` rows; `None` if the
    /// column is not in scratch memory. A run on fewer rows uses the same offset. Columns of numbers are aligned to 64
    /// bytes, masks to 8.
    #[must_use]
    pub fn scratch_offset(&self, id: ColumnId, rows: usize) -> Option<usize> {
        match self.column(id).origin {
            Origin::Scratch { offset } => Some(offset as usize * rows.div_ceil(64)),
            _ => None,
        }
    }

    /// The size in bytes of the memory for values that all rows share and that segments compute once per call.
    #[must_use]
    pub fn once_bytes(&self) -> usize {
        self.once as usize
    }

    /// The best number of rows to run at a time, if the backend needs `more_bytes` bytes per 64 rows in addition. The
    /// number is a multiple of 64, chosen such that the memory for these rows fits in the first-level cache. It is
    /// large if the program needs little or no memory.
    #[must_use]
    pub fn strip_rows(&self, more_bytes: usize) -> usize {
        let bytes = self.scratch as usize + more_bytes;
        // Kernels are called row by row, so a longer strip gains nothing.
        let has_kernels = || self.segments.iter().any(|segment| matches!(segment.body, Body::Kernel(_)));
        match bytes {
            0 => LONG_STRIP_ROWS,
            1..=FEW_MASKS if !has_kernels() => MASKS_STRIP,
            _ => (STRIP_BYTES / bytes.div_ceil(64) / 64 * 64).clamp(64, STRIP_ROWS),
        }
    }

    /// Returns all tapes of the program, each with the program that its columns belong to, in the order of the
    /// segments. For a segment that runs an inner program (once per dictionary value), the tapes of the inner program
    /// are listed.
    #[must_use]
    pub fn tapes(&self) -> Vec<(&LaneProgram, &TapeSegment)> {
        let mut tapes = Vec::with_capacity(self.segments.len());
        for segment in &self.segments {
            match &segment.body {
                Body::Tape(tape) => tapes.push((self, tape)),
                Body::Kernel(_) => {}
                // Memos do not nest.
                Body::Memo(memo) => tapes.extend(memo.program.tapes()),
            }
        }
        tapes
    }

    /// Finds the columns of all outputs in one pass over the columns. If several columns have the same part of an
    /// output, the table has the first of them.
    #[must_use]
    pub fn outputs(&self) -> OutputColumns {
        let mut outputs = OutputColumns::default();
        for (at, column) in self.columns.iter().enumerate() {
            let Origin::Output { index, part } = column.origin else { continue };
            if outputs.0.len() <= index as usize {
                outputs.0.resize(index as usize + 1, [None; ValuePart::COUNT]);
            }
            outputs.0[index as usize][part as usize].get_or_insert(ColumnId::from_index(at));
        }
        outputs
    }

    /// The bytes of heap memory that the program owns.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let segment = |segment: &Segment| match &segment.body {
            Body::Tape(tape) => {
                tape.tape.memory_bytes() + size_of_val(&tape.inputs[..]) + size_of_val(&tape.outputs[..])
            }
            Body::Kernel(kernel) => {
                kernel.call.memory_bytes() + size_of_val(&kernel.loads[..]) + size_of_val(&kernel.stores[..])
            }
            // Memos do not nest.
            Body::Memo(memo) => size_of::<MemoSegment>() + size_of_val(&memo.stores[..]) + memo.program.memory_bytes(),
        };
        size_of_val(&self.columns[..])
            + size_of_val(&self.segments[..])
            + self.segments.iter().map(segment).sum::<usize>()
    }
}

impl TapeSegment {
    /// The memory layouts of the tape's inputs, and the memory layouts of its outputs. `program` is the program that
    /// the columns belong to.
    #[must_use]
    pub fn ports(&self, program: &LaneProgram) -> [Vec<Port>; 2] {
        let output = |column: &ColumnId| match program.column(*column).port {
            Port::Chains => Port::Chains,
            // A shared output is computed as if for one row.
            Port::Rows | Port::Shared => Port::Rows,
        };
        let inputs = self.inputs.iter().map(|column| program.column(*column).port).collect();
        [inputs, self.outputs.iter().map(output).collect()]
    }
}

impl Segment {
    /// Calls `f` with each column that the segment reads; several times if the segment has several uses of a column.
    pub fn for_each_read(&self, mut f: impl FnMut(ColumnId)) {
        match &self.body {
            Body::Tape(tape) => tape.inputs.iter().copied().for_each(f),
            Body::Kernel(kernel) => {
                kernel.rows.iter().copied().for_each(&mut f);
                for load in &kernel.loads {
                    if let Source::Column(column) = load.from {
                        f(column);
                    }
                }
            }
            Body::Memo(memo) => memo.rows.iter().copied().for_each(f),
        }
    }

    /// Calls `f` with each column that the segment writes.
    pub fn for_each_write(&self, f: impl FnMut(ColumnId)) {
        match &self.body {
            Body::Tape(tape) => tape.outputs.iter().copied().for_each(f),
            Body::Kernel(kernel) => kernel.stores.iter().map(|store| store.column).for_each(f),
            Body::Memo(memo) => memo.stores.iter().map(|store| store.column).for_each(f),
        }
    }
}
