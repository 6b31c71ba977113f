//! The program itself: columns and segments, as the recorder makes them and a driver runs them. The places of intermediate
//! columns in scratch memory are chosen in `scratch.rs`.

use crate::{Port, Tape};
use cembra_runtime::{KernelChain, LONG_STRIP_ROWS, MachineType, STRIP_ROWS};

/// The index of a column in its program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ColumnId(u32);

impl ColumnId {
    /// The id of the column at an index.
    #[must_use]
    pub const fn from_index(index: usize) -> Self {
        ColumnId(index as u32)
    }

    /// The index of the column.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A part of a value. Each part of an input, an output or an intermediate value is a column of its own, so tapes work on
/// dense arrays only.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ValuePart {
    /// The presence of an optional, a mask.
    Presence,
    /// The number.
    Number,
    /// The truth value, a mask.
    Flag,
    /// The address of a string, an `I64`.
    Pointer,
    /// The length of a string in bytes, an `I64`.
    Length,
}

impl ValuePart {
    /// The number of variants.
    const COUNT: usize = ValuePart::Length as usize + 1;
}

/// The place of a column's elements.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Origin {
    /// A part of an input of the model.
    Input {
        /// The index of the input.
        index: u32,
        /// The part of the value.
        part: ValuePart,
    },
    /// A part of an output of the model. Segments after the one that writes it may read it.
    Output {
        /// The index of the output.
        index: u32,
        /// The part of the value.
        part: ValuePart,
    },
    /// A number at an offset of frames made from the plan's template: the address of a literal string.
    Frame {
        /// The offset in bytes.
        offset: u32,
    },
    /// An intermediate value of the rows, in scratch memory.
    Scratch {
        /// Offset in bytes for a capacity of 64 rows; it is multiplied by the capacity divided by 64.
        offset: u32,
    },
    /// A value that all rows share and that a segment computes once per call, in 8 bytes.
    Once {
        /// Bytes from the start of the memory of shared values.
        offset: u32,
    },
}

/// A column of a lane program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LaneColumn {
    /// The type of the column's elements; `Flag` for a mask, which has a bit per row, or a byte if all rows share it.
    pub ty: MachineType,
    /// The layout of the elements. Only outputs can be sums, which no segment reads.
    pub port: Port,
    /// The place of the elements.
    pub origin: Origin,
}

impl LaneColumn {
    /// The bytes of the column's elements for 64 rows.
    #[must_use]
    pub const fn bytes_for_64_rows(&self) -> u32 {
        bytes_for_64_rows(self.ty)
    }
}

/// The bytes of elements of a type for 64 rows.
pub(crate) const fn bytes_for_64_rows(ty: MachineType) -> u32 {
    match ty {
        MachineType::Flag => 8,
        MachineType::I32 | MachineType::F32 => 4 * 64,
        MachineType::I64 | MachineType::F64 => 8 * 64,
    }
}

/// A lane program: a model for the rows of a strip.
#[derive(Clone, Debug)]
pub struct LaneProgram {
    /// The columns.
    pub columns: Vec<LaneColumn>,
    /// The segments in order. Those that run once per call come first.
    pub segments: Vec<Segment>,
    pub(crate) scratch: u32,
    pub(crate) once: u32,
}

/// A part of a lane program that is done for all rows before the next.
#[derive(Clone, Debug)]
pub struct Segment {
    /// True if the segment runs once per call, as for one row. Its inputs are shared by all rows, and its outputs are
    /// [`Origin::Once`].
    pub once: bool,
    /// The work of the segment.
    pub body: Body,
}

/// The work of a segment.
#[derive(Clone, Debug)]
pub enum Body {
    /// Plays a tape.
    Tape(TapeSegment),
    /// Calls a kernel.
    Kernel(KernelSegment),
    /// Plays a program once for each value of a dictionary.
    Memo(Box<MemoSegment>),
}

/// A segment that plays a tape.
#[derive(Clone, Debug)]
pub struct TapeSegment {
    /// The tape, which is finished and swept. Its stretches pass [`Tape::check_stretches`].
    pub tape: Tape,
    /// The column of each of the tape's inputs.
    pub inputs: Vec<ColumnId>,
    /// The column of each of the tape's outputs.
    pub outputs: Vec<ColumnId>,
}

/// A segment that calls a kernel row by row, on a frame made from the plan's template. For rows without a call, zeros are
/// stored: the number 0, false, missing, or an empty string.
#[derive(Clone, Debug)]
pub struct KernelSegment {
    /// The kernel's name in listings.
    pub label: &'static str,
    /// The step of the plan that the kernel's faults name.
    pub site: u32,
    /// The reason why the step is not part of a tape.
    pub why: Cut,
    /// The call, at position 0, and the end of its row. Whoever runs the call must keep the plan's states alive, which it
    /// uses (OPERATOR-DATA).
    pub call: KernelChain,
    /// The mask of the rows to call the kernel for; `None` for all rows.
    pub rows: Option<ColumnId>,
    /// The arguments, which are written to the frame before a call. Nothing else writes there while the segment runs, so
    /// shared and constant arguments can be written once, before the first row.
    pub loads: Vec<Load>,
    /// The results, which are read from the frame after a call. If the presence is 0, the other parts are not read, and
    /// zeros are stored.
    pub stores: Vec<Store>,
}

/// The reason why a step is a segment of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cut {
    /// The step's operator has no rule.
    NoRule,
    /// The operator's rule has an instruction that the player cannot play.
    Unplayable,
}

/// A part of a kernel's argument, to be written to the frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Load {
    /// The source of the bits.
    pub from: Source,
    /// The type of the part; a `Flag` is a byte, 0 or 1.
    pub ty: MachineType,
    /// The offset in the frame that the part is written to.
    pub offset: u32,
}

/// The source of a part of a kernel's argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// The row's element of a column.
    Column(ColumnId),
    /// Constant bits, equal for all rows.
    Constant(u64),
}

/// A part of a kernel's result, to be read from the frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Store {
    /// The offset of the part in the frame. A `Flag` is a byte; any byte but 0 is true.
    pub offset: u32,
    /// The column that the part is stored in.
    pub column: ColumnId,
    /// True if the part is the presence of the result, which tells whether the other parts are valid.
    pub is_presence: bool,
}

/// A segment with the steps that depend on one dictionary input alone, and on values that all rows share. The rows of a
/// dictionary hold indices of values, and rows with equal indices have equal results. So the program is played once per
/// value, when the first row needs it. For rows that do not need it, zeros are stored, as by kernels.
#[derive(Clone, Debug)]
pub struct MemoSegment {
    /// The index of the input that is a dictionary.
    pub input: u32,
    /// The mask of the rows that need results; `None` for all rows.
    pub rows: Option<ColumnId>,
    /// The program for a strip whose rows are values of the dictionary. It has the inputs of the enclosing program, and
    /// reads this input and shared ones. Its outputs are the results. It contains no memos.
    pub program: LaneProgram,
    /// The results to copy, and the columns that they are copied to.
    pub stores: Vec<MemoStore>,
}

/// A part of a memo's result, to be copied to a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoStore {
    /// The column in the memo's program, a part of an output.
    pub result: ColumnId,
    /// The column that the part is stored in.
    pub column: ColumnId,
}

/// The bytes that the columns of a strip should take together at most, so that they stay in the first-level cache.
const STRIP_BYTES: usize = 24 << 10;

/// The most bytes of scratch memory per 64 rows for which a program without kernels has strips of `MASKS_STRIP` rows: a few
/// masks.
const FEW_MASKS: usize = 64;
/// The rows of a strip if scratch memory holds only a few masks.
const MASKS_STRIP: usize = 1 << 12;

/// The columns of a program's outputs by output and part, for callers that look up many.
#[derive(Clone, Debug, Default)]
pub struct OutputColumns(Vec<[Option<ColumnId>; ValuePart::COUNT]>);

impl OutputColumns {
    /// The column of a part of the output `index`; `None` if the output has no such part.
    #[must_use]
    pub fn get(&self, index: usize, part: ValuePart) -> Option<ColumnId> {
        self.0.get(index)?[part as usize]
    }
}

impl LaneProgram {
    /// Returns a column by its id.
    #[must_use]
    pub fn column(&self, id: ColumnId) -> &LaneColumn {
        &self.columns[id.index()]
    }

    /// The bytes of scratch memory for a strip of `rows` rows, in whole words of 64 rows. The memory must be aligned to 64
    /// bytes.
    #[must_use]
    pub fn scratch_bytes(&self, rows: usize) -> usize {
        self.scratch as usize * rows.div_ceil(64)
    }

    /// The offset of a column in scratch memory for a capacity of `rows` rows, even if a strip has fewer; `None` if the
    /// column is not in scratch memory. Numbers are aligned to 64 bytes, masks to 8.
    #[must_use]
    pub fn scratch_offset(&self, id: ColumnId, rows: usize) -> Option<usize> {
        match self.column(id).origin {
            Origin::Scratch { offset } => Some(offset as usize * rows.div_ceil(64)),
            _ => None,
        }
    }

    /// The bytes of the values that all rows share and that segments compute once per call.
    #[must_use]
    pub fn once_bytes(&self) -> usize {
        self.once as usize
    }

    /// The best number of rows for a strip if a driver needs `more_bytes` bytes per 64 rows in addition. It is a multiple
    /// of 64, such that the strip's memory stays in the first-level cache; it is large if the program needs little or no
    /// memory.
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

    /// Returns the tapes, each with the program that its columns belong to, in the order of the segments. The tapes of a
    /// memo are in its place.
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

    /// Finds the columns of all outputs in one pass over the columns. If several columns claim to be one part, the first is
    /// taken.
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

    /// The bytes of memory that the program owns, without the struct itself.
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
    /// The ports of the tape's inputs, and those of its outputs, for the columns of `program`.
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
    /// Calls `f` with each column that the segment reads, repeatedly for a column that is read in several places.
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
