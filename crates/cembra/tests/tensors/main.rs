//! Tests of models with tensors and of tensor graphs, through the library's public interface.

#[path = "../../../ops/tests/counting/mod.rs"]
#[expect(dead_code, reason = "bytes are for other programs")]
mod counting;

#[cfg(feature = "ndarray")]
mod array_crates;
mod compiled;
mod conditionals;
mod custom_gradients;
mod einsum;
mod events;
mod matrices;
mod mixed;
mod products;
mod statements;
mod tensor_access;
mod tensor_assignments;
mod tensor_models;
mod tensor_operations;
mod tensor_plans;
mod tensors;
#[cfg(feature = "tiles")]
mod tiles;
