//! Calendar arithmetic for lowering rules: functions that record, for example, the year of a day as instructions on a
//! tape. Days are 64-bit floats, and there are no branches, so that the instructions run on vectors of rows.
//!
//! A quotient that is rounded down is computed as a product with the reciprocal of the divisor. Every dividend is a
//! whole number, to which half a unit or less is added. So the exact quotient is never a whole number, and its distance
//! from the nearest whole number is larger than the rounding errors of the product. The result is therefore the same as
//! with a division.

use cembra_runtime::{Date, FaultKind, MachineType, Timestamp};
use cembra_tape::{Bin, Cell, Cmp, Mask, Tape, Un, Val};

/// The days from 0000-03-01, where cycles of 400 years begin, to 1970-01-01.
const SHIFT: f64 = 719_468.0;

/// Records the FLOAT64 constant `value` on the tape.
pub(super) fn number(t: &mut Tape, value: f64) -> Val {
    t.konst(MachineType::F64, value.to_bits())
}

/// Records the sum `x + term` on the tape.
pub(super) fn plus(t: &mut Tape, x: Val, term: f64) -> Val {
    let term = number(t, term);
    t.bin(Bin::Add, x, term)
}

/// Records the product `x * factor` on the tape.
pub(super) fn times(t: &mut Tape, x: Val, factor: f64) -> Val {
    let factor = number(t, factor);
    t.bin(Bin::Mul, x, factor)
}

/// Records `(x + above) / divisor`, rounded down.
pub(super) fn quotient(t: &mut Tape, x: Val, above: f64, divisor: f64) -> Val {
    let sum = plus(t, x, above);
    let product = times(t, sum, 1.0 / divisor);
    t.un(Un::Floor, product)
}

/// Records the remainder of `x` after `count` units of length `size`: `x - floor(count * size)`.
pub(super) fn rest(t: &mut Tape, x: Val, count: Val, size: f64) -> Val {
    let taken = times(t, count, size);
    let taken = t.un(Un::Floor, taken);
    t.bin(Bin::Sub, x, taken)
}

/// Returns the number in `cell` as a FLOAT64, recording a conversion if it has another type.
pub(super) fn float(t: &mut Tape, cell: Cell) -> Val {
    let x = cell.val(t);
    if t.ty(x) == MachineType::F64 { x } else { t.un(Un::Convert(MachineType::F64), x) }
}

/// Records the conversion of `x`, a float without a fraction, to an i32, and returns the i32 as a cell, the form of a rule's result.
pub(super) fn whole(t: &mut Tape, x: Val) -> Cell {
    Cell::num(t.un(Un::Convert(MachineType::I32), x))
}

/// Records the conversion of `x`, a float without a fraction whose value fits into an i32, to an i64. The conversion goes through an i32, because
/// vector instruction sets can convert a float to an i32 and an i32 to an i64, but not a float to an i64.
pub(super) fn long(t: &mut Tape, x: Val) -> Cell {
    let x = t.un(Un::Convert(MachineType::I32), x);
    Cell::num(t.un(Un::Convert(MachineType::I64), x))
}

/// Records the number of days from 1970-01-01 to the date or timestamp in `cell`.
pub(super) fn days(t: &mut Tape, cell: Cell) -> Val {
    let x = cell.val(t);
    let days = if t.ty(x) == MachineType::I64 { split(t, x).0 } else { x };
    t.un(Un::Convert(MachineType::F64), days)
}

/// Records the splitting of a timestamp into days since 1970-01-01, rounded down, and the microseconds after the start of that day.
pub(super) fn split(t: &mut Tape, x: Val) -> (Val, Val) {
    let (size, zero, one) =
        (t.konst(MachineType::I64, Timestamp::DAY as u64), t.konst_like(x, 0.0), t.konst_like(x, 1.0));
    let days = t.bin(Bin::Div, x, size);
    let taken = t.bin(Bin::Mul, days, size);
    let left = t.bin(Bin::Sub, x, taken);
    // The division rounds towards 0.
    let below = t.cmp(Cmp::Lt, left, zero);
    let (fewer, more) = (t.bin(Bin::Sub, days, one), t.bin(Bin::Add, left, size));
    (t.select(below, fewer, days), t.select(below, more, left))
}

/// A day as year, month and day of a calendar in which years begin in March, so that 29 February is the last day of its
/// year.
pub(super) struct MarchDate {
    century: Val,
    year: Val,
    /// The month of the year that begins in March, from 0 for March.
    pub(super) month: Val,
    /// The day of the year, from 0.
    day: Val,
}

impl MarchDate {
    /// Records the conversion of days since 1970-01-01 to year, month and day.
    pub(super) fn of(t: &mut Tape, days: Val) -> MarchDate {
        // On average a century has 36524.25 days, a year 365.25, and five months 153.
        let days = plus(t, days, SHIFT);
        let century = quotient(t, days, 0.875, 36_524.25);
        let day = rest(t, days, century, 36_524.25);
        let year = quotient(t, day, 0.875, 365.25);
        let day = rest(t, day, year, 365.25);
        let month = quotient(t, day, 0.5, 30.6);
        MarchDate { century, year, month, day }
    }

    /// Records the mask that is set if the day is in January or February, which belong to the next calendar year.
    pub(super) fn is_next_year(&self, t: &mut Tape) -> Mask {
        let january = number(t, 10.0);
        t.cmp(Cmp::Ge, self.month, january)
    }

    fn year_from_march(&self, t: &mut Tape) -> Val {
        let centuries = times(t, self.century, 100.0);
        t.bin(Bin::Add, centuries, self.year)
    }

    /// Records the calendar year of the day.
    pub(super) fn year(&self, t: &mut Tape) -> Val {
        let (zero, one) = (number(t, 0.0), number(t, 1.0));
        let next = self.is_next_year(t);
        let more = t.select(next, one, zero);
        let year = self.year_from_march(t);
        t.bin(Bin::Add, year, more)
    }

    /// Records the month of the day in the calendar year, from 1 for January.
    pub(super) fn month_of_year(&self, t: &mut Tape) -> Val {
        let next = self.is_next_year(t);
        let (early, late) = (number(t, -9.0), number(t, 3.0));
        let shift = t.select(next, early, late);
        t.bin(Bin::Add, self.month, shift)
    }

    /// Records the day of the month, counted from 0.
    pub(super) fn day_of_month(&self, t: &mut Tape) -> Val {
        let before = days_before_month(t, self.month);
        t.bin(Bin::Sub, self.day, before)
    }

    /// Records the number of months from March of the year 0 to the month of this day.
    pub(super) fn months(&self, t: &mut Tape) -> Val {
        let year = self.year_from_march(t);
        let months = times(t, year, 12.0);
        t.bin(Bin::Add, months, self.month)
    }
}

/// The number of days before the month `month` in a year that begins in March.
fn days_before_month(t: &mut Tape, month: Val) -> Val {
    let days = times(t, month, 30.6);
    let days = plus(t, days, 0.5);
    t.un(Un::Floor, days)
}

/// The number of days in the first `years` years of a cycle of 400 years. Every fourth year is a leap year, but of the
/// hundredth years only the four-hundredth.
fn days_of_years(t: &mut Tape, years: Val) -> Val {
    let [fourth, hundredth, four_hundredth] = [4.0, 100.0, 400.0].map(|length| quotient(t, years, 0.5, length));
    let days = times(t, years, 365.0);
    let days = t.bin(Bin::Add, days, fourth);
    let days = t.bin(Bin::Sub, days, hundredth);
    t.bin(Bin::Add, days, four_hundredth)
}

/// Records the first day of a month, in days since 1970-01-01. `months` is 0 for March of the year 0.
pub(super) fn first_day(t: &mut Tape, months: Val) -> Val {
    let year = quotient(t, months, 0.5, 12.0);
    let month = rest(t, months, year, 12.0);
    let (years, before) = (days_of_years(t, year), days_before_month(t, month));
    let days = t.bin(Bin::Add, years, before);
    plus(t, days, -SHIFT)
}

/// Records the first day of the month after the month `months`, in days since 1970-01-01. `months` is 0 for March of
/// the year 0.
pub(super) fn first_day_after(t: &mut Tape, months: Val) -> Val {
    let next = plus(t, months, 1.0);
    first_day(t, next)
}

/// Records the day of the week on the day `days`, from 1 for Monday.
pub(super) fn weekday(t: &mut Tape, days: Val) -> Val {
    // 1970-01-01 is three days from a Monday.
    let days = plus(t, days, 3.0);
    let weeks = quotient(t, days, 0.5, 7.0);
    let day = rest(t, days, weeks, 7.0);
    plus(t, day, 1.0)
}

/// Records the position of the day `days` in the year `year`, counted from 1.
pub(super) fn day_of_year(t: &mut Tape, days: Val, year: Val) -> Val {
    // The whole years since the year 1, whose first day is day 1.
    let years = plus(t, year, -1.0);
    let before = days_of_years(t, years);
    let days = plus(t, days, 719_163.0);
    t.bin(Bin::Sub, days, before)
}

/// Records a fault, `time-range`, that is raised if `days` is outside the years 1 to 9999. The fault reports the first operand in `a`.
pub(super) fn check(t: &mut Tape, a: &[Cell], days: Val) {
    let (outside, operand) = (is_outside(t, days), a[0].val(t));
    t.fault_if(outside, FaultKind::TimeRange, [Some(operand), None]);
}

/// Records the mask that is set where `days` is outside the years 1 to 9999.
pub(super) fn is_outside(t: &mut Tape, days: Val) -> Mask {
    let [first, last] = [Date::FIRST, Date::LAST].map(|date| number(t, f64::from(date.0)));
    let (below, above) = (t.cmp(Cmp::Lt, days, first), t.cmp(Cmp::Gt, days, last));
    t.mor(below, above)
}
