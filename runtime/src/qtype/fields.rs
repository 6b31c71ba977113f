//! The members of a tuple type or a tuple value: a sequence, and the names of its members if the tuple is a named one. Code that needs only
//! the sequence (layouts, frames, backends) uses it as a slice and ignores the names.
//!
//! An optional struct and a list of structs are represented by tuples too. Their members are not the fields that a model names: see [`Form`].

use crate::{Excerpt, QType};
use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// The members of a tuple type or value, in order, with or without names.
///
/// `Fields` dereferences to the slice of its members. Two `Fields` are equal if their members, names and forms are equal.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Fields<T>(Arc<Parts<T>>);

/// The kind of type that the members of a tuple represent. Layouts, plans and backends use the members only.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum Form {
    /// A tuple: the members are its fields.
    #[default]
    Tuple,
    /// An optional struct, `{x: f64}?`. The members are its presence, which is a mask, and the struct. If it is missing, the scalars of the
    /// struct are zero and its optionals missing.
    Optional,
    /// A list of structs of this type, `[{x: f64, y: text?}]`. The members are one list per member of the struct: an array for a scalar or an
    /// optional. For a scalar, every element of the array is present. All lists have the same size.
    List(Arc<QType>),
    /// A dictionary as an input of a model, `dict[text, f64]`. It is represented by a list of pairs, of a key and a value that may be
    /// missing; the given type is that of a pair. So the members are an array of keys, all of which are present, and an array of values.
    Map(Arc<QType>),
    /// A table of several columns, whose members are dictionaries. It exists only while a model is prepared.
    Table(Arc<TableForm>),
}

/// The structure of a table of several columns.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TableForm {
    /// The number of key columns in the table.
    pub keys: usize,
    /// True if a lookup finds the last key column by the range that contains its value, not by equality.
    pub is_of_ranges: bool,
    /// For tables with several key columns: a factor for each key column that is looked up by equality. The factor is the number of the column's
    /// distinct values plus one. A lookup combines the numbers of the values in these columns. For each column, it multiplies the combined number of
    /// the earlier columns by the column's factor, then adds the number of the column's value.
    pub bases: Box<[i64]>,
    /// The struct type of the table's values; `None` if they are scalars.
    pub value: Option<QType>,
}

struct Parts<T> {
    members: Box<[T]>,
    names: Option<Names>,
    form: Form,
    /// The answer of `all_once` for these members; not set until it is computed.
    holds: OnceLock<bool>,
}

impl<T> Parts<T> {
    fn new(members: Box<[T]>, names: Option<Names>) -> Self {
        Parts { members, names, form: Form::Tuple, holds: OnceLock::new() }
    }
}

impl<T: Clone> Clone for Parts<T> {
    fn clone(&self) -> Self {
        Parts { form: self.form.clone(), ..Parts::new(self.members.clone(), self.names.clone()) }
    }
}

impl<T: PartialEq> PartialEq for Parts<T> {
    fn eq(&self, other: &Self) -> bool {
        self.members == other.members && self.names == other.names && self.form == other.form
    }
}

impl<T: Eq> Eq for Parts<T> {}

impl<T: Hash> Hash for Parts<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.members.hash(state);
        self.names.hash(state);
        self.form.hash(state);
    }
}

impl<T> Fields<T> {
    /// Returns true if `of_member` is true for all members. The answer is stored, so `of_member` must always be the same function
    /// ([`QType::is_framed`](crate::QType::is_framed)). Storing it saves time: the answer is needed for each operand, and a tuple with many fields is
    /// an operand wherever a field is read.
    pub(crate) fn all_once(&self, of_member: impl Fn(&T) -> bool) -> bool {
        *self.0.holds.get_or_init(|| self.iter().all(of_member))
    }

    /// Makes fields with the names `names` and the members `members`; `None` if there are not as many names as members.
    #[must_use]
    pub fn named(names: Names, members: impl Into<Box<[T]>>) -> Option<Self> {
        let members = members.into();
        (names.len() == members.len()).then(|| Fields(Arc::new(Parts::new(members, Some(names)))))
    }

    /// The names of the members; `None` if the tuple is not a named one.
    #[must_use]
    pub fn names(&self) -> Option<&Names> {
        self.0.names.as_ref()
    }

    /// The kind of type that the members represent.
    #[must_use]
    pub fn form(&self) -> &Form {
        &self.0.form
    }

    /// Returns the same members with the form `form` (the kind of type that they represent). The form is not checked: types are made by
    /// [`QType::optional_struct`] and [`QType::list_of`], and code that receives a value checks its form.
    #[must_use]
    pub fn in_form(mut self, form: Form) -> Self
    where
        T: Clone,
    {
        Arc::make_mut(&mut self.0).form = form;
        self
    }

    /// The members, mutable. They are copied first if another clone shares them.
    pub fn members_mut(&mut self) -> &mut [T]
    where
        T: Clone,
    {
        let parts = Arc::make_mut(&mut self.0);
        // The stored answer belongs to the old members.
        parts.holds = OnceLock::new();
        &mut parts.members
    }

    /// The index of the field with the name `name`; `None` if there is none.
    #[must_use]
    pub fn position(&self, name: &str) -> Option<usize> {
        self.names()?.position(name)
    }

    /// The name of the field at `index`, or the index as text if the field has no name.
    #[must_use]
    pub fn label(&self, index: usize) -> Cow<'_, str> {
        match self.names().and_then(|names| names.get(index)) {
            Some(name) => Cow::Borrowed(name),
            None => Cow::Owned(index.to_string()),
        }
    }

    /// Makes fields with the members `members` and this value's names and form. If the number of members differs, the result has no names and the
    /// form of a tuple.
    #[must_use]
    pub fn with<U>(&self, members: Vec<U>) -> Fields<U> {
        let is_alike = self.len() == members.len();
        let names = self.names().filter(|_| is_alike).cloned();
        let form = if is_alike { self.form().clone() } else { Form::Tuple };
        Fields(Arc::new(Parts { form, ..Parts::new(members.into(), names) }))
    }

    /// Makes fields with this value's names and form. Each member is computed by `make` from a member of this value.
    #[must_use]
    pub fn map<U>(&self, make: impl FnMut(&T) -> U) -> Fields<U> {
        self.with(self.iter().map(make).collect())
    }
}

impl<T> Deref for Fields<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0.members
    }
}

impl<T> From<Vec<T>> for Fields<T> {
    fn from(members: Vec<T>) -> Self {
        Fields(Arc::new(Parts::new(members.into(), None)))
    }
}

impl<T, const N: usize> From<[T; N]> for Fields<T> {
    fn from(members: [T; N]) -> Self {
        members.into_iter().collect()
    }
}

impl<T: Clone> From<&[T]> for Fields<T> {
    fn from(members: &[T]) -> Self {
        members.iter().cloned().collect()
    }
}

impl<T> FromIterator<T> for Fields<T> {
    fn from_iter<I: IntoIterator<Item = T>>(members: I) -> Self {
        members.into_iter().collect::<Vec<_>>().into()
    }
}

impl<T: fmt::Debug> fmt::Debug for Fields<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.names() {
            Some(names) => f.debug_map().entries(names.iter().zip(self.iter())).finish(),
            None => f.debug_list().entries(self.iter()).finish(),
        }
    }
}

/// The names of a named tuple's fields. They are distinct and not empty, and have no comma in them and no white space
/// around them. A name is found by binary search.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Names(Arc<Sorted>);

/// The list of names, with an index for finding a name by binary search.
#[derive(PartialEq, Eq, Hash, Debug)]
struct Sorted {
    names: Box<[Arc<str>]>,
    /// The indices of the names, sorted by name.
    order: Box<[u32]>,
}

/// The reason why texts cannot be the names of a tuple's fields.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NameError {
    /// Two fields have the same name, which is given.
    Duplicate(Arc<str>),
    /// The text is not a possible name of a field.
    Malformed(Arc<str>),
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NameError::Duplicate(name) => write!(f, "two fields are named `{}`", Excerpt::quoted(name)),
            NameError::Malformed(name) => write!(
                f,
                "`{}` cannot be the name of a field: a name is not empty and has no comma in it and no white space around it",
                Excerpt::quoted(name)
            ),
        }
    }
}

impl std::error::Error for NameError {}

impl Names {
    /// Makes a list of names, in order.
    ///
    /// # Errors
    /// If two names are equal, or a name is empty, has a comma in it, or white space around it.
    pub fn new<N: Into<Arc<str>>>(names: impl IntoIterator<Item = N>) -> Result<Names, NameError> {
        let names: Box<[Arc<str>]> = names.into_iter().map(Into::into).collect();
        if let Some(name) = names.iter().find(|name| name.is_empty() || name.contains(',') || name.trim() != &***name) {
            return Err(NameError::Malformed(name.clone()));
        }
        let mut order: Box<[u32]> = (0..names.len() as u32).collect();
        order.sort_unstable_by_key(|at| &names[*at as usize]);
        for pair in order.windows(2) {
            if names[pair[0] as usize] == names[pair[1] as usize] {
                return Err(NameError::Duplicate(names[pair[0] as usize].clone()));
            }
        }
        Ok(Names(Arc::new(Sorted { names, order })))
    }

    /// Parses a text of names with commas between them; an empty text gives no names.
    ///
    /// # Errors
    /// The errors of [`Names::new`], but white space around a name is allowed.
    pub fn parse(text: &str) -> Result<Names, NameError> {
        if text.trim().is_empty() {
            return Names::new(std::iter::empty::<&str>());
        }
        Names::new(text.split(',').map(str::trim))
    }

    /// Returns the field names as one text, with commas between them.
    #[must_use]
    pub fn joined(&self) -> String {
        self.join(",")
    }

    /// The index of the field name `name`; `None` if it is not in the list.
    #[must_use]
    pub fn position(&self, name: &str) -> Option<usize> {
        let Sorted { names, order } = &*self.0;
        let found = order.binary_search_by_key(&name, |at| &names[*at as usize]).ok()?;
        Some(order[found] as usize)
    }
}

impl Deref for Names {
    type Target = [Arc<str>];

    fn deref(&self) -> &[Arc<str>] {
        &self.0.names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_looked_at_once() {
        let looks = std::cell::Cell::new(0);
        let look = |member: &i32| {
            looks.set(looks.get() + 1);
            *member > 0
        };
        let fields: Fields<i32> = [1, 2, 3].into();
        assert!(fields.all_once(look) && fields.clone().all_once(look));
        assert_eq!(looks.get(), 3);
        assert!(!Fields::from([1, 0, 3]).all_once(look));
        // The stored answer is not part of the value.
        assert!(fields == Fields::from([1, 2, 3]));
    }

    #[test]
    fn members_are_written_in_place_unless_they_are_shared() {
        let mut fields: Fields<i32> = [1, 2].into();
        let place = fields.as_ptr();
        assert!(fields.all_once(|member| *member > 0));
        fields.members_mut()[0] = -1;
        assert!(fields.as_ptr() == place && !fields.all_once(|member| *member > 0));
        let other = fields.clone();
        fields.members_mut()[1] = 7;
        assert_eq!((&fields[..], &other[..]), (&[-1, 7][..], &[-1, 2][..]));
    }

    #[test]
    fn names_are_distinct_and_found() {
        let names = Names::parse(" b , a,first name").unwrap();
        assert_eq!(names.joined(), "b,a,first name");
        assert_eq!(["a", "b", "first name", "c"].map(|name| names.position(name)), [Some(1), Some(0), Some(2), None]);
        assert_eq!(Names::parse("").unwrap().len(), 0);
        assert_eq!(Names::parse("a,b,a"), Err(NameError::Duplicate("a".into())));
        for bad in ["a,", ",", "a,,b"] {
            assert_eq!(Names::parse(bad), Err(NameError::Malformed("".into())), "{bad}");
        }
        assert_eq!(Names::new([" a"]), Err(NameError::Malformed(" a".into())));
        assert_eq!(Names::new(["a,b"]), Err(NameError::Malformed("a,b".into())));
    }

    #[test]
    fn fields_keep_their_names_and_are_compared_with_them() {
        let names = Names::parse("x,y").unwrap();
        let named = Fields::named(names.clone(), [1, 2]).unwrap();
        assert_ne!(named, Fields::from([1, 2]));
        assert_ne!(named, Fields::named(Names::parse("y,x").unwrap(), [1, 2]).unwrap());
        assert_eq!(named.map(|n| n * 2), Fields::named(names.clone(), [2, 4]).unwrap());
        assert_eq!(named.with(vec![1]), Fields::from([1]));
        assert_eq!((named.label(1), Fields::from([1, 2]).label(1)), ("y".into(), "1".into()));
        assert_eq!((named.position("y"), Fields::from([1]).position("y")), (Some(1), None));
        assert_eq!(Fields::named(names, [1]), None);
    }
}
