//! The error of the library: a problem of a model, of its binding or of an evaluation. It has a code, hints and, if the
//! model came from text, a span.

use crate::rendering::{Expression, Renderer, Source};
use crate::{Code, Diagnostic, Diagnostics, Label, Limit, Span, TensorErrorKind, Texts};
use cembra_runtime::{Cancellation, Excerpt, FaultKind, visible};
use std::fmt;
use std::sync::Arc;

/// Anything that can go wrong between a model's text and its results. An error is one word wide and cheap to clone.
///
/// ```
/// use cembra::{FaultKind, Model, Options, Value};
///
/// let source = "input x: i32; 100 // (x - 1)";
/// let mut session = Model::parse(source)?.compile(&Options::default())?.session();
/// let error = session.evaluate(&[Value::from(1)]).unwrap_err();
/// assert_eq!(error.fault_kind(), Some(FaultKind::DivisionByZero));
/// assert_eq!((error.code(), error.operator()), ("div-by-zero", Some("math.floor_divide")));
/// assert_eq!(error.span().map(|span| span.text(source)), Some("100 // (x - 1)"));
/// assert_eq!(error.to_string(), "math.floor_divide: division by zero (line 1, column 15: `100 // (x - 1)`)");
///
/// let error = Model::parse("(1 + 2").unwrap_err();
/// assert!(!error.is_fault());
/// assert_eq!((error.code(), error.to_string().as_str()), ("bracket", "this bracket is never closed"));
/// # Ok::<(), cembra::Error>(())
/// ```
///
/// The `Debug` form of an error, which a `main` that returns the error prints, has the excerpts of [`Error::render`]:
///
/// ```
/// let error = cembra::Model::parse("input x: f64\nsqr(x)").unwrap_err();
/// assert!(format!("{error:?}").starts_with("error[unknown-name]: there is no operator `sqr`\n --> model:2:1\n  |\n2 | sqr(x)\n  | ^^^"));
/// ```
#[derive(Clone)]
pub struct Error(Arc<Kind>);

#[derive(Clone)]
enum Kind {
    /// Problems of the model or its binding, and the texts that their spans are in.
    Model(Diagnostics, Option<Arc<Texts>>),
    /// The fault of an operator or of a whole evaluation, which stopped the evaluation.
    Fault(EvaluationFault),
    /// Values that the caller passed do not fit the call.
    Values {
        message: String,
        /// The line of the data that has the values, counted from 1; `None` if they do not come from text.
        line: Option<usize>,
    },
    /// A value breaks the promise of its input, such as that an array has no missing elements.
    Promise { problem: Diagnostics, element: Option<usize> },
    /// A problem in an operation on tensors, or in a request for tensors.
    Tensors(TensorProblem),
}

/// A problem in an operation on tensors: its kind, its message, and its place.
#[derive(Clone)]
struct TensorProblem {
    kind: TensorErrorKind,
    problem: Diagnostic,
    /// The fault of an element that could not be computed, and the operator that failed; `None` if the run was ended.
    fault: Option<(FaultKind, Option<String>)>,
    /// The code of the fault, if it differs from the code of the fault's kind; else `None`.
    code: Option<&'static str>,
    /// The texts that contain the place of a fault; `None` if the model did not come from text.
    sources: Option<Arc<Texts>>,
}

/// The reason why an evaluation stopped, and the place in the model where it did. The engine makes this fault, which is then
/// converted to an [`Error`].
#[derive(Clone, Debug)]
pub struct EvaluationFault {
    kind: FaultKind,
    /// The code that a user's operator gave to the fault; it replaces the code of the kind.
    code: Option<&'static str>,
    operator: Option<String>,
    detail: String,
    span: Option<Span>,
    /// The calls of functions that led to the fault.
    calls: Vec<Label>,
    /// The texts of the model that the fault's span belongs to; `None` if they are not known.
    sources: Option<Arc<Texts>>,
    place: Option<FaultPlace>,
    /// The limit whose raising would avoid the fault; `None` if no limit helps.
    limit: Option<Limit>,
}

impl EvaluationFault {
    /// Returns a fault that concerns the evaluation as a whole, with the message `detail`. If `kind` is an exceeded
    /// limit, the fault names this limit as the one to raise.
    #[must_use]
    pub fn new(kind: FaultKind, detail: String) -> Self {
        let limit = match kind {
            FaultKind::ArenaLimit => Some(Limit::ArenaBytes),
            FaultKind::IterationLimit => Some(Limit::LoopIterations),
            FaultKind::WorkLimit => Some(Limit::StringWork),
            _ => None,
        };
        EvaluationFault {
            kind,
            code: None,
            operator: None,
            detail: Excerpt::of_message(detail),
            span: None,
            calls: Vec::new(),
            sources: None,
            place: None,
            limit,
        }
    }

    /// Sets the canonical name of the operator that failed.
    #[must_use]
    pub fn operator(self, name: Option<String>) -> Self {
        EvaluationFault { operator: name, ..self }
    }

    /// Sets the code that replaces the code of the fault's kind; `None` keeps the kind's code.
    #[must_use]
    pub fn code(self, code: Option<&'static str>) -> Self {
        EvaluationFault { code, ..self }
    }

    /// Sets the span of the failed operator in the text.
    #[must_use]
    pub fn at(self, span: Option<Span>) -> Self {
        EvaluationFault { span, ..self }
    }

    /// Sets the limit whose raising would avoid the fault; `None` if no limit helps.
    #[must_use]
    pub fn limit(self, limit: Option<Limit>) -> Self {
        EvaluationFault { limit, ..self }
    }

    /// Sets the calls of functions that led to the fault, as labels.
    #[must_use]
    pub fn calls(self, calls: Vec<Label>) -> Self {
        EvaluationFault { calls, ..self }
    }
}

/// The index of the row or of the element whose evaluation failed.
#[derive(Clone, Copy, Debug)]
enum FaultPlace {
    Row(usize),
    Element(usize),
    ElementOfRow(usize, usize),
}

impl Error {
    /// Returns the error of an evaluation that was cancelled by its token.
    pub fn ended_by(token: Option<&Cancellation>) -> Self {
        Error::of_evaluation(token.map_or(FaultKind::Cancelled, Cancellation::fault))
    }

    /// Returns the error of an evaluation as a whole. It has no span, because the operator at which the fault was
    /// noticed did not cause it.
    pub fn of_evaluation(kind: FaultKind) -> Self {
        let detail = kind.describe(None, "", "");
        EvaluationFault::new(kind, detail).into()
    }

    /// Sets the index of the batch's row in which the fault occurred.
    pub fn in_row(self, at: usize) -> Self {
        let element = self.element().map(|element| FaultPlace::ElementOfRow(element, at));
        self.with(|fault| fault.place = element.or(Some(FaultPlace::Row(at))))
    }

    /// Converts the row of the fault to the index of an array element, for elements that are evaluated as rows.
    #[must_use]
    pub fn in_element(self) -> Self {
        let element = self.row().map(FaultPlace::Element);
        self.with(|fault| fault.place = element)
    }

    /// Adds the texts that the model was read from, for excerpts. An error that has texts already keeps them.
    #[must_use]
    pub fn in_sources(mut self, sources: Option<&Arc<Texts>>) -> Self {
        match Arc::make_mut(&mut self.0) {
            Kind::Model(_, texts)
            | Kind::Fault(EvaluationFault { sources: texts, .. })
            | Kind::Tensors(TensorProblem { sources: texts, .. }) => *texts = texts.take().or_else(|| sources.cloned()),
            Kind::Values { .. } | Kind::Promise { .. } => {}
        }
        self
    }

    /// The texts that the error's places belong to, if they are known.
    fn sources(&self) -> Option<&Texts> {
        match &*self.0 {
            Kind::Model(_, sources) => sources.as_deref(),
            Kind::Fault(fault) => fault.sources.as_deref(),
            Kind::Tensors(tensors) => tensors.sources.as_deref(),
            Kind::Values { .. } | Kind::Promise { .. } => None,
        }
    }

    fn with(mut self, change: impl FnOnce(&mut EvaluationFault)) -> Self {
        if let Kind::Fault(fault) = Arc::make_mut(&mut self.0) {
            change(fault);
        }
        self
    }

    /// Returns an error for values that do not fit, for user-defined loaders and listeners. Its code is `values`. The
    /// message is cut after 1,000 characters.
    #[must_use]
    pub fn values(message: impl Into<String>) -> Self {
        Error(Arc::new(Kind::Values { message: Excerpt::of_message(message.into()), line: None }))
    }

    /// For an error that [`values`](Error::values) made, sets the line of the data that the error concerns, counted from 1.
    #[must_use]
    pub fn on_line(mut self, at: usize) -> Self {
        if let Kind::Values { line, .. } = Arc::make_mut(&mut self.0) {
            *line = Some(at);
        }
        self
    }

    /// For values that were read from text, such as a row of JSON, the line of the error, counted from 1; else `None`.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        match &*self.0 {
            Kind::Values { line, .. } => *line,
            _ => None,
        }
    }

    /// Returns the error for a value that breaks the promise of its input. `element` is the index of the element that
    /// breaks the promise; `None` if the problem does not concern a single element.
    #[must_use]
    pub fn promise(problem: Diagnostic, element: Option<usize>) -> Self {
        Error(Arc::new(Kind::Promise { problem: problem.into(), element }))
    }

    /// Returns a tensor error that has no span, for user-defined operators. `kind` determines its code. The message is
    /// cut after 1,000 characters.
    #[must_use]
    #[cold]
    pub fn tensors(kind: TensorErrorKind, message: impl Into<String>) -> Self {
        let problem = Diagnostic::new(kind.code(), message);
        Error(Arc::new(Kind::Tensors(TensorProblem { kind, problem, fault: None, code: None, sources: None })))
    }

    /// For a tensor error, sets the hint and drops any earlier hint.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        self.with_tensors(|TensorProblem { problem, .. }| {
            *problem = Diagnostic::new(problem.code(), problem.message()).at(problem.span()).hint(hint);
        })
    }

    /// For a tensor error that has no span, sets the span in the text. The default span means that there is no text,
    /// and changes nothing.
    #[must_use]
    pub fn at(self, span: Span) -> Self {
        self.with_tensors(|tensors| {
            if span != Span::default() && tensors.problem.span().is_none() {
                tensors.problem = tensors.problem.clone().at(span);
            }
        })
    }

    /// For a tensor error that was caused by the failed evaluation of an element, sets the kind of the fault and the
    /// operator that failed.
    #[must_use]
    pub fn of_fault(self, kind: FaultKind, operator: Option<&str>) -> Self {
        self.with_tensors(|tensors| tensors.fault = Some((kind, operator.map(str::to_owned))))
    }

    /// For a tensor error that was caused by the failed evaluation of an element, sets the code of the fault.
    #[must_use]
    pub fn of_code(self, code: &'static str) -> Self {
        self.with_tensors(|tensors| tensors.code = Some(code))
    }

    fn with_tensors(mut self, change: impl FnOnce(&mut TensorProblem)) -> Self {
        if let Kind::Tensors(tensors) = Arc::make_mut(&mut self.0) {
            change(tensors);
        }
        self
    }

    /// The kind of a tensor error, which is more specific than the code; `None` for other errors.
    ///
    /// ```
    /// use cembra::tensor::TensorErrorKind;
    /// use cembra::{Model, Options};
    ///
    /// let text = "input a: tensor[f64, 2], b: tensor[f64, 2]; c(\"i,j\") = a(\"i,k\") * b(\"k,l\")";
    /// let error = Model::parse(text)?.compile(&Options::default()).unwrap_err();
    /// assert_eq!((error.code(), error.tensor_kind()), ("labels", Some(TensorErrorKind::FreeLabel)));
    /// # Ok::<(), cembra::Error>(())
    /// ```
    #[must_use]
    pub fn tensor_kind(&self) -> Option<TensorErrorKind> {
        match &*self.0 {
            Kind::Tensors(tensors) => Some(tensors.kind),
            _ => None,
        }
    }

    /// The code of the problem, stable across versions: the name of a `Code` or of a kind of fault (`div-by-zero`), a
    /// code that a user's operator gave, or `values`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match &*self.0 {
            Kind::Model(diagnostics, _) | Kind::Promise { problem: diagnostics, .. } => {
                diagnostics.first().code().as_str()
            }
            Kind::Tensors(TensorProblem { fault: Some((kind, _)), code, .. }) => code.unwrap_or(kind.name()),
            Kind::Tensors(tensors) => tensors.problem.code().as_str(),
            Kind::Fault(fault) => fault.code.unwrap_or(fault.kind.name()),
            Kind::Values { .. } => "values",
        }
    }

    /// The span of the error in the source; `None` if the model did not come from text or the error has no span.
    #[must_use]
    pub fn span(&self) -> Option<Span> {
        match &*self.0 {
            Kind::Model(diagnostics, _) | Kind::Promise { problem: diagnostics, .. } => diagnostics.first().span(),
            Kind::Tensors(tensors) => tensors.problem.span(),
            Kind::Fault(fault) => fault.span,
            Kind::Values { .. } => None,
        }
    }

    /// For a fault at run time, the canonical name of the operator that failed: `math.floor_divide` for `//`. `None`
    /// for a cancelled evaluation, and for one that does too much work on strings.
    #[must_use]
    pub fn operator(&self) -> Option<&str> {
        match &*self.0 {
            Kind::Fault(fault) => fault.operator.as_deref(),
            Kind::Tensors(tensors) => tensors.fault.as_ref()?.1.as_deref(),
            _ => None,
        }
    }

    /// The kind of fault, if an evaluation failed at run time; else `None`.
    #[must_use]
    pub fn fault_kind(&self) -> Option<FaultKind> {
        match &*self.0 {
            Kind::Fault(fault) => Some(fault.kind),
            Kind::Tensors(tensors) => tensors.fault.as_ref().map(|(kind, _)| *kind),
            _ => None,
        }
    }

    /// The index of the failed row, from 0, if a batch was evaluated; else `None`.
    #[must_use]
    pub fn row(&self) -> Option<usize> {
        match self.place() {
            Some(FaultPlace::Row(row) | FaultPlace::ElementOfRow(_, row)) => Some(row),
            _ => None,
        }
    }

    /// The index of the failed element, from 0, if an operator on arrays failed. For an array that must not have
    /// missing elements, the index of its first missing element. Else `None`.
    #[must_use]
    pub fn element(&self) -> Option<usize> {
        match (&*self.0, self.place()) {
            (_, Some(FaultPlace::Element(element) | FaultPlace::ElementOfRow(element, _))) => Some(element),
            (Kind::Promise { element, .. }, _) => *element,
            _ => None,
        }
    }

    fn place(&self) -> Option<FaultPlace> {
        match &*self.0 {
            Kind::Fault(fault) => fault.place,
            _ => None,
        }
    }

    /// Returns true if the error is a failed evaluation, rather than a problem of the model or its binding.
    #[must_use]
    pub fn is_fault(&self) -> bool {
        self.fault_kind().is_some()
    }

    /// The error's message in one line. For a fault, the message does not include the span in the model's text, which
    /// the displayed form includes. So it does not depend on the file that the model was read from.
    #[must_use]
    pub fn message(&self) -> String {
        match &*self.0 {
            Kind::Fault(fault) => fault.to_string(),
            Kind::Tensors(tensors) => tensors.problem.to_string(),
            Kind::Values { message, .. } => message.clone(),
            _ => self.to_string(),
        }
    }

    /// The error's message without the index of the row. For an element of a tensor, this index has no meaning for the user.
    #[must_use]
    pub fn message_of_element(&self) -> String {
        match &*self.0 {
            Kind::Fault(fault) => fault.what(),
            _ => self.to_string(),
        }
    }

    /// Renders the error for people: each problem with its code, file, line and column, the lines concerned with marks below
    /// them, and hints. `source` is the model, its text, or a [`Source`] with a name for the text. A model has the name of its
    /// file or of `Model::named`. For colours, use a [`Renderer`].
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
    ///   = help: use `strings.parse_float64(..)` or `strings.parse_int64(..)` to read a number from a text");
    /// # Ok::<(), cembra::Error>(())
    /// ```
    #[must_use]
    pub fn render<'s>(&self, source: impl Into<Source<'s>>) -> String {
        Renderer::plain().errors(&self.diagnostics(), &[], source)
    }

    /// The problems that were found in a model; for a failed evaluation, its fault as a single problem.
    #[must_use]
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        match &*self.0 {
            Kind::Model(diagnostics, _) | Kind::Promise { problem: diagnostics, .. } => diagnostics.as_slice().to_vec(),
            Kind::Tensors(tensors) => vec![tensors.problem.clone()],
            Kind::Fault(fault) => {
                let diagnostic = Diagnostic::new(Code::Evaluation, self.message()).at(fault.span);
                let diagnostic =
                    fault.calls.iter().fold(diagnostic, |one, call| one.also(call.span, call.text.clone()));
                vec![match fault.limit {
                    Some(limit) => diagnostic.hint(limit.hint()),
                    None => diagnostic,
                }]
            }
            Kind::Values { message, .. } => vec![Diagnostic::new(Code::Evaluation, message.clone())],
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let placed =
            |f: &mut fmt::Formatter<'_>, sources: &Option<Arc<Texts>>, span: Option<Span>| match (sources, span) {
                (Some(sources), Some(span)) => write!(f, " ({})", Expression::at(sources.place(span))),
                _ => Ok(()),
            };
        match &*self.0 {
            Kind::Model(diagnostics, _) | Kind::Promise { problem: diagnostics, .. } => write!(f, "{diagnostics}"),
            Kind::Tensors(TensorProblem { problem, fault, sources, .. }) => {
                write!(f, "{problem}")?;
                if fault.is_some() { placed(f, sources, problem.span()) } else { Ok(()) }
            }
            Kind::Fault(fault) => {
                write!(f, "{fault}")?;
                placed(f, &fault.sources, fault.span)
            }
            Kind::Values { message, line } => {
                f.write_str(message)?;
                line.map_or(Ok(()), |line| write!(f, ", line {line}"))
            }
        }
    }
}

/// Prints the error as [`Error::render`] does, with lines of its text, so that a `main` that returns the error prints a readable
/// message. For an error without a text, prints the code and the message.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sources().filter(|_| self.span().is_some()) {
            Some(sources) => f.write_str(&self.render(sources)),
            None => write!(f, "error[{}]: {self}", self.code()),
        }
    }
}

impl EvaluationFault {
    /// The operator, and the message.
    fn what(&self) -> String {
        self.operator
            .as_ref()
            .map_or_else(|| self.detail.clone(), |operator| format!("{}: {}", visible(operator), self.detail))
    }
}

/// Prints the operator, the message and the row, but not the place in the text.
impl fmt::Display for EvaluationFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what())?;
        match self.place {
            Some(FaultPlace::Row(row)) => write!(f, ", in row {row}"),
            Some(FaultPlace::Element(element)) => write!(f, ", in element {element}"),
            Some(FaultPlace::ElementOfRow(element, row)) => write!(f, ", in element {element} of row {row}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

impl From<EvaluationFault> for Error {
    fn from(fault: EvaluationFault) -> Self {
        Error(Arc::new(Kind::Fault(fault)))
    }
}

impl From<Diagnostics> for Error {
    fn from(diagnostics: Diagnostics) -> Self {
        Error(Arc::new(Kind::Model(diagnostics, None)))
    }
}

impl From<Diagnostic> for Error {
    fn from(diagnostic: Diagnostic) -> Self {
        Diagnostics::from(diagnostic).into()
    }
}
