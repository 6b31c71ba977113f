//! Operand tiles that must be prepared for a product of tiled tensors: tiles of lazy tensors are computed, tiles of
//! other ranks are received, and the axes of some tiles are permuted for a matrix product. A tile's *key* is its
//! coordinates along the labels that both operands have. A product processes the keys in order, so it computes each
//! operand tile once, and drops it after its key. A *panel* is a range of keys whose tiles are in memory together; the
//! memory limit decides how many keys a panel has. Tiles that other ranks own are received panel by panel, too.

use crate::SymbolicProduct;
use crate::distribution::{Parcel, Traffic};
use crate::product::grids::Readers;
use crate::product::gustavson::TileProduct;
use crate::product::kernel::{Arrangement, TileKernel};
use crate::tasks::Workers;
use crate::tiled::tile::Tile;
use crate::tiled::{Tiled, bytes_of};
use cembra_value::Error;
use std::ops::Range;

/// The most bytes of tiles that a panel (a range of keys) has, unless it is a single key. Larger panels would not be
/// faster.
const PANEL_BYTES: usize = 1 << 27;

/// An operand of a product, with the computed or received tiles that are in memory. If all its tiles are stored in the
/// axis order that matrix products need, none must be computed.
struct Operand<'o> {
    tiled: &'o Tiled,
    arrangement: &'o Arrangement,
    /// The computed tiles that are in memory at the moment, by position among the present tiles; empty if no tiles must be computed.
    made: Vec<Option<Tile>>,
}

/// An operand tile that must be computed or received for a product, with its key (coordinates of the labels that both
/// operands have) and the operand that it belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RequiredTile {
    key: u32,
    operand: u8,
    position: u32,
}

/// The operand tiles that a product of tiled tensors needs: stored tiles, and tiles that must be computed or received first.
pub(crate) struct OperandTiles<'o> {
    operands: [Operand<'o>; 2],
    /// The operand tiles that must be computed, in the order of keys (coordinates of the labels that both operands have).
    needs: Vec<RequiredTile>,
}

/// The assignment of a product's result tiles to the ranks that compute them.
#[derive(Clone, Copy)]
pub(crate) struct TileAssignment<'m> {
    /// The rank that computes each tile of the result, in the order of the result's present tiles.
    pub(crate) owners: &'m [u32],
    pub(crate) rank: u32,
    pub(crate) ranks: u64,
}

impl TileAssignment<'_> {
    /// Returns true if this rank computes the result tile at `position`.
    pub(crate) fn is_own(&self, position: usize) -> bool {
        self.owners[position] == self.rank
    }
}

/// The panels of a product. A panel is a range of keys (coordinates of the labels that both operands have) whose operand tiles are
/// in memory together; `ends` has the key after the last key of each panel. `cuts_segments` is true if a panel ends within a
/// segment: a range of terms that are summed separately.
pub(crate) struct Panels {
    pub(crate) ends: Vec<u32>,
    pub(crate) cuts_segments: bool,
    /// The number of bytes in the tiles of the largest panel; twice as many if two panels are in memory at once (`looks_ahead`).
    pub(crate) most_bytes: usize,
    /// True if the next panel's tiles arrive from other ranks while a panel is used.
    pub(crate) looks_ahead: bool,
}

impl<'o> OperandTiles<'o> {
    pub(crate) fn of(
        plan: &SymbolicProduct,
        operands: [&'o Tiled; 2],
        kernel: &'o TileKernel,
        makers: Option<TileAssignment<'_>>,
    ) -> OperandTiles<'o> {
        let [left, right] = [0, 1].map(|of: usize| {
            let (tiled, arrangement) = (operands[of], &kernel.operands[of]);
            let count = if is_ready(tiled, arrangement) { 0 } else { tiled.shape().len() };
            Operand { tiled, arrangement, made: vec![None; count] }
        });
        let mut needs = Vec::new();
        for (of, operand) in [(0, &left), (1, &right)] {
            let mut is_needed = vec![false; operand.made.len()];
            if is_needed.is_empty() {
                continue;
            }
            let mut need = |product: &TileProduct| {
                let tile = plan.right(*product);
                let position = if of == 0 { product.left } else { tile.position };
                if !std::mem::replace(&mut is_needed[position as usize], true) && operand.has_to_come(position) {
                    needs.push(RequiredTile { key: tile.key, operand: of, position });
                }
            };
            match makers {
                None => plan.products.iter().for_each(need),
                Some(makers) => {
                    let own = plan.entries_with_positions().filter(|(_, position)| makers.is_own(*position));
                    own.for_each(|(entry, _)| plan.products_of(entry).iter().for_each(&mut need));
                }
            }
        }
        needs.sort_unstable();
        OperandTiles { operands: [left, right], needs }
    }

    /// The bytes that lists with an entry per operand tile take. An operand whose tiles can all be used as they are stored needs no
    /// lists.
    pub(crate) fn own_bytes(operands: [&Tiled; 2], kernel: &TileKernel) -> usize {
        let each = size_of::<Option<Tile>>() + size_of::<RequiredTile>() + size_of::<bool>();
        let is_made = |of: &usize| !is_ready(operands[*of], &kernel.operands[*of]);
        [0, 1].iter().filter(|of| is_made(of)).map(|of| operands[*of].shape().len() * each).sum()
    }

    /// The size in bytes of a tile that must be computed or received.
    fn bytes(&self, need: RequiredTile) -> usize {
        let tiled = self.operands[usize::from(need.operand)].tiled;
        bytes_of(tiled.scalar_type(), tiled.tiling().volume(tiled.shape().tiles()[need.position as usize]))
    }

    /// Returns the largest number of bytes that the computed and received tiles of a single key take. A key is the
    /// coordinates of the labels that both operands have. Also returns, for each operand, whether some of these tiles
    /// belong to it.
    pub(crate) fn least_bytes(&self) -> (usize, [bool; 2]) {
        let of_key = |needs: &[RequiredTile]| {
            let bytes = needs.iter().fold(0, |bytes: usize, need| bytes.saturating_add(self.bytes(*need)));
            (bytes, [0, 1].map(|of| needs.iter().any(|need| need.operand == of)))
        };
        self.needs.chunk_by(|a, b| a.key == b.key).map(of_key).max().unwrap_or_default()
    }

    /// The most bytes that a thread needs besides the tile that it makes: the size of the largest tile that is computed or received
    /// first, and then copied with permuted axes; 0 if there is none.
    pub(crate) fn making_bytes(&self) -> usize {
        let is_turned = |need: &&RequiredTile| {
            let Operand { tiled, arrangement, .. } = &self.operands[usize::from(need.operand)];
            (tiled.is_lazy() || tiled.is_distributed()) && arrangement.order.is_some()
        };
        self.needs.iter().filter(is_turned).map(|need| self.bytes(*need)).max().unwrap_or(0)
    }

    /// Splits the keys of a product (coordinates of the labels that both operands have) into panels. The operand tiles of a panel take at most
    /// `most_bytes` bytes, or are the tiles of a single key. A panel ends at the end of a segment (a range of terms that are summed separately),
    /// unless the tiles of the segment take more bytes than a panel may. If tiles arrive from other ranks, and no single key needs more than half of
    /// `most_bytes`, a panel takes at most this half, so that the tiles of the next panel can arrive while a panel is used.
    pub(crate) fn panels(&self, plan: &SymbolicProduct, most_bytes: usize) -> Panels {
        let half = most_bytes / 2;
        let looks_ahead =
            self.operands.iter().any(|operand| operand.tiled.is_distributed()) && self.least_bytes().0 <= half;
        let most = if looks_ahead { half } else { most_bytes }.min(PANEL_BYTES);
        let segments = plan.segments_of_keys();
        let bytes =
            |needs: &[RequiredTile]| needs.iter().fold(0, |bytes: usize, need| bytes.saturating_add(self.bytes(*need)));
        let keys: Vec<(u32, usize)> =
            self.needs.chunk_by(|a, b| a.key == b.key).map(|needs| (needs[0].key, bytes(needs))).collect();
        let mut panels = Panels { ends: Vec::new(), cuts_segments: false, most_bytes: 0, looks_ahead };
        let mut start = 0;
        while start < keys.len() {
            let (mut end, mut held) = (start + 1, keys[start].1);
            while end < keys.len() && held.saturating_add(keys[end].1) <= most {
                held = held.saturating_add(keys[end].1);
                end += 1;
            }
            if end < keys.len() {
                let segment = |at: usize| segments[keys[at].0 as usize];
                let is_cut = |at: &usize| segment(*at) != segment(*at - 1);
                if let Some(cut) = (start + 1..=end).rev().find(is_cut) {
                    end = cut;
                    // Keys of the segment that need no tile may be in front.
                    let before = segments[..keys[end].0 as usize].iter().rev();
                    let own = before.take_while(|of_key| **of_key == segment(end)).count();
                    panels.ends.push(keys[end].0 - own as u32);
                } else {
                    panels.cuts_segments = true;
                    panels.ends.push(keys[end].0);
                }
            }
            let held = keys[start..end].iter().fold(0, |bytes: usize, key| bytes.saturating_add(key.1));
            panels.most_bytes = panels.most_bytes.max(held);
            start = end;
        }
        panels.ends.push(segments.len() as u32);
        if looks_ahead && panels.ends.len() > 1 {
            panels.most_bytes = panels.most_bytes.saturating_mul(2);
        }
        panels
    }

    /// Stores a tile that arrived from another rank.
    pub(crate) fn insert(&mut self, parcel: Parcel, tile: Tile) {
        self.operands[parcel.operand as usize].made[parcel.position as usize] = Some(tile);
    }

    /// Computes the operand tiles whose keys (coordinates of the labels that both operands have) are in the range
    /// `panel`. Tiles of other ranks must have arrived.
    ///
    /// # Errors
    /// The error of the first tile, in the order of keys, that cannot be computed.
    pub(crate) fn make(&mut self, panel: Range<u32>, workers: &Workers) -> Result<(), Error> {
        let is_made = |need: &&RequiredTile| {
            let Operand { arrangement, made, .. } = &self.operands[usize::from(need.operand)];
            made[need.position as usize].is_some() && arrangement.order.is_none()
        };
        let needs: Vec<RequiredTile> = self.within(panel).iter().filter(|need| !is_made(need)).copied().collect();
        let tiles = workers.run(
            needs.clone(),
            |_| 1,
            |need| {
                let Operand { tiled, arrangement, made } = &self.operands[usize::from(need.operand)];
                let position = need.position as usize;
                let tile = made[position].clone().map_or_else(|| tiled.tile_at(position), Ok)?;
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

    /// Drops the computed and received operand tiles whose keys (coordinates of the labels that both operands have) are in `panel`.
    pub(crate) fn drop_tiles(&mut self, panel: Range<u32>) {
        for need in self.within(panel).to_vec() {
            self.operands[usize::from(need.operand)].made[need.position as usize] = None;
        }
    }

    /// The tiles that must be computed or received for a panel (a range of keys).
    fn within(&self, panel: Range<u32>) -> &[RequiredTile] {
        let place = |key: u32| self.needs.partition_point(|need| need.key < key);
        &self.needs[place(panel.start)..place(panel.end)]
    }

    /// Returns an operand's tile, packed in the order of axes that the kernel needs; `None` if it was not computed.
    #[inline]
    pub(crate) fn tile(&self, operand: usize, position: usize) -> Option<&Tile> {
        let Operand { tiled, arrangement, made } = &self.operands[operand];
        match made.get(position) {
            Some(Some(made)) => Some(made),
            // A tile that is stored here in an order that the kernel takes.
            _ if arrangement.order.is_none() => tiled.stored_at(position),
            _ => None,
        }
    }
}

/// Returns true if all tiles of an operand are stored on this rank, in the axis order that the kernel needs.
fn is_ready(tiled: &Tiled, arrangement: &Arrangement) -> bool {
    !tiled.is_lazy() && !tiled.is_distributed() && arrangement.order.is_none()
}

impl Operand<'_> {
    /// Returns true if a tile must be computed or received, because it is not stored on this rank in the axis order
    /// that the kernel needs.
    fn has_to_come(&self, position: u32) -> bool {
        self.arrangement.order.is_some() || self.tiled.stored_at(position as usize).is_none()
    }
}

/// Returns the tiles that this rank sends and receives for a product. They are exchanged in the order of their keys, the coordinates of the
/// labels that both operands have.
pub(crate) fn traffic_of(plan: &SymbolicProduct, operands: [&Tiled; 2], makers: TileAssignment<'_>) -> Traffic {
    let mut readers = operands.map(|operand| Readers::new(operand, makers.ranks));
    // The key of each tile of a distributed operand that is read.
    let mut keys =
        operands.map(|operand| vec![0_u32; if operand.is_distributed() { operand.shape().len() } else { 0 }]);
    for (entry, position) in plan.entries_with_positions() {
        for product in plan.products_of(entry) {
            let right = plan.right(*product);
            for (of, position_of) in [product.left, right.position].into_iter().enumerate() {
                readers[of].add(position_of, makers.owners[position]);
                if let Some(key) = keys[of].get_mut(position_of as usize) {
                    *key = right.key;
                }
            }
        }
    }
    let parcels = (0_u32..).zip(readers.iter().zip(&keys)).flat_map(|(operand, (readers, keys))| {
        readers.ranks().map(move |(position, peer)| Parcel { key: keys[position as usize], operand, position, peer })
    });
    Traffic::of(makers.rank, &operands, parcels)
}
