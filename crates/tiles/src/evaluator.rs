//! Evaluations of one step over tiled tensors: a product by labels, or an operator on elements. The shape of a result is estimated first;
//! its tiles are made afterwards, and the result has their true norms. A tile whose estimate passed stays, however small its elements turned
//! out, until [`Tiled::truncate`].

use crate::algebra::{check_same_tilings, merge};
use crate::error::{caught, unlike_types};
use crate::numeric::multiply;
use crate::tile::{Float, Tile, TileMemory, with_float};
use crate::tiled::{Tiled, bytes_of, make_tiles};
use crate::{Options, Shape, SymbolicProduct};
use cembra_tensor::{Labels, MatrixProduct, PlainProduct};
use cembra_value::Error;
use cembra_value::tensor::{TensorErrorKind as Kind, check_room};
use std::sync::Arc;

/// Evaluates products, sums and functions of tiled tensors.
///
/// ```
/// use cembra_tiles::{Evaluator, MOST_TILES, Options, Shape, Tiled, Tiling, Tiling1};
///
/// let axis = Tiling1::blocked(4, 2)?;
/// let shape = Shape::dense(&Tiling::new([&axis, &axis])?, MOST_TILES)?;
/// let a = Tiled::from_fn(&shape, |at| if at[0] == at[1] { 2.0 } else { 0.0 })?;
/// let run = Evaluator::new(Options::default().threshold(1e-10));
/// // Zero tiles off the diagonal are present in `a`, and estimates leave their products out.
/// let square = run.product("ij,jk->ik", &a, &a)?;
/// assert_eq!(square.shape().tiles(), [0, 3]);
/// assert_eq!(square.get::<f64>(&[3, 3])?, 4.0);
/// # Ok::<(), cembra_value::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Evaluator {
    options: Options,
    matrices: Arc<dyn MatrixProduct>,
}

impl Evaluator {
    /// Evaluations with these options, whose products of matrices are plain loops.
    #[must_use]
    pub fn new(options: Options) -> Evaluator {
        Evaluator { options, matrices: Arc::new(PlainProduct) }
    }

    /// Computes products of matrices by this. Sums of products of tiles keep their order, so bits depend on it only within a tile.
    #[must_use]
    pub fn matrices(self, matrices: Arc<dyn MatrixProduct>) -> Evaluator {
        Evaluator { matrices, ..self }
    }

    /// The plan of a product, from shapes alone. No tile is made.
    ///
    /// # Errors
    /// Those of [`product`](Evaluator::product) but for the making of tiles.
    pub fn plan(&self, labels: &str, a: &Tiled, b: &Tiled, wanted: Option<&Shape>) -> Result<SymbolicProduct, Error> {
        if a.scalar_type() != b.scalar_type() {
            return Err(unlike_types(a.scalar_type(), b.scalar_type()));
        }
        let labels = Labels::parse(labels, &[a.tiling().rank(), b.tiling().rank()])?;
        SymbolicProduct::of(&labels, [a.shape(), b.shape()], wanted, a.scalar_type(), &self.options)
    }

    /// The product of two tensors by labels such as `ij,jk->ik`, summed over labels that the result does not have. Labels of both operands and
    /// the result are walked together.
    ///
    /// # Errors
    /// Labels do not fit the operands; a label is on one operand twice, or is summed and on one operand alone; axes with one label have two
    /// tilings; elements are of two types; there are too many tiles or products, or too many bytes of a result; or a lazy tile cannot be made.
    pub fn product(&self, labels: &str, a: &Tiled, b: &Tiled) -> Result<Tiled, Error> {
        self.run(&self.plan(labels, a, b, None)?, a, b)
    }

    /// The same, of which only the tiles of a shape are made: no tile of an operand is asked for that only others need. Nothing is left out by
    /// estimates.
    ///
    /// # Errors
    /// Those of [`product`](Evaluator::product), or the shape has another tiling than the result.
    pub fn product_within(&self, labels: &str, a: &Tiled, b: &Tiled, wanted: &Shape) -> Result<Tiled, Error> {
        self.run(&self.plan(labels, a, b, Some(wanted))?, a, b)
    }

    /// The product of the operands that a plan was made of.
    fn run(&self, plan: &SymbolicProduct, a: &Tiled, b: &Tiled) -> Result<Tiled, Error> {
        self.check_result(plan.shape(), a)?;
        with_float!(a.scalar_type(), T => multiply::<T>(plan, [a, b], &*self.matrices, self.options.bytes_of_blocks()))
    }

    /// The sum of two tensors of one tiling. A tile that one of them alone has is shared with it.
    ///
    /// # Errors
    /// Tilings or types of elements differ, there are too many tiles or bytes, or a lazy tile cannot be made.
    pub fn add(&self, a: &Tiled, b: &Tiled) -> Result<Tiled, Error> {
        let shape = a.shape().added(b.shape(), &self.options.screening(a.scalar_type())?)?;
        with_float!(a.scalar_type(), T => self.merged::<T>(shape, a, b, |a, b| a + b, |b| Ok(b.clone())))
    }

    /// The difference of two tensors of one tiling.
    ///
    /// # Errors
    /// Those of [`add`](Evaluator::add).
    pub fn subtract(&self, a: &Tiled, b: &Tiled) -> Result<Tiled, Error> {
        let shape = a.shape().added(b.shape(), &self.options.screening(a.scalar_type())?)?;
        with_float!(a.scalar_type(), T => self.merged::<T>(shape, a, b, |a, b| a - b, |b| mapped::<T>(b, |element| -element)))
    }

    /// The products of elements of two tensors of one tiling.
    ///
    /// # Errors
    /// Those of [`add`](Evaluator::add).
    pub fn hadamard(&self, a: &Tiled, b: &Tiled) -> Result<Tiled, Error> {
        let shape = a.shape().multiplied(b.shape(), &self.options.screening(a.scalar_type())?)?;
        with_float!(a.scalar_type(), T => self.merged::<T>(shape, a, b, |a, b| a * b, |b| Ok(b.clone())))
    }

    /// A factor, rounded to the type of the elements, times a tensor.
    ///
    /// # Errors
    /// There are too many bytes, or a lazy tile cannot be made.
    pub fn scale(&self, a: &Tiled, factor: f64) -> Result<Tiled, Error> {
        let shape = a.shape().scaled(factor, &self.options.screening(a.scalar_type())?)?;
        with_float!(a.scalar_type(), T => {
            let factor = T::of_f64(factor);
            self.of_each(shape, a, |tile| mapped::<T>(tile, |element| factor * element))
        })
    }

    /// A function of each element. If it makes 0 of 0 absent tiles stay absent; otherwise all tiles are present, and those that were absent
    /// have what the function makes of 0.
    ///
    /// # Errors
    /// Elements are of another type, there are too many tiles or bytes, the function panics, or a lazy tile cannot be made.
    pub fn map<T: Float>(&self, a: &Tiled, function: impl Fn(T) -> T) -> Result<Tiled, Error> {
        if a.scalar_type() != T::SCALAR {
            return Err(unlike_types(a.scalar_type(), T::SCALAR));
        }
        let screening = self.options.screening(a.scalar_type())?;
        let of_zero = caught("the function of elements", || Ok(function(T::default())))?;
        let shape = a.shape().of_map(of_zero == T::default(), screening.most_tiles)?;
        self.check_result(&shape, a)?;
        let mut made = Vec::with_capacity(shape.len());
        for (_, own, _) in merge(a.shape().tiles(), shape.tiles()) {
            let tile = own.map(|at| a.tile_at(at)).transpose()?;
            made.push(tile);
        }
        let mut own = made.into_iter();
        let tiles = make_tiles::<T>(&shape, |_, elements| {
            let Some(tile) = own.next().flatten() else {
                elements.fill(of_zero);
                return Ok(());
            };
            caught("the function of elements", || {
                let from = tile.elements::<T>();
                elements.iter_mut().zip(from).for_each(|(to, from)| *to = function(*from));
                Ok(())
            })
        })?;
        Ok(Tiled::with_true_norms(&shape, T::SCALAR, tiles))
    }

    /// The tiles of a shape from those of two operands: of both by a function of elements, of the first alone as they are, of the second
    /// alone by a function of tiles.
    fn merged<T: Float>(
        &self,
        shape: Shape,
        a: &Tiled,
        b: &Tiled,
        of_both: impl Fn(T, T) -> T,
        of_second: impl Fn(&Tile) -> Result<Tile, Error>,
    ) -> Result<Tiled, Error> {
        check_same_tilings(a.tiling(), b.tiling())?;
        if a.scalar_type() != b.scalar_type() {
            return Err(unlike_types(a.scalar_type(), b.scalar_type()));
        }
        self.check_result(&shape, a)?;
        let mut wanted = shape.tiles().iter().peekable();
        let mut tiles = Vec::with_capacity(shape.len());
        for (number, first, second) in merge(a.shape().tiles(), b.shape().tiles()) {
            if wanted.next_if_eq(&&number).is_none() {
                continue;
            }
            let tile = |of: &Tiled, at: Option<usize>| at.map(|at| of.tile_at(at)).transpose();
            tiles.push(match (tile(a, first)?, tile(b, second)?) {
                (Some(a), Some(b)) => {
                    let mut made = TileMemory::<T>::of_extents(a.extents())?;
                    let pairs = a.elements::<T>().iter().zip(b.elements::<T>());
                    made.elements_mut().iter_mut().zip(pairs).for_each(|(to, (a, b))| *to = of_both(*a, *b));
                    made.into_tile(a.extents())?
                }
                (Some(a), None) => a,
                (None, Some(b)) => of_second(&b)?,
                (None, None) => continue,
            });
        }
        Ok(Tiled::with_true_norms(&shape, T::SCALAR, tiles))
    }

    /// The tiles of a shape, each from the tile that a tensor has there.
    fn of_each(&self, shape: Shape, a: &Tiled, map: impl Fn(&Tile) -> Result<Tile, Error>) -> Result<Tiled, Error> {
        self.check_result(&shape, a)?;
        let part = a.with_part_of_tiles(shape);
        let tiles = part.tiles().map(|tile| map(&tile?.1)).collect::<Result<Vec<Tile>, Error>>()?;
        Ok(Tiled::with_true_norms(part.shape(), a.scalar_type(), tiles))
    }

    /// An error if the elements of a result would take more bytes than they may, or than there are.
    fn check_result(&self, shape: &Shape, like: &Tiled) -> Result<(), Error> {
        let bytes = bytes_of(like.scalar_type(), shape.present_elements());
        let most = self.options.byte_limit();
        if bytes > most {
            let message = format!(
                "a result of {} tiles takes {bytes} bytes: it may have {most}, so {} are missing",
                shape.len(),
                bytes - most
            );
            return Err(Error::tensors(Kind::Limit, message).hint("raise the threshold, or `most_bytes`"));
        }
        check_room(bytes)
    }
}

/// A tile of a function of each element.
fn mapped<T: Float>(tile: &Tile, function: impl Fn(T) -> T) -> Result<Tile, Error> {
    let mut made = TileMemory::<T>::of_extents(tile.extents())?;
    let from = tile.elements::<T>();
    made.elements_mut().iter_mut().zip(from).for_each(|(to, from)| *to = function(*from));
    made.into_tile(tile.extents())
}
