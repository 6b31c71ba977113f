//! Must not compile: user code that declares a type to have the memory layout of a model's value.

use cembra::derived::FramePtr;
use cembra::{InputValue, OutputValue, QType, Value};

struct Posing(u8);

impl InputValue for Posing {
    fn qtype() -> QType {
        QType::TEXT
    }
    const IN_PLACE: bool = true;
    unsafe fn write(&self, _: FramePtr, _: u32) {}
    fn value(&self) -> Value {
        Value::Nothing
    }
}

impl OutputValue for Posing {
    fn qtype() -> QType {
        QType::FLOAT64
    }
    const IN_PLACE: bool = true;
    unsafe fn read(_: FramePtr, _: u32) -> Self {
        Posing(0)
    }
    fn of_value(_: &Value) -> Option<Self> {
        None
    }
}

fn main() {}
