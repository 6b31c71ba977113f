//! Evaluates a model on one row, whose values C passes and receives.

use crate::errors::Error;
use crate::failure::Failure;
use crate::kinds;
use crate::layouts;
use crate::memory::{StridedMut, pointed};
use crate::row_value::{RowPath, RowValue, member, not_given};
use crate::session::{Session, with_session};
use crate::views::{Terms, write_row};
use crate::{structs, tensors};
use compiler::doors::OutputRoom;
use compiler::program::{Literal, cast_literal};
use compiler::{Date, Duration, QType, ScalarValue, Timestamp, Value};

impl Session {
    /// Evaluates the row with the values `given` and writes the results to `outputs`. Inputs left out at the end get their defaults.
    fn evaluate<'g>(
        &mut self,
        given: impl ExactSizeIterator<Item = RowValue<'g>>,
        outputs: StridedMut<layouts::Value<'static>>,
    ) -> Result<(), Failure> {
        self.forget();
        let fields = self.compiled.executor.inputs();
        if given.len() > fields.len() {
            let message = format!("the model has {} inputs, but {} values are given", fields.len(), given.len());
            return Err(Failure::values(message));
        }
        let expected = self.compiled.executor.outputs().len();
        if outputs.count() != expected {
            let message = format!("the model has {expected} outputs, but {} are given", outputs.count());
            return Err(Failure::values(message));
        }
        let most = self.array_bytes();
        self.row.truncate(given.len());
        for (at, (field, given)) in fields.iter().zip(given).enumerate() {
            if let Some(old) = self.row.get_mut(at) {
                if !is_written_over(old, given) {
                    *old = value(field, given, std::mem::replace(old, Value::Nothing), most)?;
                }
            } else {
                self.row.push(value(field, given, Value::Nothing, most)?);
            }
        }
        let mut token = None;
        if self.deadline.is_some() {
            let run = self.options_now();
            self.inner.set_run_options(&run);
            token = run.token();
        }
        self.inner.evaluate_into(&self.row, &mut self.made)?;
        let run = &self.run;
        let terms = || Terms { room: OutputRoom::of(most), token: token.or_else(|| run.token()) };
        write_row(outputs, &self.made, &mut self.views, terms)
    }
}

/// Overwrites the value of the previous row with the given one, if both are numbers of the same type. Returns true if the value was overwritten. To
/// construct and move a new value would take longer than the rest of the call.
#[inline]
fn is_written_over(old: &mut Value, given: RowValue<'_>) -> bool {
    let (true, Value::Scalar(old) | Value::Present(old)) = (given.is_present(), old) else { return false };
    match (given.kind(), old) {
        (kinds::F64, ScalarValue::Float64(old)) => *old = member!(given, f64),
        (kinds::F32, ScalarValue::Float32(old)) => *old = member!(given, f32),
        (kinds::I64, ScalarValue::Int64(old)) => *old = member!(given, i64),
        (kinds::I32, ScalarValue::Int32(old)) => *old = member!(given, i32),
        _ => return false,
    }
    true
}

/// Converts the value that C gave for an input. Reuses the memory of `before`, the previous row's value, if that has the same type.
#[inline(never)]
fn value(field: &compiler::Field, given: RowValue<'_>, before: Value, most: u64) -> Result<Value, Failure> {
    let (kind, place) = (given.kind(), &RowPath::input(&field.name));
    if kind == kinds::NONE {
        return not_given(field);
    }
    if !given.is_present() {
        return missing(field, kind, place);
    }
    let scalar = match kind {
        kinds::UNIT => ScalarValue::Unit,
        kinds::BOOL => ScalarValue::Boolean(member!(given, boolean).is_set()),
        kinds::I32 => ScalarValue::Int32(member!(given, i32)),
        kinds::I64 => ScalarValue::Int64(member!(given, i64)),
        kinds::U64 => ScalarValue::UInt64(member!(given, u64)),
        kinds::F32 => ScalarValue::Float32(member!(given, f32)),
        kinds::F64 => ScalarValue::Float64(member!(given, f64)),
        kinds::DATE => ScalarValue::Date(Date(member!(given, i32))),
        kinds::TIMESTAMP => ScalarValue::Timestamp(Timestamp(member!(given, i64))),
        kinds::DURATION => ScalarValue::Duration(Duration(member!(given, i64))),
        kinds::TEXT => ScalarValue::Text(member!(given, text).read(place)?.into()),
        kinds::BYTES => ScalarValue::Bytes(member!(given, bytes).read(place)?.into()),
        kinds::ARRAY => {
            let at = member!(given, array);
            // SAFETY: C-MEMORY: the value is an array, and the caller promised what it points to.
            let array = unsafe { pointed(at, place) }?;
            return tensors::array(array, place, most);
        }
        kinds::TENSOR => {
            let at = member!(given, tensor);
            // SAFETY: C-MEMORY: the value is a tensor, and the caller promised what it points to.
            let tensor = unsafe { pointed(at, place) }?;
            return tensors::tensor(tensor, place, most);
        }
        kinds::STRUCT => {
            let at = member!(given, structure);
            // SAFETY: C-MEMORY: the value is a struct, and the caller promised what it points to.
            return unsafe { structs::structure(pointed(at, place)?, &field.qtype, before, place, most) };
        }
        kinds::LIST => {
            let at = member!(given, list);
            // SAFETY: C-MEMORY: the value is a list, and the caller promised what it points to.
            return unsafe { structs::list(pointed(at, place)?, &field.qtype, before, place, most) };
        }
        kinds::LITERAL => return literal(field, member!(given, text).read(place)?),
        other => return Err(Failure::unknown("CEMBRA_KIND_*", other)),
    };
    Ok(if field.qtype.is_optional() { Value::Present(scalar) } else { Value::Scalar(scalar) })
}

/// Returns a missing value for the input `field`, from a C value of this kind. Fails if the kind does not fit.
fn missing(field: &compiler::Field, kind: u32, place: &RowPath<'_>) -> Result<Value, Failure> {
    let missing = match (kinds::scalar(kind), kind, &field.qtype) {
        (Some(scalar), ..) => Some(Value::Missing(scalar)),
        (None, kinds::LITERAL | kinds::STRUCT, QType::Optional(scalar)) => Some(Value::Missing(*scalar)),
        (None, kinds::LITERAL | kinds::STRUCT, of) => {
            of.as_optional_struct().and_then(|of| Value::optional_struct(of, None))
        }
        (None, kinds::ARRAY | kinds::TENSOR | kinds::LIST, _) => None,
        (None, other, _) => return Err(Failure::unknown("CEMBRA_KIND_*", other)),
    };
    let may_be = field.qtype.is_optional() || field.qtype.as_optional_struct().is_some();
    missing.filter(|_| may_be).ok_or_else(|| Failure::missing(place))
}

/// Parses a value that C gave as text in the language, and converts it to the input's type.
fn literal(field: &compiler::Field, text: &str) -> Result<Value, Failure> {
    let shown: String = text.chars().take(60).collect();
    // Its place is in the literal, and not in the text of the model.
    let found = Literal::parse(text);
    let found = found.map_err(|error| Failure::values(format!("input `{}` is `{shown}`: {error}", field.name)))?;
    cast_literal(&found, &field.qtype)
        .ok_or_else(|| Failure::values(format!("input `{}` is {}, found `{shown}`", field.name, field.qtype)))
}

/// Evaluates a session's model on one row: reads `input_count` values at `inputs`, writes `output_count` values at `outputs`.
///
/// # Safety
/// C-MEMORY (`docs/safety.md`): `inputs` and `outputs` must be as `cembra_compiler.h` requires.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cembra_session_evaluate(
    session: Option<&mut Session>,
    inputs: *const layouts::Value<'_>,
    input_count: usize,
    outputs: *mut layouts::Value<'_>,
    output_count: usize,
) -> Option<Box<Error>> {
    with_session(session, |session| {
        let stride = size_of::<layouts::Value<'_>>().cast_signed();
        // SAFETY: C-MEMORY, promised by the caller.
        let outputs = unsafe { StridedMut::new(outputs.cast(), stride, output_count, "`outputs`") }?;
        // SAFETY: C-MEMORY, promised by the caller.
        let given = unsafe { RowValue::row(inputs, input_count, "`inputs`") }?;
        session.evaluate(given, outputs)
    })
}
