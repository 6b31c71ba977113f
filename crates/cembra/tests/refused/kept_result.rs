//! Must not compile: user code that stores a result in an evaluation's memory. Its text could outlive that memory.

use cembra::operators::Context;
use cembra::Text;
use cembra_ops::UserResult;

fn main() {
    let mut context = Context::new();
    let text: Text<'static> = "secret".to_owned().keep(&mut context).unwrap();
    drop(context);
    println!("{}", text.as_str());
}
