//! cel: the Common Expression Language, with functions of ours for what its standard library lacks.

use super::{Peer, PeerError, infix};
use cel::{Context, Program, Value};

pub(super) struct Cel {
    programs: Vec<Program>,
    context: Context<'static, 'static>,
    names: &'static [&'static str],
}

impl Peer for Cel {
    const NAME: &'static str = "cel";
    const MISSING: Option<&'static str> = Some("null");

    fn operator(name: &str, operands: &[&str]) -> Option<String> {
        Some(match (name, operands) {
            ("core._where" | "core.where", [condition, yes, no]) => format!("({condition} ? {yes} : {no})"),
            ("core.presence_or", [x, default]) => format!("({x} == null ? {default} : {x})"),
            ("math.sqrt", [x]) => format!("sqrt({x})"),
            ("math.exp", [x]) => format!("exp({x})"),
            ("math.log1p", [x]) => format!("log1p({x})"),
            ("math.minimum", [x, y]) => format!("minimum({x}, {y})"),
            ("math.maximum", [x, y]) => format!("maximum({x}, {y})"),
            _ => return infix(name, operands),
        })
    }

    fn compile(texts: &[String], names: &'static [&'static str]) -> Result<Self, PeerError> {
        let mut context = Context::default();
        context.add_function("sqrt", f64::sqrt)?;
        context.add_function("exp", f64::exp)?;
        context.add_function("log1p", f64::ln_1p)?;
        context.add_function("minimum", f64::min)?;
        context.add_function("maximum", f64::max)?;
        let programs = texts.iter().map(|text| Program::compile(text)).collect::<Result<_, _>>()?;
        Ok(Cel { programs, context, names })
    }

    fn run(&mut self, inputs: &[Option<f64>], outputs: &mut Vec<Option<f64>>) -> Result<(), PeerError> {
        for (name, input) in self.names.iter().zip(inputs) {
            self.context.add_variable_from_value(*name, input.map_or(Value::Null, Value::Float));
        }
        outputs.clear();
        for program in &self.programs {
            outputs.push(match program.execute(&self.context)? {
                Value::Float(value) => Some(value),
                Value::Null => None,
                other => return Err(format!("not a number: {other:?}").into()),
            });
        }
        Ok(())
    }
}
