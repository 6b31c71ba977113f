//! A user operator is given a text for the time of one call; it cannot keep it.

use cembra::UserOperator;
use std::sync::Mutex;

fn main() {
    static KEPT: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
    let _ = UserOperator::new("my.keep").function(|text: &str| {
        KEPT.lock().unwrap().push(text);
        1
    });
}
