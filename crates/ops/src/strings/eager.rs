//! Evaluates operators on values, for tests. Expansions are evaluated too, and arguments are cast implicitly as
//! preparation would do.

use crate::definition::{Expansion, Meaning, NodeHandle, NodeResult};
use crate::typing::Argument;
use crate::{OpId, Registry, call as call_resolved};
use cembra_runtime::{FaultKind, QType, Scalar};
use cembra_value::{ScalarValue, Value};

/// Strings for tests: empty, blank, ASCII, with characters of one to four bytes, and repetitive.
pub(super) const STRINGS: [&str; 16] = [
    "",
    "a",
    "A",
    " ",
    "ab",
    "aab",
    "aaaa",
    " a\t\n",
    "h\u{e9}llo",
    "\u{df}\u{3b1}\u{3a3}",
    "\u{416}\u{44f}",
    "\u{1f600}x\u{1f600}",
    "e\u{301}",
    "\u{2003}x\u{a0}",
    "abcabcabcab",
    "\0\u{7f}'\"\\",
];

/// The reason why a call failed: the types of the arguments, or a fault of the evaluation.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Failure {
    Types(String),
    Fault(FaultKind),
}

/// An expansion graph whose nodes are evaluated as soon as they are added.
struct EagerGraph {
    values: Vec<Value>,
    failed: Option<FaultKind>,
}

impl Expansion for EagerGraph {
    fn qtype(&self, arg: NodeHandle) -> QType {
        self.values[arg.0 as usize].qtype()
    }

    fn value(&self, arg: NodeHandle) -> Option<Value> {
        Some(self.values[arg.0 as usize].clone())
    }

    fn literal(&mut self, value: Value) -> NodeHandle {
        self.values.push(value);
        NodeHandle(self.values.len() as u32 - 1)
    }

    fn apply(&mut self, operator: OpId, args: &[NodeHandle]) -> NodeResult {
        let def = Registry::standard().get(operator);
        let values: Vec<Value> = args.iter().map(|arg| self.values[arg.0 as usize].clone()).collect();
        let types: Vec<QType> = values.iter().map(Value::qtype).collect();
        let known: Vec<_> =
            types.iter().zip(&values).map(|(qtype, value)| Argument { qtype, literal: Some(value) }).collect();
        let resolved = def.resolve(&known)?;
        if let Meaning::Expand(expand) = def.meaning {
            return expand(self, args);
        }
        let cast: Vec<Value> =
            values.iter().zip(&resolved.signature.operands).map(|(value, to)| cast_to(value, to)).collect();
        let result = match call_resolved(def, &resolved, &cast).expect("values of these types") {
            Ok(value) => value,
            Err(fault) => {
                assert!(def.faults.contains(&fault.kind), "{} raises an undeclared {:?}", def.name, fault.kind);
                self.failed.get_or_insert(fault.kind);
                Value::Missing(resolved.signature.ret.scalar().expect("a scalar"))
            }
        };
        Ok(self.literal(result))
    }
}

/// Casts a value implicitly to the type `to`.
fn cast_to(value: &Value, to: &QType) -> Value {
    let scalar = to.scalar().expect("a scalar");
    let Some(value) = value.as_scalar() else { return Value::Missing(scalar) };
    let cast = match (value, scalar) {
        (ScalarValue::Int32(v), Scalar::Int64) => ScalarValue::Int64(i64::from(*v)),
        (ScalarValue::Float32(v), Scalar::Float64) => ScalarValue::Float64(f64::from(*v)),
        (ScalarValue::WeakFloat(v), Scalar::Float64) => ScalarValue::Float64(*v),
        (value, _) => value.clone(),
    };
    if to.is_optional() { Value::Present(cast) } else { Value::Scalar(cast) }
}

/// Calls the operator `name`; parameters that are left out get their defaults.
pub(super) fn call(name: &str, args: &[Value]) -> Result<Value, Failure> {
    let registry = Registry::standard();
    let operator = registry.find(name).expect("an operator");
    let def = registry.get(operator);
    let mut eager = EagerGraph { values: args.to_vec(), failed: None };
    let fixed = def.params.len() - usize::from(def.variadic);
    for param in def.params.iter().take(fixed).skip(args.len()) {
        eager.values.push(param.default.clone().expect("a default"));
    }
    let args: Vec<NodeHandle> = (0..eager.values.len()).map(|at| NodeHandle(at as u32)).collect();
    let made = eager.apply(operator, &args).map_err(|fault| Failure::Types(fault.message))?;
    match eager.failed {
        Some(kind) => {
            assert!(def.faults.contains(&kind), "{name} raises an undeclared {kind:?}");
            Err(Failure::Fault(kind))
        }
        None => Ok(eager.values[made.0 as usize].clone()),
    }
}

pub(super) fn fault(kind: FaultKind) -> Result<Value, Failure> {
    Err(Failure::Fault(kind))
}

pub(super) fn text(text: &str) -> Value {
    Value::text(text)
}

pub(super) fn some_text(text: &str) -> Value {
    Value::Present(ScalarValue::Text(text.into()))
}

pub(super) fn missing_text() -> Value {
    Value::Missing(Scalar::Text)
}

pub(super) fn bytes(bytes: &[u8]) -> Value {
    Value::Scalar(ScalarValue::Bytes(bytes.into()))
}
