//! JSON rows and values as text. They keep every digit of a number and the order of keys, whatever features of
//! `serde_json` a program enables. `serde_json` checks a row and finds the ends of its values. A value is decoded only
//! when a caller requests it. The parent module converts JSON to values of a model.

use super::place::{Text, is_space, one_pass_error, skip_space};
use crate::Error;
use serde::Deserializer as _;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::Deserializer;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

/// A JSON object as a row for [`JsonRows`](crate::json::JsonRows). Unlike an object of `serde_json`, it keeps every digit of its numbers, and the order of
/// its keys.
///
/// ```
/// use cembra::doors::JsonText;
/// use cembra::json::JsonRow;
///
/// let row = JsonRow::parse("{\"y\": 0.10, \"x\": [1, 2]}")?;
/// assert_eq!(row.get("y").map(JsonText::as_str), Some("0.10"));
/// assert!(row.fields().map(|(key, _)| key).eq(["y", "x"]));
/// let error = JsonRow::parse("{\"x\": 1,\n \"x\": 2}").unwrap_err();
/// assert_eq!(error.to_string(), "not JSON: the object has the key `x` twice, line 2");
/// # Ok::<(), cembra::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct JsonRow {
    text: String,
    /// The characters of all keys, concatenated.
    keys: String,
    fields: Vec<Field>,
    /// The indices of the object's fields, sorted by key.
    sorted: Vec<usize>,
}

#[derive(Clone)]
struct Field {
    /// The range of the field's key in `JsonRow::keys`.
    key: Range<usize>,
    /// The range of the field's value in `JsonRow::text`.
    value: Range<usize>,
}

/// Returns the error that a text is not a row. `line` is the line of the problem.
fn refused(what: &str, line: usize) -> Error {
    Error::values(format!("not JSON: {what}")).on_line(line)
}

fn not_json(error: &serde_json::Error) -> Error {
    let whole = error.to_string();
    refused(whole.rsplit_once(" at line ").map_or(whole.as_str(), |(what, _)| what), error.line())
}

impl JsonRow {
    /// Parses `text` as a JSON object. The object's keys must differ.
    ///
    /// # Errors
    /// If the text is not JSON, is not an object, or has a key twice.
    pub fn parse(text: impl Into<String>) -> Result<JsonRow, Error> {
        let mut row = JsonRow { text: text.into(), ..JsonRow::default() };
        row.find_fields()?;
        Ok(row)
    }

    /// Parses the JSON object `text` into this row, and reuses the row's memory. Keys in `names` must be unique; other
    /// keys may occur several times. After an error the row has no fields.
    ///
    /// # Errors
    /// The errors of [`parse`](JsonRow::parse), but a repeated key is an error only if it is in `names`.
    pub(super) fn read_for<'n>(&mut self, text: &str, names: impl Iterator<Item = &'n str>) -> Result<(), Error> {
        self.text.clear();
        self.text.push_str(text);
        let mut found = self.sort_fields();
        if found.is_ok() {
            let twice = names.filter_map(|name| self.second(name)).min();
            found = twice.map_or(Ok(()), |at| Err(self.refused_twice(at)));
        }
        if found.is_err() {
            self.fields.clear();
            self.sorted.clear();
        }
        found
    }

    /// Returns the index of the second field with the key `name`; `None` if at most one field has the key.
    fn second(&self, name: &str) -> Option<usize> {
        let key = |at: &usize| &self.keys[self.fields[*at].key.clone()];
        let first = self.sorted.partition_point(|at| key(at) < name);
        self.sorted.get(first + 1).copied().filter(|at| key(at) == name)
    }

    fn refused_twice(&self, at: usize) -> Error {
        let Field { key, value } = &self.fields[at];
        let line = line_of(&self.text, value.start);
        refused(&format!("the object has the key {} twice", quoted(&self.keys[key.clone()])), line)
    }

    /// Parses the JSON object `text` into this row, and reuses the row's memory. After an error the row has no fields.
    ///
    /// # Errors
    /// The errors of [`parse`](JsonRow::parse).
    pub fn read(&mut self, text: &str) -> Result<(), Error> {
        self.text.clear();
        self.text.push_str(text);
        let found = self.find_fields();
        if found.is_err() {
            self.fields.clear();
            self.sorted.clear();
        }
        found
    }

    fn find_fields(&mut self) -> Result<(), Error> {
        self.sort_fields()?;
        let key = |at: usize| &self.keys[self.fields[at].key.clone()];
        let twice = self.sorted.windows(2).filter(|pair| key(pair[0]) == key(pair[1])).map(|pair| pair[1]).min();
        twice.map_or(Ok(()), |at| Err(self.refused_twice(at)))
    }

    /// Finds the fields of the object in `self.text`, and sorts their indices by key. Keys may occur several times.
    fn sort_fields(&mut self) -> Result<(), Error> {
        let JsonRow { text, keys, fields, sorted } = self;
        keys.clear();
        fields.clear();
        sorted.clear();
        let mut from = Deserializer::from_str(text);
        if from.deserialize_map(RowFields { text, keys, fields }).and_then(|()| from.end()).is_err() {
            keys.clear();
            fields.clear();
            find_fields_one_by_one(text, keys, fields)?;
        }
        let key = |at: usize| &keys[fields[at].key.clone()];
        sorted.extend(0..fields.len());
        sorted.sort_unstable_by(|a, b| key(*a).cmp(key(*b)).then(a.cmp(b)));
        Ok(())
    }

    /// Returns the value of the key `key`; `None` if the object does not have the key.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<JsonText<'_>> {
        let at = self.sorted.binary_search_by(|at| self.keys[self.fields[*at].key.clone()].cmp(key)).ok()?;
        Some(JsonText(&self.text[self.fields[self.sorted[at]].value.clone()]))
    }

    /// Iterates over the keys and values of the object, in the order of the text.
    pub fn fields(&self) -> impl Iterator<Item = (&str, JsonText<'_>)> + Clone {
        self.fields.iter().map(|field| (&self.keys[field.key.clone()], JsonText(&self.text[field.value.clone()])))
    }

    /// Returns the text of the whole object.
    #[must_use]
    pub fn text(&self) -> JsonText<'_> {
        JsonText(self.text.trim_matches(is_space))
    }
}

/// Finds the fields of an object in one pass over its text. The pass fails, without saying why, if the text is not an
/// object or has escapes in a key. Then [`find_fields_one_by_one`] reads the text, or returns a precise error.
struct RowFields<'r, 't> {
    text: &'t str,
    keys: &'r mut String,
    fields: &'r mut Vec<Field>,
}

impl RowFields<'_, '_> {
    /// Sets the end of the last field's value: before the character `behind`, which is a comma or the object's closing
    /// bracket. `end` is an offset after this character. `None` if the character is not there.
    fn end_value(fields: &mut [Field], text: &str, end: usize, behind: char) -> Option<()> {
        let Some(Field { value, .. }) = fields.last_mut() else { return Some(()) };
        let found = text.get(value.start..end)?.trim_end_matches(is_space).strip_suffix(behind)?;
        value.end = value.start + found.trim_end_matches(is_space).len();
        Some(())
    }
}

impl<'t> Visitor<'t> for RowFields<'_, 't> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'t>>(self, mut object: A) -> Result<(), A::Error> {
        let RowFields { text, keys, fields } = self;
        // A key with escapes is not borrowed, so it is rejected.
        while let Some(key) = object.next_key::<&'t str>()? {
            let start = Text::of(text).start(Text::of(text).value_after_key(key)).ok_or_else(one_pass_error)?;
            let quote = key.as_ptr().addr() - text.as_ptr().addr() - 1;
            RowFields::end_value(fields, text, quote, ',').ok_or_else(one_pass_error)?;
            let from = keys.len();
            keys.push_str(key);
            fields.push(Field { key: from..keys.len(), value: start..start });
            object.next_value::<IgnoredAny>()?;
        }
        RowFields::end_value(fields, text, text.len(), '}').ok_or_else(one_pass_error)
    }
}

/// Finds the fields of an object value by value.
///
/// # Errors
/// If the text is not JSON, or not an object.
fn find_fields_one_by_one(text: &str, keys: &mut String, fields: &mut Vec<Field>) -> Result<(), Error> {
    serde_json::from_str::<IgnoredAny>(text).map_err(|error| not_json(&error))?;
    let start = text.len() - skip_space(text).len();
    if !text[start..].starts_with('{') {
        return Err(refused("an object was expected", line_of(text, start)));
    }
    let place = |part: &str| part.as_ptr().addr() - text.as_ptr().addr();
    let mut parts = Parts::of(text);
    while let (Some(key), Some(value)) = (parts.next(), parts.next()) {
        let from = keys.len();
        let decoded = serde_json::from_str::<String>(key);
        keys.push_str(&decoded.map_err(|error| not_json(&error).on_line(line_of(text, place(key))))?);
        let at = place(value);
        fields.push(Field { key: from..keys.len(), value: at..at + value.len() });
    }
    Ok(())
}

impl fmt::Debug for JsonRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.fields()).finish()
    }
}

/// The kind of a JSON value, such as a number, a string or an object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum JsonKind {
    /// The value is `null`.
    Null,
    /// The value is `true` or `false`.
    Boolean,
    /// The value is a number.
    Number,
    /// The value is a string.
    Text,
    /// The value is an array.
    Array,
    /// The value is an object.
    Object,
}

/// A JSON value as text, borrowed from a [`JsonRow`]. Printing the value omits the white space between its tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JsonText<'t>(&'t str);

impl<'t> JsonText<'t> {
    /// The JSON value `null`.
    pub const NULL: JsonText<'static> = JsonText("null");

    /// Returns the text of the JSON value.
    #[must_use]
    pub fn as_str(self) -> &'t str {
        self.0
    }

    /// Returns the kind of the JSON value.
    #[must_use]
    pub fn kind(self) -> JsonKind {
        match self.0.as_bytes().first() {
            Some(b'n') | None => JsonKind::Null,
            Some(b't' | b'f') => JsonKind::Boolean,
            Some(b'"') => JsonKind::Text,
            Some(b'[') => JsonKind::Array,
            Some(b'{') => JsonKind::Object,
            Some(_) => JsonKind::Number,
        }
    }

    /// Returns the characters of a string; `None` if the value is not a string, or has an unpaired surrogate.
    #[must_use]
    pub fn text(self) -> Option<Cow<'t, str>> {
        match written(self.0) {
            Some(text) => Some(Cow::Borrowed(text)),
            None => serde_json::from_str::<String>(self.0).ok().map(Cow::Owned),
        }
    }

    /// Returns the elements of an array; `None` if the value is not an array.
    #[must_use]
    pub fn elements(self) -> Option<Vec<JsonText<'t>>> {
        (self.kind() == JsonKind::Array).then(|| Parts::of(self.0).map(JsonText).collect())
    }

    /// Returns the keys and values of an object in the order of the text. A key may occur twice. `None` if the value is not an object, or if
    /// [`text`](JsonText::text) cannot decode a key.
    #[must_use]
    pub fn fields(self) -> Option<Vec<(Cow<'t, str>, JsonText<'t>)>> {
        if self.kind() != JsonKind::Object {
            return None;
        }
        let mut parts = Parts::of(self.0);
        let mut fields = Vec::new();
        while let (Some(key), Some(value)) = (parts.next(), parts.next()) {
            fields.push((JsonText(key).text()?, JsonText(value)));
        }
        Some(fields)
    }
}

impl fmt::Display for JsonText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut in_text, mut escaped) = (false, false);
        let shown = |character: &char| {
            match character {
                _ if escaped => escaped = false,
                '\\' => escaped = in_text,
                '"' => in_text = !in_text,
                _ => {}
            }
            in_text || !is_space(*character)
        };
        self.0.chars().filter(shown).try_for_each(|character| fmt::Write::write_char(f, character))
    }
}

/// Iterates over the elements of an array, or the keys and values of an object. The text must be valid JSON.
struct Parts<'t> {
    rest: &'t str,
}

impl<'t> Parts<'t> {
    fn of(text: &'t str) -> Self {
        Parts { rest: text.trim_start_matches(is_space).get(1..).unwrap_or_default() }
    }
}

impl<'t> Iterator for Parts<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        let start = self.rest.trim_start_matches(|c| is_space(c) || matches!(c, ',' | ':'));
        let mut values = Deserializer::from_str(start).into_iter::<IgnoredAny>();
        // The closing bracket is not a value.
        values.next()?.ok()?;
        let (part, rest) = start.split_at(values.byte_offset());
        self.rest = rest;
        Some(part)
    }
}

/// Returns the characters of the JSON string `text`, which includes its quotes. `None` if the string has escapes, or if
/// `text` is not a string.
fn written(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('"')?.strip_suffix('"')?;
    (!inner.contains('\\')).then_some(inner)
}

/// Returns the line number, from 1, of the byte at `at`.
fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// Returns a key in backquotes, cut off after 40 characters.
fn quoted(key: &str) -> String {
    let mut shown: String = key.chars().take(40).collect();
    if shown.len() < key.len() {
        shown.push('…');
    }
    format!("`{shown}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_keeps_digits_and_the_order_of_keys() {
        let text = " {\"z\" : 9223372036854775807,\n\"a\":0.1000000000000000055511151231257827, \"\\u00e9\\n\" :[ 1e+5 , {} ,\"x \\\" y\" ] }\n";
        let mut row = JsonRow::parse(text).unwrap();
        let fields: Vec<_> = row.fields().map(|(key, value)| (key, value.as_str())).collect();
        let array = "[ 1e+5 , {} ,\"x \\\" y\" ]";
        let expected = [("z", "9223372036854775807"), ("a", "0.1000000000000000055511151231257827"), ("é\n", array)];
        assert_eq!(fields, expected);
        for (key, value) in expected {
            assert_eq!(row.get(key).map(JsonText::as_str), Some(value));
        }
        assert_eq!(row.get("b"), None);
        let array = row.get("é\n").unwrap();
        let elements: Vec<_> = array.elements().unwrap().into_iter().map(|one| (one.kind(), one.as_str())).collect();
        let expected = [(JsonKind::Number, "1e+5"), (JsonKind::Object, "{}"), (JsonKind::Text, "\"x \\\" y\"")];
        assert_eq!(elements, expected);
        assert_eq!(array.to_string(), "[1e+5,{},\"x \\\" y\"]");
        assert_eq!(array.elements().unwrap()[2].text().as_deref(), Some("x \" y"));
        row.read("{}").unwrap();
        assert_eq!((row.fields().count(), row.get("z")), (0, None));
    }

    #[test]
    fn values_say_what_they_are() {
        let row =
            JsonRow::parse("{\"a\":[null,true,false,-0,\"t\",[],{\"k\":1,\"k\":[2]}],\"half\":\"\\ud800\"}").unwrap();
        let kinds: Vec<_> = row.get("a").unwrap().elements().unwrap().into_iter().map(JsonText::kind).collect();
        use JsonKind::{Array, Boolean, Null, Number, Object, Text};
        assert_eq!(kinds, [Null, Boolean, Boolean, Number, Text, Array, Object]);
        let object = row.get("a").unwrap().elements().unwrap()[6];
        let fields: Vec<_> =
            object.fields().unwrap().into_iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(fields, ["k=1", "k=[2]"]);
        assert_eq!((object.elements(), object.text()), (None, None));
        assert_eq!(row.get("half").unwrap().text(), None);
    }

    #[test]
    fn what_is_no_row_is_refused_with_its_line() {
        let cases = [
            ("", "not JSON: EOF while parsing a value, line 1"),
            ("\n[1]", "not JSON: an object was expected, line 2"),
            ("{\"a\":\n}", "not JSON: expected value, line 2"),
            ("{} {}", "not JSON: trailing characters, line 1"),
            ("{\"a\":1,\n\"a\":2}", "not JSON: the object has the key `a` twice, line 2"),
            ("{\"\\u0061\":1,\n\"b\":2,\n\"a\":2}", "not JSON: the object has the key `a` twice, line 3"),
            ("{\n\"\\udc00\":1}", "not JSON: lone leading surrogate in hex escape, line 2"),
        ];
        for (text, expected) in cases {
            assert_eq!(JsonRow::parse(text).unwrap_err().to_string(), expected, "{text}");
        }
        let long = format!("{{\"{0}\":1,\"{0}\":2}}", "k".repeat(1_000_000));
        let expected = format!("not JSON: the object has the key `{}…` twice, line 1", "k".repeat(40));
        assert_eq!(JsonRow::parse(long).unwrap_err().to_string(), expected);
    }

    #[test]
    fn depth_takes_no_stack() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(1_000_000), "]".repeat(1_000_000));
        let row = JsonRow::parse(deep).unwrap();
        assert_eq!(row.get("a").unwrap().to_string().len(), 2_000_000);
    }
}
