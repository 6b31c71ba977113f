//! The inputs of a model, and the source of each input's values: a constant on the command line, or a column of the data. An input without a
//! declared type gets the type of its constant or of its column.

use crate::arguments::{Assignment, DataOptions, ModelArgs};
use crate::deadline::Deadline;
use crate::evaluate::ValueSource;
use crate::failure::{Failure, usage};
use crate::source::ModelText;
use arrow_schema::SchemaRef;
use cembra::errors::{Code, Diagnostic};
use cembra::program::{cast_literal, literal_type};
use cembra::{Field, Model, Options, QType, Value};
use cembra_expr::{Input, Node, NodeId};
use cembra_ops::MomentForm;
use cembra_runtime::{Date, Scalar};
use cembra_table::cells::Cells;
use cembra_table::error;
use cembra_table::error::{DataCode, DataError};
use cembra_table::place::Places;
use cembra_table::scalar;
use cembra_table::schema::{Column, Inferred, RequestedLeaf, declared_name, listed, nearest, spelled};
use cembra_table::{Batch, Dataset, Decoded, Keep, Named, Piece, Request, Source, Spelling, Table, types};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The most values of a row that a message shows, and the most characters of each.
const SHOWN_VALUES: usize = 8;
const SHOWN_CHARS: usize = 40;

/// Returns the inputs of `model` that the outputs named in `outputs` need, in the order of the program. If `outputs` is empty, returns the inputs
/// that any output needs.
pub(crate) fn needed<'m>(model: &'m Model, outputs: &[String]) -> Vec<&'m Input> {
    let program = model.program();
    let graph = &program.graph;
    let wanted = |name: &str| outputs.is_empty() || outputs.iter().any(|output| output == name);
    let reached = graph.reachable(program.outputs.iter().filter(|o| wanted(&o.name)).map(|output| output.node));
    let ids = (0..reached.len()).filter(|at| reached[*at]).map(NodeId::from_index);
    let leaves: HashSet<&str> = ids
        .filter_map(|id| match graph.node(id) {
            Node::Leaf(name) => Some(&**graph.name(name)),
            _ => None,
        })
        .collect();
    program.inputs.iter().filter(|input| leaves.contains(&*input.name)).collect()
}

/// Returns a command-line error if `name`, given with `option`, is not an input of the model.
pub(crate) fn check_name(model: &Model, name: &str, option: &str, command: &'static str) -> Result<(), Failure> {
    check_among(name, "input", model.program().inputs.iter().map(|input| &*input.name), option, command)
}

/// Returns a command-line error if `name`, given with `option`, is not one of `names`. `what` says in the message what the names are, for example
/// inputs.
pub(crate) fn check_among<'a>(
    name: &str,
    what: &str,
    names: impl Iterator<Item = &'a str> + Clone,
    option: &str,
    command: &'static str,
) -> Result<(), Failure> {
    if names.clone().any(|known| known == name) {
        return Ok(());
    }
    let hint = match nearest(name, names.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None if names.clone().next().is_none() => "the model has none".to_owned(),
        None => format!("it has {}", listed(names)),
    };
    Err(usage(command, format!("`{option}`: the model has no {what} `{name}`; {hint}")))
}

/// The sources from which the inputs of a model can get values: constants and data, with the options of the command line about types and columns.
pub(crate) struct Sources<'a> {
    /// The types that the command line gives to inputs, by the input's name.
    pub(crate) types: BTreeMap<&'a str, &'a QType>,
    /// The constants that the command line gives to inputs.
    pub(crate) constants: &'a [Assignment],
    /// The spelling that the options give for dates and timestamps in constants. ISO 8601 is accepted too.
    pub(crate) spelling: &'a Spelling,
    /// The data file whose rows are evaluated; `None` if the run has no data.
    pub(crate) data: Option<Dataset>,
    /// The names of the outputs that are computed; empty for all outputs. Only the inputs of these outputs need sources.
    pub(crate) outputs: &'a [String],
    /// The choice of data columns that are copied to the results.
    pub(crate) keep: Keep,
    /// True if the fields of a CSV are copied to the results as they are written, not as values.
    pub(crate) verbatim: bool,
    /// The names of the outputs if columns of JSON are copied to the results as they are written; `None` if the columns are copied as
    /// values.
    pub(crate) as_written: Option<Vec<String>>,
    /// The time limit of the run, which includes the time to find the columns.
    pub(crate) deadline: &'a Deadline,
}

/// The inputs of a model, each with the source of its values, and the rows of the data.
pub(crate) struct InputSources {
    fields: Vec<(String, QType)>,
    /// The source of each input's values, in the order of `fields`.
    from: Vec<ValueSource>,
    /// The properties of the data; `None` without data, when the model is evaluated on a single row.
    data: Option<Data>,
    /// The source of the data's rows; `None` once [`take_rows`](Self::take_rows) has returned it.
    source: Option<Box<dyn Source>>,
}

/// The properties of the data.
struct Data {
    name: String,
    leaves: Vec<Column>,
    kept: Vec<Named>,
    inferred: Vec<Inferred>,
    counted: Option<Vec<Scalar>>,
    numbered: bool,
    total: Option<u64>,
    schema: SchemaRef,
}

/// The single row of a run without data.
struct OneRow {
    done: bool,
}

impl Source for OneRow {
    fn next(&mut self) -> Result<Option<Box<dyn Piece>>, DataError> {
        if std::mem::replace(&mut self.done, true) {
            return Ok(None);
        }
        let schema = types::schema([]);
        Ok(Some(Box::new(Decoded::new(&schema, Vec::new(), 1, Places::consecutive(1), Vec::new(), None))))
    }
}

impl InputSources {
    /// Finds the source of each input's values, for a model that is evaluated on the rows of `data`. No columns of `data` are copied to the results.
    ///
    /// # Errors
    /// The errors of [`new`](Self::new), or an error if an option has no effect on these data.
    pub(crate) fn of_data(
        (text, model): (&ModelText, &Model),
        args: &ModelArgs,
        constants: &[Assignment],
        options: &DataOptions,
        data: Dataset,
        command: &'static str,
    ) -> Result<InputSources, Failure> {
        options.check_origins(Some(data.format()), !constants.is_empty(), false, command)?;
        let sources = Sources {
            types: args.types().collect(),
            constants,
            spelling: &options.spelling(),
            data: Some(data),
            outputs: &[],
            keep: Keep::None,
            verbatim: true,
            as_written: None,
            deadline: &Deadline::start(None),
        };
        let feed = InputSources::new(text, model, sources, command)?;
        options.check_types(&feed, command)?;
        Ok(feed)
    }

    /// Finds a source of values for every input that is needed.
    ///
    /// # Errors
    /// If an input has no source, if a source has values of a type that the input cannot have, or if the data cannot be read.
    pub(crate) fn new(
        text: &ModelText,
        model: &Model,
        sources: Sources<'_>,
        command: &'static str,
    ) -> Result<InputSources, Failure> {
        let Sources { types, constants, spelling, data, outputs, keep, verbatim, as_written, deadline } = sources;
        let mut constants = by_name(model, constants, command)?;
        let (mut fields, mut from) = (Vec::new(), Vec::new());
        let mut wanted = Vec::new();
        let mut problems = Vec::new();
        let inputs = needed(model, outputs);
        let unused = data.as_ref().map_or(Vec::new(), |data| unused(data, &inputs));
        let is_absent = |name: &str| data.as_ref().is_none_or(|data| !data.has(name) && !data.has_otherwise(name));
        for input in inputs {
            let name = input.name.to_string();
            let declared = input.qtype.as_ref().or(types.get(&*name).copied());
            let (feeding, qtype) = match constants.remove(&*name) {
                Some(constant) => {
                    let value = typed(constant, declared, spelling, command)?;
                    let qtype = value.qtype();
                    (ValueSource::Constant(value), qtype)
                }
                // The data have no such column, or there are no data.
                None if let (Some(default), true) = (&input.default, is_absent(&name)) => {
                    let scalar = default.scalar();
                    (ValueSource::Constant(Value::Missing(scalar)), QType::Optional(scalar))
                }
                None if input.is_empty_by_default
                    && is_absent(&name)
                    && let Some(empty) = declared.and_then(Value::empty_collection) =>
                {
                    let qtype = empty.qtype();
                    (ValueSource::Constant(empty), qtype)
                }
                // An absent column is missing in all rows, unless a column has a similar name, which may be a misspelling.
                None if let Some(QType::Optional(scalar)) = declared
                    && is_absent(&name)
                    && nearest(&name, unused.iter().copied()).is_none() =>
                {
                    (ValueSource::Constant(Value::Missing(*scalar)), QType::Optional(*scalar))
                }
                None if data.is_none() => {
                    if problems.len() >= text.limits().problems.max(1) {
                        break;
                    }
                    let problem = Diagnostic::new(Code::Binding, format!("input `{name}` has no value"));
                    let hint = format!("give a value with `-s {name}=..`, or name a file that has a column `{name}`");
                    problems.push(problem.at(input.span).hint(hint));
                    continue;
                }
                None => {
                    let (qtype, is_empty_by_default) = (declared.cloned(), input.is_empty_by_default);
                    wanted.push(RequestedLeaf { name: name.clone(), qtype, is_empty_by_default });
                    // The type is set once the data have been looked at.
                    (ValueSource::Column(wanted.len() - 1, QType::Nothing), QType::Nothing)
                }
            };
            fields.push((name, qtype));
            from.push(feeding);
        }
        if !problems.is_empty() {
            return Err(Failure::Model { source: text.clone(), problems, notes: Vec::new() });
        }
        let kept_types = types.iter().map(|(name, qtype)| ((*name).to_owned(), QType::clone(qtype))).collect();
        let request = Request { leaves: wanted, keep, kept_types, verbatim, as_written, found: None };
        let bind = |data: Dataset| deadline.run(move || data.bind(&request)).flatten();
        let table = data.map(bind).transpose().map_err(|error| match error.code() {
            DataCode::AbsentColumn => error.hint("use `-s NAME=VALUE` for the same value in all rows"),
            _ => error,
        })?;
        let Some(Table { name, leaves, kept, inferred, counted, schema, numbered, total, source }) = table else {
            return Ok(InputSources { fields, from, data: None, source: Some(Box::new(OneRow { done: false })) });
        };
        for ((_, qtype), feeding) in fields.iter_mut().zip(&mut from) {
            if let ValueSource::Column(at, of) = feeding {
                qtype.clone_from(&leaves[*at].qtype);
                of.clone_from(qtype);
            }
        }
        Ok(InputSources {
            fields,
            from,
            data: Some(Data { name, leaves, kept, inferred, counted, numbered, total, schema }),
            source: Some(source),
        })
    }

    /// The field of the column with the index `column`, in the schema of all batches; `None` without data.
    pub(crate) fn stored(&self, column: usize) -> Option<&arrow_schema::Field> {
        self.data.as_ref().map(|data| data.schema.field(column))
    }

    /// The number of rows in the data; `None` if the data do not state it.
    pub(crate) fn total(&self) -> Option<u64> {
        self.data.as_ref().and_then(|data| data.total)
    }

    /// The columns that are copied to the results; in every batch they follow the columns of the inputs.
    pub(crate) fn kept(&self) -> &[Named] {
        self.data.as_ref().map_or(&[], |data| &data.kept)
    }

    /// The index, in a batch, of the first column that is copied to the results.
    pub(crate) fn first_kept(&self) -> usize {
        self.data.as_ref().map_or(0, |data| data.leaves.len())
    }

    /// Returns the source of values for each of `inputs`, the inputs of an executor.
    pub(crate) fn feeding(&self, inputs: &[Field]) -> Vec<ValueSource> {
        self.positions(inputs).into_iter().map(|at| self.from[at].clone()).collect()
    }

    /// The source of values for the input with the index `field`.
    pub(crate) fn from(&self, field: usize) -> &ValueSource {
        &self.from[field]
    }

    /// Takes the source of the data's rows; without data, the returned source has a single row. Every call after the first returns an empty source.
    pub(crate) fn take_rows(&mut self) -> Box<dyn Source> {
        self.source.take().unwrap_or(Box::new(OneRow { done: true }))
    }

    /// Returns the values of some inputs, given by their indices `fields`, for the rows of a batch: one list per row.
    pub(crate) fn values(&self, batch: &Batch, fields: &[usize]) -> Vec<Vec<Value>> {
        let rows = batch.rows.num_rows();
        let columns = fields.iter().map(|at| match &self.from[*at] {
            ValueSource::Constant(value) => vec![value.clone(); rows],
            ValueSource::Column(column, qtype) => {
                let cells = Cells::of(batch.rows.column(*column).as_ref(), qtype);
                (0..rows).map(|row| cells.as_ref().map_or(Value::Nothing, |cells| cells.value(row))).collect()
            }
        });
        let columns: Vec<Vec<Value>> = columns.collect();
        (0..rows).map(|row| columns.iter().map(|column| column[row].clone()).collect()).collect()
    }

    /// The names and types of the inputs that have a source of values (a constant or a column).
    pub(crate) fn fields(&self) -> &[(String, QType)] {
        &self.fields
    }

    /// Returns the indices in [`fields`](Self::fields) of `inputs`, the inputs of an executor.
    pub(crate) fn positions(&self, inputs: &[Field]) -> Vec<usize> {
        let names: HashMap<&str, usize> = self.fields.iter().map(|(name, _)| &**name).zip(0..).collect();
        inputs.iter().filter_map(|input| names.get(&*input.name).copied()).collect()
    }

    /// Returns `options` with the types of the inputs.
    pub(crate) fn with_types(&self, options: Options) -> Options {
        self.fields.iter().fold(options, |options, (name, qtype)| options.input_type(name, qtype.clone()))
    }

    /// Adds a note to `failure` about the types that were inferred from the data, which often explain a mismatch.
    pub(crate) fn explain_types(&self, failure: Failure) -> Failure {
        let columns = || self.data.iter().flat_map(|data| &data.leaves);
        let guessed = columns().filter(|column| column.inferred).take(SHOWN_VALUES);
        let guessed: Vec<_> = guessed.map(|column| format!("{}: {}", column.name, spelled(&column.qtype))).collect();
        if guessed.is_empty() {
            return failure;
        }
        let failure = failure.note(format!("types inferred from the data: {}", guessed.join(", ")));
        let advised = columns().filter_map(|column| Some((&column.name, column.advice.as_ref()?))).take(SHOWN_VALUES);
        advised.fold(failure, |failure, (name, (advice, line))| {
            failure.note(format!("{advice}; `{name}` is a text because of {}", self.place(None, *line)))
        })
    }

    /// The types (date, timestamp) of the inputs that are read from columns of whole numbers; `None` for data whose columns have no types,
    /// such as CSV.
    pub(crate) fn counted(&self) -> Option<&[Scalar]> {
        self.data.as_ref()?.counted.as_deref()
    }

    /// The types that were inferred from the data, each with a text that says which row decided the type, such as `decided at rows.csv:17`.
    pub(crate) fn inferred(&self) -> impl Iterator<Item = (&Inferred, String)> {
        self.data.iter().flat_map(|data| &data.inferred).map(|inferred| {
            let from = match inferred.line {
                Some(line) => format!("decided at {}", self.place(None, line)),
                None if self.is_numbered() => format!("the type of its column in {}", self.name()),
                None => format!("no value in the first rows of {}", self.name()),
            };
            (inferred, from)
        })
    }

    /// Returns the place of a row as text: `rows.csv:17`. `file` is the name of the row's file; `None` if there is only one file. `place`
    /// is the row's line or number.
    pub(crate) fn place(&self, file: Option<&str>, place: u64) -> String {
        let name = file.unwrap_or(self.name());
        match &self.data {
            Some(Data { numbered: false, .. }) => format!("{name}:{place}"),
            Some(Data { numbered: true, .. }) => format!("{name}, row {place}"),
            None => "the only row".to_owned(),
        }
    }

    /// The name of the first data file; empty without data.
    pub(crate) fn name(&self) -> &str {
        self.data.as_ref().map_or("", |data| data.name.as_str())
    }

    /// Returns true if the place of a row is its number in the file, false if it is its line.
    pub(crate) fn is_numbered(&self) -> bool {
        self.data.as_ref().is_none_or(|data| data.numbered)
    }

    /// Adds a note to `failure` with the place and the values of the only row of `batch`: `in the row at rows.csv:17: x = 1, y = 0`.
    pub(crate) fn explain_row(&self, failure: Failure, batch: &Batch) -> Failure {
        let few: Vec<usize> = (0..self.fields.len().min(SHOWN_VALUES)).collect();
        let row = self.values(batch, &few).pop().unwrap_or_default();
        let values = self.fields.iter().zip(&row);
        let mut values: Vec<_> = values.map(|((name, _), value)| format!("{name} = {}", shown(value))).collect();
        if self.fields.len() > SHOWN_VALUES {
            values.push(format!("and {} more inputs", self.fields.len() - SHOWN_VALUES));
        }
        let values = values.join(", ");
        let place = self.place(batch.places.file().map(|file| &**file), batch.places.at(0));
        match &self.data {
            Some(_) if values.is_empty() => failure.note(format!("in the row at {place}")),
            Some(_) => failure.note(format!("in the row at {place}: {values}")),
            None if values.is_empty() => failure,
            None => failure.note(format!("with {values}")),
        }
    }
}

/// The columns that no input reads, neither whole nor as a field.
fn unused<'d>(data: &'d Dataset, inputs: &[&Input]) -> Vec<&'d str> {
    let names: HashSet<&str> = inputs.iter().map(|input| &*input.name).collect();
    let is_used = |column: &str| {
        let fields = column.match_indices('.').map(|(at, _)| &column[..at]);
        fields.chain([column]).any(|name| names.contains(name))
    };
    data.names().into_iter().filter(|column| !is_used(column)).collect()
}

/// A value for a message, without its type; a long one is shortened.
fn shown(value: &Value) -> String {
    let text = match value {
        Value::Missing(_) => "missing".to_owned(),
        Value::Array(_, array) => array.to_string(),
        Value::Scalar(scalar) | Value::Present(scalar) if !scalar.scalar().is_string() => scalar::print(scalar),
        Value::Present(string) => cembra::values::print_value(&Value::Scalar(string.clone())),
        other => cembra::values::print_value(other),
    };
    let cut: String = text.chars().take(SHOWN_CHARS).collect();
    if cut.len() < text.len() { cut + "…" } else { cut }
}

/// The constants by the names of their inputs. A name that is not an input, or is given twice, is an error.
fn by_name<'a>(
    model: &Model,
    constants: &'a [Assignment],
    command: &'static str,
) -> Result<BTreeMap<&'a str, &'a Assignment>, Failure> {
    let mut found = BTreeMap::new();
    for constant in constants {
        check_name(model, &constant.name, "-s", command)?;
        if found.insert(constant.name.as_str(), constant).is_some() {
            return Err(usage(command, format!("`-s` gives `{}` twice", constant.name)));
        }
    }
    Ok(found)
}

/// Returns the values that `constants` give to inputs, by the input's name. An input's type is declared in the model or in `types`;
/// otherwise it is the type of the value.
///
/// # Errors
/// If no input has a constant's name, if two constants have the same name, or if a constant does not have the input's type.
pub(crate) fn constant_values<'a>(
    model: &Model,
    types: &BTreeMap<&str, &QType>,
    constants: &'a [Assignment],
    spelling: &Spelling,
    command: &'static str,
) -> Result<BTreeMap<&'a str, Value>, Failure> {
    let inputs: HashMap<&str, &Input> = model.program().inputs.iter().map(|input| (&*input.name, input)).collect();
    let value = |(name, constant): (&'a str, &'a Assignment)| {
        let declared = inputs.get(name).and_then(|input| input.qtype.as_ref()).or(types.get(name).copied());
        Ok((name, typed(constant, declared, spelling, command)?))
    };
    by_name(model, constants, command)?.into_iter().map(value).collect()
}

/// The constant as a value of the declared type; without one, of the literal's type.
fn typed(
    constant: &Assignment,
    declared: Option<&QType>,
    spelling: &Spelling,
    command: &'static str,
) -> Result<Value, Failure> {
    let name = &constant.name;
    if let Some(value) = declared.and_then(|declared| constant.value(declared, spelling)) {
        return Ok(value);
    }
    let literal = match (&constant.literal, declared) {
        (Ok(literal), _) => literal,
        (Err(_), Some(QType::Scalar(scalar) | QType::Optional(scalar)))
            if let Some(said) = constant.said(*scalar, spelling) =>
        {
            let expected = declared.map(spelled).unwrap_or_default();
            let message = format!("`-s {name}={}`: the input `{name}` is {expected}; {said}", constant.text);
            return Err(usage(command, message));
        }
        (Err(problems), _) => {
            let message = format!("invalid value '{name}={}' for '--set <NAME=VALUE>': {problems}", constant.text);
            return Err(usage(command, message));
        }
    };
    let found = literal_type(literal);
    let found_nothing = found == Some(QType::Nothing) && !literal.is_array();
    let wanted = match declared {
        Some(declared) => declared.clone(),
        None => match found.clone() {
            None => {
                let message = format!("`-s {name}={}`: these elements have no common type", constant.text);
                return Err(usage(command, message));
            }
            Some(QType::Nothing) if literal.is_array() => {
                let message = format!(
                    "`-s {name}={}` has no type; declare the input, as in `input {name}: [f64?]`",
                    constant.text
                );
                return Err(usage(command, message));
            }
            Some(QType::Nothing) => {
                let message =
                    format!("`-s {name}=missing` has no type; write the type, as in `-s '{name}=missing[f64]'`");
                return Err(usage(command, message));
            }
            Some(QType::Meta) => {
                let message = format!("`-s {name}={}` is a type; an input is a value", constant.text);
                return Err(usage(command, message));
            }
            Some(QType::Unspecified) => {
                let message = format!("`-s {name}={}` cannot be the value of an input", constant.text);
                return Err(usage(command, message));
            }
            Some(strong) => strong,
        },
    };
    cast_literal(literal, &wanted).ok_or_else(|| {
        let message = match found {
            Some(QType::Nothing) if found_nothing => {
                format!("`-s {name}=missing`: the input `{name}` is {wanted}, which cannot be missing")
            }
            _ if literal.is_array() => {
                format!("`-s {name}={}`: the input `{name}` is {wanted}", constant.text)
            }
            found => {
                let found = found.unwrap_or(QType::Nothing);
                format!("`-s {name}={}`: the input `{name}` is {wanted}, found {found}", constant.text)
            }
        };
        let hint = match declared {
            Some(QType::Edge(_)) => format!("; {}", error::MAKE_EDGE),
            // A number is not a date, a timestamp or a duration.
            Some(QType::Scalar(scalar) | QType::Optional(scalar))
                if scalar.is_quoted()
                    && let Some(said) = constant.said(*scalar, spelling) =>
            {
                let day = day_of_digits(&constant.text).filter(|_| *scalar == Scalar::Date && spelling.dates.is_none());
                let written = day.map(|day| format!("; write `{day}`")).unwrap_or_default();
                format!("{written}; {said}")
            }
            Some(declared) if declared.to_optional() != *declared && found_nothing => {
                format!("; declare `input {}: {}`", declared_name(name), spelled(&declared.to_optional()))
            }
            _ => String::new(),
        };
        usage(command, message + &hint)
    })
}

/// Reads eight digits as year, month and day; `None` if they are not a date.
fn day_of_digits(text: &str) -> Option<Date> {
    MomentForm::of_dates("%Y%m%d").ok()?.date(text).filter(|_| text.len() == 8)
}
