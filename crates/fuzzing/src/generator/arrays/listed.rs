//! Generates lists of structs: inputs, accesses to their fields and elements, and functions mapped over them.

use super::Grower;
use crate::config::pick;
use crate::generator::structs::{fields, struct_type};
use crate::values;
use cembra_expr::NodeId;
use cembra_ops::id;
use cembra_runtime::{ArrayKind, QType, Scalar};
use cembra_value::Value;

impl Grower<'_> {
    /// Adds a random operator on a list of structs to the program.
    pub(super) fn listed(&mut self) -> Option<NodeId> {
        let known: Vec<QType> = self.pool.types.iter().filter_map(|qtype| qtype.element().cloned()).collect();
        let element = match known.is_empty() || self.pool.random.u32(..3) == 0 {
            false => pick(self.pool.random, &known).clone(),
            true => {
                let of = struct_type(self.pool.random, 1);
                if self.pool.random.u32(..3) == 0 { of.optional_struct() } else { of }
            }
        };
        let list = element.list_of()?;
        let of_type = self.pool.by_type.get(&list).cloned().unwrap_or_default();
        let list_node = if of_type.is_empty() { self.pool.input(&list) } else { *pick(self.pool.random, &of_type) };
        let size = self.value(list_node)?.list_len()?;
        let made = match self.pool.random.u32(..6) {
            0 | 1 => {
                let fields = fields(&element).clone();
                let at = self.pool.random.usize(..fields.len());
                let field = &fields[at];
                let field =
                    if element.as_optional_struct().is_some() { field.optional_struct() } else { field.clone() };
                self.pool.field_at(list_node, &fields, at, &field.list_of()?)
            }
            2 => self.pool.operator(id::ARRAY_SIZE, &[list_node], &QType::INT64),
            3 if size > 0 => {
                let index = self.pool.random.usize(..size);
                let index = self.pool.integer(index as i64);
                self.pool.operator(id::ARRAY_AT, &[list_node, index], &element)
            }
            4 => {
                let mask = self.masks(size);
                self.pool.operator(id::ARRAY_SELECT, &[list_node, mask], &list)
            }
            _ => {
                let result = QType::of(*pick(self.pool.random, &Scalar::ALL), self.pool.random.bool());
                let made = match self.pool.random.u32(..3) {
                    0 => struct_type(self.pool.random, 0),
                    _ => result,
                };
                let function = self.pool.function(&[element], &made);
                self.pool.operator(id::MAP, &[function, list_node], &strong(&made).list_of()?)
            }
        };
        self.tried(made)
    }

    /// Returns a dense array of masks.
    fn masks(&mut self, size: usize) -> NodeId {
        let masks = crate::arrays::array(self.pool.random, Scalar::Unit, size, self.pool.config);
        self.given(Value::Array(ArrayKind::Dense, masks.into()), 0.8)
    }
}

/// Returns the element type of a list whose elements have the type `made`: weak floats in structs become `f64`.
fn strong(made: &QType) -> QType {
    if matches!(made, QType::Tuple(_)) { values::without_weak(made) } else { made.clone() }
}
