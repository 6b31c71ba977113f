//! Refines an estimate of a quantile of the beta distribution: Halley's method for ln(x / (1 - x)) in numbers of twice the
//! precision, so that the rounded result is nearly always the exact value rounded.
//!
//! The incomplete beta function is a density times a continued fraction, which takes at most some hundred terms if one of the shapes is small. If
//! both shapes are large, it would take tens of thousands. But then the quantile hardly depends on the fraction, so an integral in binary64 replaces
//! it.

use super::twofold::Twofold;

/// If both shapes are at least this large, the integral is used instead of the continued fraction.
pub(super) const WIDE: f64 = 100.0;
/// The least shape that is refined; the next constant is the largest. For other shapes the estimate is the result.
const LEAST: f64 = 1e-6;
const MOST: f64 = 1e15;
const CORRECTIONS: u32 = 12;
const TERMS: u32 = 5000;

/// The parameters `a` and `b` of a beta distribution, and the logarithm of the beta function for them.
struct Beta {
    a: f64,
    b: f64,
    /// `ln B(a, b)`, the logarithm of the beta function.
    ln_beta: Twofold,
}

/// Solves ln I(x; a, b) = `target` for ln(x / (1 - x)), starting at `estimate`. The result is the estimate itself if the
/// shapes are extreme, or if the method does not converge.
pub(super) fn refined(target: Twofold, a: f64, b: f64, estimate: f64) -> Twofold {
    let shapes = LEAST..=MOST;
    if !(-1500.0..=50.0).contains(&estimate) || !shapes.contains(&a) || !shapes.contains(&b) {
        return Twofold::from(estimate);
    }
    let ln_beta = Twofold::from(a).ln_gamma() + Twofold::from(b).ln_gamma() - Twofold::sum(a, b).ln_gamma();
    let beta = Beta { a, b, ln_beta };
    let mut near = estimate;
    for _ in 0..CORRECTIONS {
        let below = beta.at(near);
        let newton = (target - below.ln).rounded() / below.slope;
        let bent = newton * below.bend;
        let step = newton / (1.0 + (0.5 * bent).max(-0.5));
        if !step.is_finite() || step.abs() > 100.0 {
            break;
        }
        // The remaining error is of the third order.
        if bent.abs() < 1e-6 && newton.abs() < 1e-6 {
            return Twofold::from(near) + Twofold::from(step);
        }
        near += step;
    }
    Twofold::from(estimate)
}

/// The logarithm of the incomplete beta function at a point (ln I), its derivative, and its second derivative divided by the first.
struct LogIntegral {
    ln: Twofold,
    slope: f64,
    bend: f64,
}

impl Beta {
    fn at(&self, v: f64) -> LogIntegral {
        let (a, b) = (self.a, self.b);
        let one = Twofold::from(1.0);
        let grown = Twofold::from(-v.abs()).exp();
        let whole = one + grown;
        let (far, ln_far) = (one / whole, -whole.ln());
        let (close, ln_close) = (grown / whole, ln_far - Twofold::from(v.abs()));
        let [(x, ln_x), (y, ln_y)] =
            if v < 0.0 { [(close, ln_close), (far, ln_far)] } else { [(far, ln_far), (close, ln_close)] };
        let density = ln_x * a + ln_y * b - self.ln_beta;
        let ln = if a.min(b) >= WIDE {
            density + Twofold::from(libm::log(integral(v, a, b, FINE)))
        } else {
            let above = if x.rounded() * (a + b + 2.0) > a + 1.0 {
                density.exp() * fraction(y, b, a) / Twofold::from(b)
            } else {
                one
            };
            if above.rounded() < 1.0 - 1e-6 {
                (one - above).ln()
            } else {
                density - Twofold::from(a).ln() + fraction(x, a, b).ln()
            }
        };
        let slope = (density - ln).exp().rounded();
        LogIntegral { ln, slope, bend: a * y.rounded() - b * x.rounded() - slope }
    }
}

/// The continued fraction of I(x; a, b), evaluated forwards (Lentz); NaN if it does not converge.
fn fraction(x: Twofold, a: f64, b: f64) -> Twofold {
    const ENOUGH: f64 = 1e-26;
    let one = Twofold::from(1.0);
    let apart = |value: Twofold| if value.rounded().abs() < 1e-200 { Twofold::from(1e-200) } else { value };
    let both = Twofold::sum(a, b);
    let mut c = one;
    let mut d = one / apart(one - both * x / Twofold::sum(a, 1.0));
    let mut product = d;
    for step in 1..TERMS {
        let m = f64::from(step);
        let (before, middle, after) =
            (Twofold::sum(a, 2.0 * m - 1.0), Twofold::sum(a, 2.0 * m), Twofold::sum(a, 2.0 * m + 1.0));
        let even = Twofold::sum(b, -m) * m * x / (before * middle);
        let odd = -(Twofold::sum(a, m) * (both + Twofold::from(m)) * x / (middle * after));
        let mut change = one;
        for term in [even, odd] {
            d = one / apart(one + term * d);
            c = apart(one + term / c);
            change = c * d;
            product = product * change;
        }
        if (change - one).rounded().abs() < ENOUGH {
            return product;
        }
    }
    Twofold::from(f64::NAN)
}

/// The step of the trapezoidal rule for a correction. The next constant is the step for an estimate.
const FINE: f64 = 0.0625;
pub(super) const COARSE: f64 = 0.25;

/// The integral of the beta density, as a function of ln(x / (1 - x)), up to `v`, divided by the density at `v`. It is computed by the trapezoidal
/// rule with steps of `step`, after a double exponential substitution of the distance from `v`.
pub(super) fn integral(v: f64, a: f64, b: f64, step: f64) -> f64 {
    let (x, y) = (1.0 / (1.0 + libm::exp(-v)), 1.0 / (1.0 + libm::exp(v)));
    let width = ((a + b) * x * y).sqrt();
    let scale = 1.0 / ((a * y - b * x).max(0.0) + width);
    let mut sum = 0.0;
    let mut t = -3.75;
    while t < 6.0 {
        let fall = libm::exp(-t);
        let distance = libm::exp(t - fall);
        let below = distance * scale;
        let (ln_x, ln_y) = (-libm::log1p(y * libm::expm1(below)), -libm::log1p(x * libm::expm1(-below)));
        let term = distance * (1.0 + fall) * libm::exp(a * ln_x + b * ln_y);
        sum += term;
        if t > 0.0 && term < 1e-18 * sum {
            break;
        }
        t += step;
    }
    sum * scale * step
}
