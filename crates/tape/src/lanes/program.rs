//! The program itself: its columns and its segments, as the recorder states them and a driver walks through them. Where
//! intermediate columns lie in scratch memory is found in `scratch.rs`.

use crate::{Port, Tape};
use cembra_runtime::{KernelChain, LONG_STRIP_ROWS, MachineType, STRIP_ROWS};

/// A column of a program, by its position.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ColumnId(u32);

impl ColumnId {
    /// The column at a position.
    #[must_use]
    pub const fn from_index(index: usize) -> Self {
        ColumnId(index as u32)
    }

    /// The position.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A part of a value. Each part of an input, an output or an intermediate value is a column of its own, so that tapes see
/// nothing but dense arrays.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ValuePart {
    /// Whether an optional is there, a mask.
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
    /// The number of parts that there are.
    const COUNT: usize = ValuePart::Length as usize + 1;
}

/// Where the elements of a column are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Origin {
    /// A part of an input of the model.
    Input {
        /// Which input.
        index: u32,
        /// Which part of it.
        part: ValuePart,
    },
    /// A part of an output of the model. Segments behind the one that writes it may read it too.
    Output {
        /// Which output.
        index: u32,
        /// Which part of it.
        part: ValuePart,
    },
    /// One number that a frame made from the plan's template has at an offset: where a literal string is.
    Frame {
        /// The offset in bytes.
        offset: u32,
    },
    /// An intermediate value of the rows: so many bytes from the start of the scratch memory for each 64 rows of capacity.
    Scratch {
        /// The bytes for 64 rows.
        offset: u32,
    },
    /// A value that all rows share and that a segment makes once for each call, in 8 bytes.
    Once {
        /// Bytes from the start of the memory of shared values.
        offset: u32,
    },
}

/// A column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LaneColumn {
    /// The type of its elements, `Flag` for a mask: a bit for each row, or a byte where all rows share it.
    pub ty: MachineType,
    /// Whether there is an element for each row. There are sums only in outputs: nothing reads them.
    pub port: Port,
    /// Where the elements are.
    pub origin: Origin,
}

impl LaneColumn {
    /// The bytes of its elements for 64 rows.
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

/// A model on the rows of a strip.
#[derive(Clone, Debug)]
pub struct LaneProgram {
    /// The columns.
    pub columns: Vec<LaneColumn>,
    /// What is done, in order. Those that are done once for each call come first.
    pub segments: Vec<Segment>,
    pub(crate) scratch: u32,
    pub(crate) once: u32,
}

/// What is done at once for all rows.
#[derive(Clone, Debug)]
pub struct Segment {
    /// True if it works on what all rows share: it is done once for each call, as for one row. Its inputs are shared, its
    /// outputs are [`Origin::Once`].
    pub once: bool,
    /// What is done.
    pub body: Body,
}

/// What a segment does.
#[derive(Clone, Debug)]
pub enum Body {
    /// Plays a tape.
    Tape(TapeSegment),
    /// Calls a kernel.
    Kernel(KernelSegment),
    /// Plays a program once for each value that rows have in common.
    Memo(Box<MemoSegment>),
}

/// A tape and its columns.
#[derive(Clone, Debug)]
pub struct TapeSegment {
    /// The tape, finished, all of it live. It has stretches that [`Tape::check_stretches`] accepts.
    pub tape: Tape,
    /// The column of each input, in the order of the tape's.
    pub inputs: Vec<ColumnId>,
    /// The column of each output, in the order of the tape's.
    pub outputs: Vec<ColumnId>,
}

/// A kernel that is called row by row, on a frame made from the plan's template. For the rows that it is not called for, zeros are
/// stored: a number 0, false, missing, an empty string.
#[derive(Clone, Debug)]
pub struct KernelSegment {
    /// What listings call it.
    pub label: &'static str,
    /// The step of the plan that its faults name.
    pub site: u32,
    /// Why it is no part of a tape.
    pub why: Cut,
    /// The call, at position 0, and the end of its row. Whoever runs it keeps its data alive (OPERATOR-DATA): the plan's states.
    pub call: KernelChain,
    /// The mask of the rows to call it for; all rows if there is none.
    pub rows: Option<ColumnId>,
    /// What is put into the frame before a call. Nothing else writes there while the segment is at work, so what is shared
    /// or constant can be put there before the first row.
    pub loads: Vec<Load>,
    /// What is taken out of the frame behind a call. Behind a presence that is 0 the rest may be anything, and zeros are stored.
    pub stores: Vec<Store>,
}

/// Why a step is a segment of its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cut {
    /// Its operator has no rule.
    NoRule,
    /// Its rule has an instruction that the player cannot play.
    Unplayable,
}

/// A part of an argument of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Load {
    /// What it is.
    pub from: Source,
    /// Its type; a `Flag` is a byte, 0 or 1.
    pub ty: MachineType,
    /// Where it goes in the frame.
    pub offset: u32,
}

/// What a kernel is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// The row's element of a column.
    Column(ColumnId),
    /// The same bits for all rows.
    Constant(u64),
}

/// A part of the result of a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Store {
    /// Where it is in the frame; a `Flag` is a byte, and any but 0 is true.
    pub offset: u32,
    /// The column that it goes to.
    pub column: ColumnId,
    /// True for the presence of the result: it says whether the other parts can be looked at.
    pub is_presence: bool,
}

/// What depends on one input alone, and on what all rows share. The input's column is a dictionary: rows have numbers of values,
/// and the results of a value are those of all rows that have its number. So the program is played once for a value, when the
/// first row asks for it. For the rows that do not ask, zeros are stored, as by kernels.
#[derive(Clone, Debug)]
pub struct MemoSegment {
    /// The input.
    pub input: u32,
    /// The mask of the rows that ask; all rows if there is none.
    pub rows: Option<ColumnId>,
    /// What is done with values, one for each row of a strip of its own. It has the inputs of the program around it, and reads this
    /// one and shared ones; its outputs are the results. There are no memos in it.
    pub program: LaneProgram,
    /// Which parts of results go to which columns.
    pub stores: Vec<MemoStore>,
}

/// A part of a result of a memo.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoStore {
    /// The column of the memo's program, a part of an output.
    pub result: ColumnId,
    /// The column that it goes to.
    pub column: ColumnId,
}

/// The memory that the columns of a strip are meant to take together, so that they stay in the first-level cache.
const STRIP_BYTES: usize = 24 << 10;

/// The bytes of 64 rows, and the rows of a strip, where nothing but a few masks is kept.
const FEW_MASKS: usize = 64;
const MASKS_STRIP: usize = 1 << 12;

/// The columns of the outputs of a program, for callers that look at very many.
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
    /// A column.
    #[must_use]
    pub fn column(&self, id: ColumnId) -> &LaneColumn {
        &self.columns[id.index()]
    }

    /// The bytes of scratch memory that strips of so many rows take, counted in whole words of 64 rows. It is aligned to 64 bytes.
    #[must_use]
    pub fn scratch_bytes(&self, rows: usize) -> usize {
        self.scratch as usize * rows.div_ceil(64)
    }

    /// Where a column begins in scratch memory for strips of so many rows, whatever the number of a strip's own; none if it is
    /// no intermediate value. Numbers are aligned to 64 bytes, masks to 8.
    #[must_use]
    pub fn scratch_offset(&self, id: ColumnId, rows: usize) -> Option<usize> {
        match self.column(id).origin {
            Origin::Scratch { offset } => Some(offset as usize * rows.div_ceil(64)),
            _ => None,
        }
    }

    /// The bytes of what all rows share and is made once for each call.
    #[must_use]
    pub fn once_bytes(&self) -> usize {
        self.once as usize
    }

    /// The rows that a strip is best of, where a driver adds so many bytes for 64 rows: a multiple of 64, so that what
    /// a strip needs stays in the first-level cache; many, where it needs nothing, or little more than nothing.
    #[must_use]
    pub fn strip_rows(&self, more_bytes: usize) -> usize {
        let bytes = self.scratch as usize + more_bytes;
        // Kernels are called for each row: there is nothing to win.
        let has_kernels = || self.segments.iter().any(|segment| matches!(segment.body, Body::Kernel(_)));
        match bytes {
            0 => LONG_STRIP_ROWS,
            1..=FEW_MASKS if !has_kernels() => MASKS_STRIP,
            _ => (STRIP_BYTES / bytes.div_ceil(64) / 64 * 64).clamp(64, STRIP_ROWS),
        }
    }

    /// All tapes, each with the program that its columns are of: in the order of the segments, those of a memo in its place.
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

    /// The columns of all outputs by output and part, found in one pass over the columns; the first, if several claim to be a part.
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

    /// Bytes of memory the program holds, besides itself.
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
    /// The ports of the tape's inputs, and those of its outputs, in a program.
    #[must_use]
    pub fn ports(&self, program: &LaneProgram) -> [Vec<Port>; 2] {
        let output = |column: &ColumnId| match program.column(*column).port {
            Port::Chains => Port::Chains,
            // What rows share is made as if of one row.
            Port::Rows | Port::Shared => Port::Rows,
        };
        let inputs = self.inputs.iter().map(|column| program.column(*column).port).collect();
        [inputs, self.outputs.iter().map(output).collect()]
    }
}

impl Segment {
    /// Calls `f` with each column that it reads, an argument in several places as often.
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

    /// Calls `f` with each column that it writes.
    pub fn for_each_write(&self, f: impl FnMut(ColumnId)) {
        match &self.body {
            Body::Tape(tape) => tape.outputs.iter().copied().for_each(f),
            Body::Kernel(kernel) => kernel.stores.iter().map(|store| store.column).for_each(f),
            Body::Memo(memo) => memo.stores.iter().map(|store| store.column).for_each(f),
        }
    }
}
