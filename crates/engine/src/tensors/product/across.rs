//! Operands whose layout is transposed relative to the loops of a product. The inner loop runs over a line (an array of
//! elements at equal distances), but the elements of a line are far apart in memory, and elements of the next lines lie
//! between them. Several lines at a time are copied, so that each piece of memory is read once. Other files multiply
//! the lines.

use super::number::{Memory, Number};
use super::vectors::{Line, Lines};
use cembra_tensor::FusedLabels;
use cembra_tensor::walk::{CopiedAxis, FAR, WalkedAxis, copy_axes};

/// The most lines (arrays of elements) that are copied at a time, chosen so that the copies stay in a near cache.
pub(super) const LINES: usize = 64;
/// The most elements per line (array of elements) that are copied at a time, chosen so that the copies stay in a near
/// cache.
pub(super) const WIDTH: usize = 1024;

/// The number of unused elements between the copies of two lines (arrays of elements), so that the copies do not map to
/// the same cache sets.
const PADDING: usize = 16;

/// The fewest lines (arrays of elements), and the fewest elements per line, for which copying is worthwhile.
const SEVERAL: usize = 8;

/// Two nested loops of a product: over lines (arrays of elements that lie at equal distances in memory), and over the
/// elements of a line. Operands whose layout is transposed relative to these loops are copied.
pub(super) struct TransposedLoops<'d, T> {
    factors: [Memory<'d, T>; 2],
    /// The strides from one line to the next, and from one element of a line to the next.
    strides: [[isize; 3]; 2],
    copies: [Option<Vec<T>>; 2],
}

impl<'d, T: Number> TransposedLoops<'d, T> {
    /// Makes loops over `lines` lines (arrays of elements) and over the elements of each. `None` if no operand's layout
    /// is transposed relative to the loops, or if there are too few lines or elements.
    pub(super) fn of(factors: [Memory<'d, T>; 2], (lines, apart): &WalkedAxis<3>, line: &FusedLabels) -> Option<Self> {
        let lies_across = |of: usize| {
            let (near, far) = (apart[of].unsigned_abs(), line.strides[of].unsigned_abs());
            far >= FAR && (1..far).contains(&near)
        };
        let lie_across = [0, 1].map(lies_across);
        let is_worth = *lines >= SEVERAL && line.extent >= SEVERAL && lie_across.contains(&true);
        let copies = lie_across.map(|is_copied| is_copied.then(Vec::new));
        is_worth.then_some(TransposedLoops { factors, strides: [*apart, line.strides], copies })
    }

    /// Returns `lines` lines (arrays of `count` elements) of each of the two operands. The first lines begin at the
    /// positions `at`.
    pub(super) fn lines(&mut self, at: [usize; 3], lines: usize, count: usize) -> [Lines<'_, T>; 2] {
        let TransposedLoops { factors, strides: [apart, along], copies } = self;
        let [left, right] = copies;
        let lie = |of: usize| Lines {
            line: Line { elements: factors[of].0, first: at[of], stride: along[of] },
            step: apart[of],
        };
        [copied(lie(0), left.as_mut(), [lines, count]), copied(lie(1), right.as_mut(), [lines, count])]
    }
}

/// Copies the first `count` lines (arrays of `width` elements) to `to`, and returns the copies. If `to` is `None`,
/// returns `lines` unchanged.
fn copied<'l, T: Number>(lines: Lines<'l, T>, to: Option<&'l mut Vec<T>>, [count, width]: [usize; 2]) -> Lines<'l, T> {
    let Some(to) = to else { return lines };
    let apart = width + PADDING;
    to.resize(count * apart, T::default());
    let step = apart.cast_signed();
    let axes = [
        CopiedAxis { extent: count, from: lines.step, to: step },
        CopiedAxis { extent: width, from: lines.line.stride, to: 1 },
    ];
    copy_axes(lines.line.elements, lines.line.first, to, &axes);
    Lines { line: Line { elements: to, first: 0, stride: 1 }, step }
}
