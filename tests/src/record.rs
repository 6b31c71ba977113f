//! A line of the golden data as a case that can be run.

use crate::closeness::Closeness;
use crate::decode::{self, ErrorKind};
use crate::expression;
use crate::operator::Callee;
use crate::problem::{Defect, Malformed, Unsupported};
use cembra_expr::Program;
use cembra_runtime::QType;
use cembra_value::Value;
use serde_json::{Map, Value as Json};

/// What a call returned, in the data or here.
pub type Returned = Result<Value, ErrorKind>;

/// One operator call.
#[derive(Clone, Debug)]
pub struct OperatorCase {
    /// The operator.
    pub callee: Callee,
    /// The operands.
    pub operands: Vec<Value>,
    /// What Arolla returned.
    pub expected: Returned,
    /// How near is near enough.
    pub closeness: Closeness,
}

/// Types that an operator takes.
#[derive(Clone, Debug)]
pub struct SignatureCase {
    /// The operator.
    pub callee: Callee,
    /// The types of its operands.
    pub operands: Vec<QType>,
    /// The type of its result.
    pub ret: QType,
    /// True if Arolla accepts the types but cannot compile the call, so that no operator case has them.
    pub reference_bug: bool,
}

/// One row of an expression.
#[derive(Clone, Debug)]
pub struct Row {
    /// The values of the inputs.
    pub inputs: Vec<Value>,
    /// What Arolla returned.
    pub expected: Returned,
    /// What strict evaluation returns, where it differs.
    pub alternative: Option<Returned>,
}

/// A whole expression.
#[derive(Clone, Debug)]
pub struct ExpressionCase {
    /// The model.
    pub program: Program,
    /// The type of the result.
    pub ret: QType,
    /// How near is near enough.
    pub closeness: Closeness,
    /// The error of compiling it, if Arolla failed there.
    pub compile_error: Option<ErrorKind>,
    /// The rows.
    pub rows: Vec<Row>,
}

/// A case of any kind.
#[derive(Clone, Debug)]
pub enum Case {
    /// An operator call.
    Operator(OperatorCase),
    /// Accepted types.
    Signature(SignatureCase),
    /// An expression.
    Expression(Box<ExpressionCase>),
    /// A case about tensors, as it stands in the data.
    Tensor(Map<String, Json>),
}

/// A line: what it is called, and the case in it unless cembra lacks something it needs.
#[derive(Clone, Debug)]
pub struct Record {
    /// The operator, or for an expression `id` and, if it has one, its tag.
    pub name: String,
    /// The expression as the data write it; empty for other cases.
    pub expression: String,
    /// What results are counted under: the operator, or `expressions`.
    pub subject: String,
    /// The case.
    pub case: Result<Case, Unsupported>,
}

impl Record {
    /// Reads a line.
    ///
    /// # Errors
    /// The line is not of a documented format.
    pub fn parse(line: &str) -> Result<Record, Malformed> {
        let Json::Object(fields) = serde_json::from_str(line)? else { return Err(Malformed::Field("op")) };
        if let Some(kind) = fields.get("kind") {
            // The cases about tensors; their `id` starts with their file's name.
            let kind = kind.as_str().ok_or(Malformed::Field("kind"))?;
            let name = text(&fields, "id")?.to_owned();
            let subject = format!("tensors, {kind}");
            return Ok(Record { name, expression: String::new(), subject, case: Ok(Case::Tensor(fields)) });
        }
        if fields.contains_key("expr") {
            let mut name = text(&fields, "id")?.to_owned();
            if fields.contains_key("tag") {
                name.push(' ');
                name.push_str(text(&fields, "tag")?);
            }
            let case = supported(expression_case(&fields).map(|case| Case::Expression(Box::new(case))))?;
            let expression = text(&fields, "expr")?.to_owned();
            return Ok(Record { name, expression, subject: "expressions".to_owned(), case });
        }
        let name = text(&fields, "op")?.to_owned();
        let case = if fields.get("out").is_some_and(Json::is_string) {
            signature_case(&name, &fields).map(Case::Signature)
        } else {
            operator_case(&name, &fields).map(Case::Operator)
        };
        Ok(Record { subject: name.clone(), name, expression: String::new(), case: supported(case)? })
    }
}

fn supported<T>(read: Result<T, Defect>) -> Result<Result<T, Unsupported>, Malformed> {
    match read {
        Ok(case) => Ok(Ok(case)),
        Err(Defect::Unsupported(what)) => Ok(Err(what)),
        Err(Defect::Malformed(problem)) => Err(problem),
    }
}

fn field<'f>(fields: &'f Map<String, Json>, name: &'static str) -> Result<&'f Json, Malformed> {
    fields.get(name).ok_or(Malformed::Field(name))
}

fn text<'f>(fields: &'f Map<String, Json>, name: &'static str) -> Result<&'f str, Malformed> {
    field(fields, name)?.as_str().ok_or(Malformed::Field(name))
}

fn list<'f>(fields: &'f Map<String, Json>, name: &'static str) -> Result<&'f [Json], Malformed> {
    field(fields, name)?.as_array().map(Vec::as_slice).ok_or(Malformed::Field(name))
}

/// A flag that is false where it is left out.
fn flag(fields: &Map<String, Json>, name: &'static str) -> Result<bool, Malformed> {
    fields.get(name).map_or(Ok(false), |json| json.as_bool().ok_or(Malformed::Field(name)))
}

fn operator_case(name: &str, fields: &Map<String, Json>) -> Result<OperatorCase, Defect> {
    let callee = Callee::parse(name)?;
    let operands = list(fields, "in")?.iter().map(|pair| decode::typed_value(pair, "in")).collect::<Result<_, _>>()?;
    let expected = match (fields.get("out"), fields.get("error")) {
        (Some(pair), None) => Ok(decode::typed_value(pair, "out")?),
        (None, Some(kind)) => Err(decode::error_kind(kind)?),
        _ => return Err(Malformed::Field("out").into()),
    };
    Ok(OperatorCase { callee, operands, expected, closeness: Closeness::of_operator(name) })
}

fn signature_case(name: &str, fields: &Map<String, Json>) -> Result<SignatureCase, Defect> {
    Ok(SignatureCase {
        callee: Callee::parse(name)?,
        operands: decode::qtypes(field(fields, "in")?, "in")?,
        ret: decode::qtype(text(fields, "out")?)?,
        reference_bug: flag(fields, "reference_bug")?,
    })
}

fn expression_case(fields: &Map<String, Json>) -> Result<ExpressionCase, Defect> {
    let mut inputs = Vec::new();
    for pair in list(fields, "inputs")? {
        let Some([Json::String(name), Json::String(qtype)]) = pair.as_array().map(Vec::as_slice) else {
            return Err(Malformed::Field("inputs").into());
        };
        inputs.push((name.clone(), decode::qtype(qtype)?));
    }
    let ret = decode::qtype(text(fields, "out_type")?)?;
    let program = expression::read(text(fields, "expr")?, &inputs)?;
    let (rows, outs) = (list(fields, "rows")?, list(fields, "outs")?);
    length("outs", rows.len(), outs.len())?;
    let rows = rows.iter().zip(outs).map(|(row, out)| read_row(&inputs, row, &ret, out)).collect::<Result<_, _>>()?;
    Ok(ExpressionCase {
        program,
        ret,
        closeness: if flag(fields, "approx")? { Closeness::EXPRESSION } else { Closeness::Exact },
        compile_error: fields.get("compile_error").map(decode::error_kind).transpose()?,
        rows,
    })
}

fn read_row(inputs: &[(String, QType)], row: &Json, ret: &QType, out: &Json) -> Result<Row, Malformed> {
    let row = row.as_array().ok_or(Malformed::Field("rows"))?;
    length("rows", inputs.len(), row.len())?;
    let inputs =
        inputs.iter().zip(row).map(|((_, qtype), json)| decode::value(qtype, json)).collect::<Result<_, _>>()?;
    let alternative = out.get("alt").map(|json| returned(ret, json)).transpose()?;
    Ok(Row { inputs, expected: returned(ret, out)?, alternative })
}

fn returned(ret: &QType, json: &Json) -> Result<Returned, Malformed> {
    match (json.get("v"), json.get("error")) {
        (Some(value), None) => Ok(Ok(decode::value(ret, value)?)),
        (None, Some(kind)) => Ok(Err(decode::error_kind(kind)?)),
        _ => Err(Malformed::Field("outs")),
    }
}

fn length(field: &'static str, expected: usize, found: usize) -> Result<(), Malformed> {
    if expected == found { Ok(()) } else { Err(Malformed::Length { field, expected, found }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(line: &str) -> Case {
        Record::parse(line).expect("a record").case.expect("a case")
    }

    #[test]
    fn operator_cases_have_operands_and_a_result_or_an_error() {
        let Case::Operator(call) = case(
            r#"{"op":"math.floordiv","in":[["INT32","7"],["OPTIONAL_INT64",null]],"out":["OPTIONAL_INT64",null]}"#,
        ) else {
            panic!("not an operator case");
        };
        assert_eq!(call.operands, [Value::from(7), Value::from(None::<i64>)]);
        assert_eq!(call.expected, Ok(Value::from(None::<i64>)));
        let Case::Operator(call) =
            case(r#"{"op":"math.mod","in":[["INT32","7"],["INT32","0"]],"error":"div_by_zero"}"#)
        else {
            panic!("not an operator case");
        };
        assert_eq!(call.expected, Err(ErrorKind::DivByZero));
    }

    #[test]
    fn signatures_have_types_only() {
        let line =
            r#"{"op":"core.presence_or","in":["WEAK_FLOAT","OPTIONAL_FLOAT64"],"out":"FLOAT64","reference_bug":true}"#;
        let Case::Signature(signature) = case(line) else { panic!("not a signature") };
        assert_eq!(signature.operands, [QType::WEAK_FLOAT, QType::FLOAT64.to_optional()]);
        assert_eq!((signature.ret, signature.reference_bug), (QType::FLOAT64, true));
    }

    #[test]
    fn expressions_have_rows_with_alternatives() {
        let line = r#"{"id":"p-h0","expr":"(math.floordiv L.i L.j)","inputs":[["i","INT32"],["j","INT32"]],
            "out_type":"INT32","approx":false,"tag":"probe","compile_error":"div_by_zero",
            "rows":[["7","2"],["1","0"]],"outs":[{"v":"3"},{"error":"div_by_zero","alt":{"v":"-1"}}]}"#;
        assert_eq!(Record::parse(line).expect("a record").name, "p-h0 probe");
        let Case::Expression(expression) = case(line) else { panic!("not an expression") };
        assert_eq!(expression.compile_error, Some(ErrorKind::DivByZero));
        assert_eq!(expression.closeness, Closeness::Exact);
        assert_eq!(expression.rows[0].inputs, [Value::from(7), Value::from(2)]);
        assert_eq!(expression.rows[0].expected, Ok(Value::from(3)));
        assert_eq!(expression.rows[0].alternative, None);
        assert_eq!(expression.rows[1].expected, Err(ErrorKind::DivByZero));
        assert_eq!(expression.rows[1].alternative, Some(Ok(Value::from(-1))));
    }

    #[test]
    fn what_cembra_lacks_is_named() {
        for (line, subject, lacks) in [
            (r#"{"op":"core.has","in":[["EXPR_QUOTE","1"]],"out":["UNIT",true]}"#, "core.has", "no type EXPR_QUOTE"),
            (r#"{"op":"core.frob","in":[],"out":["UNIT",true]}"#, "core.frob", "no operator core.frob"),
            (r#"{"op":"math.abs","in":["DENSE_ARRAY_INT16"],"out":"INT32"}"#, "math.abs", "no type DENSE_ARRAY_INT16"),
        ] {
            let record = Record::parse(line).expect("a record");
            assert_eq!(record.subject, subject);
            assert_eq!(record.case.expect_err("unsupported").to_string(), lacks);
        }
    }

    #[test]
    fn lines_of_another_form_are_malformed() {
        for line in [
            "",
            "[]",
            "{}",
            r#"{"op":"math.abs","in":[["INT32","1"]]}"#,
            r#"{"op":"math.abs","in":[["INT32","1"]],"out":["INT32","1"],"error":"parse"}"#,
            r#"{"op":"math.abs","in":[["INT32","1"]],"error":"frob"}"#,
            r#"{"id":"a","expr":"L.i","inputs":[["i","INT32"]],"out_type":"INT32","approx":false,"rows":[[]],"outs":[{"v":"1"}]}"#,
            r#"{"id":"a","expr":"L.i","inputs":[["i","INT32"]],"out_type":"INT32","approx":false,"rows":[["1"]],"outs":[]}"#,
            r#"{"id":"a","expr":"L.i","inputs":[["i","INT32"]],"out_type":"INT32","approx":false,"rows":[["1"]],"outs":[{}]}"#,
        ] {
            assert!(Record::parse(line).is_err(), "{line}");
        }
    }
}
