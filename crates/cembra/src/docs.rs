//! Tests of the pages in `docs/`: their Rust examples compile and run, and their claims about models hold. This file has no code of the library.

/// Tests the example in the README.
#[doc = include_str!("../../../README.md")]
struct Readme;

/// Makes a documentation test from each chapter of the guide that has Rust examples.
macro_rules! chapters {
    ($($name:ident: $path:literal)*) => {
        $(#[doc = include_str!(concat!("../../../docs/guide/", $path))] struct $name;)*
    };
}
chapters! {
    GuideRust: "rust.md"
    GuideRequests: "requests.md"
    GuideLoaders: "loaders.md"
    GuideTensors: "tensors.md"
    GuideGradients: "gradients.md"
    GuideErrors: "errors.md"
    GuideServices: "services.md"
    GuideAsync: "async.md"
    GuideBackends: "backends.md"
    GuideObserving: "observing.md"
    GuideExtending: "extending.md"
    GuidePrograms: "programs.md"
}

/// Tests the guide's chapter on tiled tensors. Its checkpoints have JSON manifests, so it needs the feature `json`.
#[cfg(all(feature = "tiles", feature = "json"))]
#[doc = include_str!("../../../docs/guide/tiles.md")]
struct GuideTiles;

/// Tests the page for users of the library TiledArray.
#[cfg(feature = "tiles")]
#[doc = include_str!("../../../docs/from/tiledarray.md")]
struct FromTiledArray;

/// Tests the examples of model sets in a folder, and of errors with an excerpt of the source.
#[doc = include_str!("../../../docs/model-sets.md")]
struct ModelSets;

/// Tests the examples on the page about evaluating rows of Rust structs.
#[doc = include_str!("../../../docs/typed-rows.md")]
struct TypedRows;

/// Tests the examples on the page about batches.
#[doc = include_str!("../../../docs/batches.md")]
struct Batches;

/// Tests the examples on the page about arrays.
#[doc = include_str!("../../../docs/arrays.md")]
struct Arrays;

/// Tests the code blocks in the language reference and in the page on arrays. A comment with `gives`, `fails:` or
/// `error:` is a claim about the model above it or on its line. The inputs' values stand before that word.
///
/// ```
/// use cembra::program::{Literal, cast_literal};
/// use cembra::values::{parse_value, print_type};
/// use cembra::{Backend, Error, Model, Options, QType, Value};
///
/// /// A value as text: an array as listings have it, others as literals.
/// fn print_value(value: &Value) -> String {
///     match value {
///         Value::Array(_, array) => array.to_string(),
///         other => cembra::values::print_value(other),
///     }
/// }
///
/// /// The claim in a line's comment: values of inputs, the word, what is claimed.
/// fn claim(line: &str) -> Option<(&str, &str, &str)> {
///     let comment = &line[line.rfind('#')? + 1..];
///     let (at, word) = ["gives ", "fails: ", "error: "].iter().find_map(|word| Some((comment.find(word)?, *word)))?;
///     let inputs = comment[..at].trim();
///     (inputs.is_empty() || inputs.contains(" = ")).then(|| (inputs, word.trim(), comment[at + word.len()..].trim()))
/// }
///
/// /// The value as one of the declared type.
/// fn value(text: &str, model: &Model, name: &str) -> Value {
///     let declared = model.program().inputs.iter().find(|input| *input.name == *name).and_then(|i| i.qtype.clone());
///     if let Some(qtype @ QType::Tuple(_)) = &declared {
///         return cast_literal(&Literal::parse(text).unwrap(), qtype).unwrap();
///     }
///     let text = if text == "missing" { "NA" } else { text };
///     if let (Some(array @ QType::Array(..)), Some(elements)) = (&declared, text.strip_prefix('[')) {
///         return parse_value(&format!("{array}{{{}}}", elements.trim_end_matches(']'))).unwrap();
///     }
///     match declared.filter(|qtype| qtype.scalar().is_some()) {
///         Some(qtype) => parse_value(&format!("{}{{{text}}}", print_type(&qtype))).unwrap(),
///         None => parse_value(text).unwrap(),
///     }
/// }
///
/// fn outputs(source: &str, inputs: &str, backend: Backend) -> Result<String, Error> {
///     let model = Model::parse(source)?;
///     let mut given: Vec<(&str, String)> = Vec::new();
///     for part in inputs.split(", ").filter(|part| !part.is_empty()) {
///         match part.split_once(" = ") {
///             Some((name, text)) => given.push((name, text.to_owned())),
///             // A comma inside of a tuple.
///             None => given.last_mut().unwrap().1 += &format!(", {part}"),
///         }
///     }
///     let given: Vec<_> = given.into_iter().map(|(name, text)| (name, value(&text, &model, name))).collect();
///     let options = given.iter().fold(Options::default(), |all, (name, v)| all.input_type(name, v.qtype()));
///     let of_others = model.program().inputs.iter().filter(|input| given.iter().all(|(name, _)| *name != &*input.name));
///     let options = of_others.fold(options, |all, input| all.without_input(&input.name));
///     let executor = model.compile(&options.backend(backend))?;
///     let of = |name: &str| given.iter().find(|(other, _)| *other == name).expect(name).1.clone();
///     let row: Vec<_> = executor.inputs().iter().map(|input| of(&input.name)).collect();
///     let values = executor.session().evaluate(&row)?;
///     let shown = executor.outputs().iter().zip(&values).map(|(output, value)| match &*output.name {
///         "result" => print_value(value),
///         name => format!("{name} = {}", print_value(value)),
///     });
///     Ok(shown.collect::<Vec<_>>().join(", "))
/// }
///
/// let language = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/language.md"));
/// let arrays = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/arrays.md"));
/// let blocks = |page: &'static str| page.split("```cem\n").skip(1).map(|rest| rest.split("```").next().unwrap());
/// let mut wrong = Vec::new();
/// let mut claims = 0;
/// for block in blocks(language).chain(blocks(arrays)) {
///     let mut source = String::new();
///     let mut complete = false;
///     for line in block.lines() {
///         let claim = claim(line);
///         if complete && !(claim.is_some() && line.starts_with('#')) {
///             source.clear();
///         }
///         source += line;
///         source += "\n";
///         complete = claim.is_some();
///         let Some((inputs, word, claimed)) = claim else { continue };
///         claims += 1;
///         for backend in [Backend::Interpreter, Backend::Native] {
///             let found = match outputs(&source, inputs, backend) {
///                 Ok(values) => ("gives", values),
///                 Err(error) if error.is_fault() => ("fails:", error.message()),
///                 Err(error) => ("error:", error.diagnostics()[0].message().to_owned()),
///             };
///             if found != (word, claimed.to_owned()) {
///                 wrong.push(format!("{source}is wrong by {backend:?}: {} {}", found.0, found.1));
///             }
///         }
///     }
///     assert!(complete || source.trim().is_empty(), "nothing is claimed of\n{source}");
/// }
/// assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
/// assert!(claims > 100, "only {claims} claims were found");
/// ```
struct Language;

/// Tests the Rust examples on the page about errors.
#[doc = include_str!("../../../docs/errors.md")]
struct Errors;

/// Tests the examples on the page about limits.
#[doc = include_str!("../../../docs/limits.md")]
struct LimitsPage;

/// Tests the other claims of the page on errors. Every kind of problem must have a section, and the problems in its
/// console blocks must be the ones that the library finds.
///
/// ```
/// use cembra::errors::Code;
/// use cembra::values::{parse_value, print_type};
/// use cembra::{Error, FaultKind, Model, Options, Value};
///
/// /// What stands behind the word up to the next quote.
/// fn quoted<'a>(text: &'a str, word: &str) -> Option<&'a str> {
///     text.split_once(word)?.1.split('\'').next()
/// }
///
/// fn run(model: &str, given: &[(&str, &str)]) -> Result<Vec<Value>, Error> {
///     let executor = Model::parse(model)?.compile(&Options::default())?;
///     let value = |name: &str, qtype| {
///         let text = given.iter().find(|(other, _)| *other == name).expect(name).1;
///         let text = if text == "missing" { "NA" } else { text };
///         parse_value(&format!("{}{{{text}}}", print_type(qtype))).unwrap()
///     };
///     let row: Vec<_> = executor.inputs().iter().map(|input| value(&input.name, &input.qtype)).collect();
///     executor.session().evaluate(&row)
/// }
///
/// let page = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/errors.md"));
/// let names = Code::ALL.iter().map(|code| code.as_str()).chain(FaultKind::ALL.map(FaultKind::name)).chain(["values"]);
/// for name in names {
///     assert!(page.contains(&format!("\n### {name}\n")), "there is no section `{name}`");
/// }
/// let mut examples = 0;
/// for section in page.split("\n### ").skip(1) {
///     let name = section.lines().next().unwrap();
///     for block in section.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap()) {
///         for example in block.split("$ ").skip(1) {
///             let command = example.split("\nerror[").next().unwrap().split("\nwarning[").next().unwrap();
///             // What the command itself finds: data, and types and values from the command line that do not fit.
///             if !command.starts_with("cembra ") || command.contains("--types") || name == "binding" || name == "use" {
///                 continue;
///             }
///             let model = quoted(command, " -e '").unwrap();
///             let given: Vec<_> = command.split(" -s ").skip(1).filter_map(|set| set.trim().split_once('=')).collect();
///             let given: Vec<_> = given.iter().map(|(n, v)| (*n, v.split_whitespace().next().unwrap())).collect();
///             let problems = if Code::WARNINGS.iter().any(|code| code.as_str() == name) {
///                 let of = |code: &Code| code.as_str() == name;
///                 let others = Code::WARNINGS.iter().filter(|code| !of(code));
///                 let options = others.fold(Options::default(), |options, code| options.allow(*code));
///                 let (_, warnings) = Model::parse(model).unwrap().check(&options);
///                 assert!(!warnings.is_empty(), "{model}");
///                 warnings.as_slice().to_vec()
///             } else {
///                 let error = run(model, &given).expect_err(model);
///                 assert_eq!(error.code(), name, "{model}");
///                 error.diagnostics()
///             };
///             for problem in problems {
///                 let line = format!("[{}]: {}\n", problem.code(), problem.message());
///                 assert!(example.contains(&line), "{example}\nlacks\n{line}");
///                 for hint in problem.hints() {
///                     assert!(example.contains(&format!("= help: {hint}\n")), "{example}\nlacks\n{hint}");
///                 }
///             }
///             examples += 1;
///         }
///     }
/// }
/// assert!(examples > 20, "only {examples} examples were found");
/// ```
struct Problems;

/// Tests the pages for users of other languages. In their tables, the cell in column `cembra` must evaluate to the cell
/// in column `gives`.
///
/// ```
/// use cembra::values::print_value;
/// use cembra::{Backend, Error, Model, Options, Value};
///
/// /// The cells of a row of a table.
/// fn cells(line: &str) -> Vec<String> {
///     let line = line.replace(r"\|", "\u{1}");
///     let row = line.strip_prefix('|').and_then(|line| line.strip_suffix('|')).unwrap_or_default();
///     row.split('|').map(|cell| cell.replace('\u{1}', "|").trim().trim_matches('`').to_owned()).collect()
/// }
///
/// fn value(source: &str, backend: Backend) -> Result<String, Error> {
///     let executor = Model::parse(source)?.compile(&Options::default().backend(backend))?;
///     let values = executor.session().evaluate(&[])?;
///     Ok(match &values[0] {
///         Value::Array(_, array) => array.to_string(),
///         other => print_value(other),
///     })
/// }
///
/// let mut wrong = Vec::new();
/// let mut claims = 0;
/// for page in ["cel", "excel", "sql", "rhai", "datafusion", "arolla"] {
///     let text = std::fs::read_to_string(format!("{}/../../docs/from/{page}.md", env!("CARGO_MANIFEST_DIR"))).unwrap();
///     let (_, table) = text.split_once(" cembra | gives |\n").expect(page);
///     for row in table.lines().skip(1).map(cells).take_while(|row| row.len() == 4) {
///         for backend in [Backend::Interpreter, Backend::Native] {
///             let found = match value(&row[2], backend) {
///                 Ok(value) => value,
///                 Err(error) if error.is_fault() => format!("fails: {}", error.message()),
///                 Err(_) => "an error before it runs".to_owned(),
///             };
///             if found != row[3] {
///                 wrong.push(format!("{page}: {} by {backend:?}: {found}", row[2]));
///             }
///         }
///         claims += 1;
///     }
/// }
/// assert!(wrong.is_empty(), "{}", wrong.join("\n"));
/// assert!(claims > 150, "{claims} rows");
/// ```
struct FromOthers;

/// Tests the examples on the page for users of other tensor libraries.
#[doc = include_str!("../../../docs/from/tensors.md")]
struct FromTensors;

/// Tests the tables on the page for users of other tensor libraries: the third column must evaluate to the fourth. For
/// operators, the third column must equal the expression that is run here.
///
/// ```
/// use cembra::tensor::{CompileGraph, Data, TensorGraph, TensorNodeId, Reduction, Slice};
/// use cembra::{Backend, Error, Model, Options, Scalar, Tensor};
/// use std::collections::BTreeMap;
///
/// /// A tensor as lists in lists.
/// fn print(tensor: &Tensor) -> Result<String, Error> {
///     let texts: Vec<String> = match tensor.row_major().data() {
///         Data::Bool(elements) => elements.iter().map(bool::to_string).collect(),
///         Data::Float32(elements) => elements.iter().map(f32::to_string).collect(),
///         Data::Float64(elements) => elements.iter().map(f64::to_string).collect(),
///         other => panic!("{other:?}"),
///     };
///     let mut lists = texts;
///     for extent in tensor.extents().iter().rev() {
///         lists = lists.chunks(*extent).map(|list| format!("[{}]", list.join(", "))).collect();
///     }
///     Ok(lists.concat())
/// }
///
/// /// The rows of a table, the cells without the marks of code.
/// fn rows<'t>(page: &'t str, heading: &str) -> Vec<Vec<&'t str>> {
///     let (_, table) = page.split_once(heading).expect("the heading");
///     let lines = table.lines().skip_while(|line| !line.starts_with('|')).skip(2);
///     lines.take_while(|line| line.starts_with('|')).map(|line| {
///         line.trim_matches('|').split(" | ").map(|cell| cell.trim().trim_matches('`')).collect()
///     }).collect()
/// }
///
/// macro_rules! expressions {
///     ($($expression:expr;)*) => { vec![$((stringify!($expression), $expression?),)*] };
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/from/tensors.md"))?;
/// let matrix = |elements: [f64; 4]| Tensor::new(&[2, 2], elements.to_vec());
/// let (left, right) = (matrix([1.0, 2.0, 3.0, 4.0])?, matrix([0.0, 5.0, 1.0, 0.0])?);
/// let inputs = [left, right, Tensor::new(&[2], vec![1.0, 10.0])?, Tensor::new(&[3], vec![1_i64, 0, 1])?];
///
/// let mut g = TensorGraph::standard();
/// let mut leaf = |g: &mut TensorGraph, at: usize| g.leaf("", inputs[at].scalar_type(), inputs[at].extents());
/// let (a, b, v, i) = (leaf(&mut g, 0)?, leaf(&mut g, 1)?, leaf(&mut g, 2)?, leaf(&mut g, 3)?);
/// let c = g.apply("bool.less", &[a, b])?;
/// let seven = g.constant(Scalar::Float64, 7.0)?;
/// let sevenfold = g.apply("math.multiply", &[seven, a])?;
/// let made: Vec<(&str, TensorNodeId)> = expressions! {
///     g.apply("math.add", &[a, b]);
///     g.apply("math.multiply", &[a, b]);
///     g.einsum("ij,jk->ik", &[a, b]);
///     g.einsum("ij,jk,k", &[a, b, v]);
///     g.apply("math.multiply", &[a, v]);
///     g.apply("tensor.square", &[a]);
///     g.apply("tensor.maximum", &[a, b]);
///     g.apply("bool.less", &[a, b]);
///     g.apply("tensor.where", &[c, a, b]);
///     g.reduce(Reduction::Sum, a, &[0]);
///     g.reduce(Reduction::Max, a, &[0, 1]);
///     g.reduce(Reduction::Any, c, &[1]);
///     g.mean(a, &[1]);
///     g.transpose(a, &[1, 0]);
///     g.slice(a, &[Slice::all(2), Slice { start: 1, step: -1, count: 2 }]);
///     g.with_axes(a, &[0, 0]);
///     g.einsum("ii", &[a]);
///     g.einsum("i,i", &[v, v]);
///     g.einsum("i,j->ij", &[v, v]);
///     g.reshape(a, &[4]);
///     g.broadcast(v, &[2, 2]);
///     g.take(a, i, 0);
///     g.concat(&[a, b], 1);
///     g.cast(sevenfold, Scalar::Float32);
/// };
/// let table = rows(&page, "## Operator by operator");
/// assert_eq!(table.len(), made.len());
/// for backend in [Backend::Interpreter, Backend::Native] {
///     let options = Options::default().backend(backend);
///     for (row, (expression, node)) in table.iter().zip(&made) {
///         let written = |text: &str| text.split_whitespace().collect::<String>();
///         assert_eq!(written(row[2]), written(expression));
///         let executor = g.compile(&[*node], &options)?;
///         for values in [executor.run_reference(&inputs)?, executor.session().run_tensors(&inputs)?.to_vec()] {
///             assert_eq!(row[3], print(&values[0])?, "{expression}");
///         }
///     }
///     let table = rows(&page, "## Statement by statement");
///     assert_eq!(table.len(), 6);
///     for row in table {
///         let text = format!("input a, b, c: tensor[f64, 2], v: tensor[f64, 1]\n{}", row[2]);
///         let named = [("a", 0), ("b", 1), ("v", 2), ("c", 0)];
///         let tensors: BTreeMap<String, Tensor> =
///             named.map(|(name, at)| (name.to_owned(), inputs[at].clone())).into();
///         let executor = Model::parse(&text)?.compile(&options)?;
///         let given: Vec<Tensor> = executor.inputs().iter().map(|field| tensors[&*field.name].clone()).collect();
///         let mut session = executor.session();
///         let made = session.run_tensors(&given)?;
///         assert_eq!((row[3], made.len()), (&*print(&made[0])?, 1), "{}", row[2]);
///     }
/// }
/// # Ok(())
/// # }
/// ```
struct FromTensorsTables;
