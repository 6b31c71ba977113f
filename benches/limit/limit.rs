//! The hand-written limit: every workload's formula as plain Rust over the layouts compiled models use, one function per
//! model with the signature of compiled code. It is no part of the bench crate: the build script compiles this file into
//! crates of their own, for the processor at hand and for the baseline of the architecture, so that nothing here can be
//! inlined into a measuring loop and no build can touch another.
//!
//! The rules of the game: the model's formula as a Rust programmer writes it down, with the same operations in the same
//! order on the same types, so that the answers agree bit for bit; the platform's mathematical library for `exp` and
//! `ln_1p`, or, in the build with `inlined`, cembra's own algorithms for them written out here; `if` for `where`, and no
//! hints to the compiler about branches.

#![warn(missing_docs)]

/// An optional as frames and input structs hold it.
#[repr(C)]
#[derive(Clone, Copy)]
struct Optional<T> {
    present: u8,
    value: T,
}

impl Optional<f32> {
    #[inline(always)]
    fn or(self, default: f32) -> f32 {
        if self.present != 0 { self.value } else { default }
    }
}

/// Defines the function of one model: the input struct's reference is bound to the name, the block's value is written
/// as the output.
macro_rules! models {
    ($($(#[$doc:meta])* $name:ident = |$row:ident: $input:ty| -> $output:ty $body:block)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// `input` must point to the model's input struct and `output` to room for its output, both aligned. The frame
        /// and the context are not looked at.
        #[inline(never)]
        pub unsafe extern "C" fn $name(input: *const u8, output: *mut u8, _frame: *mut u8, _context: *mut u8) -> i32 {
            // SAFETY: the caller's promise.
            let $row = unsafe { &*input.cast::<$input>() };
            let answer: $output = $body;
            // SAFETY: the caller's promise.
            unsafe { output.cast::<$output>().write(answer) };
            0
        }
    )*};
}

#[repr(C)]
struct QuadraticInput {
    a: f32,
    b: f64,
    c: f64,
}

#[repr(C)]
struct Roots {
    first: Optional<f64>,
    second: Optional<f64>,
}

models! {
    /// S1: `x * 2 + 1`.
    s1 = |x: f64| -> f64 { x * 2.0 + 1.0 }

    /// S2: real roots of a quadratic. The value of a missing root may be anything, so nothing needs a branch.
    s2 = |row: QuadraticInput| -> Roots {
        let (a, b, c) = (f64::from(row.a), row.b, row.c);
        let d = b * b - f64::from(4.0 * row.a) * c;
        let s = d.sqrt();
        let present = u8::from(d >= 0.0);
        Roots {
            first: Optional { present, value: (-b + s) / 2.0 / a },
            second: Optional { present, value: (-b - s) / 2.0 / a },
        }
    }

    /// S3: a scoring model over ten optional features.
    s3 = |x: [Optional<f32>; 10]| -> f32 {
        let v0 = x[0].or(0.5);
        let v1 = x[1].or(1.0);
        let v2 = x[2].or(2.0);
        let v3 = x[3].or(0.0);
        let v4 = x[4].or(0.1);
        let v5 = x[5].or(0.2);
        let v6 = x[6].or(3.0);
        let v7 = x[7].or(0.5);
        let v8 = x[8].or(-0.5);
        let v9 = x[9].or(0.3);
        let l0 = ln_1p(maximum(v0, 0.0));
        let l1 = ln_1p(maximum(v1, 0.0));
        let l2 = ln_1p(maximum(v2, 0.0));
        let l3 = ln_1p(maximum(v3, 0.0));
        let k0 = clip(v4, -1.0, 1.0);
        let k1 = clip(v5, 0.0, 2.0);
        let k2 = clip(v6, 0.5, 4.0);
        let s0 = squash(v7 * 1.5 + 0.2);
        let s1 = squash(v8 * -0.7 + 0.1);
        let t = l0 * 0.3 + -0.1 + l1 * -0.2 + l2 * 0.15 + l3 * 0.4 + k0 * 0.25 + k1 * -0.35 + k2 * 0.05 + s0 * 0.6;
        let u = (if v9 > 0.5 { t + 0.3 * s1 } else { t * 0.9 }) + l0 * k0 * 0.05;
        clip(squash(u), 0.01, 0.99)
    }

    /// S4: a sum of 77 products; straight-line code that the build script copies from the model's text.
    s4 = |x: [f64; 32]| -> f64 { include!(concat!(env!("OUT_DIR"), "/s4.rs")) }

    /// S5: twelve nested rules, the outermost test first; only the chosen arm is computed.
    s5 = |x: [f64; 6]| -> f64 {
        let [x0, x1, x2, x3, x4, x5] = *x;
        if x5 < 0.101 {
            x0 * 2.743 + x2
        } else if x4 < 0.149 && x0 > 0.385 {
            x5 * 1.253 + x1
        } else if x3 < 0.156 {
            x4 * 2.594 + x0
        } else if x2 < 0.421 {
            x3 * 2.531 + x5
        } else if x1 < 0.105 && x3 > 0.265 {
            x2 * 1.559 + x4
        } else if x0 < 0.29 {
            x1 * 2.148 + x3
        } else if x5 < 0.264 {
            x0 * 1.493 + x2
        } else if x4 < 0.327 && x0 > 0.47 {
            x5 * 1.226 + x1
        } else if x3 < 0.263 {
            x4 * 2.887 + x0
        } else if x2 < 0.423 {
            x3 * 1.058 + x5
        } else if x1 < 0.378 && x3 > 0.483 {
            x2 * 2.48 + x4
        } else if x0 < 0.318 {
            x1 * 2.484 + x3
        } else {
            x0 * 0.5
        }
    }
}

/// The larger of `x` and a constant; NaN if `x` is. Written so that it is one instruction.
#[inline(always)]
fn maximum(x: f32, constant: f32) -> f32 {
    if constant > x { constant } else { x }
}

/// The smaller of `x` and a constant; NaN if `x` is.
#[inline(always)]
fn minimum(x: f32, constant: f32) -> f32 {
    if constant < x { constant } else { x }
}

#[inline(always)]
fn clip(x: f32, low: f32, high: f32) -> f32 {
    minimum(maximum(x, low), high)
}

#[inline(always)]
fn squash(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

#[cfg(not(inlined))]
#[inline(always)]
fn exp(x: f32) -> f32 {
    x.exp()
}

#[cfg(not(inlined))]
#[inline(always)]
fn ln_1p(x: f32) -> f32 {
    x.ln_1p()
}

/// `2^k e^r`, with a polynomial for `e^r`; `2^k` in two factors, because it may be no ordinary number. A NaN passes.
#[cfg(inlined)]
#[inline(always)]
fn exp(x: f32) -> f32 {
    use std::f32::consts::{LN_2, LOG2_E};
    const SHIFT: f32 = 12_582_912.0 + 254.0;
    let x = if 89.0 < x { 89.0 } else { x };
    let shifted = x.mul_add(LOG2_E, SHIFT);
    let k = shifted - SHIFT;
    let r = k.mul_add(1.904_654_3e-9, k.mul_add(-LN_2, x));
    let p = 0.001_381_458_5_f32
        .mul_add(r, 0.008_368_694)
        .mul_add(r, 0.041_668_326)
        .mul_add(r, 0.166_665_21)
        .mul_add(r, 0.499_999_94)
        .mul_add(r, 1.0)
        .mul_add(r, 1.0);
    let biased = shifted.to_bits();
    let half = biased >> 1;
    let scaled = p * f32::from_bits(half << 23) * f32::from_bits(biased.wrapping_sub(half) << 23);
    // Nothing is nearly zero by then.
    if x < -104.0 { 0.0 } else { scaled }
}

/// `e ln 2 + ln(1 + f)` where `1 + x = 2^e (1 + f)`, with a polynomial of even and odd powers.
#[cfg(inlined)]
#[inline(always)]
fn ln_1p(x: f32) -> f32 {
    use std::f32::consts::LN_2;
    const PLACE: f32 = 8_388_608.0;
    let minus = (0.75_f32.to_bits() + 0x7F_FFFF).wrapping_sub((1.0 + x).to_bits()) & 0xFF80_0000;
    let exponent = minus.cast_signed() as f32;
    // Zero, negative and infinite sums.
    if exponent.abs() > 125.5 * PLACE {
        return x.ln_1p();
    }
    let inverse = f32::from_bits(1.0_f32.to_bits().wrapping_add(minus));
    let f = x.mul_add(inverse, -(1.0 - inverse));
    let square = f * f;
    let even = (-0.045_074_433_f32)
        .mul_add(square, -0.131_611_3)
        .mul_add(square, -0.166_472_61)
        .mul_add(square, -0.250_000_98)
        .mul_add(square, -0.5);
    let odd =
        0.104_629_576_f32.mul_add(square, 0.144_783_42).mul_add(square, 0.199_908_44).mul_add(square, 0.333_334_5);
    let series = f.mul_add(odd, even);
    exponent.mul_add(-LN_2 / PLACE, square.mul_add(series, f))
}
