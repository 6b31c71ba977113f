//! Functions of types that operators do not have are refused with a message that says which they may have.

use cembra::UserOperator;

fn main() {
    let _ = UserOperator::new("my.short").function(|x: u8| x);
    let _ = UserOperator::new("my.list").function(|x: f64| vec![x]);
    let _ = UserOperator::new("my.borrowed").function(|x: &str| -> &str { x });
}
