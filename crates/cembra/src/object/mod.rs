//! Compiles models ahead of time, to an object file and to declarations by which C and Rust programs call it. These
//! programs link only `cembra-runtime`, whose `standalone.rs` runs the model.

mod header;
mod lookups;
mod rust;
mod structs;

use crate::options::StartedOptions;
use crate::{Error, Model, Options};
use cembra_engine::{Sites, operator_name, plan_of, refusal};
use cembra_expr::Program;
use cembra_native::{Site, Target};
use cembra_plan::{Action, Binding, Plan, StepId};
use cembra_value::{Code, Diagnostic};
use lookups::{Lookups, MOST_ENTRIES, TABLE};
use std::fmt;
use std::sync::Arc;
use structs::Interface;

/// A model compiled ahead of time: the object file, and the declarations of the model for C and Rust programs.
#[derive(Clone)]
pub struct Object {
    bytes: Vec<u8>,
    interface: Interface,
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Object({}, {} bytes)", self.interface.name, self.bytes.len())
    }
}

impl Object {
    /// Returns the bytes of the object file, in the format of the target.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the header that declares the model for C and C++ programs. The header includes `cembra.h` of `cembra-runtime`.
    #[must_use]
    pub fn header(&self) -> String {
        header::write(&self.interface)
    }

    /// Returns the module that declares the model for Rust programs, for inclusion with `#[path]` or `include!`. The module needs the crate
    /// `cembra-runtime`.
    #[must_use]
    pub fn rust(&self) -> String {
        rust::write(&self.interface)
    }
}

impl Model {
    /// Compiles the model ahead of time. `name` is the model's name in C and Rust programs: letters, digits and underscores.
    ///
    /// The struct of inputs has the inputs that the prepared model uses, in order; the struct of outputs has all
    /// outputs, in order. Results are the same on every target, and the same as with every backend.
    ///
    /// ```
    /// use cembra::native::Target;
    /// use cembra::{Model, Options};
    ///
    /// let model = Model::parse("input x: f64?; output y = x * 2.0 + 1.0")?;
    /// let object = model.object("line", &Target::host(), &Options::default())?;
    /// assert!(object.header().contains("typedef struct {\n    cembra_optional_f64 x;\n} line_input;"));
    /// assert!(object.bytes().windows(10).any(|bytes| bytes == b"line_model"));
    /// # Ok::<(), cembra::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there are problems with types or limits, `name` is not an identifier in C, or the target is not supported. Also if an operator is not
    /// compiled to machine code but calls the library, as operators on strings and user-defined operators do.
    pub fn object(&self, name: &str, target: &Target, options: &Options) -> Result<Object, Error> {
        let searching = options.clone().extension(Arc::new(Lookups));
        let options = &self.started(options);
        if !structs::is_identifier(name) {
            let problem = Diagnostic::new(Code::Object, format!("`{name}` cannot be the name of a model in C"));
            return Err(problem
                .hint("use letters, digits and underscores, without a digit at the start, and not a word of C or Rust")
                .into());
        }
        self.step(|| {
            let program = self.selected(options)?;
            let mut plan = plan_of(&program, options)?;
            if cembra_native::called_steps(&plan).any(|step| is_lookup(&plan, step)) {
                plan = plan_of(&program, &self.started(&searching))?;
            }
            refuse_calls(&plan, &program)?;
            let (interface, binding) = Interface::of(name, &plan);
            let bytes = compile(&plan, &binding, &program, name, target, options)?;
            Ok(Object { bytes, interface })
        })
    }
}

fn compile(
    plan: &Plan,
    binding: &Binding,
    program: &Program,
    name: &str,
    target: &Target,
    options: &StartedOptions,
) -> Result<Vec<u8>, Error> {
    let sites = sites(plan, program, options);
    cembra_native::object(plan, binding, options.tier, options.budget(), target, name, &sites).map_err(|error| {
        match error.limit() {
            Some(_) => refusal(&error).into(),
            None => Diagnostic::new(Code::Object, error.to_string()).into(),
        }
    })
}

/// Returns true if the step `step` looks up a key in the table of a dictionary.
fn is_lookup(plan: &Plan, step: StepId) -> bool {
    matches!(plan.step(step).action, Action::Operator { op, .. } if plan.registry().get(op).name == TABLE)
}

/// Returns an error if a step of the plan calls a function of the operator library. A program that runs the object file
/// links only the runtime, which does not have these functions.
fn refuse_calls(plan: &Plan, program: &Program) -> Result<(), Error> {
    let Some(step) = cembra_native::called_steps(plan).next() else { return Ok(()) };
    let origin = plan.step(step).origin;
    let operator = operator_name(&program.graph, origin);
    let problem = Diagnostic::new(Code::Object, format!("an object file cannot hold `{operator}`"));
    let problem = match is_lookup(plan, step) {
        true => problem.hint(format!("use a table of at most {MOST_ENTRIES} entries")),
        false => problem,
    };
    Err(problem
        .at(program.graph.span(origin))
        .label("a function of the library, which the program will not be linked with")
        .hint("make the result of the operator an input, and compute this input before the model is called")
        .into())
}

/// Returns the steps of the plan that can fail, with the texts by which a program that runs the model reports the
/// failure.
fn sites(plan: &Plan, program: &Program, options: &StartedOptions) -> Vec<Site> {
    let sites = Sites::of(plan, program, options);
    let told = sites.all().iter().map(|site| Site {
        step: site.step,
        operator: site.operator.to_string(),
        result: site.result.to_string(),
        span: site.span.map_or((0, 0), |span| (span.start, span.end)),
    });
    told.collect()
}
