//! Tensors that are stored in 16 bits: all 16-bit numbers survive a round trip, and other numbers are rounded once, to
//! the nearest.

use cembra_tensor::{Data, Half, HalfTensor, Layout, Slice, Tensor, TensorErrorKind, bf16, f16};
use fastrand::Rng;
use std::sync::Arc;

/// A 16-bit float type, whose values are given by their bits.
trait Bits: Half {
    fn of(bits: u16) -> Self;
    fn bits(self) -> u16;
}

impl Bits for f16 {
    fn of(bits: u16) -> f16 {
        f16::from_bits(bits)
    }

    fn bits(self) -> u16 {
        self.to_bits()
    }
}

impl Bits for bf16 {
    fn of(bits: u16) -> bf16 {
        bf16::from_bits(bits)
    }

    fn bits(self) -> u16 {
        self.to_bits()
    }
}

/// The value of a 16-bit float with `exponent_bits` bits for the exponent: a sign, the exponent and the significand, as
/// IEEE 754 defines them. Computed without the library.
fn meaning(bits: u16, exponent_bits: u32) -> f64 {
    let significand_bits = 15 - exponent_bits;
    let bias = (1 << (exponent_bits - 1)) - 1;
    let exponent = i32::from(bits >> significand_bits) & ((1 << exponent_bits) - 1);
    let significand = f64::from(bits & ((1 << significand_bits) - 1)) / f64::from(1 << significand_bits);
    let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
    sign * match exponent {
        0 => significand * 2_f64.powi(1 - bias),
        _ if exponent == (1 << exponent_bits) - 1 => {
            if significand == 0.0 {
                f64::INFINITY
            } else {
                f64::NAN
            }
        }
        _ => (1.0 + significand) * 2_f64.powi(exponent - bias),
    }
}

/// The bits of the 16-bit float nearest to `number`; of two equally near ones, the one whose last bit is 0. `number`
/// must not be a NaN.
fn nearest(number: f64, exponent_bits: u32) -> u16 {
    let sign = if number.is_sign_negative() { 0x8000 } else { 0 };
    let number = number.abs();
    // Bits of positive numbers are in their order. The first that is infinite stands where the next finite number would be.
    let infinity = ((1 << exponent_bits) - 1) << (15 - exponent_bits);
    let value =
        |bits: u16| if bits == infinity { 2_f64.powi(1 << (exponent_bits - 1)) } else { meaning(bits, exponent_bits) };
    let (mut low, mut high) = (0, infinity);
    if number >= value(infinity) {
        return sign | infinity;
    }
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if value(middle) <= number { low = middle } else { high = middle }
    }
    let half = f64::midpoint(value(low), value(high));
    let is_low = number < half || (number == half && low % 2 == 0);
    sign | if is_low { low } else { high }
}

fn patterns_come_back<T: Bits>(exponent_bits: u32) {
    let all: Vec<T> = (0..=u16::MAX).map(T::of).collect();
    let stored = HalfTensor::new(&[256, 256], all).expect("as many as there are");
    let wide = stored.widened();
    let numbers: Vec<f32> = wide.to_vec().expect("floats");
    for (bits, number) in (0..=u16::MAX).zip(&numbers) {
        let meant = meaning(bits, exponent_bits);
        assert!(f64::from(*number).to_bits() == meant.to_bits() || (number.is_nan() && meant.is_nan()), "{bits:#06x}");
    }
    let doubles = Tensor::new(&[256, 256], numbers.iter().map(|number| f64::from(*number)).collect()).expect("fits");
    for tensor in [wide, doubles] {
        let back = HalfTensor::<T>::rounded(&tensor).expect("floats").to_vec();
        for (bits, (back, number)) in (0..=u16::MAX).zip(back.iter().zip(&numbers)) {
            assert!(back.bits() == bits || (number.is_nan() && back.widened().is_nan()), "{bits:#06x}: {back:?}");
        }
    }
}

#[test]
fn all_patterns_come_back() {
    patterns_come_back::<f16>(5);
    patterns_come_back::<bf16>(8);
}

fn rounds<T: Bits>(numbers: &[f64], exponent_bits: u32) {
    let made = HalfTensor::<T>::rounded(&Tensor::new(&[numbers.len()], numbers.to_vec()).expect("fits"));
    for (number, made) in numbers.iter().zip(made.expect("floats").to_vec()) {
        assert_eq!(made.bits(), nearest(*number, exponent_bits), "{number:e} of f64 to {}", T::NAME);
    }
    let short: Vec<f32> = numbers.iter().map(|number| *number as f32).collect();
    let made = HalfTensor::<T>::rounded(&Tensor::new(&[short.len()], short.clone()).expect("fits")).expect("floats");
    // In one run, and element by element.
    let turned =
        Tensor::new(&[short.len(), 1], short.clone()).and_then(|tensor| tensor.broadcast_to(&[short.len(), 2]));
    let turned = HalfTensor::<T>::rounded(&turned.expect("a view")).expect("floats").to_vec();
    for (at, (number, made)) in short.iter().zip(made.to_vec()).enumerate() {
        assert_eq!(made.bits(), nearest(f64::from(*number), exponent_bits), "{number:e} of f32 to {}", T::NAME);
        assert_eq!(turned[2 * at].bits(), made.bits(), "{number:e} alone");
    }
}

#[test]
fn numbers_are_rounded_once_to_the_nearest() {
    fn all<T: Bits>(exponent_bits: u32) {
        let mut numbers = Vec::new();
        // What lies in the middle of two, and beside it: by the last bit of f32, of f64, and by so little that f32 does not tell.
        for bits in 0..=u16::MAX {
            let (low, high) = (T::of(bits).widened(), T::of(bits.wrapping_add(1)).widened());
            if low.is_finite() && high.is_finite() && low.is_sign_positive() == high.is_sign_positive() {
                let half = f64::midpoint(f64::from(low), f64::from(high));
                let (below, above) = ((half as f32).next_down(), (half as f32).next_up());
                numbers.extend([half, half.next_down(), half.next_up(), f64::from(below), f64::from(above)]);
            }
        }
        numbers.extend([
            65_504.0,
            65_519.999,
            65_520.0,
            65_536.0,
            f64::from(f32::MAX),
            f64::MAX,
            f64::INFINITY,
            3.4e38,
        ]);
        // 2^128 - 2^119 is the middle of the largest `bf16` and infinity.
        numbers.extend([2_f64.powi(128) - 2_f64.powi(119), (2_f64.powi(128) - 2_f64.powi(119)).next_down()]);
        numbers.extend([0.0, f64::MIN_POSITIVE, 5e-324, 1e-45, 2_f64.powi(-25), 2_f64.powi(-25).next_up(), 6e-8]);
        numbers.extend(numbers.clone().iter().map(|number| -number));
        let mut rng = Rng::with_seed(11);
        numbers.extend((0..100_000).map(|_| f64::from(f32::from_bits(rng.u32(..)))).filter(|number| !number.is_nan()));
        rounds::<T>(&numbers, exponent_bits);
    }
    all::<f16>(5);
    all::<bf16>(8);
}

#[test]
fn nothing_is_a_number_that_was_none() {
    let none = Tensor::new(&[3], vec![f32::NAN, -f32::NAN, f32::from_bits(0x7f80_0001)]).expect("fits");
    let doubles = Tensor::new(&[2], vec![f64::NAN, f64::from_bits(0x7ff0_0000_0000_0001)]).expect("fits");
    for tensor in [none, doubles] {
        let stored = HalfTensor::<bf16>::rounded(&tensor).expect("floats");
        assert!(stored.to_vec().iter().all(|number| number.is_nan()), "{stored:?}");
        let stored = HalfTensor::<f16>::rounded(&tensor).expect("floats");
        assert!(stored.to_vec().iter().all(|number| number.is_nan()), "{stored:?}");
    }
}

#[test]
fn parts_are_seen_without_a_copy() {
    let stored = HalfTensor::new(&[2, 3], (0..6).map(|number| f16::from_f32(number as f32)).collect()).expect("fits");
    let part = stored
        .transposed(&[1, 0])
        .and_then(|turned| turned.sliced(&[Slice::new(2, 0, -1).expect("a slice"), Slice::all(2)]));
    let part = part.expect("a view");
    assert!(Arc::ptr_eq(part.elements(), stored.elements()));
    assert_eq!(part.widened(), Tensor::new(&[2, 2], vec![2.0_f32, 5.0, 1.0, 4.0]).expect("fits"));
    assert_eq!(part.get(&[1, 1]).expect("an index"), f16::from_f32(4.0));
    let rows = stored.sliced(&[Slice { start: 1, step: 1, count: 1 }, Slice::all(3)]).expect("a slice");
    assert_eq!(rows.widened().to_vec::<f32>().expect("floats"), [3.0, 4.0, 5.0]);
    let same = HalfTensor::from_parts(stored.elements().clone(), part.layout().clone()).expect("within");
    assert_eq!(same.to_vec(), part.to_vec());
    assert_eq!(format!("{part:?}"), "f16[2, 2] [2.0, 5.0, 1.0, 4.0]");
    let none = HalfTensor::<f16>::new(&[0, 3], Vec::new()).expect("nothing");
    assert_eq!(none.widened().extents(), [0, 3]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let kind = |made: Result<HalfTensor<f16>, cembra_value::Error>| {
        made.expect_err("refused").tensor_kind().expect("of tensors")
    };
    assert_eq!(kind(HalfTensor::new(&[2], vec![f16::ONE])), TensorErrorKind::SizeMismatch);
    assert_eq!(kind(HalfTensor::rounded(&Tensor::scalar(1))), TensorErrorKind::ElementType);
    let layout = Layout::row_major(&[3]).expect("a layout");
    assert_eq!(kind(HalfTensor::from_parts(Arc::new(vec![f16::ONE]), layout)), TensorErrorKind::Index);
    assert!(matches!(*HalfTensor::new(&[], vec![f16::ONE]).expect("one").widened().data(), Data::Float32(_)));
}
