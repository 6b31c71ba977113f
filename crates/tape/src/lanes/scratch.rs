//! Assigns the intermediate columns of a lane program (a model for many rows at once) their offsets in scratch memory.
//! A column occupies a slot from the segment that writes the column to the last segment that reads it; then another
//! column may reuse the slot. Slots have three sizes, for 64-bit numbers, 32-bit numbers and masks. Slots of one size
//! are contiguous, so all slots are aligned without gaps.

use crate::lanes::program::{LaneColumn, LaneProgram, Origin, Segment, bytes_for_64_rows};
use cembra_runtime::MachineType;

/// The slots of one size in scratch memory: the free ones, and the number of slots so far.
#[derive(Default)]
struct ScratchSlots {
    free: Vec<u32>,
    made: u32,
}

impl ScratchSlots {
    fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.made += 1;
            self.made - 1
        })
    }
}

fn size_class(ty: MachineType) -> usize {
    match ty {
        MachineType::I64 | MachineType::F64 => 0,
        MachineType::I32 | MachineType::F32 => 1,
        MachineType::Flag => 2,
    }
}

impl LaneProgram {
    /// Makes a program of these columns and segments, and assigns offsets to columns in scratch memory and to values
    /// computed once per call.
    #[must_use]
    pub fn new(columns: Vec<LaneColumn>, segments: Vec<Segment>) -> LaneProgram {
        let mut program = LaneProgram { columns, segments, scratch: 0, once: 0 };
        lay_out(&mut program);
        program
    }
}

fn lay_out(program: &mut LaneProgram) {
    let LaneProgram { columns, segments, .. } = program;
    let mut last_read: Vec<usize> = vec![0; columns.len()];
    for (at, segment) in segments.iter().enumerate() {
        segment.for_each_read(|column| last_read[column.index()] = at);
        segment.for_each_write(|column| last_read[column.index()] = last_read[column.index()].max(at));
    }
    let mut places: [ScratchSlots; 3] = Default::default();
    // For each segment, the columns whose last reader it is.
    let mut dying: Vec<Vec<usize>> = vec![Vec::new(); segments.len()];
    let mut once = 0;
    for (at, segment) in segments.iter().enumerate() {
        segment.for_each_write(|column| {
            let written = &mut columns[column.index()];
            match &mut written.origin {
                Origin::Scratch { offset } => {
                    *offset = places[size_class(written.ty)].take();
                    dying[last_read[column.index()]].push(column.index());
                }
                Origin::Once { offset } => {
                    *offset = once;
                    once += 8;
                }
                _ => {}
            }
        });
        // A column that a segment reads keeps its slot until the segment is done, so outputs of a tape do not overlap
        // its inputs.
        for column in &dying[at] {
            if let Origin::Scratch { offset } = columns[*column].origin {
                places[size_class(columns[*column].ty)].free.push(offset);
            }
        }
    }
    let mut starts = [0; 3];
    let mut end = 0;
    for (class, ty) in [MachineType::F64, MachineType::F32, MachineType::Flag].into_iter().enumerate() {
        starts[class] = end;
        end += places[class].made * bytes_for_64_rows(ty);
    }
    for column in columns.iter_mut() {
        let (start, size) = (starts[size_class(column.ty)], bytes_for_64_rows(column.ty));
        if let Origin::Scratch { offset } = &mut column.origin {
            *offset = start + *offset * size;
        }
    }
    (program.scratch, program.once) = (end, once);
}
