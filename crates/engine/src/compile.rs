//! Which kind of executable a program becomes: a plan in a frame, an array program, or a graph of tensors.

use crate::arrays::ArrayModel;
use crate::compile_options::Started;
use crate::error::Error;
use crate::executor::Executable;
#[cfg(feature = "tensors")]
use crate::mixed::MixedModel;
use crate::stages::{plan, prepare};
#[cfg(feature = "tensors")]
use crate::tensor_model::TensorModel;
#[cfg(feature = "tensors")]
use crate::tensor_program::{Parts, Sorted, TensorProgram};
use cembra_expr::Program;
use cembra_prepare::Placed;
use std::sync::Arc;

impl Executable {
    /// Compiles a program, whatever its values are.
    pub fn of(program: Arc<Program>, options: &Started) -> Result<Executable, Error> {
        #[cfg(feature = "tensors")]
        if TensorProgram::is_of(&program, options) {
            return Executable::of_tensors(program, options);
        }
        Executable::of_values(program, options)
    }

    /// Compiles a program without tensors.
    fn of_values(program: Arc<Program>, options: &Started) -> Result<Executable, Error> {
        let placed = prepare(&program, options, &mut |_, _| {})?.placed()?;
        if placed.model.has_arrays() {
            return Executable::of_arrays(program, placed, options);
        }
        let plan = plan(&placed, &program, options)?;
        Executable::new(program, plan, None, options)
    }

    /// Compiles a program with tensors, and other values beside them.
    #[cfg(feature = "tensors")]
    fn of_tensors(program: Arc<Program>, options: &Started) -> Result<Executable, Error> {
        let Parts { before, tensors, after, outputs } = match TensorProgram::sort(program.clone(), options)? {
            Sorted::Tensors(tensors) => {
                return Executable::of_whole(TensorModel::of(tensors, options), program, options);
            }
            Sorted::Parts(parts) => parts,
        };
        let of_values = |part: Option<_>| part.map(|part| Executable::of_values(part, options)).transpose();
        let (before, after) = (of_values(before)?, of_values(after)?);
        let tensors = tensors.map(|part| Executable::of_tensors(part, options)).transpose()?;
        let mixed = MixedModel::new(&program, before, tensors, after, outputs);
        Executable::of_whole(mixed, program, options)
    }

    /// Compiles a model with arrays.
    pub fn of_arrays(program: Arc<Program>, placed: Placed, options: &Started) -> Result<Executable, Error> {
        let arrays = ArrayModel::of(program.clone(), placed, options)?;
        Executable::of_whole(arrays, program, options)
    }
}
