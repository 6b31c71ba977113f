//! The functions for the rare arguments that the branch-free algorithms cannot compute: zeros, infinities and NaNs of a
//! logarithm, huge angles, powers of negative numbers. The `libm` crate computes them, in plain operations and within an
//! ulp. They may be slow, because they are rare.

use crate::RuntimeFn;

/// Computes `function` for the binary64 arguments `x`.
#[cold]
#[inline(never)]
pub(super) fn double(function: RuntimeFn, x: &[f64]) -> f64 {
    use RuntimeFn as F;
    match (function, x) {
        (F::LogF32 | F::LogF64, [x]) => libm::log(*x),
        (F::Log1pF32 | F::Log1pF64, [x]) => libm::log1p(*x),
        (F::Log2F32 | F::Log2F64, [x]) => libm::log2(*x),
        (F::Log10F32 | F::Log10F64, [x]) => libm::log10(*x),
        (F::Expm1F32 | F::Expm1F64, [x]) => libm::expm1(*x),
        (F::SinF32 | F::SinF64, [x]) => libm::sin(*x),
        (F::CosF32 | F::CosF64, [x]) => libm::cos(*x),
        (F::SinhF64, [x]) => libm::sinh(*x),
        (F::PowF32 | F::PowF64, [x, y]) => libm::pow(*x, *y),
        (F::Atan2F64, [y, x]) => angle(*y, *x),
        _ => {
            debug_assert!(false, "{} has no rare arguments", function.symbol());
            f64::NAN
        }
    }
}

/// The angle of a point whose larger coordinate is zero, tiny, huge or not finite.
fn angle(y: f64, x: f64) -> f64 {
    let (y_size, x_size) = (y.abs(), x.abs());
    let larger = y_size.max(x_size);
    if !y.is_finite() || !x.is_finite() || larger == 0.0 {
        return libm::atan2(y, x);
    }
    // The angle is the ratio here. Scaling could make `y` subnormal and lose digits.
    if x > 0.0 && y_size / x < f64::EPSILON * f64::EPSILON {
        return y / x;
    }
    let factor = if larger > 1.0 { 2f64.powi(-600) } else { 2f64.powi(600) };
    super::atan2_f64(y * factor, x * factor)
}

/// Computes `function` for the binary32 arguments `x`, in binary64, and rounds the result to binary32.
#[cold]
#[inline(never)]
pub(super) fn single(function: RuntimeFn, x: &[f32]) -> f32 {
    let wide = match x {
        [x, y] => double(function, &[f64::from(*x), f64::from(*y)]),
        [x] => double(function, &[f64::from(*x)]),
        _ => double(function, &[]),
    };
    wide as f32
}
