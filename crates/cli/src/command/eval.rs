//! `cembra eval`: runs a model over rows of data, or over one row from the command line.

use super::eval_arguments::{Args, NAME};
use super::eval_tensors;
use super::options_with_types_of;
use crate::arguments::Decimal;
use crate::data_files::{DataFiles, Opening};
use crate::deadline::Deadline;
use crate::evaluate::{Evaluator, ValueSource, output_type};
use crate::failed_rows::Failures;
use crate::failure::{Failure, usage};
use crate::inputs::{InputSources, Sources, check_among};
use crate::pipeline::{self, FailedRow, FinalStep, OnError, Origin, Recipe, Spent, Stop, TEXT_BYTES};
use crate::progress::{Progress, Summary};
use crate::ranks;
use crate::source::{ModelText, STANDARD};
use crate::turns::share;
use cembra::{Backend, Error, Executor, Model};
use cembra_expr::{Node, NodeId};
use cembra_runtime::visible;
use cembra_table::cells::array_of;
use cembra_table::error::DataError;
use cembra_table::output::Output;
use cembra_table::schema::{Inferred, spelled};
use cembra_table::sink::{self, Sink, WriteOptions};
use cembra_table::{Dataset, Form, Format, Keep, Named, types};
use std::collections::HashSet;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Runs `cembra eval`.
pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let start = Instant::now();
    let (text, paths) = args.model.load_with(&args.data, NAME)?;
    let files = DataFiles::of(&paths)?;
    let model = text.parse()?;
    let options = options_with_types_of(&text, &model, &args.model, &args.keep(), NAME)?;
    if model.has_tensors(&options) {
        let data = files.only().map_err(|two| usage(NAME, format!("{two}; a model with tensors takes at most one")))?;
        return eval_tensors::run(args, &text, &model, &options, data);
    }
    if !ranks::works_alone("a model of rows cannot be distributed to ranks") {
        return Ok(());
    }
    args.tiles.check(false)?;
    args.ranks.check(false, false)?;
    if !args.input.is_empty() {
        return Err(usage(
            NAME,
            "leave `--input` out: it names files of tensors, but the model has no tensor among its inputs",
        ));
    }
    let only = args.only();
    for (index, name) in only.iter().enumerate() {
        if only[..index].contains(name) {
            return Err(usage(NAME, format!("`--only` names `{name}` twice")));
        }
        let known = model.program().outputs.iter().map(|output| &*output.name);
        check_among(name, "output", known, "--only", NAME)?;
    }
    if let Keep::These(names) = &args.keep()
        && let Some(twice) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name))
    {
        return Err(usage(NAME, format!("`--keep` names `{}` twice", twice.1)));
    }
    if let Some(errors) = &args.errors
        && files.paths().iter().any(|file| file.is_file() && place_of(file) == place_of(errors))
    {
        let message = format!("`--errors {}` would replace a file of the data: name another file", errors.display());
        return Err(usage(NAME, message));
    }
    let format = args.format()?;
    args.check_errors()?;
    let on_error = args.on_error;
    let results_on_terminal = args.output_path().is_none() && io::stdout().is_terminal();
    let size = files.size();
    let mut progress = Progress::new(size, results_on_terminal);
    // The time limit includes opening the data: a header may name very many columns.
    let deadline = Deadline::start(args.time_limit);
    let opening = Opening {
        options: args.data_options.clone(),
        most_bytes: text.limits().array_bytes,
        tolerant: on_error != OnError::Fail,
        bar: Some(progress.bar().clone()),
    };
    let dataset = deadline.run(move || files.open(&opening)).flatten()?;
    if dataset.is_none() && args.keep() != Keep::None {
        let option = if args.keep_all { "--keep-all" } else { "--keep" };
        return Err(usage(NAME, format!("leave `{option}` out: it applies to columns of DATA, but there is no DATA")));
    }
    // A table is what CSV results become on a terminal: an option must not depend on where results go.
    let writes_text = matches!(format, Format::Csv | Format::Tsv | Format::Table);
    if args.output_decimal.is_some() && !writes_text {
        let form = format.name();
        let message = format!("leave `--output-decimal` out: it applies to CSV and tables, but the results are {form}");
        return Err(usage(NAME, message));
    }
    args.data_options.check_origins(dataset.as_ref().map(Dataset::format), !args.set.is_empty(), writes_text, NAME)?;

    let spelling = args.data_options.spelling();
    let is_json = matches!(format, Format::Json | Format::JsonLines);
    let outputs = || model.program().outputs.iter().map(|output| output.name.to_string());
    let shown = if only.is_empty() { outputs().collect() } else { only.clone() };
    let sources = Sources {
        types: args.model.types().collect(),
        constants: &args.set,
        spelling: &spelling,
        data: dataset,
        outputs: &only,
        keep: args.keep(),
        verbatim: args.is_verbatim(format),
        as_written: (is_json && !args.data_options.spelling().has_moments()).then_some(shown),
        deadline: &deadline,
    };
    let mut feed = InputSources::new(&text, &model, sources, NAME)?;
    args.data_options.check_types(&feed, NAME)?;
    if args.verbose {
        for (Inferred { name, qtype, kept, .. }, from) in feed.inferred() {
            let what = if *kept { "column" } else { "input" };
            let line = format!("note: {what} {name}: {}, {from}", spelled(qtype));
            let _ = writeln!(io::stderr(), "{}", visible(&line));
        }
    }
    let mut options =
        feed.with_types(options.backend(args.backend.into()).row_player(args.isa.into()).compat(args.compat));
    if !only.is_empty() {
        options = options.outputs(only.iter().map(String::as_str));
    }
    let executor = model.compile(&options).map_err(|error| feed.explain_types(text.blame(&error)))?;
    args.warnings.tell(&text, &model, &options);
    note_fallback(&executor, args.verbose);

    // A dash means standard error, even if a file has this name.
    if let (Some(output), Some(errors)) = (args.output_path(), &args.errors)
        && errors.as_os_str() != STANDARD
        && place_of(output) == place_of(errors)
    {
        let message = format!("`-o` and `--errors` both name `{}`: one would replace the other", errors.display());
        return Err(usage(NAME, message));
    }
    let results = results(&feed, &executor, args.keep_inputs, on_error)?;
    let output = match args.output_path() {
        Some(path) => Output::create(path)?,
        None => Output::stdout(),
    };
    let null = args.data_options.null.first().map(String::as_str);
    let most_bytes = text.limits().array_bytes;
    let decimal_comma = args.output_decimal == Some(Decimal::Comma);
    let write = WriteOptions { format, null, delimiter: None, decimal_comma, most_bytes };
    let mut sink = sink::open(&write, output, &results.columns, &results.recipe.schema)?;
    let mut failures = Failures::new(args.errors.as_deref(), &feed, most_bytes)?;
    let recipe = Recipe { limit: args.limit, most_bytes, ..results.recipe };
    let goes_on = on_error != OnError::Fail;
    deadline.check()?;
    let token = args.time_limit.map(|_| deadline.token());
    let evaluator =
        |_| Evaluator::new(&executor, feed.feeding(executor.inputs()), goes_on, token, text.limits(), args.threads());
    let evaluators: Vec<Evaluator> = (0..args.threads()).map(evaluator).collect();
    let row_by_row = evaluators.first().and_then(Evaluator::row_by_row);
    let spent = Arc::new(Spent::default());
    let mut rows = 0;
    let rows_of_data = feed.take_rows();
    // Without a known number of rows, the bytes that are read count as progress.
    if let Some(total) = feed.total() {
        progress.bar().set_length(total);
    }
    let mut tell = |read: u64, failed: &[FailedRow]| {
        rows += read;
        if feed.total().is_some() {
            progress.bar().set_position(rows);
        }
        progress.tell(rows, "rows");
        deadline.check()?;
        failures.add(failed, &feed)
    };
    let at_once = TEXT_BYTES.min(share(most_bytes, args.threads()));
    let stop = match &mut sink {
        // With a single computing thread, it is faster to encode on the writing thread at the same time.
        Sink::Lines(lines) if args.threads() > 1 => {
            let encoder = lines.encoder();
            let encode =
                FinalStep { make: Arc::new(move |rows| encoder.encode(&rows)), text_bytes: most_bytes, at_once };
            pipeline::run(rows_of_data, evaluators, recipe, &spent, &encode, &deadline, |results| {
                tell(results.read, &results.failures)?;
                lines.write(&results.rows)
            })?
        }
        sink => {
            let as_they_are = FinalStep { make: Arc::new(|rows| rows), text_bytes: most_bytes, at_once };
            pipeline::run(rows_of_data, evaluators, recipe, &spent, &as_they_are, &deadline, |results| {
                tell(results.read, &results.failures)?;
                sink.write(&results.rows)
            })?
        }
    };
    progress.finish();
    let stopped = match stop {
        // The row in progress was cancelled.
        Some(Stop::Row(..)) if deadline.check().is_err() => deadline.check().err().map(Failure::from),
        None => None,
        Some(Stop::Data(error)) => Some(Failure::from(in_file(error, &feed))),
        Some(Stop::Row(row, error)) => {
            let failure = guard_of(&text, &model, &error).into_iter().fold(text.blame(&error), Failure::note);
            Some(feed.explain_row(failure, &row))
        }
    };
    if let Some(failure) = stopped {
        // A table is printed when it is complete; in other formats, everything before this row is already written.
        return Err(failure);
    }
    let start_of_end = Instant::now();
    sink.finish()?.commit()?;
    failures.finish()?;
    let end = start_of_end.elapsed();
    let (told, failed) = (args.verbose || !results_on_terminal && io::stderr().is_terminal(), failures.note(rows));
    if let Some(note) = failed {
        let _ = writeln!(io::stderr(), "{}", visible(&note));
    }
    if told {
        let [reading, computing, writing] = spent.all();
        let summary = Summary { rows, bytes: size, time: start.elapsed(), spent: [reading, computing, writing + end] };
        let _ = writeln!(io::stderr(), "{summary}");
    }
    if args.verbose {
        let _ = writeln!(io::stderr(), "note: computed in {:.3} s by {}", spent.all()[1].as_secs_f64(), ran(&executor));
        if let Some(reason) = row_by_row {
            let _ = writeln!(io::stderr(), "note: {}", visible(&reason));
        }
    }
    Ok(())
}

/// The longest expression, in bytes, that a note repeats.
const REPEATED_BYTES: usize = 60;

/// The hint for an evaluation that failed on the right side of an `and` or `or`, which evaluate both sides; `None` for other errors.
fn guard_of(text: &ModelText, model: &Model, error: &Error) -> Option<String> {
    let failed = error.fault_kind().and(error.span())?;
    let graph = &model.program().graph;
    (0..graph.len()).map(NodeId::from_index).find_map(|id| {
        let Node::Operator(name, [left, right]) = graph.node(id) else { return None };
        let word = match &**graph.name(name) {
            "core._and" => "and",
            "core._or" => "or",
            _ => return None,
        };
        let right = graph.spans(*right).find(|right| right.start <= failed.start && failed.end <= right.end)?;
        let (left, right) = (text.sources().text_at(graph.span(*left)?), text.sources().text_at(right));
        let is_short = left.len() + right.len() <= REPEATED_BYTES && !left.contains('\n') && !right.contains('\n');
        Some(match word {
            "and" if is_short => format!(
                "write `if {left} then {right}`, which evaluates the right side only if the left is true: `and` evaluates both"
            ),
            _ => format!("write `if .. then .. else ..`, which evaluates only the chosen side: `{word}` evaluates both"),
        })
    })
}

/// The canonical path of a file, so that two names of it compare equal; for a file that does not exist yet, that of its folder with its
/// name.
fn place_of(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let new = || Some(fs::canonicalize(folder).ok()?.join(path.file_name()?));
    fs::canonicalize(path).ok().or_else(new).unwrap_or_else(|| path.to_owned())
}

/// Adds the name of the data to an error without a file.
fn in_file(error: DataError, feed: &InputSources) -> DataError {
    if error.file().is_some() { error } else { error.in_file(feed.name()) }
}

/// The columns of the results, and the recipe that makes them.
struct ResultColumns {
    columns: Vec<Named>,
    recipe: Recipe,
}

/// The columns of the results: the columns copied to the results, the inputs, the outputs. A column is left out if an output or an earlier
/// column has its name.
fn results(
    feed: &InputSources,
    executor: &Executor,
    keep_inputs: bool,
    on_error: OnError,
) -> Result<ResultColumns, DataError> {
    let outputs = executor.outputs();
    let goes_on = on_error != OnError::Fail;
    let mut hidden: HashSet<&str> = outputs.iter().map(|output| &*output.name).collect();
    let (mut columns, mut origins, mut schema) = (Vec::new(), Vec::new(), Vec::new());
    for (at, kept) in feed.kept().iter().enumerate() {
        // Several columns may have the empty name; all of them stay.
        if hidden.insert(&kept.name) || kept.name.is_empty() {
            schema.extend(feed.stored(feed.first_kept() + at).cloned());
            origins.push(Origin::Data(feed.first_kept() + at));
            columns.push(kept.clone());
        }
    }
    for (at, (name, qtype)) in feed.fields().iter().enumerate() {
        if keep_inputs && hidden.insert(name) {
            match feed.from(at) {
                ValueSource::Column(column, _) => {
                    schema.extend(feed.stored(*column).cloned());
                    origins.push(Origin::Data(*column));
                }
                ValueSource::Constant(value) => {
                    let array = array_of(value).ok_or_else(|| DataError::no_data(qtype).in_column(name))?;
                    schema.push(types::stored_field(name, qtype, false)?);
                    origins.push(Origin::Constant(array));
                }
            }
            columns.push(Named { name: name.clone(), form: Form::Values(qtype.clone()) });
        }
    }
    for (at, output) in outputs.iter().enumerate() {
        let qtype = output_type(output, goes_on);
        schema.push(types::stored_field(&output.name, &qtype, false)?);
        origins.push(Origin::Output(at));
        columns.push(Named { name: output.name.to_string(), form: Form::Values(qtype) });
    }
    let kept = (feed.first_kept()..feed.first_kept() + feed.kept().len()).collect();
    let recipe = Recipe { schema: types::schema(schema), origins, kept, on_error, limit: None, most_bytes: 0 };
    Ok(ResultColumns { columns, recipe })
}

/// Prints a note if the interpreter runs the model because machine code is not available. The note is printed only on a terminal, or if `verbose`.
pub(crate) fn note_fallback(executor: &Executor, verbose: bool) {
    if let Some(reason) = executor.fallback()
        && (verbose || io::stderr().is_terminal())
    {
        let _ = writeln!(io::stderr(), "note: the interpreter runs the model: {reason}");
    }
}

/// The name of the backend that runs `executor`, for notes.
pub(super) fn ran(executor: &Executor) -> &'static str {
    match executor.backend() {
        Backend::Native => "machine code",
        _ => "the interpreter",
    }
}
