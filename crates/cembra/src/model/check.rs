//! Checks a model for `cembra check` and for editors: finds all errors and warnings of the model at once, and the types of its expressions.

use crate::model::constant::weak_floats_as_f64;
use crate::{Cancellation, Error, Model, Options, RunOptions, Signature};
use cembra_engine::TensorProgram;
use cembra_engine::{CompileOptions, prepare};
use cembra_expr::Program;
use cembra_runtime::QType;
use cembra_value::{Code, Diagnostic, Span, Warnings};
use std::collections::HashSet;

impl Model {
    /// Checks the model without compiling it. Returns its inputs and outputs, or its errors. Also returns its warnings, except those at a place in
    /// the text that has an error. A test that cannot pass is a warning: the test names an input or output that the model does not have, has a value
    /// of another type, or expects an error code that does not exist.
    ///
    /// ```
    /// use cembra::errors::Code;
    /// use cembra::{Model, Options};
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
        // Beyond a limit, a second preparation would only reach the same limit.
        let is_beyond = |error: &Error| error.diagnostics().iter().any(|problem| problem.code() == Code::Limit);
        let mut found = self.warnings_with(options, !signature.as_ref().is_err_and(is_beyond));
        self.find_unfit_tests(signature.as_ref().ok(), &mut found);
        found.sort();
        // A place with an error needs no warning.
        if let Err(error) = &signature {
            let wrong: HashSet<Span> = error.diagnostics().iter().filter_map(Diagnostic::span).collect();
            found.retain(|warning| warning.span().is_none_or(|span| !wrong.contains(&span)));
        }
        (signature, found)
    }

    /// Returns the model's warnings in the order of the text: names with typos, unused definitions, comparisons that are never true.
    ///
    /// At most [`Limits::problems`](crate::Limits::problems) warnings are returned; further warnings are only counted. Warnings that depend on types
    /// are found only in a model without errors. A model that was not read from text has no warnings. [`Options::allow`] silences the warnings with a
    /// given code.
    ///
    /// ```
    /// use cembra::errors::Code;
    /// use cembra::{Model, Options};
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

    /// Returns the model's warnings. Warnings that depend on types are included only if `typed` is true.
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

    /// Returns the warnings of the model when it is compiled for its tests: an input without a type gets the type of a test's value. The search stops
    /// early if the token or the deadline in `run` ends it.
    ///
    /// ```
    /// use cembra::errors::Code;
    /// use cembra::{Model, Options, RunOptions};
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
            // Consecutive tests often have the same types and outputs.
            let of = (tested.compile.input_types.clone(), tested.binding.outputs.clone());
            if before.as_ref() != Some(&of) {
                self.find_typed_warnings(&tested, &mut found);
                before = Some(of);
            }
        }
        found.sort();
        found
    }

    /// Adds the warnings that depend on types, such as a comparison that is never true, to `found`.
    fn find_typed_warnings(&self, options: &Options, found: &mut Warnings) {
        const EXPANDED: &str = "expand";
        let options = &mut self.started(options);
        options.prepare.stop_after = Some(EXPANDED.to_owned());
        self.prepare_without_externs(options);
        // A file or a builder does not tell which nodes belong to functions, so a call could be taken for the whole function.
        if self.program().definitions.declared_inputs().is_none() {
            return;
        }
        if let Some(types) = tensor_types(self.program(), options) {
            cembra_prepare::find_tensor_warnings(self.program(), &types, options.prepare.registry, found);
            return;
        }
        // Compiling the model reports its errors, and an expired time limit.
        if let Ok(program) = self.selected(options)
            && let Ok(prepared) = prepare(&program, options, &mut |_, _| {})
        {
            let _ = cembra_prepare::find_warnings(prepared.model(), &program, &options.prepare, found);
        }
    }

    /// Returns the type of each node of the model's program, by the node's index. The type is `None` if the node or one of its operands has an error,
    /// or if the node depends on the parameter of a function. A weak float (the type of literals such as `0.5`) is given as f64, the type that it has
    /// as an output. In a model with tensors, an expression over labels has no type, because it stands for one element per index; a tensor that is
    /// given labels has its own type.
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
        types.into_iter().map(|qtype| qtype.map(|qtype| weak_floats_as_f64(&qtype))).collect()
    }
}

/// Returns the types of the nodes of a model with tensors; `None` for other models.
fn tensor_types(program: &Program, options: &CompileOptions) -> Option<Vec<Option<QType>>> {
    TensorProgram::is_of(program, options).then(|| TensorProgram::node_types(program, options))
}
