//! Values of optional structs and lists of structs: how they are made from structs, split into structs, and checked.
//! Such a value is a tuple; [`Form`] describes how the tuple represents it.

use crate::{Array, ArrayBuilder, Dict, ScalarValue, Value};
use cembra_runtime::{ArrayKind, Fields, Form, QType, Scalar};

impl ScalarValue {
    /// The zero of the type `scalar`: 0, `false`, or an empty string. Such a value is stored where a value is missing.
    #[must_use]
    pub fn zero(scalar: Scalar) -> ScalarValue {
        match ScalarValue::from_bits(scalar, 0) {
            Some(zero) => zero,
            None if scalar == Scalar::Bytes => ScalarValue::Bytes([].into()),
            None => ScalarValue::Text("".into()),
        }
    }
}

impl Value {
    /// Makes a value of the optional form of the struct type `of`: present if `value` is a struct, missing if `value` is `None`.
    /// Returns `None` if the struct is of another type, or if the type cannot be optional.
    ///
    /// ```
    /// use cembra_value::Value;
    /// use cembra_runtime::{Fields, Names, QType};
    ///
    /// let names = || Names::parse("x").unwrap();
    /// let point = QType::Tuple(Fields::named(names(), [QType::FLOAT64]).unwrap());
    /// let made = Value::Tuple(Fields::named(names(), [Value::from(0.5)]).unwrap());
    /// assert_eq!(Value::optional_struct(&point, Some(made)).unwrap().to_string(), "{x: f64{0.5}}");
    /// assert_eq!(Value::optional_struct(&point, None).unwrap().to_string(), "{x: f64}?{NA}");
    /// ```
    #[must_use]
    pub fn optional_struct(of: &QType, value: Option<Value>) -> Option<Value> {
        let qtype = of.optional_struct();
        qtype.as_optional_struct()?;
        let has = Value::optional(Scalar::Unit, value.is_some().then_some(ScalarValue::Unit));
        let inner = match value {
            Some(value) => Some(value).filter(|value| value.is_of(of))?,
            None => Value::nothing_of(of)?,
        };
        Some(Value::Tuple(Fields::from([has, inner]).in_form(Form::Optional)))
    }

    /// The value that is stored where a value of type `qtype` is missing: zero for a scalar, missing for an optional, a
    /// struct of such values for a struct. `None` for other types.
    #[must_use]
    pub fn nothing_of(qtype: &QType) -> Option<Value> {
        // Types nest only as deep as the text that spelled them.
        match qtype {
            QType::Scalar(scalar) => Some(Value::Scalar(ScalarValue::zero(*scalar))),
            QType::Optional(scalar) => Some(Value::Missing(*scalar)),
            QType::Tuple(fields) if qtype.element().is_none() => {
                Some(Value::Tuple(fields.with(fields.iter().map(Value::nothing_of).collect::<Option<_>>()?)))
            }
            _ => None,
        }
    }

    /// The struct inside this optional struct; `Some(None)` if it is missing, and `None` for values of other types.
    #[must_use]
    pub fn as_optional_struct(&self) -> Option<Option<&Value>> {
        match self {
            Value::Tuple(members) if *members.form() == Form::Optional => match &members[..] {
                [Value::Present(_), of] => Some(Some(of)),
                _ => Some(None),
            },
            _ => None,
        }
    }

    /// Makes a list of structs or optional structs of type `element`. `None` if there are no lists of this type, or if an element
    /// is of another type.
    ///
    /// ```
    /// use cembra_value::Value;
    /// use cembra_runtime::QType;
    ///
    /// let pair = QType::tuple([QType::INT32, QType::TEXT]);
    /// let values = [(1, "a"), (2, "b")].map(|(x, y)| Value::Tuple([Value::from(x), Value::from(y)].into()));
    /// let list = Value::list(&pair, values).unwrap();
    /// assert_eq!((list.to_string(), list.qtype().to_string()), ("[(1, 'a'), (2, 'b')]".into(), "[(i32, text)]".into()));
    /// ```
    #[must_use]
    pub fn list(element: &QType, elements: impl IntoIterator<Item = Value>) -> Option<Value> {
        let mut list = ListBuilder::new(element)?;
        for value in elements {
            if !value.is_of(element) {
                return None;
            }
            list.push(&value);
        }
        Some(list.finish())
    }

    /// Makes a list or a dictionary of type `list` from its arrays: one for each scalar or optional in the type of an
    /// element, in the order of the fields. `None` if `list` is not the type of a list or dictionary, or if the arrays
    /// do not fit it.
    #[must_use]
    pub fn list_of_arrays(list: &QType, arrays: impl IntoIterator<Item = Array>) -> Option<Value> {
        list.element()?;
        let mut arrays = arrays.into_iter();
        let made = assembled(list, &mut arrays)?;
        Some(made).filter(|made| arrays.next().is_none() && made.is_of(list))
    }

    /// Makes a dictionary that a model takes as an input, with its entries in order. A key that occurs twice is not noticed here, but at the first
    /// lookup.
    ///
    /// ```
    /// use cembra_value::{ScalarValue, Value};
    /// use cembra_runtime::Scalar;
    ///
    /// let entries = [("CH".into(), Some(1.08.into())), ("DE".into(), None)].map(|(key, value)| (ScalarValue::Text(key), value));
    /// let rates = Value::map(Scalar::Text, Scalar::Float64, entries).unwrap();
    /// assert_eq!((rates.to_string(), rates.qtype().to_string()), ("dict{'CH': 1.08, 'DE': NA}".into(), "dict[text, f64]".into()));
    /// ```
    #[must_use]
    pub fn map(
        key: Scalar,
        value: Scalar,
        entries: impl IntoIterator<Item = (ScalarValue, Option<ScalarValue>)>,
    ) -> Option<Value> {
        if !Dict::may_be_keys(key) {
            return None;
        }
        let entries = entries.into_iter();
        let count = entries.size_hint().0;
        let (mut keys, mut values) = (ArrayBuilder::new(key, count), ArrayBuilder::new(value, count));
        for (own, given) in entries {
            if own.scalar() != key || given.as_ref().is_some_and(|given| given.scalar() != value) {
                return None;
            }
            keys.push(Some(&own));
            values.push(given.as_ref());
        }
        Value::list_of_arrays(&QType::Dict(key, value).as_input(), [keys.finish(), values.finish()])
    }

    /// The empty list or dictionary of type `qtype`; `None` for other types.
    ///
    /// ```
    /// use cembra_runtime::{ArrayKind, QType, Scalar};
    /// use cembra_value::Value;
    ///
    /// let list = QType::Array(ArrayKind::Dense, Scalar::Float64);
    /// assert_eq!(Value::empty_collection(&list).map(|list| list.to_string()).as_deref(), Some("[]"));
    /// assert_eq!(Value::empty_collection(&QType::FLOAT64), None);
    /// ```
    #[must_use]
    pub fn empty_collection(qtype: &QType) -> Option<Value> {
        match qtype {
            QType::Array(kind, scalar) => Some(Value::Array(*kind, Array::from_scalars(*scalar, []).into())),
            QType::Tuple(_) => Some(ListBuilder::of(qtype)?.finish()),
            _ => None,
        }
    }

    /// The number of elements in a list of structs, or of entries in a dictionary that is passed to a model; `None` for other
    /// values.
    #[must_use]
    pub fn list_len(&self) -> Option<usize> {
        let Value::Tuple(members) = self else { return None };
        matches!(members.form(), Form::List(_) | Form::Map(_)).then(|| first_len(self))
    }

    /// The element of a list of structs, or the entry of a dictionary that is passed to a model, at index `at`; `None`
    /// after the last, and for other values.
    #[must_use]
    pub fn element(&self, at: usize) -> Option<Value> {
        let Value::Tuple(members) = self else { return None };
        match members.form() {
            Form::List(element) | Form::Map(element) if at < first_len(self) => taken(self, element, at),
            _ => None,
        }
    }

    /// Returns true if the value keeps the rules of its form (the kind of type that its tuple represents): the arrays of a list have one size, and
    /// arrays of scalars have no missing elements.
    pub(crate) fn is_well_formed(&self) -> bool {
        let Value::Tuple(members) = self else { return true };
        match members.form() {
            Form::List(element) | Form::Map(element) => is_list(self, element, first_len(self)),
            Form::Tuple | Form::Optional | Form::Table(_) => members.iter().all(Value::is_well_formed),
        }
    }
}

/// Makes the members of a list from its arrays, in their order.
fn assembled(list: &QType, arrays: &mut dyn Iterator<Item = Array>) -> Option<Value> {
    match list {
        QType::Tuple(members) => {
            let parts = members.iter().map(|member| assembled(member, arrays)).collect::<Option<Vec<Value>>>()?;
            Some(Value::Tuple(members.with(parts)))
        }
        _ => Some(arrays.next()?.into()),
    }
}

/// The size of the first array of a list.
fn first_len(list: &Value) -> usize {
    let mut list = list;
    loop {
        match list {
            Value::Tuple(members) if !members.is_empty() => list = &members[0],
            Value::Array(_, array) => return array.len(),
            _ => return 0,
        }
    }
}

fn is_list(list: &Value, element: &QType, len: usize) -> bool {
    // Types nest only as deep as the text that spelled them.
    match (list, element) {
        (Value::Tuple(members), QType::Tuple(fields)) => {
            members.len() == fields.len()
                && members.iter().zip(fields.iter()).all(|(member, field)| is_list(member, field, len))
        }
        (Value::Array(_, array), of) => array.len() == len && (of.is_optional() || array.first_missing().is_none()),
        _ => false,
    }
}

fn taken(list: &Value, element: &QType, at: usize) -> Option<Value> {
    match (list, element) {
        (Value::Tuple(members), QType::Tuple(fields)) => {
            let parts = members.iter().zip(fields.iter()).map(|(member, field)| taken(member, field, at));
            Some(Value::Tuple(fields.with(parts.collect::<Option<_>>()?)))
        }
        (Value::Array(_, array), QType::Optional(_)) => Some(array.value(at)),
        (Value::Array(_, array), QType::Scalar(_)) => array.get(at).map(Value::Scalar),
        _ => None,
    }
}

/// A builder for a list of structs, element by element.
#[derive(Debug)]
pub struct ListBuilder {
    element: QType,
    members: Members,
}

#[derive(Debug)]
enum Members {
    Array(ArrayBuilder, Option<ScalarValue>),
    Lists(QType, Vec<Members>),
}

impl Members {
    fn new(of: &QType) -> Option<Members> {
        match of {
            QType::Scalar(scalar) => {
                Some(Members::Array(ArrayBuilder::new(*scalar, 0), Some(ScalarValue::zero(*scalar))))
            }
            QType::Optional(scalar) => Some(Members::Array(ArrayBuilder::new(*scalar, 0), None)),
            QType::Tuple(fields) => {
                let members = fields.iter().map(Members::new).collect::<Option<_>>()?;
                Some(Members::Lists(of.list_of()?, members))
            }
            _ => None,
        }
    }

    fn push(&mut self, value: &Value) {
        match (self, value) {
            (Members::Lists(_, members), Value::Tuple(values)) => {
                members.iter_mut().zip(values.iter()).for_each(|(member, value)| member.push(value));
            }
            (Members::Array(array, zero), value) => array.push(value.as_scalar().or(zero.as_ref())),
            (Members::Lists(_, members), other) => members.iter_mut().for_each(|member| member.push(other)),
        }
    }

    fn finish(self) -> Value {
        match self {
            Members::Array(array, _) => Value::Array(ArrayKind::Dense, array.finish().into()),
            Members::Lists(list, members) => {
                let members: Vec<Value> = members.into_iter().map(Members::finish).collect();
                match list {
                    QType::Tuple(fields) => Value::Tuple(fields.with(members)),
                    _ => Value::Nothing,
                }
            }
        }
    }
}

impl ListBuilder {
    /// Returns a builder for a list whose elements have the type `element`; `None` if there are no such lists.
    #[must_use]
    pub fn new(element: &QType) -> Option<ListBuilder> {
        ListBuilder::of(&element.list_of()?)
    }

    /// Returns a builder for a list or dictionary of type `list`; `None` for other types.
    #[must_use]
    pub fn of(list: &QType) -> Option<ListBuilder> {
        let (element, QType::Tuple(fields)) = (list.element()?.clone(), list) else { return None };
        let QType::Tuple(parts) = &element else { return None };
        let members = parts.iter().map(Members::new).collect::<Option<_>>()?;
        Some(ListBuilder { members: Members::Lists(QType::Tuple(fields.clone()), members), element })
    }

    /// The type of the list's elements.
    #[must_use]
    pub const fn element(&self) -> &QType {
        &self.element
    }

    /// Appends the element `value`, which must be of the element type, to the list.
    pub fn push(&mut self, value: &Value) {
        self.members.push(value);
    }

    /// Appends a struct to the list, given by its fields in order. There must be one value per field, of the field's
    /// type.
    pub fn push_fields(&mut self, fields: impl Iterator<Item = Value>) {
        if let Members::Lists(_, members) = &mut self.members {
            members.iter_mut().zip(fields).for_each(|(member, value)| member.push(&value));
        }
    }

    /// Returns the list of all elements that were appended.
    #[must_use]
    pub fn finish(self) -> Value {
        self.members.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cembra_runtime::Names;

    fn named<T: Clone, const N: usize>(names: &str, members: [T; N]) -> Fields<T> {
        Fields::named(Names::parse(names).unwrap(), members).unwrap()
    }

    fn item(price: f64, kind: Option<&str>) -> Value {
        Value::Tuple(named("price,kind", [Value::from(price), Value::from(kind.map(std::sync::Arc::<str>::from))]))
    }

    fn item_type() -> QType {
        QType::Tuple(named("price,kind", [QType::FLOAT64, QType::Optional(Scalar::Text)]))
    }

    #[test]
    fn lists_are_arrays_of_their_fields() {
        let elements = [item(1.5, Some("a")), item(2.0, None)];
        let list = Value::list(&item_type(), elements.clone()).unwrap();
        let Value::Tuple(members) = &list else { panic!("{list}") };
        assert_eq!(members[0].to_string(), "[1.5, 2]");
        assert_eq!(members[1].to_string(), "['a', NA]");
        assert_eq!((list.list_len(), list.element(0), list.element(2)), (Some(2), Some(elements[0].clone()), None));
        assert_eq!(list.element(1), Some(elements[1].clone()));
        assert_eq!(list.qtype(), item_type().list_of().unwrap());
        assert_eq!(list.qtype().to_string(), "[{price: f64, kind: text?}]");
        assert_eq!(Value::list(&item_type(), []).unwrap().list_len(), Some(0));
        assert_eq!(Value::list(&item_type(), [Value::from(1.0)]), None);
        assert_eq!(Value::list(&QType::FLOAT64, [Value::from(1.0)]), None);
    }

    #[test]
    fn elements_of_lists_may_be_missing() {
        let optional = item_type().optional_struct();
        let elements = [
            Value::optional_struct(&item_type(), None).unwrap(),
            Value::optional_struct(&item_type(), Some(item(2.0, Some("b")))).unwrap(),
        ];
        let list = Value::list(&optional, elements.clone()).unwrap();
        assert_eq!(list.to_string(), "[NA, {price: f64{2}, kind: text?{'b'}}]");
        assert_eq!([0, 1].map(|at| list.element(at).unwrap()), elements);
        assert_eq!(list.element(0).unwrap().as_optional_struct(), Some(None));
        assert!(list.is_of(&optional.list_of().unwrap()));
    }

    /// A tuple of arrays is a list only if its arrays have one size, and those of scalars have all elements.
    #[test]
    fn arrays_of_a_list_have_one_size_and_all_of_its_scalars() {
        let list = item_type().list_of().unwrap();
        let QType::Tuple(fields) = &list else { panic!("{list}") };
        let array = |scalar, values: Vec<Option<ScalarValue>>| Value::from(Array::from_scalars(scalar, values));
        let texts = || array(Scalar::Text, vec![None, None]);
        let of =
            |prices: Vec<Option<ScalarValue>>| Value::Tuple(fields.with(vec![array(Scalar::Float64, prices), texts()]));
        let price = || Some(ScalarValue::from(1.0));
        assert!(of(vec![price(), price()]).is_of(&list));
        assert!(!of(vec![price(), None]).is_of(&list));
        assert!(!of(vec![price()]).is_of(&list));
        assert_eq!(of(vec![price()]).qtype(), list);
    }
}
