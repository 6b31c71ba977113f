//! Compiles a program to an executable: a plan whose values are in a frame (the memory of scalars), an array program, or a graph of tensors.

use crate::arrays::model::ArrayModel;
use crate::executor::Executable;
use crate::executor::mixed::MixedModel;
use crate::executor::whole::WholeModel;
use crate::options::choice::Backend;
use crate::options::compile_options::TimedOptions;
use crate::stages::{plan, prepare};
use crate::tensors::lowering::{Parts, SplitOutcome, TensorProgram};
use crate::tensors::model::TensorModel;
use cembra_expr::Program;
use cembra_prepare::RegionModel;
use cembra_value::Error;
use cembra_value::{Code, Diagnostic};
use std::sync::Arc;

/// The most times that a model may convert tensors to other values, and these to tensors again. At each such turn the
/// whole program is examined.
const MOST_TURNS: usize = 16;

/// The error for a model that converts tensors to other values, and these to tensors again, more than `MOST_TURNS`
/// times. It is reported at the first output of `rest`.
fn too_many_turns(rest: &Program) -> Diagnostic {
    let message =
        format!("the model converts tensors to other values and back more than {MOST_TURNS} times, which is the limit");
    let problem = Diagnostic::new(Code::Limit, message)
        .hint("use operators on tensors where possible, so that fewer conversions are needed");
    problem.at(rest.outputs.first().and_then(|output| output.span))
}

impl Executable {
    /// Compiles a program with inputs and outputs of any types: scalars, arrays, tensors.
    pub fn of(program: Arc<Program>, options: &TimedOptions) -> Result<Executable, Error> {
        if TensorProgram::is_of(&program, options) {
            return Executable::of_tensors(program, options, 0);
        }
        Executable::of_values(program, options, false)
    }

    /// Compiles a program without tensors. If `is_on_demand`, a plan gets its code for one row when the first session is made.
    fn of_values(program: Arc<Program>, options: &TimedOptions, is_on_demand: bool) -> Result<Executable, Error> {
        let placed = prepare(&program, options, &mut |_, _| {})?.placed()?;
        if placed.model.has_arrays() {
            return Executable::of_arrays(program, placed, options);
        }
        let plan = plan(&placed, &program, options)?;
        if is_on_demand {
            return Ok(Executable::on_demand(program, plan, options));
        }
        Executable::new(program, plan, None, options)
    }

    /// Compiles a program as [`of`](Executable::of) does. With `Backend::Auto`, however, the machine code of a plan for one row is compiled only when
    /// the first session is made.
    pub fn of_on_demand(program: Arc<Program>, options: &TimedOptions) -> Result<Executable, Error> {
        if options.backend != Backend::Auto || TensorProgram::is_of(&program, options) {
            return Executable::of(program, options);
        }
        Executable::of_values(program, options, true)
    }

    /// Compiles a program with tensors and possibly other values. `turns` is the number of times that the model has
    /// converted tensors to other values, and these to tensors again, before this program.
    fn of_tensors(program: Arc<Program>, options: &TimedOptions, turns: usize) -> Result<Executable, Error> {
        let Parts { before, tensors, after, outputs } = match TensorProgram::sort(program.clone(), options)? {
            SplitOutcome::Tensors(tensors) => {
                let model = WholeModel::Tensors(TensorModel::of(tensors, options).into());
                return Executable::of_whole(model, program, options);
            }
            SplitOutcome::Parts(parts) => parts,
        };
        let before = before.map(|part| Executable::of_values(part, options, false)).transpose()?;
        let tensors = tensors.map(|part| Executable::of_tensors(part, options, turns)).transpose()?;
        let after = match after {
            Some(part) if !TensorProgram::is_of(&part, options) => Some(Executable::of_values(part, options, false)?),
            Some(part) if turns == MOST_TURNS => return Err(too_many_turns(&part).into()),
            Some(part) => Some(Executable::of_tensors(part, options, turns + 1)?),
            None => None,
        };
        let mixed = MixedModel::new(&program, before, tensors, after, outputs);
        Executable::of_whole(WholeModel::Mixed(mixed.into()), program, options)
    }

    /// Compiles a model with arrays to an executable.
    pub fn of_arrays(program: Arc<Program>, placed: RegionModel, options: &TimedOptions) -> Result<Executable, Error> {
        let arrays = ArrayModel::of(program.clone(), placed, options)?;
        Executable::of_whole(WholeModel::Arrays(arrays.into()), program, options)
    }
}
