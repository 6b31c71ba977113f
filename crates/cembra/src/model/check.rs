//! What `cembra check` and editors ask of a model: all that is to be said of it at once, and the types of its parts.

use crate::model::constant::strong;
use crate::{Cancellation, Error, Model, Options, RunOptions, Signature};
use cembra_engine::TensorProgram;
use cembra_engine::{CompileOptions, prepare};
use cembra_expr::Program;
use cembra_runtime::QType;
use cembra_value::{Code, Diagnostic, Span, Warnings};
use std::collections::HashSet;

impl Model {
    /// What the model takes and gives, or what is wrong with it; and what was probably not meant, without warnings at a place that is
    /// wrong. It is found without compiling the model. Tests that cannot pass are warnings: those with names that the model does not have,
    /// with values of other types, and with codes that no error has.
    ///
    /// ```
    /// use cembra::{Code, Model, Options};
    ///
    /// let (signature, warnings) = Model::parse("input x: f64; let y = 1; x + 1")?.check(&Options::default());
    /// assert!(signature.is_ok());
    /// assert_eq!(warnings.as_slice()[0].code(), Code::UnusedLet);
    ///
    /// let model = Model::parse("input x: i64; output y = x; test 't' { x = 0.5 } => { y = 0 }")?;
    /// let (_, warnings) = model.check(&Options::default());
    /// assert_eq!(warnings.as_slice()[0].message(), "input `x` is i64, and the test has `0.5`");
    /// # Ok::<(), cembra::Error>(())
    /// ```
    pub fn check(&self, options: &Options) -> (Result<Signature, Error>, Warnings) {
        let signature = self.signature(options);
        // Beyond a limit the same preparation would go as far once more.
        let is_beyond = |error: &Error| error.diagnostics().iter().any(|problem| problem.code() == Code::Limit);
        let mut found = self.warnings_with(options, !signature.as_ref().is_err_and(is_beyond));
        self.find_unfit_tests(signature.as_ref().ok(), &mut found);
        found.sort();
        // Of what is wrong at a place, a warning says no more.
        if let Err(error) = &signature {
            let wrong: HashSet<Span> = error.diagnostics().iter().filter_map(Diagnostic::span).collect();
            found.retain(|warning| warning.span().is_none_or(|span| !wrong.contains(&span)));
        }
        (signature, found)
    }

    /// Warnings: names with typos, definitions that nobody uses, comparisons that never hold. They are in the order of the text.
    ///
    /// At most [`Limits::problems`](crate::Limits::problems) warnings are kept, the others are counted. Warnings that depend on types are
    /// found only in a model without errors. A model that was not read from text has none. [`Options::allow`] silences a code.
    ///
    /// ```
    /// use cembra::{Code, Model, Options};
    ///
    /// let model = Model::parse("numbers f32; input cents: i64?; let rate = 2; if cents == missing then 0.0 else cents * 0.9")?;
    /// let codes = |options: &Options| model.warnings(options).as_slice().iter().map(|one| one.code()).collect::<Vec<_>>();
    /// let all = codes(&Options::default());
    /// assert_eq!(all, [Code::UnusedLet, Code::MissingComparison, Code::LostDigits]);
    /// assert_eq!(codes(&Options::default().allow(Code::UnusedLet)), all[1..]);
    /// # Ok::<(), cembra::Error>(())
    /// ```
    #[must_use]
    pub fn warnings(&self, options: &Options) -> Warnings {
        self.warnings_with(options, true)
    }

    /// The warnings, with those that depend on types or without.
    fn warnings_with(&self, options: &Options, typed: bool) -> Warnings {
        let mut found = Warnings::new(self.limits(options).problems.max(1), &options.binding.allowed);
        let is_typed = |name: &str| options.compile.input_types.contains_key(name);
        cembra_expr::find_warnings(self.program(), &is_typed, &mut found);
        if typed {
            self.find_typed_warnings(options, &mut found);
        }
        found.sort();
        found
    }

    /// The warnings of the model as its tests run it: inputs without a type have those of the values that a test gives them. What is left
    /// when a token or a deadline ends it is not looked at.
    ///
    /// ```
    /// use cembra::{Code, Model, Options, RunOptions};
    ///
    /// let model = Model::parse("numbers f32; output y = x / 3; test 't' { x = 5000000001 } => { y = 1666666667 }")?;
    /// assert!(model.warnings(&Options::default()).is_empty());
    /// let found = model.test_warnings(&Options::default(), &RunOptions::default());
    /// assert_eq!(found.as_slice()[0].code(), Code::LostDigits);
    /// # Ok::<(), cembra::Error>(())
    /// ```
    #[must_use]
    pub fn test_warnings(&self, options: &Options, run: &RunOptions) -> Warnings {
        let token = run.token();
        let mut found = Warnings::new(self.limits(options).problems.max(1), &options.binding.allowed);
        let tested = || self.tests().iter().filter_map(|test| self.options_for(test, options).ok());
        let given: HashSet<String> = tested().flat_map(|tested| tested.compile.input_types.into_keys()).collect();
        cembra_expr::find_warnings(self.program(), &|name| given.contains(name), &mut found);
        self.find_typed_warnings(options, &mut found);
        let mut before = None;
        for tested in tested() {
            if token.as_ref().is_some_and(Cancellation::is_cancelled) {
                break;
            }
            // Tests in a row are often of the same.
            let of = (tested.compile.input_types.clone(), tested.binding.outputs.clone());
            if before.as_ref() != Some(&of) {
                self.find_typed_warnings(&tested, &mut found);
                before = Some(of);
            }
        }
        found.sort();
        found
    }

    /// Adds the warnings that depend on types.
    fn find_typed_warnings(&self, options: &Options, found: &mut Warnings) {
        const EXPANDED: &str = "expand";
        let options = &mut self.started(options);
        options.prepare.stop_after = Some(EXPANDED.to_owned());
        self.prepare_without_externs(options);
        // A file or a builder does not say which places are of functions, of which a call could be taken for the whole.
        if self.program().definitions.declared_inputs().is_none() {
            return;
        }
        if let Some(types) = tensor_types(self.program(), options) {
            cembra_prepare::find_tensor_warnings(self.program(), &types, options.prepare.registry, found);
            return;
        }
        // Compiling the model reports its errors, and that the time is over.
        if let Ok(program) = self.selected(options)
            && let Ok(prepared) = prepare(&program, options, &mut |_, _| {})
        {
            let _ = cembra_prepare::find_warnings(prepared.model(), &program, &options.prepare, found);
        }
    }

    /// The type of each node of the program, by position, as far as it can be found: of what is wrong, of what is made of it, and
    /// of what depends on the parameter of a function there is none. A weak float is an f64, as it is where it is an output. In a model with
    /// tensors an expression over labels has none, as it is an element for each index; a tensor that is given labels has its own.
    ///
    /// ```
    /// use cembra::{Model, Options, QType, Scalar};
    ///
    /// let model = Model::parse("input x: f64?; let y = x > 0.5; output z = x + \"a\"; output w = y")?;
    /// let types = model.node_types(&Options::default());
    /// let of = |at: usize| types[model.program().outputs[at].node.index()].clone();
    /// assert_eq!((of(0), of(1)), (None, Some(QType::Optional(Scalar::Unit))));
    /// # Ok::<(), cembra::Error>(())
    /// ```
    #[must_use]
    pub fn node_types(&self, options: &Options) -> Vec<Option<QType>> {
        let options = &self.started(options);
        let leaf_type = |name: &str| options.input_types.get(name).cloned();
        let types = tensor_types(self.program(), options)
            .unwrap_or_else(|| cembra_prepare::node_types(self.program(), &leaf_type, &options.prepare));
        types.into_iter().map(|qtype| qtype.map(|qtype| strong(&qtype))).collect()
    }
}

/// The types of the nodes of a model with tensors; none for another.
fn tensor_types(program: &Program, options: &CompileOptions) -> Option<Vec<Option<QType>>> {
    TensorProgram::is_of(program, options).then(|| TensorProgram::node_types(program, options))
}
