//! The mathematical functions of the language: one algorithm each, shared by all backends, so that every backend and
//! every machine gives the same bits. binary64 functions are those of the `libm` crate (pure Rust, no host library);
//! the binary32 ones compute in binary64 and round once, which leaves them at most a hair over half an ulp.

macro_rules! functions {
    ($($(#[$doc:meta])* $f32:ident, $f64:ident, $libm:path;)*) => { $(
        $(#[$doc])*
        #[must_use]
        pub fn $f64(x: f64) -> f64 { $libm(x) }
        $(#[$doc])*
        #[must_use]
        pub fn $f32(x: f32) -> f32 { $libm(f64::from(x)) as f32 }
    )* };
}

functions! {
    /// e to the power of `x`; overflows to infinity, underflows to 0.
    exp_f32, exp_f64, libm::exp;
    /// e to the power of `x`, less 1, without cancellation near 0.
    expm1_f32, expm1_f64, libm::expm1;
    /// Natural logarithm: -inf at 0, NaN below.
    log_f32, log_f64, libm::log;
    /// Natural logarithm of `1 + x`, without cancellation near 0.
    log1p_f32, log1p_f64, libm::log1p;
    /// Logarithm to base 2.
    log2_f32, log2_f64, libm::log2;
    /// Logarithm to base 10.
    log10_f32, log10_f64, libm::log10;
}

/// `x` to the power of `y`, with C's special cases: `pow(NaN, 0) = pow(1, NaN) = 1`.
#[must_use]
pub fn pow_f64(x: f64, y: f64) -> f64 {
    libm::pow(x, y)
}

/// `x` to the power of `y`, with C's special cases.
#[must_use]
pub fn pow_f32(x: f32, y: f32) -> f32 {
    libm::pow(f64::from(x), f64::from(y)) as f32
}

/// The remainder of `x / y` truncated, with the sign of `x`; NaN for `y = 0`. Exact.
#[must_use]
pub fn fmod_f64(x: f64, y: f64) -> f64 {
    x % y
}

/// The remainder of `x / y` truncated, with the sign of `x`; NaN for `y = 0`. Exact.
#[must_use]
pub fn fmod_f32(x: f32, y: f32) -> f32 {
    x % y
}

/// True if the thread rounds to nearest and keeps subnormal numbers, as "the same bits everywhere" needs.
#[must_use]
pub fn default_float_mode() -> bool {
    use std::hint::black_box;
    let subnormal = black_box(f64::MIN_POSITIVE) * black_box(0.5);
    let third = black_box(1.0_f64) / black_box(3.0);
    // Rounded up or towards zero, one of the two sums would differ.
    let up = black_box(1.0_f64) + black_box(f64::EPSILON * 0.25);
    let down = black_box(-1.0_f64) - black_box(f64::EPSILON * 0.25);
    subnormal > 0.0 && third == 1.0 / 3.0 && up == 1.0 && down == -1.0
}
