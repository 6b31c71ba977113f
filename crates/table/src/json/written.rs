//! Members (keys and values) of JSON objects that are copied to JSON results in their original spelling. A row's members are copied this way if the
//! inferred type of a column cannot hold the row's value or would lose a part of it, or if the row has a key that the first rows do not have.

use super::seen::{is_large, is_unsigned, is_whole};
use crate::schema::InferredAt;
use crate::{Form, Named};
use arrow_array::builder::StringViewBuilder;
use arrow_array::{ArrayRef, new_null_array};
use arrow_schema::DataType;
use cembra::doors::{JsonKind, JsonText};
use cembra::json::JsonRow;
use cembra_runtime::{QType, Scalar};
use std::collections::HashSet;
use std::sync::Arc;

/// The keys of the object members that are copied to the results in their original spelling.
#[derive(Debug)]
pub(super) struct MemberCopy {
    /// The keys in the order of the columns, without the names of outputs.
    keys: Vec<String>,
    /// If all members are copied: the keys whose members are skipped after those under `keys` were copied, which are
    /// these keys themselves and the names of outputs. `None` if only the members under `keys` are copied.
    left_out: Option<HashSet<String>>,
}

impl MemberCopy {
    /// Chooses the members to be copied: those with the keys `keys`, and if `is_all` is true, all other members too. A member with the name of one of
    /// `outputs` is not copied.
    pub(super) fn new(keys: Vec<String>, outputs: &[String], is_all: bool) -> MemberCopy {
        let left_out: HashSet<String> = keys.iter().chain(outputs).cloned().collect();
        let keys = keys.into_iter().filter(|key| !outputs.contains(key)).collect();
        MemberCopy { keys, left_out: is_all.then_some(left_out) }
    }

    /// The description of the column whose texts are the copied members. This column comes after the columns of values.
    pub(super) fn column() -> Named {
        Named { name: String::new(), form: Form::AsWritten }
    }

    /// The copied members of `row` as JSON without the braces of an object: first the members under the chosen keys, then any further members in
    /// their order.
    pub(super) fn members(&self, row: &JsonRow) -> String {
        let mut text = String::new();
        let mut add = |key: &str, value: &str| {
            if !text.is_empty() {
                text.push(',');
            }
            text.push_str(&serde_json::Value::from(key).to_string());
            text.push(':');
            push_on_a_line(&mut text, value);
        };
        for key in &self.keys {
            let value = row.get(key);
            add(key, value.as_ref().map_or("null", |value| value.as_str()));
        }
        let is_other = |key: &str| self.left_out.as_ref().is_some_and(|left_out| !left_out.contains(key));
        row.fields().filter(|(key, _)| is_other(key)).for_each(|(key, value)| add(key, value.as_str()));
        text
    }
}

/// Infers the type of a copied column that has whole numbers beyond an `i64`: `u64`, or text, which preserves their spelling. `found` has the values
/// with their lines; the returned line is the line of the row that decided the type. `None` if an `i64` holds all numbers, or if some value is not a
/// whole number.
pub(super) fn type_of_digits<'j>(found: impl Iterator<Item = (JsonText<'j>, u64)>) -> Option<(QType, Option<u64>)> {
    let (mut has_large, mut are_unsigned) = (false, true);
    let mut decided = InferredAt::nothing();
    let mut scalar = Scalar::Int64;
    for (value, line) in found.filter(|(value, _)| value.kind() != JsonKind::Null) {
        if !is_whole(value) {
            return None;
        }
        has_large |= is_large(value);
        are_unsigned &= is_unsigned(value);
        scalar = match (has_large, are_unsigned) {
            (false, _) => Scalar::Int64,
            (true, true) => Scalar::UInt64,
            (true, false) => Scalar::Text,
        };
        decided.add(scalar, line);
    }
    has_large.then(|| (QType::Optional(scalar), decided.line()))
}

/// Appends JSON on one line, without the white space between its values.
fn push_on_a_line(text: &mut String, json: &str) {
    let (mut in_text, mut is_escaped) = (false, false);
    text.extend(json.chars().filter(|character| {
        let is_blank = !in_text && matches!(character, ' ' | '\t' | '\n' | '\r');
        match character {
            '"' if !is_escaped => in_text = !in_text,
            _ => {}
        }
        is_escaped = in_text && *character == '\\' && !is_escaped;
        !is_blank
    }));
}

/// Makes the column of copied members for `rows` rows. Each element of `members` is a row's index and text, in ascending order of rows; a row without
/// an element has a missing value.
pub(super) fn column_of(members: &[(usize, String)], rows: usize) -> ArrayRef {
    if members.is_empty() {
        return new_null_array(&DataType::Utf8View, rows);
    }
    let mut column = StringViewBuilder::with_capacity(rows);
    let mut members = members.iter().peekable();
    for row in 0..rows {
        match members.next_if(|(at, _)| *at == row) {
            Some((_, text)) => column.append_value(text),
            None => column.append_null(),
        }
    }
    Arc::new(column.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_stay_as_they_are_written() {
        let row = JsonRow::parse(
            "{\"id\": 1234567890123456789012, \"s\": {\"a\": 1.50,\n \"b\": \"x \\\" \\\\\"}, \"y\": 2, \"late\": [ 1 , 2 ]}",
        )
        .expect("an object");
        let keys = || ["s", "id", "none", "y"].map(str::to_owned).to_vec();
        let outputs = ["y".to_owned(), "late".to_owned()];
        let of_columns = r#""s":{"a":1.50,"b":"x \" \\"},"id":1234567890123456789012,"none":null"#;
        assert_eq!(MemberCopy::new(keys(), &outputs, false).members(&row), of_columns);
        assert_eq!(MemberCopy::new(keys(), &outputs, true).members(&row), of_columns);
        let all = MemberCopy::new(keys(), &[], true).members(&row);
        assert_eq!(all, format!("{of_columns},\"y\":2,\"late\":[1,2]"));
        assert_eq!(
            MemberCopy::new(Vec::new(), &outputs[..1], true).members(&row).len(),
            all.len() - "\"none\":null,\"y\":2,".len()
        );
    }

    #[test]
    fn rows_without_members_are_missing() {
        let column = column_of(&[(1, "a".to_owned()), (3, "b".to_owned())], 4);
        assert_eq!((column.len(), column.null_count()), (4, 2));
        assert_eq!(column_of(&[], 3).null_count(), 3);
    }
}
