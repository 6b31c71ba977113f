//! Plain Rust, an element at a time, as the compiler vectorises it.

use super::{Gathered, rank_at};

#[inline(always)]
fn is_set(bits: &[u64], at: usize) -> bool {
    bits[at / 64] >> (at % 64) & 1 != 0
}

/// A1: the sum of `x * y` where `x` is there and positive.
///
/// # Safety
/// BARE-ARRAYS.
#[inline(never)]
pub unsafe fn a1(x: &[f64], is_there: &[u64], y: &[f64]) -> f64 {
    let chosen = |at: &usize| is_set(is_there, *at) && x[*at] > 0.0;
    (0..x.len()).filter(chosen).map(|at| x[at] * y[at]).sum()
}

/// A2: `(x - mean) / std`.
///
/// # Safety
/// BARE-ARRAYS.
#[inline(never)]
pub unsafe fn a2(x: &[f64], is_there: &[u64], z: &mut [f64], z_is_there: &mut [u64]) {
    let there = || (0..x.len()).filter(|at| is_set(is_there, *at)).map(|at| x[at]);
    let count = there().count() as f64;
    if count < 2.0 {
        z_is_there.fill(0);
        return;
    }
    z_is_there.copy_from_slice(is_there);
    let mean = there().sum::<f64>() / count;
    let deviation = (there().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (count - 1.0)).sqrt();
    z.iter_mut().zip(x).for_each(|(z, x)| *z = (x - mean) / deviation);
}

/// Elements with their groups, or the last entry of a table.
fn grouped<'a>((by, is_in): (&'a [i64], Option<&'a [u64]>), none: usize) -> impl Iterator<Item = usize> + 'a {
    let is_in = move |at| is_in.is_none_or(|bits| is_set(bits, at));
    by.iter().enumerate().map(move |(at, group)| if is_in(at) { *group as usize } else { none })
}

/// A3: the sum, the mean and the number of `x * w` by group.
///
/// # Safety
/// BARE-ARRAYS.
#[inline(never)]
pub unsafe fn a3(
    (x, w): (&[f64], &[f64]),
    by: (&[i64], Option<&[u64]>),
    table: &mut [Gathered],
    (total, average, average_is_there, rows): (&mut [f64], &mut [f64], &mut [u64], &mut [i64]),
) {
    table.fill([0.0; 2]);
    for ((x, w), group) in x.iter().zip(w).zip(grouped(by, total.len())) {
        table[group][0] += x * w;
        table[group][1] += 1.0;
    }
    average_is_there.fill(0);
    for (group, [sum, count]) in table[..total.len()].iter().enumerate() {
        total[group] = *sum;
        average[group] = sum / count;
        average_is_there[group / 64] |= u64::from(*count > 0.0) << (group % 64);
        rows[group] = *count as i64;
    }
}

/// A4: `exp(x) / sum(exp(x))` in the groups between the points.
///
/// # Safety
/// BARE-ARRAYS.
#[inline(never)]
pub unsafe fn a4(x: &[f64], points: &[i64], p: &mut [f64]) {
    for ends in points.windows(2) {
        let group = ends[0] as usize..ends[1] as usize;
        let greatest = x[group.clone()].iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let mut sum = 0.0;
        for at in group.clone() {
            p[at] = (x[at] - greatest).exp();
            sum += p[at];
        }
        p[group].iter_mut().for_each(|p| *p /= sum);
    }
}

/// A5: the running sum and the running maximum, in the order of the elements.
///
/// # Safety
/// BARE-ARRAYS.
#[inline(never)]
pub unsafe fn a5(x: &[f64], is_there: &[u64], total: &mut [f64], peak: &mut [f64], are_there: [&mut [u64]; 2]) {
    are_there.into_iter().for_each(|bits| bits.copy_from_slice(is_there));
    let (mut sum, mut greatest) = (0.0, f64::NEG_INFINITY);
    for at in 0..x.len() {
        if is_set(is_there, at) {
            sum += x[at];
            if x[at] > greatest || x[at].is_nan() {
                greatest = x[at];
            }
        }
        (total[at], peak[at]) = (sum, greatest);
    }
}

/// The same: vectors alone gain anything from another order.
///
/// # Safety
/// BARE-ARRAYS.
#[inline(never)]
pub unsafe fn a5_any_order(
    x: &[f64],
    is_there: &[u64],
    total: &mut [f64],
    peak: &mut [f64],
    are_there: [&mut [u64]; 2],
) {
    // SAFETY: BARE-ARRAYS, as the caller promised.
    unsafe { a5(x, is_there, total, peak, are_there) }
}

/// A6: the place of the greatest, the median and the ninth decile of the groups between the points.
///
/// # Safety
/// BARE-ARRAYS.
#[inline(never)]
pub unsafe fn a6(
    x: &[f64],
    points: &[i64],
    [room, _, _, _]: [&mut [f64]; 4],
    (best, middle, p90, are_there): (&mut [i64], &mut [f64], &mut [f64], [&mut [u64]; 3]),
) {
    let [first, second, third] = are_there;
    for (group, ends) in points.windows(2).enumerate() {
        let x = &x[ends[0] as usize..ends[1] as usize];
        let bit = 1 << (group % 64);
        for bits in [&mut *first, &mut *second, &mut *third] {
            bits[group / 64] = if x.is_empty() { bits[group / 64] & !bit } else { bits[group / 64] | bit };
        }
        if x.is_empty() {
            continue;
        }
        if let Some(at) = x.iter().position(|x| x.is_nan()) {
            (best[group], middle[group], p90[group]) = (at as i64, x[at], x[at]);
            continue;
        }
        let mut greatest = 0;
        for at in 1..x.len() {
            if x[at] > x[greatest] {
                greatest = at;
            }
        }
        best[group] = greatest as i64;
        let room = &mut room[..x.len()];
        room.copy_from_slice(x);
        middle[group] = *room.select_nth_unstable_by((x.len() - 1) / 2, f64::total_cmp).1;
        p90[group] = *room.select_nth_unstable_by(rank_at(0.9, x.len()), f64::total_cmp).1;
    }
}

/// A7: the sum and the mean of `1 / (1 + exp(-(x * k + c)))`, added in FLOAT64.
///
/// # Safety
/// BARE-ARRAYS.
#[inline(never)]
pub unsafe fn a7(x: &[f32], k: f32, c: f32) -> (f32, f32) {
    let sum: f64 = x.iter().map(|x| f64::from(1.0 / (1.0 + (-(x * k + c)).exp()))).sum();
    (sum as f32, (sum / x.len() as f64) as f32)
}

/// A8: how many elements are further than two standard deviations from the mean of their group.
///
/// # Safety
/// BARE-ARRAYS.
#[inline(never)]
pub unsafe fn a8(x: &[f64], by: (&[i64], Option<&[u64]>), table: &mut [Gathered], spread: &mut [[f64; 2]]) -> i64 {
    let none = table.len() - 1;
    table.fill([0.0; 2]);
    for (x, group) in x.iter().zip(grouped(by, none)) {
        table[group][0] += x;
        table[group][1] += 1.0;
    }
    spread.iter_mut().zip(&*table).for_each(|(spread, [sum, count])| *spread = [sum / count, 0.0]);
    for (x, group) in x.iter().zip(grouped(by, none)) {
        let d = x - spread[group][0];
        spread[group][1] += d * d;
    }
    for ([_, bound], [_, count]) in spread.iter_mut().zip(&*table) {
        *bound = if *count > 1.0 { 2.0 * (*bound / (count - 1.0)).sqrt() } else { f64::NAN };
    }
    spread[none] = [f64::NAN; 2];
    let far = |(x, group): (&f64, usize)| (x - spread[group][0]).abs() > spread[group][1];
    x.iter().zip(grouped(by, none)).filter(|pair| far((pair.0, pair.1))).count() as i64
}

/// How much longer than the longest group the rooms are.
pub const SPARE: usize = 0;
