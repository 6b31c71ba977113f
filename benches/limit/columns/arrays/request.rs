//! The request of Q20, group by group: the sums, then the scores of its elements, then their softmax. For all kinds of lanes: a
//! group has no more elements than a vector.

use crate::Doubles;
use crate::lanes::{DoubleLanes, Lanes};

/// Elements, and a bit for each that is there.
pub type Optional<'a> = (&'a [f64], u64);

/// Q20: price, margin, clicks, views and buys; rating, age, stock, boost and distance; the groups between the points.
///
/// # Safety
/// BARE-ARRAYS, with no more than 64 elements.
#[inline(never)]
pub unsafe fn q20(some: [Optional<'_>; 5], all: [&[f64]; 5], points: &[i64], p: &mut [f64], worth: &mut [f64]) {
    const ROOM: usize = 64;
    let [price, margin, clicks, views, buys] = some;
    let [rating, age, stock, boost, distance] = all;
    let paid = price.1 & margin.1;
    let has = |bits: u64, at: usize| bits >> at & 1 != 0;
    let mut room = [0.0; ROOM];
    for (group, ends) in points.windows(2).enumerate() {
        let (start, end) = (ends[0] as usize, ends[1] as usize);
        let (mut spend, mut seen, mut clicked) = (0.0, 0.0, 0.0);
        for at in start..end {
            spend += if has(paid & buys.1, at) { price.0[at] * margin.0[at] * buys.0[at] } else { 0.0 };
            seen += if has(views.1, at) { views.0[at] } else { 0.0 };
            clicked += if has(clicks.1, at) { clicks.0[at] } else { 0.0 };
        }
        let (shown, mut greatest) = (seen + 1.0, f64::NEG_INFINITY);
        for at in start..end {
            let rate = if has(clicks.1, at) { clicks.0[at] } else { 0.0 } / shown;
            let value = if has(paid, at) { price.0[at] * margin.0[at] * (clicked / shown) } else { 0.0 };
            let quality = rating[at] * 0.4 + boost[at] - age[at] * 0.01 - distance[at] * 0.05;
            let score = quality + rate * 3.0 + if stock[at] > 0.0 { value } else { -5.0 };
            greatest = if score > greatest { score } else { greatest };
            room[at - start] = score;
        }
        for at in (0..end - start).step_by(Doubles::ROWS) {
            let to = room[at..][..Doubles::ROWS].as_mut_ptr().cast::<u8>();
            // SAFETY: FEATURE: the crate is run where the instructions are; the room has whole vectors.
            unsafe { Doubles::load(to).sub(Doubles::splat(greatest)).exp().store(to) };
        }
        let sum: f64 = room[..end - start].iter().sum();
        p[start..end].iter_mut().zip(room).for_each(|(p, power)| *p = power / sum);
        worth[group] = spend / (clicked + 1.0);
    }
}
