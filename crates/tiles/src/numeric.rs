//! Products of tiled tensors, carried out as a symbolic product plans them. A task makes one segment of the sums of a block of result tiles,
//! in the order of what is summed, so that tiles of the operands stay in the cache. Tasks share nothing but operands: each segment is summed
//! from zero, and segments are added in their order, whoever made them. So no bit depends on blocks, nor on who runs which task.

use crate::SymbolicProduct;
use crate::gustavson::{Entry, TileProduct};
use crate::kernel::{Arrangement, TileKernel};
use crate::tile::{Float, Tile, TileMemory};
use crate::tiled::{Tiled, bytes_of};
use cembra_tensor::MatrixProduct;
use cembra_value::Error;
use cembra_value::tensor::{CopiedAxis, Extents, copy_axes};
use std::ops::Range;

/// The most result tiles along each side of a block.
const MOST_ALONG: usize = 16;

/// The product of two operands by its plan, under true norms. Result tiles of about so many bytes are made together.
pub(crate) fn multiply<T: Float>(
    plan: &SymbolicProduct,
    operands: [&Tiled; 2],
    matrices: &dyn MatrixProduct,
    block_bytes: usize,
) -> Result<Tiled, Error> {
    let kernel = TileKernel::of(&plan.roles);
    let mut run = Run {
        plan,
        matrices,
        operands: [
            Operand::new(operands[0], &kernel.operands[0], plan.lefts()),
            Operand::new(operands[1], &kernel.operands[1], plan.rights()),
        ],
        kernel: &kernel,
    };
    let mut made: Vec<Option<Tile>> = vec![None; plan.shape().len()];
    for block in blocks::<T>(plan, block_bytes) {
        run.make::<T>(&block, &mut made)?;
    }
    // Each entry is in one block.
    let tiles: Vec<Tile> = made.into_iter().flatten().collect();
    Ok(Tiled::with_true_norms(plan.shape(), T::SCALAR, tiles))
}

/// The entries of the plan in blocks: a few rows, and of these so many entries of neighbouring columns that a block has about so many bytes.
fn blocks<T: Float>(plan: &SymbolicProduct, block_bytes: usize) -> Vec<Vec<usize>> {
    let count = plan.shape().len();
    let each = bytes_of(T::SCALAR, plan.shape().present_elements()) / count.max(1);
    let along = (block_bytes / each.max(1)).isqrt().clamp(1, MOST_ALONG);
    let rows: Vec<Range<usize>> = plan.rows().collect();
    let mut blocks = Vec::new();
    for band in rows.chunks(along) {
        let mut entries: Vec<usize> = band.iter().cloned().flatten().collect();
        entries.sort_unstable_by_key(|entry| (plan.entry(*entry).column, *entry));
        blocks.extend(entries.chunks(along * along).map(<[usize]>::to_vec));
    }
    blocks
}

/// The tiles of an operand as the kernel takes them. Tiles that have to be made for it are made when they are first used, and dropped after
/// their last use.
struct Operand<'o> {
    tiled: &'o Tiled,
    arrangement: &'o Arrangement,
    made: Vec<Option<Tile>>,
    /// How often each tile will still be used.
    uses: Vec<u32>,
}

impl<'o> Operand<'o> {
    fn new(tiled: &'o Tiled, arrangement: &'o Arrangement, positions: impl Iterator<Item = usize>) -> Operand<'o> {
        let is_ready = !tiled.is_lazy() && arrangement.order.is_none();
        let len = if is_ready { 0 } else { tiled.shape().len() };
        let mut uses = vec![0_u32; len];
        if !is_ready {
            positions.for_each(|at| uses[at] = uses[at].saturating_add(1));
        }
        Operand { tiled, arrangement, made: vec![None; len], uses }
    }

    /// Makes a tile, if it is not there.
    fn prepare(&mut self, position: usize) -> Result<(), Error> {
        let Some(slot @ None) = self.made.get_mut(position) else { return Ok(()) };
        let tile = self.tiled.tile_at(position)?;
        *slot = Some(match &self.arrangement.order {
            None => tile,
            Some(order) => Tile::of(&tile.tensor().transposed(order)?)?,
        });
        Ok(())
    }

    /// A tile that was prepared.
    fn tile(&self, position: usize) -> Option<&Tile> {
        match self.made.get(position) {
            Some(made) => made.as_ref(),
            None => self.tiled.stored_at(position),
        }
    }

    /// Says that a tile was used once.
    fn release(&mut self, position: usize) {
        if let Some(uses) = self.uses.get_mut(position) {
            *uses = uses.saturating_sub(1);
            if *uses == 0 {
                self.made[position] = None;
            }
        }
    }
}

/// A result tile that is being made.
struct Target<T> {
    entry: Entry,
    /// The position of the tile in the result.
    position: usize,
    segments: Vec<Range<usize>>,
    /// The extents of the tile, and of what is packed for the kernel.
    extents: Extents,
    packed: Extents,
    sum: TileMemory<T>,
}

/// A product that a task has to add: to which target, and whether it is the first one of a segment.
struct Job {
    product: TileProduct,
    target: u32,
}

struct Run<'r> {
    plan: &'r SymbolicProduct,
    matrices: &'r dyn MatrixProduct,
    operands: [Operand<'r>; 2],
    kernel: &'r TileKernel,
}

impl Run<'_> {
    /// Makes the result tiles of a block.
    fn make<T: Float>(&mut self, block: &[usize], made: &mut [Option<Tile>]) -> Result<(), Error> {
        let mut targets = block.iter().map(|entry| self.target::<T>(*entry)).collect::<Result<Vec<_>, Error>>()?;
        let most = targets.iter().map(|target| target.segments.len()).max().unwrap_or(0);
        for segment in 0..most {
            let sums = self.segment(&mut targets, segment)?;
            for (target, sum) in sums {
                let total = targets[target].sum.elements_mut();
                total.iter_mut().zip(sum.elements()).for_each(|(total, sum)| *total = *total + *sum);
            }
        }
        for target in targets {
            let (position, tile) = self.finished(target)?;
            made[position] = Some(tile);
        }
        Ok(())
    }

    fn target<T: Float>(&self, entry: usize) -> Result<Target<T>, Error> {
        let (position, entry) = (self.plan.position(entry), self.plan.entry(entry));
        let number = self.plan.shape().tiles()[position];
        let extents = self.plan.shape().tiling().tile_extents(number).unwrap_or_default();
        let packed = self.kernel.result.packed(&extents);
        let segments = self.plan.segments_of(self.plan.products_of(entry)).collect();
        let sum = TileMemory::of_extents(&packed)?;
        Ok(Target { entry, position, segments, extents, packed, sum })
    }

    /// One segment of the sums of all targets that have it. The first one is summed in place, as there is nothing that it is added to; sums of
    /// others are returned, with the targets that they are of.
    fn segment<T: Float>(
        &mut self,
        targets: &mut [Target<T>],
        segment: usize,
    ) -> Result<Vec<(usize, TileMemory<T>)>, Error> {
        let mut jobs = Vec::new();
        let mut sums = Vec::new();
        for (at, target) in targets.iter().enumerate() {
            let Some(range) = target.segments.get(segment) else { continue };
            let products = &self.plan.products_of(target.entry)[range.clone()];
            let first = sums.len() as u32;
            jobs.extend(products.iter().map(|product| Job { product: *product, target: first }));
            let sum = if segment > 0 { Some(TileMemory::<T>::of_extents(&target.packed)?) } else { None };
            sums.push((at, sum, false));
        }
        // In the order of what is summed: each target has its products in this order already.
        jobs.sort_unstable_by_key(|job| (job.product.right, job.target));
        for Job { product, target } in jobs {
            let (at, sum, adds) = &mut sums[target as usize];
            let positions = [product.left as usize, self.plan.right(product).position as usize];
            for (operand, position) in self.operands.iter_mut().zip(positions) {
                operand.prepare(position)?;
            }
            let [left, right] = [0, 1].map(|of| self.operands[of].tile(positions[of]));
            if let (Some(left), Some(right)) = (left, right) {
                let target = &mut targets[*at];
                let memory = sum.as_mut().unwrap_or(&mut target.sum);
                self.kernel.multiply(
                    (left.elements::<T>(), left.extents()),
                    (right.elements::<T>(), right.extents()),
                    (memory.elements_mut(), &target.packed),
                    *adds,
                    self.matrices,
                )?;
                *adds = true;
            }
            for (operand, position) in self.operands.iter_mut().zip(positions) {
                operand.release(position);
            }
        }
        Ok(sums.into_iter().filter_map(|(at, sum, _)| Some((at, sum?))).collect())
    }

    /// The tile of a target, and its position.
    fn finished<T: Float>(&self, target: Target<T>) -> Result<(usize, Tile), Error> {
        let Target { position, extents, packed, sum, .. } = target;
        let Some(order) = &self.kernel.result.order else { return Ok((position, sum.into_tile(&extents)?)) };
        let mut memory = TileMemory::<T>::of_extents(&extents)?;
        let strides = |extents: &[usize]| -> Vec<isize> {
            (0..extents.len()).map(|axis| extents[axis + 1..].iter().product::<usize>().cast_signed()).collect()
        };
        let (from, to) = (strides(&packed), strides(&extents));
        let axes =
            order.iter().enumerate().map(|(at, axis)| CopiedAxis { extent: packed[at], from: from[at], to: to[*axis] });
        copy_axes(sum.elements(), 0, memory.elements_mut(), &axes.collect::<Vec<_>>());
        Ok((position, memory.into_tile(&extents)?))
    }
}
