//! Options of evaluations on tiled tensors: the threshold for small tiles, the segments in which sums are added, and limits that are checked before
//! memory is allocated.

use crate::shape::sparse::{MOST_TILES, Screening};
use crate::tiled::tile::{TILE_BYTES, check_float};
use cembra_runtime::Scalar;
use cembra_value::Error;
use cembra_value::tensor::TensorErrorKind as Kind;

/// The number of bytes of tiles and plans, without elements, up to which they do not count against the memory limit. So
/// the limit of a small evaluation applies to elements alone.
const UNCOUNTED_BYTES: usize = 32 << 20;

/// The rule that cuts the sum for each result element into segments, which are added separately. The tiles of the
/// summed labels, in their order, belong to one segment until the segment has `elements` terms or `tiles` tiles.
/// Present and absent tiles count, but tiles without elements do not. If several labels are summed, they are iterated
/// in the order of the left operand, the last fastest. A segment also ends before each 1,024th tile. So all results are
/// cut at the same places, and the bits of a sum depend neither on threads nor on which results are computed together.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Segment {
    /// The number of terms in an element's sum at which a segment ends: 8,192 by default.
    pub elements: usize,
    /// The number of tiles at which a segment ends: 256 by default. With fewer tiles per segment, sparse products of
    /// small tiles have more segments than threads need for their work. Such a product reads its operands more often: a
    /// task holds the sums of two segments, so it computes fewer result tiles at once.
    pub tiles: usize,
}

impl Default for Segment {
    fn default() -> Self {
        Segment { elements: 8192, tiles: 256 }
    }
}

/// Options of evaluations on tiled tensors. All limits are checked before memory is allocated.
///
/// ```
/// use cembra_tiles::{Options, Segment};
///
/// let options = Options::default().threshold(1e-8).segment(Segment { elements: 4096, tiles: 32 });
/// # let _ = options;
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    threshold: Option<f64>,
    is_screened: bool,
    pub(crate) segment: Segment,
    most_tiles: usize,
    pub(crate) most_products: u64,
    pub(crate) most_bytes: usize,
    /// The bytes that were counted so far for plans and tiles of other values, without their elements.
    /// [`counting`](Options::counting) adds to them.
    pub(crate) own_bytes: usize,
    pub(crate) block_bytes: usize,
    pub(crate) pool_bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            threshold: None,
            is_screened: true,
            segment: Segment::default(),
            most_tiles: MOST_TILES,
            most_products: 1 << 28,
            most_bytes: usize::MAX,
            own_bytes: 0,
            block_bytes: 1 << 20,
            pool_bytes: 1 << 28,
        }
    }
}

impl Options {
    /// Sets the threshold: the smallest norm of a present tile, which is an absolute number. A norm is the root of the sum of squares of the tile's
    /// elements, divided by their number. The default is the machine epsilon of the element type: the distance from 1 to the next number.
    #[must_use]
    pub const fn threshold(self, threshold: f64) -> Options {
        Options { threshold: Some(threshold), ..self }
    }

    /// Sets whether tiles whose estimated norms are below the threshold are left out: true by default.
    #[must_use]
    pub const fn screen(self, screen: bool) -> Options {
        Options { is_screened: screen, ..self }
    }

    /// Sets the rule that cuts sums into segments, which are summed separately.
    #[must_use]
    pub const fn segment(self, segment: Segment) -> Options {
        Options { segment, ..self }
    }

    /// Sets the most present tiles that a result may have: 16 Mi by default.
    #[must_use]
    pub const fn most_tiles(self, most: usize) -> Options {
        Options { most_tiles: most, ..self }
    }

    /// Sets the most products of two tiles that a plan may visit: 2^28 by default. Products for result tiles that are
    /// then left out count, too. Each product takes 8 bytes of the plan until it is computed.
    #[must_use]
    pub const fn most_products(self, most: u64) -> Options {
        Options { most_products: most, ..self }
    }

    /// Sets the memory limit of an evaluation, in bytes.
    pub(crate) const fn most_bytes(self, most: usize) -> Options {
        Options { most_bytes: most, ..self }
    }

    /// Sets the approximate size, in bytes, of the result tiles that one task computes together: 1 MiB by default, the
    /// size of a second-level cache. Tasks of products are larger if most operand tiles are absent. The setting changes
    /// no bit of a result.
    #[must_use]
    pub const fn block_bytes(self, bytes: usize) -> Options {
        Options { block_bytes: bytes, ..self }
    }

    /// Sets the most memory, in bytes, that an evaluator retains from dropped results to use it for new ones: 256 MiB
    /// by default.
    #[must_use]
    pub const fn pool_bytes(self, bytes: usize) -> Options {
        Options { pool_bytes: bytes, ..self }
    }

    /// Returns the rule that decides which tiles with elements of type `scalar` are present.
    ///
    /// # Errors
    /// If tiles cannot have elements of this type, or the threshold is negative or NaN.
    pub fn screening(&self, scalar: Scalar) -> Result<Screening, Error> {
        check_float(scalar)?;
        let epsilon = if scalar == Scalar::Float32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
        let threshold = self.threshold.unwrap_or(epsilon);
        // A result cannot have more tiles than there are bytes for.
        let most_tiles = self.most_tiles.min(self.own_room() / TILE_BYTES);
        Screening { threshold, most_tiles }.check()?;
        Ok(Screening { threshold: if self.is_screened { threshold } else { 0.0 }, most_tiles })
    }

    /// Returns the options for an evaluation during which other tensors with `tiles` stored tiles in total exist. The
    /// bytes of these tiles, without their elements, count against the memory limit.
    ///
    /// # Errors
    /// If the memory limit does not suffice for these tiles.
    pub fn beside_tiles(self, tiles: usize) -> Result<Options, Error> {
        self.counting(tiles.saturating_mul(TILE_BYTES), || format!("a list of {tiles} tiles"))
    }

    /// Returns the options with `more` bytes, in addition to elements, counted against the memory limit. `what` returns
    /// the name of the things that take the bytes, for the error.
    ///
    /// # Errors
    /// If the memory limit does not suffice.
    pub(crate) fn counting(self, more: usize, what: impl FnOnce() -> String) -> Result<Options, Error> {
        let counted = |bytes: usize| bytes.saturating_sub(UNCOUNTED_BYTES);
        let own_bytes = self.own_bytes.saturating_add(more);
        let counted = counted(own_bytes) - counted(self.own_bytes);
        let Some(most_bytes) = self.most_bytes.checked_sub(counted) else {
            let (what, missing) = (what(), counted - self.most_bytes);
            let message = format!(
                "{what} takes {more} bytes besides elements, which exceeds the memory limit by {missing} bytes"
            );
            let error = Error::tensors(Kind::Limit, message);
            return Err(error.hint("make larger tiles, raise the threshold, or raise `most_bytes`"));
        };
        Ok(Options { most_bytes, own_bytes, ..self })
    }

    /// The most bytes that tiles and plans may still take in addition to elements.
    pub(crate) const fn own_room(&self) -> usize {
        self.most_bytes.saturating_add(UNCOUNTED_BYTES.saturating_sub(self.own_bytes))
    }

    /// Formats the options that affect results, for the comparison between ranks.
    pub(crate) fn of_results(&self) -> String {
        let Options { threshold, is_screened, segment, most_tiles, most_products, .. } = self;
        let threshold = threshold.map_or_else(|| "by type".to_owned(), |threshold| threshold.to_string());
        format!(
            "threshold {threshold}, screened {is_screened}, segments of {} elements and {} tiles, at most {most_tiles} tiles and {most_products} \
             products",
            segment.elements, segment.tiles
        )
    }
}
