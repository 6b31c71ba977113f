//! Diagnostics: a problem of a model, its span in the text, and hints. They are plain data; the command `cembra`
//! renders them.

use crate::Span;
use cembra_runtime::Excerpt;
use std::fmt;

/// The most hints of a problem, and the most labels: spans in addition to the problem's own.
const MOST: usize = 16;

macro_rules! codes {
    (
        errors { $($(#[$doc:meta])* $variant:ident = $name:literal;)* }
        warnings { $($(#[$warning_doc:meta])* $warning:ident = $warning_name:literal;)* }
    ) => {
        /// The kind of a problem that a diagnostic reports, stable across versions.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[non_exhaustive]
        pub enum Code { $($(#[$doc])* $variant,)* $($(#[$warning_doc])* $warning),* }

        impl Code {
            /// All codes of errors and warnings; errors come first.
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
    /// A text does not follow the grammar.
    Syntax = "syntax";
    /// A bracket is never closed, or closes nothing.
    Bracket = "bracket";
    /// An operand of a comparison is a comparison.
    ChainedComparison = "chained-comparison";
    /// A number, text or type literal is not valid.
    Literal = "literal";
    /// A name is neither defined nor an operator.
    UnknownName = "unknown-name";
    /// A name is defined twice, or used before its definition.
    Name = "name";
    /// A call has the wrong number or names of arguments.
    Arguments = "arguments";
    /// An operator does not accept the types of its operands.
    TypeMismatch = "type-mismatch";
    /// An input has no type, neither by a declaration nor from data.
    MissingInputType = "missing-input-type";
    /// The declared type of an input differs from the type of the data.
    InputType = "input-type";
    /// The type of an output could not be determined.
    UntypedOutput = "untyped-output";
    /// The model exceeds a limit.
    Limit = "limit";
    /// The model has no output.
    NoOutput = "no-output";
    /// The native backend cannot compile the model.
    Native = "native";
    /// The model cannot run because its preparation was stopped early.
    Unprepared = "unprepared";
    /// An option names a pass or a rewrite that does not exist, or a pass that cannot be omitted.
    Option = "option";
    /// Rewrites of the user gave a result that cannot be evaluated.
    Extension = "extension";
    /// An evaluation failed.
    Evaluation = "evaluation";
    /// A struct or listener does not fit the model.
    Binding = "binding";
    /// A value breaks the promise of its input, for example that no element of an array is missing.
    Promise = "promise";
    /// The model has arrays, but the function or command that was called supports only models without arrays.
    Arrays = "arrays";
    /// The model has tensors, where a model without tensors is required; or it has other values, where only tensors are supported.
    Tensors = "tensors";
    /// The labels (names of axes) of tensors do not fit each other.
    Labels = "labels";
    /// The axes or extents of tensors do not fit each other.
    Shape = "shape";
    /// A derivative was requested of an expression that has none.
    Derivative = "derivative";
    /// The thread's floating-point mode is not the default one.
    FloatMode = "float-mode";
    /// An operand is from another builder, or the builder is misused in another way.
    Builder = "builder";
    /// A file of a model or of tensors is damaged, or of another version.
    Wire = "wire";
    /// The model cannot be compiled ahead of time.
    Object = "object";
    /// The text declares an operator that the host application does not have with these types.
    Extern = "extern";
    /// An operator of the host application cannot be registered.
    Registration = "registration";
    /// A test in the model's text fails, where failing tests are not allowed.
    FailedTest = "failed-test";
    /// A used file does not exist or cannot be used.
    Use = "use";
    /// Machine code cannot be stored in the given folder.
    CodeCache = "code-cache";
    /// Ranks that compute together were given different programs or data.
    RanksDisagree = "ranks-disagree";
    /// A message between ranks is damaged or does not arrive, or a connection between ranks is missing.
    Link = "link";
} warnings {
    /// A comparison has the operand `missing`, so it never holds.
    MissingComparison = "missing-comparison";
    /// An undeclared name is similar to a declared one.
    SimilarName = "similar-name";
    /// A `let` is not used.
    UnusedLet = "unused-let";
    /// 64-bit integers are converted to 32-bit floats in a computation, which loses digits.
    LostDigits = "lost-digits";
    /// A comparison has the same result in every evaluation: it always holds, or never holds.
    ConstantComparison = "constant-comparison";
    /// A branch is never chosen.
    UnreachableBranch = "unreachable-branch";
    /// A test fails on every run, because it does not fit the model.
    UnfitTest = "unfit-test";
} }

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Returns the canonical form of a code for comparisons, with `-` in place of `_`.
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

/// A further span of a problem, with a text that says how the span concerns the problem.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// The span in the model's text.
    pub span: Span,
    /// The text that is shown at the span; may be empty.
    pub text: String,
}

/// A problem of a model, with a message, and possibly a span, further spans and hints. Its size is bounded: each text
/// is cut after 1,000 characters, and there are at most 16 hints and 16 labels.
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
    /// Returns a problem without a span, with a code and a message.
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

    /// Sets the span of the problem in the model's text.
    #[must_use]
    pub fn at(mut self, span: impl Into<Option<Span>>) -> Self {
        self.span = span.into();
        self
    }

    /// Sets the text that is shown at the problem's own span.
    #[must_use]
    pub fn label(mut self, text: impl Into<String>) -> Self {
        self.label = Excerpt::of_message(text.into());
        self
    }

    /// Adds a label (a further span with a text) to the problem, unless there are 16 labels already.
    #[must_use]
    pub fn also(mut self, span: Span, text: impl Into<String>) -> Self {
        if self.others.len() < MOST {
            self.others.push(Label { span, text: Excerpt::of_message(text.into()) });
        }
        self
    }

    /// Adds a hint for solving the problem, unless the diagnostic has 16 hints already.
    #[must_use]
    pub fn hint(mut self, text: impl Into<String>) -> Self {
        if self.hints.len() < MOST {
            self.hints.push(Excerpt::of_message(text.into()));
        }
        self
    }

    /// The code of the problem, which tells its kind.
    #[must_use]
    pub fn code(&self) -> Code {
        self.code
    }

    /// The message of the problem, in one line.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The span of the problem in the model's text; `None` if the model did not come from text or the problem has no
    /// span.
    #[must_use]
    pub fn span(&self) -> Option<Span> {
        self.span
    }

    /// The text that is shown at the problem's own span; may be empty.
    #[must_use]
    pub fn label_text(&self) -> &str {
        &self.label
    }

    /// The further spans that the problem concerns, each with a text.
    #[must_use]
    pub fn others(&self) -> &[Label] {
        &self.others
    }

    /// The hints for solving the problem.
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
    /// Returns an error if `found` has any problems.
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

    /// The problem that was found first.
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
