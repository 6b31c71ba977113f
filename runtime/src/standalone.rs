//! Models compiled ahead of time: their evaluators, which need nothing but this crate and the object file. `cembra build` writes
//! the files; `interface.rs` has the agreement between them and this crate.

use crate::{
    Cancellation, Context, Fault, FaultKind, Frame, INTERFACE_REVISION, ObjectModel, STATUS_OK, Slot, Text,
    interface_fingerprint, math,
};
use std::fmt;
use std::marker::PhantomData;

/// The reason why this program cannot run a model of an object file.
#[repr(i32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Refusal {
    /// The object file was made for another revision of the interface to this crate, or for another layout under the same
    /// revision.
    Revision = 2,
    /// The thread's floating-point mode is not the default, so results would differ.
    FloatMode = 3,
}

impl Refusal {
    /// The refusal as a message: the problem, and a way to solve it.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Refusal::Revision => {
                "the object file was made for another version of the runtime: build both with the same cembra"
            }
            Refusal::FloatMode => {
                "the thread's floating-point mode is not the default (round to nearest, no flush to zero)"
            }
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl std::error::Error for Refusal {}

/// The fault that stopped an evaluation of a model from an object file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModelFault {
    kind: FaultKind,
    operator: Option<&'static str>,
    span: Option<(u32, u32)>,
    operands: [u64; 2],
    message: String,
}

impl ModelFault {
    /// The kind of the fault that stopped the evaluation.
    #[must_use]
    pub const fn kind(&self) -> FaultKind {
        self.kind
    }

    /// The name of the operator that failed; `None` if the fault is one of the whole evaluation, such as cancellation.
    #[must_use]
    pub const fn operator(&self) -> Option<&'static str> {
        self.operator
    }

    /// The position of the operator in the text of the model: its first byte and the byte after its last. `None` if it is not
    /// known.
    #[must_use]
    pub const fn span(&self) -> Option<(u32, u32)> {
        self.span
    }

    /// The fault's operands, as recorded by the context.
    #[must_use]
    pub const fn operands(&self) -> [u64; 2] {
        self.operands
    }

    /// The fault in words, as `Display` shows it.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for ModelFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ModelFault {}

/// A model, as declared by the module that `cembra build` writes beside the object file. Each model has a type of its own, so
/// that structs and evaluators of different models cannot be confused.
///
/// # Safety
/// OBJECT-MODEL (`docs/safety.md`): an object file must define the model, and the structs must be those that were made together with the file.
pub unsafe trait ObjectFileModel {
    /// The struct of the model's inputs. Its texts live for `'t`.
    type Input<'t>;
    /// The struct of the model's outputs. Its texts are views of texts in the inputs or in the object file.
    type Output<'t>: Default;

    /// The description of the model in the object file.
    fn object() -> &'static ObjectModel;
}

/// An evaluator of the model `M` of an object file, for one thread at a time. It can be used again after a fault.
///
/// The model is part of the type, because the evaluators of two models have frames of different sizes and must not be exchanged.
/// See the modules that `cembra build` writes.
#[derive(Debug)]
pub struct Evaluator<M> {
    evaluator: AnyEvaluator,
    model: PhantomData<fn() -> M>,
}

impl<M: ObjectFileModel> Evaluator<M> {
    /// Makes an evaluator of the model.
    ///
    /// # Errors
    /// If the object file was made for another revision of the interface to this crate, or the thread's floating-point mode is not the default.
    pub fn new() -> Result<Self, Refusal> {
        // SAFETY: OBJECT-MODEL, promised by the module that declares the model.
        let evaluator = unsafe { AnyEvaluator::new(M::object())? };
        Ok(Evaluator { evaluator, model: PhantomData })
    }

    /// Evaluates the model on `input`.
    ///
    /// # Errors
    /// The fault that stopped the evaluation.
    #[inline]
    pub fn evaluate<'t>(&mut self, input: &M::Input<'t>) -> Result<M::Output<'t>, ModelFault> {
        let mut output = M::Output::default();
        // SAFETY: CALL: the structs are those of the model (OBJECT-MODEL), whose evaluator this is and stays; texts of the
        // output live as long as those of the input.
        unsafe {
            self.evaluator.evaluate(std::ptr::from_ref(input).cast(), std::ptr::from_mut(&mut output).cast())?;
        }
        Ok(output)
    }

    /// Limits the loops of each later evaluation to `limit` rounds in total.
    pub fn set_loop_rounds(&mut self, limit: u64) {
        self.evaluator.context.set_iterations(limit);
    }

    /// Limits the work on strings of each later evaluation to `limit` units; a unit is about the time to read one byte.
    pub fn set_string_work(&mut self, limit: u64) {
        self.evaluator.context.set_string_work(limit);
    }

    /// Sets the cancellation token that later evaluations poll when they start and while they run; `None` removes it.
    pub fn set_cancellation(&mut self, token: Option<Cancellation>) {
        self.evaluator.context.set_cancellation(token);
    }
}

/// An evaluator of any model of an object file, with a frame and a context, for one thread at a time. This crate gives out no references to
/// evaluators, because a caller with two of them could swap the evaluators.
#[derive(Debug)]
pub(crate) struct AnyEvaluator {
    model: &'static ObjectModel,
    frame: Frame,
    /// The context of this evaluator's evaluations, which has their limits.
    pub(crate) context: Context,
}

impl AnyEvaluator {
    /// Makes an evaluator of a model.
    ///
    /// # Safety
    /// OBJECT-MODEL: an object file that `cembra build` made defines the model.
    ///
    /// # Errors
    /// If the object file has another revision, or the thread's floating-point mode is not the default.
    // SAFETY: OBJECT-MODEL, promised by the caller.
    pub(crate) unsafe fn new(model: &'static ObjectModel) -> Result<AnyEvaluator, Refusal> {
        if (model.revision, model.interface) != (INTERFACE_REVISION, interface_fingerprint()) {
            return Err(Refusal::Revision);
        }
        if !math::default_float_mode() {
            return Err(Refusal::FloatMode);
        }
        let mut frame = Frame::zeroed(model.frame_bytes as usize);
        for literal in model.texts() {
            // SAFETY: FRAME-SLOT: the file has the size of frames, and the offsets of texts in them.
            unsafe { frame.ptr().write(Slot::at(literal.slot as u32), literal.text) };
        }
        Ok(AnyEvaluator { model, frame, context: Context::new() })
    }

    /// Evaluates the model. After a fault the output is unchanged.
    ///
    /// # Safety
    /// CALL, for the structs that were made together with the object file: `input` points to that of the inputs, `output` to
    /// memory for that of the outputs. Texts of the input live as long as those of the output are used.
    ///
    /// # Errors
    /// The fault that stopped the evaluation.
    // SAFETY: CALL, promised by the caller.
    #[inline]
    pub(crate) unsafe fn evaluate(&mut self, input: *const u8, output: *mut u8) -> Result<(), ModelFault> {
        let status = if self.context.poll_cancelled() {
            self.context.fail(Fault::new(FaultKind::Cancelled))
        } else {
            self.context.begin();
            let frame = self.frame.ptr().as_ptr();
            // SAFETY: CALL, promised by the caller; the frame is the model's and started as its template.
            let status = unsafe { (self.model.function)(input, output, frame, &mut self.context) };
            self.context.end(status)
        };
        // SAFETY: STRING-VIEW: the call has just returned.
        if status == STATUS_OK { Ok(()) } else { Err(unsafe { self.fault() }) }
    }

    /// Describes the fault that the context recorded.
    ///
    /// # Safety
    /// STRING-VIEW: the texts of the evaluation's inputs are still alive.
    #[cold]
    unsafe fn fault(&self) -> ModelFault {
        let record = self.context.record();
        let kind = FaultKind::from_number(record.kind).unwrap_or(FaultKind::Assertion);
        let site = self.model.site(record.site).filter(|_| !kind.is_of_evaluation());
        let text = match kind {
            // SAFETY: STRING-VIEW: the message is a view of an input or a literal, and both are alive.
            FaultKind::Assertion => unsafe {
                Text::from_raw(record.operands[0] as *const u8, record.operands[1] as usize).as_str()
            },
            _ => "",
        };
        let detail = kind.describe(None, site.map_or("its type", |site| site.result.as_str()), text);
        let operator = site.map(|site| site.operator.as_str());
        let span = site.map(|site| (site.start, site.end)).filter(|(start, end)| start < end);
        let message = operator.map_or_else(|| detail.clone(), |operator| format!("{operator}: {detail}"));
        ModelFault { kind, operator, span, operands: record.operands, message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::c_interface::{EvaluatorHandle, cembra_evaluator_new};
    use crate::interface::{facts, fingerprint, text};

    /// A model with this agreement, whose function does nothing.
    fn model(revision: u32, interface: u64) -> &'static ObjectModel {
        // SAFETY: CALL, of which the function needs nothing.
        unsafe extern "C" fn nothing(_: *const u8, _: *mut u8, _: *mut u8, _: *mut Context) -> i32 {
            STATUS_OK
        }
        let (texts, sites) = (std::ptr::null(), std::ptr::null());
        let model = ObjectModel {
            revision,
            frame_bytes: 0,
            interface,
            function: nothing,
            texts,
            text_count: 0,
            sites,
            site_count: 0,
        };
        Box::leak(Box::new(model))
    }

    /// The reason for which Rust and C programs get no evaluator.
    fn refusal(revision: u32, interface: u64) -> (Option<Refusal>, i32) {
        let model = model(revision, interface);
        let mut handle: Option<Box<EvaluatorHandle>> = None;
        // SAFETY: OBJECT-MODEL: it has no tables, and a function that does nothing; C-HANDLE: the target can be written.
        let (made, status) = unsafe { (AnyEvaluator::new(model), cembra_evaluator_new(model, &raw mut handle)) };
        assert_eq!(handle.is_some(), status == STATUS_OK);
        (made.err(), status)
    }

    #[test]
    fn a_model_of_another_layout_is_refused_whatever_its_revision() {
        let own = facts();
        assert_eq!(fingerprint(&text(&own)), interface_fingerprint());
        assert_eq!(refusal(INTERFACE_REVISION, interface_fingerprint()), (None, STATUS_OK));
        let refused = (Some(Refusal::Revision), Refusal::Revision as i32);
        assert_eq!(refusal(INTERFACE_REVISION - 1, interface_fingerprint()), refused);
        for at in 0..own.len() {
            let (mut moved, mut forgotten) = (own.clone(), own.clone());
            moved[at].1 += 8;
            forgotten.remove(at);
            for other in [moved, forgotten] {
                assert_eq!(refusal(INTERFACE_REVISION, fingerprint(&text(&other))), refused, "{}", own[at].0);
            }
        }
    }

    #[test]
    fn the_agreement_has_a_line_for_what_machine_code_looks_at() {
        let text = crate::interface();
        for line in [
            format!("Context.rounds_left {}", Context::ROUNDS_LEFT_OFFSET),
            format!("Context.fault.operands {}", Context::FAULT_OPERANDS_OFFSET),
            format!("ObjectModel.sites {}", ObjectModel::SITES_OFFSET),
            format!("Site.size {}", ObjectModel::SITE_SIZE),
            "OPTIONAL_FLOAT32.value 4".to_owned(),
            format!("mathematics {}", math::MATHEMATICS),
        ] {
            assert!(text.lines().any(|known| known == line), "{line}\n{text}");
        }
    }
}
