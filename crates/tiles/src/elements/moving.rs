//! Moves whole tensors between ranks: distributes their tiles by a map, or gathers them, so that each rank has all tiles. Also lists the
//! tiles of a distributed tensor that a rank has.

use crate::distribution::{Parcel, PlannedStep, Traffic, hash_of, shared_out};
use crate::link::Ranks;
use crate::tiled::spread::LocalTiles;
use crate::tiled::tile::{Float, Tile};
use crate::{Evaluator, Shape, TileMap, Tiled};
use cembra_value::Error;

impl Evaluator {
    /// Distributes the tiles of a tensor over the ranks by a map: tiles move from the ranks that have them to their new owners. If every
    /// rank has all tiles, each drops those that it does not own. Lazy tiles are computed by their owners. With a single rank the result is
    /// the same tensor, stored.
    ///
    /// # Errors
    /// If the map names ranks that do not exist, the memory limit does not suffice, a lazy tile cannot be computed, or another rank failed.
    pub fn distributed(&self, a: &Tiled, map: &TileMap) -> Result<Tiled, Error> {
        let workers = self.workers.clone();
        let Some(ranks) = workers.several() else { return self.materialized(a) };
        if a.is_lazy() {
            return self.clone().tile_map(map.clone()).materialized(a);
        }
        let (rank, owners) = (ranks.link().rank() as u32, map.owners(a.shape(), ranks.link().size())?);
        let whole = if a.is_distributed() {
            let readers = |at: usize| std::iter::once(owners[at]);
            self.moved(ranks, a, &owners, readers)?
        } else {
            a.clone()
        };
        let own = |(at, owner): (usize, &u32)| if *owner == rank { whole.stored_at(at).cloned() } else { None };
        let tiles = owners.iter().enumerate().map(own).collect();
        Ok(Tiled::of_spread(a.shape().clone(), a.scalar_type(), LocalTiles::new(owners, tiles)))
    }

    /// Returns the tensor with all its tiles on each rank. Lazy tiles are computed first, each by one rank.
    ///
    /// # Errors
    /// If the memory limit does not suffice, a lazy tile cannot be computed, or another rank failed.
    pub fn gathered(&self, a: &Tiled) -> Result<Tiled, Error> {
        let workers = self.workers.clone();
        let Some(ranks) = workers.several() else { return self.materialized(a) };
        if a.is_lazy() {
            return self.gathered(&self.materialized(a)?);
        }
        let Some(spread) = a.spread() else { return Ok(a.clone()) };
        let size = ranks.link().size() as u32;
        let whole = self.moved(ranks, a, spread.owners(), |_| 0..size)?;
        let tiles: Vec<Tile> = (0..a.shape().len()).filter_map(|at| whole.stored_at(at).cloned()).collect();
        Ok(Tiled::stored(a.shape().clone(), a.scalar_type(), tiles))
    }

    /// Returns the tile with the number `number`, on all ranks; `None` if the tile is absent. All ranks must request
    /// the same tile.
    ///
    /// # Errors
    /// The errors of [`gathered`](Evaluator::gathered).
    pub fn tile(&self, a: &Tiled, number: u64) -> Result<Option<Tile>, Error> {
        let Some(norm) = a.shape().norm(number) else { return Ok(None) };
        if !a.is_distributed() {
            return a.tile(number);
        }
        let one = Shape::of_sorted(a.tiling().clone(), vec![number], vec![norm]);
        self.gathered(&a.with_part_of_tiles(one))?.tile(number)
    }

    /// Returns the element at the index `element`, on all ranks; 0 in an absent tile. All ranks must request the same element.
    ///
    /// # Errors
    /// The errors of [`Tiled::get`] and of [`tile`](Evaluator::tile).
    pub fn get<T: Float>(&self, a: &Tiled, element: &[i64]) -> Result<T, Error> {
        if !a.is_distributed() {
            return a.get(element);
        }
        let number = a.tiling().tile_of(element).filter(|_| element.len() == a.tiling().rank());
        let one = |number: u64| Shape::of_sorted(a.tiling().clone(), vec![number], vec![f64::INFINITY]);
        match number {
            Some(number) => self.gathered(&a.masked(&one(number))?)?.get(element),
            // This is an error.
            None => a.get(element),
        }
    }

    /// Sends tiles to the ranks that read them, and returns the tensor with all tiles that this rank reads. `readers`
    /// returns the ranks that read the tile at a position.
    fn moved<R: Iterator<Item = u32>>(
        &self,
        ranks: &Ranks,
        a: &Tiled,
        owners: &[u32],
        readers: impl Fn(usize) -> R,
    ) -> Result<Tiled, Error> {
        let (workers, operands) = (self.workers.clone(), [a]);
        let parcels = (0..a.shape().len())
            .flat_map(|at| readers(at).map(move |peer| Parcel { key: 0, operand: 0, position: at as u32, peer }));
        let traffic = Traffic::of(ranks.link().rank() as u32, &operands, parcels);
        let bytes = traffic.incoming_bytes(&operands);
        let what = || "tiles that come from other ranks".to_owned();
        let hash = hash_of(("moved", 0), a.shape(), owners, &operands);
        let plan = workers.check_bytes(bytes, what).map(|()| PlannedStep { hash, traffic, own: () });
        let (made, _) =
            shared_out(&workers, ranks, &operands, plan, |(), exchange, _| Ok((exchange.all()?, Vec::new())))?;
        Ok(made.into_iter().next().unwrap_or_else(|| a.clone()))
    }
}

impl Tiled {
    /// Returns true if the tensor's tiles are distributed over ranks, so that each rank has only some of them.
    #[must_use]
    pub const fn is_distributed(&self) -> bool {
        self.spread().is_some()
    }

    /// The rank that owns the tile with the number `number`; `None` if the tile is absent, or if each rank has all
    /// tiles.
    #[must_use]
    pub fn owner(&self, number: u64) -> Option<usize> {
        let owners = self.spread()?.owners();
        Some(owners[self.shape().position(number)?] as usize)
    }

    /// Lists the stored tiles that this rank has, each with its number: all tiles if the tensor is not distributed, no tiles if the tensor is lazy.
    pub fn local_tiles(&self) -> impl Iterator<Item = (u64, &Tile)> {
        let numbers = self.shape().tiles().iter().enumerate();
        numbers.filter_map(|(at, number)| Some((*number, self.stored_at(at)?)))
    }
}
