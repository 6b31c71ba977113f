//! Options of evaluations: what is screened, how sums are cut, and the limits that are compared before memory is taken.

use crate::shape::{MOST_TILES, Screening};
use crate::tile::check_float;
use cembra_runtime::Scalar;
use cembra_value::Error;

/// Where sums are cut: tiles of what is summed, in their order, are in one segment until it has so many terms or so many tiles. Tiles count
/// whether they are present or not, but for those without elements; several summed labels are walked in the order of the left operand,
/// the last the fastest; and a segment ends in front of each 1,024th tile. So all results are cut at the same places, and the bits of a
/// sum depend neither on threads nor on which results are made together.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Segment {
    /// The terms of each element's sum: 8,192 by default.
    pub elements: usize,
    /// The tiles: 256 by default. With fewer, sparse products of small tiles are cut where threads have enough to do without, and read their
    /// operands more often: blocks that hold the sums of two segments are smaller.
    pub tiles: usize,
}

impl Default for Segment {
    fn default() -> Self {
        Segment { elements: 8192, tiles: 256 }
    }
}

/// Options of evaluations. All limits are compared before memory is taken.
///
/// ```
/// use cembra_tiles::{Options, Segment};
///
/// let options = Options::default().threshold(1e-8).segment(Segment { elements: 4096, tiles: 32 }).most_bytes(4 << 30);
/// # let _ = options;
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    threshold: Option<f64>,
    is_screened: bool,
    segment: Segment,
    most_tiles: usize,
    most_products: u64,
    most_bytes: usize,
    block_bytes: usize,
    pool_bytes: usize,
    threads: usize,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            threshold: None,
            is_screened: true,
            segment: Segment::default(),
            most_tiles: MOST_TILES,
            most_products: 1 << 30,
            most_bytes: usize::MAX,
            block_bytes: 1 << 20,
            pool_bytes: 1 << 28,
            threads: 1,
        }
    }
}

impl Options {
    /// The least norm of a present tile, absolute and per element. The default is the distance from 1 to the next number of the type.
    #[must_use]
    pub const fn threshold(self, threshold: f64) -> Options {
        Options { threshold: Some(threshold), ..self }
    }

    /// Whether tiles whose estimates are below the threshold are left out: true by default.
    #[must_use]
    pub const fn screen(self, screen: bool) -> Options {
        Options { is_screened: screen, ..self }
    }

    /// Where sums are cut.
    #[must_use]
    pub const fn segment(self, segment: Segment) -> Options {
        Options { segment, ..self }
    }

    /// The most present tiles of a result: 16 Mi by default.
    #[must_use]
    pub const fn most_tiles(self, most: usize) -> Options {
        Options { most_tiles: most, ..self }
    }

    /// The most products of tiles that a plan looks at, those of results that are left out included: 2^30 by default.
    #[must_use]
    pub const fn most_products(self, most: u64) -> Options {
        Options { most_products: most, ..self }
    }

    /// The most bytes of memory that an evaluation takes, without a limit by default: the elements of its result, those of lazy tiles and of
    /// tiles that have to be packed in another order as far as they are held at once, and of sums that are not added yet. Where there is
    /// little, fewer tiles are held at once and fewer threads work. Stored operands, what the functions of a user take, and plans are not
    /// counted.
    #[must_use]
    pub const fn most_bytes(self, most: usize) -> Options {
        Options { most_bytes: most, ..self }
    }

    /// About how many bytes the result tiles have that are made together, as large as a cache of the second level: 1 MiB by default. Products have
    /// more where most operand tiles are absent. It changes no bit of a result.
    #[must_use]
    pub const fn block_bytes(self, bytes: usize) -> Options {
        Options { block_bytes: bytes, ..self }
    }

    /// How many threads of the pool of the process, or of that in which the caller runs, share an evaluation: 1 by default. It changes no bit
    /// of a result, and no error.
    #[must_use]
    pub const fn threads(self, threads: usize) -> Options {
        Options { threads, ..self }
    }

    /// The most bytes that an evaluator keeps of results that were dropped, to use them again: 256 MiB by default.
    #[must_use]
    pub const fn pool_bytes(self, bytes: usize) -> Options {
        Options { pool_bytes: bytes, ..self }
    }

    /// What decides which tiles of elements of a type are present.
    ///
    /// # Errors
    /// Tiles have no elements of the type, or the threshold is no number from 0 on.
    pub fn screening(&self, scalar: Scalar) -> Result<Screening, Error> {
        check_float(scalar)?;
        let epsilon = if scalar == Scalar::Float32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
        let threshold = self.threshold.unwrap_or(epsilon);
        Screening { threshold, most_tiles: self.most_tiles }.check()?;
        Ok(Screening { threshold: if self.is_screened { threshold } else { 0.0 }, most_tiles: self.most_tiles })
    }

    /// The options that decide results, as ranks compare them.
    pub(crate) fn of_results(&self) -> String {
        let Options { threshold, is_screened, segment, most_tiles, most_products, .. } = self;
        let threshold = threshold.map_or_else(|| "by type".to_owned(), |threshold| threshold.to_string());
        format!(
            "threshold {threshold}, screened {is_screened}, segments of {} elements and {} tiles, at most {most_tiles} tiles and {most_products} \
             products",
            segment.elements, segment.tiles
        )
    }

    pub(crate) const fn segments(&self) -> Segment {
        self.segment
    }

    pub(crate) const fn product_limit(&self) -> u64 {
        self.most_products
    }

    pub(crate) const fn byte_limit(&self) -> usize {
        self.most_bytes
    }

    pub(crate) const fn bytes_of_blocks(&self) -> usize {
        self.block_bytes
    }

    pub(crate) const fn bytes_of_pool(&self) -> usize {
        self.pool_bytes
    }

    pub(crate) const fn thread_count(&self) -> usize {
        self.threads
    }
}
