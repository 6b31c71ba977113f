//! Diagnostics: what is wrong with a model, where, and what to try. Plain data; the command renders it.

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
            /// Every code, of errors first.
            pub const ALL: &[Code] = &[$(Code::$variant,)* $(Code::$warning),*];

            /// The codes of warnings: of what a model may say, but was probably not meant to.
            pub const WARNINGS: &[Code] = &[$(Code::$warning),*];

            /// The code as text, for messages and machine-readable output.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$variant => $name,)* $(Code::$warning => $warning_name),* }
            }

            /// True for the code of a warning.
            #[must_use]
            pub const fn is_warning(self) -> bool {
                matches!(self, $(Code::$warning)|*)
            }
        }
    };
}

codes! { errors {
    /// The text is not of the language's form.
    Syntax = "syntax";
    /// A bracket is never closed, or closes nothing.
    Bracket = "bracket";
    /// A comparison of a comparison.
    ChainedComparison = "chained-comparison";
    /// A number, text or type literal that cannot be.
    Literal = "literal";
    /// A name that is neither defined nor an operator.
    UnknownName = "unknown-name";
    /// A name defined twice, or used before its definition.
    Name = "name";
    /// A call with the wrong number or names of arguments.
    Arguments = "arguments";
    /// Operand types an operator does not take.
    TypeMismatch = "type-mismatch";
    /// A leaf without a type.
    MissingInputType = "missing-input-type";
    /// A declared type that is not the type of the data.
    InputType = "input-type";
    /// An output whose type stays open.
    UntypedOutput = "untyped-output";
    /// A limit that the model exceeds.
    Limit = "limit";
    /// The model has no output.
    NoOutput = "no-output";
    /// The native backend cannot compile this model.
    Native = "native";
    /// A model whose preparation was stopped early cannot run.
    Unprepared = "unprepared";
    /// An option that names a pass or a rewrite there is not, or a pass that cannot be left out.
    Option = "option";
    /// Rewrites of the user made something that cannot be evaluated.
    Extension = "extension";
    /// A failed evaluation.
    Evaluation = "evaluation";
    /// A struct or listener that does not fit the model.
    Binding = "binding";
    /// A value that breaks what its input promises.
    Promise = "promise";
    /// A model with arrays, where rows of scalars are evaluated.
    Arrays = "arrays";
    /// A model with tensors where one without is evaluated, or the other way round.
    Tensors = "tensors";
    /// Labels of tensors that do not fit each other.
    Labels = "labels";
    /// Axes or extents of tensors that do not fit each other.
    Shape = "shape";
    /// A derivative of what has none.
    Derivative = "derivative";
    /// The thread's floating-point mode is not the default one.
    FloatMode = "float-mode";
    /// An operand from another builder, or another misuse of the builder.
    Builder = "builder";
    /// A file of a model or of tensors that is damaged, or of another version.
    Wire = "wire";
    /// A model that cannot be compiled ahead of time.
    Object = "object";
    /// An operator that the text declares and the host does not have, or not so.
    Extern = "extern";
    /// An operator of the host that cannot be registered.
    Registration = "registration";
    /// A test of the model's text fails, which is not allowed.
    FailedTest = "failed-test";
    /// A file that a text uses and that is not there, or is none to use.
    Use = "use";
    /// A folder that machine code cannot be kept in.
    CodeCache = "code-cache";
    /// Ranks that compute together were given different things.
    RanksDisagree = "ranks-disagree";
    /// What goes between ranks is damaged or does not arrive, or there is no way between them.
    Link = "link";
} warnings {
    /// A comparison with `missing`, which never holds.
    MissingComparison = "missing-comparison";
    /// A name that nobody declares and that is like one that somebody does.
    SimilarName = "similar-name";
    /// A `let` that nothing needs.
    UnusedLet = "unused-let";
    /// Integers of 64 bits that are computed with as floats of 32.
    LostDigits = "lost-digits";
    /// A comparison that always holds, or never.
    ConstantComparison = "constant-comparison";
    /// A branch that is never chosen.
    UnreachableBranch = "unreachable-branch";
    /// A test that fails whenever it is run.
    UnfitTest = "unfit-test";
} }

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A code as it is compared and looked for: whether somebody writes it with `_` or with `-` is no matter.
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

/// A place worth pointing at, with what to say there.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// What to say; may be empty.
    pub text: String,
}

/// One problem. It stays small whatever it is about: each of its texts is cut beyond 1,000 characters, and there are at most 16
/// hints and 16 further places.
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
    /// A problem with no place yet.
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

    /// Says where.
    #[must_use]
    pub fn at(mut self, span: impl Into<Option<Span>>) -> Self {
        self.span = span.into();
        self
    }

    /// Says something at the place itself.
    #[must_use]
    pub fn label(mut self, text: impl Into<String>) -> Self {
        self.label = Excerpt::of_message(text.into());
        self
    }

    /// Points at another place too.
    #[must_use]
    pub fn also(mut self, span: Span, text: impl Into<String>) -> Self {
        if self.others.len() < MOST {
            self.others.push(Label { span, text: Excerpt::of_message(text.into()) });
        }
        self
    }

    /// Says what to try.
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

    /// What is wrong, in one line.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Where, if the model came from text.
    #[must_use]
    pub fn span(&self) -> Option<Span> {
        self.span
    }

    /// What to say at the place; may be empty.
    #[must_use]
    pub fn label_text(&self) -> &str {
        &self.label
    }

    /// Other places worth pointing at.
    #[must_use]
    pub fn others(&self) -> &[Label] {
        &self.others
    }

    /// What to try.
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

/// One or more problems found together; never empty.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    /// The problems, if there are any.
    ///
    /// # Errors
    /// The problems themselves.
    pub fn check(found: Vec<Diagnostic>) -> Result<(), Diagnostics> {
        if found.is_empty() { Ok(()) } else { Err(Diagnostics(found)) }
    }

    /// The problems in the order found.
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
