//! The fused multiply-add: `x * y + z` with one rounding. The mathematical functions are built on it. Most processors have an instruction for it. For
//! the others there is an exact rule in integers, so that all machines give the same bits.

/// Returns true if the processor has an instruction for a fused multiply-add. On processors other than x86-64 this is known at compile time.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn in_hardware() -> bool {
    std::arch::is_x86_feature_detected!("fma")
}

/// Splits a finite number other than zero into `mantissa * 2^exponent`. The highest bit of the mantissa is bit 52.
pub(super) fn parts(x: f64) -> (u64, i32) {
    let field = ((x.to_bits() >> 52) & 0x7FF) as i32;
    let fraction = x.to_bits() & 0xF_FFFF_FFFF_FFFF;
    if field == 0 {
        let up = fraction.leading_zeros() - 11;
        (fraction << up, -1074 - up.cast_signed())
    } else {
        (fraction | 1 << 52, field - 1075)
    }
}

/// Shifts to the right. If a set bit is shifted out, the lowest bit of the result is set.
fn shifted(x: u128, by: u32) -> u128 {
    if by >= 128 {
        return u128::from(x != 0);
    }
    (x >> by) | u128::from((x >> by) << by != x)
}

/// `x * y + z` rounded once, computed with integers.
#[must_use]
pub fn in_software_f64(x: f64, y: f64, z: f64) -> f64 {
    if !x.is_finite() || !y.is_finite() || x == 0.0 || y == 0.0 {
        // The product is exact, infinite or NaN.
        return x * y + z;
    }
    if !z.is_finite() {
        return z;
    }
    if z == 0.0 {
        return x * y;
    }
    let ((mx, ex), (my, ey), (mz, ez)) = (parts(x), parts(y), parts(z));
    // Both terms with their highest bit at 124 or 125: room for a carry above, and for what a borrow needs below.
    let (product, product_exponent) = ((u128::from(mx) * u128::from(my)) << 20, ex + ey - 20);
    let (addend, addend_exponent) = (u128::from(mz) << 73, ez - 73);
    let above = product_exponent - addend_exponent;
    let (product, addend, exponent) = if above >= 0 {
        (product, shifted(addend, above.unsigned_abs()), product_exponent)
    } else {
        (shifted(product, above.unsigned_abs()), addend, addend_exponent)
    };
    let negative = x.is_sign_negative() != y.is_sign_negative();
    let (sum, negative) = if negative == z.is_sign_negative() {
        (product + addend, negative)
    } else if product >= addend {
        (product - addend, negative && product != addend)
    } else {
        (addend - product, !negative)
    };
    let bits = rounded(sum, exponent);
    f64::from_bits(bits | u64::from(negative) << 63)
}

/// The bits of `sum * 2^exponent` rounded to nearest, ties to even.
fn rounded(sum: u128, exponent: i32) -> u64 {
    if sum == 0 {
        return 0;
    }
    let top = 127 - sum.leading_zeros().cast_signed();
    let magnitude = top + exponent;
    if magnitude > 1023 {
        return f64::INFINITY.to_bits();
    }
    // Subnormal numbers have a fixed last place.
    let normal = magnitude >= -1022;
    let dropped = if normal { top - 52 } else { -1074 - exponent };
    let mantissa = if dropped <= 0 {
        (sum as u64) << dropped.unsigned_abs()
    } else if dropped > 127 {
        0
    } else {
        let kept = (sum >> dropped) as u64;
        let (rest, half) = (sum & ((1 << dropped) - 1), 1_u128 << (dropped - 1));
        kept + u64::from(rest > half || (rest == half && kept & 1 == 1))
    };
    // The leading bit of the mantissa counts one in the exponent's field, and so does a carry.
    let field = if normal { (magnitude + 1022).unsigned_abs() } else { 0 };
    (u64::from(field) << 52) + mantissa
}

/// `x * y + z` rounded once. The product is exact in binary64. The sum is rounded to odd there, so that the second
/// rounding, to binary32, is right.
#[must_use]
pub fn in_software_f32(x: f32, y: f32, z: f32) -> f32 {
    let (product, addend) = (f64::from(x) * f64::from(y), f64::from(z));
    let sum = product + addend;
    let part = sum - product;
    let rest = (product - (sum - part)) + (addend - part);
    if rest == 0.0 || !rest.is_finite() || sum.to_bits() & 1 == 1 {
        return sum as f32;
    }
    let bits = sum.to_bits();
    let odd = if (rest > 0.0) == (sum > 0.0) { bits + 1 } else { bits - 1 };
    f64::from_bits(odd) as f32
}

#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod tests {
    use super::*;

    #[target_feature(enable = "fma")]
    fn hardware(x: f64, y: f64, z: f64) -> (f64, f32) {
        (x.mul_add(y, z), (x as f32).mul_add(y as f32, z as f32))
    }

    fn check(x: f64, y: f64, z: f64) {
        // SAFETY: FEATURE: asked for by the test.
        let (double, single) = unsafe { hardware(x, y, z) };
        let found = in_software_f64(x, y, z);
        assert!(
            found.to_bits() == double.to_bits() || (found.is_nan() && double.is_nan()),
            "{x:e} * {y:e} + {z:e} = {found:e}, in hardware {double:e}"
        );
        let (x, y, z) = (x as f32, y as f32, z as f32);
        let found = in_software_f32(x, y, z);
        assert!(
            found.to_bits() == single.to_bits() || (found.is_nan() && single.is_nan()),
            "{x:e} * {y:e} + {z:e} = {found:e}, in hardware {single:e}"
        );
    }

    /// A pseudorandom sequence: splitmix64.
    struct Sequence(u64);

    impl Sequence {
        fn next(&mut self) -> u64 {
            self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            z ^ (z >> 31)
        }

        fn number(&mut self) -> f64 {
            f64::from_bits(self.next())
        }

        /// Numbers near 2^exponent, some with few bits: they give sums that cancel, ties, and products near the least
        /// and the largest number.
        fn near(&mut self, exponent: i32) -> f64 {
            let bits = self.next();
            let mask = u64::MAX << (bits % 60);
            let wiggle = (bits >> 8) as i32 % 5;
            let field = u64::from((exponent + wiggle + 1023).clamp(0, 2046).unsigned_abs());
            f64::from_bits((bits & 1 << 63) | field << 52 | self.next() & mask & 0xF_FFFF_FFFF_FFFF)
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "would take an hour")]
    fn the_rule_agrees_with_the_instruction() {
        if !in_hardware() {
            return;
        }
        let mut random = Sequence(1);
        for _ in 0..1_000_000 {
            check(random.number(), random.number(), random.number());
        }
        for (a, b, c) in
            [(0, 0, 0), (0, 0, -53), (-500, -540, -1040), (-530, -530, -1074), (512, 511, 1023), (20, 30, 0)]
        {
            for spread in -60..60 {
                for _ in 0..1500 {
                    check(random.near(a), random.near(b), random.near(c + spread));
                    // The rounding error of a product.
                    let (x, y) = (random.near(a), random.near(b));
                    check(x, y, -(x * y));
                }
            }
        }
        let special =
            [0.0, 1.0, f64::MIN_POSITIVE, 5e-324, f64::MAX, f64::INFINITY, f64::NAN, f64::EPSILON, 1e-45, 1e-38];
        let special = special.map(|x| [x, -x]).concat();
        for x in &special {
            for y in &special {
                for z in &special {
                    check(*x, *y, *z);
                }
            }
        }
    }
}
