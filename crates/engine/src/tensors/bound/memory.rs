//! The memory of a bound plan: the inputs of a run, and slots, which are memory of the plan itself. A slot is used again once no later step reads its
//! value.

use crate::tensors::evaluator::TensorHost;
use crate::tensors::lines::InputLine;
use crate::tensors::product::ProductCounters;
use cembra_runtime::Scalar;
use cembra_tensor::{Axis, Data, DataMut, Layout, Strides, Tensor, TensorBytes, TensorErrorKind};
use cembra_value::Error;
use cembra_value::tensor::element_bytes;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use triomphe::Arc;

/// The fewest bytes for which the memory of a slot is freed after a run, and not kept for the next run.
const LARGE: usize = 1 << 16;

/// The fewest bytes for which a worker's local memory is freed after a run. Most local memory is smaller, and is kept.
const LARGE_LOCAL: u64 = 1 << 20;

/// The memory that contains a value: an input, a slot of the plan, or local memory of a worker.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum ValueOrigin {
    /// The value is the input of the plan with this index.
    Input(u32),
    /// The value is in the slot of the plan with this index.
    Slot(u32),
    /// The value is in local memory of a worker, with this index. A worker computes pieces (parts of the value) of a
    /// step.
    Local(u32),
}

/// The memory that contains a value, and the layout in which a step reads it. Positions are counted from the value's first element.
#[derive(Clone, Debug)]
pub(super) struct StridedView {
    pub(super) place: ValueOrigin,
    pub(super) layout: Layout,
}

/// An operand as it is read for pieces of an index space. The position of its first element depends on the piece.
#[derive(Clone, Debug)]
pub(super) struct Operand {
    pub(super) place: ValueOrigin,
    offset: usize,
    /// For each index that selects a piece, the number of elements by which the operand's first element moves from one
    /// index to the next.
    shifts: SmallVec<[isize; 4]>,
    /// The operand's stride along each axis of the piece of the index space.
    pub(super) strides: Strides,
}

impl Operand {
    /// Makes the operand for pieces that begin at any indices of the axes `pieces`. `seen` is the operand's view in the whole index space.
    pub(super) fn of(seen: &StridedView, pieces: &[Axis]) -> Operand {
        let (strides, offset) = (seen.layout.strides(), seen.layout.offset());
        let shifts = pieces.iter().map(|axis| strides[usize::from(*axis)]).collect();
        Operand { place: seen.place, offset, shifts, strides: strides.into() }
    }

    /// Makes the operand for pieces of an index space that begin at indices of one axis. From one index to the next,
    /// the operand's first element moves by `shift` elements.
    pub(super) fn along(seen: &StridedView, shift: isize) -> Operand {
        Operand { shifts: SmallVec::from_elem(shift, 1), ..Operand::of(seen, &[]) }
    }

    /// Makes the operand for a value that is computed anew for each piece of an index space. A piece is selected by
    /// `pieces` indices.
    pub(super) fn of_piece(seen: &StridedView, pieces: usize) -> Operand {
        Operand { shifts: SmallVec::from_elem(0, pieces), ..Operand::of(seen, &[]) }
    }

    /// Returns the operand with its axes in the order `axes`, for pieces of a piece. A smaller piece is selected by the
    /// indices that select the piece, followed by the smaller piece's first index along each axis.
    pub(super) fn turned(&self, axes: &[usize]) -> Operand {
        let strides: Strides = axes.iter().map(|axis| self.strides[*axis]).collect();
        let shifts = self.shifts.iter().chain(&strides).copied().collect();
        Operand { shifts, strides, ..*self }
    }

    /// Returns the operand with its first `axes` axes unchanged, and all others replaced by one axis with the stride `step`.
    pub(super) fn with_line(&self, axes: usize, step: isize) -> Operand {
        let last = |own: &[isize]| own[..axes].iter().copied().chain([step]).collect();
        let strides: Strides = last(&self.strides);
        Operand { shifts: strides.iter().copied().collect(), strides, ..*self }
    }

    /// Returns true if `other` has the same memory, offset and first stride as this operand.
    pub(super) fn lies_as(&self, other: &Operand) -> bool {
        self.place == other.place && self.offset == other.offset && self.strides.first() == other.strides.first()
    }

    /// The position of the element at `index` of the piece of the index space that begins at `starts`, counted from the
    /// value's first element.
    pub(super) fn position(&self, starts: &[usize], index: &[usize]) -> isize {
        let along =
            |at: isize, (stride, index): (&isize, &usize)| at.wrapping_add(stride.wrapping_mul(index.cast_signed()));
        let first = self.shifts.iter().zip(starts).fold(self.offset.cast_signed(), along);
        self.strides.iter().zip(index).fold(first, along)
    }

    /// The position in memory of the operand's first element, for the piece of the index space that begins at `starts`.
    pub(super) fn first(&self, memory: &Memory<'_>, starts: &[usize]) -> usize {
        self.shifted(memory.sources.base(self.place), starts)
    }

    /// Returns the operand's memory, and the position of its first element for the piece of the index space that begins
    /// at `starts`.
    #[inline]
    pub(super) fn begin<'d>(
        &self,
        sources: &'d Sources<'_>,
        locals: &'d [Data],
        starts: &[usize],
    ) -> Result<(&'d Data, usize), Error> {
        let (data, offset) = match self.place {
            ValueOrigin::Input(at) => {
                let input = &sources.inputs[at as usize];
                (input.data(), input.layout().offset())
            }
            other => (sources.data(locals, other)?, 0),
        };
        Ok((data, self.shifted(offset, starts)))
    }

    /// Returns each operand as a line (array of elements at equal distances) in an input; `None` if an operand is not
    /// an input, or if one of `inputs` is not read by any operand.
    pub(super) fn lines(operands: &[Operand], inputs: &[(Scalar, Layout)]) -> Option<Vec<InputLine>> {
        let line = |operand: &Operand| match operand.place {
            ValueOrigin::Input(at) => Some(InputLine::of(at as usize, operand.offset, &inputs.get(at as usize)?.1)),
            ValueOrigin::Slot(_) | ValueOrigin::Local(_) => None,
        };
        let lines = operands.iter().map(line).collect::<Option<Vec<InputLine>>>()?;
        (0..inputs.len()).all(|at| lines.iter().any(|line| line.input() == at)).then_some(lines)
    }

    /// The position of the first element, given the start of the value in its memory.
    #[inline]
    fn shifted(&self, offset: usize, starts: &[usize]) -> usize {
        let shift = |at: usize, (shift, start): (&isize, &usize)| at.wrapping_add_signed(shift * start.cast_signed());
        self.shifts.iter().zip(starts).fold(offset.wrapping_add(self.offset), shift)
    }
}

/// Memory of a bound plan for one value at a time. Later values use the memory again.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) scalar: Scalar,
    pub(super) len: usize,
    data: Option<Arc<Data>>,
}

/// The slots of a plan, while the plan is bound and slots are assigned to values.
#[derive(Clone, Debug, Default)]
pub(super) struct Slots {
    pub(super) all: Vec<Slot>,
    /// The free slots, whose values no later step reads, by type and size.
    free: FxHashMap<(Scalar, usize), Vec<u32>>,
}

impl Slots {
    /// Returns a slot for `len` elements of type `scalar`: a free slot of this size, or a new one.
    pub(super) fn take(&mut self, scalar: Scalar, len: usize) -> u32 {
        if let Some(slot) = self.free.get_mut(&(scalar, len)).and_then(Vec::pop) {
            return slot;
        }
        self.all.push(Slot { scalar, len, data: None });
        self.all.len() as u32 - 1
    }

    /// Makes a worker's local memory, with one empty entry for each slot.
    pub(super) fn locals(&self) -> Result<Locals, Error> {
        let memory = self.all.iter().map(|slot| Data::zeros(slot.scalar, 0)).collect::<Result<_, Error>>()?;
        Ok(Locals { memory, lens: self.all.iter().map(|slot| slot.len).collect() })
    }

    /// Marks a slot as free, because no later step reads its value.
    pub(super) fn release(&mut self, slot: u32) {
        let Slot { scalar, len, .. } = self.all[slot as usize];
        self.free.entry((scalar, len)).or_default().push(slot);
    }
}

/// The local memory of a worker, which computes pieces of a step. It has the values that one operation of the step
/// computes for a piece and that later operations read.
#[derive(Debug)]
pub(super) struct Locals {
    pub(super) memory: Vec<Data>,
    /// The number of elements of each memory during a run.
    lens: SmallVec<[usize; 4]>,
}

impl Locals {
    /// Returns the type and size of each entry of the local memory that is freed after a run (if `is_large`) or kept
    /// (otherwise).
    fn of_size(&self, is_large: bool) -> impl Iterator<Item = (Scalar, usize)> {
        let all = self.memory.iter().zip(&self.lens).map(|(data, len)| (data.scalar(), *len));
        all.filter(move |(scalar, len)| {
            let bytes = element_bytes(*scalar, &[*len]).unwrap_or(0);
            (bytes >= u128::from(LARGE_LOCAL)) == is_large
        })
    }

    /// Adds to `held` the bytes of all local memory.
    ///
    /// # Errors
    /// If the total exceeds the limit on bytes of `held`.
    pub(super) fn count_bytes(&self, held: &mut TensorBytes) -> Result<(), Error> {
        self.count_kept_bytes(held)?;
        self.of_size(true).try_for_each(|(scalar, len)| held.take(scalar, &[len]))
    }

    /// Adds to `held` the bytes of the local memory that is kept after a run.
    pub(super) fn count_kept_bytes(&self, held: &mut TensorBytes) -> Result<(), Error> {
        self.of_size(false).try_for_each(|(scalar, len)| held.take(scalar, &[len]))
    }

    /// Frees each entry of the local memory that is large.
    pub(super) fn shrink(&mut self) {
        for data in self.memory.iter_mut().filter(|data| data.bytes() >= LARGE_LOCAL) {
            *data = data.none();
        }
    }
}

impl Slot {
    /// The bytes of memory that the slot's value takes.
    pub(super) fn bytes(&self) -> usize {
        Data::element_size(self.scalar).unwrap_or(0).saturating_mul(self.len)
    }

    /// The memory that is in the slot; `None` if the slot is empty.
    pub(super) fn held(&self) -> Option<&Data> {
        self.data.as_deref()
    }

    /// Frees the memory in the slot if it is large.
    pub(super) fn shrink(&mut self) {
        if self.bytes() >= LARGE {
            self.data = None;
        }
    }

    /// Moves the slot's memory into a new tensor with this layout.
    pub(super) fn leave(&mut self, layout: &Layout) -> Result<Tensor, Error> {
        Tensor::from_shared(self.data.take().ok_or_else(not_computed)?, layout.clone())
    }

    /// Moves the slot's value into `tensor`, which has the same layout, and keeps that tensor's old memory for the next run.
    #[inline]
    pub(super) fn exchange(&mut self, tensor: &mut Tensor) -> Result<(), Error> {
        let data = self.data.take().ok_or_else(not_computed)?;
        self.data = Some(tensor.exchange(data)?);
        Ok(())
    }

    /// Takes the memory out of the slot, in order to write to it. The memory has `len` elements with unspecified values, and must be [put](Slot::put)
    /// back.
    pub(super) fn take(&mut self, len: usize) -> Result<Arc<Data>, Error> {
        if let Some(mut data) = self.data.take()
            && let Some(own) = Arc::get_mut(&mut data).filter(|own| own.scalar() == self.scalar)
        {
            if own.len() != len {
                own.resize(len);
            }
            return Ok(data);
        }
        Ok(Arc::new(Data::zeros(self.scalar, len)?))
    }

    /// Puts memory back into the slot.
    pub(super) fn put(&mut self, data: Arc<Data>) {
        self.data = Some(data);
    }
}

/// The memory that all workers of a step read: inputs and slots. This struct is passed by reference, because a copy that is made just after the
/// fields were written would have to wait for the stores.
#[derive(Clone, Copy)]
pub(super) struct Sources<'m> {
    pub(super) inputs: &'m [Tensor],
    pub(super) slots: &'m [Slot],
    /// The environment (host) of the run, which the worker asks whether the run was cancelled.
    pub(super) host: &'m TensorHost<'m>,
}

/// The memory that one worker of a step reads and writes during a run.
pub(super) struct Memory<'m> {
    pub(super) sources: &'m Sources<'m>,
    /// The worker's local memory, one entry for each local value.
    pub(super) locals: &'m mut [Data],
    /// Counts of the work that products have done; the worker adds its own work.
    pub(super) counters: &'m mut ProductCounters,
}

impl Memory<'_> {
    /// Returns the memory that contains the value at `place`.
    #[inline]
    pub(super) fn data(&self, place: ValueOrigin) -> Result<&Data, Error> {
        self.sources.data(self.locals, place)
    }

    /// Writes `len` elements to entry `local` of the worker's local memory.
    pub(super) fn write(
        &mut self,
        local: u32,
        len: usize,
        write: impl FnOnce(&mut Memory<'_>, DataMut<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let place = &mut self.locals[local as usize];
        let mut made = std::mem::replace(place, Data::Bool(Vec::new().into()));
        let room = if made.len() == len { Ok(()) } else { made.try_resize(len) };
        let written = room.and_then(|()| write(self, made.all_mut()));
        self.locals[local as usize] = made;
        written
    }
}

impl Sources<'_> {
    /// Returns the memory that contains the value at `place`, which may be in `locals`.
    #[inline]
    pub(super) fn data<'d>(&'d self, locals: &'d [Data], place: ValueOrigin) -> Result<&'d Data, Error> {
        match place {
            ValueOrigin::Input(at) => Ok(self.inputs[at as usize].data()),
            ValueOrigin::Slot(at) => self.slots[at as usize].data.as_deref().ok_or_else(not_computed),
            ValueOrigin::Local(at) => Ok(&locals[at as usize]),
        }
    }

    /// Returns the memory of an input or a slot. Returns an error for the local memory of a worker.
    pub(super) fn shared(&self, place: ValueOrigin) -> Result<&Arc<Data>, Error> {
        match place {
            ValueOrigin::Input(at) => Ok(self.inputs[at as usize].shared()),
            ValueOrigin::Slot(at) => self.slots[at as usize].data.as_ref().ok_or_else(not_computed),
            ValueOrigin::Local(_) => Err(not_computed()),
        }
    }

    /// Returns the position of an input's first element in its memory; 0 for other memory. Offsets of bound operands do not include it.
    fn base(&self, place: ValueOrigin) -> usize {
        match place {
            ValueOrigin::Input(at) => self.inputs[at as usize].layout().offset(),
            ValueOrigin::Slot(_) | ValueOrigin::Local(_) => 0,
        }
    }

    /// Makes a tensor that shares the memory of the value `seen`.
    pub(super) fn tensor(&self, seen: &StridedView) -> Result<Tensor, Error> {
        Tensor::from_shared(self.shared(seen.place)?.clone(), seen.layout.moved(self.base(seen.place)))
    }
}

/// Returns mutable access to memory that was taken from a slot.
pub(super) fn own(data: &mut Arc<Data>) -> Result<&mut Data, Error> {
    Arc::get_mut(data).ok_or_else(not_computed)
}

/// The error for a value that a step reads before it is computed.
#[cold]
pub(super) fn not_computed() -> Error {
    Error::tensors(TensorErrorKind::Evaluation, "a value was not computed")
}
