//! Whether values keep what the inputs they are given to promise. Looked at before anything runs, so that no player has to.

use crate::options::signature::Field;
use cembra_expr::{Program, print_type};
use cembra_value::Error;
use cembra_value::{BrokenPromise, Code, Diagnostic, Limit, Limits, Value};

/// Looks whether values of the types of these inputs keep what the inputs promise, and dictionaries are not too large.
///
/// # Errors
/// One does not; the first is told.
pub(crate) fn check(program: &Program, inputs: &[Field], values: &[Value], limits: &Limits) -> Result<(), Error> {
    inputs.iter().zip(values).try_for_each(|(input, value)| {
        let entries = input.qtype.as_map().and_then(|_| value.list_len());
        if entries.is_some_and(|entries| entries > limits.dict_entries) {
            return Err(limits.exceeded(Limit::DictEntries).into());
        }
        input.promise.check(value).map_err(|broken| refusal(program, input, broken))
    })
}

#[cold]
fn refusal(program: &Program, input: &Field, broken: BrokenPromise) -> Error {
    let (name, spelled) = (&input.name, input.spelled_type());
    let takes = if input.is_full() { "arrays with missing elements" } else { "edges of both forms" };
    let declared = program.inputs.iter().find(|declared| declared.name == *name);
    let problem = Diagnostic::new(Code::Promise, format!("input `{name}` is {spelled}, but {broken}"))
        .at(declared.and_then(|declared| declared.span))
        .hint(format!("declare it as `{}`, which takes {takes}", print_type(&input.qtype)));
    match broken {
        BrokenPromise::Missing(element) => Error::promise(problem, Some(element)),
        _ => Error::promise(problem, None),
    }
}
