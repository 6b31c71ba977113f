//! Cases as the files write them, and how their literals become values of the case's types.

use cembra::values::{parse_type, parse_value};
use cembra::{QType, ScalarValue, Value};
use serde::Deserialize;

/// A file of cases.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    /// The cases.
    pub(crate) case: Vec<Case>,
}

/// One case: a model, and what it gives or why it fails.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    /// What the case shows.
    pub(crate) name: String,
    /// The model, if it is one expression.
    expr: Option<String>,
    /// The model, if it is more.
    model: Option<String>,
    /// The inputs, each as `name: type`, in the order of the rows' columns.
    #[serde(rename = "in", default)]
    inputs: Vec<String>,
    /// The outputs, each as `name: type`; of one the name may be left out.
    #[serde(default)]
    out: Vec<String>,
    /// Rows, each as `inputs => outputs` or `inputs => error CODE [by OPERATOR] [at TEXT]`; the error `promise` is of an input.
    #[serde(default)]
    pub(crate) rows: Vec<String>,
    /// The value of a model without inputs, which also says its type.
    is: Option<String>,
    /// Why the model is refused.
    pub(crate) error: Option<Refusal>,
    /// True if the case is run with optional inputs too: present ones give the same results, a missing one gives missing
    /// results and no error.
    #[serde(default)]
    pub(crate) lifts: bool,
    /// True if outputs that are weak floats stay so.
    #[serde(default)]
    pub(crate) weak: bool,
    /// Passes without which the results would be others; the case is also run without all optional passes if there are
    /// none.
    #[serde(default)]
    pub(crate) needs: Vec<String>,
    /// Why the case is not run.
    pub(crate) skip: Option<String>,
}

/// How a model is refused.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Refusal {
    /// `parse` or `type`.
    pub(crate) stage: Stage,
    /// The code of the first problem.
    pub(crate) code: String,
    /// The text it points at.
    pub(crate) at: Option<String>,
    /// Something it says, message and hints together.
    pub(crate) says: Option<String>,
}

/// When a model is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Stage {
    /// The text is not a model.
    Parse,
    /// Its types do not fit.
    Type,
}

/// A name and a type.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    /// The name.
    pub(crate) name: String,
    /// The type.
    pub(crate) qtype: QType,
}

/// What is expected of a row.
#[derive(Clone, Debug)]
pub(crate) enum Expected {
    /// These outputs.
    Values(Vec<Value>),
    /// An error.
    Fault {
        /// Its code.
        code: String,
        /// The operator that fails.
        operator: Option<String>,
        /// The text that fails.
        at: Option<String>,
    },
}

/// A row read.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// The row as written.
    pub(crate) text: String,
    /// One value for each input.
    pub(crate) inputs: Vec<Value>,
    /// What comes of them.
    pub(crate) expected: Expected,
}

impl Case {
    /// The text of the model.
    pub(crate) fn text(&self) -> Result<&str, String> {
        match (&self.expr, &self.model) {
            (Some(text), None) | (None, Some(text)) => Ok(text),
            _ => Err("a case has either `expr` or `model`".to_owned()),
        }
    }

    /// The inputs.
    pub(crate) fn inputs(&self) -> Result<Vec<Field>, String> {
        self.inputs.iter().map(|text| field(text)).collect()
    }

    /// The outputs and the rows.
    pub(crate) fn results(&self) -> Result<(Vec<Field>, Vec<Row>), String> {
        let inputs = self.inputs()?;
        if let Some(is) = &self.is {
            if !self.out.is_empty() || !self.rows.is_empty() || !inputs.is_empty() {
                return Err("a case with `is` has no inputs, outputs or rows".to_owned());
            }
            let value = literal(is)?;
            let row = Row { text: is.clone(), inputs: Vec::new(), expected: Expected::Values(vec![value.clone()]) };
            return Ok((vec![Field { name: "result".to_owned(), qtype: value.qtype() }], vec![row]));
        }
        let outputs: Vec<Field> = match self.out.as_slice() {
            [one] if one.starts_with('{') || !one.contains(": ") => vec![field(&format!("result: {one}"))?],
            many => many.iter().map(|text| field(text)).collect::<Result<_, _>>()?,
        };
        if outputs.is_empty() || self.rows.is_empty() {
            return Err("a case has `is`, or `error`, or both `out` and `rows`".to_owned());
        }
        let rows = self.rows.iter().map(|text| row(text, &inputs, &outputs)).collect::<Result<_, _>>()?;
        Ok((outputs, rows))
    }
}

fn field(text: &str) -> Result<Field, String> {
    let (name, qtype) = text.split_once(": ").ok_or_else(|| format!("`{text}` is not `name: type`"))?;
    let qtype = parse_type(qtype).map_err(|error| format!("`{qtype}`: {error}"))?.as_input();
    Ok(Field { name: name.to_owned(), qtype })
}

fn row(text: &str, inputs: &[Field], outputs: &[Field]) -> Result<Row, String> {
    let (left, right) = text.split_once("=>").ok_or_else(|| format!("`{text}` has no `=>`"))?;
    let expected = match right.trim().strip_prefix("error ") {
        Some(error) => {
            let (error, at) = match error.split_once(" at ") {
                Some((error, at)) => (error, Some(at.to_owned())),
                None => (error, None),
            };
            let (code, operator) = match error.split_once(" by ") {
                Some((code, operator)) => (code, Some(operator.to_owned())),
                None => (error, None),
            };
            Expected::Fault { code: code.to_owned(), operator, at }
        }
        None => Expected::Values(values(right, outputs)?),
    };
    Ok(Row { text: text.to_owned(), inputs: values(left, inputs)?, expected })
}

fn literal(text: &str) -> Result<Value, String> {
    parse_value(text).map_err(|error| format!("`{text}`: {error}"))
}

/// True for arrays, optional structs and lists of structs, and for structs of such: these are written without their type.
fn has_forms(qtype: &QType) -> bool {
    match qtype {
        QType::Array(..) => true,
        QType::Tuple(fields) => qtype.as_tuple().is_none() || fields.iter().any(has_forms),
        _ => false,
    }
}

/// The texts between commas that stand in no brackets and no quotes; none of an empty text.
fn parts(text: &str) -> Vec<&str> {
    let (mut depth, mut quote, mut start) = (0, false, 0);
    let mut found = Vec::new();
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'"' => quote = !quote,
            b'(' | b'[' | b'{' if !quote => depth += 1,
            b')' | b']' | b'}' if !quote => depth -= 1,
            b',' if !quote && depth == 0 => {
                found.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !text.trim().is_empty() {
        found.push(&text[start..]);
    }
    found
}

/// Reads literals between commas, each as a value of its field's type.
fn values(text: &str, fields: &[Field]) -> Result<Vec<Value>, String> {
    if fields.iter().any(|field| has_forms(&field.qtype)) {
        let parts = parts(text);
        if parts.len() != fields.len() {
            return Err(format!("`{text}` holds {} values instead of {}", parts.len(), fields.len()));
        }
        let value = |(part, field): (&str, &Field)| {
            let literal = cembra::program::Literal::parse(part.trim()).map_err(|error| format!("`{part}`: {error}"))?;
            let cast = cembra::program::cast_literal(&literal, &field.qtype);
            cast.ok_or_else(|| format!("{part} in `{text}` is not of type {}", field.qtype))
        };
        return parts.into_iter().zip(fields).map(value).collect();
    }
    let Value::Tuple(found) = literal(&format!("TUPLE{{{text}}}"))? else { return Err(format!("`{text}`")) };
    if found.len() != fields.len() {
        return Err(format!("`{text}` holds {} values instead of {}", found.len(), fields.len()));
    }
    found
        .iter()
        .zip(fields)
        .map(|(value, field)| {
            fit(value, &field.qtype).ok_or_else(|| format!("{value} in `{text}` is not of type {}", field.qtype))
        })
        .collect()
}

/// The value as one of a type: integers and weak floats take the type of the field, a plain value becomes optional, and
/// `missing` takes any optional type. A literal that names another type does not fit.
fn fit(value: &Value, qtype: &QType) -> Option<Value> {
    if value.qtype() == *qtype {
        return Some(value.clone());
    }
    match (value, qtype) {
        (Value::Nothing, QType::Optional(scalar)) => Some(Value::Missing(*scalar)),
        (Value::Scalar(v), QType::Optional(scalar)) => number(v, *scalar).map(Value::Present),
        (Value::Scalar(v), QType::Scalar(scalar)) => number(v, *scalar).map(Value::Scalar),
        (Value::Tuple(values), QType::Tuple(types))
            if values.len() == types.len() && values.names() == types.names() =>
        {
            let fields: Option<Vec<_>> = values.iter().zip(types.iter()).map(|(v, t)| fit(v, t)).collect();
            Some(Value::Tuple(types.with(fields?)))
        }
        _ => None,
    }
}

fn number(value: &ScalarValue, scalar: cembra::Scalar) -> Option<ScalarValue> {
    use cembra::Scalar::{Float32, Float64, Int64, WeakFloat};
    Some(match (value, scalar) {
        (v, scalar) if v.scalar() == scalar => v.clone(),
        (ScalarValue::Int32(v), Int64) => ScalarValue::Int64(i64::from(*v)),
        (ScalarValue::Int32(v), Float32) => ScalarValue::Float32(*v as f32),
        (ScalarValue::Int32(v), Float64) => ScalarValue::Float64(f64::from(*v)),
        (ScalarValue::Int32(v), WeakFloat) => ScalarValue::WeakFloat(f64::from(*v)),
        (ScalarValue::Int64(v), Float32) => ScalarValue::Float32(*v as f32),
        (ScalarValue::Int64(v), Float64) => ScalarValue::Float64(*v as f64),
        (ScalarValue::WeakFloat(v), Float32) => ScalarValue::Float32(*v as f32),
        (ScalarValue::WeakFloat(v), Float64) => ScalarValue::Float64(*v),
        _ => return None,
    })
}
