//! Checks the tests of a model without running them, to find tests that always fail, because they name an input or
//! output that the model does not have, give a value of another type, or expect an error code that does not exist.

use super::model_tests;
use crate::names::unknown_name;
use crate::program::{cast_literal, literal_type};
use crate::{Model, Signature};
use cembra_expr::{Expected, TestValue, print_type};
use cembra_ops::Registry;
use cembra_runtime::{Excerpt, FaultKind, QType};
use cembra_value::{Code, Diagnostic, Warnings, dashed_code, near_names};
use std::collections::BTreeMap;

/// The names of inputs or outputs, each with its type; `None` if the type is not known.
type Types<'m> = BTreeMap<&'m str, Option<&'m QType>>;

/// Returns the codes of all errors in models and of all faults of evaluations, such as `div-by-zero`.
fn codes() -> impl Iterator<Item = &'static str> {
    Code::ALL.iter().map(|code| code.as_str()).chain(FaultKind::ALL.iter().map(|kind| kind.name()))
}

/// Adds a warning to `found` if `value`, a test's input or expected output, does not fit the model: `types` lacks its
/// name, or has another type. `kind` is `input` or `output`.
fn look_at(kind: &str, value: &TestValue, types: &Types<'_>, found: &mut Warnings) {
    let (name, unfit) = (&*value.name, Code::UnfitTest);
    match types.get(name) {
        None => {
            found.add(unfit, Some(value.span), || {
                let unknown = unknown_name(kind, name, types.keys().copied());
                unknown.hints().iter().fold(Diagnostic::new(unfit, unknown.message()), |one, hint| one.hint(hint))
            });
        }
        Some(Some(qtype)) if cast_literal(&value.literal, qtype).is_none() => {
            found.add(unfit, Some(value.span), || {
                let (written, misfit) = model_tests::unfit(&value.literal, qtype);
                let (qtype, name, written) = (print_type(qtype), Excerpt::quoted(name), Excerpt::quoted(&written));
                Diagnostic::new(unfit, format!("{kind} `{name}` is {qtype}, and the test has `{written}`{misfit}"))
            });
        }
        Some(_) => {}
    }
}

impl Model {
    /// Adds a warning to `found` for each value or error code in the model's tests that does not fit the model. Types are checked if `signature`
    /// gives them.
    pub(crate) fn find_unfit_tests(&self, signature: Option<&Signature>, found: &mut Warnings) {
        if self.tests().is_empty() {
            return;
        }
        let program = self.program();
        let mut inputs: Types<'_> = program.inputs.iter().map(|input| (&*input.name, input.qtype.as_ref())).collect();
        let mut outputs: Types<'_> = program.outputs.iter().map(|output| (&*output.name, None)).collect();
        if let Some(signature) = signature {
            inputs.extend(signature.inputs.iter().map(|field| (&*field.name, Some(&field.qtype))));
            outputs.extend(signature.outputs.iter().map(|field| (&*field.name, Some(&field.qtype))));
        }
        let has_own_codes = !program.externs.is_empty() || !std::ptr::eq(self.registry(), Registry::standard());
        for case in self.tests().iter().flat_map(|test| &test.cases) {
            for value in &case.inputs {
                look_at("input", value, &inputs, found);
            }
            match &case.expected {
                Expected::Outputs(values) => {
                    // A run option may make any output missing where an evaluation fails.
                    let is_missing = |value: &TestValue| literal_type(&value.literal) == Some(QType::Nothing);
                    for value in values.iter().filter(|value| !is_missing(value) || !outputs.contains_key(&*value.name))
                    {
                        look_at("output", value, &outputs, found);
                    }
                }
                Expected::Error(code) => {
                    let dashed = dashed_code(code);
                    // User-defined operators have error codes of their own.
                    let is_known = has_own_codes || codes().any(|known| known == dashed);
                    if !is_known {
                        found.add(Code::UnfitTest, Some(case.span), || {
                            let message = format!("no error has the code `{}`", Excerpt::quoted(code));
                            let near = near_names(&dashed, 1, codes()).first().copied().unwrap_or("div-by-zero");
                            Diagnostic::new(Code::UnfitTest, message)
                                .hint(format!("write a code of an error, such as `{near}`"))
                        });
                    }
                }
            }
        }
    }
}
