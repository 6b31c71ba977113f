//! A compiled sweep, which is a fused loop over the elements of arrays: the layout of its columns, the machine code of its plans, and the memory of
//! its runs. The machine code is compiled when columns with new layouts first occur, and cached. `sweep.rs` runs the loop block by block.

use super::host::ArrayHost;
use super::place::{ColumnPointers, Memory};
use crate::code::cache::{Cache, NewValue, hash_of};
use cembra_array::{ArrayProgram, Origin, PlanInput, ProgramId, Storage, SweepColumn, SweepLayout, Work};
use cembra_ops::{Accumulator, Scanner, accumulator, scanner};
use cembra_runtime::{
    BatchFunction, Column, ColumnForm, Context, DataForm, Frame, FunctionColumns, LONG_STRIP_ROWS, PresenceForm,
    STRIP_ROWS, SUM_BLOCK, Scratch,
};
use cembra_value::Array;
use smallvec::SmallVec;
use std::sync::Arc;

/// The most variants of a fused loop that are cached. There is one variant for each set of arrays that have presence
/// bits.
const MOST_VARIANTS: usize = 16;

/// A boundary between the shares of threads, or between blocks that are summed together, must also be a boundary
/// between strips, the blocks of elements that a fused loop processes at once.
const _: () = assert!(SUM_BLOCK.is_multiple_of(LONG_STRIP_ROWS) && SUM_BLOCK.is_multiple_of(STRIP_ROWS));

/// The compiled fused loops (sweeps) of one array program.
#[derive(Debug)]
pub(crate) struct SweepRunners {
    of: ProgramId,
    /// The compiled fused loops; `None` for a loop whose stages must be run one by one over whole arrays.
    runners: Vec<Option<SweepRunner>>,
}

impl SweepRunners {
    /// Compiles the fused loops of an array program.
    pub(crate) fn of(program: &ArrayProgram) -> SweepRunners {
        let runners = program.sweep_layouts().into_iter().map(|layout| layout.map(SweepRunner::of)).collect();
        SweepRunners { of: program.id(), runners }
    }

    /// Returns true if these are the fused loops of `program`.
    pub(super) fn are_of(&self, program: &ArrayProgram) -> bool {
        self.of == program.id()
    }

    /// The compiled fused loops, in the order of the program; `None` for a loop whose stages must be run one by one
    /// over whole arrays.
    pub(super) fn all(&self) -> &[Option<SweepRunner>] {
        &self.runners
    }

    /// The bytes of memory that the loops' machine code takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.runners.iter().flatten().map(SweepRunner::memory_bytes).sum()
    }
}

/// A compiled fused loop over elements of arrays, with the cache of its machine code.
#[derive(Debug)]
pub(super) struct SweepRunner {
    pub(super) layout: SweepLayout,
    /// The cached variants of the loop's machine code. The key is the bit set of the arrays that have presence bits.
    variants: Cache<u128, Option<Arc<Variant>>>,
}

/// The compiled functions of a fused loop's plans, for columns with given layouts.
#[derive(Debug)]
pub(super) struct Variant {
    pub(super) functions: Vec<Box<dyn BatchFunction>>,
    /// True if values that are only summed are added directly to the sums of their accumulator, instead of being stored first.
    pub(super) adds: bool,
    /// The number of elements per strip (the block of elements that all stages process before the next), unless a strip consists of whole groups.
    pub(super) strip: usize,
}

/// The memory and the state of one run of a fused loop over elements.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// The memory of each column that is not in an input array: one per column of the loop.
    pub(super) memory: Vec<Memory>,
    /// Temporary memory of each column for one strip (block of elements). It holds presence bits whose place in the
    /// array does not begin at a word, and values that are then copied to the array by non-temporal stores.
    pub(super) staged: Vec<Memory>,
    /// For each column, true if its values are written by non-temporal stores.
    pub(super) is_far: Vec<bool>,
    /// For each column, memory for one value; used if all elements share a scalar value.
    pub(super) cells: Vec<Frame>,
    /// For each column, the shared pointer (`Arc`) of the spare array whose memory the column's new array uses; `None` if there was no spare array.
    pub(super) found: Vec<Option<Arc<Array>>>,
    /// The scratch memory of each compiled function of the loop.
    pub(super) scratch: Vec<Scratch>,
    pub(super) of: Arc<Variant>,
    /// A bit set of the columns that have presence bits in this compiled variant of the loop.
    pub(super) with_bits: u128,
    pub(super) context: Context,
    pub(super) columns: Vec<Column>,
    /// The pointers to the first element of each column: in its array, or in its memory for one strip (block of
    /// elements).
    pub(super) bases: Vec<ColumnPointers>,
    /// The pointers to the first element of the current strip (block of elements) in each column.
    pub(super) places: Vec<ColumnPointers>,
    /// The presence bits of an edge (the assignment of each element to a group or to none), for one strip (block of elements).
    pub(super) edge_bits: Vec<u64>,
    pub(super) accumulators: Vec<Accumulator>,
    pub(super) scanners: Vec<Scanner>,
    /// The bytes of the largest strip (block of elements) so far, if it was longer than usual because it contained a
    /// large group; else 0.
    pub(super) strip_bytes: u64,
    /// The bytes that accumulators (of reductions) and scanners (of scans) take for all groups.
    pub(super) group_bytes: u64,
    /// The workspaces of the other threads of the run.
    pub(super) others: Vec<Workspace>,
}

impl Workspace {
    /// The bytes of memory that depend on the groups: long strips (blocks of elements) in the workspaces of all
    /// threads, and the state of each group.
    pub(crate) fn kept_bytes(&self) -> u64 {
        let own = self.strip_bytes.saturating_add(self.group_bytes);
        self.others.iter().fold(own, |all, other| all.saturating_add(other.strip_bytes))
    }
}

impl SweepRunner {
    fn of(layout: SweepLayout) -> SweepRunner {
        SweepRunner { layout, variants: Cache::new(MOST_VARIANTS) }
    }

    /// The compiled functions for arrays of which some have presence bits: `with_bits` has a bit for each column, set if the column has presence
    /// bits. `None` if a plan has no compiled function.
    fn variant(&self, host: &ArrayHost<'_>, with_bits: u128) -> Option<Arc<Variant>> {
        let functions = |adds: bool| {
            let functions = self.functions(host, with_bits, adds)?;
            Some(Arc::new(Variant { functions, adds, strip: self.strip_rows(adds) }))
        };
        let is_summed = self.layout.lanes().iter().any(|lane| lane.sum.is_some());
        let make = || {
            // Not every player of plans can add to sums.
            let adding = if is_summed { functions(true) } else { None };
            let value = adding.or_else(|| functions(false));
            NewValue { stays: value.is_some(), value }
        };
        self.variants.get(hash_of(with_bits), |known| *known == with_bits, || with_bits, make)
    }

    /// The number of elements per strip (block of elements). It is large if the loop has only one stage, so that no
    /// stage passes values to another.
    fn strip_rows(&self, adds: bool) -> usize {
        let is_strip = |lane: &SweepColumn| lane.origin == Origin::Strip && !lane.is_added(adds);
        let is_seen = |work: &&Work| !matches!(work, Work::Fold { x, .. } if self.layout.lanes()[*x].is_added(adds));
        let is_one =
            self.layout.work().iter().filter(is_seen).count() <= 1 && !self.layout.lanes().iter().any(is_strip);
        if is_one { LONG_STRIP_ROWS } else { STRIP_ROWS }
    }

    /// The compiled function of each of the loop's plans, for columns with the layouts that `with_bits` states. With
    /// `adds`, functions add elements that are only summed to sums, and do not store them. `None` if a plan has no such
    /// function.
    fn functions(&self, host: &ArrayHost<'_>, with_bits: u128, adds: bool) -> Option<Vec<Box<dyn BatchFunction>>> {
        let function = |work: &Work| {
            let Work::Map { part, inputs, outputs, .. } = work else { return None };
            let mut forms: SmallVec<[ColumnForm; 8]> = inputs.iter().map(|port| self.form(*port, with_bits)).collect();
            forms.extend(outputs.iter().map(|lane| {
                let lane = &self.layout.lanes()[*lane];
                let form = lane.storage.form(lane.has_bits);
                if adds && lane.sum.is_some() { ColumnForm { data: DataForm::Chains, ..form } } else { form }
            }));
            let made = host.function(*part, &forms);
            // A function of another plan, or for other columns, cannot be used.
            Some(made.filter(|made| self.is_made_for(made.made_for(), inputs, outputs, &forms)))
        };
        self.layout.work().iter().filter_map(function).collect()
    }

    /// Returns true if `made` describes a function for columns with the layouts `forms`, whose elements have the types
    /// of `inputs` and `outputs`.
    fn is_made_for(
        &self,
        made: &FunctionColumns,
        inputs: &[PlanInput],
        outputs: &[usize],
        forms: &[ColumnForm],
    ) -> bool {
        let of_inputs = inputs.iter().map(|port| (self.layout.lanes()[port.lane].scalar, port.is_optional));
        let of_outputs =
            outputs.iter().map(|lane| (self.layout.lanes()[*lane].scalar, self.layout.lanes()[*lane].has_bits));
        let found = made.types.iter().map(|qtype| Some((qtype.scalar()?.representation(), qtype.is_optional())));
        let expected =
            of_inputs.chain(of_outputs).map(|(scalar, is_optional)| Some((scalar.representation(), is_optional)));
        made.forms[..] == *forms && found.eq(expected)
    }

    /// Returns true if a plan must read presence bits of the column of `port`, which is an input of the plan. `with_bits` is the bit set of the
    /// arrays that have presence bits.
    pub(super) fn has_bits(&self, port: PlanInput, with_bits: u128) -> bool {
        let lane = &self.layout.lanes()[port.lane];
        port.is_optional
            && match lane.origin {
                Origin::Array | Origin::RandomAccess => with_bits >> lane.bit & 1 != 0,
                _ => lane.has_bits,
            }
    }

    fn form(&self, port: PlanInput, with_bits: u128) -> ColumnForm {
        let lane = &self.layout.lanes()[port.lane];
        if lane.origin != Origin::Shared {
            return lane.storage.form(self.has_bits(port, with_bits));
        }
        ColumnForm {
            data: if lane.storage == Storage::Nothing { DataForm::Nothing } else { DataForm::Values },
            presence: if port.is_optional { PresenceForm::Bytes } else { PresenceForm::All },
            is_shared: true,
            is_dense: false,
            ..lane.storage.form(false)
        }
    }

    /// Makes the memory for runs of the loop on arrays. `with_bits` is the bit set of the arrays that have presence bits. `None` if the loop cannot
    /// be run strip by strip (one block of elements after the other).
    pub(super) fn workspace(&self, host: &ArrayHost<'_>, with_bits: u128) -> Option<Box<Workspace>> {
        let variant = self.variant(host, with_bits)?;
        let accumulators = self.layout.accumulators().iter().map(|of| accumulator(of.gathers, of.scalar));
        let scanners = self.layout.scanners().iter().map(|of| scanner(of.scan, of.scalar));
        let memory = || self.layout.lanes().iter().map(|_| Memory::default()).collect();
        Some(Box::new(Workspace {
            memory: memory(),
            staged: memory(),
            is_far: Vec::new(),
            cells: self.layout.lanes().iter().map(|_| Frame::zeroed(16)).collect(),
            found: self.layout.lanes().iter().map(|_| None).collect(),
            scratch: variant.functions.iter().map(|function| Scratch::new(&function.scratch())).collect(),
            of: variant,
            with_bits,
            context: host.context(),
            columns: Vec::new(),
            bases: Vec::new(),
            places: Vec::new(),
            edge_bits: Vec::new(),
            accumulators: accumulators.collect::<Option<_>>()?,
            scanners: scanners.collect::<Option<_>>()?,
            strip_bytes: 0,
            group_bytes: 0,
            others: Vec::new(),
        }))
    }

    /// The bytes of memory that machine code takes.
    fn memory_bytes(&self) -> usize {
        let code = |variant: &Option<Arc<Variant>>| -> u64 {
            let functions = variant.iter().flat_map(|variant| &variant.functions);
            functions.map(|function| function.memory_bytes() as u64).sum()
        };
        size_of::<SweepRunner>() + usize::try_from(self.variants.sum(code)).unwrap_or(usize::MAX)
    }
}
