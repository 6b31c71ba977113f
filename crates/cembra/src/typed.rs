//! The typed executor: a model bound to a Rust struct of inputs and one of outputs. Fields in place are read and written
//! where the caller has them; the raw function can be called on the structs directly.

use crate::executor::Inner;
use crate::fields::{Input, InputField, Output, OutputField};
use crate::model::{prepare, unknown_name};
use crate::{Error, Executor, Model, Options, RawFunction};
use cembra_expr::{Code, Diagnostic, Program, Value};
use cembra_plan::{Base, Binding, Place, Plan};
use cembra_runtime::{Context, Frame, FramePtr};
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::sync::Arc;

/// A compiled model with the frame of one thread, run on `I` and giving `O`. A clone shares the code and has its own frame.
///
/// Fields are bound by name, or by the name given with `#[cembra(name = "..")]`; the [`Input`] and [`Output`] traits list the
/// types they may have. A field of `I` that the model does not have is ignored; a field of `O` must be an output.
///
/// ```
/// use cembra::{Model, Optional, Options};
///
/// #[derive(cembra::Input)]
/// struct Order { price: f64, discount: Optional<f64>, customer: String }
///
/// #[derive(cembra::Output)]
/// struct Bill { total: f64, #[cembra(name = "say")] greeting: Option<String> }
///
/// let model = Model::parse(
///     "output total = price * (1.0 - (discount ?? 0.0))
///      output say = if customer == \"Ann\" then \"welcome back\"",
/// )?;
/// let mut bill = model.executor::<Order, Bill>(&Options::default())?;
/// let order = Order { price: 80.0, discount: Optional::present(0.25), customer: "Ann".into() };
/// let found = bill.run(&order)?;
/// assert_eq!((found.total, found.greeting.as_deref()), (60.0, Some("welcome back")));
///
/// // A type in the place of the output struct is the main output.
/// let mut total = model.executor::<Order, f64>(&Options::default())?;
/// assert_eq!(total.run(&Order { discount: Optional::missing(), ..order })?, 80.0);
/// # Ok::<(), cembra::Error>(())
/// ```
pub struct ModelExecutor<I, O> {
    executor: Executor,
    frame: Frame,
    context: Context,
    /// Fields that go through the frame, with the slots they go through.
    moved_inputs: Vec<(InputField, u32)>,
    moved_outputs: Vec<(OutputField, u32)>,
    types: PhantomData<fn(&I) -> O>,
}

impl<I, O> std::fmt::Debug for ModelExecutor<I, O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModelExecutor").field("executor", &self.executor).finish_non_exhaustive()
    }
}

impl<I, O> Clone for ModelExecutor<I, O> {
    fn clone(&self) -> Self {
        ModelExecutor {
            executor: self.executor.clone(),
            frame: self.executor.inner().frame(),
            context: self.executor.inner().context(),
            moved_inputs: self.moved_inputs.clone(),
            moved_outputs: self.moved_outputs.clone(),
            types: PhantomData,
        }
    }
}

impl<I: Input, O: Output> ModelExecutor<I, O> {
    pub(crate) fn new(model: &Model, options: &Options) -> Result<Self, Error> {
        let inputs = I::fields();
        let outputs = O::fields();
        let mut options = options.clone();
        for field in &inputs {
            if let Some(declared) = model.program().inputs.iter().find(|input| *input.name == *field.name) {
                check_input(field, declared)?;
                options = options.input_type(field.name, field.qtype.clone());
            }
        }
        // A field without a name is the main output; only outputs that are bound are computed.
        let main = model.program().outputs.first().map_or("", |output| &output.name);
        let names = outputs.iter().map(|field| if field.name.is_empty() { main } else { field.name }.to_owned());
        let options = options.outputs(names);
        let program = fit_outputs(model.selected(&options)?, &outputs, &options)?;
        let plan = model.plan_of(&program, &options).map_err(|error| missing_field(error, &inputs))?;
        let binding = Binding { inputs: bind_inputs(&plan, &inputs)?, outputs: bind_outputs(&plan, &outputs)? };
        let slot =
            |name: &str| plan.inputs().iter().find(|input| *input.name == *name).map(|i| plan.value(i.value).slot);
        let moved_inputs = inputs
            .into_iter()
            .filter(|field| !field.in_place)
            .filter_map(|field| slot(field.name).map(|slot| (field, slot)))
            .collect();
        let moved_outputs = outputs
            .into_iter()
            .zip(plan.outputs())
            .filter(|(field, _)| !field.in_place)
            .map(|(field, output)| (field, plan.value(output.value).slot))
            .collect();
        let executor = Executor::from(Inner::new(program, plan, binding, &options)?);
        let (frame, context) = (executor.inner().frame(), executor.inner().context());
        Ok(ModelExecutor { executor, frame, context, moved_inputs, moved_outputs, types: PhantomData })
    }

    /// Evaluates the model.
    ///
    /// # Errors
    /// A fault of the evaluation.
    pub fn run(&mut self, input: &I) -> Result<O, Error> {
        let from: *const u8 = std::ptr::from_ref(input).cast();
        let frame = self.frame.ptr();
        for (field, slot) in &self.moved_inputs {
            // SAFETY: FIELD-TABLE for the field, FRAME-SLOT for the slot, which is this input's; texts outlive the call.
            unsafe { (field.write)(from.add(field.offset), frame, *slot) };
        }
        let mut output = MaybeUninit::<O>::zeroed();
        let to: *mut u8 = output.as_mut_ptr().cast();
        // SAFETY: CALL: the binding's offsets are those of I's and O's fields (FIELD-TABLE), the frame is of this plan,
        // and compiled code never writes to its input.
        unsafe {
            self.executor.inner().run(
                FramePtr::from_raw(from.cast_mut()),
                FramePtr::from_raw(to),
                frame,
                &mut self.context,
            )?;
        }
        for (field, slot) in &self.moved_outputs {
            // SAFETY: FIELD-TABLE for the field; FRAME-SLOT: the call wrote this output's slot.
            unsafe { (field.read)(to.add(field.offset), frame, *slot) };
        }
        // SAFETY: FIELD-TABLE: every field was written, in place by the call or just above; optional values that are
        // missing hold the zeros they started with or what the call left.
        Ok(unsafe { output.assume_init() })
    }

    /// Evaluates the model into a struct of the caller's, which is left as it was if the evaluation fails.
    ///
    /// # Errors
    /// A fault of the evaluation.
    pub fn run_into(&mut self, input: &I, output: &mut O) -> Result<(), Error> {
        *output = self.run(input)?;
        Ok(())
    }

    /// The shared part.
    #[must_use]
    pub fn executor(&self) -> &Executor {
        &self.executor
    }

    /// The compiled function, to be called without any of the library's checks; none if the interpreter runs.
    ///
    /// It takes the input struct, the output struct, a frame and a context, and must be called only while this executor
    /// or a clone lives, with structs of `I` and `O` whose fields are all in place, and the pointers of `scratch`.
    #[must_use]
    pub fn raw(&self) -> Option<RawFunction> {
        match &self.executor.inner().runnable {
            crate::backend::Runnable::Native(compiled) => Some(compiled.raw()),
            crate::backend::Runnable::Interpreted(_) => None,
        }
    }

    /// The frame and context to call the raw function with; valid while this executor is neither moved nor dropped.
    pub fn scratch(&mut self) -> (*mut u8, *mut Context) {
        if let crate::backend::Runnable::Native(compiled) = &self.executor.inner().runnable {
            compiled.prepare_context(&mut self.context);
        }
        (self.frame.ptr().as_ptr(), &raw mut self.context)
    }
}

/// The program whose outputs have the types of the fields, as far as the options allow casts; the rest is found later.
fn fit_outputs(program: Arc<Program>, fields: &[OutputField], options: &Options) -> Result<Arc<Program>, Error> {
    if !options.cast_outputs && !options.require_present {
        return Ok(program);
    }
    let prepared = prepare(&program, options, &mut |_, _| {})?;
    let mut fitted = Program::clone(&program);
    for ((output, field), (_, node)) in fitted.outputs.iter_mut().zip(fields).zip(&prepared.outputs) {
        let found = prepared.graph.qtype(*node);
        let span = fitted.graph.span(output.node);
        if options.require_present && found.is_optional() && !field.qtype.is_optional() {
            output.node = fitted.graph.operator("core.get_optional_value", &[output.node], span);
        }
        let differs = found.scalar() != field.qtype.scalar() || (!found.is_optional() && field.qtype.is_optional());
        if options.cast_outputs && differs {
            let target = fitted.graph.literal(Value::Type(field.qtype.clone()), None);
            let implicit = fitted.graph.literal(Value::from(false), None);
            output.node = fitted.graph.operator("core.cast", &[output.node, target, implicit], span);
        }
    }
    Ok(Arc::new(fitted))
}

/// A field whose type is not the one the model declares.
fn check_input(field: &InputField, declared: &cembra_expr::Input) -> Result<(), Error> {
    match &declared.qtype {
        Some(qtype) if *qtype != field.qtype => {
            let message =
                format!("input `{}` is declared {qtype}, but the struct's field is {}", field.name, field.qtype);
            Err(Diagnostic::new(Code::InputType, message).at(declared.span).into())
        }
        _ => Ok(()),
    }
}

/// Adds the struct's fields to the message of an input without a type: most often it is a typo in one of them.
fn missing_field(error: Error, fields: &[InputField]) -> Error {
    let diagnostics = error.diagnostics();
    let Some(first) = diagnostics.first().filter(|d| d.code() == Code::MissingInputType) else { return error };
    let names: Vec<&str> = fields.iter().map(|field| field.name).collect();
    let hint = format!("the struct has {}", if names.is_empty() { "no fields".to_owned() } else { names.join(", ") });
    first.clone().hint(hint).into()
}

fn bind_inputs(plan: &Plan, fields: &[InputField]) -> Result<Vec<Place>, Error> {
    plan.inputs()
        .iter()
        .map(|input| match fields.iter().find(|field| *field.name == *input.name) {
            Some(field) if field.in_place => Ok(Place { base: Base::Input, offset: field.offset as u32 }),
            Some(_) => Ok(plan.place(input.value)),
            None => {
                let message = format!("the struct has no field for input `{}`", input.name);
                let near = fields.iter().find(|field| strsim::osa_distance(field.name, &input.name) <= 1);
                let diagnostic = Diagnostic::new(Code::Binding, message);
                Err(match near {
                    Some(field) => diagnostic.hint(format!("is `{}` meant?", field.name)),
                    None => diagnostic,
                }
                .into())
            }
        })
        .collect()
}

fn bind_outputs(plan: &Plan, fields: &[OutputField]) -> Result<Vec<Place>, Error> {
    let mut places = Vec::with_capacity(fields.len());
    for (field, output) in fields.iter().zip(plan.outputs()) {
        let qtype = &plan.value(output.value).qtype;
        if *qtype != field.qtype {
            let message = format!("output `{}` is {qtype}, but the result's type is {}", output.name, field.qtype);
            let diagnostic = Diagnostic::new(Code::Binding, message);
            return Err(match (qtype.is_optional(), field.qtype.is_optional()) {
                (true, false) => diagnostic
                    .hint("take an `Optional<..>`, give the model a default with `??`, or set `require_present`"),
                (false, true) => diagnostic.hint("take the plain type, or set `cast_outputs`"),
                _ => diagnostic.hint("cast it in the model, as in `core.cast(x, f32)`, or set `cast_outputs`"),
            }
            .into());
        }
        places.push(if field.in_place {
            Place { base: Base::Output, offset: field.offset as u32 }
        } else {
            plan.place(output.value)
        });
    }
    if places.len() < fields.len() {
        return Err(unknown_name("output", fields[places.len()].name, std::iter::empty()).into());
    }
    Ok(places)
}
