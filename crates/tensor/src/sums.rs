//! Reductions, an element of the result after the other. The positions of a sum are those of its reduced axes in ascending order, whatever
//! the layout; floats are added up in FLOAT64, in the order that is stated here.

use crate::{Axis, Data, Element, Error, ErrorKind, Layout, Reduction};
use cembra_runtime::CHAINS;

/// The positions of a block of sums.
const BLOCK: usize = 1 << 16;

/// In which order floats are added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    /// One after the other.
    InOrder,
    /// Up to 64 one after the other; more in blocks, position `i` of a block in chain `i` modulo 64.
    Chains,
}

impl Order {
    /// The order of a sum over some axes of a tensor of so many.
    pub(crate) fn of(axes: &[Axis], rank: usize) -> Order {
        if axes.iter().any(|axis| usize::from(*axis) + 1 == rank) { Order::Chains } else { Order::InOrder }
    }

    /// Combines numbers in this order, from a neutral one on.
    pub(crate) fn fold(self, values: &[f64], neutral: f64, combine: impl Fn(f64, f64) -> f64 + Copy) -> f64 {
        let in_order = |values: &[f64]| values.iter().copied().fold(neutral, combine);
        if self == Order::InOrder || values.len() <= CHAINS {
            return in_order(values);
        }
        let blocks = values.chunks(BLOCK).map(|block| {
            let mut chains = [neutral; CHAINS];
            for (at, value) in block.iter().enumerate() {
                chains[at % CHAINS] = combine(chains[at % CHAINS], *value);
            }
            let mut width = CHAINS;
            while width > 1 {
                width /= 2;
                for at in 0..width {
                    chains[at] = combine(chains[at], chains[at + width]);
                }
            }
            chains[0]
        });
        blocks.fold(neutral, combine)
    }
}

/// An element that can be reduced.
trait Reduced: Element {
    fn reduce(reduction: Reduction, order: Order, of: impl Iterator<Item = Self>) -> Option<Self>;
}

/// The smaller of two floats: a NaN wins, and -0 is below +0.
macro_rules! smaller {
    ($a:expr, $b:expr) => {{
        let (a, b) = ($a, $b);
        if a.is_nan() || a < b || (a == b && a.is_sign_negative()) { a } else { b }
    }};
}

macro_rules! floats {
    ($($ty:ty: |$wide:ident| $narrow:expr;)*) => { $(
        impl Reduced for $ty {
            fn reduce(reduction: Reduction, order: Order, of: impl Iterator<Item = Self>) -> Option<Self> {
                let narrow = |$wide: f64| -> $ty { $narrow };
                let fold = |of: &mut dyn Iterator<Item = f64>, neutral, combine: fn(f64, f64) -> f64| {
                    narrow(order.fold(&of.collect::<Vec<f64>>(), neutral, combine))
                };
                Some(match reduction {
                    Reduction::Sum => fold(&mut of.map(f64::from), 0.0, |a, b| a + b),
                    Reduction::Product => fold(&mut of.map(f64::from), 1.0, |a, b| a * b),
                    Reduction::Max => of.reduce(|a, b| -smaller!(-a, -b))?,
                    Reduction::Min => of.reduce(|a, b| smaller!(a, b))?,
                    Reduction::Any | Reduction::All => return None,
                })
            }
        }
    )* };
}

macro_rules! integers {
    ($($ty:ty)*) => { $(
        impl Reduced for $ty {
            fn reduce(reduction: Reduction, _: Order, of: impl Iterator<Item = Self>) -> Option<Self> {
                match reduction {
                    Reduction::Sum => Some(of.fold(0, <$ty>::wrapping_add)),
                    Reduction::Product => Some(of.fold(1, <$ty>::wrapping_mul)),
                    Reduction::Max => of.max(),
                    Reduction::Min => of.min(),
                    Reduction::Any | Reduction::All => None,
                }
            }
        }
    )* };
}

floats! {
    f32: |x| x as f32;
    f64: |x| x;
}
integers!(i32 i64);

impl Reduced for bool {
    fn reduce(reduction: Reduction, _: Order, mut of: impl Iterator<Item = Self>) -> Option<Self> {
        match reduction {
            Reduction::Any => Some(of.any(|element| element)),
            Reduction::All => Some(of.all(|element| element)),
            Reduction::Sum | Reduction::Product | Reduction::Max | Reduction::Min => None,
        }
    }
}

/// The elements of a reduction over some axes.
pub(crate) fn reduce(reduction: Reduction, axes: &[Axis], data: &Data, layout: &Layout) -> Result<Data, Error> {
    fn all<T: Reduced>(elements: &[T], how: (Reduction, Order), [kept, reduced]: [&Layout; 2]) -> Result<Data, Error> {
        let mut made = Vec::with_capacity(kept.len());
        for first in kept.positions() {
            // Positions of the reduced axes are distances from the first, and may be negative.
            let elements = reduced.positions().map(|at| elements[first.wrapping_add(at)]);
            let none = || Error::new(ErrorKind::EmptyReduction, "elements that are not reduced so");
            made.push(T::reduce(how.0, how.1, elements).ok_or_else(none)?);
        }
        Ok(T::data(made))
    }
    let how = (reduction, Order::of(axes, layout.rank()));
    let [kept, reduced] = layout.split(axes);
    let parts = [&kept, &reduced];
    match data {
        Data::Bool(elements) => all(elements, how, parts),
        Data::Int32(elements) => all(elements, how, parts),
        Data::Int64(elements) => all(elements, how, parts),
        Data::Float32(elements) => all(elements, how, parts),
        Data::Float64(elements) => all(elements, how, parts),
    }
}
