//! exmex: arithmetic of `f64` where that is enough, else its values, which can be conditions and nothing at all.

use super::{Peer, PeerError, infix};
use exmex::{Express, FlatEx, FlatExVal, Val};

pub(super) enum Exmex {
    Floats(Expressions<FlatEx<f64>, f64>),
    Values(Expressions<FlatExVal<i32, f64>, Val<i32, f64>>),
}

pub(super) struct Expressions<E, T> {
    /// Each with the positions of its variables among the inputs: it wants its own, by name.
    expressions: Vec<(E, Vec<usize>)>,
    variables: Vec<T>,
}

impl<E, T> Expressions<E, T> {
    fn new<'e>(texts: &'e [String], names: &[&str]) -> Result<Self, PeerError>
    where
        E: Express<'e, T>,
        T: exmex::DataType + exmex::NeutralElts,
        <T as std::str::FromStr>::Err: std::fmt::Debug,
    {
        let mut expressions = Vec::new();
        for text in texts {
            let expression = E::parse(text)?;
            let place = |name: &String| names.iter().position(|input| input == name);
            let places: Option<Vec<usize>> = expression.var_names().iter().map(place).collect();
            expressions.push((expression, places.ok_or("a variable that is no input")?));
        }
        Ok(Expressions { expressions, variables: Vec::new() })
    }
}

impl Peer for Exmex {
    const NAME: &'static str = "exmex";
    const MISSING: Option<&'static str> = Some("");

    fn operator(name: &str, operands: &[&str]) -> Option<String> {
        Some(match (name, operands) {
            ("core._where" | "core.where", [condition, yes, ""]) => format!("({yes} if {condition})"),
            ("core._where" | "core.where", [condition, yes, no]) => format!("({yes} if {condition} else {no})"),
            ("core.presence_or", [x, default]) => format!("({x} else {default})"),
            ("math.sqrt", [x]) => format!("sqrt({x})"),
            ("math.exp", [x]) => format!("exp({x})"),
            ("math.log1p", [x]) => format!("ln(1.0 + {x})"),
            ("math.minimum", [x, y]) => format!("({x} min {y})"),
            ("math.maximum", [x, y]) => format!("({x} max {y})"),
            _ => return infix(name, operands),
        })
    }

    fn compile(texts: &[String], names: &'static [&'static str]) -> Result<Self, PeerError> {
        Expressions::new(texts, names).map(Exmex::Floats).or_else(|_| Expressions::new(texts, names).map(Exmex::Values))
    }

    fn run(&mut self, inputs: &[Option<f64>], outputs: &mut Vec<Option<f64>>) -> Result<(), PeerError> {
        outputs.clear();
        match self {
            Exmex::Floats(Expressions { expressions, variables }) => {
                for (expression, places) in expressions {
                    variables.clear();
                    variables.extend(places.iter().map(|place| inputs[*place].unwrap_or(f64::NAN)));
                    outputs.push(Some(expression.eval(variables)?));
                }
            }
            Exmex::Values(Expressions { expressions, variables }) => {
                for (expression, places) in expressions {
                    variables.clear();
                    variables.extend(places.iter().map(|place| inputs[*place].map_or(Val::None, Val::Float)));
                    outputs.push(match expression.eval(variables)? {
                        Val::Float(value) => Some(value),
                        Val::None => None,
                        other => return Err(format!("not a number: {other:?}").into()),
                    });
                }
            }
        }
        Ok(())
    }
}
