//! Models that contain arrays, evaluated over many rows, where each row has its own arrays. Usually one array program
//! evaluates a block of rows: its loops run over the elements of all rows of the block, with one group per row. A block
//! has so few rows that intermediate values stay in the caches. If the array program fails on a block, or if two lists
//! of a row must have equal lengths and do not, the rows of the block are evaluated one by one. If no such array
//! program can be made from the model, all rows are evaluated one by one.

use crate::arrays::model::{ArrayMemory, ArrayModel, Compiled};
use crate::options::choice::{Backend, RowPlayer};
use crate::options::compile_options::TimedOptions;
use crate::options::metrics::EventReporter;
use crate::options::signature::Field;
use crate::rows::plan_rows::{check_float_mode, misfit};
use crate::rows::structs::each_member;
use crate::rows::threads::on_threads;
use crate::rows::{
    ColumnBuilder, ColumnMut, InputColumn, Misfit, OutputColumn, OutputRoom, RowsResult, RunRejection, column_bytes,
    element_bytes,
};
use crate::stages::faults;
use crate::stages::sites::operator_name;
use cembra_array::{Fusion, Obstacle, RowsLeaf, RowsModel, RowsOutput, StructColumn, over_rows, struct_columns};
use cembra_expr::Program;
use cembra_prepare::RegionModel;
use cembra_runtime::{ArrayKind, FaultKind, LineKind, Listing, QType, RowsPass, Scalar};
use cembra_value::Error;
use cembra_value::{Array, Code, Diagnostic, Edge, Promise, Value, useful_threads};
use cembra_value::{Limits, OnError, RunTerms};
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The most rows in a block that is evaluated together, and the most elements per list column in a block. A row with
/// more elements is a block of its own.
const TOGETHER: usize = 1 << 14;

/// The most rows per entry of a dictionary that all rows share, in a block of rows that is evaluated together, if the
/// rows contain no strings. The lookup table of such a dictionary is built again for each block, and should cost little
/// in comparison with the block's rows.
const TOGETHER_PER_KEY: usize = 16;
/// The most rows in a block that is evaluated together, for a shared dictionary of any size.
const MOST_TOGETHER: usize = 1 << 20;

/// The strings in a block of rows that is evaluated together may take at most the limit for one row divided by this
/// number, because each thread copies such a block. The rows of a block with more bytes are evaluated one by one.
const PIECE_SHARE: u64 = 16;

/// A model that contains arrays, compiled to be evaluated over many rows. It consists of an array program that
/// evaluates blocks of rows, if the model permits such a program, and of a compiled model that evaluates one row.
#[derive(Debug)]
pub struct ListRows {
    by_row: ArrayModel,
    together: Result<RowsProgram, Diagnostic>,
    program: Arc<Program>,
    inputs: Box<[Field]>,
    /// The columns of all inputs, one input after the other. An input whose type has no columns has one unused entry.
    columns: Box<[StructColumn]>,
    outputs: Box<[Field]>,
    player: RowPlayer,
    watch: EventReporter,
    /// False if an operator of the model has an effect that a user can see. Each row must then be evaluated once, and
    /// rows in their order.
    is_pure: bool,
}

/// The array program that evaluates a block of rows at once, and its relation to the columns of the model.
#[derive(Debug)]
struct RowsProgram {
    compiled: Compiled,
    /// The source of each input of the array program: a column of the model, and the values that are taken from the
    /// column.
    sources: Vec<Source>,
    /// For each pair of columns in the list: in each row, the lists of the two columns must have equal lengths.
    alike: Vec<(usize, usize)>,
    /// For each column, whether a list that all rows share is stored once, and not repeated for each row.
    sought: Vec<bool>,
    /// For each column of the outputs, how its elements belong to the rows. The columns of an output follow each other.
    outputs: Vec<OutputForm>,
}

/// The values of a model's column that an input of the array program is made from. The number is the index of the
/// column.
#[derive(Clone, Copy, Debug)]
enum Source {
    Scalars(usize),
    Elements(usize),
    Edge(usize),
    Starts(usize),
    Ends(usize),
}

/// The contents of an output's column: one value for all rows, one element per row, or lists with the lengths of the lists in an input's column.
#[derive(Clone, Copy, Debug)]
enum OutputForm {
    Shared,
    Scalars,
    Elements(usize),
}

/// The reason why a block of rows was not evaluated together.
enum BlockFailure {
    /// The run was cancelled, or its time is over.
    Cancelled,
    /// The outputs exceed the memory limit of the run.
    NoRoom,
    /// The reason is unknown; the rows must be evaluated one by one to find it.
    Unknown,
}

impl ListRows {
    /// Compiles a program that contains arrays, to be evaluated over many rows.
    ///
    /// # Errors
    /// If an operator is not supported for arrays, or a limit is exceeded.
    pub fn of(program: Arc<Program>, placed: RegionModel, options: &TimedOptions) -> Result<ListRows, Error> {
        let graph = &placed.model.graph;
        let is_pure = graph.ids().all(|node| match graph.operator(node) {
            Some((op, Some(overload), _)) => {
                let overloads = placed.model.registry.get(op).overloads();
                overloads.get(usize::from(overload)).is_none_or(|overload| overload.pure)
            }
            _ => true,
        });
        let interprets = options.backend == Backend::Interpreter || options.row_player == RowPlayer::Interpreter;
        let rows_of_model = if interprets {
            Err(Diagnostic::new(Code::Arrays, "rows are evaluated one by one: the options choose the interpreter"))
        } else {
            over_rows(&placed).map_err(|Obstacle { node, why }| {
                let origin = graph.origin(node);
                let name = operator_name(&program.graph, origin);
                let message = format!("rows are evaluated one by one because of {name}: {why}");
                Diagnostic::new(Code::Arrays, message).at(program.graph.span(origin))
            })
        };
        let leaf_names: Vec<Arc<str>> = placed.model.leaves.iter().map(|(name, _)| name.clone()).collect();
        let by_row = ArrayModel::of(program.clone(), placed, options)?;
        let [inputs, outputs] = by_row.fields();
        let columns: Vec<Vec<StructColumn>> = inputs.iter().map(columns_of).collect();
        let mut end = 0;
        let starts = inputs.iter().zip(&columns).map(|(input, columns)| {
            end += columns.len();
            (&*input.name, end - columns.len())
        });
        let starts: FxHashMap<&str, usize> = starts.collect();
        let together = rows_of_model.and_then(|rows| {
            let position = |column: usize| {
                let (leaf, part) = rows.columns[column];
                Some(starts.get(&*leaf_names[leaf])? + part)
            };
            let columns = columns.iter().map(Vec::len).sum();
            let made = RowsProgram::of(&rows, (columns, &position), &program, options);
            made.map_err(|error| Diagnostic::new(Code::Arrays, format!("rows are evaluated one by one: {error}")))
        });
        let player = if interprets { RowPlayer::Interpreter } else { options.row_player };
        let columns = columns.into_iter().flatten().collect();
        let watch = EventReporter::new(options.metrics.as_ref(), options.name.clone());
        Ok(ListRows { by_row, together, program, inputs, columns, outputs, player, watch, is_pure })
    }

    pub(crate) const fn watch(&self) -> &EventReporter {
        &self.watch
    }

    pub(crate) fn inputs(&self) -> &[Field] {
        &self.inputs
    }

    pub(crate) fn outputs(&self) -> &[Field] {
        &self.outputs
    }

    pub(crate) const fn player(&self) -> RowPlayer {
        self.player
    }

    /// The limits that evaluations of the model must not exceed.
    pub(crate) const fn limits(&self) -> &Limits {
        self.by_row.limits()
    }

    /// The reason why rows are evaluated one by one; `None` if they are evaluated together.
    pub(crate) fn obstacle(&self) -> Option<&Diagnostic> {
        self.together.as_ref().err()
    }

    /// The text of the array program that evaluates many rows together, or the reason why there is no such program.
    pub fn listing(&self) -> Listing {
        match &self.together {
            Ok(together) => together.listing(self),
            Err(obstacle) => Listing::of_text(LineKind::Note, &format!("{}.", obstacle.message())),
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let together = self.together.as_ref().map_or(0, |together| together.compiled.memory_bytes());
        size_of::<ListRows>() + self.by_row.memory_bytes() + together
    }

    /// Checks that `columns` fit the model's inputs: their number, their types, and `rows` rows each.
    ///
    /// # Errors
    /// The first column that does not fit its input.
    pub(crate) fn check(&self, columns: &[InputColumn<'_>], rows: usize) -> Result<(), Error> {
        let refuse = |refused| Err(misfit(&self.inputs, &self.outputs, &refused));
        let (found, expected) = (columns.len(), self.inputs.len());
        if found != expected {
            return refuse(RunRejection::Inputs { found, expected });
        }
        for (at, (column, input)) in columns.iter().zip(&self.inputs).enumerate() {
            let checked = match column.as_structs() {
                Some(columns) => check_structs(columns, &input.qtype, rows),
                None => column.check(&input.qtype, rows),
            };
            if let Err(misfit) = checked {
                return refuse(RunRejection::Input { at, misfit });
            }
        }
        Ok(())
    }

    /// The columns of all inputs; `None` for the columns of structs that the caller stores as one value per row.
    fn flat<'c>(&self, columns: &[InputColumn<'c>]) -> Vec<Option<InputColumn<'c>>> {
        let mut flat = Vec::with_capacity(self.columns.len());
        for (column, input) in columns.iter().zip(&self.inputs) {
            match (column.as_structs(), column.as_shared(), &input.qtype) {
                (Some(columns), ..) => flat.extend(columns.iter().copied().map(Some)),
                (None, Some(value), QType::Tuple(_)) if struct_columns(&input.qtype).is_some() => {
                    each_member(value, &mut |member| flat.push(Some(InputColumn::shared(member))));
                }
                (None, _, QType::Tuple(_)) => flat.extend(columns_of(input).iter().map(|_| None)),
                (None, ..) => flat.push(Some(*column)),
            }
        }
        flat
    }

    /// Returns true if a row has a dictionary with more entries than the limit.
    fn has_large_dictionary(&self, columns: &[InputColumn<'_>], rows: &Range<usize>) -> bool {
        let most = self.limits().dict_entries;
        let entries = |column: &InputColumn<'_>| match column.as_structs().and_then(|parts| parts.first()?.as_lists()) {
            Some((offsets, _)) => offsets.longest(rows.clone()),
            None => column.as_shared().and_then(Value::list_len).unwrap_or(0),
        };
        let maps = columns.iter().zip(&self.inputs).filter(|(_, input)| input.qtype.as_map().is_some());
        maps.into_iter().any(|(column, _)| entries(column) > most)
    }

    /// Evaluates the model on `rows` rows. Returns the outputs, and the number of rows that were evaluated one by one.
    pub(crate) fn run(
        &self,
        columns: &[InputColumn<'_>],
        outputs: &[Option<ColumnMut<'_>>],
        rows: usize,
        terms: &RunTerms<'_>,
    ) -> Result<(RowsResult<Error>, usize), Error> {
        let (found, expected) = (outputs.len(), self.outputs.len());
        if found != expected {
            return Err(misfit(&self.inputs, &self.outputs, &RunRejection::Outputs { found, expected }));
        }
        if let Some(at) = outputs.iter().position(Option::is_some) {
            return Err(misfit(&self.inputs, &self.outputs, &RunRejection::Output { at, misfit: Misfit::Memory }));
        }
        self.check(columns, rows)?;
        let most_strings = terms.limits.unwrap_or(self.limits()).array_bytes;
        let room = OutputRoom::of(most_strings);
        let run = ListRun { model: self, columns, flat: self.flat(columns), terms, room: &room, most_strings };
        let pieces = run.pieces(rows);
        let threads = if self.is_pure { useful_threads(terms.threads) } else { 1 };
        // There are a few parts per thread, so that threads finish at about the same time.
        let parts: Vec<&[Range<usize>]> = match threads {
            1 => vec![&pieces[..]],
            _ => pieces.chunks(pieces.len().div_ceil(threads.saturating_mul(4)).max(1)).collect(),
        };
        let failed_first = AtomicUsize::new(usize::MAX);
        let one = |(at, pieces): (usize, &&[Range<usize>])| {
            // Parts after a row that stops the run are not needed.
            if failed_first.load(Ordering::Relaxed) < at {
                return Ok(RowOutputs::new(self, 0, 0));
            }
            run.part(pieces).inspect_err(|_| {
                failed_first.fetch_min(at, Ordering::Relaxed);
            })
        };
        let done = on_threads(parts.iter().enumerate(), one);
        let mut all: Option<RowOutputs> = None;
        for part in done {
            let part = part?;
            match &mut all {
                None => all = Some(part),
                Some(all) => all.append(part),
            }
        }
        let RowOutputs { columns, failed, mut failures, row_by_row, .. } =
            all.unwrap_or_else(|| RowOutputs::new(self, 0, 0));
        failures.truncate(terms.keep_failures);
        let columns: Vec<Option<OutputColumn>> = columns.into_iter().map(|column| Some(column.finish())).collect();
        Ok((RowsResult { columns, failed, failures }, row_by_row))
    }
}

impl RowsProgram {
    fn of(
        rows: &RowsModel,
        (columns, position): (usize, &dyn Fn(usize) -> Option<usize>),
        program: &Arc<Program>,
        options: &TimedOptions,
    ) -> Result<RowsProgram, Error> {
        let unknown = || Error::values("the program for many rows has an input that the model does not have");
        let compiled = Compiled::of(&rows.placed, program, Fusion::Full, None, options)?;
        let sources = compiled.program().inputs().iter().map(|input| {
            let leaf = rows.leaves.get(input.leaf as usize);
            Ok(match *leaf.ok_or_else(unknown)? {
                RowsLeaf::Scalars(leaf) => Source::Scalars(position(leaf).ok_or_else(unknown)?),
                RowsLeaf::Elements(leaf) => Source::Elements(position(leaf).ok_or_else(unknown)?),
                RowsLeaf::Edge(leaf) => Source::Edge(position(leaf).ok_or_else(unknown)?),
                RowsLeaf::Starts(leaf) => Source::Starts(position(leaf).ok_or_else(unknown)?),
                RowsLeaf::Ends(leaf) => Source::Ends(position(leaf).ok_or_else(unknown)?),
            })
        });
        let sources = sources.collect::<Result<_, Error>>()?;
        let alike = rows.spaces.iter().enumerate().filter(|(leaf, first)| leaf != *first);
        let alike = alike.filter_map(|(leaf, first)| Some((position(leaf)?, position(*first)?))).collect();
        let mut sought = vec![false; columns];
        for (leaf, is_sought) in rows.sought.iter().enumerate() {
            if let Some(sought) = position(leaf).and_then(|at| sought.get_mut(at)) {
                *sought = *is_sought;
            }
        }
        let outputs = rows.outputs.iter().flatten().map(|output| {
            Ok(match *output {
                RowsOutput::Shared => OutputForm::Shared,
                RowsOutput::Scalars => OutputForm::Scalars,
                RowsOutput::Elements(leaf) => OutputForm::Elements(position(leaf).ok_or_else(unknown)?),
            })
        });
        Ok(RowsProgram { compiled, sources, alike, sought, outputs: outputs.collect::<Result<_, Error>>()? })
    }

    /// The array program as text, with the meaning of its inputs.
    fn listing(&self, model: &ListRows) -> Listing {
        let names: Vec<String> = model.inputs.iter().flat_map(names_of_columns).collect();
        let mut listing = Listing::of_text(LineKind::Heading, "Over many rows:");
        for (input, source) in self.compiled.program().inputs().iter().zip(&self.sources) {
            let (what, at) = match *source {
                Source::Scalars(at) => ("the scalars of", at),
                Source::Elements(at) => ("the elements of all rows of", at),
                Source::Edge(at) => ("the edge that assigns elements to the rows of", at),
                Source::Starts(at) => ("the position of each row's first element, among all elements of", at),
                Source::Ends(at) => ("the position after each row's last element, among all elements of", at),
            };
            listing.push(LineKind::Input, [], format_args!("L.{} is {what} `{}`", input.name, names[at]));
        }
        listing.append(self.compiled.program().listing(), "");
        listing
    }

    /// The array of the column with index `at`, if the column's list is stored once for all rows; `None` for other
    /// columns.
    fn once<'c>(&self, at: usize, column: &InputColumn<'c>) -> Option<&'c Arc<Array>> {
        if self.sought[at] { shared_array(column) } else { None }
    }

    /// Evaluates the rows `rows` by one run of the array program, and appends the results to `part`. After an error,
    /// nothing was appended.
    fn run(&self, run: &ListRun<'_>, rows: &Range<usize>, part: &mut RowOutputs) -> Result<(), BlockFailure> {
        let columns = &run.flat;
        let column = |at: usize| columns.get(at)?.as_ref();
        let splits = |at: usize| splits(column(at)?, rows);
        let is_alike = |(a, b): &(usize, usize)| splits(*a) == splits(*b);
        if !self.alike.iter().all(is_alike) || run.model.has_large_dictionary(run.columns, rows) {
            return Err(BlockFailure::Unknown);
        }
        let once = |at: usize| self.once(at, column(at)?);
        let points = |points: &[i64]| {
            let made = Array::of_numbers(Scalar::Int64, points.len(), None, |to| to.copy_from_slice(points))?;
            Some(Value::Array(ArrayKind::Dense, made.into()))
        };
        let of = |source: &Source| -> Option<Value> {
            match *source {
                Source::Scalars(at) => {
                    let scalar = run.model.columns[at].qtype.scalar()?;
                    Some(Value::Array(ArrayKind::Dense, column(at)?.array(scalar, rows.clone())?.into()))
                }
                Source::Elements(at) => {
                    // A row that breaks a promise of its input is reported by evaluating it alone.
                    let StructColumn { qtype, promise, .. } = &run.model.columns[at];
                    let all = match once(at) {
                        Some(shared) => Value::Array(ArrayKind::Dense, shared.clone()),
                        None => elements(column(at)?, qtype, rows)?,
                    };
                    promise.check(&all).is_ok().then_some(all)
                }
                Source::Edge(at) => Some(Edge::from_split_points(ArrayKind::Dense, splits(at)?).ok()?.into()),
                Source::Starts(at) => match once(at) {
                    Some(_) => points(&vec![0; rows.len()]),
                    None => points(splits(at)?.split_last()?.1),
                },
                Source::Ends(at) => match once(at) {
                    Some(shared) => points(&vec![shared.len() as i64; rows.len()]),
                    None => points(splits(at)?.split_first()?.1),
                },
            }
        };
        let of_strings = self.sources.iter().map(|source| match *source {
            Source::Scalars(at) | Source::Elements(at) if once(at).is_none() => {
                column(at).map_or(0, |column| column.string_bytes(rows.clone()))
            }
            _ => 0,
        });
        if of_strings.fold(0, u64::saturating_add) > run.most_strings / PIECE_SHARE {
            return Err(BlockFailure::Unknown);
        }
        let inputs: Option<Vec<Value>> = self.sources.iter().map(of).collect();
        let inputs = inputs.ok_or(BlockFailure::Unknown)?;
        let mut made = Vec::new();
        let memory = &mut part.together;
        let ran = self.compiled.run(&run.model.program, &inputs, &run.terms.inside(), memory, &mut made);
        ran.map_err(|error| match error.fault_kind() {
            Some(kind) if kind.is_of_token() => BlockFailure::Cancelled,
            _ => BlockFailure::Unknown,
        })?;
        // All outputs must exist before the first is appended.
        let fits = self.outputs.iter().zip(&made).all(|(output, value)| match (output, value) {
            (OutputForm::Scalars, Value::Array(_, array)) => array.len() == rows.len(),
            (OutputForm::Elements(at), Value::Array(_, array)) => {
                column(*at).and_then(|column| count(column, rows)) == Some(array.len())
            }
            (OutputForm::Shared, value) => value.qtype().scalar().is_some(),
            _ => false,
        });
        if !fits {
            return Err(BlockFailure::Unknown);
        }
        let bytes = |(output, value): (&OutputForm, &Value)| {
            column_bytes(value).saturating_mul(if matches!(output, OutputForm::Shared) { rows.len() as u64 } else { 1 })
        };
        if !run.takes(self.outputs.iter().zip(&made).map(bytes), rows) {
            return Err(BlockFailure::NoRoom);
        }
        let columns = part.columns.iter_mut().flat_map(ColumnBuilder::columns_mut);
        for ((output, value), column) in self.outputs.iter().zip(&made).zip(columns) {
            match (output, value) {
                (OutputForm::Scalars, Value::Array(_, array)) => column.extend(array),
                (OutputForm::Elements(at), Value::Array(_, array)) => {
                    column.extend_lists(&splits(*at).unwrap_or_default(), array);
                }
                _ => rows.clone().for_each(|_| column.push(Some(value))),
            }
        }
        inputs.into_iter().chain(made).for_each(|value| part.together.recycle(value));
        Ok(())
    }
}

/// The columns of an input. An input whose type has no columns has one unused entry.
fn columns_of(input: &Field) -> Vec<StructColumn> {
    match struct_columns(&input.qtype) {
        // The type of an array does not contain its promise.
        Some(columns) if !matches!(input.qtype, QType::Tuple(_)) => {
            columns.into_iter().map(|column| StructColumn { promise: input.promise, ..column }).collect()
        }
        Some(columns) => columns,
        None => {
            vec![StructColumn {
                qtype: input.qtype.clone(),
                promise: input.promise,
                first_list_column: None,
                presence_column: None,
            }]
        }
    }
}

/// The names of an input's columns.
fn names_of_columns(input: &Field) -> Vec<String> {
    match columns_of(input).len() {
        1 if !matches!(input.qtype, QType::Tuple(_)) => vec![input.name.to_string()],
        count => (0..count).map(|at| format!("{}, column {at}", input.name)).collect(),
    }
}

/// Checks that `columns`, the columns of an input of structs, fit the struct type `qtype` and have `rows` rows.
pub(crate) fn check_structs(columns: &[InputColumn<'_>], qtype: &QType, rows: usize) -> Result<(), Misfit> {
    let types = struct_columns(qtype).filter(|types| types.len() == columns.len()).ok_or(Misfit::Structs)?;
    for (column, of) in columns.iter().zip(&types) {
        column.check(&of.qtype, rows)?;
        if let Some((mask, scalar)) = of.presence_column.zip(of.qtype.scalar())
            && let Some(row) = column.first_missing_where(&columns[mask], scalar, rows)
        {
            return Err(Misfit::Missing { row });
        }
        if of.first_list_column.is_some()
            && of.promise == Promise::Full
            && let Some(row) = column.first_lacking(rows)
        {
            return Err(Misfit::Missing { row });
        }
        if let Some(row) = of.first_list_column.and_then(|first| column.first_of_another_size(&columns[first], rows)) {
            return Err(Misfit::Sizes { row });
        }
    }
    Ok(())
}

/// The array that all rows share; `None` if each row has its own.
fn shared_array<'a>(column: &InputColumn<'a>) -> Option<&'a Arc<Array>> {
    match column.as_shared()? {
        Value::Array(_, array) => Some(array),
        _ => None,
    }
}

/// The split points of the rows' elements: the index at which each row begins, counted from the first element of the
/// first row, and the end of the last row. `None` if the column does not have lists.
fn splits(column: &InputColumn<'_>, rows: &Range<usize>) -> Option<Vec<i64>> {
    if let Some((offsets, _)) = column.as_lists() {
        return Some(offsets.splits(rows.clone()));
    }
    let size = shared_array(column)?.len();
    Some((0..=rows.len()).map(|row| row.saturating_mul(size) as i64).collect())
}

/// The number of elements that a column of lists has in the rows `rows`; `None` if the column does not have lists.
fn count(column: &InputColumn<'_>, rows: &Range<usize>) -> Option<usize> {
    match column.as_lists() {
        Some((offsets, _)) => Some(offsets.elements(rows.clone()).len()),
        None => Some(rows.len().saturating_mul(shared_array(column)?.len())),
    }
}

/// The elements that a column of lists has in the rows `rows`, as one array; `None` if the column does not have lists.
fn elements(column: &InputColumn<'_>, qtype: &QType, rows: &Range<usize>) -> Option<Value> {
    let QType::Array(kind, scalar) = qtype else { return None };
    let array = match (column.as_lists(), shared_array(column)) {
        (Some((offsets, elements)), _) => elements.array(*scalar, offsets.elements(rows.clone()))?.into(),
        // A long array is shared, not copied.
        (None, Some(shared)) if rows.len() == 1 => shared.clone(),
        (None, shared) => {
            let shared = shared?;
            shared.take((0..rows.len()).flat_map(|_| (0..shared.len()).map(Some))).into()
        }
    };
    Some(Value::Array(*kind, array))
}

/// The outputs of some rows.
#[derive(Debug)]
struct RowOutputs {
    columns: Vec<ColumnBuilder>,
    failed: Vec<usize>,
    failures: Vec<(usize, Error)>,
    /// The number of rows that were evaluated one by one.
    row_by_row: usize,
    /// The memory that successive runs on several rows use; `apart` is the memory of runs on single rows.
    together: ArrayMemory,
    apart: ArrayMemory,
}

impl RowOutputs {
    fn new(model: &ListRows, rows: usize, elements: usize) -> Self {
        let column = |output: &Field| ColumnBuilder::new(&output.qtype, rows, elements);
        let columns = model.outputs.iter().map(column).collect();
        let (together, apart) = (ArrayMemory::default(), ArrayMemory::default());
        RowOutputs { columns, failed: Vec::new(), failures: Vec::new(), row_by_row: 0, together, apart }
    }

    fn append(&mut self, more: RowOutputs) {
        self.columns.iter_mut().zip(more.columns).for_each(|(column, more)| column.append(more));
        self.failed.extend(more.failed);
        self.failures.extend(more.failures);
        self.row_by_row += more.row_by_row;
    }
}

/// A run of the model over columns. The columns have passed the check against the model's inputs.
struct ListRun<'r> {
    model: &'r ListRows,
    columns: &'r [InputColumn<'r>],
    /// The columns of all inputs, with structs split into their columns.
    flat: Vec<Option<InputColumn<'r>>>,
    terms: &'r RunTerms<'r>,
    /// The memory that outputs may take beyond the size of the inputs. All threads of the run share it.
    room: &'r OutputRoom,
    /// The most bytes of strings that a row may have. The strings of each row are copied, but in the input several rows
    /// may share a string (in a dictionary, or in Arrow's views). So the copies may be larger than the input.
    most_strings: u64,
}

impl<'r> ListRun<'r> {
    /// Reserves the bytes by which `made`, the sizes of the outputs of the rows `rows`, exceed the inputs of these
    /// rows. Returns false if the limit is exceeded.
    fn takes(&self, made: impl Iterator<Item = u64>, rows: &Range<usize>) -> bool {
        let made = made.fold(0, u64::saturating_add);
        let given = |(column, of): (&Option<InputColumn<'_>>, &StructColumn)| {
            let Some(column) = column else { return 0 };
            let (values, count) = match column.as_lists() {
                Some((offsets, elements)) => (elements, offsets.elements(rows.clone()).len()),
                None => (column, rows.len()),
            };
            let scalar = of.qtype.of_each().scalar().filter(|_| values.is_backed());
            (count as u64).saturating_mul(scalar.map_or(0, element_bytes))
        };
        let given = self.flat.iter().zip(&self.model.columns).map(given).fold(0, u64::saturating_add);
        self.room.take(made.saturating_sub(given))
    }

    /// Splits the rows into blocks. One run of the array program evaluates a block.
    fn pieces(&self, rows: usize) -> Vec<Range<usize>> {
        let is_once = |at: usize| self.model.together.as_ref().is_ok_and(|together| together.sought[at]);
        // The bytes of strings per piece are limited, and larger pieces would exceed the limit.
        let of_rows = self.flat.iter().zip(&self.model.columns).enumerate().filter(|(at, _)| !is_once(*at));
        let are_numbers =
            of_rows.fold(true, |are, (_, (_, of))| are && !of.qtype.of_each().scalar().is_some_and(Scalar::is_string));
        let keys = self.flat.iter().enumerate().filter(|(at, _)| is_once(*at) && are_numbers);
        let keys = keys.filter_map(|(_, column)| Some(shared_array(column.as_ref()?)?.len())).max().unwrap_or(0);
        let together = keys.saturating_mul(TOGETHER_PER_KEY).clamp(TOGETHER, MOST_TOGETHER);
        let mut pieces = Vec::new();
        let mut start = 0;
        while start < rows {
            let most = (start + together).min(rows);
            let counts = self.flat.iter().enumerate().filter_map(|(at, column)| Some((at, column.as_ref()?)));
            let counts = counts.map(|(at, column)| match (column.as_lists(), shared_array(column)) {
                (Some((offsets, _)), _) => offsets.rows_within(start, most, TOGETHER),
                (None, Some(array)) if !is_once(at) => (TOGETHER / array.len().max(1)).max(1),
                (None, _) => most - start,
            });
            let count = counts.min().unwrap_or(most - start).min(most - start);
            pieces.push(start..start + count);
            start += count;
        }
        pieces
    }

    /// Evaluates blocks of rows, one after the other. If the array program fails on a block, its rows are evaluated one
    /// by one.
    fn part(&self, pieces: &[Range<usize>]) -> Result<RowOutputs, Error> {
        check_float_mode()?;
        let rows = pieces.first().map_or(0, |first| first.start)..pieces.last().map_or(0, |last| last.end);
        let lists = self.flat.iter().flatten().filter_map(InputColumn::as_lists);
        // Elements without memory are only counted, so there may be more than fit memory.
        let backed = lists.filter(|(_, elements)| elements.is_backed());
        let most = backed.map(|(offsets, _)| offsets.elements(rows.clone()).len()).max().unwrap_or(0);
        let mut part = RowOutputs::new(self.model, rows.len(), most);
        for piece in pieces {
            RowsPass::begin();
            let apart = match &self.model.together {
                Ok(together) => together.run(self, piece, &mut part).err(),
                Err(_) => Some(BlockFailure::Unknown),
            };
            match apart {
                None => {}
                Some(BlockFailure::Cancelled) => return Err(Error::ended_by(self.terms.token)),
                Some(BlockFailure::NoRoom) => return Err(faults::of_made()),
                Some(BlockFailure::Unknown) => {
                    RowsPass::repeat();
                    piece.clone().try_for_each(|row| self.row(row, &mut part))?;
                }
            }
        }
        Ok(part)
    }

    /// Evaluates a single row.
    fn row(&self, row: usize, part: &mut RowOutputs) -> Result<(), Error> {
        part.row_by_row += 1;
        let inputs = self.columns.iter().zip(&self.model.inputs);
        let of_strings = self.columns.iter().map(|column| column.string_bytes(row..row + 1));
        let fits = of_strings.fold(0, u64::saturating_add) <= self.most_strings;
        let values = inputs.map(|(column, input)| column.value(&input.qtype, row));
        let mut made = Vec::new();
        let evaluated = if fits {
            let values: Option<Vec<Value>> = values.collect();
            let values = values.ok_or_else(|| Error::values("the columns do not have a value for a row"))?;
            self.model.by_row.evaluate(&values, &self.terms.inside(), &mut part.apart, &mut made)
        } else {
            Err(faults::of_copies())
        };
        match evaluated {
            Ok(()) => {
                if !self.takes(made.iter().map(column_bytes), &(row..row + 1)) {
                    return Err(faults::of_made());
                }
                part.columns.iter_mut().zip(&made).for_each(|(column, value)| column.push(Some(value)));
                made.into_iter().for_each(|value| part.apart.recycle(value));
            }
            Err(error) if error.fault_kind().is_some_and(FaultKind::is_of_token) => return Err(error),
            Err(error) if self.terms.on_error == OnError::Fail || !error.is_fault() => return Err(error.in_row(row)),
            Err(error) => {
                part.columns.iter_mut().for_each(|column| column.push(None));
                part.failed.push(row);
                if part.failures.len() < self.terms.keep_failures {
                    part.failures.push((row, error));
                }
            }
        }
        Ok(())
    }
}
