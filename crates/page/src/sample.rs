//! Random rows for models without data, as `cembra bench` and the page use: values of all types that rows of data may have. Numbers are near zero. All lists of a row have the same
//! length, so that models which iterate over several lists together accept them.

use cembra::{Array, Field, QType, Scalar, ScalarValue, Value};
use cembra_runtime::MachineType;

/// The largest magnitude of the random numbers.
pub const LARGEST: f64 = 10.0;

/// The share of missing values among the random values for optional inputs.
pub const MISSING_SHARE: f64 = 0.3;

/// The most elements of a random list, and the most entries of a random dictionary.
pub const MOST_ELEMENTS: usize = 20;

/// A generator of random rows of input values.
pub struct RandomRows {
    random: fastrand::Rng,
    /// The length of the lists of the current row.
    length: usize,
}

impl RandomRows {
    /// Makes a generator whose rows depend only on `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        RandomRows { random: fastrand::Rng::with_seed(seed), length: 0 }
    }

    /// Begins the next random row.
    pub fn begin(&mut self) {
        self.length = self.random.usize(..=MOST_ELEMENTS);
    }

    /// Returns a random value for `input` in the current row; `Value::Nothing` if there are no random values of its type.
    pub fn value(&mut self, input: &Field) -> Value {
        match &input.qtype {
            QType::Array(kind, scalar) => {
                let share = if input.is_full() { 0.0 } else { MISSING_SHARE };
                Value::Array(*kind, self.array(*scalar, share).into())
            }
            qtype => self.of_type(qtype),
        }
    }

    /// A random value of a type; `Value::Nothing` if there is none.
    fn of_type(&mut self, qtype: &QType) -> Value {
        // Types nest only as deep as the parser allows.
        match qtype {
            QType::Scalar(scalar) => Value::Scalar(self.scalar(*scalar)),
            QType::Optional(scalar) => Value::optional(*scalar, self.optional(*scalar, MISSING_SHARE)),
            QType::Array(kind, scalar) => Value::Array(*kind, self.array(*scalar, MISSING_SHARE).into()),
            QType::Tuple(_) if let Some((key, value)) = qtype.as_map() => self.dictionary(key, value),
            QType::Tuple(_) if let Some(element) = qtype.element() => {
                let elements: Vec<Value> = (0..self.length).map(|_| self.of_type(element)).collect();
                Value::list(element, elements).unwrap_or(Value::Nothing)
            }
            QType::Tuple(_) if let Some(of) = qtype.as_optional_struct() => {
                let value = (self.random.f64() >= MISSING_SHARE).then(|| self.of_type(of));
                Value::optional_struct(of, value).unwrap_or(Value::Nothing)
            }
            QType::Tuple(fields) => Value::Tuple(fields.map(|field| self.of_type(field))),
            QType::Shape(shape) => Value::Shape(*shape),
            _ => Value::Nothing,
        }
    }

    fn array(&mut self, scalar: Scalar, missing_share: f64) -> Array {
        let elements: Vec<_> = (0..self.length).map(|_| self.optional(scalar, missing_share)).collect();
        Array::from_scalars(scalar, elements)
    }

    /// A dictionary with distinct keys.
    fn dictionary(&mut self, key: Scalar, value: Scalar) -> Value {
        let mut entries: Vec<(ScalarValue, Option<ScalarValue>)> = Vec::new();
        for _ in 0..self.length {
            let own = self.scalar(key);
            if entries.iter().all(|(known, _)| *known != own) {
                entries.push((own, self.optional(value, MISSING_SHARE)));
            }
        }
        Value::map(key, value, entries).unwrap_or(Value::Nothing)
    }

    fn optional(&mut self, scalar: Scalar, missing_share: f64) -> Option<ScalarValue> {
        (self.random.f64() >= missing_share).then(|| self.scalar(scalar))
    }

    /// A random scalar of a type.
    fn scalar(&mut self, scalar: Scalar) -> ScalarValue {
        let random = &mut self.random;
        let number = random.f64() * (2.0 * LARGEST) - LARGEST;
        let bits = match scalar.machine_type() {
            Some(MachineType::Flag) => u64::from(random.bool()),
            Some(MachineType::I32) => u64::from((number as i32).cast_unsigned()),
            // The magnitude of an unsigned number is limited too.
            Some(MachineType::I64) if !scalar.representation().is_integer() => number.abs() as u64,
            Some(MachineType::I64) => (number as i64).cast_unsigned(),
            Some(MachineType::F32) => u64::from((number as f32).to_bits()),
            Some(MachineType::F64) => number.to_bits(),
            None => 0,
        };
        match scalar {
            Scalar::Bytes => ScalarValue::Bytes(random.choice([&b""[..], b"a", b"\xff"]).unwrap_or_default().into()),
            Scalar::Text => {
                ScalarValue::Text(random.choice(["", "a", "female", "Torgersen"]).unwrap_or_default().into())
            }
            _ => ScalarValue::from_bits(scalar, bits).unwrap_or(ScalarValue::Unit),
        }
    }
}
