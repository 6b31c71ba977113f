//! The one error of the library: what was wrong with a model, its binding, or an evaluation; with a code, a place in the
//! source where there is one, and hints.

use crate::rendering::{Expression, Renderer, Source};
use cembra_expr::{Sources, print_value};
use cembra_runtime::{Cancellation, Excerpt, FaultKind, QType};
use cembra_value::{Code, Diagnostic, Diagnostics, Label, Limit, ScalarValue, Span, Value};
use std::fmt;
use std::sync::Arc;

/// Anything that can go wrong between a model's text and its results. One word wide, cheap to clone.
///
/// ```
/// use cembra::{FaultKind, Model, Options, Value};
///
/// let source = "input x: i32; 100 // (x - 1)";
/// let mut session = Model::parse(source)?.compile(&Options::default())?.session();
/// let error = session.evaluate(&[Value::from(1)]).unwrap_err();
/// assert_eq!(error.fault_kind(), Some(FaultKind::DivisionByZero));
/// assert_eq!((error.code(), error.operator()), ("div-by-zero", Some("math.floordiv")));
/// assert_eq!(error.span().map(|span| span.text(source)), Some("100 // (x - 1)"));
/// assert_eq!(error.to_string(), "math.floordiv: division by zero (line 1, column 15: `100 // (x - 1)`)");
///
/// let error = Model::parse("(1 + 2").unwrap_err();
/// assert!(!error.is_fault());
/// assert_eq!((error.code(), error.to_string().as_str()), ("bracket", "this bracket is never closed"));
/// # Ok::<(), cembra::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Error(Arc<Kind>);

#[derive(Debug)]
enum Kind {
    /// The model, or how it was to be bound.
    Model(Diagnostics),
    /// An evaluation stopped.
    Fault(Fault),
    /// Values given to a call that do not fit.
    Values(String),
    /// A value given to a call breaks what its input promises.
    Promise { problem: Diagnostics, element: Option<usize> },
    /// What is wrong with the tensors of a model.
    #[cfg_attr(not(feature = "tensors"), expect(dead_code, reason = "without tensors nothing is wrong with any"))]
    Tensors {
        problem: Diagnostics,
        #[cfg(feature = "tensors")]
        cause: cembra_tensor::TensorError,
        /// The texts that the place of a fault is in.
        #[cfg(feature = "tensors")]
        sources: Option<Arc<Sources>>,
    },
}

/// Why an evaluation stopped, and where.
#[derive(Clone, Debug)]
struct Fault {
    kind: FaultKind,
    operator: Option<String>,
    detail: String,
    span: Option<Span>,
    /// The calls of functions that led there.
    calls: Vec<Label>,
    /// What the span is of.
    sources: Option<Arc<Sources>>,
    place: Option<Place>,
    /// What to raise.
    limit: Option<Limit>,
}

impl Fault {
    fn new(kind: FaultKind, detail: String, limit: Option<Limit>) -> Self {
        Fault { kind, operator: None, detail, span: None, calls: Vec::new(), sources: None, place: None, limit }
    }
}

/// Which of many evaluations at once a fault is of.
#[derive(Clone, Copy, Debug)]
enum Place {
    Row(usize),
    Element(usize),
    ElementOfRow(usize, usize),
}

impl Error {
    pub(crate) fn fault(
        kind: FaultKind,
        operator: String,
        operand: Option<Value>,
        result: &QType,
        text: &str,
        span: Option<Span>,
    ) -> Self {
        let operand = match kind {
            FaultKind::Parse => Some(Value::from(&*Excerpt::quoted(text).to_string())),
            _ => operand.map(any_nan),
        };
        let operand = operand.as_ref().map(print_value);
        let detail = kind.describe(operand.as_deref(), &result.to_string(), text);
        let limit = limit(kind).filter(|_| kind != FaultKind::ArenaLimit || text.is_empty());
        Error::from(Fault { operator: Some(operator), span, ..Fault::new(kind, detail, limit) })
    }

    /// The fault of a step that made more arrays than an evaluation may have.
    pub(crate) fn of_arrays(operator: String, span: Option<Span>) -> Self {
        Error::of_array_bytes(Some(operator), "the arrays of one evaluation exceed the limit `array_bytes`", span)
    }

    /// The fault of a run over more rows than there may be, where there is no memory of the caller's for each.
    pub(crate) fn of_rows() -> Self {
        let detail = "outputs for so many rows, for which there are no columns, exceed the limit `array_bytes`";
        Error::of_array_bytes(None, detail, None)
    }

    /// The fault of a run over lists of more elements than there may be, where there is no memory of the caller's for each.
    pub(crate) fn of_elements() -> Self {
        let detail = "lists of so many elements, for which there is no memory, exceed the limit `array_bytes`";
        Error::of_array_bytes(None, detail, None)
    }

    /// The fault of an input of more units than there may be: they take no memory, but what is made of them does.
    pub(crate) fn of_units() -> Self {
        let detail = "what is made of an array of so many units may exceed the limit `array_bytes`";
        Error::of_array_bytes(None, detail, None)
    }

    /// The error that the strings, lists and tuples of many rows take too much.
    #[cold]
    pub(crate) fn of_made() -> Self {
        let detail = "the strings, lists and tuples of so many rows exceed the limit `array_bytes`";
        Error::of_array_bytes(None, detail, None)
    }

    fn of_array_bytes(operator: Option<String>, detail: &str, span: Option<Span>) -> Self {
        let (kind, limit) = (FaultKind::ArenaLimit, Some(Limit::ArrayBytes));
        let detail = kind.describe(None, "", detail);
        Error::from(Fault { operator, span, ..Fault::new(kind, detail, limit) })
    }

    /// The fault of an evaluation whose token was cancelled.
    pub fn ended_by(token: Option<&Cancellation>) -> Self {
        Error::of_evaluation(token.map_or(FaultKind::Cancelled, Cancellation::fault))
    }

    /// A fault of an evaluation as a whole; where it was noticed says nothing about the model.
    pub(crate) fn of_evaluation(kind: FaultKind) -> Self {
        let detail = kind.describe(None, "", "");
        Error::from(Fault::new(kind, detail, limit(kind)))
    }

    /// The same fault, of a row of a batch.
    pub fn in_row(self, at: usize) -> Self {
        let element = self.element().map(|element| Place::ElementOfRow(element, at));
        self.with(|fault| fault.place = element.or(Some(Place::Row(at))))
    }

    /// The fault of a row, which was an element of arrays.
    pub(crate) fn in_element(self) -> Self {
        let element = self.row().map(Place::Element);
        self.with(|fault| fault.place = element)
    }

    /// The same fault, of a model that was read from these texts.
    pub(crate) fn in_sources(self, sources: Option<&Arc<Sources>>) -> Self {
        #[cfg(feature = "tensors")]
        if let Kind::Tensors { problem, cause, .. } = &*self.0 {
            let (problem, cause) = (problem.clone(), cause.clone());
            return Error(Arc::new(Kind::Tensors { problem, cause, sources: sources.cloned() }));
        }
        self.with(|fault| fault.sources = sources.cloned())
    }

    /// The calls of functions that led to a fault.
    pub(crate) fn in_calls(self, calls: Vec<Label>) -> Self {
        if calls.is_empty() { self } else { self.with(|fault| fault.calls = calls) }
    }

    fn with(self, change: impl FnOnce(&mut Fault)) -> Self {
        let Kind::Fault(fault) = &*self.0 else { return self };
        let mut fault = fault.clone();
        change(&mut fault);
        fault.into()
    }

    /// An error of values that do not fit, for loaders and listeners of one's own. Its code is `values`. Beyond 1,000 characters
    /// the message is cut.
    #[must_use]
    pub fn values(message: impl Into<String>) -> Self {
        Error(Arc::new(Kind::Values(Excerpt::of_message(message.into()))))
    }

    /// An error of a value that breaks what its input promises, in an element of it.
    pub(crate) fn promise(problem: Diagnostic, element: Option<usize>) -> Self {
        Error(Arc::new(Kind::Promise { problem: problem.into(), element }))
    }

    /// An error of tensors, with the diagnostic that a model reports for it.
    #[cfg(feature = "tensors")]
    pub(crate) fn tensors(cause: cembra_tensor::TensorError, problem: Diagnostic) -> Self {
        Error(Arc::new(Kind::Tensors { problem: problem.into(), cause, sources: None }))
    }

    /// For a model with tensors whose labels, types or axes do not fit, what is wrong with those: its kind says more than the code.
    ///
    /// ```
    /// use cembra::tensor::TensorErrorKind;
    /// use cembra::{Model, Options};
    ///
    /// let text = "input a: tensor[f64, 2], b: tensor[f64, 2]; c(\"i,j\") = a(\"i,k\") * b(\"k,l\")";
    /// let error = Model::parse(text)?.compile(&Options::default()).unwrap_err();
    /// assert_eq!(error.code(), "labels");
    /// assert_eq!(error.tensor_error().map(|error| error.kind()), Some(TensorErrorKind::FreeLabel));
    /// # Ok::<(), cembra::Error>(())
    /// ```
    #[cfg(feature = "tensors")]
    #[must_use]
    pub fn tensor_error(&self) -> Option<&cembra_tensor::TensorError> {
        match &*self.0 {
            Kind::Tensors { cause, .. } => Some(cause),
            _ => None,
        }
    }

    /// The kind of problem, stable across versions: a `Code`'s name, a fault's (`div-by-zero`), or `values`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match &*self.0 {
            #[cfg(feature = "tensors")]
            Kind::Tensors { cause, .. } if let Some(fault) = cause.fault_kind() => fault.name(),
            Kind::Model(diagnostics)
            | Kind::Promise { problem: diagnostics, .. }
            | Kind::Tensors { problem: diagnostics, .. } => diagnostics.first().code().as_str(),
            Kind::Fault(fault) => fault.kind.name(),
            Kind::Values(_) => "values",
        }
    }

    /// Where in the source, if the model came from text.
    #[must_use]
    pub fn span(&self) -> Option<Span> {
        match &*self.0 {
            Kind::Model(diagnostics)
            | Kind::Promise { problem: diagnostics, .. }
            | Kind::Tensors { problem: diagnostics, .. } => diagnostics.first().span(),
            Kind::Fault(fault) => fault.span,
            Kind::Values(_) => None,
        }
    }

    /// For a fault at run time, the canonical name of the operator that the model applies there: `math.floordiv` for `//`.
    /// A cancelled evaluation has none, nor has one that does too much work on strings.
    #[must_use]
    pub fn operator(&self) -> Option<&str> {
        match &*self.0 {
            Kind::Fault(fault) => fault.operator.as_deref(),
            #[cfg(feature = "tensors")]
            Kind::Tensors { cause, .. } => cause.operator(),
            _ => None,
        }
    }

    /// For a fault at run time, its kind.
    #[must_use]
    pub fn fault_kind(&self) -> Option<FaultKind> {
        match &*self.0 {
            Kind::Fault(fault) => Some(fault.kind),
            #[cfg(feature = "tensors")]
            Kind::Tensors { cause, .. } => cause.fault_kind(),
            _ => None,
        }
    }

    /// For a fault in a batch, the row it happened in, counted from 0.
    #[must_use]
    pub fn row(&self) -> Option<usize> {
        match self.place() {
            Some(Place::Row(row) | Place::ElementOfRow(_, row)) => Some(row),
            _ => None,
        }
    }

    /// For a fault in an element of arrays, which element, counted from 0; for an array of which none may be missing, the first
    /// that is.
    #[must_use]
    pub fn element(&self) -> Option<usize> {
        match (&*self.0, self.place()) {
            (_, Some(Place::Element(element) | Place::ElementOfRow(element, _))) => Some(element),
            (Kind::Promise { element, .. }, _) => *element,
            _ => None,
        }
    }

    fn place(&self) -> Option<Place> {
        match &*self.0 {
            Kind::Fault(fault) => fault.place,
            _ => None,
        }
    }

    /// True if an evaluation failed, as opposed to the model or its binding.
    #[must_use]
    pub fn is_fault(&self) -> bool {
        self.fault_kind().is_some()
    }

    /// What is wrong, on a line of its own: as it is displayed, but that a fault does not say where in the model's text it happened.
    /// It is the same whatever the model was read from.
    #[must_use]
    pub fn message(&self) -> String {
        match &*self.0 {
            Kind::Fault(fault) => fault.to_string(),
            #[cfg(feature = "tensors")]
            Kind::Tensors { problem, .. } => problem.to_string(),
            _ => self.to_string(),
        }
    }

    #[cfg(feature = "tensors")]
    /// The same without a row: of an element of a tensor, whose rows mean nothing to anybody.
    pub(crate) fn message_of_element(&self) -> String {
        match &*self.0 {
            Kind::Fault(fault) => fault.what(),
            _ => self.to_string(),
        }
    }

    /// The error for people: each problem with its code, file, line and column, the lines it is about with marks under them,
    /// and hints. The source is what the error is of: the model, its text, or a [`Source`] with a name for the text. A model's
    /// name is that of its file or of `Model::named`. For colours take a [`Renderer`].
    ///
    /// ```
    /// use cembra::{Model, Options};
    ///
    /// let model = Model::parse("input price: f64\noutput total = price * \"tax\"")?.named("pricing.cem");
    /// let error = model.compile(&Options::default()).unwrap_err();
    /// assert_eq!(error.render(&model), "\
    /// error[type-mismatch]: math.multiply expects a number for `y`, found text
    ///  --> pricing.cem:2:24
    ///   |
    /// 2 | output total = price * \"tax\"
    ///   |                -----   ^^^^^ this is text
    ///   |                |
    ///   |                this is f64
    ///   |
    ///   = help: a text becomes a number by `strings.parse_float64(..)` or `strings.parse_int64(..)`");
    /// # Ok::<(), cembra::Error>(())
    /// ```
    #[must_use]
    pub fn render<'s>(&self, source: impl Into<Source<'s>>) -> String {
        Renderer::plain().errors(&self.diagnostics(), &[], source)
    }

    /// The problems of a model, all that were found; a fault is one problem too.
    #[must_use]
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        match &*self.0 {
            Kind::Model(diagnostics)
            | Kind::Promise { problem: diagnostics, .. }
            | Kind::Tensors { problem: diagnostics, .. } => diagnostics.as_slice().to_vec(),
            Kind::Fault(fault) => {
                let diagnostic = Diagnostic::new(Code::Evaluation, self.message()).at(fault.span);
                let diagnostic =
                    fault.calls.iter().fold(diagnostic, |one, call| one.also(call.span, call.text.clone()));
                vec![match fault.limit {
                    Some(limit) => diagnostic.hint(limit.hint()),
                    None => diagnostic,
                }]
            }
            Kind::Values(message) => vec![Diagnostic::new(Code::Evaluation, message.clone())],
        }
    }
}

/// The limit that a fault is mostly of.
const fn limit(kind: FaultKind) -> Option<Limit> {
    match kind {
        FaultKind::ArenaLimit => Some(Limit::ArenaBytes),
        FaultKind::IterationLimit => Some(Limit::LoopIterations),
        FaultKind::WorkLimit => Some(Limit::StringWork),
        _ => None,
    }
}

/// The value, with its NaN like any other: its sign and payload are the machine's and differ between backends.
fn any_nan(value: Value) -> Value {
    match value {
        Value::Scalar(ScalarValue::Float32(v)) if v.is_nan() => f32::NAN.into(),
        Value::Scalar(ScalarValue::Float64(v)) if v.is_nan() => f64::NAN.into(),
        Value::Scalar(ScalarValue::WeakFloat(v)) if v.is_nan() => Value::Scalar(ScalarValue::WeakFloat(f64::NAN)),
        other => other,
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let placed =
            |f: &mut fmt::Formatter<'_>, sources: &Option<Arc<Sources>>, span: Option<Span>| match (sources, span) {
                (Some(sources), Some(span)) => write!(f, " ({})", Expression::at(sources.place(span))),
                _ => Ok(()),
            };
        match &*self.0 {
            #[cfg(feature = "tensors")]
            Kind::Tensors { problem, cause, sources } if cause.fault_kind().is_some() => {
                write!(f, "{problem}")?;
                placed(f, sources, cause.span())
            }
            Kind::Model(diagnostics)
            | Kind::Promise { problem: diagnostics, .. }
            | Kind::Tensors { problem: diagnostics, .. } => write!(f, "{diagnostics}"),
            Kind::Fault(fault) => {
                write!(f, "{fault}")?;
                placed(f, &fault.sources, fault.span)
            }
            Kind::Values(message) => f.write_str(message),
        }
    }
}

impl Fault {
    /// The operator, and what is wrong.
    fn what(&self) -> String {
        self.operator
            .as_ref()
            .map_or_else(|| self.detail.to_string(), |operator| format!("{operator}: {}", self.detail))
    }
}

/// The operator, what is wrong, and in which row: without the place in the text.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what())?;
        match self.place {
            Some(Place::Row(row)) => write!(f, ", in row {row}"),
            Some(Place::Element(element)) => write!(f, ", in element {element}"),
            Some(Place::ElementOfRow(element, row)) => write!(f, ", in element {element} of row {row}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        Error(Arc::new(Kind::Fault(fault)))
    }
}

impl From<Diagnostics> for Error {
    fn from(diagnostics: Diagnostics) -> Self {
        Error(Arc::new(Kind::Model(diagnostics)))
    }
}

impl From<Diagnostic> for Error {
    fn from(diagnostic: Diagnostic) -> Self {
        Diagnostics::from(diagnostic).into()
    }
}
