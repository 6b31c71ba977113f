//! Must not compile: user operators with arguments of type `&'static str` or other texts of that lifetime.

use cembra::operators::UserOperator;
use cembra::Text;

fn main() {
    let _ = UserOperator::new("my.view").function(|text: Text<'static>| text.as_str().len() as i64);
    let _ = UserOperator::new("my.slice").function(|text: &'static str| text.len() as i64);
    let _ = UserOperator::new("my.maybe").fallible(|text: Option<&'static str>| text.map(str::len).map(|n| n as i64).ok_or("none"));
}
