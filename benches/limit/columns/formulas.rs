//! The formulas of the models, for one step of rows.

/// B1.
pub(crate) mod b1 {
    use crate::lanes::DoubleLanes;

    /// # Safety
    /// BARE-ARRAYS, of a step of rows.
    #[inline(always)]
    pub(crate) unsafe fn step<D: DoubleLanes, const STREAM: bool>([a, b, c]: [*const u8; 3], [y]: [*mut u8; 1]) {
        // SAFETY: a step of rows.
        unsafe { D::load(a).mul(D::load(b)).add(D::load(c)).put::<STREAM>(y) }
    }
}

/// B2, which is S2.
pub(crate) mod b2 {
    use crate::lanes::DoubleLanes;

    /// # Safety
    /// BARE-ARRAYS, of a step of rows.
    #[inline(always)]
    pub(crate) unsafe fn step<D: DoubleLanes, const STREAM: bool>(
        [a, b, c]: [*const u8; 3],
        [first, first_bits, second, second_bits]: [*mut u8; 4],
    ) {
        let mut present = 0;
        for at in (0..8).step_by(D::ROWS) {
            // SAFETY: a step of rows.
            unsafe {
                let (a, four_a) = D::widened(a.add(4 * at), 4.0);
                let (b, c) = (D::load(b.add(8 * at)), D::load(c.add(8 * at)));
                let d = b.mul(b).sub(four_a.mul(c));
                let s = d.sqrt();
                present |= D::bits(d.at_least(D::splat(0.0))) << at;
                let half = D::splat(0.5);
                s.sub(b).mul(half).div(a).put::<STREAM>(first.add(8 * at));
                b.neg().sub(s).mul(half).div(a).put::<STREAM>(second.add(8 * at));
            }
        }
        // SAFETY: as above.
        unsafe {
            *first_bits = present as u8;
            *second_bits = present as u8;
        }
    }
}

/// B3, which is S3.
pub(crate) mod b3 {
    use crate::lanes::{Instructions, Lanes, Pair, SingleLanes};

    #[inline(always)]
    fn clip<S: SingleLanes>(x: S, low: f32, high: f32) -> S {
        S::splat(high).min(S::splat(low).max(x))
    }

    #[inline(always)]
    fn squash<S: SingleLanes>(x: S) -> S {
        S::splat(1.0).add(x.neg().exp()).reciprocal()
    }

    /// # Safety
    /// BARE-ARRAYS, of a step of rows.
    #[inline(always)]
    pub(crate) unsafe fn step<S: Lanes<Element = f32> + Instructions, const STREAM: bool>(
        x: [*const u8; 20],
        [y]: [*mut u8; 1],
    ) {
        for at in (0..crate::whole_bytes(S::ROWS)).step_by(S::ROWS) {
            let value = |input: usize, default| {
                let (values, presence) = (x[2 * input], x[2 * input + 1]);
                // SAFETY: a step of rows.
                unsafe {
                    let bits = match S::ROWS {
                        32 => presence.cast::<u32>().read_unaligned(),
                        16 => presence.cast::<u16>().read_unaligned().into(),
                        _ => u32::from(*presence) >> at,
                    };
                    S::load_or(values.add(4 * at), bits, default)
                }
            };
            let log = |x: Pair<Pair<S>>| Pair::splat(0.0).max(x).log1p();
            let times = |x: S, factor| x.mul(S::splat(factor));
            let logs = Pair(Pair(value(0, 0.5), value(1, 1.0)), Pair(value(2, 2.0), value(3, 0.0)));
            let Pair(Pair(l0, l1), Pair(l2, l3)) = log(logs);
            let k0 = clip(value(4, 0.1), -1.0, 1.0);
            let k1 = clip(value(5, 0.2), 0.0, 2.0);
            let k2 = clip(value(6, 3.0), 0.5, 4.0);
            let x7 = times(value(7, 0.5), 1.5).add(S::splat(0.2));
            let x8 = times(value(8, -0.5), -0.7).add(S::splat(0.1));
            let Pair(s0, s1) = squash(Pair(x7, x8));
            let t = times(l0, 0.3).add(S::splat(-0.1)).add(times(l1, -0.2)).add(times(l2, 0.15)).add(times(l3, 0.4));
            let t = t.add(times(k0, 0.25)).add(times(k1, -0.35)).add(times(k2, 0.05)).add(times(s0, 0.6));
            let high = S::splat(0.5).less(value(9, 0.3));
            let u = S::select(high, t.add(times(s1, 0.3)), times(t, 0.9)).add(times(l0.mul(k0), 0.05));
            // SAFETY: a step of rows.
            unsafe { clip(squash(u), 0.01, 0.99).put::<STREAM>(y.add(4 * at)) }
        }
    }
}

/// B4 in FLOAT32.
pub(crate) mod b4_single {
    use crate::lanes::SingleLanes;

    /// # Safety
    /// BARE-ARRAYS, of a step of rows.
    #[inline(always)]
    pub(crate) unsafe fn step<S: SingleLanes, const STREAM: bool>([x]: [*const u8; 1], [y]: [*mut u8; 1]) {
        // SAFETY: a step of rows.
        unsafe { S::splat(1.0).add(S::load(x).neg().exp()).reciprocal().put::<STREAM>(y) }
    }
}

/// B4 in FLOAT64.
pub(crate) mod b4_double {
    use crate::lanes::DoubleLanes;

    /// # Safety
    /// BARE-ARRAYS, of a step of rows.
    #[inline(always)]
    pub(crate) unsafe fn step<D: DoubleLanes, const STREAM: bool>([x]: [*const u8; 1], [y]: [*mut u8; 1]) {
        // SAFETY: a step of rows.
        unsafe { D::splat(1.0).add(D::load(x).neg().exp()).reciprocal().put::<STREAM>(y) }
    }
}

/// B5: Black-Scholes, the normal distribution by Abramowitz and Stegun 26.2.17.
pub(crate) mod b5 {
    use crate::lanes::{DoubleLanes, Instructions, Pair, Widened};

    #[inline(always)]
    fn tail<D: DoubleLanes>(d: D) -> D {
        let q = D::splat(1.0).add(d.abs().mul(D::splat(0.231_641_9))).reciprocal();
        let density = d.mul(D::splat(-0.5)).mul(d).exp().mul(D::splat(0.398_942_280_401_432_7));
        let series = [-1.821_255_978, 1.781_477_937, -0.356_563_782, 0.319_381_530];
        let sum = series.iter().fold(D::splat(1.330_274_429), |sum, &next| q.mul(sum).add(D::splat(next)));
        density.mul(q.mul(sum))
    }

    #[inline(always)]
    fn cdf<D: DoubleLanes>(d: D) -> D {
        let tail = tail(d);
        D::select(D::splat(0.0).less(d), D::splat(1.0).sub(tail), tail)
    }

    /// # Safety
    /// BARE-ARRAYS, of a step of rows.
    #[inline(always)]
    pub(crate) unsafe fn step<D: Widened + Instructions, const STREAM: bool>(
        [s, k, t]: [*const u8; 3],
        [y]: [*mut u8; 1],
    ) {
        // SAFETY: a step of rows.
        let (s, k, t) = unsafe { (D::load(s), D::load(k), D::load(t)) };
        let v = t.sqrt().mul(D::splat(0.3));
        let d1 = s.div(k).log().add(t.mul(D::splat(0.065))).div(v);
        let d2 = d1.sub(v);
        let discount = t.mul(D::splat(-0.02)).exp();
        let Pair(first, second) = cdf(Pair(d1, d2));
        let call = s.mul(first).sub(k.mul(discount).mul(second));
        // SAFETY: as above.
        unsafe { call.put::<STREAM>(y) }
    }
}

/// S5.
pub(crate) mod s5 {
    use crate::lanes::DoubleLanes;

    /// # Safety
    /// BARE-ARRAYS, of a step of rows.
    #[inline(always)]
    pub(crate) unsafe fn step<D: DoubleLanes, const STREAM: bool>(x: [*const u8; 6], [y]: [*mut u8; 1]) {
        // SAFETY: a step of rows.
        let [x0, x1, x2, x3, x4, x5] = x.map(|x| unsafe { D::load(x) });
        let below = |x: D, bound| x.less(D::splat(bound));
        let above = |x: D, bound| D::splat(bound).less(x);
        let arm = |x: D, factor, plus: D| x.mul(D::splat(factor)).add(plus);
        // From the innermost rule to the outermost.
        let y0 = D::select(below(x0, 0.318), arm(x1, 2.484, x3), x0.mul(D::splat(0.5)));
        let y0 = D::select(D::both(below(x1, 0.378), above(x3, 0.483)), arm(x2, 2.48, x4), y0);
        let y0 = D::select(below(x2, 0.423), arm(x3, 1.058, x5), y0);
        let y0 = D::select(below(x3, 0.263), arm(x4, 2.887, x0), y0);
        let y0 = D::select(D::both(below(x4, 0.327), above(x0, 0.47)), arm(x5, 1.226, x1), y0);
        let y0 = D::select(below(x5, 0.264), arm(x0, 1.493, x2), y0);
        let y0 = D::select(below(x0, 0.29), arm(x1, 2.148, x3), y0);
        let y0 = D::select(D::both(below(x1, 0.105), above(x3, 0.265)), arm(x2, 1.559, x4), y0);
        let y0 = D::select(below(x2, 0.421), arm(x3, 2.531, x5), y0);
        let y0 = D::select(below(x3, 0.156), arm(x4, 2.594, x0), y0);
        let y0 = D::select(D::both(below(x4, 0.149), above(x0, 0.385)), arm(x5, 1.253, x1), y0);
        let y0 = D::select(below(x5, 0.101), arm(x0, 2.743, x2), y0);
        // SAFETY: as above.
        unsafe { y0.put::<STREAM>(y) }
    }
}

/// STREAM's triad.
pub(crate) mod triad {
    use crate::lanes::DoubleLanes;

    /// # Safety
    /// BARE-ARRAYS, of a step of rows.
    #[inline(always)]
    pub(crate) unsafe fn step<D: DoubleLanes, const STREAM: bool>([b, c]: [*const u8; 2], [a]: [*mut u8; 1]) {
        // SAFETY: a step of rows.
        unsafe { D::load(c).fma(D::splat(3.0), D::load(b)).put::<STREAM>(a) }
    }
}
