//! Evaluates a model from JSON text to JSON text: an object's fields become the inputs, the outputs become an object.
//! The text is read in one pass, directly into the memory of the compiled code: slots, columns and dictionaries. If
//! this pass rejects a text, the text is read value by value, as [`JsonRows`] does, and the answer is written as
//! [`Json`] does. That takes longer, but gives the same answers, and errors with precise messages.

mod answer;
mod map;
mod target;

use super::place::Text;
use super::{JsonRow, JsonRows, is_json};
use crate::binding::listener::{Listener, Setter};
use crate::loaders::LoaderRow;
use crate::pool::Evaluator;
use crate::{Error, Executor, Model, ModelExecutor, Options, RunOptions};
use answer::JsonLayout;
use cembra_engine::{InputPath, LoopLeaf, LoopOutput, LoopPlan, LoopRoom, MapView, check_token};
use cembra_runtime::{Cancellation, FramePtr, Names, QType, Slot};
use cembra_value::{Code, Diagnostic};
use map::{JsonMap, MOST_KEPT};
use serde::de::Deserializer as _;
use std::collections::HashMap;
use std::sync::Arc;
use target::{Memory, Object, ObjectTarget, Plan};

/// The bytes of the JSON answer to one run.
#[derive(Debug, Default)]
pub(crate) struct Answer(Vec<u8>);

/// A listener that writes the outputs of a run to an [`Answer`].
struct AnswerListener;

impl Listener<Answer> for AnswerListener {
    fn knows(&self, _: &str) -> bool {
        true
    }

    fn names(&self) -> Vec<String> {
        Vec::new()
    }

    fn bind(&self, name: &str, qtype: &QType) -> Result<Setter<Answer>, Error> {
        if !is_json(qtype) {
            let message = format!("output `{name}` is {qtype}, which cannot be written as JSON");
            return Err(Diagnostic::new(Code::Binding, message).into());
        }
        let keys = [true, false].map(|is_first| answer::key(name, is_first));
        Ok(Setter::new(move |Answer(out): &mut Answer, value| {
            out.extend_from_slice(&keys[usize::from(!out.is_empty())]);
            answer::value(out, &value)
        }))
    }
}

/// A compiled model with the memory of one thread. It evaluates a JSON object of inputs to a JSON object of outputs: see [`Model::json_executor`]. A
/// clone shares the code and has its own memory.
pub struct JsonExecutor {
    /// The executor that reads and writes value by value. It owns the frame and the context.
    executor: ModelExecutor<LoaderRow<JsonRow>, (), Answer>,
    row: JsonRow,
    pass: Option<Arc<Pass>>,
    answer: Answer,
    maps: Vec<JsonMap>,
    counts: Vec<usize>,
    texts: Vec<Box<str>>,
    runs_by_value: u64,
}

/// The plan for reading a text in one pass and writing its answer.
#[derive(Debug)]
struct Pass {
    inputs: ObjectTarget,
    maps: Vec<JsonMap>,
    /// The slots of the frame for dictionaries, each with the index of its dictionary.
    views: Vec<(u32, usize)>,
    lists: usize,
    /// For each output, the bytes of the answer up to the end of the output's key, and the source of its value.
    outputs: Vec<(Vec<u8>, AnswerPart)>,
}

/// The source of an output's value, and the way to write the value as JSON.
#[derive(Debug)]
enum AnswerPart {
    /// The output is the value in a slot of the frame.
    Slot(u32, JsonLayout),
    /// The output is an array of a column's elements: the indices of the column and of the list with the same number of
    /// elements, the bytes per element, and the way to write an element.
    Elements(usize, usize, usize, JsonLayout),
    /// The output is an array of objects whose fields are columns: the index of the list with the same number of elements, and for each field the
    /// bytes of its key and its column.
    Objects(usize, Vec<(Vec<u8>, AnswerPart)>),
}

impl Model {
    /// Compiles the model for JSON: an object has the inputs as fields, and the answer is an object of all outputs. Values are read as [`JsonRows`]
    /// reads them, each number rounded once, and written as [`Json`](crate::json::Json) writes them. Keys that are not inputs are skipped. Their values
    /// must be JSON, and may nest to any depth, because skipping uses no stack. The key of an input must not occur twice.
    ///
    /// ```
    /// use cembra::{Model, Options};
    ///
    /// let model = Model::parse(
    ///     "numbers f64
    ///      input items: [{sku: text, price: f64, count: i64}]; input rates: dict[text, f64]; input currency: text
    ///      let nets = items.price * items.count
    ///      output total = sum(nets) * lookup(currency, rates, 1.0)
    ///      output lines = map(fn(i) = {sku: i.sku, net: i.price * i.count}, items)",
    /// )?;
    /// let mut quote = model.json_executor(&Options::default())?;
    /// let answer = quote.run(
    ///     r#"{"currency": "EUR", "rates": {"EUR": 0.5}, "id": 7, "items": [{"sku": "a", "price": 2.5, "count": 4}]}"#,
    /// )?;
    /// assert_eq!(answer, r#"{"total":5.0,"lines":[{"sku":"a","net":10.0}]}"#);
    ///
    /// let error = quote.run(r#"{"currency": "EUR", "rates": {}, "items": [{"sku": "a", "price": "x", "count": 4}]}"#).unwrap_err();
    /// assert_eq!((error.code(), error.to_string().as_str()), ("values", "input `items.0.price` is f64, found \"x\""));
    /// # Ok::<(), cembra::Error>(())
    /// ```
    ///
    /// # Errors
    /// The errors of [`executor_between`](Model::executor_between). Also if JSON cannot express an output.
    pub fn json_executor(&self, options: &Options) -> Result<JsonExecutor, Error> {
        let executor =
            ModelExecutor::new(self, &crate::binding::GuardedLoader::new(&JsonRows), Some(&AnswerListener), options)?;
        let pass = Pass::of(&executor).map(Arc::new);
        Ok(JsonExecutor::of(executor, pass))
    }
}

impl JsonExecutor {
    fn of(executor: ModelExecutor<LoaderRow<JsonRow>, (), Answer>, pass: Option<Arc<Pass>>) -> JsonExecutor {
        let maps = pass.as_ref().map_or_else(Vec::new, |pass| pass.maps.clone());
        let counts = vec![0; pass.as_ref().map_or(0, |pass| pass.lists)];
        let (answer, texts) = (Answer::default(), Vec::new());
        JsonExecutor { executor, row: JsonRow::default(), pass, answer, maps, counts, texts, runs_by_value: 0 }
    }

    /// Evaluates the model on the JSON object `text`, and returns the outputs as a JSON object.
    ///
    /// # Errors
    /// If the text is not a JSON object, has the key of an input twice, or has a value of another type; or if the evaluation fails.
    pub fn run(&mut self, text: &str) -> Result<String, Error> {
        self.answer_to(text)?;
        // The writers of JSON write UTF-8.
        let made = str::from_utf8(&self.answer.0)
            .map_err(|_| Error::values("the results are not a text in UTF-8"))?
            .to_owned();
        self.trim();
        Ok(made)
    }

    /// Evaluates the model on the JSON object `text`, and replaces `answer` by the JSON object of the outputs. `answer` is unchanged if the
    /// evaluation fails. After the first calls, a text without escapes and with short lists is evaluated without an allocation.
    ///
    /// # Errors
    /// The errors of [`run`](JsonExecutor::run).
    pub fn run_into(&mut self, text: &str, answer: &mut String) -> Result<(), Error> {
        self.answer_to(text)?;
        // The writers of JSON write UTF-8.
        let made = String::from_utf8(std::mem::take(&mut self.answer.0));
        let made = made.map_err(|_| Error::values("the results are not a text in UTF-8"))?;
        // The next answer reuses the memory of the one that this replaces.
        self.answer.0 = std::mem::replace(answer, made).into_bytes();
        self.trim();
        Ok(())
    }

    /// Evaluates the model on the JSON object `text`, and writes the answer to `self.answer`.
    fn answer_to(&mut self, text: &str) -> Result<(), Error> {
        self.answer.0.clear();
        if !self.run_pass(text).map_err(|error| self.executor.failed(error))? {
            self.runs_by_value += 1;
            self.answer.0.clear();
            let names = self.executor.executor().inputs().iter().map(|input| &*input.name);
            self.row.read_for(text, names)?;
            self.executor.listen(&self.row, &mut self.answer)?;
        }
        self.answer.0.extend_from_slice(if self.answer.0.is_empty() { b"{}" } else { b"}" });
        Ok(())
    }

    /// Frees the memory of the answer and the dictionaries where it has more than `MOST_KEPT` bytes, after a large
    /// text.
    fn trim(&mut self) {
        if self.answer.0.capacity() > MOST_KEPT {
            self.answer = Answer::default();
        }
        self.maps.iter_mut().for_each(JsonMap::trim);
    }

    /// The number of runs of this executor that read the text value by value, which takes several times as long as one pass. These are runs that
    /// failed, runs with escapes in a key, and all runs of a model with arrays but without a plan for short lists. A clone begins with zero.
    #[must_use]
    pub const fn runs_by_value(&self) -> u64 {
        self.runs_by_value
    }

    /// Reads the JSON object `text` in one pass, evaluates the model and appends the answer to `self.answer`. Returns
    /// false if the text or the model does not allow that, or the evaluation fails; then the caller reads the text
    /// value by value.
    fn run_pass(&mut self, text: &str) -> Result<bool, Error> {
        let Some(pass) = &self.pass else { return Ok(false) };
        let parts = self.executor.parts();
        check_token(parts.context)?;
        let plan = parts.executor.inner().loops();
        let mut loops = plan.map(|plan| parts.lists.get_or_insert_with(|| plan.memory().into()));
        let frame = match &mut loops {
            Some(memory) => memory.frame(),
            None => parts.frame.ptr(),
        };
        self.texts.clear();
        self.counts.fill(0);
        let mut memory = Memory {
            frame,
            columns: loops.as_deref_mut().map(|memory| &mut **memory),
            counts: &mut self.counts,
            maps: &mut self.maps,
            array_bytes: parts.executor.inner().array_bytes(parts.memory),
            texts: &mut self.texts,
            text: Text::of(text),
        };
        let mut from = serde_json::Deserializer::from_str(text);
        let object = Object { object: &pass.inputs, memory: &mut memory, row: 0 };
        if from.deserialize_map(object).and_then(|()| from.end()).is_err() {
            return Ok(false);
        }
        let ran = match (plan, loops) {
            (Some(plan), Some(memory)) => {
                memory.counts.copy_from_slice(&self.counts);
                let array_bytes = parts.executor.inner().array_bytes(parts.memory);
                let is_taken = plan.takes(&memory.counts, LoopRoom::Items, array_bytes);
                parts.context.begin_run();
                // SAFETY: FRAME-SLOT: the slots are the plan's. COLUMN and STRING-VIEW: all inputs are written, of a text that outlives the call.
                let ran = unsafe {
                    match is_taken && pass.write_leaves(plan, memory, &self.maps) {
                        true => plan.call(memory, parts.context),
                        false => Ok(false),
                    }
                };
                parts.context.end_run();
                ran
            }
            _ => match parts.executor.inner().begin(parts.context) {
                // SAFETY: CALL: the frame is of this plan, and its inputs are written, of a text that outlives the call.
                Ok(model) => unsafe {
                    match parts.executor.inner().run(model, [frame; 3], parts.context) {
                        Err(ended) if ended.fault_kind().is_some_and(cembra_runtime::FaultKind::is_of_token) => {
                            Err(ended)
                        }
                        made => Ok(made.is_ok()),
                    }
                },
                Err(ended) => Err(ended),
            },
        };
        if !ran? {
            return Ok(false);
        }
        let lists = parts.lists.as_deref();
        let out = &mut self.answer.0;
        for (key, written) in &pass.outputs {
            out.extend_from_slice(key);
            let place = |column: usize| lists.map_or(std::ptr::null(), |memory| memory.written(column));
            // SAFETY: FRAME-SLOT and COLUMN: the call wrote slots and columns. STRING-VIEW: the texts that views refer to are alive.
            unsafe { written.write(out, frame, &self.counts, &place)? };
        }
        parts.lists.iter_mut().for_each(|memory| memory.trim());
        Ok(true)
    }

    /// Sets the cancellation token of later evaluations: they end with the fault `cancelled` once the token is cancelled. `None` removes it. A clone
    /// starts without a token. Other run options stay.
    pub fn set_cancellation(&mut self, token: Option<Cancellation>) {
        self.executor.set_cancellation(token);
    }

    /// Sets the token, deadline, threads and limits of later evaluations, in place of earlier options. A clone starts without them.
    pub fn set_run_options(&mut self, options: &RunOptions) {
        self.executor.set_run_options(options);
    }

    /// The bytes of memory of this executor. The memory that clones share is not counted.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        let maps: usize = self.maps.iter().map(JsonMap::memory_bytes).sum();
        let texts: usize = self.texts.iter().map(|text| text.len()).sum();
        self.executor.memory_bytes() + self.answer.0.capacity() + maps + texts + size_of_val(&*self.counts)
    }

    /// Returns the compiled model, which clones of this executor share.
    #[must_use]
    pub fn executor(&self) -> &Executor {
        self.executor.executor()
    }
}

impl Evaluator for JsonExecutor {
    fn set_run_options(&mut self, options: &RunOptions) {
        JsonExecutor::set_run_options(self, options);
    }
}

impl Clone for JsonExecutor {
    fn clone(&self) -> Self {
        JsonExecutor::of(self.executor.clone(), self.pass.clone())
    }
}

impl std::fmt::Debug for JsonExecutor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.executor.executor().inner().fmt_as("JsonExecutor", f)
    }
}

impl Pass {
    /// Returns the plan by which texts are read in one pass; `None` if an input or output has a type that one pass
    /// cannot read or write.
    fn of(executor: &ModelExecutor<LoaderRow<JsonRow>, (), Answer>) -> Option<Pass> {
        let loops = executor.executor().inner().loops();
        let is_whole = executor.executor().inner().is_whole();
        let moves = executor.field_copies()?;
        if is_whole && loops.is_none() {
            return None;
        }
        let mut plan = Plan::new(loops);
        let slots: HashMap<&str, u32> = moves.reads.iter().map(|load| (&*load.name, load.slot)).collect();
        let inputs = executor.executor().inputs();
        let names = Names::new(inputs.iter().map(|input| input.name.clone())).ok()?;
        let mut inputs = ObjectTarget { names, targets: Vec::with_capacity(inputs.len()) };
        for (at, input) in executor.executor().inputs().iter().enumerate() {
            let path = InputPath { input: at, fields: Vec::new() };
            let slot = slots.get(&*input.name).copied();
            inputs.targets.push(plan.target(&input.qtype, &path, slot, None)?);
        }
        let numbers: HashMap<&InputPath, usize> = plan.maps.iter().map(|(path, ..)| path).zip(0..).collect();
        let mut views = Vec::new();
        for (slot, _, leaf) in loops.iter().flat_map(|plan| plan.leaves()) {
            if let LoopLeaf::Map(path) = leaf {
                views.push((*slot, *numbers.get(path)?));
            }
        }
        let outputs = match loops {
            Some(plan) => plan.outputs().iter().map(|(qtype, output)| AnswerPart::of(plan, qtype, output)).collect(),
            None => {
                moves.tells.iter().map(|tell| Some(AnswerPart::Slot(tell.slot, JsonLayout::of(&tell.qtype)?))).collect()
            }
        };
        let outputs: Option<Vec<AnswerPart>> = outputs;
        let keys =
            executor.executor().outputs().iter().enumerate().map(|(at, output)| answer::key(&output.name, at == 0));
        Some(Pass {
            inputs,
            maps: plan.maps.iter().map(|(_, key, value)| JsonMap::new(*key, *value)).collect(),
            views,
            lists: loops.map_or(0, |plan| plan.lists().len()),
            outputs: keys.zip(outputs?).collect(),
        })
    }

    /// Writes the slots that describe lists and dictionaries to the plan: the length of each list, the address and
    /// stride of each column, and the address of each dictionary. Returns false if there is not enough memory for a
    /// column.
    ///
    /// # Safety
    /// FRAME-SLOT: the memory belongs to the plan.
    unsafe fn write_leaves(&self, plan: &LoopPlan, memory: &mut cembra_engine::LoopMemory, maps: &[JsonMap]) -> bool {
        let frame = memory.frame();
        for (slot, _, leaf) in plan.leaves() {
            let word = match leaf {
                LoopLeaf::Value(_) | LoopLeaf::Map(_) => continue,
                LoopLeaf::Count(list) => memory.counts[*list] as u64,
                LoopLeaf::Stride(column) => u64::from(plan.columns()[*column].element.layout().size),
                LoopLeaf::Base(column) => {
                    let of = &plan.columns()[*column];
                    let count = memory.counts[of.list];
                    let Some(room) = memory.room(*column, of.element.layout().size as usize, count) else {
                        return false;
                    };
                    room as u64
                }
            };
            // SAFETY: FRAME-SLOT, promised by the caller: the slot is of a type of this width.
            unsafe { frame.write(Slot::at(*slot), word) };
        }
        memory.maps.clear();
        // Views must not move once their addresses are in use.
        memory.maps.reserve(self.views.len());
        for (slot, map) in &self.views {
            memory.maps.push(MapView { map: std::ptr::from_ref(&maps[*map]).cast(), find: JsonMap::find });
            let view = memory.maps.last().map_or(0, |view| std::ptr::from_ref(view) as u64);
            // SAFETY: FRAME-SLOT, promised by the caller.
            unsafe { frame.write(Slot::at(*slot), view) };
        }
        true
    }
}

impl AnswerPart {
    fn of(plan: &LoopPlan, qtype: &QType, output: &LoopOutput) -> Option<AnswerPart> {
        // Types nest only as deep as the text that spelled them.
        Some(match (output, qtype) {
            (LoopOutput::Value(at), _) => {
                let (slot, qtype) = &plan.made()[*at];
                AnswerPart::Slot(*slot, JsonLayout::of(qtype)?)
            }
            (LoopOutput::Column(at), _) => {
                let of = &plan.columns()[*at];
                AnswerPart::Elements(*at, of.list, of.element.layout().size as usize, JsonLayout::of(&of.element)?)
            }
            (LoopOutput::Tuple(parts), QType::Tuple(fields)) => {
                fields.names()?;
                qtype.element()?;
                let part = |(at, (part, of)): (usize, (&LoopOutput, &QType))| {
                    Some((answer::key(&fields.label(at), at == 0), AnswerPart::of(plan, of, part)?))
                };
                let parts = parts.iter().zip(fields.iter()).enumerate().map(part).collect::<Option<Vec<_>>>()?;
                // Structs inside of a list's structs are rare, and are written value by value.
                let Some((_, AnswerPart::Elements(_, list, ..))) = parts.first() else { return None };
                let is_flat = parts.iter().all(|(_, part)| matches!(part, AnswerPart::Elements(..)));
                AnswerPart::Objects(*list, is_flat.then_some(parts)?)
            }
            _ => return None,
        })
    }

    /// Appends the value of an output to `out` as JSON. `counts` has the length of each list, and `place` returns the
    /// address of a column.
    ///
    /// # Errors
    /// The errors of [`answer::value`].
    ///
    /// # Safety
    /// FRAME-SLOT and COLUMN: slots and columns were written. STRING-VIEW: the texts that views refer to are alive.
    unsafe fn write(
        &self,
        out: &mut Vec<u8>,
        frame: FramePtr,
        counts: &[usize],
        place: &dyn Fn(usize) -> *const u8,
    ) -> Result<(), Error> {
        // SAFETY: FRAME-SLOT, COLUMN and STRING-VIEW, promised by the caller.
        unsafe {
            match self {
                AnswerPart::Slot(slot, form) => form.write(out, frame, *slot)?,
                AnswerPart::Elements(_, list, ..) => {
                    out.push(b'[');
                    for at in 0..counts[*list] {
                        if at > 0 {
                            out.push(b',');
                        }
                        self.write_element(out, at, place)?;
                    }
                    out.push(b']');
                }
                AnswerPart::Objects(list, fields) => {
                    out.push(b'[');
                    for at in 0..counts[*list] {
                        if at > 0 {
                            out.push(b',');
                        }
                        for (key, field) in fields {
                            out.extend_from_slice(key);
                            field.write_element(out, at, place)?;
                        }
                        out.push(b'}');
                    }
                    out.push(b']');
                }
            }
        }
        Ok(())
    }

    /// Appends the element `at` of a column to `out` as JSON. `place` returns the address of a column.
    ///
    /// # Errors
    /// The errors of [`answer::value`].
    ///
    /// # Safety
    /// COLUMN: the call wrote the column, which has an element at `at`. STRING-VIEW: the texts of the element are alive.
    unsafe fn write_element(
        &self,
        out: &mut Vec<u8>,
        at: usize,
        place: &dyn Fn(usize) -> *const u8,
    ) -> Result<(), Error> {
        let AnswerPart::Elements(column, _, size, form) = self else { return Ok(()) };
        let element = place(*column).wrapping_add(at * size).cast_mut();
        // SAFETY: COLUMN and STRING-VIEW, promised by the caller.
        unsafe { form.write(out, FramePtr::from_raw(element), 0) }
    }
}
