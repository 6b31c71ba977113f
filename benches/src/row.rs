//! Rows and answers as data: how an input struct is drawn at random or read from CSV cells, and how an output struct is
//! read from CSV cells and compared. It knows cells and structs of cells, no model.

use crate::Error;
use cembra::{Optional, ScalarValue, Value};
use std::ops::Range;

/// The share of missing values among random optional inputs.
pub const MISSING_SHARE: f64 = 0.3;

/// The type of one input or output.
pub trait Cell: Copy {
    /// A value drawn evenly from the range; an optional is missing with [`MISSING_SHARE`].
    fn random(random: &mut fastrand::Rng, range: Range<f64>) -> Self;

    /// The cell of a value that was widened, or computed in `f64`; `None` if it is missing and must not be.
    fn narrow(value: Option<f64>) -> Option<Self>;

    /// The value written in a CSV field; an empty field is a missing value. `None` if it is no such value.
    fn parse(field: &str) -> Option<Self>;

    /// What is compared: nothing if missing, else the value, widened. Widening keeps apart what was apart.
    fn value(self) -> Option<f64>;

    /// Writes it over a value for a call by value.
    fn write_value(self, value: &mut Value);

    /// What `write_value` wrote; `None` if that is of another type.
    fn from_value(value: &Value) -> Option<Self>;
}

/// What a call gave, as bits that the next call can be made to wait for.
pub trait Bits {
    /// Bits of all values that are not missing.
    fn bits(&self) -> u64;
}

macro_rules! float_cells {
    ($($float:ident = $from:expr, $variant:ident;)*) => {$(
        impl Cell for $float {
            fn random(random: &mut fastrand::Rng, range: Range<f64>) -> Self {
                ($from)(range.start + random.f64() * (range.end - range.start))
            }

            fn narrow(value: Option<f64>) -> Option<Self> {
                value.map($from)
            }

            fn parse(field: &str) -> Option<Self> {
                field.parse().ok()
            }

            fn value(self) -> Option<f64> {
                Some(self.into())
            }

            #[inline]
            fn write_value(self, value: &mut Value) {
                match value {
                    // As users do who care: a value of the same kind need not be dropped.
                    Value::Scalar(ScalarValue::$variant(held)) => *held = self,
                    other => *other = self.into(),
                }
            }

            fn from_value(value: &Value) -> Option<Self> {
                match value {
                    Value::Scalar(ScalarValue::$variant(value)) => Some(*value),
                    _ => None,
                }
            }
        }

        impl Bits for $float {
            #[inline]
            fn bits(&self) -> u64 {
                self.to_bits().into()
            }
        }
    )*};
}

float_cells! {
    f32 = |value: f64| value as f32, Float32;
    f64 = |value: f64| value, Float64;
}

impl<T: Cell + Default> Cell for Optional<T>
where
    Option<T>: Into<Value>,
{
    fn random(random: &mut fastrand::Rng, range: Range<f64>) -> Self {
        if random.f64() < MISSING_SHARE { Optional::missing() } else { Optional::present(T::random(random, range)) }
    }

    fn narrow(value: Option<f64>) -> Option<Self> {
        Some(Optional::from(T::narrow(value)))
    }

    fn parse(field: &str) -> Option<Self> {
        if field.is_empty() { Some(Optional::missing()) } else { T::parse(field).map(Optional::present) }
    }

    fn value(self) -> Option<f64> {
        self.get().and_then(Cell::value)
    }

    #[inline]
    fn write_value(self, value: &mut Value) {
        // A number need not be dropped, nor looked at: which of them are missing nobody can guess.
        std::mem::forget(std::mem::replace(value, self.get().into()));
    }

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Missing(_) => Some(Optional::missing()),
            Value::Present(value) => T::from_value(&Value::Scalar(value.clone())).map(Optional::present),
            _ => None,
        }
    }
}

impl<T: Bits + Copy> Bits for Optional<T> {
    #[inline]
    fn bits(&self) -> u64 {
        self.get().map_or(0, |value| value.bits())
    }
}

impl Bits for Vec<Option<f64>> {
    #[inline]
    fn bits(&self) -> u64 {
        self.iter().flatten().fold(0, |bits, value| bits ^ value.to_bits())
    }
}

impl Bits for Vec<Value> {
    #[inline]
    fn bits(&self) -> u64 {
        self.iter().filter_map(Value::as_scalar).fold(0, |bits, value| bits ^ value.bits())
    }
}

/// The fields of one CSV record, taken from left to right.
pub struct Fields<'a> {
    names: &'a csv::StringRecord,
    record: &'a csv::StringRecord,
    next: usize,
}

impl<'a> Fields<'a> {
    /// All fields of `record`, under the names of the header.
    pub fn new(names: &'a csv::StringRecord, record: &'a csv::StringRecord) -> Self {
        Fields { names, record, next: 0 }
    }

    /// The next field as a value; it must bear this name.
    ///
    /// # Errors
    /// [`Error::Data`] if there is no such field or it holds no such value.
    pub fn take<T: Cell>(&mut self, name: &'static str) -> Result<T, Error> {
        let index = self.next;
        self.next += 1;
        let field = self.record.get(index).filter(|_| self.names.get(index) == Some(name));
        let line = self.record.position().map_or(0, csv::Position::line);
        field.and_then(T::parse).ok_or(Error::Data { line, name })
    }
}

/// A struct of inputs: one row.
pub trait Row: Copy {
    /// A row drawn at random from the ranges of the workload.
    fn random(random: &mut fastrand::Rng) -> Self;

    /// The row a CSV record holds.
    ///
    /// # Errors
    /// [`Error::Data`] as of [`Fields::take`].
    fn parse(fields: &mut Fields<'_>) -> Result<Self, Error>;

    /// The names of the inputs, in order of declaration.
    const NAMES: &'static [&'static str];

    /// Writes the inputs over the values, in order of declaration.
    fn write_values(&self, values: &mut [Value]);

    /// Writes the inputs, widened, over the floats, in order of declaration.
    fn write_floats(&self, floats: &mut [Option<f64>]);
}

/// A model's output: a value or a struct of values.
pub trait Answer: Bits + Copy + Default {
    /// The answer a CSV record holds.
    ///
    /// # Errors
    /// [`Error::Data`] as of [`Fields::take`].
    fn parse(fields: &mut Fields<'_>) -> Result<Self, Error>;

    /// The values in order of declaration.
    fn values(self) -> Vec<Option<f64>>;

    /// The answer of a call by value; `None` if it is another.
    fn from_values(values: &[Value]) -> Option<Self>;

    /// The answer of what computes in `f64`; `None` if there is none.
    fn from_floats(floats: &[Option<f64>]) -> Option<Self>;
}

/// Defines a struct of inputs, each with the range its random values come from.
macro_rules! row {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $cell:ty = $range:expr,)* }) => {
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, cembra::Input)]
        pub struct $name { $(#[doc = "An input of the model."] pub $field: $cell),* }

        impl $crate::row::Row for $name {
            fn random(random: &mut fastrand::Rng) -> Self {
                $name { $($field: $crate::row::Cell::random(random, $range)),* }
            }

            fn parse(fields: &mut $crate::row::Fields<'_>) -> Result<Self, $crate::Error> {
                Ok($name { $($field: fields.take(stringify!($field))?),* })
            }

            const NAMES: &'static [&'static str] = &[$(stringify!($field)),*];

            #[inline]
            fn write_values(&self, values: &mut [cembra::Value]) {
                let mut places = values.iter_mut();
                $(if let Some(place) = places.next() {
                    $crate::row::Cell::write_value(self.$field, place);
                })*
            }

            #[inline]
            fn write_floats(&self, floats: &mut [Option<f64>]) {
                let mut places = floats.iter_mut();
                $(if let Some(place) = places.next() {
                    *place = $crate::row::Cell::value(self.$field);
                })*
            }
        }
    };
}

/// Defines a struct of outputs.
macro_rules! answer {
    ($(#[$doc:meta])* $name:ident { $($field:ident: $cell:ty,)* }) => {
        $(#[$doc])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Default, cembra::Output)]
        pub struct $name { $(#[doc = "An output of the model."] pub $field: $cell),* }

        impl $crate::row::Answer for $name {
            fn parse(fields: &mut $crate::row::Fields<'_>) -> Result<Self, $crate::Error> {
                Ok($name { $($field: fields.take(stringify!($field))?),* })
            }

            fn values(self) -> Vec<Option<f64>> {
                vec![$($crate::row::Cell::value(self.$field)),*]
            }

            fn from_values(values: &[cembra::Value]) -> Option<Self> {
                let mut values = values.iter();
                Some($name { $($field: $crate::row::Cell::from_value(values.next()?)?),* })
            }

            fn from_floats(floats: &[Option<f64>]) -> Option<Self> {
                let mut floats = floats.iter();
                Some($name { $($field: $crate::row::Cell::narrow(*floats.next()?)?),* })
            }
        }

        impl $crate::row::Bits for $name {
            #[inline]
            fn bits(&self) -> u64 {
                $($crate::row::Bits::bits(&self.$field) ^)* 0
            }
        }
    };
}

macro_rules! scalar_answers {
    ($($cell:ty),*) => {$(
        impl Answer for $cell {
            /// The models with one output call it `y`.
            fn parse(fields: &mut Fields<'_>) -> Result<Self, Error> {
                fields.take("y")
            }

            fn values(self) -> Vec<Option<f64>> {
                vec![self.value()]
            }

            fn from_values(values: &[Value]) -> Option<Self> {
                Cell::from_value(values.first()?)
            }

            fn from_floats(floats: &[Option<f64>]) -> Option<Self> {
                Cell::narrow(*floats.first()?)
            }
        }
    )*};
}

scalar_answers!(f32, f64, Optional<f64>);

pub(crate) use {answer, row};
