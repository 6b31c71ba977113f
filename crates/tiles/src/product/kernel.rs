//! Multiplies two tiles by matrix products. The labels decide which axes of a tile form the rows, columns and summed
//! terms of a matrix. If the axes of one of these groups are not adjacent, the tile is first copied (packed) with its
//! axes in another order; this file gives the order.

use crate::product::roles::Roles;
use crate::tiled::tile::Float;
use cembra_tensor::{Axes, MatrixLayout, MatrixProduct, Multiplication};
use cembra_value::Error;
use cembra_value::tensor::Extents;
use std::ops::Range;

/// The axes of a product's operand or result in three groups, such as batch, rows and terms. The axes of a group are
/// adjacent in a packed tile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Arrangement {
    /// For each axis of the packed tile, the axis of the tensor; `None` if the tensor's own order is suitable, so that nothing is packed.
    pub(crate) order: Option<Vec<usize>>,
    /// The range of axes in the packed tile for each of the three groups.
    groups: [Range<usize>; 3],
}

/// A group of adjacent axes, seen as one axis: its number of elements, and its stride.
#[derive(Clone, Copy, Debug)]
struct Run {
    extent: usize,
    stride: usize,
}

impl Arrangement {
    fn of(labels: &Axes, groups: [&Axes; 3]) -> Arrangement {
        let run = |group: &Axes| -> Option<Range<usize>> {
            let Some(first) = group.first() else { return Some(0..0) };
            let start = labels.iter().position(|label| label == first)?;
            let run = start..start + group.len();
            (labels.get(run.clone())? == &group[..]).then_some(run)
        };
        if let [Some(a), Some(b), Some(c)] = groups.map(run) {
            return Arrangement { order: None, groups: [a, b, c] };
        }
        let place = |label| labels.iter().position(|known| known == label);
        let order = groups.iter().flat_map(|group| group.iter()).filter_map(place).collect();
        let [a, b, c] = groups.map(|group| group.len());
        Arrangement { order: Some(order), groups: [0..a, a..a + b, a + b..a + b + c] }
    }

    /// Returns the extents of the packed tile, given the extents of a tile of the tensor.
    pub(crate) fn packed(&self, extents: &[usize]) -> Extents {
        match &self.order {
            None => extents.into(),
            Some(order) => order.iter().map(|axis| extents[*axis]).collect(),
        }
    }

    /// The three groups of axes of a packed tile, each seen as one axis. `packed` has the extents of the tile.
    fn runs(&self, packed: &[usize]) -> [Run; 3] {
        self.groups.each_ref().map(|group| Run {
            extent: packed[group.clone()].iter().product(),
            stride: if group.is_empty() { 1 } else { packed[group.end..].iter().product() },
        })
    }
}

/// The elements of a packed tile, and the extents of its axes.
pub(crate) type PackedTile<'t, T> = (&'t [T], &'t [usize]);

/// The method by which two tiles are multiplied: the arrangements of both operands and of the result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TileKernel {
    pub(crate) operands: [Arrangement; 2],
    pub(crate) result: Arrangement,
    /// True if products of elements are summed, because some labels are not in the result.
    is_sum: bool,
}

impl TileKernel {
    pub(crate) fn of(roles: &Roles) -> TileKernel {
        let Roles { batch, rows, columns, terms, operands: [left, right], result } = roles;
        TileKernel {
            operands: [Arrangement::of(left, [batch, rows, terms]), Arrangement::of(right, [batch, terms, columns])],
            result: Arrangement::of(result, [batch, rows, columns]),
            is_sum: !terms.is_empty(),
        }
    }

    /// Multiplies two packed tiles, and writes the product to the packed tile `to`. If `adds` is true, the product is
    /// added to the elements of `to` instead.
    ///
    /// # Errors
    /// If the extents of the tiles do not agree.
    pub(crate) fn multiply<T: Float>(
        &self,
        (left, left_extents): PackedTile<'_, T>,
        (right, right_extents): PackedTile<'_, T>,
        (to, to_extents): (&mut [T], &[usize]),
        adds: bool,
        matrices: &dyn MatrixProduct,
    ) -> Result<(), Error> {
        let [left_batch, left_rows, left_terms] = self.operands[0].runs(left_extents);
        let [right_batch, right_terms, right_columns] = self.operands[1].runs(right_extents);
        let [batch, rows, columns] = self.result.runs(to_extents);
        if !self.is_sum {
            let by_element = |(a, b): (&T, &T), to: &mut T| {
                // A product without a sum is rounded once, and -0 stays -0.
                let product = *a * *b;
                *to = if adds { *to + product } else { product };
            };
            if (rows.extent, columns.extent) == (1, 1) {
                // Labels that are walked together are one run in each of the three.
                let pairs = left.iter().zip(right);
                to.iter_mut().zip(pairs).for_each(|(to, pair)| by_element(pair, to));
                return Ok(());
            }
            for (index, row) in (0..batch.extent).flat_map(|index| (0..rows.extent).map(move |row| (index, row))) {
                let factor = &left[index * left_batch.stride + row * left_rows.stride];
                let to = to[index * batch.stride + row * rows.stride..].iter_mut().step_by(columns.stride.max(1));
                let right = right[index * right_batch.stride..].iter().step_by(right_columns.stride.max(1));
                to.zip(right).take(columns.extent).for_each(|(to, right)| by_element((factor, right), to));
            }
            return Ok(());
        }
        let matrix = |batch: Run, index: usize, down: Run, along: Run| MatrixLayout {
            offset: index * batch.stride,
            rows: down.extent,
            columns: along.extent,
            row_stride: down.stride.cast_signed(),
            column_stride: along.stride.cast_signed(),
        };
        for index in 0..batch.extent {
            let product = Multiplication::new(
                (&mut *to, matrix(batch, index, rows, columns)),
                (left, matrix(left_batch, index, left_rows, left_terms)),
                (right, matrix(right_batch, index, right_terms, right_columns)),
                adds,
            )?;
            T::multiply(matrices, product);
        }
        Ok(())
    }
}
