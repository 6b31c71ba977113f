//! Diagnostics: a problem of a model, its place, and hints. They are plain data; the command renders them.

use crate::Span;
use cembra_runtime::Excerpt;
use std::fmt;

/// The most hints of a problem, and the most further places.
const MOST: usize = 16;

macro_rules! codes {
    (
        errors { $($(#[$doc:meta])* $variant:ident = $name:literal;)* }
        warnings { $($(#[$warning_doc:meta])* $warning:ident = $warning_name:literal;)* }
    ) => {
        /// The kind of a problem, stable across versions.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[non_exhaustive]
        pub enum Code { $($(#[$doc])* $variant,)* $($(#[$warning_doc])* $warning),* }

        impl Code {
            /// Every code; errors come first.
            pub const ALL: &[Code] = &[$(Code::$variant,)* $(Code::$warning),*];

            /// The codes of warnings, for models that are valid but probably not meant so.
            pub const WARNINGS: &[Code] = &[$(Code::$warning),*];

            /// The code as text, for messages and machine-readable output.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $name,)* $(Code::$warning => $warning_name),* }
            }

            /// Returns true for the code of a warning.
            #[must_use]
            pub const fn is_warning(self) -> bool {
                matches!(self, $(Code::$warning)|*)
            }
        }
    };
}

codes! { errors {
    /// A text that does not follow the grammar.
    Syntax = "syntax";
    /// A bracket that is never closed, or that closes nothing.
    Bracket = "bracket";
    /// A comparison whose operand is a comparison.
    ChainedComparison = "chained-comparison";
    /// A number, text or type literal that is not valid.
    Literal = "literal";
    /// A name that is neither defined nor an operator.
    UnknownName = "unknown-name";
    /// A name defined twice, or used before its definition.
    Name = "name";
    /// A call with the wrong number or names of arguments.
    Arguments = "arguments";
    /// Operand types that an operator does not accept.
    TypeMismatch = "type-mismatch";
    /// A leaf without a type.
    MissingInputType = "missing-input-type";
    /// A declared type that is not the type of the data.
    InputType = "input-type";
    /// An output whose type could not be determined.
    UntypedOutput = "untyped-output";
    /// A limit that the model exceeds.
    Limit = "limit";
    /// A model without an output.
    NoOutput = "no-output";
    /// A model that the native backend cannot compile.
    Native = "native";
    /// A model that cannot run because its preparation was stopped early.
    Unprepared = "unprepared";
    /// An option with a pass or a rewrite that does not exist, or with a pass that cannot be omitted.
    Option = "option";
    /// Rewrites of the user with a result that cannot be evaluated.
    Extension = "extension";
    /// A failed evaluation.
    Evaluation = "evaluation";
    /// A struct or listener that does not fit the model.
    Binding = "binding";
    /// A value that breaks the promise of its input.
    Promise = "promise";
    /// A model with arrays where only rows of scalars are evaluated.
    Arrays = "arrays";
    /// A model with tensors where only models without tensors are evaluated, or the other way round.
    Tensors = "tensors";
    /// Labels of tensors that do not fit each other.
    Labels = "labels";
    /// Axes or extents of tensors that do not fit each other.
    Shape = "shape";
    /// A derivative of an expression that has none.
    Derivative = "derivative";
    /// The thread's floating-point mode is not the default one.
    FloatMode = "float-mode";
    /// An operand from another builder, or another misuse of the builder.
    Builder = "builder";
    /// A file of a model or of tensors that is damaged, or of another version.
    Wire = "wire";
    /// A model that cannot be compiled ahead of time.
    Object = "object";
    /// An operator that the text declares, but that the host does not have in this form.
    Extern = "extern";
    /// An operator of the host that cannot be registered.
    Registration = "registration";
    /// A failing test in the model's text, where failing tests are not allowed.
    FailedTest = "failed-test";
    /// A used file that does not exist or cannot be used.
    Use = "use";
    /// A folder in which machine code cannot be stored.
    CodeCache = "code-cache";
    /// Ranks that compute together but were given different things.
    RanksDisagree = "ranks-disagree";
    /// A message between ranks that is damaged or does not arrive, or a missing connection between ranks.
    Link = "link";
} warnings {
    /// A comparison with `missing`, which never holds.
    MissingComparison = "missing-comparison";
    /// An undeclared name that is similar to a declared one.
    SimilarName = "similar-name";
    /// A `let` that is not used.
    UnusedLet = "unused-let";
    /// 64-bit integers that are computed with as 32-bit floats.
    LostDigits = "lost-digits";
    /// A comparison that always holds, or that never holds.
    ConstantComparison = "constant-comparison";
    /// A branch that is never chosen.
    UnreachableBranch = "unreachable-branch";
    /// A test that fails on every run.
    UnfitTest = "unfit-test";
} }

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The canonical form of a code for comparisons, which has `-` in the place of `_`.
///
/// ```
/// use cembra_value::{Code, dashed_code};
///
/// assert_eq!(dashed_code("unused_let"), Code::UnusedLet.as_str());
/// ```
#[must_use]
pub fn dashed_code(code: &str) -> String {
    code.replace('_', "-")
}

/// A further place of a problem, with a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// The text; may be empty.
    pub text: String,
}

/// A problem of a model. Its size is bounded: each text is cut after 1,000 characters, and there are at most 16 hints and 16
/// further places.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    code: Code,
    message: String,
    span: Option<Span>,
    label: String,
    others: Vec<Label>,
    hints: Vec<String>,
}

impl Diagnostic {
    /// A problem without a place.
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Diagnostic {
            code,
            message: Excerpt::of_message(message.into()),
            span: None,
            label: String::new(),
            others: Vec::new(),
            hints: Vec::new(),
        }
    }

    /// Sets the place of the problem.
    #[must_use]
    pub fn at(mut self, span: impl Into<Option<Span>>) -> Self {
        self.span = span.into();
        self
    }

    /// Sets the text at the place itself.
    #[must_use]
    pub fn label(mut self, text: impl Into<String>) -> Self {
        self.label = Excerpt::of_message(text.into());
        self
    }

    /// Adds another place, unless there are 16 already.
    #[must_use]
    pub fn also(mut self, span: Span, text: impl Into<String>) -> Self {
        if self.others.len() < MOST {
            self.others.push(Label { span, text: Excerpt::of_message(text.into()) });
        }
        self
    }

    /// Adds a hint, unless there are 16 already.
    #[must_use]
    pub fn hint(mut self, text: impl Into<String>) -> Self {
        if self.hints.len() < MOST {
            self.hints.push(Excerpt::of_message(text.into()));
        }
        self
    }

    /// The kind of the problem.
    #[must_use]
    pub fn code(&self) -> Code {
        self.code
    }

    /// The message, in one line.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The place, if the model came from text.
    #[must_use]
    pub fn span(&self) -> Option<Span> {
        self.span
    }

    /// The text at the place; may be empty.
    #[must_use]
    pub fn label_text(&self) -> &str {
        &self.label
    }

    /// The other places.
    #[must_use]
    pub fn others(&self) -> &[Label] {
        &self.others
    }

    /// The hints.
    #[must_use]
    pub fn hints(&self) -> &[String] {
        &self.hints
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.message)?;
        for hint in &self.hints {
            write!(f, "; {hint}")?;
        }
        Ok(())
    }
}

/// One or more problems that were found together; never empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    /// Returns an error if any problems were found.
    ///
    /// # Errors
    /// If `found` is not empty. The error has all of the problems.
    pub fn check(found: Vec<Diagnostic>) -> Result<(), Diagnostics> {
        if found.is_empty() { Ok(()) } else { Err(Diagnostics(found)) }
    }

    /// The problems, in the order in which they were found.
    #[must_use]
    pub fn as_slice(&self) -> &[Diagnostic] {
        &self.0
    }

    /// The first problem.
    #[must_use]
    pub fn first(&self) -> &Diagnostic {
        &self.0[0]
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(one: Diagnostic) -> Self {
        Diagnostics(vec![one])
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, one) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{one}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}
