//! The one error of the library: what was wrong with a model, its binding, or an evaluation; with a code, a place in the
//! source where there is one, and hints.

use crate::rendering::{Expression, Renderer, Source};
use crate::{Code, Diagnostic, Diagnostics, Label, Limit, Span, TensorErrorKind, Texts};
use cembra_runtime::{Cancellation, Excerpt, FaultKind, visible};
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
/// Its `Debug` form, which a `main` that returns it prints, has the excerpts of [`Error::render`]:
///
/// ```
/// let error = cembra::Model::parse("input x: f64\nsqr(x)").unwrap_err();
/// assert!(format!("{error:?}").starts_with("error[unknown-name]: there is no operator `sqr`\n --> model:2:1\n  |\n2 | sqr(x)\n  | ^^^"));
/// ```
#[derive(Clone)]
pub struct Error(Arc<Kind>);

#[derive(Clone)]
enum Kind {
    /// The model, or how it was to be bound, and the texts that the places are in.
    Model(Diagnostics, Option<Arc<Texts>>),
    /// An evaluation stopped.
    Fault(EvaluationFault),
    /// Values given to a call that do not fit.
    Values {
        message: String,
        /// The line of the data, counted from 1.
        line: Option<usize>,
    },
    /// A value given to a call breaks what its input promises.
    Promise { problem: Diagnostics, element: Option<usize> },
    /// What is wrong with tensors, or with what is asked of them.
    Tensors(TensorProblem),
}

/// What is wrong with tensors.
#[derive(Clone)]
struct TensorProblem {
    kind: TensorErrorKind,
    problem: Diagnostic,
    /// The fault of an element that could not be computed, and the operator that failed; none if a run was ended.
    fault: Option<(FaultKind, Option<String>)>,
    /// The code of the fault, if that is one of its own.
    code: Option<&'static str>,
    /// The texts that the place of a fault is in.
    sources: Option<Arc<Texts>>,
}

/// Why an evaluation stopped, and where: the engine makes it, and it becomes an [`Error`].
#[derive(Clone, Debug)]
pub struct EvaluationFault {
    kind: FaultKind,
    /// The code that a user's operator gave it, in the place of the kind's.
    code: Option<&'static str>,
    operator: Option<String>,
    detail: String,
    span: Option<Span>,
    /// The calls of functions that led there.
    calls: Vec<Label>,
    /// What the span is of.
    sources: Option<Arc<Texts>>,
    place: Option<FaultPlace>,
    /// What to raise.
    limit: Option<Limit>,
}

impl EvaluationFault {
    /// A fault of an evaluation as a whole: what is wrong, in words. It names the limit that such faults are mostly of.
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

    /// The canonical name of the operator that failed.
    #[must_use]
    pub fn operator(self, name: Option<String>) -> Self {
        EvaluationFault { operator: name, ..self }
    }

    /// The code in the place of the kind's, if there is one.
    #[must_use]
    pub fn code(self, code: Option<&'static str>) -> Self {
        EvaluationFault { code, ..self }
    }

    /// Where the operator stands.
    #[must_use]
    pub fn at(self, span: Option<Span>) -> Self {
        EvaluationFault { span, ..self }
    }

    /// The limit to raise; none if no limit helps.
    #[must_use]
    pub fn limit(self, limit: Option<Limit>) -> Self {
        EvaluationFault { limit, ..self }
    }

    /// The calls of functions that led there.
    #[must_use]
    pub fn calls(self, calls: Vec<Label>) -> Self {
        EvaluationFault { calls, ..self }
    }
}

/// The row or the element whose evaluation failed.
#[derive(Clone, Copy, Debug)]
enum FaultPlace {
    Row(usize),
    Element(usize),
    ElementOfRow(usize, usize),
}

impl Error {
    /// The fault of an evaluation whose token was cancelled.
    pub fn ended_by(token: Option<&Cancellation>) -> Self {
        Error::of_evaluation(token.map_or(FaultKind::Cancelled, Cancellation::fault))
    }

    /// A fault of an evaluation as a whole; where it was noticed says nothing about the model.
    pub fn of_evaluation(kind: FaultKind) -> Self {
        let detail = kind.describe(None, "", "");
        EvaluationFault::new(kind, detail).into()
    }

    /// The same fault, of a row of a batch.
    pub fn in_row(self, at: usize) -> Self {
        let element = self.element().map(|element| FaultPlace::ElementOfRow(element, at));
        self.with(|fault| fault.place = element.or(Some(FaultPlace::Row(at))))
    }

    /// The same fault of a row, which was an element of arrays.
    #[must_use]
    pub fn in_element(self) -> Self {
        let element = self.row().map(FaultPlace::Element);
        self.with(|fault| fault.place = element)
    }

    /// Adds the texts that the model was read from, for its excerpts. An error that has texts already keeps them.
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

    /// The texts that places of the error are in, if it is known which.
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

    /// An error of values that do not fit, for loaders and listeners of one's own. Its code is `values`. Beyond 1,000 characters
    /// the message is cut.
    #[must_use]
    pub fn values(message: impl Into<String>) -> Self {
        Error(Arc::new(Kind::Values { message: Excerpt::of_message(message.into()), line: None }))
    }

    /// Says which line of the data an error of values is about, counted from 1.
    #[must_use]
    pub fn on_line(mut self, at: usize) -> Self {
        if let Kind::Values { line, .. } = Arc::make_mut(&mut self.0) {
            *line = Some(at);
        }
        self
    }

    /// For values that were read from a text, such as a row of JSON, the line of it that is wrong, counted from 1.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        match &*self.0 {
            Kind::Values { line, .. } => *line,
            _ => None,
        }
    }

    /// An error of a value that breaks what its input promises, in an element of it.
    #[must_use]
    pub fn promise(problem: Diagnostic, element: Option<usize>) -> Self {
        Error(Arc::new(Kind::Promise { problem: problem.into(), element }))
    }

    /// An error of tensors, for operators of one's own, without a place yet. The kind decides its code. Beyond 1,000 characters the
    /// message is cut.
    #[must_use]
    #[cold]
    pub fn tensors(kind: TensorErrorKind, message: impl Into<String>) -> Self {
        let problem = Diagnostic::new(kind.code(), message);
        Error(Arc::new(Kind::Tensors(TensorProblem { kind, problem, fault: None, code: None, sources: None })))
    }

    /// Says what to try, of an error of tensors, in the place of any hint before.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        self.with_tensors(|TensorProblem { problem, .. }| {
            *problem = Diagnostic::new(problem.code(), problem.message()).at(problem.span()).hint(hint);
        })
    }

    /// Says where in the text, of an error of tensors whose place is not known. The default span, of nothing at the beginning, says that
    /// there is no text.
    #[must_use]
    pub fn at(self, span: Span) -> Self {
        self.with_tensors(|tensors| {
            if span != Span::default() && tensors.problem.span().is_none() {
                tensors.problem = tensors.problem.clone().at(span);
            }
        })
    }

    /// Says which fault of an element it was, and of which operator, of an error of tensors.
    #[must_use]
    pub fn of_fault(self, kind: FaultKind, operator: Option<&str>) -> Self {
        self.with_tensors(|tensors| tensors.fault = Some((kind, operator.map(str::to_owned))))
    }

    /// Sets the code of a fault of an element.
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

    /// The kind of an error of tensors, whose labels, types, axes or elements do not fit: it says more than the code.
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

    /// The kind of problem, stable across versions: a `Code`'s name, a fault's (`div-by-zero`), that of a user's operator, or `values`.
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

    /// Where in the source, if the model came from text.
    #[must_use]
    pub fn span(&self) -> Option<Span> {
        match &*self.0 {
            Kind::Model(diagnostics, _) | Kind::Promise { problem: diagnostics, .. } => diagnostics.first().span(),
            Kind::Tensors(tensors) => tensors.problem.span(),
            Kind::Fault(fault) => fault.span,
            Kind::Values { .. } => None,
        }
    }

    /// For a fault at run time, the canonical name of the operator that the model applies there: `math.floor_divide` for `//`.
    /// A cancelled evaluation has none, nor has one that does too much work on strings.
    #[must_use]
    pub fn operator(&self) -> Option<&str> {
        match &*self.0 {
            Kind::Fault(fault) => fault.operator.as_deref(),
            Kind::Tensors(tensors) => tensors.fault.as_ref()?.1.as_deref(),
            _ => None,
        }
    }

    /// For a fault at run time, its kind.
    #[must_use]
    pub fn fault_kind(&self) -> Option<FaultKind> {
        match &*self.0 {
            Kind::Fault(fault) => Some(fault.kind),
            Kind::Tensors(tensors) => tensors.fault.as_ref().map(|(kind, _)| *kind),
            _ => None,
        }
    }

    /// For a fault in a batch, the row it happened in, counted from 0.
    #[must_use]
    pub fn row(&self) -> Option<usize> {
        match self.place() {
            Some(FaultPlace::Row(row) | FaultPlace::ElementOfRow(_, row)) => Some(row),
            _ => None,
        }
    }

    /// For a fault in an element of arrays, which element, counted from 0; for an array of which none may be missing, the first
    /// that is.
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
            Kind::Tensors(tensors) => tensors.problem.to_string(),
            Kind::Values { message, .. } => message.clone(),
            _ => self.to_string(),
        }
    }

    /// The same without a row: of an element of a tensor, whose rows mean nothing to anybody.
    #[must_use]
    pub fn message_of_element(&self) -> String {
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

/// The error as [`Error::render`] shows it, with lines of the text that it is of, so that a `main` that returns it prints something for people.
/// An error of no text is its message behind its code.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.sources().filter(|_| self.span().is_some()) {
            Some(sources) => f.write_str(&self.render(sources)),
            None => write!(f, "error[{}]: {self}", self.code()),
        }
    }
}

impl EvaluationFault {
    /// The operator, and what is wrong.
    fn what(&self) -> String {
        self.operator
            .as_ref()
            .map_or_else(|| self.detail.clone(), |operator| format!("{}: {}", visible(operator), self.detail))
    }
}

/// The operator, what is wrong, and in which row: without the place in the text.
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
