//! Results are put into the memory of an evaluation by the library alone: who could do so would have texts that outlive it.

use cembra::{Context, Text};
use cembra_ops::UserResult;

fn main() {
    let mut context = Context::new();
    let text: Text<'static> = "secret".to_owned().keep(&mut context).unwrap();
    drop(context);
    println!("{}", text.as_str());
}
