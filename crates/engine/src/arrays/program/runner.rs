//! What runs a sweep: its layout, the machine code of its plans, and the memory that runs use. Code is made for the forms of
//! columns, when they are first met, and kept. How strips go through the stages is in `sweep.rs`.

use super::host::ArrayHost;
use super::place::{ColumnPointers, Memory};
use crate::code::cache::{Cache, NewValue, hash_of};
use cembra_array::{ArrayProgram, Lane, Origin, Port, ProgramId, Storage, SweepLayout, Work};
use cembra_ops::{Accumulator, Scanner, accumulator, scanner};
use cembra_runtime::{
    BatchFunction, Column, ColumnForm, Context, DataForm, Frame, LONG_STRIP_ROWS, MadeFor, PresenceForm, STRIP_ROWS,
    SUM_BLOCK, Scratch,
};
use cembra_value::Array;
use smallvec::SmallVec;
use std::sync::Arc;

/// For how many choices of arrays with bits of presence functions are kept.
const MOST_VARIANTS: usize = 16;

/// Strips of shares and blocks begin together.
const _: () = assert!(SUM_BLOCK.is_multiple_of(LONG_STRIP_ROWS) && SUM_BLOCK.is_multiple_of(STRIP_ROWS));

/// What runs the sweeps of one program.
#[derive(Debug)]
pub(crate) struct SweepRunners {
    of: ProgramId,
    /// None for a sweep whose stages are to be run one by one.
    runners: Vec<Option<SweepRunner>>,
}

impl SweepRunners {
    /// What runs the sweeps of this program.
    pub(crate) fn of(program: &ArrayProgram) -> SweepRunners {
        let runners = program.sweep_layouts().into_iter().map(|layout| layout.map(SweepRunner::of)).collect();
        SweepRunners { of: program.id(), runners }
    }

    /// True if they are of this program.
    pub(super) fn are_of(&self, program: &ArrayProgram) -> bool {
        self.of == program.id()
    }

    /// What runs each sweep, if it is not to be run stage by stage.
    pub(super) fn all(&self) -> &[Option<SweepRunner>] {
        &self.runners
    }

    /// Bytes of memory that machine code takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.runners.iter().flatten().map(SweepRunner::memory_bytes).sum()
    }
}

/// A sweep, ready to be run.
#[derive(Debug)]
pub(super) struct SweepRunner {
    pub(super) layout: SweepLayout,
    /// By which arrays have bits of presence.
    variants: Cache<u128, Option<Arc<Variant>>>,
}

/// The functions of a sweep's plans, for columns of some forms.
#[derive(Debug)]
pub(super) struct Variant {
    pub(super) functions: Vec<Box<dyn BatchFunction>>,
    /// True if what is only summed is added to the sums of its accumulator, and not seen.
    pub(super) adds: bool,
    /// The elements of a strip, where strips need not hold groups.
    pub(super) strip: usize,
}

/// The memory and the state of one run of a sweep.
#[derive(Debug)]
pub(crate) struct Workspace {
    /// For each column that is made here.
    pub(super) memory: Vec<Memory>,
    /// For bits of each column that do not begin with a word, and for values that go past the caches.
    pub(super) staged: Vec<Memory>,
    /// Which columns' values go past the caches.
    pub(super) is_far: Vec<bool>,
    /// For each column, the memory of one value, if it is a scalar.
    pub(super) cells: Vec<Frame>,
    /// Memory of arrays that are made, as it was found.
    pub(super) found: Vec<Option<Arc<Array>>>,
    /// For each function of the variant.
    pub(super) scratch: Vec<Scratch>,
    pub(super) of: Arc<Variant>,
    /// The columns that have bits in the variant.
    pub(super) with_bits: u128,
    pub(super) context: Context,
    pub(super) columns: Vec<Column>,
    /// Where each column begins: its array, its memory for strips.
    pub(super) bases: Vec<ColumnPointers>,
    /// Where each column's strip lies.
    pub(super) places: Vec<ColumnPointers>,
    /// Bits of edges, of one strip.
    pub(super) edge_bits: Vec<u64>,
    pub(super) accumulators: Vec<Accumulator>,
    pub(super) scanners: Vec<Scanner>,
    /// Bytes of the strips of groups that are larger than strips are without.
    pub(super) strip_bytes: u64,
    /// Bytes of what accumulators and scanners have of all groups.
    pub(super) group_bytes: u64,
    /// Those of other threads.
    pub(super) others: Vec<Workspace>,
}

impl Workspace {
    /// The bytes of its group data, with those of the workspaces of other threads.
    pub(crate) fn kept_bytes(&self) -> u64 {
        let own = self.strip_bytes.saturating_add(self.group_bytes);
        self.others.iter().fold(own, |all, other| all.saturating_add(other.strip_bytes))
    }
}

impl SweepRunner {
    fn of(layout: SweepLayout) -> SweepRunner {
        SweepRunner { layout, variants: Cache::new(MOST_VARIANTS) }
    }

    /// The functions for arrays of which those with bits of presence have a bit set in `with_bits`, by their columns; none if
    /// a plan has no function.
    fn variant(&self, host: &ArrayHost<'_>, with_bits: u128) -> Option<Arc<Variant>> {
        let functions = |adds: bool| {
            let functions = self.functions(host, with_bits, adds)?;
            Some(Arc::new(Variant { functions, adds, strip: self.strip_rows(adds) }))
        };
        let is_summed = self.layout.lanes().iter().any(|lane| lane.sum.is_some());
        let make = || {
            // Not every player of plans adds up.
            let adding = if is_summed { functions(true) } else { None };
            let value = adding.or_else(|| functions(false));
            NewValue { stays: value.is_some(), value }
        };
        self.variants.get(hash_of(with_bits), |known| *known == with_bits, || with_bits, make)
    }

    /// How many elements a strip has: many, if one stage alone sees them and leaves nothing to another.
    fn strip_rows(&self, adds: bool) -> usize {
        let is_strip = |lane: &Lane| lane.origin == Origin::Strip && !lane.is_added(adds);
        let is_seen = |work: &&Work| !matches!(work, Work::Fold { x, .. } if self.layout.lanes()[*x].is_added(adds));
        let is_one =
            self.layout.work().iter().filter(is_seen).count() <= 1 && !self.layout.lanes().iter().any(is_strip);
        if is_one { LONG_STRIP_ROWS } else { STRIP_ROWS }
    }

    /// A function for each plan, of columns of the forms of such arrays.
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
            // What is of another plan, or other columns, is no function of these.
            Some(made.filter(|made| self.is_made_for(made.made_for(), inputs, outputs, &forms)))
        };
        self.layout.work().iter().filter_map(function).collect()
    }

    /// True if a function was made for columns of these forms, which hold what these ports do.
    fn is_made_for(&self, made: &MadeFor, inputs: &[Port], outputs: &[usize], forms: &[ColumnForm]) -> bool {
        let of_inputs = inputs.iter().map(|port| (self.layout.lanes()[port.lane].scalar, port.is_optional));
        let of_outputs =
            outputs.iter().map(|lane| (self.layout.lanes()[*lane].scalar, self.layout.lanes()[*lane].has_bits));
        let found = made.types.iter().map(|qtype| Some((qtype.scalar()?.representation(), qtype.is_optional())));
        let expected =
            of_inputs.chain(of_outputs).map(|(scalar, is_optional)| Some((scalar.representation(), is_optional)));
        made.forms[..] == *forms && found.eq(expected)
    }

    /// Whether a column has bits of presence that a plan is to read.
    pub(super) fn has_bits(&self, port: Port, with_bits: u128) -> bool {
        let lane = &self.layout.lanes()[port.lane];
        port.is_optional
            && match lane.origin {
                Origin::Array | Origin::Looked => with_bits >> lane.bit & 1 != 0,
                _ => lane.has_bits,
            }
    }

    fn form(&self, port: Port, with_bits: u128) -> ColumnForm {
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

    /// Memory for runs on arrays of which those with bits of presence have a bit set; none if strips cannot be.
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

    /// Bytes of memory that machine code takes.
    fn memory_bytes(&self) -> usize {
        let code = |variant: &Option<Arc<Variant>>| -> u64 {
            let functions = variant.iter().flat_map(|variant| &variant.functions);
            functions.map(|function| function.memory_bytes() as u64).sum()
        };
        size_of::<SweepRunner>() + usize::try_from(self.variants.sum(code)).unwrap_or(usize::MAX)
    }
}
