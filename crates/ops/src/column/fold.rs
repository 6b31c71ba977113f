//! Defines the operator that aggregates the elements of a column (elements in memory, a fixed number of bytes apart) to
//! one result: sums, counts, minima and maxima. Sums are added in the order that `cembra_runtime`'s `chains.rs`
//! defines, so that the result has the same bits as the sum of an array with these elements.

use super::{COLUMN, element};
use crate::array::strip::{Element, Finish, Fold, Quantity, better};
use crate::definition::{Lower, Meaning, OpDef, OperandType, Overload, param};
use crate::kernel::{Body, Repr};
use cembra_runtime::{Addition, Bytes, ChainFold, Combine, Context, Fault, Scalar, Text, is_in_order};
use std::marker::PhantomData;

/// A column of elements in memory: the address of the first element, the distance between elements in bytes, and their
/// number. The elements are optional if `OPTIONAL` is set.
#[derive(Clone, Copy)]
struct Column<T, const OPTIONAL: bool> {
    base: u64,
    stride: i64,
    count: i64,
    of: PhantomData<T>,
}

impl<T: Repr, const OPTIONAL: bool> Column<T, OPTIONAL> {
    /// The element at a position, which must be below the count; `None` if it is missing.
    #[inline(always)]
    fn get(&self, at: i64) -> Option<T> {
        // SAFETY: COLUMN: as many elements lie there as the plan says. FRAME-SLOT: they are of this type.
        unsafe {
            let place = element(self.base, self.stride, at);
            if OPTIONAL { T::load_lifted(place, 0) } else { Some(T::load(place, 0)) }
        }
    }

    /// Iterates over the present elements.
    #[inline(always)]
    fn present(&self) -> impl Iterator<Item = T> + '_ {
        (0..self.count).filter_map(|at| self.get(at))
    }

    fn len(&self) -> usize {
        usize::try_from(self.count).unwrap_or(0)
    }

    /// Combines the present elements in FLOAT64, in the order of [`ChainFold`]. Returns the total and the number of
    /// present elements.
    #[inline(always)]
    fn chained(&self, start: f64, widen: impl Fn(T) -> f64, combine: impl Combine<f64>) -> (f64, i64) {
        let mut count = 0;
        if is_in_order(self.len()) {
            let mut total = start;
            for element in self.present() {
                count += 1;
                total = combine.combine(total, widen(element));
            }
            return (total, count);
        }
        let mut fold = ChainFold::new(self.len(), start, combine);
        fold.extend_each(self.len(), |at| {
            let element = self.get(at as i64).map(&widen);
            count += i64::from(element.is_some());
            element
        });
        (fold.finish(), count)
    }

    #[inline(always)]
    fn best<const MAX: bool>(&self) -> Option<T>
    where
        T: Element,
    {
        self.present().reduce(better::<T, MAX>)
    }

    /// Combines booleans in three-valued logic: the result is `decisive` if an element has this value; otherwise `None`
    /// if an element is missing; otherwise the other truth value.
    fn logical(&self, is: impl Fn(T) -> bool, decisive: bool) -> Option<bool> {
        let mut is_hidden = false;
        for at in 0..self.count {
            match self.get(at).map(&is) {
                Some(value) if value == decisive => return Some(decisive),
                Some(_) => {}
                None => is_hidden = true,
            }
        }
        (!is_hidden).then_some(!decisive)
    }
}

/// A number that converts to FLOAT64 for sums.
trait Number: Repr {
    fn widen(self) -> f64;
}

macro_rules! numbers {
    ($($ty:ty, |$x:ident| $wide:expr;)*) => { $(
        impl Number for $ty {
            #[inline(always)]
            fn widen(self) -> f64 {
                let $x = self;
                $wide
            }
        }
    )* };
}

// Integers are rounded to FLOAT32 first.
numbers! {
    i32, |x| f64::from(x as f32);
    i64, |x| f64::from(x as f32);
    f32, |x| f64::from(x);
    f64, |x| x;
}

fn there<T>(value: T, count: i64) -> Option<T> {
    (count > 0).then_some(value)
}

fn times(a: f64, b: f64) -> f64 {
    a * b
}

/// Defines the overloads for aggregations: the name and the [`Fold`] of each, and per element type the result type and
/// the computation.
macro_rules! folds {
    ($($name:ident: $gathers:ident, $finish:ident { $($ty:ty => $ret:ty, |$column:ident| $made:expr;)* })*) => {
        $( struct $name<T, const OPTIONAL: bool>(PhantomData<T>); )*
        $($(
            impl<const OPTIONAL: bool> Body for $name<$ty, OPTIONAL> {
                type Data = ();
                type Args = (u64, i64, i64, i64);
                type Ret = $ret;
                const STRICT: bool = false;
                const LOWER: Lower = Lower::Kernel;

                fn run((): &(), _: &mut Context, (base, stride, start, count): Self::Args) -> Result<$ret, Fault> {
                    // SAFETY: COLUMN: the elements of the fold lie there; of none, nothing is read.
                    let base = unsafe { element(base, stride, start) }.as_ptr() as u64;
                    let $column = Column::<$ty, OPTIONAL> { base, stride, count, of: PhantomData };
                    Ok($made)
                }
            }
        )*)*
        const OVERLOADS: &[Overload] =
            &[$($(Overload::of::<$name<$ty, false>>(), Overload::of::<$name<$ty, true>>()),*),*];
        const FOLDS: &[(Fold, OperandType)] = &[$($(
            (Fold { gathers: Quantity::$gathers, finish: Finish::$finish }, <$ty as Repr>::OPERAND),
            (Fold { gathers: Quantity::$gathers, finish: Finish::$finish }, <Option<$ty> as Repr>::OPERAND)
        ),*),*];
    };
}

folds! {
    Sum: Sum, Total {
        i32 => i32, |column| column.present().fold(0, i32::wrapping_add);
        i64 => i64, |column| column.present().fold(0, i64::wrapping_add);
        f32 => f32, |column| column.chained(0.0, Number::widen, Addition).0 as f32;
        f64 => f64, |column| column.chained(0.0, Number::widen, Addition).0;
    }
    SumOfSome: Sum, Sparse {
        i32 => Option<i32>, |column| column.present().reduce(i32::wrapping_add);
        i64 => Option<i64>, |column| column.present().reduce(i64::wrapping_add);
        f32 => Option<f32>, |column| {
            let (sum, count) = column.chained(0.0, Number::widen, Addition);
            there(sum as f32, count)
        };
        f64 => Option<f64>, |column| {
            let (sum, count) = column.chained(0.0, Number::widen, Addition);
            there(sum, count)
        };
    }
    Product: Product, Sparse {
        i32 => Option<i32>, |column| column.present().reduce(i32::wrapping_mul);
        i64 => Option<i64>, |column| column.present().reduce(i64::wrapping_mul);
        f32 => Option<f32>, |column| {
            let (product, count) = column.chained(1.0, Number::widen, times);
            there(product as f32, count)
        };
        f64 => Option<f64>, |column| {
            let (product, count) = column.chained(1.0, Number::widen, times);
            there(product, count)
        };
    }
    // Sum and count are rounded to the result type first.
    Mean: FloatSum, Mean {
        i32 => Option<f32>, |column| {
            let (sum, count) = column.chained(0.0, Number::widen, Addition);
            there(sum as f32 / count as f32, count)
        };
        i64 => Option<f32>, |column| {
            let (sum, count) = column.chained(0.0, Number::widen, Addition);
            there(sum as f32 / count as f32, count)
        };
        f32 => Option<f32>, |column| {
            let (sum, count) = column.chained(0.0, Number::widen, Addition);
            there(sum as f32 / count as f32, count)
        };
        f64 => Option<f64>, |column| {
            let (sum, count) = column.chained(0.0, Number::widen, Addition);
            there(sum / count as f64, count)
        };
    }
    Count: Count, Count {
        () => i64, |column| column.present().count() as i64;
        bool => i64, |column| column.present().count() as i64;
        i32 => i64, |column| column.present().count() as i64;
        i64 => i64, |column| column.present().count() as i64;
        u64 => i64, |column| column.present().count() as i64;
        f32 => i64, |column| column.present().count() as i64;
        f64 => i64, |column| column.present().count() as i64;
        Text<'static> => i64, |column| column.present().count() as i64;
        Bytes<'static> => i64, |column| column.present().count() as i64;
    }
    AnyMask: Count, Any {
        () => Option<()>, |column| column.present().next();
    }
    AllMasks: Missing, None {
        () => Option<()>, |column| (column.present().count() == column.len()).then_some(());
    }
    Min: Min, Sparse {
        i32 => Option<i32>, |column| column.best::<false>();
        i64 => Option<i64>, |column| column.best::<false>();
        f32 => Option<f32>, |column| column.best::<false>();
        f64 => Option<f64>, |column| column.best::<false>();
    }
    Max: Max, Sparse {
        i32 => Option<i32>, |column| column.best::<true>();
        i64 => Option<i64>, |column| column.best::<true>();
        f32 => Option<f32>, |column| column.best::<true>();
        f64 => Option<f64>, |column| column.best::<true>();
    }
    LogicalAny: LogicalAny, Sparse {
        bool => Option<bool>, |column| column.logical(|value| value, true);
    }
    LogicalAll: LogicalAll, Sparse {
        bool => Option<bool>, |column| column.logical(|value| value, false);
    }
}

pub(crate) static FOLD: OpDef = OpDef {
    name: "column._fold",
    summary: "The fold of `count` elements of a column from position `start` on.",
    params: &[param("base"), param("stride"), param("start"), param("count")],
    meaning: Meaning::Overloads(OVERLOADS),
    ..COLUMN
};

/// The index of the overload of `COLUMN_FOLD` that computes `fold` for elements of type `element`, which are optional if `optional` is set; `None` if
/// there is no such overload.
#[must_use]
pub fn fold_overload(fold: Fold, element: Scalar, optional: bool) -> Option<u16> {
    let wanted = OperandType { scalar: element.representation(), optional };
    // Two aggregates may be the same sum for this type.
    let is_it = |(other, of): &(Fold, OperandType)| {
        *of == wanted && other.finish == fold.finish && other.gathers.of(element) == fold.gathers.of(element)
    };
    FOLDS.iter().position(is_it).map(|at| at as u16)
}
