//! Inputs that compiled code requests from a loader during an evaluation, when it first needs them, and the memory that
//! stores their values until the evaluation ends.

use crate::Error;
use crate::binding::{InputSource, Load, Source, no_data};
use cembra_engine::{InputsView, OnDemandLeaves};
use cembra_plan::Input;
use cembra_prepare::{Kind, TypedModel, ask_for, is_askable};
use cembra_runtime::{FramePtr, QType, Slot};
use cembra_value::{Budget, ValueRef};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The inputs of a model that is compiled for a loader, and the source of each input. Inputs are bound to the loader
/// early in preparation, before the nodes of the graph are assigned to branches and loops.
pub(crate) struct LoaderInputs {
    /// The name and type of each input, in the program's order.
    pub(crate) inputs: Vec<(Arc<str>, QType)>,
    /// The source of each input, by the index of the input's leaf. An input is removed once its location is decided.
    sources: BTreeMap<u32, InputSource>,
    asked: Option<OnDemandLeaves>,
}

impl LoaderInputs {
    /// Binds the inputs that the model needs to the loader `source`, and changes the model so that it requests the inputs that are read on demand.
    ///
    /// # Errors
    /// If the source does not know an input or fails, or if a limit is exceeded.
    pub(crate) fn bind(model: &mut TypedModel, source: &dyn Source, budget: &Budget) -> Result<LoaderInputs, Error> {
        let needed = model.needed();
        let leaf = |id: cembra_prepare::Id| match model.graph.kind(id) {
            Kind::Leaf(leaf) if needed[id.index()] => Some(leaf),
            _ => None,
        };
        let mut leaves: Vec<u32> = model.graph.ids().filter_map(leaf).collect();
        leaves.sort_unstable();
        let inputs: Vec<_> = leaves.iter().map(|leaf| model.leaves[*leaf as usize].clone()).collect();
        let strange: Vec<_> =
            inputs.iter().filter(|(name, _)| !source.knows(name)).map(|(name, _)| (&**name, None)).collect();
        if !strange.is_empty() {
            return Err(no_data(&strange, source));
        }
        let (mut sources, mut asked) = (BTreeMap::new(), Vec::new());
        for (leaf, (name, qtype)) in leaves.into_iter().zip(&inputs) {
            let bound = source.bind(name, qtype)?;
            if matches!(bound, InputSource::OnDemand(_)) && is_askable(qtype) {
                asked.push(leaf);
            }
            sources.insert(leaf, bound);
        }
        let asked = if asked.is_empty() { None } else { Some(ask_for(model, &asked, budget)?) };
        Ok(LoaderInputs { inputs, sources, asked })
    }

    /// Removes and returns the source of the input with the index `leaf`; `None` if there is no such input.
    pub(crate) fn take(&mut self, leaf: u32) -> Option<InputSource> {
        self.sources.remove(&leaf)
    }

    /// Returns the inputs that are read on demand: all inputs that `take` has not removed. `None` if the model requests
    /// no inputs. `model` has the name and type of each input. `leaves` has the plan's inputs for which `take` returned
    /// `None`, each with its slot. These are the values that every evaluation needs, and the view (an `InputsView`)
    /// from which the plan requests the other values.
    pub(crate) fn into_on_demand(
        self,
        model: &[(Arc<str>, QType)],
        leaves: &[(&Input, u32)],
    ) -> Option<OnDemandInputs> {
        let asked = self.asked?;
        let view = leaves.iter().find(|(input, _)| input.leaf == asked.view).map(|(_, slot)| *slot);
        let (mut inputs, mut at) = (Vec::with_capacity(self.sources.len()), BTreeMap::new());
        let mut size = 0;
        for (leaf, source) in self.sources {
            let (InputSource::OnDemand(read) | InputSource::Read(read)) = source else { continue };
            let (name, qtype) = model[leaf as usize].clone();
            let layout = qtype.layout();
            let offset = layout.align_up(size);
            size = offset + layout.size;
            at.insert(leaf, (inputs.len() as u32, offset));
            inputs.push(Load { read, name, qtype, slot: offset });
        }
        if inputs.is_empty() {
            return None;
        }
        let mut values = vec![None; asked.values.keys().max().map_or(0, |most| *most as usize + 1)];
        for (number, value) in &asked.values {
            values[*number as usize] =
                at.get(&value.input).map(|(input, offset)| ValuePlace { input: *input, offset: offset + value.offset });
        }
        let needed = leaves.iter().filter(|(input, _)| input.leaf != asked.view);
        let needed = needed.map(|(input, slot)| FrameValue {
            number: input.leaf,
            slot: *slot,
            size: model[input.leaf as usize].1.layout().size,
        });
        Some(OnDemandInputs { needed: needed.collect(), inputs: inputs.into(), values: values.into(), view, size })
    }
}

/// The inputs that a model requests during an evaluation, each at most once.
pub(crate) struct OnDemandInputs {
    /// The inputs that are read on demand. The slot of each is its offset in the memory of values.
    inputs: Box<[Load]>,
    /// The location of each value in the memory of values, by the number with which the plan requests it.
    values: Box<[Option<ValuePlace>]>,
    /// The struct values that every evaluation needs. They are copied to the frame before the call.
    needed: Box<[FrameValue]>,
    /// The slot for the address of the struct (an `InputsView`) whose function compiled code calls to request a value;
    /// `None` if every evaluation needs all values.
    view: Option<u32>,
    /// The total size of all values in bytes.
    size: u32,
}

/// The location of a value that a plan can request.
#[derive(Clone, Copy)]
struct ValuePlace {
    /// The index of the input that the value belongs to.
    input: u32,
    /// The offset of the value in the memory of values.
    offset: u32,
}

/// A value that is copied to a slot of the frame before the plan is called.
struct FrameValue {
    number: u32,
    slot: u32,
    size: u32,
}

/// The memory for the values of inputs that were requested on demand. It is reused by the next evaluation.
pub(crate) struct LoadedValues {
    values: Vec<u64>,
    /// For each input, the number of the evaluation that last read it.
    read_in: Vec<u64>,
    run: u64,
}

impl LoadedValues {
    pub(crate) const fn memory_bytes(&self) -> usize {
        (self.values.capacity() + self.read_in.capacity()) * size_of::<u64>()
    }
}

/// The state of an evaluation that reads inputs on demand: the row, the inputs, and the memory for their values.
struct InputReader<'e> {
    of: &'e OnDemandInputs,
    row: *const u8,
    memory: &'e mut LoadedValues,
    kept: &'e mut Vec<ValueRef<'static>>,
    error: Option<Error>,
}

impl OnDemandInputs {
    /// Calls a plan that requests inputs from the row at `row`.
    ///
    /// # Errors
    /// If an accessor fails for an input that was needed, if its value does not fit the input's type, or if the call fails.
    ///
    /// # Safety
    /// FIELD-TABLE (`docs/safety.md`): `row` must point to a row of the accessors' type, borrowed for the call. FRAME-SLOT: the frame must belong to
    /// the plan. STRING-VIEW: values that are put into `kept` must stay there until outputs are read.
    pub(crate) unsafe fn run(
        &self,
        (memory, kept): (&mut Option<Box<LoadedValues>>, &mut Vec<ValueRef<'static>>),
        row: *const u8,
        frame: FramePtr,
        call: impl FnOnce() -> Result<(), Error>,
    ) -> Result<(), Error> {
        let memory = &mut **memory.get_or_insert_with(|| {
            let values = vec![0; (self.size as usize).div_ceil(size_of::<u64>())];
            LoadedValues { values, read_in: vec![0; self.inputs.len()], run: 0 }.into()
        });
        memory.run += 1;
        let mut reading = InputReader { of: self, row, memory, kept, error: None };
        for FrameValue { number, slot, size } in &self.needed {
            // SAFETY: FIELD-TABLE, promised by the caller.
            let value = unsafe { reading.value(*number) };
            if value.is_null() {
                return Err(reading.failure());
            }
            // SAFETY: FRAME-SLOT: value and slot are of one type, which has this size.
            unsafe { FramePtr::from_raw(value.cast_mut()).copy_to(0, frame, *slot, *size) };
        }
        let Some(slot) = self.view else { return call() };
        let reader: *mut InputReader<'_> = &raw mut reading;
        let view = InputsView { reader: reader.cast(), read: InputReader::read };
        // SAFETY: FRAME-SLOT: the slot is that of an address.
        unsafe { frame.write(Slot::at(slot), (&raw const view) as u64) };
        let ran = call();
        match reading.error.take() {
            Some(error) => Err(error),
            None => ran,
        }
    }

    /// The bytes of heap memory that this struct owns.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of_val(&*self.inputs) + size_of_val(&*self.values) + size_of_val(&*self.needed)
    }
}

impl InputReader<'_> {
    /// Returns the address of the value `number`, or null if it cannot be read. Compiled code calls this through
    /// [`InputsView::read`].
    ///
    /// # Safety
    /// COLUMN, as for [`InputsView::read`]: `reader` is the address of the inputs of an evaluation that calls this.
    unsafe fn read(reader: *mut (), number: u32) -> *const u8 {
        // SAFETY: COLUMN and FIELD-TABLE, promised by the caller.
        unsafe { (*reader.cast::<InputReader<'_>>()).value(number) }
    }

    /// Returns the address of the value `number`. On the first request of an evaluation, reads the value with its
    /// accessor; null if that fails.
    ///
    /// # Safety
    /// FIELD-TABLE: the row is borrowed for the call.
    #[inline]
    unsafe fn value(&mut self, number: u32) -> *const u8 {
        let Some(&Some(ValuePlace { input, offset })) = self.of.values.get(number as usize) else {
            return std::ptr::null();
        };
        let values = FramePtr::from_raw(self.memory.values.as_mut_ptr().cast());
        let read_in = &mut self.memory.read_in[input as usize];
        if *read_in != self.memory.run {
            // SAFETY: FIELD-TABLE, promised by the caller. FRAME-SLOT: the memory has room for each input at its offset.
            if let Err(error) = unsafe { self.of.inputs[input as usize].write(self.row, values, self.kept) } {
                self.error = Some(error);
                return std::ptr::null();
            }
            *read_in = self.memory.run;
        }
        values.as_ptr().wrapping_add(offset as usize)
    }

    #[cold]
    fn failure(&mut self) -> Error {
        self.error.take().unwrap_or_else(|| Error::values("an input cannot be read"))
    }
}
