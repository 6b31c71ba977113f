//! Options of compiling a model.

use crate::{Backend, Metrics, RowPlayer, Tiering};
use cembra_engine::{CompileOptions, Started};
use cembra_expr::Sources;
use cembra_native::{CodeCache, Tier};
use cembra_ops::Registry;
use cembra_prepare::{Extension, Mode};
use cembra_runtime::QType;
use cembra_value::{Budget, Code, Limits};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// How to compile a model. The default: machine code where it can be had, rewrites that keep every bit, all outputs.
///
/// ```
/// use cembra::{Backend, Model, Options, QType, Value};
///
/// let model = Model::parse("output sum = x + y; output product = x * y")?;
/// let options = Options::default()
///     .input_type("x", QType::FLOAT64)
///     .input_type("y", QType::FLOAT64)
///     .outputs(["product"])
///     .backend(Backend::Interpreter);
/// let mut session = model.compile(&options)?.session();
/// assert_eq!(session.evaluate(&[Value::from(3.0), Value::from(0.5)])?, [Value::from(1.5)]);
/// # Ok::<(), cembra::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub(crate) compile: CompileOptions,
    pub(crate) binding: BindingOptions,
}

/// How a model is bound to the caller's data, and which warnings the caller does not want: options that the engine need not know.
#[derive(Clone, Debug, Default)]
pub(crate) struct BindingOptions {
    /// Only these outputs, in this order.
    pub(crate) outputs: Option<Vec<String>>,
    pub(crate) cast_outputs: bool,
    pub(crate) require_present: bool,
    pub(crate) ignore_unheard: bool,
    pub(crate) allowed: Vec<Code>,
}

impl AsRef<CompileOptions> for Options {
    fn as_ref(&self) -> &CompileOptions {
        &self.compile
    }
}

impl Options {
    /// The operators, in place of those that the model was read with: for a model that came from a file or a builder, which names
    /// operators of the user.
    #[must_use]
    pub fn registry(self, registry: &'static Registry) -> Self {
        self.with(|options| options.compile.registry = Some(registry))
    }

    /// What the model is called in profiles ([`profile_code`](crate::profile_code)), metrics and spans; the name of the model if it is
    /// not said ([`Model::name`](crate::Model::name)), or `model`.
    #[must_use]
    pub fn name(self, name: &str) -> Self {
        self.with(|options| options.compile.name = Some(name.into()))
    }

    /// Which backend runs the model.
    #[must_use]
    pub fn backend(self, backend: Backend) -> Self {
        self.with(|options| options.compile.backend = backend)
    }

    /// How much goes into machine code: less for a model that runs seldom, or is wanted at once. With `Backend::Tiered` it is
    /// the last tier that the model is compiled in.
    #[must_use]
    pub fn tier(self, tier: Tier) -> Self {
        self.with(|options| options.compile.tier = tier)
    }

    /// What plays the model on many rows, where that is to be a certain one: for tests and benchmarks.
    #[must_use]
    pub fn row_player(self, player: RowPlayer) -> Self {
        self.with(|options| options.compile.row_player = player)
    }

    /// Sums of products of tensors in the order of their labels, one product after the other: the order of `Backend::Interpreter`, with the
    /// same bits on every machine. That takes many times as long as products of matrices do.
    ///
    /// ```
    /// use cembra::{Model, Options, Tensor};
    ///
    /// let model = Model::parse("input a: tensor[f32, 2]; output square(\"i,j\") = a(\"i,k\") * a(\"k,j\")")?;
    /// let mut session = model.compile(&Options::default().reference_order(true))?.session();
    /// let a = Tensor::new(&[2, 2], vec![1.0_f32, 2.0, 3.0, 4.0])?;
    /// assert_eq!(session.run_tensors(&[a])?[0].to_vec::<f32>()?, [7.0, 10.0, 15.0, 22.0]);
    /// # Ok::<(), cembra::Error>(())
    /// ```
    #[must_use]
    pub fn reference_order(self, in_order: bool) -> Self {
        self.with(|options| options.compile.reference_order = in_order)
    }

    /// Adds a rewrite of graphs of tensors, which is tried before those of the library.
    ///
    /// ```
    /// use cembra::tensor::{Exactness, RewriteRule};
    /// use cembra::{Model, Options, Tensor};
    ///
    /// let rule = RewriteRule::exact("log_of_exp", "log(exp(x))", "x").relaxed(Exactness::Inverses);
    /// let options = Options::default().tensor_rule(rule).allow_tensor_changes(Exactness::Inverses);
    /// let model = Model::parse("input x: tensor[f64, 1]; output y = log(exp(x))")?;
    /// let x = Tensor::new(&[1], vec![1000.0])?;
    /// assert_eq!(model.compile(&Options::default())?.session().run_tensors(&[x.clone()])?[0].to_vec::<f64>()?, [f64::INFINITY]);
    /// assert_eq!(model.compile(&options)?.session().run_tensors(&[x])?[0].to_vec::<f64>()?, [1000.0]);
    /// # Ok::<(), cembra::Error>(())
    /// ```
    #[must_use]
    pub fn tensor_rule(self, rule: cembra_tensor::RewriteRule<'static>) -> Self {
        self.with(|options| options.compile.tensor_rules.push(rule))
    }

    /// Lets rewrites of graphs of tensors change something: without this, those apply that keep every bit.
    #[must_use]
    pub fn allow_tensor_changes(self, change: cembra_tensor::Exactness) -> Self {
        self.with(|options| options.compile.allowed_changes.push(change))
    }

    /// The fewest elements of tensors for which a thread takes a turn, where [runs have several](crate::RunOptions::threads); 65,536 unless
    /// something else is said. Results do not depend on it.
    #[must_use]
    pub fn min_parallel_elements(self, elements: usize) -> Self {
        self.with(|options| options.compile.min_parallel_elements = Some(elements))
    }

    /// When a model of `Backend::Tiered` is compiled, and when its calls take the machine code.
    #[must_use]
    pub fn tiering(self, tiering: Tiering) -> Self {
        self.with(|options| options.compile.tiering = tiering)
    }

    /// Who is told of compilations, fallbacks and executors, in the place of those that
    /// [`install_metrics`](crate::install_metrics) installed for the process.
    #[must_use]
    pub fn metrics(self, metrics: Arc<dyn Metrics>) -> Self {
        self.with(|options| options.compile.metrics = Some(metrics))
    }

    /// Where machine code is kept from one process to the next. A model whose code is there is not compiled again.
    ///
    /// ```
    /// use cembra::{CodeCache, Model, Options, Value};
    ///
    /// # let home = std::env::temp_dir().join(format!("cembra-doc-{}", std::process::id()));
    /// let cache = CodeCache::open(home.join("cembra"))?;
    /// let options = Options::default().code_cache(cache.clone());
    /// for hits in [0, 1] {
    ///     let mut session = Model::parse("input x: f64; x * 2")?.compile(&options)?.session();
    ///     assert_eq!(session.evaluate(&[Value::from(1.5)])?, [Value::from(3.0)]);
    ///     assert_eq!((cache.counters().hits, cache.counters().misses), (hits, 1));
    /// }
    /// # std::fs::remove_dir_all(home).unwrap();
    /// # Ok::<(), cembra::Error>(())
    /// ```
    #[must_use]
    pub fn code_cache(self, cache: CodeCache) -> Self {
        self.with(|options| options.compile.code_cache = Some(cache))
    }

    /// The type of an input that the model does not declare (or declares the same). A name that is no input is ignored.
    #[must_use]
    pub fn input_type(mut self, name: &str, qtype: QType) -> Self {
        self.compile.input_types.insert(name.to_owned(), qtype);
        self
    }

    /// An input with a default that nobody gives: it is its default, and no input of what is compiled. Loaders and structs that do
    /// not know an input leave it out by themselves; the name of an input without a default is ignored.
    ///
    /// ```
    /// use cembra::{Model, Options, Value};
    ///
    /// let model = Model::parse("input price: f64; input discount: f64? = 0.25; price * (1.0 - discount)")?;
    /// let mut session = model.compile(&Options::default())?.session();
    /// assert_eq!(session.evaluate(&[Value::from(8.0), Value::from(None::<f64>)])?, [Value::from(6.0)]);
    /// let mut session = model.compile(&Options::default().without_input("discount"))?.session();
    /// assert_eq!(session.evaluate(&[Value::from(8.0)])?, [Value::from(6.0)]);
    /// # Ok::<(), cembra::Error>(())
    /// ```
    #[must_use]
    pub fn without_input(mut self, name: &str) -> Self {
        self.compile.prepare.absent.insert(name.to_owned());
        self
    }

    /// Arolla's rewrites too, some of which change the sign of a zero, a NaN or a rounding.
    #[must_use]
    pub fn compat(self, compat: bool) -> Self {
        self.with(|options| options.compile.prepare.mode = if compat { Mode::Compat } else { Mode::Strict })
    }

    /// Only these outputs, in this order; others are not computed. [`Model::executor`](crate::Model::executor) takes the
    /// fields of its output struct instead.
    #[must_use]
    pub fn outputs<S: Into<String>>(self, names: impl IntoIterator<Item = S>) -> Self {
        self.with(|options| options.binding.outputs = Some(names.into_iter().map(Into::into).collect()))
    }

    /// Leaves out a pass of preparation that is optional. For finding out which pass is to
    /// blame. With another name, the model does not compile (`option`).
    #[must_use]
    pub fn without_pass(self, pass: &str) -> Self {
        self.with(|options| options.compile.prepare.without.push(pass.to_owned()))
    }

    /// Leaves out a rewrite of the optimiser, by its name, which `docs/rewrites.md` has. For finding out which one is to blame. With
    /// a name that none has, the model does not compile (`option`).
    ///
    /// ```
    /// use cembra::{Model, Options, Stage};
    ///
    /// let model = Model::parse("input x: i32; x * 1")?;
    /// let kept = Options::default().without_rewrite("a * 1 -> a");
    /// assert!(!model.explain(&Options::default(), Stage::Plan)?.contains("math.multiply"));
    /// assert!(model.explain(&kept, Stage::Plan)?.contains("math.multiply"));
    /// # Ok::<(), cembra::Error>(())
    /// ```
    #[must_use]
    pub fn without_rewrite(self, rewrite: &str) -> Self {
        self.with(|options| options.compile.prepare.without_rewrites.push(rewrite.to_owned()))
    }

    /// Stops preparation after a pass; such a model can be explained but not run. With a name that no pass has, it cannot
    /// be explained either (`option`).
    #[must_use]
    pub fn stop_after(self, pass: &str) -> Self {
        self.with(|options| options.compile.prepare.stop_after = Some(pass.to_owned()))
    }

    /// Adds a rewrite of one's own, run after the optimiser. Several are asked in the order they were added; the first that
    /// has a replacement for a node is taken. The guide has an example.
    #[must_use]
    pub fn extension(self, extension: Arc<dyn Extension>) -> Self {
        self.with(|options| options.compile.prepare.extensions.push(extension))
    }

    /// Keeps outputs that are weak floats as they are; otherwise they become f64.
    #[must_use]
    pub fn keep_weak_outputs(self, keep: bool) -> Self {
        self.with(|options| options.compile.prepare.keep_weak_outputs = keep)
    }

    /// Lets a model have outputs that a listener does not know. They are not computed; otherwise they are an error.
    #[must_use]
    pub fn ignore_not_listened_named_outputs(self, ignore: bool) -> Self {
        self.with(|options| options.binding.ignore_unheard = ignore)
    }

    /// Casts outputs to the types that the result's struct or the listener asks for, where `core.cast` can: numbers and booleans among each
    /// other, and a plain value to an optional. Otherwise another type is an error.
    #[must_use]
    pub fn cast_outputs(self, cast: bool) -> Self {
        self.with(|options| options.binding.cast_outputs = cast)
    }

    /// Lets the result's struct or the listener ask for a plain value where the model gives an optional one; a missing value is then an
    /// error of the evaluation (`missing-value`).
    #[must_use]
    pub fn require_present(self, require: bool) -> Self {
        self.with(|options| options.binding.require_present = require)
    }

    /// What compiling and evaluating the model may take. Limits of reading are given where it is read, with
    /// [`Model::parse_within`](crate::Model::parse_within); the model keeps them, so of two limits the lower one holds.
    ///
    /// ```
    /// use cembra::{Limits, Model, Options};
    ///
    /// let model = Model::parse("input x, y: f64; x + y")?;
    /// let small = Options::default().limits(Limits::default().frame_bytes(16));
    /// let error = model.compile(&small).unwrap_err();
    /// assert_eq!(error.code(), "limit");
    /// assert!(error.to_string().starts_with("the model exceeds the limit `frame_bytes` of 16 bytes of a frame"));
    /// # Ok::<(), cembra::Error>(())
    /// ```
    #[must_use]
    pub fn limits(self, limits: Limits) -> Self {
        self.with(|options| options.compile.prepare.budget = Budget::new(limits))
    }

    /// Silences the warnings of a code, of [`Code::WARNINGS`]; that of an error is ignored.
    #[must_use]
    pub fn allow(self, warning: Code) -> Self {
        self.with(|options| options.binding.allowed.push(warning))
    }

    /// Returns these options, changed by `set`.
    fn with(mut self, set: impl FnOnce(&mut Options)) -> Self {
        set(&mut self);
        self
    }

    /// The same options for a compilation that begins now, of a model with this name, read from these texts with these operators.
    pub(crate) fn started(
        &self,
        name: Option<&Arc<str>>,
        sources: Option<&Arc<Sources>>,
        registry: &'static Registry,
        limits: Option<&Limits>,
    ) -> StartedOptions {
        let mut compile = self.compile.started(name, sources, registry);
        if limits.is_some() {
            compile.prepare.budget = Budget::start(self.limits_for(limits));
        }
        StartedOptions { compile, binding: self.binding.clone() }
    }

    /// The limits of compiling a model that was read within `limits`; `None` stands for the default limits.
    pub(crate) fn limits_for(&self, limits: Option<&Limits>) -> Limits {
        let own = self.compile.prepare.budget.limits();
        limits.map_or(*own, |limits| own.lowered_by(limits))
    }
}

/// The options of a compilation that has begun, with those of binding. The engine takes it as [`Started`].
#[derive(Debug)]
pub(crate) struct StartedOptions {
    compile: Started,
    pub(crate) binding: BindingOptions,
}

impl Deref for StartedOptions {
    type Target = Started;

    fn deref(&self) -> &Started {
        &self.compile
    }
}

impl DerefMut for StartedOptions {
    fn deref_mut(&mut self) -> &mut Started {
        &mut self.compile
    }
}
