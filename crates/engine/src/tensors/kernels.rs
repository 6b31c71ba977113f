//! Compiled element expressions (the code for one element of a tensor), bound to the distances between their operands'
//! elements: the kernels that plans run for each line. A line is an array of elements that lie at equal distances in
//! memory. A kernel cannot run on a line if an element fails or may fail, or if only the interpreter evaluates the
//! expression. Then the expression's plan runs on rows instead, and reports the error.

use crate::rows::plan_rows::PlanRows;
use crate::rows::{
    BoundLineFunction, ColumnMut, InputColumn, LineCall, LineLayout, LineMut, LineStart, Lines, PrefetchHint,
    ResultTarget,
};
use crate::stages::faults::in_elements;
use crate::tensors::lines::{InputLine, Line, LinePrefetch, OneTarget};
use cembra_runtime::Chains;
use cembra_tensor::{Body, Data, DataMut, Tensor, TensorErrorKind};
use cembra_value::{Error, RunTerms, Value, with_data, with_data_mut};
use smallvec::SmallVec;
use std::sync::Arc;

/// For each input of a plan, the index of this input among the inputs of the element expression (body).
type Order = SmallVec<[usize; 4]>;

/// The error for memory whose type or size does not fit the elements.
#[cold]
pub(crate) fn misfit() -> Error {
    Error::tensors(TensorErrorKind::SizeMismatch, "the memory is not of the type and size of the elements")
}

/// Compiles an element expression to a function for lines (arrays of elements). `steps` has, for each operand, the
/// distance between the elements of a line. `None` if no function evaluates several rows at a time.
fn bind_lines(
    plan: &PlanRows,
    body: &Body,
    order: &Order,
    steps: &[isize],
    sink: ResultTarget,
) -> Result<Option<BoundLineFunction>, Error> {
    let pace = |at: &usize| Some(LineLayout { scalar: *body.inputs.get(*at)?, step: *steps.get(*at)? });
    let Some(paces) = order.iter().map(pace).collect::<Option<SmallVec<[LineLayout; 8]>>>() else { return Ok(None) };
    plan.bind_lines(&paces, sink)
}

/// A compiled element expression that is evaluated on lines (arrays of elements that lie at equal distances in memory),
/// with memory of its own.
#[derive(Debug)]
pub(crate) struct BodyLines {
    plan: Arc<PlanRows>,
    order: Order,
    function: Option<BoundLineFunction>,
}

impl BodyLines {
    pub(crate) fn of(plan: Arc<PlanRows>, body: &Body, steps: &[isize]) -> Result<BodyLines, Error> {
        let order: Order = plan.leaves().collect();
        let function =
            bind_lines(&plan, body, &order, steps, ResultTarget::Values).map_err(|error| in_elements(&error))?;
        Ok(BodyLines { plan, order, function })
    }
}

/// The lines (arrays of elements) of a plan's inputs. The iterator ends early if `lines` or `shifts` are too short.
#[inline]
fn inputs<'l>(order: &Order, lines: &[Line<'l>], shifts: &[isize]) -> impl Iterator<Item = Lines<'l>> {
    order.iter().map_while(move |at| {
        let line = lines.get(*at)?;
        Some(Lines::of(start(line.data, line.first), [line.step, *shifts.get(*at)?]))
    })
}

/// The start of a line (array of elements): the element at position `first`.
#[inline]
fn start(data: &Data, first: usize) -> LineStart<'_> {
    with_data!(data, elements => LineStart::of(elements, first))
}

fn hint(prefetch: &LinePrefetch<'_>) -> PrefetchHint {
    let LinePrefetch { data, first, shift } = *prefetch;
    with_data!(data, elements => PrefetchHint::of(elements, first, shift))
}

fn output(to: DataMut<'_>) -> LineMut<'_> {
    with_data_mut!(to, elements => LineMut::values(elements))
}

impl BodyLines {
    /// Makes a kernel that evaluates one line (an array of `length` elements) per call. `lines` are the lines of
    /// tensors that the kernel reads. `None` if the compiled function needs more than these lines, such as memory for
    /// intermediate values, or if it does not read all of them.
    pub(crate) fn one_line(&self, lines: &[InputLine], length: usize) -> Option<Box<BodyLine>> {
        BodyLine::of(&self.plan, &self.order, self.function.as_ref()?, lines, length)
    }

    /// Evaluates the expression on lines (arrays of `length` elements), and overwrites `to` with its first output.
    /// `lines` has the first line of each input. If `to` has room for several lines of results, the evaluation is
    /// repeated, each time on lines that begin `shifts` elements later.
    ///
    /// # Errors
    /// If the lines are not within their memory, if their types or the type of `to` do not fit the expression, or if an
    /// element fails.
    pub(crate) fn run(
        &mut self,
        lines: &[Line<'_>],
        shifts: &[isize],
        length: usize,
        to: &mut DataMut<'_>,
    ) -> Result<(), Error> {
        let count = to.len().checked_div(length).unwrap_or(0);
        let counts = [length, count];
        if let Some(function) = &mut self.function
            && function.run(inputs(&self.order, lines, shifts), output(to.reborrow()), counts)
        {
            return Ok(());
        }
        let mut lines: SmallVec<[Line<'_>; 4]> = lines.into();
        for at in 0..count {
            let to = to.part(at * length, length).ok_or_else(misfit)?;
            run(&self.plan, &lines, &mut [to], length, &RunTerms::default())?;
            lines.iter_mut().zip(shifts).for_each(|(line, shift)| line.first = line.first.wrapping_add_signed(*shift));
        }
        Ok(())
    }
}

/// A compiled element expression with a float result that is summed over lines (arrays of elements that lie at equal
/// distances in memory). It has memory of its own.
#[derive(Debug)]
pub(crate) struct BodySums {
    plan: Arc<PlanRows>,
    order: Order,
    function: BoundLineFunction,
}

impl BodySums {
    /// Compiles the plan of an element expression to a kernel that sums its results over lines (arrays of elements);
    /// `None` if no machine code sums several rows at a time.
    pub(crate) fn of(plan: Arc<PlanRows>, body: &Body, steps: &[isize]) -> Result<Option<BodySums>, Error> {
        let order: Order = plan.leaves().collect();
        let function =
            bind_lines(&plan, body, &order, steps, ResultTarget::Chains).map_err(|error| in_elements(&error))?;
        Ok(function.map(|function| BodySums { plan, order, function }))
    }
}

impl BodySums {
    /// Makes a kernel that sums one line (an array of `length` elements) per call. `lines` are the lines of tensors
    /// that the kernel reads. `None` if the compiled function needs more than these lines, such as memory for
    /// intermediate values, or if it does not read all of them.
    pub(crate) fn one_line(&self, lines: &[InputLine], length: usize) -> Option<Box<BodyLine>> {
        BodyLine::of(&self.plan, &self.order, &self.function, lines, length)
    }

    /// Sums the expression's first output over lines (arrays of `counts[0]` elements). `lines` has the first line of
    /// each input. The result for element `i` of a line is added to the chain (partial sum) with index `i` modulo the
    /// number of chains. This is repeated `counts[1]` times, each time for lines that begin `shifts` elements later,
    /// and with the next element of `sums`. Before the call, no chain may be -0.
    ///
    /// Returns false if `sums` is too short, or if an element fails or may fail. After false, the contents of `sums`
    /// are unspecified.
    pub(crate) fn sum_each(
        &mut self,
        lines: &[Line<'_>],
        prefetches: &[LinePrefetch<'_>],
        shifts: &[isize],
        counts: [usize; 2],
        sums: &mut [Chains],
    ) -> bool {
        let hints: SmallVec<[PrefetchHint; 4]> = prefetches.iter().map(hint).collect();
        self.function.sum_each(inputs(&self.order, lines, shifts), &hints, counts, sums)
    }
}

/// A compiled element expression that is evaluated or summed on a single line (an array of elements that lie at equal
/// distances in memory) of each tensor, with as little overhead as possible.
#[derive(Debug)]
pub(crate) struct BodyLine {
    call: LineCall,
    /// The lines (arrays of elements) that the call reads.
    lines: SmallVec<[InputLine; 4]>,
}

impl BodyLine {
    fn of(
        plan: &PlanRows,
        order: &Order,
        function: &BoundLineFunction,
        inputs: &[InputLine],
        length: usize,
    ) -> Option<Box<BodyLine>> {
        let call = function.one_line(length, plan.context())?;
        let wanted = call.inputs().map(|input| order.get(input).copied()).collect::<Option<SmallVec<[usize; 8]>>>()?;
        // Other strides are detected when the line is looked up.
        let all = (0..inputs.len()).all(|input| wanted.contains(&input));
        let lines =
            wanted.iter().map(|input| inputs.get(*input).cloned()).collect::<Option<SmallVec<[InputLine; 4]>>>()?;
        all.then(|| Box::new(BodyLine { call, lines }))
    }

    /// Evaluates the expression on `tensors`, which must be as many as the expression was compiled for. Returns false
    /// if a tensor has other extents, strides or element types than expected, or if an element fails or may fail; after
    /// false, the contents of `to` are unspecified.
    #[inline]
    pub(crate) fn run(&mut self, tensors: &[Tensor], to: OneTarget<'_>) -> bool {
        let BodyLine { call, lines } = self;
        let starts = lines.iter().map_while(|line| line.find(tensors).map(|(data, first)| start(data, first)));
        match to {
            OneTarget::Elements(to) => call.run(starts, output(to)),
            OneTarget::Sums(sums) => call.sum(starts, sums),
        }
    }
}

/// Runs the plan of an element expression on one line (an array of `rows` elements) per input, with the limits and
/// threads of `terms`, and overwrites `outputs`.
pub(crate) fn run(
    plan: &PlanRows,
    lines: &[Line<'_>],
    outputs: &mut [DataMut<'_>],
    rows: usize,
    terms: &RunTerms<'_>,
) -> Result<(), Error> {
    let shared: Vec<Option<Value>> = lines.iter().map(shared).collect();
    let mut columns: Vec<InputColumn<'_>> = Vec::with_capacity(plan.inputs().len());
    for at in plan.leaves() {
        let column = match shared.get(at).ok_or_else(misfit)? {
            Some(value) => InputColumn::shared(value),
            None => column(&lines[at], rows).ok_or_else(misfit)?,
        };
        columns.push(column);
    }
    let places = outputs.iter_mut().map(|to| Some(column_mut(to.reborrow()))).collect();
    plan.run(&columns, places, rows, terms, None).map_err(|error| in_elements(&error))?;
    Ok(())
}

/// The common value of a line (array of elements) that reads the same element again and again, with step 0; `None` for
/// other lines.
fn shared(line: &Line<'_>) -> Option<Value> {
    let at = Some(line.first).filter(|at| line.step == 0 && *at < line.data.len())?;
    Some(with_data!(line.data, elements => elements[at].into()))
}

fn column<'l>(line: &Line<'l>, rows: usize) -> Option<InputColumn<'l>> {
    let Line { data, first, step } = *line;
    with_data!(data, elements => InputColumn::stepped(elements, first, step, rows))
}

fn column_mut(to: DataMut<'_>) -> ColumnMut<'_> {
    with_data_mut!(to, elements => ColumnMut::values(elements))
}
