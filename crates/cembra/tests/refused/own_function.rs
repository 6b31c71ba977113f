//! Must not compile: user code that implements the traits of operator functions: unsafe code trusts their types.

use cembra::operators::{UserFunction, UserOperator};
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
