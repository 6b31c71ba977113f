//! Adds random views of nodes to tensor graphs: permuted axes, slices, diagonals, reshaping, broadcasting. Also adds padding with zeros.

use super::{Growth, NodeResult};
use crate::config::pick;
use cembra::tensor::{Reduction, Slice, Tensor, TensorNodeId};
use cembra_tiles::Tiling1;

impl Growth<'_> {
    fn permutation(&mut self, rank: usize) -> Vec<usize> {
        let mut axes: Vec<usize> = (0..rank).collect();
        self.random.shuffle(&mut axes);
        axes
    }

    fn slices(&mut self, extents: &[usize]) -> Vec<Slice> {
        // Slices of tiled tensors have step 1, except for a few that must be rejected.
        let is_tiled = self.cutting.is_some() && self.random.u32(..50) > 0;
        let slice = |extent: &usize| {
            let (extent, random) = (*extent, &mut *self.random);
            if extent == 0 || random.u32(..3) == 0 {
                return Slice::all(extent);
            }
            let start = random.usize(..extent);
            let step = *pick(random, if is_tiled { &[1] } else { &[1, 1, 2, 3, -1, -1, -2] });
            let room = if step > 0 { extent - 1 - start } else { start };
            let most = room / isize::unsigned_abs(step) + 1;
            let count = if random.u32(..10) == 0 { 0 } else { random.usize(1..=most) };
            Slice { start, step, count }
        };
        extents.iter().map(slice).collect()
    }

    /// Returns slices that select a range of tiles on each axis of a node; `None` if its tilings are unknown.
    fn block(&mut self, x: TensorNodeId) -> Option<Vec<Slice>> {
        let cuts = self.cutting.as_ref()?.cuts.of(x)?.clone();
        let slice = |(cut, extent): (&Option<Tiling1>, &usize)| match cut {
            Some(axis) if axis.tiles() > 0 => {
                let first = self.random.u64(..axis.tiles());
                let last = self.random.u64(first..axis.tiles());
                let boundary = |at: u64| axis.boundaries().nth(at as usize).map_or(0, |own| own.abs_diff(axis.lower()));
                let (start, end) = (boundary(first) as usize, boundary(last + 1) as usize);
                Slice { start, step: 1, count: end - start }
            }
            _ => Slice::all(*extent),
        };
        Some(cuts.iter().zip(self.graph.extents(x)).map(slice).collect())
    }

    /// Returns a node that is at least as large as `x`, and the place of `x` in it.
    fn around(&mut self, x: TensorNodeId) -> Option<(TensorNodeId, Vec<Slice>)> {
        let extents = self.graph.extents(x).to_vec();
        let has_room = |id: &TensorNodeId| {
            let own = self.graph.extents(*id);
            own.len() == extents.len() && own.iter().zip(&extents).all(|(own, extent)| own >= extent)
        };
        let found: Vec<TensorNodeId> = self.pool.iter().copied().filter(has_room).collect();
        let within = found.get(self.random.usize(..found.len().max(1))).copied()?;
        let wide = self.graph.extents(within).to_vec();
        // The place is mostly at the boundaries of tiles, if a range of tiles has the right size.
        let block = self.block(within).filter(|_| self.random.bool());
        let slice = |(axis, (wide, extent)): (usize, (&usize, &usize))| {
            let start = block.as_ref().map_or(usize::MAX, |block| block[axis].start);
            let most = wide - extent;
            let start = if start <= most { start } else { self.random.usize(..=most) };
            Slice { start, step: 1, count: *extent }
        };
        let slices = wide.iter().zip(&extents).enumerate().map(slice).collect();
        Some((within, slices))
    }

    /// Adds a random view of the node `x`, or pads it with zeros.
    pub(in crate::tensors) fn view(&mut self, x: TensorNodeId) -> NodeResult {
        let extents = self.graph.extents(x).to_vec();
        let rank = extents.len();
        let kind = match (&self.cutting, self.random.u32(..12)) {
            (None, kind) => kind,
            // Mostly operations that tiled tensors have; now and then one that they lack.
            (Some(_), 9) if self.random.bool() => 9,
            (Some(_), 10) => 10,
            (Some(_), _) => self.random.u32(..8),
        };
        match kind {
            0 | 1 => {
                let axes = self.permutation(rank);
                self.graph.transpose(x, &axes)
            }
            2 | 3 => {
                if let Some(block) = self.block(x).filter(|_| self.random.bool()) {
                    return self.graph.slice_anew(x, &block);
                }
                let slices = self.slices(&extents);
                self.graph.slice(x, &slices)
            }
            4 => {
                // A diagonal of two axes.
                let (from, mut to) = (self.random.usize(..rank.max(1)), self.permutation(rank.saturating_sub(1)));
                to.insert(from.min(to.len()), self.random.usize(..rank.max(2) - 1));
                self.graph.with_axes(x, &to)
            }
            5 => {
                let mut wide = extents;
                for extent in wide.iter_mut().filter(|extent| **extent == 1) {
                    *extent = self.random.usize(1..4);
                }
                if self.random.bool() {
                    wide.insert(0, self.random.usize(1..4));
                }
                self.graph.broadcast(x, &wide)
            }
            6 | 7 => {
                let made = self.other_extents(&extents);
                self.graph.reshape(x, &made)
            }
            8 => {
                let axis = self.random.usize(..rank.max(1));
                let indices = self.indices(*extents.get(axis).unwrap_or(&0), None)?;
                self.graph.take(x, indices, axis)
            }
            9 => {
                // The parts are nodes with fitting extents; mostly the node itself, reversed.
                let axis = self.random.usize(..rank.max(1));
                let slices = self.slices(&extents);
                let slices: Vec<Slice> = (slices.into_iter().zip(&extents).enumerate())
                    .map(|(at, (slice, extent))| if at == axis { slice } else { Slice::all(*extent) })
                    .collect();
                let part = self.graph.slice(x, &slices)?;
                let mut parts = vec![x, part];
                let all = self.pool.iter().copied().filter(|id| self.graph.extents(*id) == extents);
                parts.extend(all.filter(|id| self.graph.scalar(*id) == self.graph.scalar(x)).take(2));
                self.random.shuffle(&mut parts);
                self.graph.concat(&parts, axis)
            }
            10 if self.random.bool() => {
                let Some((within, slices)) = self.around(x) else { return Ok(x) };
                self.graph.place_slice_in(x, &slices, within)
            }
            10 => {
                let wide: Vec<usize> = extents.iter().map(|extent| extent + self.random.usize(..4)).collect();
                let slices = wide.iter().zip(&extents).map(|(wide, extent)| {
                    let start = self.random.usize(..=wide - extent);
                    match self.random.bool() {
                        true => Slice { start, step: 1, count: *extent },
                        false => Slice { start: (start + extent).saturating_sub(1), step: -1, count: *extent },
                    }
                });
                let slices: Vec<Slice> = slices.collect();
                self.graph.place_slice(x, &slices, &wide)
            }
            _ if self.random.bool() && rank > 0 => {
                // The axis becomes the diagonal of two axes.
                let twice = self.random.usize(..rank);
                let mut to = self.permutation(rank);
                to.insert(self.random.usize(..=rank), twice);
                let wide: Vec<usize> = to.iter().map(|axis| extents[*axis]).collect();
                self.graph.place_axes(x, &to, &wide)
            }
            _ => {
                let axis = self.random.usize(..rank.max(1));
                let mut wide = extents.clone();
                let Some(along) = wide.get_mut(axis) else { return Ok(x) };
                *along = self.random.usize(1..5);
                let below = *along;
                let indices = self.indices(below, Some(extents[axis]))?;
                self.graph.place_take(x, indices, axis, &wide)
            }
        }
    }

    /// Adds an `i64` leaf whose elements are indices below `below`. With `count`, the leaf has one axis of `count` indices; otherwise random extents.
    fn indices(&mut self, below: usize, count: Option<usize>) -> NodeResult {
        let extents = match count {
            Some(count) => vec![count],
            None => (0..self.random.usize(..3)).map(|_| self.random.usize(1..4)).collect(),
        };
        let extents: Vec<usize> = if below == 0 { vec![0] } else { extents };
        let count = extents.iter().product();
        let all: Vec<i64> = (0..count).map(|_| self.random.i64(0..below as i64)).collect();
        let tensor = match self.random.bool() {
            true => Tensor::new(&extents, all)?,
            false => Tensor::new(&extents, all.into_iter().map(|at| at as i32).collect::<Vec<i32>>())?,
        };
        let made = self.graph.leaf("", tensor.scalar_type(), tensor.extents())?;
        self.inputs.push(tensor);
        Ok(made)
    }

    /// Returns other extents with the same number of elements: neighbouring axes are joined, an axis is split, or axes of 1 are added or removed.
    fn other_extents(&mut self, extents: &[usize]) -> Vec<usize> {
        let mut made: Vec<usize> = extents.to_vec();
        for _ in 0..self.random.u32(1..=3) {
            let at = self.random.usize(..=made.len());
            // Tiles are not split, except for a few cases that must be rejected.
            let kinds = if self.cutting.is_some() && self.random.u32(..20) > 0 { 2 } else { 4 };
            match self.random.u32(..kinds) {
                0 if made.len() < 6 => made.insert(at, 1),
                1 if at < made.len() && made[at] == 1 => drop(made.remove(at)),
                2 if at + 1 < made.len() => {
                    let product = made[at] * made.remove(at + 1);
                    made[at] = product;
                }
                _ if kinds > 2 && at < made.len() && made.len() < 6 => {
                    let factors: Vec<usize> =
                        (1..=made[at]).filter(|factor| made[at].is_multiple_of(*factor)).collect();
                    let Some(factor) = self.random.choice(factors) else { continue };
                    made[at] /= factor;
                    made.insert(at, factor);
                }
                _ => {}
            }
        }
        made
    }

    /// Adds combinations of nodes that a rewrite rule may replace: views of views, and views before other operations.
    pub(super) fn pattern_of_views(&mut self) -> NodeResult {
        let x = self.any();
        let extents = self.graph.extents(x).to_vec();
        let rank = extents.len();
        let axes = self.permutation(rank);
        match self.random.u32(..7) {
            0 => {
                // If the longest axis becomes the last or ceases to be, a sum begins or ceases to use chains.
                let turned = self.graph.transpose(x, &axes)?;
                let extents = self.graph.extents(turned);
                match (0..rank).max_by_key(|axis| extents[*axis]) {
                    Some(longest) if self.random.bool() => self.graph.reduce(Reduction::Sum, turned, &[longest]),
                    _ => self.reduction(turned),
                }
            }
            1 => {
                let turned = self.graph.transpose(x, &axes)?;
                self.pool.push(turned);
                let product = self.product()?;
                let axes = self.permutation(self.graph.extents(product).len());
                self.graph.transpose(product, &axes)
            }
            2 => {
                let sliced = self.slices(&extents);
                let sliced = self.graph.slice(x, &sliced)?;
                let extents = self.graph.extents(sliced).to_vec();
                let again = self.slices(&extents);
                self.graph.slice(sliced, &again)
            }
            3 => {
                let wide = [&[self.random.usize(1..4)], self.graph.extents(x)].concat();
                let wide = self.graph.broadcast(x, &wide)?;
                self.pool.push(wide);
                self.map()
            }
            4 => {
                let turned = self.graph.transpose(x, &axes)?;
                let again = self.permutation(rank);
                self.graph.transpose(turned, &again)
            }
            5 => {
                let first = self.other_extents(&extents);
                let first = self.graph.reshape(x, &first)?;
                let extents = self.graph.extents(first).to_vec();
                let second = self.other_extents(&extents);
                self.graph.reshape(first, &second)
            }
            _ => {
                // This is a sum over axes of 1.
                let ones = [self.graph.extents(x), &[1]].concat();
                let ones = self.graph.reshape(x, &ones)?;
                let reduction = *pick(self.random, &[Reduction::Sum, Reduction::Max, Reduction::Product]);
                self.graph.reduce(reduction, ones, &[rank])
            }
        }
    }
}
