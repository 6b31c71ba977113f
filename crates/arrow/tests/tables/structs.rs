//! Tests that arrays of structs and of lists of structs are split into columns, and assembled again.

use arrow_array::builder::{Float64Builder, MapBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::Float64Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, LargeListArray, ListArray, RecordBatch, StringArray,
    StructArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field};
use cembra::columns::InputColumn;
use cembra::doors::OutputRoom;
use cembra::values::parse_type;
use cembra::{Model, OnError, Options, QType, RunOptions};
use cembra_arrow::{Input, Strings, struct_arrays};
use std::sync::Arc;

fn structs(fields: Vec<(&str, ArrayRef)>, present: Option<&[bool]>) -> ArrayRef {
    let (fields, arrays): (Vec<_>, Vec<_>) =
        fields.into_iter().map(|(name, array)| (Field::new(name, array.data_type().clone(), true), array)).unzip();
    Arc::new(StructArray::new(fields.into(), arrays, present.map(NullBuffer::from)))
}

fn taken_apart(array: &ArrayRef, qtype: &str) -> Option<Vec<(ArrayRef, QType)>> {
    struct_arrays(array, &parse_type(qtype).expect("a type"))
}

/// Returns an array of customers, structs with a name and an age. The second struct is null, but the arrays of its
/// fields have values in this row.
fn customers() -> ArrayRef {
    let names: ArrayRef = Arc::new(StringArray::from(vec!["Ann", "nobody", "Cem"]));
    let ages: ArrayRef = Arc::new(Int64Array::from(vec![Some(40), Some(7), None]));
    structs(vec![("age", ages), ("name", names)], Some(&[true, false, true]))
}

#[test]
fn where_a_struct_is_null_its_fields_are() {
    let arrays = taken_apart(&customers(), "{name: text, age: i64?}?").expect("columns");
    let types: Vec<String> = arrays.iter().map(|(_, qtype)| qtype.to_string()).collect();
    assert_eq!(types, ["unit?", "text?", "i64?"]);
    let expected: [ArrayRef; 3] = [
        Arc::new(BooleanArray::from(vec![Some(true), None, Some(true)])),
        Arc::new(StringArray::from(vec![Some("Ann"), None, Some("Cem")])),
        Arc::new(Int64Array::from(vec![Some(40), None, None])),
    ];
    for ((found, _), expected) in arrays.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
    assert!(taken_apart(&customers(), "{name: text, age: i64?}").is_none(), "a struct that is null has no columns");
    assert!(taken_apart(&customers(), "{name: text, size: i64?}?").is_none(), "there is no such field");
}

#[test]
fn lists_of_structs_run_as_columns() {
    let kinds: ArrayRef = Arc::new(StringArray::from(vec!["skipped", "a", "b", "a"]));
    let prices: ArrayRef = Arc::new(Float64Array::from(vec![64.0, 1.0, 2.0, 4.0]));
    let at = structs(vec![("price", prices)], None);
    let items = structs(vec![("at", at), ("kind", kinds)], None);
    let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
    let large: ArrayRef =
        Arc::new(LargeListArray::new(field.clone(), OffsetBuffer::new(vec![1, 3, 3, 4].into()), items.clone(), None));
    let small: ArrayRef = Arc::new(ListArray::new(field, OffsetBuffer::new(vec![1, 3, 3, 4].into()), items, None));
    let model = "
        input customer: {name: text, age: i64?}?
        input items: [{at: {price: f64}, kind: text}]
        output s = math.sum(items.at.price & (items.kind == \"a\"))
        output who = customer.name ?? \"-\"
        output next = customer.age + 1";
    let batch = Model::parse(model).and_then(|model| model.batch(&Options::default())).expect("a batch");
    for lists in [large, small] {
        let customers = taken_apart(&customers(), "{name: text, age: i64?}?").expect("columns");
        let lists = taken_apart(&lists, "[{at: {price: f64}, kind: text}]").expect("columns");
        assert_eq!(lists[1].0.data_type(), &DataType::new_large_list(DataType::Utf8, true));
        let inputs: [Vec<Input<'_>>; 2] = [&customers, &lists].map(|arrays| {
            arrays.iter().map(|(array, qtype)| Input::of("x", array, qtype).expect("an input")).collect()
        });
        let values = inputs.each_ref().map(|inputs| inputs.iter().map(Input::values).collect::<Vec<_>>());
        let columns: Vec<Vec<InputColumn<'_>>> = inputs
            .iter()
            .zip(&values)
            .map(|(inputs, values)| {
                inputs.iter().zip(values).map(|(input, values)| input.column(values.as_ref())).collect()
            })
            .collect();
        let made = batch
            .run_with(&RunOptions::new(), &[InputColumn::structs(&columns[0]), InputColumn::structs(&columns[1])])
            .expect("rows");
        // None of them is evaluated by itself, which would give the same.
        assert_eq!(made.row_by_row, 0);
        let shown = |row| {
            made.columns
                .iter()
                .map(|column| column.value(row).expect("a row").to_string())
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(
            [shown(0), shown(1), shown(2)],
            ["f64{1} 'Ann' i64?{41}", "f64{0} '-' i64?{NA}", "f64{4} 'Cem' i64?{NA}"]
        );
    }
}

#[test]
fn maps_and_structs_go_in_and_structs_come_out() {
    let mut rates = MapBuilder::new(None, StringBuilder::new(), Float64Builder::new());
    for (key, rate) in [("EUR", 0.5), ("USD", 2.0)] {
        rates.keys().append_value(key);
        rates.values().append_value(rate);
    }
    rates.append(true).expect("a map");
    rates.append(true).expect("an empty map");
    rates.keys().append_value("EUR");
    rates.values().append_null();
    rates.append(true).expect("a map");
    let rates: ArrayRef = Arc::new(rates.finish());
    let prices: ArrayRef = Arc::new(Float64Array::from(vec![1.0, 2.0, 4.0]));
    let names: ArrayRef = Arc::new(StringArray::from(vec!["EUR", "USD", "EUR"]));
    let items = structs(vec![("price", prices), ("in", names)], None);
    let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
    let items: ArrayRef = Arc::new(ListArray::new(field, OffsetBuffer::new(vec![0, 2, 2, 3].into()), items, None));
    let table =
        RecordBatch::try_from_iter([("rates", rates), ("items", items), ("who", customers())]).expect("a table");
    let run = |text: &str| {
        let batch = Model::parse(text).and_then(|model| model.batch(&Options::default())).expect("a batch");
        cembra_arrow::run(&batch, &RunOptions::new(), &table).expect("rows").table
    };
    let of_arrays = run("
        input rates: dict[text, f64]
        input items: [{price: f64, in: text}]
        input who: {name: text, age: i64?}?
        output lines = map(fn(i, r) = {name: i.in, of: {net: i.price * r}}, items, lookup(items.in, rates, 1.0))
        output \"who\" = {name: who.name ?? \"-\", of: {base: lookup(\"EUR\", rates, 3.0)}} & has(who)");
    // The same outputs of a model without arrays are the same arrays.
    let plain = run("
        input who: {name: text, age: i64?}?
        output \"who\" = {name: who.name ?? \"-\", of: {base: if who.age > 7 then 0.5 else 3.0}} & has(who)");
    assert_eq!(of_arrays.column(1), plain.column(0));
    assert_eq!(of_arrays.column(1).nulls().map(|nulls| nulls.iter().collect()), Some(vec![true, false, true]));
    let lists = of_arrays.column(0).as_list::<i64>();
    assert_eq!(lists.value_offsets(), [0, 2, 2, 3]);
    let nets: ArrayRef = Arc::new(Float64Array::from(vec![Some(0.5), Some(4.0), Some(4.0)]));
    let names: ArrayRef = Arc::new(StringArray::from(vec!["EUR", "USD", "EUR"]));
    assert_eq!(lists.values(), &structs(vec![("name", names), ("of", structs(vec![("net", nets)], None))], None));
    let types: Vec<DataType> = of_arrays.columns().iter().map(|array| array.data_type().clone()).collect();
    let batch = Model::parse("input items: [{price: f64}]; output n = map(fn(i) = {a: i.price, t: \"x\"}, items)");
    let batch = batch.and_then(|model| model.batch(&Options::default())).expect("a batch");
    let told = cembra_arrow::data_type(&batch.outputs()[0].qtype).expect("an array");
    let made = cembra_arrow::run(&batch, &RunOptions::new(), &table).expect("rows").table;
    assert_eq!((told, types.len()), (made.column(0).data_type().clone(), 2));
    // A row that fails is null, with all that is in it.
    let batch =
        Model::parse("input items: [{price: f64}]; output n = {x: {c: 1 // count(items.price)}, s: sum(items.price)}");
    let batch = batch.and_then(|model| model.batch(&Options::default())).expect("a batch");
    let failing = RunOptions::new().on_error(OnError::Missing);
    let made = cembra_arrow::run(&batch, &failing, &table).expect("rows");
    assert_eq!((made.failed, made.table.column(0).null_count()), (vec![1], 1));
    assert_eq!(made.table.column(0).as_struct().column(1).as_primitive::<Float64Type>().value(2), 4.0);
    // Columns of values that a model without arrays made are copied, and count.
    let plain = Model::parse("output p = (1.5, 2.5)");
    let plain = plain.and_then(|model| model.batch(&Options::default())).expect("a batch");
    let made = plain.run_with(&RunOptions::new().rows(3), &[]).expect("rows");
    let array = |bytes| {
        cembra_arrow::array_with("p", made.columns[0].clone(), Strings::Plain, &OutputRoom::of(bytes))
            .map(|made| made.len())
    };
    assert_eq!(array(1 << 20).expect("an array"), 3);
    assert!(array(50).unwrap_err().to_string().contains("array_bytes"));
    // A struct that is null where none may be is no column.
    let strict =
        Model::parse("input who: {name: text}; output n = who.name").and_then(|model| model.batch(&Options::default()));
    let refused = cembra_arrow::run(&strict.expect("a batch"), &RunOptions::new(), &table).unwrap_err();
    assert!(refused.to_string().starts_with("column `who` has the type Struct("), "{refused}");
}
