//! Tiles of operands that have to be made for a product: those of lazy tensors, and those whose axes are not in an order that matrices have.
//! Each has one coordinate of what both operands have, its *key*, so a product that goes through the keys in order makes each tile once and
//! needs it no longer behind the key. A *panel* is a range of keys whose tiles are held together; how wide panels are is decided by memory.

use crate::SymbolicProduct;
use crate::kernel::{Arrangement, TileKernel};
use crate::tasks::Workers;
use crate::tile::Tile;
use crate::tiled::{Tiled, bytes_of};
use cembra_value::Error;
use std::ops::Range;

/// The most bytes of tiles that are held together, unless those of one key have more: wider panels would not be faster.
const PANEL_BYTES: usize = 1 << 27;

/// One operand. Those whose tiles are stored as matrices have them need nothing made.
struct Operand<'o> {
    tiled: &'o Tiled,
    arrangement: &'o Arrangement,
    /// The tiles that are made at the moment.
    made: Vec<Option<Tile>>,
}

/// A tile that has to be made, for one of the two operands.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Need {
    key: u32,
    operand: u8,
    position: u32,
}

/// What a product takes of its operands.
pub(crate) struct Supply<'o> {
    operands: [Operand<'o>; 2],
    /// In the order of keys.
    needs: Vec<Need>,
}

/// The keys whose tiles are held together, and whether one of the panels ends within a segment of sums.
pub(crate) struct Panels {
    pub(crate) ends: Vec<u32>,
    pub(crate) cuts_segments: bool,
    /// The bytes of the tiles of the largest panel.
    pub(crate) most_bytes: usize,
}

impl<'o> Supply<'o> {
    pub(crate) fn of(plan: &SymbolicProduct, operands: [&'o Tiled; 2], kernel: &'o TileKernel) -> Supply<'o> {
        let [left, right] = [0, 1].map(|of: usize| {
            let (tiled, arrangement) = (operands[of], &kernel.operands[of]);
            let is_ready = !tiled.is_lazy() && arrangement.order.is_none();
            Operand { tiled, arrangement, made: vec![None; if is_ready { 0 } else { tiled.shape().len() }] }
        });
        let mut needs = Vec::new();
        for (of, operand) in [(0, &left), (1, &right)] {
            let mut is_needed = vec![false; operand.made.len()];
            if is_needed.is_empty() {
                continue;
            }
            for product in plan.all_products() {
                let tile = plan.right(*product);
                let position = if of == 0 { product.left } else { tile.position };
                if !std::mem::replace(&mut is_needed[position as usize], true) {
                    needs.push(Need { key: tile.key, operand: of, position });
                }
            }
        }
        needs.sort_unstable();
        Supply { operands: [left, right], needs }
    }

    /// The bytes of a tile.
    fn bytes(&self, need: Need) -> usize {
        let tiled = self.operands[usize::from(need.operand)].tiled;
        bytes_of(tiled.scalar_type(), tiled.tiling().volume(tiled.shape().tiles()[need.position as usize]))
    }

    /// The most bytes that tiles of one key take, and which operands they are of.
    pub(crate) fn least_bytes(&self) -> (usize, [bool; 2]) {
        let of_key = |needs: &[Need]| {
            let bytes = needs.iter().fold(0, |bytes: usize, need| bytes.saturating_add(self.bytes(*need)));
            (bytes, [0, 1].map(|of| needs.iter().any(|need| need.operand == of)))
        };
        self.needs.chunk_by(|a, b| a.key == b.key).map(of_key).max().unwrap_or_default()
    }

    /// The most bytes that a thread has beside the tile that it makes: those of a lazy tile that is turned.
    pub(crate) fn making_bytes(&self) -> usize {
        let is_turned = |need: &&Need| {
            let Operand { tiled, arrangement, .. } = &self.operands[usize::from(need.operand)];
            tiled.is_lazy() && arrangement.order.is_some()
        };
        self.needs.iter().filter(is_turned).map(|need| self.bytes(*need)).max().unwrap_or(0)
    }

    /// Panels of at most so many bytes, or of one key. They end where segments of sums do, unless a segment has more bytes.
    pub(crate) fn panels(&self, plan: &SymbolicProduct, most_bytes: usize) -> Panels {
        let most = most_bytes.min(PANEL_BYTES);
        let segments = plan.segments_of_keys();
        let bytes = |needs: &[Need]| needs.iter().fold(0, |bytes: usize, need| bytes.saturating_add(self.bytes(*need)));
        let keys: Vec<(u32, usize)> =
            self.needs.chunk_by(|a, b| a.key == b.key).map(|needs| (needs[0].key, bytes(needs))).collect();
        let mut panels = Panels { ends: Vec::new(), cuts_segments: false, most_bytes: 0 };
        let mut start = 0;
        while start < keys.len() {
            let (mut end, mut held) = (start + 1, keys[start].1);
            while end < keys.len() && held.saturating_add(keys[end].1) <= most {
                held = held.saturating_add(keys[end].1);
                end += 1;
            }
            if end < keys.len() {
                let is_cut = |at: &usize| segments[keys[*at].0 as usize] != segments[keys[*at - 1].0 as usize];
                match (start + 1..=end).rev().find(is_cut) {
                    Some(cut) => end = cut,
                    None => panels.cuts_segments = true,
                }
                panels.ends.push(keys[end].0);
            }
            let held = keys[start..end].iter().fold(0, |bytes: usize, key| bytes.saturating_add(key.1));
            panels.most_bytes = panels.most_bytes.max(held);
            start = end;
        }
        panels.ends.push(segments.len() as u32);
        panels
    }

    /// Makes the tiles of a panel of keys.
    ///
    /// # Errors
    /// That of the first tile, by keys, that cannot be made.
    pub(crate) fn make(&mut self, panel: Range<u32>, workers: &Workers) -> Result<(), Error> {
        let needs: Vec<Need> = self.within(panel).to_vec();
        let tiles = workers.run(
            needs.clone(),
            |_| 1,
            |need| {
                let Operand { tiled, arrangement, .. } = &self.operands[usize::from(need.operand)];
                let tile = tiled.tile_at(need.position as usize)?;
                match &arrangement.order {
                    None => Ok(tile),
                    Some(order) => Tile::of(&tile.tensor().transposed(order)?),
                }
            },
        )?;
        for (need, tile) in needs.iter().zip(tiles) {
            self.operands[usize::from(need.operand)].made[need.position as usize] = Some(tile);
        }
        Ok(())
    }

    /// Drops the tiles of a panel.
    pub(crate) fn drop_tiles(&mut self, panel: Range<u32>) {
        for need in self.within(panel).to_vec() {
            self.operands[usize::from(need.operand)].made[need.position as usize] = None;
        }
    }

    fn within(&self, panel: Range<u32>) -> &[Need] {
        let place = |key: u32| self.needs.partition_point(|need| need.key < key);
        &self.needs[place(panel.start)..place(panel.end)]
    }

    /// A tile of an operand as the kernel takes it; none if it was not made.
    #[inline]
    pub(crate) fn tile(&self, operand: usize, position: usize) -> Option<&Tile> {
        let Operand { tiled, made, .. } = &self.operands[operand];
        match made.get(position) {
            Some(made) => made.as_ref(),
            None => tiled.stored_at(position),
        }
    }
}
