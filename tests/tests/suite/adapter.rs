//! One backend as the runner sees it: a model and types in, a session out; and what becomes of a row.

use crate::case::{Case, Expected, Field, Refusal, Row, Stage};
use cembra::native::Tier;
use cembra::{Backend, Error, Executor, Limits, Model, Options, QType, Session, Value};
use cembra_tests::backend::{in_each_tier, on};
use cembra_tests::vocabulary::foreign_names;

/// A way to run cases: a backend, which is never another one, in all of its tiers, and passes that are left out.
#[derive(Clone, Copy)]
pub(crate) struct Adapter {
    /// The backend.
    pub(crate) backend: Backend,
    /// Optional passes that are left out.
    pub(crate) without: &'static [&'static str],
    /// How native code is made.
    pub(crate) tier: Tier,
    /// How many steps are in one function of native code.
    pub(crate) native_steps: usize,
}

/// The types a case is run with.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    /// As written.
    Written,
    /// With all inputs optional.
    Lifted,
}

impl Adapter {
    /// Runs a case.
    pub(crate) fn run(self, case: &Case) -> Result<(), String> {
        let text = case.text()?;
        if let Some(refusal) = &case.error {
            return refused(self.compile(case, Form::Written)?, refusal, text);
        }
        let (outputs, rows) = case.results()?;
        let executor = self.compiled(case, Form::Written)?;
        check_outputs(&executor, &outputs)?;
        self.in_each_tier(&executor, |session| {
            for row in &rows {
                let found = session.evaluate(&used(&executor, &case.inputs()?, &row.inputs)?);
                judge(row, &row.expected, found, text)?;
            }
            Ok(())
        })?;
        if case.lifts { self.run_lifted(case, &outputs, &rows) } else { Ok(()) }
    }

    /// The same rows with optional inputs; and each with one input after the other missing.
    fn run_lifted(self, case: &Case, outputs: &[Field], rows: &[Row]) -> Result<(), String> {
        let text = case.text()?;
        let executor = self.compiled(case, Form::Lifted)?;
        let optional = |field: &Field| Field { name: field.name.clone(), qtype: field.qtype.to_optional() };
        let outputs: Vec<Field> = outputs.iter().map(optional).collect();
        let inputs: Vec<Field> = case.inputs()?.iter().map(optional).collect();
        check_outputs(&executor, &outputs)?;
        self.in_each_tier(&executor, |session| {
            for row in rows {
                let mut values: Vec<Value> = row.inputs.iter().map(lift).collect();
                let expected = match &row.expected {
                    Expected::Values(values) => Expected::Values(values.iter().map(lift).collect()),
                    fault => fault.clone(),
                };
                let found = session.evaluate(&used(&executor, &inputs, &values)?);
                judge(row, &expected, found, text).map_err(|error| format!("with optional inputs: {error}"))?;
                let missing = Expected::Values(outputs.iter().filter_map(|field| missing(&field.qtype)).collect());
                for at in 0..values.len() {
                    let Some(absent) = missing_like(&values[at]) else { continue };
                    let present = std::mem::replace(&mut values[at], absent);
                    let found = session.evaluate(&used(&executor, &inputs, &values)?);
                    let without = &inputs[at].name;
                    judge(row, &missing, found, text).map_err(|error| format!("with `{without}` missing: {error}"))?;
                    values[at] = present;
                }
            }
            Ok(())
        })
    }

    /// Runs rows in one session, in each tier that the backend has.
    fn in_each_tier(
        self,
        executor: &Executor,
        mut rows: impl FnMut(&mut Session) -> Result<(), String>,
    ) -> Result<(), String> {
        let mut session = executor.session();
        for result in in_each_tier(executor, || rows(&mut session).map_err(|e| (executor.tier(), e))) {
            result.map_err(|(tier, error)| format!("in tier {tier:?}: {error}"))?;
        }
        let highest = (self.backend != Backend::Interpreter).then_some(self.tier);
        if executor.tier() != highest || executor.fallback().is_some() {
            return Err(format!("the {} backend ran instead", executor.backend().name()));
        }
        Ok(())
    }

    fn compiled(self, case: &Case, form: Form) -> Result<Executor, String> {
        self.compile(case, form)?.map_err(|(stage, error)| format!("refused ({stage:?}): {error}"))
    }

    fn compile(self, case: &Case, form: Form) -> Result<Result<Executor, (Stage, Error)>, String> {
        let model = match Model::parse(case.text()?) {
            Ok(model) => model,
            Err(error) => return Ok(Err((Stage::Parse, error))),
        };
        let mut options = on(self.backend, Options::default()).tier(self.tier).keep_weak_outputs(case.weak);
        options = options.limits(Limits::default().native_steps(self.native_steps));
        for field in case.inputs()? {
            let qtype = if form == Form::Lifted { field.qtype.to_optional() } else { field.qtype };
            options = options.input_type(&field.name, qtype);
        }
        for pass in self.without {
            options = options.without_pass(pass);
        }
        Ok(model.compile(&options).map_err(|error| (Stage::Type, error)))
    }
}

fn check_outputs(executor: &Executor, outputs: &[Field]) -> Result<(), String> {
    let found: Vec<(&str, &QType)> = executor.outputs().iter().map(|f| (&*f.name, &f.qtype)).collect();
    let wanted: Vec<(&str, &QType)> = outputs.iter().map(|f| (&*f.name, &f.qtype)).collect();
    if found == wanted { Ok(()) } else { Err(format!("the outputs are {found:?} instead of {wanted:?}")) }
}

/// The values of the inputs that the prepared model still uses, in its order.
fn used(executor: &Executor, inputs: &[Field], values: &[Value]) -> Result<Vec<Value>, String> {
    let find = |name: &str| inputs.iter().position(|field| field.name == name).map(|at| values[at].clone());
    executor.inputs().iter().map(|f| find(&f.name).ok_or_else(|| format!("no column for `{}`", f.name))).collect()
}

fn lift(value: &Value) -> Value {
    match value {
        Value::Scalar(v) => Value::Present(v.clone()),
        other => other.clone(),
    }
}

fn missing(qtype: &QType) -> Option<Value> {
    qtype.scalar().map(Value::Missing)
}

/// A missing value of the type, for a value that is there.
fn missing_like(value: &Value) -> Option<Value> {
    match value {
        Value::Present(_) => missing(&value.qtype()),
        _ => None,
    }
}

/// What an error tells names types as models do. A name that the model itself uses may be quoted.
fn speaks_our_names(error: &Error, source: &str) -> Result<(), String> {
    let mut told = vec![error.to_string()];
    for diagnostic in error.diagnostics() {
        told.push(diagnostic.to_string());
        told.push(diagnostic.label_text().to_owned());
        told.extend(diagnostic.others().iter().map(|label| label.text.clone()));
        told.extend(diagnostic.hints().iter().map(ToString::to_string));
    }
    let foreign = told.iter().find(|text| foreign_names(text).iter().any(|name| !source.contains(name)));
    foreign.map_or(Ok(()), |text| Err(format!("a type has not its name of the text language in: {text}")))
}

fn judge(row: &Row, expected: &Expected, found: Result<Vec<Value>, Error>, source: &str) -> Result<(), String> {
    let good = match (expected, &found) {
        (Expected::Values(wanted), Ok(found)) => {
            wanted.len() == found.len() && wanted.iter().zip(found).all(|(wanted, found)| wanted.same(found))
        }
        (Expected::Fault { code, operator, at }, Err(error)) => {
            // Values that are refused never get as far as a fault.
            error.is_fault() == (code != "promise")
                && error.code() == code
                && operator.as_deref().is_none_or(|operator| error.operator() == Some(operator))
                && at.as_deref().is_none_or(|at| error.span().map(|span| span.text(source)) == Some(at))
        }
        _ => false,
    };
    if good {
        return found.err().map_or(Ok(()), |error| speaks_our_names(&error, source));
    }
    let found = match found {
        Ok(values) => values.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        Err(error) => {
            let at = error.span().map_or("nowhere", |span| span.text(source));
            format!("error {} by {} at {at}", error.code(), error.operator().unwrap_or("nobody"))
        }
    };
    Err(format!("row `{}` gives {found}", row.text))
}

fn refused(found: Result<Executor, (Stage, Error)>, wanted: &Refusal, source: &str) -> Result<(), String> {
    let Err((stage, error)) = found else { return Err("the model is not refused".to_owned()) };
    let diagnostics = error.diagnostics();
    let Some(first) = diagnostics.first() else { return Err("the error says nothing".to_owned()) };
    let at = first.span().map(|span| span.text(source));
    let good = stage == wanted.stage
        && error.code() == wanted.code
        && wanted.at.as_deref().is_none_or(|wanted| at == Some(wanted))
        && wanted.says.as_deref().is_none_or(|wanted| first.to_string().contains(wanted));
    if good {
        speaks_our_names(&error, source)
    } else {
        Err(format!("refused ({stage:?}) with {} at {at:?}: {first}", error.code()))
    }
}
