//! `cembra eval` of a model with tensors: its inputs are arrays in NumPy's files, and its outputs are written as text, as JSON or to NumPy's files.
//! There are no rows: the model is evaluated once.

use super::eval_arguments::{Args, ArrayFile, NAME, OutputFormat};
use super::eval_tiles::{self, Stored, Task};
use crate::arguments::Assignment;
use crate::data_files::open;
use crate::deadline::{Deadline, Timed};
use crate::failure::{Failure, usage};
use crate::inputs::check_among;
use crate::pipeline::OnError;
use crate::progress::watched;
use crate::ranks;
use crate::source::ModelText;
use cembra::tensor::Data;
use cembra::tiles::Journal;
use cembra::{Executor, Field, Model, Options, QType, Scalar, ScalarValue, Tensor, Value};
use cembra_table::error::{DataCode, DataError};
use cembra_table::output::Output;
use cembra_table::{Keep, Spelling, json_text, numpy, scalar};
use cembra_value::{ValueRef, with_data};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, BufWriter, IsTerminal, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

/// The extensions of NumPy's files.
const NPY: &str = "npy";
const NPZ: &str = "npz";
/// The extension of checkpoints, which are directories.
const TILES: &str = "tiles";

/// The format of the results.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Text,
    Json,
    Npy,
    Npz,
    /// The results are written as a checkpoint. A model in tiles writes it without making its tensors dense.
    Checkpoint,
}

/// Runs `cembra eval` on a model with tensors.
pub(super) fn run(
    args: &Args,
    text: &ModelText,
    model: &Model,
    options: &Options,
    data: Option<&Path>,
) -> Result<(), Failure> {
    refuse_rows(args)?;
    if ranks::is_first() {
        args.warnings.tell(text, model, options);
    }
    let executor = model.compile(options).map_err(|error| text.blame(&error))?;
    let types: Vec<&QType> = executor.inputs().iter().map(|field| &field.qtype).collect();
    args.data_options.check_among(&types, None, NAME)?;
    if !executor.is_tiled() && !ranks::works_alone("the model does not cut tensors into tiles") {
        return Ok(());
    }
    args.tiles.check(executor.is_tiled())?;
    let form = form(args, &executor)?;
    args.ranks.check(executor.is_tiled(), form == Form::Checkpoint)?;
    // Ranks join before they open files, so that one with a missing file ends the others at once. With a time limit, the evaluating thread
    // joins instead.
    if executor.is_tiled() && args.ranks.ranks.is_none() && args.time_limit.is_none() {
        ranks::join().map_err(|error| text.blame(&error))?;
    }
    let deadline = Deadline::start(args.time_limit);
    let reading = (args.clone(), text.clone(), executor.clone(), data.map(Path::to_owned));
    let read = move || {
        let (args, text, executor, data) = reading;
        let stored = eval_tiles::stored(&executor, &args.input).map_err(|error| text.blame(&error))?;
        Ok((inputs(&args, &text, &executor, data.as_deref(), &stored)?, stored))
    };
    let (values, stored) = deadline.run(read).map_err(Failure::from).flatten()?;
    let (mut session, threads) = (executor.session(), args.threads());
    let made = if executor.is_tiled() {
        let journal = Journal::default();
        let task = Task {
            model: executor.clone(),
            text: format!("{:?}", text.sources().shared()).into(),
            options: options.clone(),
            tiles: args.tiles.clone(),
            ranks: args.ranks.clone(),
            // Ranks of one process share its processors.
            threads: args.ranks.ranks.map_or(threads, |ranks| (threads / ranks).max(1)),
            values,
            stored,
            journal: journal.clone(),
            directory: args.output.clone().filter(|_| form == Form::Checkpoint),
            only: args.only(),
        };
        let look = || eval_tiles::shown(journal.progress());
        let is_first = ranks::is_first();
        let evaluate = || deadline.run(move || task.run());
        let made = if is_first { watched(look, evaluate)? } else { evaluate()? };
        if args.verbose && is_first {
            let _ = write!(io::stderr(), "{}", eval_tiles::table(&journal.steps(), text.sources()));
        }
        let made = made.map_err(|error| error.map_or(Failure::Reported, |error| text.blame(&error)))?;
        if form == Form::Checkpoint || !is_first {
            return Ok(());
        }
        eval_tiles::values(made)
    } else {
        deadline.run(move || {
            session.set_threads(threads);
            session.evaluate(&values)
        })?
    };
    let made = made.map_err(|error| text.blame(&error))?;
    let made: Vec<(Arc<str>, Value)> = executor.outputs().iter().map(|output| output.name.clone()).zip(made).collect();
    let of = |name: &String| made.iter().find(|(known, _)| **known == **name).cloned();
    let only = args.only();
    let shown: Vec<(Arc<str>, Value)> =
        if only.is_empty() { made.clone() } else { only.iter().filter_map(of).collect() };
    let arrays = || -> Result<Vec<(&str, Tensor)>, Failure> {
        let mut arrays = Vec::with_capacity(shown.len());
        for (name, value) in &shown {
            let Some(tensor) = as_tensor(value) else {
                return Err(usage(
                    NAME,
                    format!("output `{name}` is {}, which a NumPy file cannot hold", value.qtype()),
                ));
            };
            arrays.push((&**name, tensor));
        }
        Ok(arrays)
    };
    let output = match args.output_path() {
        Some(path) => Output::create(path)?,
        None => Output::stdout(),
    };
    let mut buffered = BufWriter::new(deadline.writer(output));
    let written = match form {
        Form::Text => {
            let is_seen = args.output_path().is_none() && io::stdout().is_terminal();
            write_text(&mut buffered, &shown, if is_seen { MOST_SHOWN } else { usize::MAX })
        }
        Form::Json => write_json(&mut buffered, &shown),
        Form::Npy => arrays()?.first().map_or(Ok(()), |(_, tensor)| numpy::write_npy(&mut buffered, tensor)),
        // The tiles are written already.
        Form::Checkpoint => Ok(()),
        Form::Npz => write_npz(&mut buffered, &deadline, arrays()?.iter().map(|(name, tensor)| (*name, tensor))),
    };
    // If the time limit is reached, writing fails for that reason only.
    let cannot = |cause| deadline.check().err().unwrap_or_else(|| DataError::io("cannot write the results", cause));
    written.map_err(cannot)?;
    let output = buffered.into_inner().map_err(|error| cannot(error.into_error()))?;
    Ok(output.into_inner().commit()?)
}

/// Refuses options about rows, which a model with tensors does not have.
fn refuse_rows(args: &Args) -> Result<(), Failure> {
    let option = [
        ("--keep", matches!(args.keep(), Keep::These(_))),
        ("--keep-all", args.keep_all),
        ("--keep-inputs", args.keep_inputs),
        ("--errors", args.errors.is_some()),
        ("--limit", args.limit.is_some()),
        ("--output-decimal", args.output_decimal.is_some()),
        ("--on-error", args.on_error != OnError::Fail),
    ];
    let option = option.iter().find(|(_, is_given)| *is_given).map(|(option, _)| *option);
    match option.or_else(|| args.data_options.of_rows(!args.set.is_empty())) {
        Some(option) => {
            Err(usage(NAME, format!("leave `{option}` out: it applies to rows, but a model with tensors has no rows")))
        }
        None => Ok(()),
    }
}

/// The format of the results: that of `--format`, else that of the output file's extension, else text.
fn form(args: &Args, model: &Executor) -> Result<Form, Failure> {
    let only = args.only();
    for name in &only {
        check_among(name, "output", model.outputs().iter().map(|output| &*output.name), "--only", NAME)?;
    }
    let ending = args.ending();
    let form = match (args.format, ending.as_deref()) {
        (Some(OutputFormat::Table), _) => Form::Text,
        (Some(OutputFormat::Json | OutputFormat::Jsonl), _) => Form::Json,
        (Some(OutputFormat::Npy), _) => Form::Npy,
        (Some(OutputFormat::Npz), _) => Form::Npz,
        (Some(_), _) => {
            let message =
                "`--format` must be table, json, jsonl, npy or npz: the outputs of a model with tensors are not rows";
            return Err(usage(NAME, message));
        }
        (None, Some(NPY)) => Form::Npy,
        (None, Some(NPZ)) => Form::Npz,
        (None, Some("json" | "jsonl" | "ndjson")) => Form::Json,
        (None, Some(TILES)) if model.is_tiled() => Form::Checkpoint,
        (None, Some(ending)) => {
            let known =
                if model.is_tiled() { "`.npy`, `.npz`, `.json` or `.tiles`" } else { "`.npy`, `.npz` or `.json`" };
            return Err(args.no_ending(ending, "tensors", known));
        }
        (None, None) => Form::Text,
    };
    if form == Form::Checkpoint {
        eval_tiles::check_outputs(model, &only)?;
    }
    let count = if only.is_empty() { model.outputs().len() } else { only.len() };
    if form == Form::Npy && count != 1 {
        let message = format!(
            "a `.npy` file holds one array, but the model has {count} outputs: write `.npz`, or choose one with `--only`"
        );
        return Err(usage(NAME, message));
    }
    Ok(form)
}

/// The values for the inputs of the model, in their order, except for inputs stored in tiles.
fn inputs(
    args: &Args,
    text: &ModelText,
    model: &Executor,
    data: Option<&Path>,
    stored: &Stored,
) -> Result<Vec<Value>, Failure> {
    let most_bytes = text.limits().array_bytes;
    let find = |name: &str| model.inputs().iter().find(|field| *field.name == *name);
    let known = || model.inputs().iter().map(|field| &*field.name);
    let mut tensors: BTreeMap<String, Tensor> = BTreeMap::new();
    let mut others: BTreeMap<&str, Value> = BTreeMap::new();
    // The bytes left for further arrays: the limit applies to all arrays together.
    let left = |tensors: &BTreeMap<String, Tensor>| {
        let taken = tensors
            .values()
            .map(|tensor| tensor.layout().len() as u64 * u64::from(QType::Scalar(tensor.scalar_type()).layout().size));
        most_bytes.saturating_sub(taken.sum())
    };
    let spelling = args.data_options.spelling();
    for constant in &args.set {
        check_among(&constant.name, "input", known(), "-s", NAME)?;
        let Some(field) = find(&constant.name) else { continue };
        match value_of(constant, field, &spelling, NAME)? {
            Some(value) => {
                if others.insert(&*field.name, value).is_some() {
                    return Err(usage(NAME, format!("input `{}` is given twice", constant.name)));
                }
            }
            None => insert(&mut tensors, &constant.name, number_of(constant, field, NAME)?)?,
        }
    }
    for file in &args.input {
        check_among(&file.name, "input", known(), "--input", NAME)?;
        if stored.contains_key(&file.name) {
            continue;
        }
        if let Some(field) = find(&file.name) {
            let tensor = array_of(file, field, most_bytes, left(&tensors))?;
            insert(&mut tensors, &file.name, tensor)?;
        }
    }
    let mut file = None;
    if let Some(path) = data {
        let (name, bytes) = bytes_of(path, most_bytes)?;
        let arrays = arrays(model, &tensors, bytes, left(&tensors)).map_err(|error| error.in_file(&name))?;
        for (array, tensor) in arrays {
            if let Some(field) = find(&array) {
                check_type(field, &tensor).map_err(|error| error.in_file(&name))?;
            }
            insert(&mut tensors, &array, tensor)?;
        }
        file = Some(name);
    }
    let is_absent = |field: &&Field| {
        let is_given = tensors.contains_key(&*field.name) || others.contains_key(&*field.name);
        let may_be_absent = field.qtype.is_optional() || field.left_out().is_some();
        !may_be_absent && !is_given && !stored.contains_key(&*field.name)
    };
    if let Some(absent) = model.inputs().iter().find(is_absent) {
        let message = format!("there is no array for the input `{}` ({})", absent.name, absent.qtype);
        let error = DataError::new(DataCode::AbsentArray, message);
        let error = match file {
            Some(name) => error.in_file(&name),
            None => error,
        };
        return Err(match absent.qtype.scalar() {
            Some(_) => error.hint(format!("give its value with `-s {}=..`", absent.name)),
            None => error.hint(format!("give a file with `--input {}=FILE.npy`", absent.name)),
        }
        .into());
    }
    let value = |field: &Field| match (tensors.remove(&*field.name), &field.qtype) {
        (Some(tensor), QType::Tensor(..)) => Some(Value::from(tensor)),
        (Some(tensor), qtype) => {
            let value = element(&tensor)?;
            Some(if qtype.is_optional() { Value::Present(value) } else { Value::Scalar(value) })
        }
        (None, _) if stored.contains_key(&*field.name) => None,
        (None, QType::Optional(scalar)) => others.remove(&*field.name).or(Some(Value::Missing(*scalar))),
        (None, _) => others.remove(&*field.name).or_else(|| field.left_out()),
    };
    Ok(model.inputs().iter().filter_map(value).collect())
}

/// Reads the array in `file` for the input `field`. A file of more than `most_bytes` bytes, or an array of more than `left` bytes, is an
/// error.
pub(super) fn array_of(file: &ArrayFile, field: &Field, most_bytes: u64, left: u64) -> Result<Tensor, Failure> {
    let (name, mut bytes) = bytes_of(&file.path, most_bytes)?;
    let read = bytes.array(left).and_then(|tensor| check_type(field, &tensor).map(|()| tensor));
    Ok(read.map_err(|error| error.in_file(&name))?)
}

/// Returns the value that `constant` gives to the input `field`; `None` if the input is a tensor, or a number that is passed as a tensor
/// without axes.
pub(super) fn value_of(
    constant: &Assignment,
    field: &Field,
    spelling: &Spelling,
    command: &'static str,
) -> Result<Option<Value>, Failure> {
    // An optional value without a default is computed separately from tensors.
    let is_apart = field.default.is_none() && field.qtype.is_optional();
    let is_number = field.qtype.scalar().is_some_and(Scalar::is_tensor_element) && !is_apart;
    if is_number || matches!(field.qtype, QType::Tensor(..)) {
        return Ok(None);
    }
    let Some(value) = constant.value(&field.qtype, spelling) else {
        let message = format!("`-s {}={}` is not a valid {}", constant.name, constant.text, field.spelled_type());
        let said = field.qtype.scalar().filter(|scalar| scalar.is_quoted());
        let said = said.and_then(|scalar| constant.said(scalar, spelling));
        let hint = said.map_or_else(String::new, |said| format!("; {said}"));
        return Err(usage(command, message + &hint));
    };
    Ok(Some(value))
}

/// Returns the number that `constant` gives to the input `field`, as a tensor without axes.
pub(super) fn number_of(constant: &Assignment, field: &Field, command: &'static str) -> Result<Tensor, Failure> {
    let Some(scalar) = field.qtype.scalar() else {
        let message = format!("input `{}` is {}, but `-s` gives only scalars", field.name, field.qtype);
        return Err(usage(command, format!("{message}: write `--input {}=FILE.npy`", field.name)));
    };
    let value = constant.value(&QType::Scalar(scalar), &Spelling::default());
    let Some(Ok(tensor)) = value.as_ref().and_then(Value::as_scalar).map(Tensor::of_value) else {
        let message = format!("`-s {}={}` is not a valid {}", constant.name, constant.text, scalar.short_name());
        return Err(usage(command, message));
    };
    Ok(tensor)
}

/// The element of a tensor without axes.
fn element(tensor: &Tensor) -> Option<ScalarValue> {
    ScalarValue::from_bits(tensor.scalar_type(), tensor.data().bits(tensor.positions().next()?))
}

/// A tensor or a number as a tensor; `None` for other values.
fn as_tensor(value: &Value) -> Option<Tensor> {
    match value {
        Value::Tensor(tensor) => Some(Tensor::clone(tensor)),
        Value::Scalar(scalar) => Tensor::of_value(scalar).ok(),
        _ => None,
    }
}

fn insert(tensors: &mut BTreeMap<String, Tensor>, name: &str, tensor: Tensor) -> Result<(), Failure> {
    match tensors.insert(name.to_owned(), tensor) {
        None => Ok(()),
        Some(_) => Err(usage(NAME, format!("input `{name}` is given twice"))),
    }
}

/// Reads the arrays of the data: those of an archive by their names, or the array of a `.npy` file for the only tensor input without a
/// value.
fn arrays(
    model: &Executor,
    given: &BTreeMap<String, Tensor>,
    mut bytes: ArrayBytes,
    most_bytes: u64,
) -> Result<Vec<(String, Tensor)>, DataError> {
    if numpy::is_npz(&bytes.first) {
        // A value of the command line replaces the array of the archive.
        let is_wanted =
            |name: &str| !given.contains_key(name) && model.inputs().iter().any(|field| *field.name == *name);
        return numpy::read_npz(bytes.file, is_wanted, most_bytes);
    }
    if !numpy::is_npy(&bytes.first) {
        let error = DataError::unreadable("a tensor must be in a NumPy file, but this file is of another kind");
        return Err(error.hint("write the file with `np.savez(file, a=a)` or `np.save(file, a)`"));
    }
    let open = model.inputs().iter().filter(|field| !given.contains_key(&*field.name));
    let open: Vec<&Field> = open.filter(|field| matches!(field.qtype, QType::Tensor(..))).collect();
    match open.as_slice() {
        [field] => Ok(vec![(field.name.to_string(), bytes.array(most_bytes)?)]),
        open => {
            let message = format!("this file has one array, but {} inputs of the model need one", open.len());
            Err(DataError::unreadable(message)
                .hint("use `--input a=a.npy` for each input, or write `np.savez(file, a=a)`"))
        }
    }
}

/// An array file, which is read piece by piece.
struct ArrayBytes {
    file: BufReader<File>,
    /// The size of the file in bytes.
    len: u64,
    /// The first bytes of the file.
    first: Vec<u8>,
}

impl ArrayBytes {
    /// Reads the only array of the file, which may have at most `most_bytes` bytes.
    fn array(&mut self, most_bytes: u64) -> Result<Tensor, DataError> {
        numpy::read_npy_file(&mut self.file, self.len, most_bytes)
    }
}

/// Opens an array file, and returns it with its name. The data of a pipe or a compressed file may have at most `most_bytes` bytes and a
/// header.
fn bytes_of(path: &Path, most_bytes: u64) -> Result<(String, ArrayBytes), Failure> {
    /// The bytes for headers of arrays, or the directory of an archive.
    const BESIDE: u64 = 1 << 20;
    /// The number of first bytes that identify a file.
    const FIRST: u64 = 8;
    let input = open(path)?;
    let name = input.name().to_owned();
    let file = input.into_file(most_bytes.saturating_add(BESIDE)).map_err(|error| error.in_file(&name))?;
    let mut file = BufReader::new(file);
    let mut read = || -> io::Result<(u64, Vec<u8>)> {
        let len = file.seek(SeekFrom::End(0))?;
        file.rewind()?;
        let mut first = Vec::new();
        file.by_ref().take(FIRST).read_to_end(&mut first)?;
        file.rewind()?;
        Ok((len, first))
    };
    let (len, first) = read().map_err(|cause| DataError::unread(cause).in_file(&name))?;
    Ok((name, ArrayBytes { file, len, first }))
}

/// Checks that an array has the type of its input.
fn check_type(field: &Field, tensor: &Tensor) -> Result<(), DataError> {
    let (scalar, rank) = (tensor.scalar_type(), tensor.extents().len());
    let found = if rank == 0 { QType::Scalar(scalar) } else { QType::Tensor(scalar, rank as u8) };
    let is_fit = match field.qtype.scalar() {
        Some(wanted) => (wanted, 0) == (scalar, rank),
        None => field.qtype == QType::Tensor(scalar, rank as u8),
    };
    if is_fit {
        return Ok(());
    }
    let message = format!("input `{}` is {}, but the array is {found}", field.name, field.qtype);
    Err(DataError::new(DataCode::ArrayType, message)
        .hint("convert the array with `astype` or `reshape`, or declare another type for the input"))
}

/// Writes an archive, in the output file itself if there is one, else by way of a temporary file, because arrays may be as large as the
/// memory.
fn write_npz<'t>(
    out: &mut BufWriter<Timed<'_, Output>>,
    deadline: &Deadline,
    tensors: impl Iterator<Item = (&'t str, &'t Tensor)>,
) -> io::Result<()> {
    if let Some(file) = out.get_mut().get_mut().file() {
        return numpy::write_npz(&mut BufWriter::new(deadline.writer(file)), tensors);
    }
    let mut archive = tempfile::tempfile()?;
    numpy::write_npz(&mut BufWriter::new(deadline.writer(&mut archive)), tensors)?;
    archive.rewind()?;
    io::copy(&mut archive, out).map(drop)
}

/// The most elements of a tensor that a terminal shows in full; of a larger one, it shows the first elements and their number.
const MOST_SHOWN: usize = 1000;

/// Writes a line with the type and extents of each output, and its elements below. An output with more than `most_shown` elements has a
/// single line with the first ones.
fn write_text(out: &mut impl Write, outputs: &[(Arc<str>, Value)], most_shown: usize) -> io::Result<()> {
    for (name, value) in outputs {
        let Some(tensor) = &as_tensor(value) else {
            writeln!(
                out,
                "{name}: {} = {}",
                cembra::values::print_type(&value.qtype()),
                cembra::values::print_value(value)
            )?;
            continue;
        };
        if tensor.layout().len() > most_shown {
            writeln!(out, "{name}: {tensor}")?;
            continue;
        }
        let scalar = tensor.scalar_type().short_name();
        if tensor.extents().is_empty() {
            write!(out, "{name}: {scalar} = ")?;
        } else {
            writeln!(out, "{name}: {scalar} {:?}", tensor.extents())?;
        }
        write_elements(out, tensor, Form::Text)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// Writes the outputs as one line of JSON, an object. A tensor is a list of lists, one level for each axis.
fn write_json(out: &mut impl Write, outputs: &[(Arc<str>, Value)]) -> io::Result<()> {
    for (name, value) in outputs {
        as_tensor(value).map_or(Ok(()), |tensor| check_lists(name, &tensor))?;
    }
    let mut text = Vec::new();
    for (at, (name, value)) in outputs.iter().enumerate() {
        text.push(if at > 0 { b',' } else { b'{' });
        json_text::write_text(&mut text, name);
        text.push(b':');
        match as_tensor(value) {
            Some(tensor) => {
                out.write_all(&text)?;
                text.clear();
                write_elements(out, &tensor, Form::Json)?;
            }
            None => json_text::write_value(&mut text, value),
        }
    }
    text.extend_from_slice(b"}\n");
    out.write_all(&text)
}

/// The axes before the first axis without indices; `None` if all axes have indices. JSON has an empty list for each index of these axes.
fn before_empty(extents: &[usize]) -> Option<&[usize]> {
    extents.iter().position(|extent| *extent == 0).map(|axis| &extents[..axis])
}

/// Checks that a tensor does not become more than a million empty lists. Such a tensor takes no memory, so nothing else bounds its text.
fn check_lists(name: &str, tensor: &Tensor) -> io::Result<()> {
    const MOST: usize = 1 << 20;
    let lists =
        before_empty(tensor.extents()).map(|outer| outer.iter().fold(1, |all: usize, own| all.saturating_mul(*own)));
    match lists.filter(|lists| *lists > MOST) {
        None => Ok(()),
        Some(lists) => {
            Err(io::Error::other(format!("output `{name}` has {lists} empty lists, which are too many to write")))
        }
    }
}

/// Writes the elements of a tensor in brackets, one pair for each axis. Text has one line per index of all axes but the last. For a tensor without
/// elements, text has a single empty pair of brackets; JSON has one pair for each index of the axes before the first axis without indices.
fn write_elements(out: &mut impl Write, tensor: &Tensor, form: Form) -> io::Result<()> {
    let in_lines = form == Form::Text;
    let extents = match before_empty(tensor.extents()) {
        Some(_) if in_lines => &[],
        Some(outer) => outer,
        None => tensor.extents(),
    };
    let rank = extents.len();
    // The number of elements in the brackets of each axis.
    let mut spans = vec![1; rank];
    for axis in (0..rank).rev() {
        spans[axis] = extents[axis] * spans.get(axis + 1).copied().unwrap_or(1);
    }
    let mut text = Vec::new();
    let mut positions = tensor.positions();
    for at in 0..extents.iter().product() {
        text.clear();
        let opened = spans.iter().filter(|span| at % **span == 0).count();
        if at > 0 {
            let is_line = opened > 0 && in_lines;
            text.extend_from_slice(match (is_line, in_lines) {
                (true, _) => b",\n",
                (false, true) => b", ",
                (false, false) => b",",
            });
            text.extend(std::iter::repeat_n(b' ', if is_line { rank - opened } else { 0 }));
        }
        text.extend(std::iter::repeat_n(b'[', opened));
        match positions.next() {
            Some(position) if in_lines => scalar::write(&mut text, &element_at(tensor.data(), position)),
            Some(position) => json_text::write_scalar(&mut text, &element_at(tensor.data(), position)),
            None => text.extend_from_slice(b"[]"),
        }
        text.extend(std::iter::repeat_n(b']', spans.iter().filter(|span| (at + 1) % **span == 0).count()));
        out.write_all(&text)?;
    }
    Ok(())
}

fn element_at(data: &Data, at: usize) -> ValueRef<'static> {
    with_data!(data, elements => elements[at].into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminals_show_the_first_elements_of_large_tensors() {
        let shown = |most_shown| {
            let tensor = Tensor::new(&[3, 4], (0..12).map(f64::from).collect()).expect("a tensor");
            let mut out = Vec::new();
            write_text(&mut out, &[("y".into(), Value::Tensor(tensor.into()))], most_shown).expect("memory");
            String::from_utf8(out).expect("text")
        };
        assert_eq!(shown(12), "y: f64 [3, 4]\n[[0, 1, 2, 3],\n [4, 5, 6, 7],\n [8, 9, 10, 11]]\n");
        assert_eq!(shown(11), "y: tensor[f64, 2]{[3, 4]: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ... (12 elements)}\n");
    }
}
