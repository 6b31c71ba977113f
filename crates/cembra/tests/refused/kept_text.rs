//! Must not compile: a user operator that keeps a text argument after the call for which it was passed.

use cembra::operators::UserOperator;
use std::sync::Mutex;

fn main() {
    static KEPT: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
    let _ = UserOperator::new("my.keep").function(|text: &str| {
        KEPT.lock().unwrap().push(text);
        1
    });
}
