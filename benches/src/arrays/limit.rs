//! The limits over arrays as subjects: inputs copied to aligned memory, outputs and tables made before, and the functions of the
//! limit's crate, with vectors where the processor has them.

use super::memory::{Aligned, Made};
use super::subject::Bound;
use super::workload::Inputs;
use crate::Error;
use crate::batch::subject::has_512;
use crate::subject::LIMIT;
use crate::workload::Comparison;
use cembra::values::EdgeForm;
use cembra::{Array, ScalarValue, Value};

/// A definition by hand.
pub struct Limit {
    /// The name in tables and records.
    pub name: &'static str,
    /// How its outputs are compared where not as those of the workload: the share of the magnitude of a row, for each row.
    per_row: Option<f64>,
    /// With vectors or without.
    bind: fn(&Inputs, bool) -> Option<On>,
}

/// What runs, over the outputs that it writes.
type Run = Box<dyn FnMut(&mut [Made])>;

/// A limit on inputs.
struct On {
    made: Vec<Made>,
    run: Run,
}

impl Limit {
    /// The limit on copies of these inputs, with vectors if the processor has them; none if they are not those of its workload.
    #[must_use]
    pub fn on(&self, inputs: &Inputs) -> Option<Box<dyn Bound>> {
        self.with(inputs, has_512())
    }

    /// The same without vectors.
    #[must_use]
    pub fn plain(&self, inputs: &Inputs) -> Option<Box<dyn Bound>> {
        self.with(inputs, false)
    }

    fn with(&self, inputs: &Inputs, wide: bool) -> Option<Box<dyn Bound>> {
        (self.bind)(inputs, wide).map(|on| Box::new(on) as Box<dyn Bound>)
    }

    /// How its outputs of so many rows are compared, if those of its workload are compared so.
    #[must_use]
    pub fn comparison(&self, of_workload: Comparison, rows: usize) -> Comparison {
        self.per_row.map_or(of_workload, |share| Comparison::Near(share * rows as f64))
    }
}

impl Bound for On {
    fn run(&mut self) -> Result<(), Error> {
        (self.run)(&mut self.made);
        Ok(())
    }

    fn sizes(&self) -> Vec<usize> {
        self.made.iter().map(Made::len).collect()
    }

    fn element(&self, output: usize, at: usize) -> Option<f64> {
        self.made[output].element(at)
    }
}

/// Calls a function of the limit, with vectors or without.
macro_rules! limit {
    ($wide:expr, $name:ident($($arg:expr),*)) => {{
        // SAFETY: BARE-ARRAYS: slices are made of arrays and edges of one length, results with a place for each row or group,
        // and the processor was asked.
        unsafe {
            if $wide {
                cembra_limit_columns_512::arrays::$name($($arg),*)
            } else {
                cembra_limit_columns_plain::arrays::$name($($arg),*)
            }
        }
    }};
}

/// The longest of the rooms that are asked for.
const SPARE: usize = {
    let (wide, plain) = (cembra_limit_columns_512::arrays::SPARE, cembra_limit_columns_plain::arrays::SPARE);
    if wide > plain { wide } else { plain }
};

const fn limit(bind: fn(&Inputs, bool) -> Option<On>) -> Limit {
    Limit { name: LIMIT, per_row: None, bind }
}

/// The sum of products.
pub const A1: Limit = limit(|inputs, wide| {
    let ((x, bits), y) = (optional(inputs, 0)?, doubles(inputs, 1)?);
    let run: Run = Box::new(move |made| {
        if let [dot] = made {
            dot.as_doubles().0[0] = limit!(wide, a1(&x, &bits, &y));
        }
    });
    Some(On { made: vec![Made::doubles(1, false)], run })
});

/// The standard scores.
pub const A2: Limit = limit(|inputs, wide| {
    let (x, bits) = optional(inputs, 0)?;
    let made = vec![Made::doubles(x.len(), true)];
    let run: Run = Box::new(move |made| {
        if let [z] = made {
            let (z, z_bits) = z.as_doubles();
            limit!(wide, a2(&x, &bits, z, z_bits));
        }
    });
    Some(On { made, run })
});

/// Sums by group.
pub const A3: Limit = limit(|inputs, wide| {
    let (x, w, (by, bits, groups)) = (doubles(inputs, 0)?, doubles(inputs, 1)?, mapping(inputs, 2)?);
    let made = vec![Made::doubles(groups, false), Made::doubles(groups, true), Made::integers(groups, false)];
    let mut table = Aligned::new(groups + 1);
    let run: Run = Box::new(move |made| {
        if let [total, average, rows] = made {
            let ((average, average_bits), rows) = (average.as_doubles(), rows.as_integers().0);
            let results = (total.as_doubles().0, average, average_bits, rows);
            limit!(wide, a3((&x, &w), (&by, bits.as_deref()), &mut table, results));
        }
    });
    Some(On { made, run })
});

/// The softmax.
pub const A4: Limit = limit(|inputs, wide| {
    let (x, points) = (doubles(inputs, 0)?, points(inputs, 1)?);
    let made = vec![Made::doubles(x.len(), false)];
    let run: Run = Box::new(move |made| {
        if let [p] = made {
            limit!(wide, a4(&x, &points, p.as_doubles().0));
        }
    });
    Some(On { made, run })
});

/// Running sum and maximum, in order.
pub const A5: Limit = limit(|inputs, wide| {
    let (x, bits) = optional(inputs, 0)?;
    let made = vec![Made::doubles(x.len(), true), Made::doubles(x.len(), true)];
    let run: Run = Box::new(move |made| {
        if let [total, peak] = made {
            let ((total, total_bits), (peak, peak_bits)) = (total.as_doubles(), peak.as_doubles());
            limit!(wide, a5(&x, &bits, total, peak, [total_bits, peak_bits]));
        }
    });
    Some(On { made, run })
});

/// The same with sums in any order: as far from those in order as 1e-12 of the sum of magnitudes, of which a row has a half.
pub const A5_ANY_ORDER: Limit = Limit {
    name: "limit-any-order",
    per_row: Some(0.5e-12),
    bind: |inputs, wide| {
        let (x, bits) = optional(inputs, 0)?;
        let made = vec![Made::doubles(x.len(), true), Made::doubles(x.len(), true)];
        let run: Run = Box::new(move |made| {
            if let [total, peak] = made {
                let ((total, total_bits), (peak, peak_bits)) = (total.as_doubles(), peak.as_doubles());
                limit!(wide, a5_any_order(&x, &bits, total, peak, [total_bits, peak_bits]));
            }
        });
        Some(On { made, run })
    },
};

/// Order statistics.
pub const A6: Limit = limit(|inputs, wide| {
    let (x, points) = (doubles(inputs, 0)?, points(inputs, 1)?);
    let groups = points.len() - 1;
    let longest = points.windows(2).map(|ends| (ends[1] - ends[0]) as usize).max().unwrap_or(0);
    let mut rooms = [0; 4].map(|_| Aligned::new(longest + SPARE));
    let made = vec![Made::integers(groups, true), Made::doubles(groups, true), Made::doubles(groups, true)];
    let run: Run = Box::new(move |made| {
        if let [best, middle, p90] = made {
            let ((best, first), (middle, second)) = (best.as_integers(), middle.as_doubles());
            let (p90, third) = p90.as_doubles();
            let rooms = rooms.each_mut().map(|room| &mut **room);
            limit!(wide, a6(&x, &points, rooms, (best, middle, p90, [first, second, third])));
        }
    });
    Some(On { made, run })
});

/// The logistic curve.
pub const A7: Limit = limit(|inputs, wide| {
    let (x, k, c) = (Aligned::<f32>::copy(array(inputs, 0)?.numbers()?), single(inputs, 1)?, single(inputs, 2)?);
    let run: Run = Box::new(move |made| {
        if let [total, average] = made {
            let (sum, mean) = limit!(wide, a7(&x, k, c));
            total.as_doubles().0[0] = sum.into();
            average.as_doubles().0[0] = mean.into();
        }
    });
    Some(On { made: vec![Made::doubles(1, false), Made::doubles(1, false)], run })
});

/// Outliers.
pub const A8: Limit = limit(|inputs, wide| {
    let (x, (by, bits, groups)) = (doubles(inputs, 0)?, mapping(inputs, 1)?);
    let (mut table, mut spread) = (Aligned::new(groups + 1), Aligned::new(groups + 1));
    let run: Run = Box::new(move |made| {
        if let [found] = made {
            found.as_integers().0[0] = limit!(wide, a8(&x, (&by, bits.as_deref()), &mut table, &mut spread));
        }
    });
    Some(On { made: vec![Made::integers(1, false)], run })
});

/// The request.
pub const Q20: Limit = limit(|inputs, wide| {
    let optional = |at| optional(inputs, at).map(|(all, bits)| (all, bits[0]));
    let some = [optional(0)?, optional(1)?, optional(2)?, optional(3)?, optional(4)?];
    let doubles = |at| doubles(inputs, at);
    let all = [doubles(5)?, doubles(6)?, doubles(7)?, doubles(8)?, doubles(9)?];
    let points = points(inputs, 10)?;
    let made = vec![Made::doubles(all[0].len(), false), Made::doubles(points.len() - 1, false)];
    let run: Run = Box::new(move |made| {
        if let [p, worth] = made {
            let some = some.each_ref().map(|(all, bits)| (&**all, *bits));
            let all = all.each_ref().map(|all| &**all);
            limit!(wide, q20(some, all, &points, p.as_doubles().0, worth.as_doubles().0));
        }
    });
    Some(On { made, run })
});

fn array(inputs: &Inputs, at: usize) -> Option<&Array> {
    if let Value::Array(_, array) = &inputs.get(at)?.1 { Some(array) } else { None }
}

/// Elements that are all there.
fn doubles(inputs: &Inputs, at: usize) -> Option<Aligned<f64>> {
    let array = array(inputs, at)?;
    (array.present_count() == array.len()).then(|| array.numbers().map(Aligned::copy))?
}

/// Elements, and which of them are there.
fn optional(inputs: &Inputs, at: usize) -> Option<(Aligned<f64>, Vec<u64>)> {
    let array = array(inputs, at)?;
    let all = || vec![u64::MAX; array.len().div_ceil(64)];
    Some((Aligned::copy(array.numbers()?), array.presence().map_or_else(all, <[u64]>::to_vec)))
}

fn single(inputs: &Inputs, at: usize) -> Option<f32> {
    if let ScalarValue::Float32(value) = inputs.get(at)?.1.as_scalar()? { Some(*value) } else { None }
}

/// The group of each element, which of them are in one, and how many groups there are.
fn mapping(inputs: &Inputs, at: usize) -> Option<(Aligned<i64>, Option<Vec<u64>>, usize)> {
    let Value::Edge(edge) = &inputs.get(at)?.1 else { return None };
    let EdgeForm::Mapping(by, groups) = edge.form() else { return None };
    Some((Aligned::copy(by.numbers()?), by.presence().map(<[u64]>::to_vec), *groups))
}

/// The points between contiguous groups.
fn points(inputs: &Inputs, at: usize) -> Option<Vec<i64>> {
    let Value::Edge(edge) = &inputs.get(at)?.1 else { return None };
    if let EdgeForm::Splits(points) = edge.form() { Some(points.clone()) } else { None }
}
