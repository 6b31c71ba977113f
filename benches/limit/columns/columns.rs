//! The hand-written limit over columns: the formulas of the batch workloads over columns in place, one thread, one function a
//! model. Like `limit/limit.rs` it is no part of the bench crate: the build script compiles it into crates of their own,
//! one for each kind of lanes (`--cfg lanes`): vectors of 512 bits and of 256 bits by hand, and `plain` numbers, which the
//! compiler makes vectors of.
//!
//! The rules of the game: the model's operations in the model's order on the model's types, so that what has no `exp` or
//! `log` in it agrees bit for bit; mathematical functions inlined, right for every argument, and within about one unit in
//! the last place; presence as bits, in and out. Everything else is allowed.

#![warn(missing_docs)]

#[cfg(any(lanes = "512", lanes = "plain"))]
pub mod arrays;
#[cfg(lanes = "256")]
mod avx2;
#[cfg(lanes = "512")]
mod avx512;
mod formulas;
mod lanes;
#[cfg(lanes = "plain")]
mod plain;
#[cfg(not(lanes = "512"))]
mod polynomials;
#[cfg(lanes = "512")]
mod special;
#[cfg(any(lanes = "512", lanes = "plain"))]
pub mod tensors;

#[cfg(lanes = "256")]
use avx2::{Doubles, Singles};
#[cfg(lanes = "512")]
use avx512::{Doubles, Singles};
#[cfg(lanes = "plain")]
use plain::{Doubles, Singles};

/// Bits of a value in a column.
const F64: usize = 64;
const F32: usize = 32;
/// Presence.
const BIT: usize = 1;

/// The most rows of a step.
const STEP: usize = 32;
/// The most columns of a model, presence and outputs among them.
const COLUMNS: usize = 24;

/// From how many rows on outputs go past the caches: nobody could find them there.
const STREAMED: usize = 1 << 21;

/// Where a row that is a multiple of a step lies.
#[inline(always)]
fn bytes(row: usize, bits: usize) -> usize {
    if bits == BIT { row / 8 } else { row * (bits / 8) }
}

/// Runs a step for so many rows at a time. The rows that are left over are copied to where a whole step has room.
///
/// # Safety
/// There is a column for each number of bits, of as many rows; a presence has whole bytes. No output overlaps anything.
#[inline(always)]
unsafe fn sweep<const I: usize, const O: usize, const STREAM: bool>(
    rows: usize,
    inputs: *const *const u8,
    outputs: *const *mut u8,
    step_rows: usize,
    (input_bits, output_bits): ([usize; I], [usize; O]),
    step: impl Fn([*const u8; I], [*mut u8; O]),
) {
    // SAFETY: the caller's promise: so many columns.
    let (inputs, outputs) = unsafe { (*inputs.cast::<[*const u8; I]>(), *outputs.cast::<[*mut u8; O]>()) };
    let mut row = 0;
    while row + step_rows <= rows {
        // SAFETY: the caller's promise: the rows from here on are in the columns.
        let from: [_; I] = std::array::from_fn(|at| unsafe { inputs[at].add(bytes(row, input_bits[at])) });
        // SAFETY: as above.
        let to: [_; O] = std::array::from_fn(|at| unsafe { outputs[at].add(bytes(row, output_bits[at])) });
        if STREAM {
            from.iter().for_each(|from| fetch_ahead(*from));
        }
        step(from, to);
        row += step_rows;
    }
    if STREAM {
        drain();
    }
    let left = rows - row;
    if left > 0 {
        let mut room = Room([[0; STEP * 8]; COLUMNS]);
        let (sources, results) = room.0.split_at_mut(I);
        for at in 0..I {
            let length = (left * input_bits[at]).div_ceil(8);
            // SAFETY: what is left of the column, which fits.
            unsafe { inputs[at].add(bytes(row, input_bits[at])).copy_to(sources[at].as_mut_ptr(), length) };
        }
        step(std::array::from_fn(|at| sources[at].as_ptr()), std::array::from_fn(|at| results[at].as_mut_ptr()));
        for at in 0..O {
            let length = (left * output_bits[at]).div_ceil(8);
            // SAFETY: as above.
            unsafe { outputs[at].add(bytes(row, output_bits[at])).copy_from(results[at].as_ptr(), length) };
        }
    }
}

/// Says that what comes some lines later will be wanted: a page begins where the processor does not look by itself.
#[inline(always)]
fn fetch_ahead(from: *const u8) {
    fetch(from.wrapping_add(2048));
}

/// Says that what is there will be wanted.
#[inline(always)]
fn fetch(from: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: FEATURE: a hint reads nothing.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(from.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = from;
}

/// Waits until what was written past the caches can be seen by others.
fn drain() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: FEATURE: all such processors have it.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// Columns of one step.
#[repr(align(64))]
struct Room([[u8; STEP * 8]; COLUMNS]);

/// Defines the function of one model, by its step and the columns' bits.
macro_rules! models {
    ($($(#[$doc:meta])* $name:ident<$lanes:ty> $rows:expr, $inputs:expr => $outputs:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// `inputs` must point to the addresses of the model's input columns in order of declaration, each with its presence
        /// after it if it is optional, `outputs` likewise to its outputs; all of them of so many rows.
        #[inline(never)]
        pub unsafe extern "C" fn $name(rows: usize, inputs: *const *const u8, outputs: *const *mut u8) {
            // SAFETY: the caller's promise, and that the processor has what this crate was compiled for.
            unsafe {
                // What is written past the caches is aligned.
                let is_number = |at: &usize| $outputs[*at] != BIT;
                let is_aligned = (0..$outputs.len()).filter(is_number).all(|at| (*outputs.add(at)).addr() % 64 == 0);
                if rows >= STREAMED && is_aligned {
                    sweep::<_, _, true>(rows, inputs, outputs, $rows, ($inputs, $outputs), |from, to| {
                        formulas::$name::step::<$lanes, true>(from, to);
                    });
                } else {
                    sweep::<_, _, false>(rows, inputs, outputs, $rows, ($inputs, $outputs), |from, to| {
                        formulas::$name::step::<$lanes, false>(from, to);
                    });
                }
            }
        }
    )*};
}

use lanes::{Lanes, Pair};

/// Presence comes in bytes.
const fn whole_bytes(rows: usize) -> usize {
    if rows < 8 { 8 } else { rows }
}

models! {
    /// B1: `a * b + c`.
    b1<Doubles> Doubles::ROWS, [F64; 3] => [F64];
    /// B2: the roots of S2.
    b2<Doubles> whole_bytes(Doubles::ROWS), [F32, F64, F64] => [F64, BIT, F64, BIT];
    /// B3: the score of S3.
    b3<Pair<Singles>> whole_bytes(<Pair<Singles>>::ROWS),
        [F32, BIT, F32, BIT, F32, BIT, F32, BIT, F32, BIT, F32, BIT, F32, BIT, F32, BIT, F32, BIT, F32, BIT] => [F32];
    /// B4 in FLOAT32: sigmoid.
    b4_single<Singles> Singles::ROWS, [F32] => [F32];
    /// B4 in FLOAT64: sigmoid.
    b4_double<Doubles> Doubles::ROWS, [F64] => [F64];
    /// B5: the price of an option.
    b5<Pair<Doubles>> <Pair<Doubles>>::ROWS, [F64; 3] => [F64];
    /// S5: twelve nested rules.
    s5<Doubles> Doubles::ROWS, [F64; 6] => [F64];
}

/// The triad of the STREAM benchmark, `a[i] = b[i] + s * c[i]`: what memory gives.
///
/// # Safety
/// `inputs` must point to the addresses of two columns of `f64`, `outputs` to that of one, all of so many rows.
#[inline(never)]
pub unsafe extern "C" fn triad(rows: usize, inputs: *const *const u8, outputs: *const *mut u8) {
    // SAFETY: the caller's promise.
    unsafe {
        sweep::<_, _, false>(rows, inputs, outputs, Doubles::ROWS, ([F64; 2], [F64]), |from, to| {
            formulas::triad::step::<Doubles, false>(from, to);
        });
    }
}

/// The same, written past the caches.
///
/// # Safety
/// As [`triad`]; the output is aligned to 64 bytes.
#[inline(never)]
pub unsafe extern "C" fn triad_streamed(rows: usize, inputs: *const *const u8, outputs: *const *mut u8) {
    // SAFETY: the caller's promise.
    unsafe {
        sweep::<_, _, true>(rows, inputs, outputs, Doubles::ROWS, ([F64; 2], [F64]), |from, to| {
            formulas::triad::step::<Doubles, true>(from, to);
        });
    }
}
