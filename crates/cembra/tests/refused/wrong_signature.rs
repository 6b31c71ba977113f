//! Must not compile: user operators of functions with types that operators cannot have. The message lists others.

use cembra::operators::UserOperator;

fn main() {
    let _ = UserOperator::new("my.short").function(|x: u8| x);
    let _ = UserOperator::new("my.list").function(|x: f64| vec![x]);
    let _ = UserOperator::new("my.borrowed").function(|x: &str| -> &str { x });
}
