//! Models as functions of queries in SQL: types, constants, errors, several outputs, and replacement.

use cembra::Limits;
use cembra::operators::{Registry, UserOperator};
use cembra_datafusion::{CembraFunction, CreateFunctions, FunctionOptions, model_error, register_folder, with_rules};
use datafusion::arrow::array::{
    Array, ArrayRef, DictionaryArray, Float64Array, Int32Array, Int64Array, ListArray, RecordBatch, StringArray,
    StructArray,
};
use datafusion::arrow::datatypes::{DataType, Field, Int32Type, Schema};
use datafusion::arrow::util::display::array_value_to_string;
use datafusion::error::DataFusionError;
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::{ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDFImpl};
use datafusion::physical_plan::execute_stream;
use datafusion::prelude::SessionContext;
use datafusion::scalar::ScalarValue;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

type Result<T = (), E = DataFusionError> = std::result::Result<T, E>;

fn context() -> SessionContext {
    let state = with_rules(SessionStateBuilder::new_with_default_features()).build();
    SessionContext::new_with_state(state).with_function_factory(Arc::new(CreateFunctions::default()))
}

fn function(name: &str, text: &str, options: FunctionOptions) -> Result<CembraFunction> {
    let model = cembra::Model::parse(text).map_err(|error| DataFusionError::External(Box::new(error)))?;
    CembraFunction::new(name, model, options)
}

fn register(ctx: &SessionContext, name: &str, text: &str) -> Result {
    ctx.register_udf(function(name, text, FunctionOptions::default())?.into());
    Ok(())
}

/// The rows of a query, each as its values with a space between them.
async fn rows(ctx: &SessionContext, sql: &str) -> Result<Vec<String>> {
    let batches = ctx.sql(sql).await?.collect().await?;
    let mut rows = Vec::new();
    for batch in &batches {
        for row in 0..batch.num_rows() {
            let shown = |array: &ArrayRef| match array.is_null(row) {
                true => "NULL".to_owned(),
                false => array_value_to_string(array, row).unwrap_or_default(),
            };
            rows.push(batch.columns().iter().map(shown).collect::<Vec<_>>().join(" "));
        }
    }
    Ok(rows)
}

/// The error of a query: its code, and its text.
async fn error(ctx: &SessionContext, sql: &str) -> (String, String) {
    let error = match ctx.sql(sql).await {
        Ok(frame) => frame.collect().await.expect_err(sql),
        Err(error) => error,
    };
    let code = model_error(&error).map_or("", |error| error.code());
    (code.to_owned(), error.to_string())
}

fn table(ctx: &SessionContext, columns: Vec<(&str, ArrayRef)>) -> Result {
    let fields: Vec<Field> =
        columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), true)).collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    ctx.register_batch("t", RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)?;
    Ok(())
}

#[tokio::test]
async fn columns_and_constants() -> Result {
    let ctx = context();
    register(
        &ctx,
        "price",
        "input amount: f64?, vip: bool, rate: f64? = 0.5; (if vip then amount * rate else amount) ?? 10.0",
    )?;
    let values = "(VALUES (8.0, true), (NULL, false), (3.0, false)) AS t(a, v)";
    assert_eq!(rows(&ctx, &format!("SELECT price(a, v) FROM {values}")).await?, ["4.0", "10.0", "3.0"]);
    assert_eq!(rows(&ctx, &format!("SELECT price(a, true, 0.25) FROM {values}")).await?, ["2.0", "10.0", "0.75"]);
    assert_eq!(rows(&ctx, &format!("SELECT price(a, true, NULL) FROM {values}")).await?, ["4.0", "10.0", "1.5"]);
    assert_eq!(rows(&ctx, "SELECT price(8, true), price(NULL, false)").await?, ["4.0 10.0"]);
    assert_eq!(rows(&ctx, "SELECT price(vip => true, amount => 8.0)").await?, ["4.0"]);
    Ok(())
}

#[tokio::test]
async fn several_outputs_are_a_struct() -> Result {
    let ctx = context();
    register(
        &ctx,
        "both",
        "input x: f64; output twice = x * 2; output big = x > 1; output name = if x > 1 then \"big\" else missing",
    )?;
    let found = rows(&ctx, "SELECT both(x) FROM (VALUES (0.5), (2.0)) AS t(x)").await?;
    assert_eq!(found, ["{twice: 1.0, big: false, name: }", "{twice: 4.0, big: true, name: big}"]);
    let fields = "SELECT get_field(both(x), 'twice'), x, get_field(both(x), 'name') FROM (VALUES (0.5), (2.0)) AS t(x)";
    assert_eq!(rows(&ctx, fields).await?, ["1.0 0.5 NULL", "4.0 2.0 big"]);
    // Two fields are one call: the plan has the function once.
    let plan = rows(
        &ctx,
        "EXPLAIN SELECT get_field(both(x), 'twice'), get_field(both(x), 'name') FROM (VALUES (0.5), (2.0)) AS t(x)",
    )
    .await?;
    let physical = plan.iter().find(|row| row.starts_with("physical_plan")).map(String::as_str).unwrap_or_default();
    assert_eq!(physical.matches("[both(").count() + physical.matches(", both(").count(), 1, "{physical}");
    Ok(())
}

#[tokio::test]
async fn masks_are_never_null() -> Result {
    let ctx = context();
    register(&ctx, "big", "input x: f64?; x > 1.0")?;
    let t = "(VALUES (0.5), (2.0), (NULL)) AS t(x)";
    assert_eq!(rows(&ctx, &format!("SELECT big(x) FROM {t}")).await?, ["false", "true", "false"]);
    assert_eq!(rows(&ctx, &format!("SELECT x FROM {t} WHERE NOT big(x)")).await?, ["0.5", "NULL"]);
    let plan = rows(&ctx, &format!("EXPLAIN SELECT x FROM {t} WHERE big(x) IS NULL")).await?;
    assert!(plan[0].contains("EmptyRelation"), "{plan:?}");
    Ok(())
}

#[tokio::test]
async fn sliced_dictionary_list_and_struct_columns() -> Result {
    let ctx = context();
    let text = "input code: text?, items: [f64], at: {x: f64, y: f64}\n(code ?? \"none\") + as_text(math.sum(items) + at.x - at.y)";
    register(&ctx, "f", text)?;
    let code: DictionaryArray<Int32Type> = ["a", "b", "a", "c"].into_iter().collect();
    let items = ListArray::from_iter_primitive::<datafusion::arrow::datatypes::Float64Type, _, _>(
        [vec![1.0], vec![], vec![2.0, 3.0], vec![4.0]].map(|list| Some(list.into_iter().map(Some))),
    );
    // The order of the fields is another one than the model's.
    let at = StructArray::from(vec![
        (
            Arc::new(Field::new("y", DataType::Float64, false)),
            Arc::new(Float64Array::from(vec![1.0, 2.0, 3.0, 4.0])) as ArrayRef,
        ),
        (
            Arc::new(Field::new("x", DataType::Float64, false)),
            Arc::new(Float64Array::from(vec![10.0, 20.0, 30.0, 40.0])) as ArrayRef,
        ),
    ]);
    let sliced = |array: ArrayRef| array.slice(1, 3);
    table(
        &ctx,
        vec![("code", sliced(Arc::new(code))), ("items", sliced(Arc::new(items))), ("at", sliced(Arc::new(at)))],
    )?;
    assert_eq!(rows(&ctx, "SELECT f(code, items, at) FROM t").await?, ["b18", "a32", "c40"]);
    assert_eq!(rows(&ctx, "SELECT f('x', items, at) FROM t WHERE code = 'a'").await?, ["x32"]);
    assert_eq!(rows(&ctx, "SELECT f(code, items, at) FROM t WHERE false").await?, [] as [&str; 0]);
    Ok(())
}

#[tokio::test]
async fn undeclared_inputs_have_the_types_of_columns() -> Result {
    let ctx = context();
    register(&ctx, "sum", "a + b")?;
    table(
        &ctx,
        vec![
            ("i", Arc::new(Int64Array::from(vec![Some(1), None]))),
            ("s", Arc::new(Int32Array::from(vec![7, 8]))),
            ("w", Arc::new(StringArray::from(vec!["x", "y"]))),
        ],
    )?;
    assert_eq!(rows(&ctx, "SELECT sum(i, i), sum(w, w), sum(i, s) FROM t").await?, ["2 xx 8", "NULL yy NULL"]);
    let (code, text) = error(&ctx, "SELECT sum(i, w) FROM t").await;
    assert_eq!(code, "type-mismatch", "{text}");
    Ok(())
}

#[tokio::test]
async fn rows_that_fail() -> Result {
    let ctx = context();
    register(&ctx, "quotient", "input x: i64; 12 // x")?;
    let null = function("maybe", "input x: i64; 12 // x", FunctionOptions::default().null_on_error())?;
    ctx.register_udf(null.into());
    let t = "(VALUES (5), (0), (-5)) AS t(x)";
    let (code, text) = error(&ctx, &format!("SELECT quotient(x) FROM {t}")).await;
    assert_eq!(code, "div-by-zero", "{text}");
    assert!(text.contains("quotient: ") && text.contains("row 1"), "{text}");
    assert_eq!(rows(&ctx, &format!("SELECT maybe(x) FROM {t}")).await?, ["2", "NULL", "-3"]);
    // Only rows for which a condition holds are evaluated, also where all arguments are constants.
    let guarded = format!("SELECT CASE WHEN x <> 0 THEN quotient(x) ELSE 0 END FROM {t}");
    assert_eq!(rows(&ctx, &guarded).await?, ["2", "0", "-3"]);
    let constant = format!("SELECT CASE WHEN x = 7 THEN quotient(0) ELSE x END FROM {t}");
    assert_eq!(rows(&ctx, &constant).await?, ["5", "0", "-5"]);
    let twice = format!("SELECT CASE WHEN x > 0 THEN quotient(x) WHEN x < 0 THEN quotient(x) + 1 END FROM {t}");
    assert_eq!(rows(&ctx, &twice).await?, ["2", "NULL", "-2"]);
    assert_eq!(rows(&ctx, "SELECT quotient(0) WHERE false").await?, [] as [&str; 0]);
    assert_eq!(error(&ctx, "SELECT quotient(0)").await.0, "div-by-zero");
    Ok(())
}

#[tokio::test]
async fn calls_that_do_not_fit() -> Result {
    let ctx = context();
    register(&ctx, "f", "input x: f32, n: i64? = 1; x * to_float32(n)")?;
    for (call, code, words) in [
        ("f()", "arguments", "f(x, n) is called with 0 arguments"),
        ("f(1, 2, 3)", "arguments", "give it 1 to 2"),
        ("f('a')", "input-type", "input `x` is f32"),
        ("f(1.5)", "input-type", "write `arrow_cast(.., 'Float32')`"),
        ("f(NULL)", "", ""),
    ] {
        let (found, text) = error(&ctx, &format!("SELECT {call}")).await;
        assert!((code.is_empty() || found == code) && text.contains(words), "{call}: {found} {text}");
    }
    assert_eq!(rows(&ctx, "SELECT f(arrow_cast(1.5, 'Float32'), 3), f(16777216)").await?, ["4.5 16777216.0"]);
    // An integer that the input's type cannot hold is not rounded.
    assert_eq!(error(&ctx, "SELECT f(16777217)").await.0, "input-type");
    Ok(())
}

#[tokio::test]
async fn functions_of_sql() -> Result {
    let ctx = context();
    let create = "FUNCTION price(age INT, sum DOUBLE) RETURNS DOUBLE LANGUAGE cembra AS";
    ctx.sql(&format!("CREATE {create} 'input sum: f64?, age: i32?; sum * (if age < 25 then 1.5 else 1.0)'")).await?;
    assert_eq!(rows(&ctx, "SELECT price(20, 2.0), price(30, 2.0)").await?, ["3.0 2.0"]);
    assert_eq!(error(&ctx, &format!("CREATE {create} 'sum'")).await.0, "name");
    ctx.sql(&format!("CREATE OR REPLACE {create} 'sum * to_float64(age)'")).await?;
    assert_eq!(rows(&ctx, "SELECT price(20, 2.0)").await?, ["40.0"]);
    ctx.sql("DROP FUNCTION price").await?;
    assert!(error(&ctx, "SELECT price(20, 2.0)").await.1.contains("price"));
    for (statement, code) in [
        ("f(x DOUBLE) RETURNS DOUBLE LANGUAGE cembra AS 'x +'", "syntax"),
        ("f(x DOUBLE) RETURNS BIGINT LANGUAGE cembra AS 'x'", "type-mismatch"),
        ("f(x TEXT) RETURNS DOUBLE LANGUAGE cembra AS 'input x: f64; x'", "input-type"),
        ("f(y DOUBLE) RETURNS DOUBLE LANGUAGE cembra AS 'x'", "unknown-name"),
        ("f() RETURNS DOUBLE LANGUAGE cembra AS 'x'", "arguments"),
        ("f(x DOUBLE, x DOUBLE) RETURNS DOUBLE LANGUAGE cembra AS 'x'", "name"),
        ("f(x DECIMAL(10, 2)) RETURNS DOUBLE LANGUAGE cembra AS 'x'", "input-type"),
        ("f(x DOUBLE DEFAULT 1.0) RETURNS DOUBLE LANGUAGE cembra AS 'x'", "arguments"),
        ("f(x DOUBLE) RETURNS DOUBLE LANGUAGE other AS 'x'", "option"),
        ("f(x DOUBLE) RETURNS DOUBLE AS 'x'", "option"),
        ("f(x DOUBLE) RETURNS DOUBLE LANGUAGE cembra AS 'use \"other.cem\"; x'", "use"),
        ("f(x DOUBLE) RETURNS DOUBLE LANGUAGE cembra AS 'x + sqr(x)'", "unknown-name"),
    ] {
        let (found, text) = error(&ctx, &format!("CREATE FUNCTION {statement}")).await;
        assert_eq!(found, code, "{statement}: {text}");
    }
    ctx.sql("CREATE FUNCTION name(x TEXT) RETURNS TEXT LANGUAGE cembra AS 'x + \"!\"'").await?;
    assert_eq!(rows(&ctx, "SELECT name('a')").await?, ["a!"]);
    Ok(())
}

#[tokio::test]
async fn replaced_functions_and_limits() -> Result {
    let ctx = context();
    register(&ctx, "f", "input x: f64; x * 2")?;
    let planned = ctx.sql("SELECT f(3.0) + x FROM (VALUES (0.0)) AS t(x)").await?;
    register(&ctx, "f", "input x: f64; x * 3")?;
    assert_eq!(rows(&ctx, "SELECT f(3.0)").await?, ["9.0"]);
    let batches = planned.collect().await?;
    assert_eq!(array_value_to_string(batches[0].column(0), 0)?, "6.0");

    let same = |text| function("f", text, FunctionOptions::default());
    assert_eq!(same("input x: f64; x")?, same("input x: f64; x")?);
    assert_ne!(same("input x: f64; x")?, same("input x: f64; x * 1")?);
    assert_ne!(same("input x: f64; x")?, function("g", "input x: f64; x", FunctionOptions::default())?);
    assert_ne!(same("input x: f64; x")?, function("f", "input x: f64; x", FunctionOptions::default().null_on_error())?);

    // Models that were not read from text differ by their graphs.
    let binary = |text| {
        let model = cembra::Model::parse(text).and_then(|model| cembra::Model::from_binary(&model.to_binary()));
        CembraFunction::new(
            "f",
            model.map_err(|error| DataFusionError::External(Box::new(error)))?,
            FunctionOptions::default(),
        )
    };
    assert_eq!(binary("input x: f64; x + 1")?, binary("input x: f64; x + 1")?);
    assert_ne!(binary("input x: f64; x + 1")?, binary("input x: f64; x + 2")?);

    let few = FunctionOptions::default().limits(Limits::default().loop_iterations(10));
    ctx.register_udf(function("long", "input n: i64; seq.reduce(fn(s, i) = s + i, seq.range(n), 0)", few)?.into());
    assert_eq!(rows(&ctx, "SELECT long(5)").await?, ["10"]);
    assert_eq!(error(&ctx, "SELECT long(50)").await.0, "iteration-limit");
    Ok(())
}

#[tokio::test]
async fn models_of_a_folder() -> Result {
    let folder = tempfile::tempdir()?;
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text);
    write("tax.cem", "let tax = 0.5")?;
    write("gross.cem", "use \"tax.cem\"; input net: f64; net * (1.0 + tax)")?;
    write("twice.cem", "input x: f64; x * 2")?;
    let ctx = context();
    let functions = register_folder(&ctx, folder.path(), FunctionOptions::default())?;
    assert_eq!(rows(&ctx, "SELECT gross(2.0), twice(2.0)").await?, ["3.0 4.0"]);
    write("tax.cem", "let tax = 1.0")?;
    write("twice.cem", "input x: f64; x *")?;
    write("half.cem", "input x: f64; x / 2")?;
    let reload = functions.reload(&ctx)?;
    assert_eq!(
        (reload.added, reload.replaced, reload.failed.len()),
        (vec!["half".to_owned()], vec!["gross".to_owned()], 1)
    );
    assert_eq!(rows(&ctx, "SELECT gross(2.0), twice(2.0), half(2.0)").await?, ["4.0 4.0 1.0"]);
    std::fs::remove_file(folder.path().join("half.cem"))?;
    functions.reload(&ctx)?;
    assert!(error(&ctx, "SELECT half(2.0)").await.1.contains("half"));
    let broken = register_folder(&ctx, folder.path(), FunctionOptions::default()).map(drop);
    assert_eq!(broken.err().as_ref().and_then(model_error).map(|error| error.code()), Some("syntax"));
    Ok(())
}

/// True once an evaluation of the test below has begun.
static HAS_BEGUN: AtomicBool = AtomicBool::new(false);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_query_ends_its_evaluations() -> Result {
    let begin = |n: i64| {
        HAS_BEGUN.store(true, Ordering::SeqCst);
        n
    };
    let text = "input n: i64; seq.reduce(fn(s, i) = s + i * i, seq.range(test.begin(n)), 0)";
    let limits = Limits::default().loop_iterations(u64::MAX);
    let registry = Registry::with_operators([UserOperator::new("test.begin").function(begin)]);
    let registry = registry.map_err(|error| DataFusionError::External(Box::new(error)))?;
    let model = cembra::Model::parse_with(text, registry, &limits);
    let model = model.map_err(|error| DataFusionError::External(Box::new(error)))?;
    let ctx = context();
    let options = FunctionOptions::default().limits(limits).registry(registry);
    ctx.register_udf(CembraFunction::new("long", model, options)?.into());
    // Years, if nothing ends it.
    let sql = "SELECT long(x) FROM (VALUES (1000000000000000)) AS t(x)";
    let plan = ctx.sql(sql).await?.create_physical_plan().await?;
    let stream = execute_stream(plan, ctx.task_ctx())?;
    while !HAS_BEGUN.load(Ordering::SeqCst) {
        tokio::task::yield_now().await;
    }
    drop(stream);
    // The runtime of the test ends only when the evaluation has.
    assert_eq!(rows(&ctx, "SELECT long(x) FROM (VALUES (3)) AS t(x)").await?, ["5"]);
    Ok(())
}

/// The calls of the operator of the test below.
static CALLS: AtomicUsize = AtomicUsize::new(0);

#[tokio::test]
async fn each_call_of_an_impure_function_is_one() -> Result {
    let next = |x: i64| x + CALLS.fetch_add(1, Ordering::SeqCst) as i64;
    let registry = Registry::with_operators([UserOperator::new("test.next").function(next).impure()]);
    let registry = registry.map_err(|error| DataFusionError::External(Box::new(error)))?;
    let text = "input x: i64; let n = test.next(x); output a = n; output b = n";
    let model = cembra::Model::parse_with(text, registry, &Limits::default());
    let model = model.map_err(|error| DataFusionError::External(Box::new(error)))?;
    let ctx = context();
    ctx.register_udf(CembraFunction::new("next", model, FunctionOptions::default().registry(registry))?.into());
    // Constants are evaluated for each row, and not while the query is planned.
    let planned = ctx.sql("SELECT get_field(next(0), 'a') FROM (VALUES (1), (2)) AS t(x)").await?;
    let planned = planned.create_physical_plan().await?;
    assert_eq!(CALLS.load(Ordering::SeqCst), 0);
    datafusion::physical_plan::collect(planned, ctx.task_ctx()).await?;
    assert_eq!(CALLS.load(Ordering::SeqCst), 2);
    let two = "SELECT get_field(next(x), 'a'), get_field(next(x), 'b') FROM (VALUES (0)) AS t(x)";
    assert_eq!(rows(&ctx, two).await?, ["2 3"]);
    Ok(())
}

#[tokio::test]
async fn runs_of_a_plan_at_the_same_time_do_not_end_each_other() -> Result {
    let ctx = context();
    register(&ctx, "twice", "input x: f64; x * 2")?;
    let plan = ctx.sql("SELECT twice(x) FROM (VALUES (1.5)) AS t(x)").await?.create_physical_plan().await?;
    // The tasks of both begin only when this one waits.
    let first = execute_stream(plan.clone(), ctx.task_ctx())?;
    drop(execute_stream(plan.clone(), ctx.task_ctx())?);
    let batches = datafusion::physical_plan::common::collect(first).await?;
    assert_eq!(array_value_to_string(batches[0].column(0), 0)?, "3.0");
    assert_eq!(datafusion::physical_plan::collect(plan, ctx.task_ctx()).await?[0].num_rows(), 1);
    Ok(())
}

#[test]
fn columns_with_and_without_nulls_give_the_same_type() -> Result {
    let both = function("both", "output sum = a + a; output same = a", FunctionOptions::default())?;
    let returned = |is_nullable| {
        let field = Arc::new(Field::new("a", DataType::Float64, is_nullable));
        let args = ReturnFieldArgs { arg_fields: &[field], scalar_arguments: &[None] };
        Ok::<_, DataFusionError>(both.return_field_from_args(args)?.data_type().clone())
    };
    assert_eq!(returned(false)?, returned(true)?);
    Ok(())
}

#[test]
fn constants_without_rows_are_not_evaluated() -> Result {
    let quotient = function("quotient", "input x: i64; 12 // x", FunctionOptions::default())?;
    let called = |number_rows| {
        quotient.invoke_with_args(ScalarFunctionArgs {
            args: vec![ColumnarValue::Scalar(ScalarValue::Int64(Some(0)))],
            arg_fields: vec![Arc::new(Field::new("x", DataType::Int64, false))],
            number_rows,
            return_field: Arc::new(Field::new("quotient", DataType::Int64, false)),
            config_options: Arc::default(),
        })
    };
    assert_eq!(called(0)?.to_array(0)?.len(), 0);
    assert!(called(1).is_err());
    Ok(())
}

#[tokio::test]
async fn the_memory_pool_limits_evaluations() -> Result {
    let pool = Arc::new(datafusion::execution::memory_pool::GreedyMemoryPool::new(1 << 20));
    let runtime = datafusion::execution::runtime_env::RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc()?;
    let state = with_rules(SessionStateBuilder::new_with_default_features()).with_runtime_env(runtime).build();
    let ctx = SessionContext::new_with_state(state);
    register(&ctx, "many", "input n: i64; math.sum(array.iota(array.resize_array_shape(shape_of([1.0]), n)))")?;
    assert_eq!(rows(&ctx, "SELECT many(x) FROM (VALUES (4)) AS t(x)").await?, ["6"]);
    let (code, text) = error(&ctx, "SELECT many(x) FROM (VALUES (10000000)) AS t(x)").await;
    assert_eq!(code, "arena-limit", "{text}");
    Ok(())
}
