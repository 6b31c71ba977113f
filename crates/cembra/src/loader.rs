//! Loaders: where the values of a model's inputs come from, by name. A loader is asked only when an executor is made, and
//! only for inputs that the prepared model still needs; each gives an accessor, which is called for every row.

use crate::fields::{Input, InputField};
use crate::names::ByName;
use crate::{Error, ValueRef};
use cembra_runtime::QType;
use std::marker::PhantomData;
use std::sync::Arc;

/// Knows inputs of a model by name and reads them from rows of type `R`.
///
/// What reads one value of a row is an [`Accessor`], and what it returns is checked and written by the executor: a loader
/// cannot leave a slot unwritten, and an absent value is [`ValueRef::Missing`].
///
/// ```
/// use cembra::{Accessor, Error, Loader, Model, Options, QType, Value, ValueRef};
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
/// assert_eq!(error.to_string(), "there is no data for input `c1`; is `c0` meant for `c1`?; known are c0");
/// # Ok::<(), Error>(())
/// ```
pub trait Loader<R> {
    /// True if the loader can give the input of this name.
    fn knows(&self, name: &str) -> bool;

    /// The type it gives for a name it knows. `declared` is what the model or the options say: a loader that can give any
    /// type takes that, one that cannot returns its own, and a difference is an error. None if the type stays open.
    fn qtype(&self, name: &str, declared: Option<&QType>) -> Option<QType>;

    /// The names to tell the user when one is not known. A loader that knows no end of names lists none.
    fn names(&self) -> Vec<String>;

    /// What reads the input of this name and type from a row.
    ///
    /// # Errors
    /// The loader cannot give this name or type after all.
    fn bind(&self, name: &str, qtype: &QType) -> Result<Accessor<R>, Error>;
}

/// Reads one input from a row.
pub struct Accessor<R>(pub(crate) Access<R>);

pub(crate) type Read<R> = Arc<dyn for<'r> Fn(&'r R) -> Result<ValueRef<'r>, Error> + Send + Sync>;

pub(crate) enum Access<R> {
    /// A field of `R`, from the table of its derive.
    Field(InputField),
    Read(Read<R>),
}

impl<R> Accessor<R> {
    /// The accessor that this function is. It may fail, with [`Error::values`].
    pub fn new(read: impl for<'r> Fn(&'r R) -> Result<ValueRef<'r>, Error> + Send + Sync + 'static) -> Self {
        Accessor(Access::Read(Arc::new(read)))
    }
}

impl<R> std::fmt::Debug for Accessor<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.0 {
            Access::Field(_) => "Accessor::Field",
            Access::Read(_) => "Accessor::Read",
        })
    }
}

/// The fields of a struct with a derived [`Input`], as a loader: what [`Model::executor`](crate::Model::executor) uses, to be
/// filtered or put into a chain.
pub struct Fields<T>(PhantomData<fn(&T)>);

impl<T: Input> Fields<T> {
    /// The loader.
    #[must_use]
    pub const fn new() -> Self {
        Fields(PhantomData)
    }

    fn find(name: &str) -> Option<InputField> {
        T::fields().into_iter().find(|field| field.name == name)
    }

    /// The table's entry for a name it knows, of a type that inputs may have.
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

/// A loader of inputs that are listed one by one, each with a function that reads it.
///
/// ```
/// use cembra::{AccessorsLoader, Model, Options, QType};
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
pub struct AccessorsLoader<R>(ByName<(QType, Read<R>)>);

impl<R> AccessorsLoader<R> {
    /// A loader of nothing.
    #[must_use]
    pub const fn new() -> Self {
        AccessorsLoader(ByName::new())
    }

    /// Adds an input, in place of an earlier one of the same name. A value of another type is an error of the call.
    #[must_use]
    pub fn with(
        mut self,
        name: &str,
        qtype: QType,
        read: impl for<'r> Fn(&'r R) -> ValueRef<'r> + Send + Sync + 'static,
    ) -> Self {
        self.0.insert(name, (qtype, Arc::new(move |row| Ok(read(row)))));
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
        f.debug_map().entries(self.0.iter().map(|(name, (qtype, _))| (name, qtype))).finish()
    }
}

impl<R> Loader<R> for AccessorsLoader<R> {
    fn knows(&self, name: &str) -> bool {
        self.0.get(name).is_some()
    }

    fn qtype(&self, name: &str, _: Option<&QType>) -> Option<QType> {
        self.0.get(name).map(|(qtype, _)| qtype.clone())
    }

    fn names(&self) -> Vec<String> {
        self.0.names()
    }

    fn bind(&self, name: &str, _: &QType) -> Result<Accessor<R>, Error> {
        let (_, read) = self.0.get(name).ok_or_else(|| Error::values(format!("there is no accessor `{name}`")))?;
        Ok(Accessor(Access::Read(read.clone())))
    }
}

/// A loader that knows every name: one function reads them all, by key.
///
/// ```
/// use cembra::{Model, Options, QType, Scalar, WildcardLoader};
/// use std::collections::HashMap;
///
/// type Row = HashMap<String, f64>;
/// let number = QType::Optional(Scalar::Float64);
/// let loader = WildcardLoader::new(|row: &Row, key| row.get(key).copied().into()).of(number);
/// let mut model = Model::parse("(a ?? 0.0) + (b ?? 0.5)")?.executor_from::<_, f64>(&loader, &Options::default())?;
/// assert_eq!(model.run(&Row::from([("a".into(), 1.0)]))?, 1.5);
/// # Ok::<(), cembra::Error>(())
/// ```
pub struct WildcardLoader<R> {
    qtype: Option<QType>,
    read: ReadNamed<R>,
}

type ReadNamed<R> = Arc<dyn for<'r> Fn(&'r R, &str) -> ValueRef<'r> + Send + Sync>;

impl<R> WildcardLoader<R> {
    /// A loader of inputs whose types the model declares, or the options.
    pub fn new(read: impl for<'r> Fn(&'r R, &str) -> ValueRef<'r> + Send + Sync + 'static) -> Self {
        WildcardLoader { qtype: None, read: Arc::new(read) }
    }

    /// All inputs are of this type.
    #[must_use]
    pub fn of(mut self, qtype: QType) -> Self {
        self.qtype = Some(qtype);
        self
    }
}

impl<R> std::fmt::Debug for WildcardLoader<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WildcardLoader").field("qtype", &self.qtype).finish_non_exhaustive()
    }
}

impl<R: 'static> Loader<R> for WildcardLoader<R> {
    fn knows(&self, _: &str) -> bool {
        true
    }

    fn qtype(&self, _: &str, declared: Option<&QType>) -> Option<QType> {
        self.qtype.as_ref().or(declared).cloned()
    }

    fn names(&self) -> Vec<String> {
        Vec::new()
    }

    fn bind(&self, name: &str, _: &QType) -> Result<Accessor<R>, Error> {
        let (read, key) = (self.read.clone(), name.to_owned());
        Ok(Accessor::new(move |row| Ok(read(row, &key))))
    }
}
