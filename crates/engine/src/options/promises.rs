//! Checks that input values keep the promises that the model declares for them. Promises are checked before anything runs, so that backends need not
//! check them.

use crate::options::signature::Field;
use cembra_expr::{Program, print_type};
use cembra_value::Error;
use cembra_value::{BrokenPromise, Code, Diagnostic, Limit, Limits, Value};

/// Checks that `values`, which have the types of `inputs`, satisfy the promises of `inputs` (guarantees, such as that
/// no element is missing), and that dictionaries have no more entries than `limits` allows.
///
/// # Errors
/// The error of the first value that breaks a promise or a limit.
pub(crate) fn check(program: &Program, inputs: &[Field], values: &[Value], limits: &Limits) -> Result<(), Error> {
    inputs.iter().zip(values).try_for_each(|(input, value)| {
        let entries = input.qtype.as_map().and_then(|_| value.list_len());
        if entries.is_some_and(|entries| entries > limits.dict_entries) {
            return Err(limits.exceeded(Limit::DictEntries).into());
        }
        input.promise.check(value).map_err(|broken| refusal(program, input, broken))
    })
}

/// The error for a value that breaks the promise of `input`, such as an array with a missing element.
#[cold]
fn refusal(program: &Program, input: &Field, broken: BrokenPromise) -> Error {
    let (name, spelled) = (&input.name, input.spelled_type());
    let takes =
        if input.is_full() { "arrays with missing elements" } else { "edges with sizes, split points or a mapping" };
    let declared = program.inputs.iter().find(|declared| declared.name == *name);
    let problem = Diagnostic::new(Code::Promise, format!("input `{name}` is {spelled}, but {broken}"))
        .at(declared.and_then(|declared| declared.span))
        .hint(format!("declare the input as `{}`, which takes {takes}", print_type(&input.qtype)));
    match broken {
        BrokenPromise::Missing(element) => Error::promise(problem, Some(element)),
        _ => Error::promise(problem, None),
    }
}
