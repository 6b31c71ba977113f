//! Where a bound plan has its values: the inputs of a run, and memory of its own, which is used again where no later step reads it.

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

/// From how many bytes on a temporary is not kept from one run to the next.
const LARGE: usize = 1 << 16;

/// The same of what pieces leave for what follows them: most have less, so that it is there for the next run.
const LARGE_LOCAL: u64 = 1 << 20;

/// The place of a value in memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum ValueOrigin {
    /// An input.
    Input(u32),
    /// Memory of the plan.
    Slot(u32),
    /// Memory of who computes pieces of a step.
    Local(u32),
}

/// The place of a value, and the layout in which a step sees it. Positions count from the start of the value.
#[derive(Clone, Debug)]
pub(super) struct StridedView {
    pub(super) place: ValueOrigin,
    pub(super) layout: Layout,
}

/// What a step reads, seen from a piece of its index space: where the first element is depends on which piece it is.
#[derive(Clone, Debug)]
pub(super) struct Operand {
    pub(super) place: ValueOrigin,
    offset: usize,
    /// For each index that says which piece it is.
    shifts: SmallVec<[isize; 4]>,
    /// For each axis of the piece.
    pub(super) strides: Strides,
}

impl Operand {
    /// What is seen from all of an index space, as pieces of it see it that begin at indices of these axes.
    pub(super) fn of(seen: &StridedView, pieces: &[Axis]) -> Operand {
        let (strides, offset) = (seen.layout.strides(), seen.layout.offset());
        let shifts = pieces.iter().map(|axis| strides[usize::from(*axis)]).collect();
        Operand { place: seen.place, offset, shifts, strides: strides.into() }
    }

    /// What is seen from pieces that begin at indices of one axis, from one of which to the next it is so far.
    pub(super) fn along(seen: &StridedView, shift: isize) -> Operand {
        Operand { shifts: SmallVec::from_elem(shift, 1), ..Operand::of(seen, &[]) }
    }

    /// What is made anew for each piece. A piece is known by `pieces` indices.
    pub(super) fn of_piece(seen: &StridedView, pieces: usize) -> Operand {
        Operand { shifts: SmallVec::from_elem(0, pieces), ..Operand::of(seen, &[]) }
    }

    /// The same with the axes in this order, as pieces of those pieces see it, which begin at indices of all of them.
    pub(super) fn turned(&self, axes: &[usize]) -> Operand {
        let strides: Strides = axes.iter().map(|axis| self.strides[*axis]).collect();
        let shifts = self.shifts.iter().chain(&strides).copied().collect();
        Operand { shifts, strides, ..*self }
    }

    /// The same with the first `axes` axes as they are, and the others as one axis of this stride.
    pub(super) fn with_line(&self, axes: usize, step: isize) -> Operand {
        let last = |own: &[isize]| own[..axes].iter().copied().chain([step]).collect();
        let strides: Strides = last(&self.strides);
        Operand { shifts: strides.iter().copied().collect(), strides, ..*self }
    }

    /// True if another is the same elements, however they are seen.
    pub(super) fn lies_as(&self, other: &Operand) -> bool {
        self.place == other.place && self.offset == other.offset && self.strides.first() == other.strides.first()
    }

    /// The position, counted from where the value begins, of an index of the piece that begins at these indices.
    pub(super) fn position(&self, starts: &[usize], index: &[usize]) -> isize {
        let along =
            |at: isize, (stride, index): (&isize, &usize)| at.wrapping_add(stride.wrapping_mul(index.cast_signed()));
        let first = self.shifts.iter().zip(starts).fold(self.offset.cast_signed(), along);
        self.strides.iter().zip(index).fold(first, along)
    }

    /// The position of the first element.
    pub(super) fn first(&self, memory: &Memory<'_>, starts: &[usize]) -> usize {
        self.shifted(memory.sources.base(self.place), starts)
    }

    /// The memory, and the position of the first element there.
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

    /// The line that each of these is of its input; none if one is made, or not all inputs have one.
    pub(super) fn lines(operands: &[Operand], inputs: &[(Scalar, Layout)]) -> Option<Vec<InputLine>> {
        let line = |operand: &Operand| match operand.place {
            ValueOrigin::Input(at) => Some(InputLine::of(at as usize, operand.offset, &inputs.get(at as usize)?.1)),
            ValueOrigin::Slot(_) | ValueOrigin::Local(_) => None,
        };
        let lines = operands.iter().map(line).collect::<Option<Vec<InputLine>>>()?;
        (0..inputs.len()).all(|at| lines.iter().any(|line| line.input() == at)).then_some(lines)
    }

    /// The position behind which everything begins, moved to the first element.
    #[inline]
    fn shifted(&self, offset: usize, starts: &[usize]) -> usize {
        let shift = |at: usize, (shift, start): (&isize, &usize)| at.wrapping_add_signed(shift * start.cast_signed());
        self.shifts.iter().zip(starts).fold(offset.wrapping_add(self.offset), shift)
    }
}

/// Memory of a plan.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub(super) scalar: Scalar,
    pub(super) len: usize,
    data: Option<Arc<Data>>,
}

/// The slots of a plan, as they are handed out while it is bound.
#[derive(Clone, Debug, Default)]
pub(super) struct Slots {
    pub(super) all: Vec<Slot>,
    /// Those whose values no later step reads, by their types and sizes.
    free: FxHashMap<(Scalar, usize), Vec<u32>>,
}

impl Slots {
    /// Room for `len` elements: a free slot of this size, or a new one.
    pub(super) fn take(&mut self, scalar: Scalar, len: usize) -> u32 {
        if let Some(slot) = self.free.get_mut(&(scalar, len)).and_then(Vec::pop) {
            return slot;
        }
        self.all.push(Slot { scalar, len, data: None });
        self.all.len() as u32 - 1
    }

    /// Memory for all, which has no elements yet.
    pub(super) fn locals(&self) -> Result<Locals, Error> {
        let memory = self.all.iter().map(|slot| Data::zeros(slot.scalar, 0)).collect::<Result<_, Error>>()?;
        Ok(Locals { memory, lens: self.all.iter().map(|slot| slot.len).collect() })
    }

    /// Frees a slot whose value no later step reads.
    pub(super) fn release(&mut self, slot: u32) {
        let Slot { scalar, len, .. } = self.all[slot as usize];
        self.free.entry((scalar, len)).or_default().push(slot);
    }
}

/// Memory of who computes pieces of a step, for what these leave for what follows them.
#[derive(Debug)]
pub(super) struct Locals {
    pub(super) memory: Vec<Data>,
    /// How many elements each has once there were pieces.
    lens: SmallVec<[usize; 4]>,
}

impl Locals {
    /// Each by its type and its size, those that are dropped after a run or those that stay.
    fn of_size(&self, is_large: bool) -> impl Iterator<Item = (Scalar, usize)> {
        let all = self.memory.iter().zip(&self.lens).map(|(data, len)| (data.scalar(), *len));
        all.filter(move |(scalar, len)| {
            let bytes = element_bytes(*scalar, &[*len]).unwrap_or(0);
            (bytes >= u128::from(LARGE_LOCAL)) == is_large
        })
    }

    /// All of them are there.
    ///
    /// # Errors
    /// That is more than there may be.
    pub(super) fn hold(&self, held: &mut TensorBytes) -> Result<(), Error> {
        self.hold_small(held)?;
        self.of_size(true).try_for_each(|(scalar, len)| held.take(scalar, &[len]))
    }

    /// The same of those that stay after a run.
    pub(super) fn hold_small(&self, held: &mut TensorBytes) -> Result<(), Error> {
        self.of_size(false).try_for_each(|(scalar, len)| held.take(scalar, &[len]))
    }

    /// Drops what is large.
    pub(super) fn shrink(&mut self) {
        for data in self.memory.iter_mut().filter(|data| data.bytes() >= LARGE_LOCAL) {
            *data = data.none();
        }
    }
}

impl Slot {
    /// The bytes of the value.
    pub(super) fn bytes(&self) -> usize {
        Data::element_size(self.scalar).unwrap_or(0).saturating_mul(self.len)
    }

    /// What is there.
    pub(super) fn held(&self) -> Option<&Data> {
        self.data.as_deref()
    }

    /// Drops what is there if it is much.
    pub(super) fn shrink(&mut self) {
        if self.bytes() >= LARGE {
            self.data = None;
        }
    }

    /// What is there as a tensor, to which it is left.
    pub(super) fn leave(&mut self, layout: &Layout) -> Result<Tensor, Error> {
        Tensor::from_shared(self.data.take().ok_or_else(not_computed)?, layout.clone())
    }

    /// Gives the value to a tensor of the same layout, and keeps the memory of that tensor for the next run.
    #[inline]
    pub(super) fn exchange(&mut self, tensor: &mut Tensor) -> Result<(), Error> {
        let data = self.data.take().ok_or_else(not_computed)?;
        self.data = Some(tensor.exchange(data)?);
        Ok(())
    }

    /// The memory, to be written to, for `len` elements, which may be anything yet. It is to be [put](Slot::put) back.
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

    /// What is there from now on.
    pub(super) fn put(&mut self, data: Arc<Data>) {
        self.data = Some(data);
    }
}

/// What all who compute pieces of a step read. It is passed by reference: its fields copied by twos, just after each was written by itself,
/// would wait for all stores before.
#[derive(Clone, Copy)]
pub(super) struct Sources<'m> {
    pub(super) inputs: &'m [Tensor],
    pub(super) slots: &'m [Slot],
    /// The host of the run, which has its terms and says whether it may go on.
    pub(super) host: &'m TensorHost<'m>,
}

/// The memory of a run, as who computes pieces of a step has it.
pub(super) struct Memory<'m> {
    pub(super) sources: &'m Sources<'m>,
    /// What pieces leave for what follows them.
    pub(super) locals: &'m mut [Data],
    /// What products took.
    pub(super) counters: &'m mut ProductCounters,
}

impl Memory<'_> {
    /// What is in a place.
    #[inline]
    pub(super) fn data(&self, place: ValueOrigin) -> Result<&Data, Error> {
        self.sources.data(self.locals, place)
    }

    /// Writes `len` elements to memory of who computes pieces.
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
    /// What is in a place, which may be one of these of who computes pieces.
    #[inline]
    pub(super) fn data<'d>(&'d self, locals: &'d [Data], place: ValueOrigin) -> Result<&'d Data, Error> {
        match place {
            ValueOrigin::Input(at) => Ok(self.inputs[at as usize].data()),
            ValueOrigin::Slot(at) => self.slots[at as usize].data.as_deref().ok_or_else(not_computed),
            ValueOrigin::Local(at) => Ok(&locals[at as usize]),
        }
    }

    /// Returns the memory of an input or a slot. Memory of a piece's own is an error.
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

    /// Makes a tensor of a value, whose memory it shares.
    pub(super) fn tensor(&self, seen: &StridedView) -> Result<Tensor, Error> {
        Tensor::from_shared(self.shared(seen.place)?.clone(), seen.layout.moved(self.base(seen.place)))
    }
}

/// Memory that was taken, to be written to.
pub(super) fn own(data: &mut Arc<Data>) -> Result<&mut Data, Error> {
    Arc::get_mut(data).ok_or_else(not_computed)
}

#[cold]
pub(super) fn not_computed() -> Error {
    Error::tensors(TensorErrorKind::Evaluation, "a value that was not computed")
}
