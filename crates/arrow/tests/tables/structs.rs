//! Arrays of structs and of lists of structs, taken apart into columns.

use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, LargeListArray, ListArray, StringArray, StructArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field};
use cembra::{InputColumn, Model, Options, QType, RunOptions, parse_type};
use cembra_arrow::{Input, struct_arrays};
use std::sync::Arc;

fn structs(fields: Vec<(&str, ArrayRef)>, present: Option<&[bool]>) -> ArrayRef {
    let (fields, arrays): (Vec<_>, Vec<_>) =
        fields.into_iter().map(|(name, array)| (Field::new(name, array.data_type().clone(), true), array)).unzip();
    Arc::new(StructArray::new(fields.into(), arrays, present.map(NullBuffer::from)))
}

fn taken_apart(array: &ArrayRef, qtype: &str) -> Option<Vec<(ArrayRef, QType)>> {
    struct_arrays(array, &parse_type(qtype).expect("a type"))
}

/// Customers, the second of whom is null; what the arrays of their fields have there is not.
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
