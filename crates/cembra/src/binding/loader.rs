//! Loaders provide the values of a model's inputs by name. A loader is asked once, when an executor is made, and only for inputs that the prepared
//! model needs. It returns an accessor per input, which is called for the rows that need the value.

use crate::binding::fields::{Input, InputField};
use crate::names::ByName;
use crate::{Error, ValueRef};
use cembra_runtime::QType;
use std::marker::PhantomData;
use std::sync::Arc;

/// Provides inputs of a model by name and reads them from rows of type `R`.
///
/// An [`Accessor`] reads the value of one input from a row. The executor checks and writes the value, so a loader cannot leave a slot unwritten. An
/// absent value is [`ValueRef::Missing`].
///
/// The executor calls an accessor when an evaluation first needs its value, at most once, and never for a branch that is not taken. For models with
/// arrays, lists or tensors, it calls all accessors before the evaluation.
///
/// ```
/// use cembra::loaders::{Accessor, Loader};
/// use cembra::{Error, Model, Options, QType, Value, ValueRef};
///
/// /// Inputs `c0`, `c1`, .. are the columns of a row of numbers.
/// struct Columns(usize);
///
/// impl Loader<Vec<f64>> for Columns {
///     fn knows(&self, name: &str) -> bool {
///         self.names().iter().any(|known| known == name)
///     }
///     fn qtype(&self, _: &str, _: Option<&QType>) -> Option<QType> {
///         Some(QType::Optional(cembra::Scalar::Float64))
///     }
///     fn names(&self) -> Vec<String> {
///         (0..self.0).map(|at| format!("c{at}")).collect()
///     }
///     fn bind(&self, name: &str, _: &QType) -> Result<Accessor<Vec<f64>>, Error> {
///         let at: usize = name[1..].parse().map_err(|_| Error::values("no column"))?;
///         Ok(Accessor::new(move |row: &Vec<f64>| Ok(row.get(at).copied().into())))
///     }
/// }
///
/// let model = Model::parse("c0 + (c1 ?? 0.5)")?;
/// let mut sum = model.executor_from::<_, Option<f64>>(&Columns(2), &Options::default())?;
/// assert_eq!(sum.run(&vec![1.0, 2.0])?, Some(3.0));
/// assert_eq!(sum.run(&vec![1.0])?, Some(1.5));
/// let error = model.executor_from::<_, Option<f64>>(&Columns(1), &Options::default()).unwrap_err();
/// assert_eq!(error.to_string(), "there is no data for input `c1`; is `c0` meant for `c1`?; the known names are c0");
/// # Ok::<(), Error>(())
/// ```
pub trait Loader<R> {
    /// Returns true if the loader can provide the input `name`.
    fn knows(&self, name: &str) -> bool;

    /// Returns the type of the input `name`, which the loader knows; `None` if the loader does not determine the type. `declared` is the type from
    /// the model or the options. A loader that can provide any type returns `declared`; otherwise it returns its own type, and a difference is an
    /// error.
    fn qtype(&self, name: &str, declared: Option<&QType>) -> Option<QType>;

    /// Returns the names of the inputs that the loader knows, for error messages about an unknown name. A loader that knows any name returns an
    /// empty list.
    fn names(&self) -> Vec<String>;

    /// Returns the accessor that reads the input `name` of type `qtype` from a row.
    ///
    /// # Errors
    /// If the loader cannot provide this input after all.
    fn bind(&self, name: &str, qtype: &QType) -> Result<Accessor<R>, Error>;
}

/// Marks rows of type `R` that a loader reads, as a type parameter of executors: [`Model::executor_from`](crate::Model::executor_from) returns a
/// `ModelExecutor<LoaderRow<R>, O>`, which runs rows of type `R`. The type has no values.
///
/// ```
/// use cembra::json::{JsonRow, JsonRows};
/// use cembra::loaders::LoaderRow;
/// use cembra::{Model, ModelExecutor, Options, Pool};
///
/// struct Prices { pool: Pool<ModelExecutor<LoaderRow<JsonRow>, f64>> }
///
/// let model = Model::parse("input price: f64; price * 1.08")?;
/// let prices = Prices { pool: Pool::new(model.executor_from(&JsonRows, &Options::default())?) };
/// let row = JsonRow::parse("{\"price\": 50}")?;
/// assert_eq!(prices.pool.with(|executor| executor.run(&row))?, 54.0);
/// # Ok::<(), cembra::Error>(())
/// ```
// The type must not be contravariant in `R`: otherwise an executor of `'static` rows could be used for rows that borrow.
#[derive(Debug)]
pub struct LoaderRow<R>(PhantomData<R>);

// SAFETY: FIELD-TABLE: no entries.
unsafe impl<R> Input for LoaderRow<R> {
    type At<'r>
        = R
    where
        Self: 'r;

    fn fields() -> Vec<InputField> {
        Vec::new()
    }
}

/// The accessor of an input: the function of a loader that reads the input from a row, when an evaluation needs the value.
pub struct Accessor<R>(pub(crate) Access<R>);

/// A function that reads one input from a row.
pub(crate) type ReadFn<R> = Arc<dyn for<'r> Fn(&'r R) -> Result<ValueRef<'r>, Error> + Send + Sync>;

/// The source from which an [`Accessor`] gets the value of an input: a field or a function.
pub(crate) enum Access<R> {
    /// The value is a field of `R`. The payload is the field's entry in the field table of `R`.
    Field(InputField),
    /// The value is returned by a function that is called before each evaluation.
    #[cfg_attr(not(feature = "json"), expect(dead_code, reason = "only JSON rows are read as a whole"))]
    Read(ReadFn<R>),
    /// The value is returned by a function that is called when an evaluation first needs the value.
    OnDemand(ReadFn<R>),
}

impl<R> Accessor<R> {
    /// Returns an accessor that calls `read`, which may fail with [`Error::values`].
    pub fn new(read: impl for<'r> Fn(&'r R) -> Result<ValueRef<'r>, Error> + Send + Sync + 'static) -> Self {
        Accessor(Access::OnDemand(Arc::new(read)))
    }

    /// Returns an accessor that calls `read` in each evaluation, so that the value is checked even if the evaluation does not need it.
    #[cfg(feature = "json")]
    pub(crate) fn checking(
        read: impl for<'r> Fn(&'r R) -> Result<ValueRef<'r>, Error> + Send + Sync + 'static,
    ) -> Self {
        Accessor(Access::Read(Arc::new(read)))
    }
}

impl<R> std::fmt::Debug for Accessor<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.0 {
            Access::Field(_) => "Accessor::Field",
            Access::Read(_) | Access::OnDemand(_) => "Accessor::Read",
        })
    }
}

/// A loader for the fields of a struct with a derived [`Input`]. [`Model::executor`](crate::Model::executor) uses this loader automatically. Pass the
/// loader explicitly to filter it, or to chain it with other loaders.
pub struct Fields<T>(PhantomData<fn(&T)>);

impl<T: Input> Fields<T> {
    /// Returns the loader for the fields of `T`.
    #[must_use]
    pub const fn new() -> Self {
        Fields(PhantomData)
    }

    fn find(name: &str) -> Option<InputField> {
        T::fields().into_iter().find(|field| field.name == name)
    }

    /// Returns the entry for the field `name` in the field table. Fails if there is no such field, or its type cannot be an input.
    pub(crate) fn field(name: &str) -> Result<InputField, Error> {
        let field = Fields::<T>::find(name).ok_or_else(|| Error::values(format!("there is no field `{name}`")))?;
        field.readable(name)
    }
}

impl<T: Input> Default for Fields<T> {
    fn default() -> Self {
        Fields::new()
    }
}

impl<T> std::fmt::Debug for Fields<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Fields")
    }
}

impl<T: Input> Loader<T> for Fields<T> {
    fn knows(&self, name: &str) -> bool {
        Fields::<T>::find(name).is_some()
    }

    fn qtype(&self, name: &str, _: Option<&QType>) -> Option<QType> {
        Fields::<T>::find(name)?.input_type().cloned()
    }

    fn names(&self) -> Vec<String> {
        T::fields().into_iter().map(|field| field.name.to_owned()).collect()
    }

    fn bind(&self, name: &str, _: &QType) -> Result<Accessor<T>, Error> {
        Ok(Accessor(Access::Field(Fields::<T>::field(name)?)))
    }
}

/// A loader with a function for each input that is listed. Optionally, one more function reads all other inputs.
///
/// ```
/// use cembra::loaders::AccessorsLoader;
/// use cembra::{Model, Options, QType};
///
/// struct Person { name: String, born: i32 }
///
/// let loader = AccessorsLoader::new()
///     .with("name", QType::TEXT, |person: &Person| person.name.as_str().into())
///     .with("age", QType::INT32, |person| (2026 - person.born).into());
/// let model = Model::parse("strings.join(name, \", \", strings.as_text(age))")?;
/// let mut describe = model.executor_from::<_, String>(&loader, &Options::default())?;
/// assert_eq!(describe.run(&Person { name: "Ann".into(), born: 1990 })?, "Ann, 36");
/// # Ok::<(), cembra::Error>(())
/// ```
pub struct AccessorsLoader<R> {
    listed: ByName<(QType, ReadFn<R>)>,
    others: Option<Others<R>>,
}

type AccessorOf<R> = Box<dyn Fn(&str) -> Accessor<R> + Send + Sync>;

/// The function that reads all inputs that are not listed, and their type.
struct Others<R> {
    /// The type of the inputs that are not listed; `None` if the model or the options declare their types.
    qtype: Option<QType>,
    accessor: AccessorOf<R>,
}

impl<R> AccessorsLoader<R> {
    /// Returns a loader without inputs.
    #[must_use]
    pub const fn new() -> Self {
        AccessorsLoader { listed: ByName::new(), others: None }
    }

    /// Adds the input `name` of type `qtype` to the loader: `read` reads the input from a row. An earlier input of the same name is replaced. If
    /// `read` returns a value of another type than `qtype`, the evaluation fails.
    #[must_use]
    pub fn with(
        mut self,
        name: &str,
        qtype: QType,
        read: impl for<'r> Fn(&'r R) -> ValueRef<'r> + Send + Sync + 'static,
    ) -> Self {
        self.listed.insert(name, (qtype, Arc::new(move |row| Ok(read(row)))));
        self
    }

    /// Makes the loader call `read` for all inputs that are not listed. `read` is given the row and the input's name.
    /// The model or the options must declare the types of these inputs.
    #[must_use]
    pub fn others(self, read: impl for<'r> Fn(&'r R, &str) -> ValueRef<'r> + Send + Sync + 'static) -> Self {
        self.with_others(None, read)
    }

    /// Makes the loader call `read` for all inputs that are not listed. `read` is given the row and the input's name. Each of these inputs has the
    /// type `qtype`.
    ///
    /// ```
    /// use cembra::loaders::AccessorsLoader;
    /// use cembra::{Model, Options, QType, Scalar};
    /// use std::collections::HashMap;
    ///
    /// type Row = HashMap<String, f64>;
    /// let number = QType::Optional(Scalar::Float64);
    /// let loader = AccessorsLoader::new().others_of(number, |row: &Row, name| row.get(name).copied().into());
    /// let mut model = Model::parse("(a ?? 0.0) + (b ?? 0.5)")?.executor_from::<_, f64>(&loader, &Options::default())?;
    /// assert_eq!(model.run(&Row::from([("a".into(), 1.0)]))?, 1.5);
    /// # Ok::<(), cembra::Error>(())
    /// ```
    #[must_use]
    pub fn others_of(
        self,
        qtype: QType,
        read: impl for<'r> Fn(&'r R, &str) -> ValueRef<'r> + Send + Sync + 'static,
    ) -> Self {
        self.with_others(Some(qtype), read)
    }

    fn with_others(
        mut self,
        qtype: Option<QType>,
        read: impl for<'r> Fn(&'r R, &str) -> ValueRef<'r> + Send + Sync + 'static,
    ) -> Self {
        let read = Arc::new(read);
        let accessor = move |name: &str| {
            let (read, name) = (read.clone(), name.to_owned());
            Accessor::new(move |row| Ok(read(row, &name)))
        };
        self.others = Some(Others { qtype, accessor: Box::new(accessor) });
        self
    }
}

impl<R> Default for AccessorsLoader<R> {
    fn default() -> Self {
        AccessorsLoader::new()
    }
}

impl<R> std::fmt::Debug for AccessorsLoader<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut map = f.debug_map();
        map.entries(self.listed.iter().map(|(name, (qtype, _))| (name, qtype)));
        if let Some(others) = &self.others {
            map.entry(&"..", &others.qtype);
        }
        map.finish()
    }
}

impl<R> Loader<R> for AccessorsLoader<R> {
    fn knows(&self, name: &str) -> bool {
        self.others.is_some() || self.listed.get(name).is_some()
    }

    fn qtype(&self, name: &str, declared: Option<&QType>) -> Option<QType> {
        match (self.listed.get(name), &self.others) {
            (Some((qtype, _)), _) => Some(qtype.clone()),
            (None, Some(others)) => others.qtype.as_ref().or(declared).cloned(),
            (None, None) => None,
        }
    }

    fn names(&self) -> Vec<String> {
        self.listed.names()
    }

    fn bind(&self, name: &str, _: &QType) -> Result<Accessor<R>, Error> {
        match (self.listed.get(name), &self.others) {
            (Some((_, read)), _) => Ok(Accessor(Access::OnDemand(read.clone()))),
            (None, Some(others)) => Ok((others.accessor)(name)),
            (None, None) => Err(Error::values(format!("there is no accessor `{name}`"))),
        }
    }
}
