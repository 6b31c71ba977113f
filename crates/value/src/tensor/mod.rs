//! Tensors: elements of one type with indices over any number of axes, in shared memory, and the layouts of their views.
//! Computations on tensors are in `cembra-tensor`.

mod comparison;
mod element;
mod error;
mod half;
mod layout;
#[cfg(feature = "ndarray")]
mod ndarrays;
#[expect(clippy::module_inception, reason = "the folder is named after the type that this file defines")]
mod tensor;
mod walk;

pub use ::half::{bf16, f16};
pub use element::{Buffer, Data, DataMut, Element, check_bytes, check_room, element_bytes, no_element, zeros};
pub use error::TensorErrorKind;
pub use half::{Half, HalfTensor};
pub use layout::{Extents, Layout, Positions, Slice, Strides, index_count};
pub use tensor::{Tensor, TensorMut, inverse_axes};
pub use walk::{CopiedAxis, WalkedAxis, copy_axes, try_walk, walk};
