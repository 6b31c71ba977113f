//! Which kind of executable a program becomes: a plan in a frame, an array program, or a graph of tensors.

use crate::arrays::ArrayModel;
use crate::compile_options::Started;
use crate::error::Error;
use crate::executor::Executable;
use crate::stages::{plan, prepare};
#[cfg(feature = "tensors")]
use crate::tensor_model::TensorModel;
#[cfg(feature = "tensors")]
use crate::tensor_program::TensorProgram;
use cembra_expr::Program;
use cembra_prepare::Placed;
use std::sync::Arc;

impl Executable {
    /// Compiles a program, whatever its values are.
    pub fn of(program: Arc<Program>, options: &Started) -> Result<Executable, Error> {
        #[cfg(feature = "tensors")]
        if TensorProgram::is_of(&program, options) {
            let tensors = TensorModel::of(program.clone(), options)?;
            return Executable::of_whole(tensors, program, options);
        }
        let placed = prepare(&program, options, &mut |_, _| {})?.placed()?;
        if placed.model.has_arrays() {
            return Executable::of_arrays(program, placed, options);
        }
        let plan = plan(&placed, &program, options)?;
        Executable::new(program, plan, None, options)
    }

    /// Compiles a model with arrays.
    pub fn of_arrays(program: Arc<Program>, placed: Placed, options: &Started) -> Result<Executable, Error> {
        let arrays = ArrayModel::of(program.clone(), placed, options)?;
        Executable::of_whole(arrays, program, options)
    }
}
