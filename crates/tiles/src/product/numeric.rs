//! Computes products of tiled tensors by their plans ([`SymbolicProduct`]). A task computes the sums for a block of
//! result tiles, and uses an operand tile for all of these sums while the tile is in the cache. If there are few
//! blocks, a task computes only one segment (a range of the terms) of these sums. Each segment is summed from zero, and
//! segments are added in their order, whichever thread computed them. So no bit of the result depends on blocks, on
//! threads, or on panels (the operand tiles that are in memory together).

use crate::distribution::each::spread_with;
use crate::distribution::{Exchange, PlannedStep, failed_at, hash_of, shared_out};
use crate::link::Ranks;
use crate::product::grids::owners_of_product;
use crate::product::gustavson::Entry;
use crate::product::kernel::TileKernel;
use crate::product::supply::{OperandTiles, Panels, TileAssignment, traffic_of};
use crate::tasks::{Watch, Workers};
use crate::tiled::tile::{Float, TILE_BYTES, Tile, TileMemory, norm};
use crate::tiled::{Tiled, bytes_of};
use crate::{StepKind, SymbolicProduct, Tiling};
use cembra_tensor::MatrixProduct;
use cembra_value::Error;
use cembra_value::tensor::{CopiedAxis, Extents, TensorErrorKind as Kind, copy_axes};
use std::ops::Range;
use std::sync::atomic::AtomicU64;

/// The most rows and the most columns of result tiles in a block, if no operand tile is absent.
const MOST_ALONG: usize = 16;

/// The fraction of present operand tiles below which blocks do not become larger. Blocks are larger the fewer operand
/// tiles are present.
const LEAST_PART: f64 = 1.0 / 16.0;

/// The least number of blocks per thread, to which the size of larger blocks is limited. Blocks are larger if most
/// operand tiles are absent.
const BLOCKS_EACH: usize = 6;

/// The least bytes of sums, of several segments, that are computed at once if segments are distributed over threads.
/// With fewer, threads would wait for each other too often.
const WAVE_BYTES: usize = 1 << 22;

/// A result tile of a product while it is computed: its entry in the plan, its sums so far, and the tile once it is
/// finished.
struct Target<T: Float> {
    entry: Entry,
    /// The position of the tile in the result.
    position: usize,
    /// The extents of the tile. `packed` has them in the axis order in which the kernel writes the sum.
    extents: Extents,
    packed: Extents,
    /// The products that are added next, as a range of the products of this tile in the plan.
    range: Range<usize>,
    /// The number of the segment (a range of the terms of a sum) that is being summed.
    segment: u32,
    part: Option<TileMemory<T>>,
    /// The sum of the completed segments (ranges of the terms); `None` if no segment is completed. `part` is the sum so
    /// far of the current segment.
    sum: Option<TileMemory<T>>,
    /// The finished tile and its norm; `None` until the tile is finished.
    done: Option<(Tile, f64)>,
}

/// The result tiles that one task computes.
type Block<T> = Vec<Target<T>>;

/// A product of two tiles that a task must add to a result tile.
struct Job {
    right: u32,
    target: u32,
    left: u32,
}

/// A product of two tensors that is being computed: its plan, the kernel for two tiles, and the ranks and threads that share it.
struct Run<'r> {
    plan: &'r SymbolicProduct,
    matrices: &'r dyn MatrixProduct,
    kernel: &'r TileKernel,
    workers: &'r Workers,
    /// The rank that computes each result tile; `None` if this process computes all tiles.
    makers: Option<TileAssignment<'r>>,
    /// The size in bytes of the result tiles that this rank computes.
    result_bytes: usize,
    /// The lowest number of a task that failed so far, for the error that ranks report. The number is the position of
    /// the task's first result tile.
    lowest: &'r AtomicU64,
}

/// Computes the product of two operands by `plan`, with norms computed from the elements. If the evaluation is only
/// planned, no tile is computed.
pub(crate) fn multiply<T: Float>(
    plan: &SymbolicProduct,
    operands: [&Tiled; 2],
    matrices: &dyn MatrixProduct,
    workers: &Workers,
) -> Result<Tiled, Error> {
    if let Some(ranks) = workers.several() {
        return multiply_on::<T>(ranks, plan, operands, matrices, workers);
    }
    let kernel = TileKernel::of(&plan.roles);
    let workers = &workers.counting(own_bytes::<T>(plan, operands, &kernel), || of_plan(plan))?;
    let result_bytes = bytes_of(T::SCALAR, plan.shape().present_elements());
    let lowest = AtomicU64::new(u64::MAX);
    let run = Run { plan, matrices, kernel: &kernel, workers, makers: None, result_bytes, lowest: &lowest };
    let blocks = run.blocks::<T>()?;
    let tasks = blocks.len();
    let supply = OperandTiles::of(plan, operands, &kernel, None);
    let memory = run.memory(&supply, &blocks)?;
    let took = [tasks, memory.beside_bytes];
    workers.check()?;
    if workers.is_plan {
        return Tiled::planned(plan.shape(), T::SCALAR).inspect(|made| note(workers, plan, operands, made, took));
    }
    let made = run.panels(supply, blocks, &memory, None)?;
    let (tiles, norms) = made.into_iter().unzip();
    let made = Tiled::stored(plan.shape().with_norms(norms), T::SCALAR, tiles);
    note(workers, plan, operands, &made, took);
    Ok(made)
}

/// Adds a product to the journal, with the number of its tasks and the bytes that it held besides its result.
fn note(workers: &Workers, plan: &SymbolicProduct, operands: [&Tiled; 2], made: &Tiled, took: [usize; 2]) {
    let Some(journal) = &workers.journal else { return };
    let tiles = |tiling: &Tiling, is_counted: &dyn Fn(usize) -> bool| -> f64 {
        let axes = tiling.axes().iter().enumerate().filter(|(axis, _)| is_counted(*axis));
        axes.map(|(_, axis)| axis.tiles() as f64).product()
    };
    let [a, b] = operands;
    let [left, right] = &plan.roles.operands;
    let of = tiles(a.tiling(), &|_| true) * tiles(b.tiling(), &|axis| !left.contains(&right[axis]));
    let operations = 2.0 * plan.multiplications(a.shape());
    let [tasks, beside_bytes] = took;
    let kind = StepKind::Product { products: plan.product_count() as u64, of, operations };
    journal.push(kind, made, [tasks, workers.held_bytes.saturating_add(beside_bytes)]);
}

/// The size in bytes of a plan, and of the tiles of its result and operands without their elements.
fn own_bytes<T: Float>(plan: &SymbolicProduct, operands: [&Tiled; 2], kernel: &TileKernel) -> usize {
    let of_result = plan.shape().len().saturating_mul(TILE_BYTES + size_of::<Target<T>>());
    plan.own_bytes().saturating_add(of_result).saturating_add(OperandTiles::own_bytes(operands, kernel))
}

/// Describes a plan, for an error.
fn of_plan(plan: &SymbolicProduct) -> String {
    format!("a plan of {} products for {} result tiles", plan.product_count(), plan.shape().len())
}

/// Computes the product on several ranks; each rank computes the result tiles that it owns. A rank receives operand
/// tiles in panels (groups of tiles that are in memory together), and receives the next panel while it computes with
/// the current one.
fn multiply_on<T: Float>(
    ranks: &Ranks,
    plan: &SymbolicProduct,
    operands: [&Tiled; 2],
    matrices: &dyn MatrixProduct,
    workers: &Workers,
) -> Result<Tiled, Error> {
    let (size, rank) = (ranks.link().size(), ranks.link().rank() as u32);
    let kernel = TileKernel::of(&plan.roles);
    // The ranks that read a tile are stored as one bit per rank.
    let readers = operands.iter().filter(|operand| operand.is_distributed());
    let readers = readers.map(|operand| operand.shape().len().saturating_mul(size.div_ceil(64) * size_of::<u64>()));
    let own = readers.fold(own_bytes::<T>(plan, operands, &kernel), usize::saturating_add);
    let counted = workers.counting(own, || of_plan(plan));
    let planned = || {
        let workers = counted.as_ref().map_err(Error::clone)?;
        let owners = match &workers.map {
            Some(map) => map.owners(plan.shape(), size)?,
            None => owners_of_product(ranks, plan, operands)?,
        };
        let makers = TileAssignment { owners: &owners, rank, ranks: size as u64 };
        let own = plan.shape().tiles().iter().enumerate().filter(|(at, _)| makers.is_own(*at));
        let result_bytes = bytes_of(T::SCALAR, own.map(|(_, tile)| plan.shape().tiling().volume(*tile)).sum());
        workers.check_result(plan.shape().len(), result_bytes)?;
        let hash = hash_of(("product", plan.roles.number()), plan.shape(), &owners, &operands);
        let traffic = traffic_of(plan, operands, makers);
        Ok(PlannedStep { hash, traffic, own: (owners, result_bytes) })
    };
    let (((owners, took), made), norms) =
        shared_out(workers, ranks, &operands, planned(), |(owners, result_bytes), exchange, lowest| {
            let workers = counted.as_ref().map_err(Error::clone)?;
            let makers = Some(TileAssignment { owners: &owners, rank, ranks: size as u64 });
            let run = Run { plan, matrices, kernel: &kernel, workers, makers, result_bytes, lowest };
            let blocks = run.blocks::<T>()?;
            let supply = OperandTiles::of(plan, operands, &kernel, makers);
            let memory = run.memory(&supply, &blocks)?;
            let took = [blocks.len(), memory.beside_bytes];
            let made = run.panels(supply, blocks, &memory, Some(exchange))?;
            let (tiles, norms): (Vec<Tile>, Vec<u64>) =
                made.into_iter().map(|(tile, norm)| (tile, norm.to_bits())).unzip();
            Ok((((owners, took), tiles), norms))
        })?;
    let made = spread_with(plan.shape(), T::SCALAR, ranks, owners, made, &norms)?;
    note(workers, plan, operands, &made, took);
    Ok(made)
}

/// The memory that a product uses: its panels (operand tiles that are in memory together), its threads, and the segments summed at once.
struct Memory {
    panels: Panels,
    workers: Workers,
    /// The number of segments (ranges of the terms of a sum) that are summed at once if segments are distributed over
    /// threads; 0 if they are not.
    wave: usize,
    /// The most bytes that the product uses at once in addition to its result.
    beside_bytes: usize,
}

impl Run<'_> {
    /// Adds to the result tiles the products of all panels (groups of operand tiles that are in memory together), one
    /// after the other. Returns the result tiles of this rank and their norms, in the order of the result.
    fn panels<T: Float>(
        &self,
        mut supply: OperandTiles<'_>,
        mut blocks: Vec<Block<T>>,
        memory: &Memory,
        mut exchange: Option<&mut Exchange<'_>>,
    ) -> Result<Vec<(Tile, f64)>, Error> {
        self.workers.begin(blocks.iter().flatten().map(|target| target.entry.count as usize).sum());
        let ends = &memory.panels.ends;
        let mut start = 0;
        for (at, end) in ends.iter().enumerate() {
            if let Some(exchange) = &mut exchange {
                exchange.arrive(*end, |parcel, tile| supply.insert(parcel, tile))?;
                if let Some(next) = ends.get(at + 1).filter(|_| memory.panels.looks_ahead) {
                    exchange.begin(*next)?;
                }
            }
            supply.make(start..*end, &memory.workers)?;
            let is_last = at + 1 == ends.len();
            let mut watch = exchange.as_mut().map(|exchange| move || exchange.watch());
            let watch = watch.as_mut().map(|watch| watch as Watch<'_>);
            blocks = self.panel(&supply, blocks, *end, is_last, memory, watch)?;
            supply.drop_tiles(start..*end);
            start = *end;
        }
        let mut made: Vec<(usize, (Tile, f64))> =
            blocks.into_iter().flatten().filter_map(|target| Some((target.position, target.done?))).collect();
        // Each entry is in exactly one block, so this is the order of the result.
        made.sort_unstable_by_key(|(position, _)| *position);
        Ok(made.into_iter().map(|(_, made)| made).collect())
    }

    /// Returns true if this rank computes the result tile of an entry.
    fn is_own(&self, entry: usize) -> bool {
        self.makers.is_none_or(|makers| makers.is_own(self.plan.position(entry)))
    }

    /// Splits the entries (result tiles) of the plan into blocks. A block has neighbouring columns of a few
    /// neighbouring rows, and about `block_bytes` bytes.
    ///
    /// # Errors
    /// If the evaluation was cancelled.
    fn blocks<T: Float>(&self) -> Result<Vec<Block<T>>, Error> {
        let plan = self.plan;
        let count = plan.shape().len();
        let own = (0..count).filter(|entry| self.is_own(*entry)).count();
        let each = self.result_bytes / own.max(1);
        let along = (self.workers.options.block_bytes / each.max(1)).isqrt().clamp(1, MOST_ALONG);
        let most = if plan.has_segments() { along * along } else { self.most_targets(along, own) };
        // A block has as many rows as columns of the grid.
        let columns = plan.entries.iter().map(|entry| entry.column).max().map_or(1, |last| last as usize + 1);
        let filled = own.max(1) as f64 / (plan.rows().count().max(1) * columns) as f64;
        let side = along.max((most as f64 / filled).sqrt() as usize);
        let rows: Vec<Range<usize>> = plan.rows().collect();
        let mut blocks = Vec::new();
        for band in rows.chunks(side) {
            let mut entries: Vec<usize> = band.iter().cloned().flatten().filter(|entry| self.is_own(*entry)).collect();
            entries.sort_unstable_by_key(|entry| (plan.entries[*entry].column, *entry));
            // Blocks have about one size.
            let parts = entries.len().div_ceil(most).max(1);
            for entries in entries.chunks(entries.len().div_ceil(parts).max(1)) {
                self.workers.check()?;
                blocks.push(entries.iter().map(|entry| self.target(*entry)).collect());
            }
        }
        Ok(blocks)
    }

    /// The most result tiles of a block. If no operand tile is absent, a block has `along` rows and as many columns.
    ///
    /// If a tenth of the operand tiles are present, only a tenth of the result tiles in a row of a block read a certain
    /// operand tile. So a block then has ten times as many rows and columns, and as many result tiles read the operand
    /// tile as without absent tiles. There are still at least `BLOCKS_EACH` blocks per thread. This is not called for
    /// products with segments, because a block of such a product holds two sums per result tile.
    fn most_targets(&self, along: usize, own: usize) -> usize {
        let (plan, targets) = (self.plan, self.plan.shape().len().max(1));
        // The fraction of operand tiles that are present, estimated from the number of products.
        let part = (plan.product_count() as f64 / targets as f64 / plan.key_count().max(1) as f64).sqrt();
        let side = (along as f64 / part.max(LEAST_PART)) as usize;
        let shared_out = own / (BLOCKS_EACH * self.workers.threads.max(1));
        side.saturating_mul(side).min(shared_out).max(along * along)
    }

    fn target<T: Float>(&self, entry: usize) -> Target<T> {
        let (position, entry) = (self.plan.position(entry), self.plan.entries[entry]);
        let number = self.plan.shape().tiles()[position];
        let extents = self.plan.shape().tiling().tile_extents(number).unwrap_or_default();
        let packed = self.kernel.result.packed(&extents);
        Target { entry, position, extents, packed, range: 0..0, segment: 0, part: None, sum: None, done: None }
    }

    /// Decides from the memory limit which operand tiles are in memory together, how many threads work, and how many
    /// segments are summed at once.
    ///
    /// # Errors
    /// If the memory limit does not suffice for one thread and the operand tiles of one key (the coordinates of the
    /// labels that both operands have).
    fn memory<T: Float>(&self, supply: &OperandTiles<'_>, blocks: &[Block<T>]) -> Result<Memory, Error> {
        let most = self.workers.options.most_bytes;
        let bytes = |target: &Target<T>| size_of::<T>().saturating_mul(volume(&target.extents));
        let result = self.result_bytes;
        let tile = blocks.iter().flatten().map(bytes).max().unwrap_or(0);
        let block =
            blocks.iter().map(|block| block.iter().map(bytes).fold(0, usize::saturating_add)).max().unwrap_or(0);
        let has_segments = self.plan.has_segments();
        // Sums of segments after the first, and a tile in another order of axes.
        let turned = if self.kernel.result.order.is_some() { tile } else { 0 };
        let sums = (if has_segments { block } else { 0 }).saturating_add(turned);
        // Tiles of operands are made before any of them is multiplied.
        let each = sums.max(supply.making_bytes());
        let (least, of) = supply.least_bytes();
        let room = |held: usize| most.saturating_sub(held.saturating_add(each));
        let mut held = result;
        let mut panels = supply.panels(self.plan, room(held));
        if panels.cuts_segments && has_segments {
            // Sums of a segment are held from one panel to the next.
            held = held.saturating_add(result);
            panels = supply.panels(self.plan, room(held));
        }
        let what = match of {
            [false, false] => String::new(),
            [true, false] => format!(" and {least} bytes of the left operand's tiles at a time"),
            [false, true] => format!(" and {least} bytes of the right operand's tiles at a time"),
            [true, true] => format!(" and {least} bytes of both operands' tiles at a time"),
        };
        let taken = held.saturating_add(panels.most_bytes);
        let workers = self.workers.within_bytes(taken, each, || {
            format!("a result of {} tiles with sums of {sums} bytes{what}", self.plan.shape().len())
        })?;
        let spare_bytes = most.saturating_sub(taken.saturating_add(each.saturating_mul(workers.threads)));
        // A few blocks are shared out by segments: as many at once as there are bytes for.
        let segments = self.plan.segments_of_keys().chunk_by(|a, b| a == b).count();
        let is_shared_out = has_segments && workers.threads > 1 && blocks.len() < 2 * workers.threads;
        let wanted = (2 * workers.threads).max(WAVE_BYTES / result.max(1)).min(segments);
        let wave = if is_shared_out { wanted.min(spare_bytes / result.max(1)) } else { 0 };
        let at_once = workers.threads.min(blocks.len());
        let of_wave = if wave < 2 { 0 } else { wave.saturating_mul(result) };
        let beside_bytes = (taken - result).saturating_add(each.saturating_mul(at_once)).saturating_add(of_wave);
        Ok(Memory { panels, workers, wave, beside_bytes })
    }

    /// Adds to the result tiles the products with the operand tiles of one panel: all products before the key `end`
    /// that were not added yet. A key is the coordinates of the labels that both operands have. After the last panel,
    /// the result tiles are finished from their sums.
    fn panel<T: Float>(
        &self,
        supply: &OperandTiles<'_>,
        mut blocks: Vec<Block<T>>,
        end: u32,
        is_last: bool,
        memory: &Memory,
        watch: Option<Watch<'_>>,
    ) -> Result<Vec<Block<T>>, Error> {
        let Memory { panels, workers, wave, .. } = memory;
        for target in blocks.iter_mut().flatten() {
            let products = self.plan.products_of(target.entry);
            let next = target.range.end;
            let count = products[next..].partition_point(|product| self.plan.right(*product).key < end);
            target.range = next..next + count;
        }
        if *wave >= 2 {
            blocks = self.segments(supply, blocks, workers, *wave)?;
        }
        let add = |mut block: Block<T>| {
            let first = block.first().map_or(0, |target| target.position);
            failed_at(self.lowest, first, self.add(supply, &mut block, is_last))?;
            if is_last {
                // Tiles whose products were all added in earlier panels.
                let mut open = block.iter_mut().filter(|target| target.done.is_none());
                open.try_for_each(|target| self.finish(target))?;
            } else if !panels.cuts_segments {
                // The next panel begins other segments, so the sums are added now, and no second sum of each tile waits.
                block.iter_mut().for_each(close);
            }
            Ok(block)
        };
        workers.watched(blocks, work, add, watch)
    }

    /// Adds to the result tiles the products of a few blocks, by several threads per block: `wave` segments (ranges of
    /// the terms) are summed at once. If the panel has only one segment, nothing is added here, and one task per block
    /// adds its products later.
    fn segments<T: Float>(
        &self,
        supply: &OperandTiles<'_>,
        mut blocks: Vec<Block<T>>,
        workers: &Workers,
        wave: usize,
    ) -> Result<Vec<Block<T>>, Error> {
        let mut numbers: Vec<u32> = Vec::new();
        for target in blocks.iter().flatten() {
            let products = &self.plan.products_of(target.entry)[target.range.clone()];
            numbers
                .extend(products.chunk_by(|a, b| self.segment(*a) == self.segment(*b)).map(|of| self.segment(of[0])));
            numbers.sort_unstable();
            numbers.dedup();
        }
        if numbers.len() < 2 {
            return Ok(blocks);
        }
        for wave in numbers.chunks(wave) {
            let mut work = Vec::new();
            for segment in wave {
                for (at, block) in blocks.iter_mut().enumerate() {
                    let part: Block<T> = block.iter_mut().filter_map(|target| self.split(target, *segment)).collect();
                    work.push((at, part));
                }
            }
            let made = workers.run(
                work,
                |(_, part)| self::work(part),
                |(at, mut part)| {
                    let first = part.first().map_or(0, |target| target.position);
                    failed_at(self.lowest, first, self.add(supply, &mut part, false))?;
                    Ok((at, part))
                },
            )?;
            for (at, part) in made {
                let mut parts = part.into_iter().peekable();
                for target in &mut blocks[at] {
                    if let Some(part) = parts.next_if(|part| part.position == target.position) {
                        if part.segment != target.segment {
                            close(target);
                        }
                        (target.segment, target.part) = (part.segment, part.part);
                    }
                }
            }
        }
        Ok(blocks)
    }

    /// Splits the products of one segment off a result tile, into a target of their own. `None` if the tile's next
    /// products do not belong to this segment.
    fn split<T: Float>(&self, target: &mut Target<T>, segment: u32) -> Option<Target<T>> {
        let products = &self.plan.products_of(target.entry)[target.range.clone()];
        let count = products.iter().take_while(|product| self.segment(**product) == segment).count();
        if count == 0 {
            return None;
        }
        let (start, end) = (target.range.start, target.range.start + count);
        target.range.start = end;
        let part = if target.segment == segment { target.part.take() } else { None };
        Some(Target {
            extents: target.extents.clone(),
            packed: target.packed.clone(),
            range: start..end,
            segment,
            part,
            sum: None,
            done: None,
            ..*target
        })
    }

    fn segment(&self, product: crate::product::gustavson::TileProduct) -> u32 {
        self.plan.right(product).segment
    }

    /// Adds to each result tile of a block the products that come next in the order of its sum. If `is_last` is true, a
    /// tile is finished, with its norm, as soon as its last product was added, while its elements are still in the
    /// first-level cache.
    fn add<T: Float>(&self, supply: &OperandTiles<'_>, block: &mut [Target<T>], is_last: bool) -> Result<(), Error> {
        let mut jobs = Vec::with_capacity(block.iter().map(|target| target.range.len()).sum());
        for (target, of) in (0..).zip(&mut *block) {
            let products = &self.plan.products_of(of.entry)[of.range.clone()];
            jobs.extend(products.iter().map(|product| Job { right: product.right, target, left: product.left }));
        }
        // The products of each target are in this order already.
        jobs.sort_unstable_by_key(|job| (job.right, job.target));
        let count = jobs.len();
        for Job { right, target, left } in jobs {
            let right = self.plan.right[right as usize];
            let target = &mut block[target as usize];
            if target.segment != right.segment {
                // A task of many segments is long, so it checks whether the evaluation was ended.
                self.workers.check()?;
                close(target);
                target.segment = right.segment;
            }
            let tiles = supply.tile(0, left as usize).zip(supply.tile(1, right.position as usize));
            let Some((left, right)) = tiles else {
                return Err(Error::tensors(Kind::Evaluation, "a tile of an operand was not made"));
            };
            let adds = target.part.is_some();
            let part = match &mut target.part {
                Some(part) => part,
                none => none.insert(self.workers.memory(&target.packed)?),
            };
            self.kernel.multiply(
                (left.elements::<T>(), left.extents()),
                (right.elements::<T>(), right.extents()),
                (part.elements_mut(), &target.packed),
                adds,
                self.matrices,
            )?;
            target.range.start += 1;
            if is_last && target.range.is_empty() {
                self.finish(target)?;
            }
        }
        self.workers.advance(count);
        Ok(())
    }

    /// Finishes a result tile: adds its last segment, brings the axes into their order, and computes the norm.
    fn finish<T: Float>(&self, target: &mut Target<T>) -> Result<(), Error> {
        close(target);
        let Some(sum) = target.sum.take() else {
            return Err(Error::tensors(Kind::Evaluation, "a tile of a result has no products"));
        };
        let Some(order) = &self.kernel.result.order else {
            let norm = norm(sum.elements());
            target.done = Some((sum.into_tile(&target.extents)?, norm));
            return Ok(());
        };
        let mut memory = self.workers.memory::<T>(&target.extents)?;
        let strides = |extents: &[usize]| -> Vec<isize> {
            (0..extents.len()).map(|axis| volume(&extents[axis + 1..]).cast_signed()).collect()
        };
        let (from, to) = (strides(&target.packed), strides(&target.extents));
        let axes = order.iter().enumerate().map(|(at, axis)| CopiedAxis {
            extent: target.packed[at],
            from: from[at],
            to: to[*axis],
        });
        copy_axes(sum.elements(), 0, memory.elements_mut(), &axes.collect::<Vec<_>>());
        let norm = norm(memory.elements());
        target.done = Some((memory.into_tile(&target.extents)?, norm));
        Ok(())
    }
}

/// Completes the current segment of a result tile: adds its sum to the sum of the earlier segments.
fn close<T: Float>(target: &mut Target<T>) {
    let Some(part) = target.part.take() else { return };
    match &mut target.sum {
        // The first segment is not added to anything.
        none @ None => *none = Some(part),
        Some(sum) => {
            let pairs = sum.elements_mut().iter_mut().zip(part.elements());
            pairs.for_each(|(sum, part)| *sum = *sum + *part);
        }
    }
}

/// An estimate of the work for the next products of a block: for each result tile, its elements times its products.
fn work<T: Float>(block: &Block<T>) -> u64 {
    block.iter().map(|target| (target.range.len() as u64).saturating_mul(volume(&target.extents) as u64)).sum()
}

fn volume(extents: &[usize]) -> usize {
    extents.iter().product()
}
