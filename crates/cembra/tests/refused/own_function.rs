//! The traits that make functions operators cannot be implemented elsewhere either: what they say of types is believed.

use cembra::{UserFunction, UserOperator};
use cembra_ops::UserArgument;

struct Posing;

impl UserArgument for Posing {
    type Argument<'call> = Posing;
}

impl UserFunction<(f64,)> for Posing {
    type Ret = f64;
    const TOTAL: bool = true;
}

fn main() {
    let _ = UserOperator::new("my.posing").function(Posing);
}
