//! Models: a [`Model`] is a program with its source text, before its types are found. This module parses, checks and
//! compiles models. Compiling a model for given input types makes an executor.

pub(crate) mod check;
pub(crate) mod constant;
pub(crate) mod coverage;
pub(crate) mod explain;
pub(crate) mod exports;
pub(crate) mod folder;
pub(crate) mod model_tests;
pub(crate) mod set;
pub(crate) mod summary;
pub(crate) mod text_file;
pub(crate) mod unfit_tests;

use crate::model::exports::with_exports;
use crate::names::unknown_name;
use crate::options::StartedOptions;
use crate::{Error, Executor, Options};
use cembra_engine::TensorProgram;
use cembra_engine::{Batch, CompileOptions, Event, Executable, Field, Signature, prepare, tell};
use cembra_expr::{Program, Sources};
use cembra_ops::Registry;
use cembra_prepare::TypedModel;
use cembra_value::{Limits, Source, UNNAMED};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// A model as it was written, not yet compiled. Cloning is cheap, and threads may share a model.
///
/// Reading a model checks its syntax and names. Types are found when the model is compiled, because an input that the model does not declare gets its
/// type from the caller.
///
/// ```
/// use cembra::{Model, Options, QType};
///
/// let model = Model::parse("input x: f32; output y = x * scale; output big = y > 100.0")?;
/// let options = Options::default().input_type("scale", QType::FLOAT64);
/// let signature = model.signature(&options)?;
/// let types: Vec<_> = signature.outputs.iter().map(|out| format!("{}: {}", out.name, out.qtype)).collect();
/// assert_eq!(types, ["y: f64", "big: unit?"]);
/// # Ok::<(), cembra::Error>(())
/// ```
#[derive(Clone)]
pub struct Model {
    program: Arc<Program>,
    sources: Option<Arc<Sources>>,
    name: Option<Arc<str>>,
    /// The operators that the model was read with.
    registry: &'static Registry,
    /// The limits that the model was read within; `None` for the default limits.
    limits: Option<Arc<Limits>>,
}

impl Model {
    /// Reads a model from text.
    ///
    /// ```
    /// let error = cembra::Model::parse("let a = 5.\noutput y = sqr(a)").unwrap_err();
    /// let messages: Vec<_> = error.diagnostics().iter().map(|one| one.message().to_owned()).collect();
    /// assert_eq!(messages, ["`5.` has no digits after the dot", "there is no operator `sqr`"]);
    /// ```
    ///
    /// # Errors
    /// If the text has errors. The returned error has all errors that can be found at once.
    pub fn parse(source: &str) -> Result<Model, Error> {
        Model::parse_within(source, &Limits::default())
    }

    /// Reads a model from text within the limits `limits`. The model remembers the limits that differ from the default. These limits also bound
    /// compiling and evaluating the model, even if [`Options::limits`] or [`RunOptions::limits`](crate::RunOptions::limits) allow more. To raise a
    /// limit on compiling or evaluating above its default, use `Options::limits`.
    ///
    /// ```
    /// use cembra::{Limits, Model, Options, Value};
    ///
    /// let text = "input n: i64; seq.reduce(fn(s, i) = s + i, seq.range(n), 0)";
    /// let model = Model::parse_within(text, &Limits::default().loop_iterations(1_000))?;
    /// let mut session = model.compile(&Options::default())?.session();
    /// assert_eq!(session.evaluate(&[Value::from(1_000_i64)])?, [Value::from(499_500_i64)]);
    /// assert_eq!(session.evaluate(&[Value::from(2_000_i64)]).unwrap_err().code(), "iteration-limit");
    /// # Ok::<(), cembra::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the text has errors or exceeds a limit.
    pub fn parse_within(source: &str, limits: &Limits) -> Result<Model, Error> {
        Model::parse_with(source, Registry::standard(), limits)
    }

    /// Reads a model from text that may use the operators in `registry`, also user-defined ones. The model and its clones are compiled with the same
    /// registry, which is not copied. The model remembers the limits, as with [`Model::parse_within`].
    ///
    /// ```
    /// use cembra::operators::{Registry, UserOperator};
    /// use cembra::{Limits, Model, Options, Value};
    ///
    /// let registry = Registry::with_operators([UserOperator::new("risk.cap").function(|x: f64| x.min(100.0))])?;
    /// let model = Model::parse_with("input x: f64; risk.cap(x) + 1", registry, &Limits::default())?;
    /// let mut session = model.compile(&Options::default())?.session();
    /// assert_eq!(session.evaluate(&[Value::from(250.0)])?, [Value::from(101.0)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the text has errors or exceeds a limit.
    pub fn parse_with(source: &str, registry: &'static Registry, limits: &Limits) -> Result<Model, Error> {
        // A text that is too long is not copied.
        let sources = Arc::new(Sources::alone("", if source.len() <= limits.source_bytes { source } else { "" }));
        let program = cembra_expr::parse(source, registry, limits);
        let program = program.map_err(|error| error.in_sources(Some(sources.shared())))?;
        let limits = kept(limits);
        Ok(Model { program: Arc::new(program), sources: Some(sources), name: None, registry, limits })
    }

    /// Reads a model from text. The caller declares the model's inputs by `inputs`, as if an `input` line preceded the text.
    #[cfg(feature = "tiles")]
    pub(crate) fn parse_for(
        source: &str,
        inputs: &[(&str, cembra_runtime::QType)],
        registry: &'static Registry,
    ) -> Result<Model, Error> {
        let program = cembra_expr::parse_for(source, inputs, registry, &Limits::default())?;
        let sources = Arc::new(Sources::alone("", source));
        Ok(Model { program: Arc::new(program), sources: Some(sources), name: None, registry, limits: None })
    }

    /// Reads a model whose text uses other files, as in `use "common.cem"`. The host decides which files exist, by the resolver that it passes to
    /// [`Sources::gather`]. The model remembers the limits, as with [`Model::parse_within`]. Spans in errors are offsets into all texts together;
    /// `Sources::place` finds the file of a span, and the place in that file.
    ///
    /// ```
    /// use cembra::operators::Registry;
    /// use cembra::program::{Sources, UsedFile};
    /// use cembra::{Limits, Model, Options, Value};
    ///
    /// let files = |name: &str, _: &str| match name {
    ///     "tax.cem" => Ok(UsedFile { name: name.to_owned(), text: "let vat = 0.5\nfn taxed(x) = x * (1.0 + vat)".into() }),
    ///     _ => Err(std::io::ErrorKind::NotFound.into()),
    /// };
    /// let limits = Limits::default();
    /// let sources = Sources::gather("m.cem", "use \"tax.cem\"; input price: f64; taxed(price)", &limits, &files);
    /// let model = Model::parse_sources(sources, Registry::standard(), &limits)?;
    /// let mut session = model.compile(&Options::default())?.session();
    /// assert_eq!(session.evaluate(&[Value::from(2.0)])?, [Value::from(3.0)]);
    ///
    /// let sources = Sources::gather("m.cem", "use \"tex.cem\"; 1", &limits, &files);
    /// let error = Model::parse_sources(sources, Registry::standard(), &limits).unwrap_err();
    /// assert_eq!((error.code(), &*error.to_string()), ("use", "`tex.cem` cannot be read: entity not found"));
    /// # Ok::<(), cembra::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a text has errors, a file does not exist, or a limit is exceeded.
    pub fn parse_sources(
        sources: impl Into<Arc<Sources>>,
        registry: &'static Registry,
        limits: &Limits,
    ) -> Result<Model, Error> {
        let sources = sources.into();
        let program = cembra_expr::parse_sources(&sources, registry, limits);
        let program = program.map_err(|error| error.in_sources(Some(sources.shared())))?;
        let name = sources.names().next().filter(|name| !name.is_empty()).map(Arc::from);
        let limits = kept(limits);
        Ok(Model { program: Arc::new(program), sources: Some(sources), name, registry, limits })
    }

    /// Returns a model without source text, for a program that was built in Rust or read from another format. If the program has user-defined
    /// operators, compile it with [`Options::registry`].
    #[must_use]
    pub fn from_program(program: Program) -> Model {
        Model { program: Arc::new(program), sources: None, name: None, registry: Registry::standard(), limits: None }
    }

    /// Returns a model of the program `program`, with this model's sources, name, operators and limits. `program` must
    /// be made by changing the graph of this model's program; for example, it may have only some of the outputs. Errors
    /// show the places of its nodes in the sources.
    ///
    /// ```
    /// use cembra::{Model, Options, QType, Scalar, Value, program};
    ///
    /// let model = Model::parse("input x: f64; math.exp(x) + 1.0")?;
    /// let mut program = model.program().clone();
    /// // The sum's operand becomes an input.
    /// let sum = program.outputs[0].node;
    /// let exp = program.graph.operands(sum)[0];
    /// program.graph.put_leaf(exp, "exp");
    /// let exp = program::Input { name: "exp".into(), qtype: Some(QType::Scalar(Scalar::Float64)), ..program.inputs[0].clone() };
    /// program.inputs.push(exp);
    /// let rest = model.with_program(program).compile(&Options::default())?;
    /// assert_eq!(rest.session().evaluate(&[Value::from(2.0)])?, [Value::from(3.0)]);
    /// # Ok::<(), cembra::Error>(())
    /// ```
    #[must_use]
    pub fn with_program(&self, program: Program) -> Model {
        Model { program: Arc::new(program), ..self.clone() }
    }

    /// Returns the model with the name `name`, such as that of its file. Rendered errors, faults, metrics and tracing spans show the name. For
    /// metrics and tracing spans, [`Options::name`] takes precedence.
    ///
    /// ```
    /// use cembra::{Model, Options, Value};
    ///
    /// let model = Model::parse("input x: i32; 100 // x")?.named("shares.cem");
    /// let mut session = model.compile(&Options::default())?.session();
    /// let error = session.evaluate(&[Value::from(0)]).unwrap_err();
    /// assert_eq!(error.to_string(), "math.floor_divide: division by zero (shares.cem:1:15: `100 // x`)");
    /// # Ok::<(), cembra::Error>(())
    /// ```
    #[must_use]
    pub fn named(mut self, name: &str) -> Model {
        if let Some(sources) = &mut self.sources {
            Arc::make_mut(sources).rename(name);
        }
        self.name = Some(name.into());
        self
    }

    /// Returns the model's name: the one set with [`Model::named`], or that of the main source text; `None` if the model has no name.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Runs `step`, which works on this model. If `step` fails, the model's source texts are added to the error, so that printing the error shows
    /// them.
    pub(crate) fn step<A>(&self, step: impl FnOnce() -> Result<A, Error>) -> Result<A, Error> {
        step().map_err(|error| error.in_sources(self.sources.as_deref().map(Sources::shared)))
    }

    /// Runs `compile`, which compiles this model, and reports a failure to the metrics.
    pub(crate) fn compiled<A>(
        &self,
        options: &Options,
        compile: impl FnOnce() -> Result<A, Error>,
    ) -> Result<A, Error> {
        self.step(compile).inspect_err(|error| {
            let CompileOptions { name, metrics, .. } = &options.compile;
            let name = name.as_deref().or(self.name()).unwrap_or(UNNAMED);
            tell(metrics.as_ref(), name, &Event::CompilationFailed { error });
        })
    }

    /// Returns the operators that the model was read with.
    pub(crate) const fn registry(&self) -> &'static Registry {
        self.registry
    }

    /// Returns `options` for a compilation of this model that begins now.
    pub(crate) fn started(&self, options: &Options) -> StartedOptions {
        options.started(self.name.as_ref(), self.sources.as_ref(), self.registry, self.limits.as_deref())
    }

    /// Returns the limits on compiling and running this model with `options`.
    pub(crate) fn limits(&self, options: &Options) -> Limits {
        options.limits_for(self.limits.as_deref())
    }

    /// Returns the model as a protobuf file: small, quick to read, and readable by every later version of cembra. It does not contain the source
    /// text.
    ///
    /// ```
    /// use cembra::Model;
    ///
    /// let model = Model::parse("input x: f32?; output y = x * 2.0 ?? 0.1")?;
    /// let bytes = model.to_binary();
    /// let again = Model::from_binary(&bytes)?;
    /// assert_eq!(again.program(), model.program());
    /// assert_eq!(Model::from_binary(&bytes[1..]).unwrap_err().code(), "wire");
    /// # Ok::<(), cembra::Error>(())
    /// ```
    #[must_use]
    pub fn to_binary(&self) -> Vec<u8> {
        cembra_expr::write_binary(&self.program)
    }

    /// Reads a model that [`Model::to_binary`] wrote, in this version of cembra or in an older one. The default limits apply. For other limits, read
    /// the program with [`read_binary`](crate::program::read_binary).
    ///
    /// # Errors
    /// If the file is not a model, is of a newer version, is damaged, or exceeds a limit.
    pub fn from_binary(bytes: &[u8]) -> Result<Model, Error> {
        Ok(Model::from_program(cembra_expr::read_binary(bytes, &Limits::default())?))
    }

    /// Returns the model's program: its expressions, inputs and outputs.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// Returns the text that the model was read from, without the files that it uses; `None` if it was not read from text.
    #[must_use]
    pub fn source(&self) -> Option<&str> {
        self.sources.as_deref().map(|sources| sources.main())
    }

    /// Returns the texts that the model was read from: its own and those of the files that it uses. `None` if it was not read from text.
    #[must_use]
    pub fn sources(&self) -> Option<&Sources> {
        self.sources.as_deref()
    }

    /// Compiles the model for values that are given at run time, for callers that do not know the model's inputs and outputs in advance. Other
    /// callers use [`Model::executor`].
    ///
    /// ```
    /// use cembra::{Model, Options, Value};
    ///
    /// let executor = Model::parse("input x: f64?; x ?? 1.5")?.compile(&Options::default())?;
    /// let mut session = executor.session();
    /// assert_eq!(session.evaluate(&[Value::from(None::<f64>)])?, [Value::from(1.5)]);
    /// # Ok::<(), cembra::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are problems with types or limits. With `Backend::Native`, also if the model cannot be compiled to machine code.
    pub fn compile(&self, options: &Options) -> Result<Executor, Error> {
        let started = &self.started(options);
        self.compiled(options, || Ok(Executor::from(Executable::of(self.selected(started)?, started)?)))
    }

    /// Compiles the model for callers that mostly evaluate many rows at a time, with [`Executor::batch`]. The code that evaluates a single row is
    /// compiled only when the first session is made.
    #[doc(hidden)]
    pub fn compile_on_demand(&self, options: &Options) -> Result<Executor, Error> {
        let started = &self.started(options);
        self.compiled(options, || Ok(Executor::from(Executable::of_on_demand(self.selected(started)?, started)?)))
    }

    /// Returns true if an input of the model is a tensor, by its declaration or by `options`. Such a model is evaluated as a whole and has no rows.
    #[must_use]
    pub fn has_tensors(&self, options: &Options) -> bool {
        TensorProgram::is_of(self.program(), &options.compile)
    }

    /// Compiles the model for evaluating many rows at a time.
    ///
    /// # Errors
    /// If there are problems with types or limits, or if the model has tensors and so no rows.
    pub fn batch(&self, options: &Options) -> Result<Batch, Error> {
        let started = &self.started(options);
        self.compiled(options, || Batch::of(&self.selected(started)?, started))
    }

    /// Returns the names and types of the model's inputs and outputs, without compiling the model.
    ///
    /// # Errors
    /// If there are problems with names or types.
    pub fn signature(&self, options: &Options) -> Result<Signature, Error> {
        let options = &mut self.started(options);
        self.step(|| {
            let program = self.selected(options)?;
            if TensorProgram::is_of(&program, options) {
                return Ok(Executable::of(program, options)?.signature());
            }
            self.prepare_without_externs(options);
            let prepared = prepare(&program, options, &mut |_, _| {})?;
            Ok(Model::signature_of(prepared.model(), &program))
        })
    }

    /// Returns the inputs and outputs of a prepared model.
    pub(crate) fn signature_of(model: &TypedModel, program: &Program) -> Signature {
        let TypedModel { graph, leaves, .. } = model;
        let needed = model.needed();
        let mut used = vec![false; leaves.len()];
        for id in graph.ids() {
            if let (cembra_prepare::Kind::Leaf(leaf), true) = (graph.kind(id), needed[id.index()]) {
                used[leaf as usize] = true;
            }
        }
        let inputs = leaves.iter().zip(0_u32..).zip(used).filter(|(_, used)| *used);
        let mut inputs: Vec<Field> = inputs.map(|(((_, qtype), leaf), _)| Field::of_leaf(graph, leaf, qtype)).collect();
        Field::add_defaults(&mut inputs, program);
        Signature::new(inputs, Field::of_outputs(model).into())
    }

    /// If the host does not define an operator that the model's text declares, changes `options` so that preparation stops after type checking,
    /// because later passes need all operators.
    pub(crate) fn prepare_without_externs(&self, options: &mut StartedOptions) {
        const TYPED: &str = "types";
        let registry = options.prepare.registry;
        if self.program.externs.iter().any(|declared| registry.find(&declared.name).is_none()) {
            options.prepare.stop_after = Some(TYPED.to_owned());
        }
    }

    /// Returns the model's program with its exports (values inside of expressions that have a name) added to the outputs.
    pub(crate) fn whole(&self, options: &StartedOptions) -> Result<Arc<Program>, Error> {
        with_exports(&self.program, options.budget().limits().problems)
    }

    /// Returns the model's program with only those outputs and exports (named values inside of expressions) that the options select.
    pub(crate) fn selected(&self, options: &StartedOptions) -> Result<Arc<Program>, Error> {
        let whole = self.whole(options)?;
        let Some(names) = &options.binding.outputs else { return Ok(whole) };
        let mut outputs = Vec::with_capacity(names.len());
        // The first output of each name counts. A model may have very many, so they are in a map.
        let mut positions = HashMap::with_capacity(whole.outputs.len());
        for (at, output) in whole.outputs.iter().enumerate() {
            positions.entry(&*output.name).or_insert(at);
        }
        for name in names {
            match positions.get(name.as_str()) {
                Some(at) => outputs.push(whole.outputs[*at].clone()),
                None => {
                    let known = whole.outputs.iter().map(|o| &*o.name);
                    return Err(unknown_name("output", name, known).into());
                }
            }
        }
        let mut program = Program::clone(&whole);
        program.outputs = outputs;
        Ok(Arc::new(program))
    }
}

/// Returns the limits that a model remembers, to lower the limits of later options; `None` for the default limits,
/// which lower nothing.
fn kept(limits: &Limits) -> Option<Arc<Limits>> {
    (*limits != Limits::default()).then(|| Arc::new(*limits))
}

/// Formats one line for a log: the name and the numbers of inputs and outputs.
impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Program { inputs, outputs, .. } = &*self.program;
        let mut line = f.debug_struct("Model");
        line.field("name", &self.name().unwrap_or(UNNAMED));
        line.field("inputs", &inputs.len()).field("outputs", &outputs.len()).finish()
    }
}

impl<'s> From<&'s Model> for Source<'s> {
    fn from(model: &'s Model) -> Self {
        match model.sources() {
            Some(texts) => Source::from(texts),
            None => Source::without_text(model.name().unwrap_or_default()),
        }
    }
}
