//! Operands that lie across the loops of a product: elements of a line of theirs are far apart, and what the next lines read lies between.
//! Some lines at a time are copied, so that each piece of memory is read once. What is computed of lines is not said here.

use super::number::{Memory, Number};
use super::vectors::{Line, Lines};
use cembra_tensor::FusedLabels;
use cembra_tensor::walk::{CopiedAxis, FAR, WalkedAxis, copy_axes};

/// How many lines are copied at a time, and how many elements of each: these stay in a near cache.
pub(super) const LINES: usize = 64;
pub(super) const WIDTH: usize = 1024;

/// How many elements are between copies of lines: elements above each other are not to be in the same places of the cache.
const PADDING: usize = 16;

/// The fewest lines that are worth copies.
const SEVERAL: usize = 8;

/// Loops over lines, and over the elements of each, with copies of operands that lie across.
pub(super) struct Across<'d, T> {
    factors: [Memory<'d, T>; 2],
    /// How far lines are apart, and elements of a line.
    strides: [[isize; 3]; 2],
    copies: [Option<Vec<T>>; 2],
}

impl<'d, T: Number> Across<'d, T> {
    /// Loops over these lines, if an operand lies across.
    pub(super) fn of(factors: [Memory<'d, T>; 2], (lines, apart): &WalkedAxis<3>, line: &FusedLabels) -> Option<Self> {
        let lies_across = |of: usize| {
            let (near, far) = (apart[of].unsigned_abs(), line.strides[of].unsigned_abs());
            far >= FAR && (1..far).contains(&near)
        };
        let lie_across = [0, 1].map(lies_across);
        let is_worth = *lines >= SEVERAL && line.extent >= SEVERAL && lie_across.contains(&true);
        let copies = lie_across.map(|is_copied| is_copied.then(Vec::new));
        is_worth.then_some(Across { factors, strides: [*apart, line.strides], copies })
    }

    /// The first `lines` of the lines of both operands, `count` elements of each, from these positions on.
    pub(super) fn lines(&mut self, at: [usize; 3], lines: usize, count: usize) -> [Lines<'_, T>; 2] {
        let Across { factors, strides: [apart, along], copies } = self;
        let [left, right] = copies;
        let lie = |of: usize| Lines {
            line: Line { elements: factors[of].0, first: at[of], stride: along[of] },
            step: apart[of],
        };
        [copied(lie(0), left.as_mut(), [lines, count]), copied(lie(1), right.as_mut(), [lines, count])]
    }
}

/// The first `count` lines, `width` elements of each, copied if `to` has memory for that.
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
