//! The options for compiling a model: those for the engine, and those for connecting the model with the caller's data.

use crate::Backend;
use crate::explain::RowPlayer;
use crate::metrics::Metrics;
use crate::native::Tiering;
use cembra_engine::{CompileOptions, TimedOptions};
use cembra_expr::Sources;
use cembra_native::{CodeCache, Tier};
use cembra_ops::Registry;
use cembra_prepare::{Extension, Mode};
use cembra_runtime::QType;
use cembra_value::{Budget, Code, Limits};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Options for compiling a model. By default, the model is compiled to machine code where possible, rewrites keep every bit of the results, and all
/// outputs are computed.
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

/// The compile options that the engine does not need: how a model is connected with the caller's data, and which warnings are silenced.
#[derive(Clone, Debug, Default)]
pub(crate) struct BindingOptions {
    /// The names of the outputs to compute, in this order; `None` for all outputs.
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
    /// Sets the registry of operators, in place of the one that the model was read with. This is for models that were read from a binary file or
    /// built in Rust and have user-defined operators.
    #[must_use]
    pub fn registry(self, registry: &'static Registry) -> Self {
        self.with(|options| options.compile.registry = Some(registry))
    }

    /// Sets the model's name in profiles ([`profile_code`](crate::metrics::profile_code)), metrics and tracing spans. The default is
    /// [`Model::name`](crate::Model::name), or `model` if the model has no name.
    #[must_use]
    pub fn name(self, name: &str) -> Self {
        self.with(|options| options.compile.name = Some(name.into()))
    }

    /// Sets the backend that runs the model.
    #[must_use]
    pub fn backend(self, backend: Backend) -> Self {
        self.with(|options| options.compile.backend = backend)
    }

    /// Sets how much optimisation the machine code gets. A lower tier suits a model that runs seldom or is needed at once. With `Backend::Tiered`,
    /// this is the last tier that the model is compiled in.
    #[must_use]
    pub fn tier(self, tier: Tier) -> Self {
        self.with(|options| options.compile.tier = tier)
    }

    /// Sets the backend that evaluates many rows at a time. This is for tests and benchmarks; by default, the compiler chooses the backend.
    #[must_use]
    pub fn row_player(self, player: RowPlayer) -> Self {
        self.with(|options| options.compile.row_player = player)
    }

    /// If true, the sums in products of tensors are added in the order of the labels, one term after the other. That is the order of
    /// `Backend::Interpreter`, and gives the same bits on every machine. It takes many times as long as blocked matrix products.
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

    /// Adds to the options a rewrite rule for tensor graphs. The rule is tried before the library's own rules.
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

    /// Allows rewrites of tensor graphs that change results as `change` describes. By default, only rewrites that keep every bit of the results are
    /// allowed.
    #[must_use]
    pub fn allow_tensor_changes(self, change: cembra_tensor::Exactness) -> Self {
        self.with(|options| options.compile.allowed_changes.push(change))
    }

    /// Sets the fewest tensor elements that are worth a task on another thread, if [runs have several threads](crate::RunOptions::threads). The
    /// default is 65,536. Results do not depend on this number.
    #[must_use]
    pub fn min_parallel_elements(self, elements: usize) -> Self {
        self.with(|options| options.compile.min_parallel_elements = Some(elements))
    }

    /// Sets when a model of `Backend::Tiered` is compiled, and when its calls switch to the machine code.
    #[must_use]
    pub fn tiering(self, tiering: Tiering) -> Self {
        self.with(|options| options.compile.tiering = tiering)
    }

    /// Sets the receiver of events about compilations, fallbacks and executors, in place of the one installed for the process with
    /// [`install_metrics`](crate::metrics::install_metrics).
    #[must_use]
    pub fn metrics(self, metrics: Arc<dyn Metrics>) -> Self {
        self.with(|options| options.compile.metrics = Some(metrics))
    }

    /// Sets a cache on disk for machine code, so that another process need not compile the same model again.
    ///
    /// ```
    /// use cembra::native::CodeCache;
    /// use cembra::{Model, Options, Value};
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

    /// Sets the type of an input. If the model declares the input, the types must be equal. A name that is not an input is ignored.
    #[must_use]
    pub fn input_type(mut self, name: &str, qtype: QType) -> Self {
        self.compile.input_types.insert(name.to_owned(), qtype);
        self
    }

    /// Leaves out an input that has a default: the model uses the default, and the compiled model has no such input. This is not necessary for a
    /// loader or a struct that does not know the input. The name of an input without a default is ignored.
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

    /// If true, also applies Arolla's rewrites, some of which change the sign of a zero, a NaN or a rounding in results.
    #[must_use]
    pub fn compat(self, compat: bool) -> Self {
        self.with(|options| options.compile.prepare.mode = if compat { Mode::Compat } else { Mode::Strict })
    }

    /// Computes only the outputs `names`, in this order. [`Model::executor`](crate::Model::executor) uses the fields of its output struct instead.
    #[must_use]
    pub fn outputs<S: Into<String>>(self, names: impl IntoIterator<Item = S>) -> Self {
        self.with(|options| options.binding.outputs = Some(names.into_iter().map(Into::into).collect()))
    }

    /// Leaves out the optional preparation pass `pass`, to find out which pass causes a problem. If no optional pass has this name, compiling fails
    /// with the error code `option`.
    #[must_use]
    pub fn without_pass(self, pass: &str) -> Self {
        self.with(|options| options.compile.prepare.without.push(pass.to_owned()))
    }

    /// Leaves out the optimiser's rewrite `rewrite`, to find out which rewrite causes a problem. `docs/rewrites.md` lists the names. If no rewrite
    /// has this name, compiling fails with the error code `option`.
    ///
    /// ```
    /// use cembra::explain::Stage;
    /// use cembra::{Model, Options};
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

    /// Stops preparation after the pass `pass`. Such a model can be explained but not run. If no pass has this name, explaining fails too, with the
    /// error code `option`.
    #[must_use]
    pub fn stop_after(self, pass: &str) -> Self {
        self.with(|options| options.compile.prepare.stop_after = Some(pass.to_owned()))
    }

    /// Adds a user-defined rewrite of the graph, which runs after the optimiser. Several extensions are tried in the order in which they were added,
    /// and the first that has a replacement for a node is used. The guide has an example.
    #[must_use]
    pub fn extension(self, extension: Arc<dyn Extension>) -> Self {
        self.with(|options| options.compile.prepare.extensions.push(extension))
    }

    /// If true, outputs of the type weak float (the type of literals such as `0.5`) keep this type; otherwise they become f64.
    #[must_use]
    pub fn keep_weak_outputs(self, keep: bool) -> Self {
        self.with(|options| options.compile.prepare.keep_weak_outputs = keep)
    }

    /// If true, outputs that a listener does not know are not computed; otherwise they are an error.
    #[must_use]
    pub fn ignore_not_listened_named_outputs(self, ignore: bool) -> Self {
        self.with(|options| options.binding.ignore_unheard = ignore)
    }

    /// If true, outputs are cast to the types of the output struct's fields or of the listener, where `core.cast` can do so: between numbers and
    /// booleans, and from a plain value to an optional. If false, a different type is an error.
    #[must_use]
    pub fn cast_outputs(self, cast: bool) -> Self {
        self.with(|options| options.binding.cast_outputs = cast)
    }

    /// If true, the output struct or the listener may have a plain type for an optional output of the model. A missing value is then an error of the
    /// evaluation, with the code `missing-value`.
    #[must_use]
    pub fn require_present(self, require: bool) -> Self {
        self.with(|options| options.binding.require_present = require)
    }

    /// Sets limits on compiling and evaluating the model. The limits on reading are set where the model is read, with
    /// [`Model::parse_within`](crate::Model::parse_within). The model remembers those limits; if both methods set a limit, the lower one holds.
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

    /// Silences the warnings with this code, one of [`Code::WARNINGS`]. The code of an error is ignored.
    #[must_use]
    pub fn allow(self, warning: Code) -> Self {
        self.with(|options| options.binding.allowed.push(warning))
    }

    /// Returns these options, changed by `set`.
    fn with(mut self, set: impl FnOnce(&mut Options)) -> Self {
        set(&mut self);
        self
    }

    /// Returns these options for a compilation that begins now. `name`, `sources`, `registry` and `limits` are those that the model was read with.
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

    /// The limits for compiling a model with these options. `limits` are those within which the model was read; `None` stands for the default
    /// limits.
    pub(crate) fn limits_for(&self, limits: Option<&Limits>) -> Limits {
        let own = self.compile.prepare.budget.limits();
        limits.map_or(*own, |limits| own.lowered_by(limits))
    }
}

/// The options of a compilation that has begun: those for the engine, and those for connecting the model with the caller's data.
#[derive(Debug)]
pub(crate) struct StartedOptions {
    compile: TimedOptions,
    pub(crate) binding: BindingOptions,
}

impl Deref for StartedOptions {
    type Target = TimedOptions;

    fn deref(&self) -> &TimedOptions {
        &self.compile
    }
}

impl DerefMut for StartedOptions {
    fn deref_mut(&mut self) -> &mut TimedOptions {
        &mut self.compile
    }
}
