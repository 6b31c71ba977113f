//! Loaders and listeners that are made from other loaders and listeners: pointers to them, restrictions to some names, and sequences.

use crate::Error;
use crate::binding::listener::{Listener, Setter};
use crate::binding::loader::{Accessor, Loader};
use cembra_runtime::QType;
use cembra_value::{Code, Diagnostic};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Implements a loader or listener trait for pointers to a loader or listener: owned, shared or borrowed.
macro_rules! through {
    ($trait:ident, $known:ty, $qtype:ty, $bound:ident: $($pointer:ty),*) => { $(
        impl<S, T: $trait<S> + ?Sized> $trait<S> for $pointer {
            fn knows(&self, name: &str) -> bool {
                (**self).knows(name)
            }
            fn qtype(&self, name: &str, known: $known) -> $qtype {
                (**self).qtype(name, known)
            }
            fn names(&self) -> Vec<String> {
                (**self).names()
            }
            fn bind(&self, name: &str, qtype: &QType) -> Result<$bound<S>, Error> {
                (**self).bind(name, qtype)
            }
        }
    )* };
}

through!(Loader, Option<&QType>, Option<QType>, Accessor: &T, Box<T>, Arc<T>);
through!(Listener, &QType, QType, Setter: &T, Box<T>, Arc<T>);

/// A loader or listener that wraps another loader or listener and hides some of its names.
///
/// ```
/// use cembra::loaders::{Fields, Filtered, Loader};
///
/// #[derive(cembra::Input)]
/// struct Row { x: f64, y: f64, secret: f64 }
///
/// let loader = Filtered::new(Fields::<Row>::new(), |name| name != "secret");
/// assert_eq!(loader.names(), ["x", "y"]);
/// let loader = Filtered::to(Fields::<Row>::new(), ["y", "z"]);
/// assert!(loader.knows("y") && !loader.knows("x") && !loader.knows("z"));
/// ```
pub struct Filtered<T> {
    inner: T,
    keep: Box<dyn Fn(&str) -> bool>,
}

impl<T> Filtered<T> {
    /// Returns `inner` restricted to the names for which `keep` returns true.
    pub fn new(inner: T, keep: impl Fn(&str) -> bool + 'static) -> Self {
        Filtered { inner, keep: Box::new(keep) }
    }

    /// Returns `inner` restricted to the names `names`.
    pub fn to<N: Into<String>>(inner: T, names: impl IntoIterator<Item = N>) -> Self {
        let names: BTreeSet<String> = names.into_iter().map(Into::into).collect();
        Filtered::new(inner, move |name| names.contains(name))
    }

    fn filter(&self, mut names: Vec<String>) -> Vec<String> {
        names.retain(|name| (self.keep)(name));
        names
    }

    fn refused(name: &str) -> Error {
        Error::values(format!("a filter excludes `{name}`"))
    }
}

impl<T: std::fmt::Debug> std::fmt::Debug for Filtered<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Filtered").field(&self.inner).finish()
    }
}

impl<R, T: Loader<R>> Loader<R> for Filtered<T> {
    fn knows(&self, name: &str) -> bool {
        (self.keep)(name) && self.inner.knows(name)
    }

    fn qtype(&self, name: &str, declared: Option<&QType>) -> Option<QType> {
        self.inner.qtype(name, declared).filter(|_| (self.keep)(name))
    }

    fn names(&self) -> Vec<String> {
        self.filter(self.inner.names())
    }

    fn bind(&self, name: &str, qtype: &QType) -> Result<Accessor<R>, Error> {
        if (self.keep)(name) { self.inner.bind(name, qtype) } else { Err(Self::refused(name)) }
    }
}

impl<S, T: Listener<S>> Listener<S> for Filtered<T> {
    fn knows(&self, name: &str) -> bool {
        (self.keep)(name) && self.inner.knows(name)
    }

    fn qtype(&self, name: &str, given: &QType) -> QType {
        self.inner.qtype(name, given)
    }

    fn names(&self) -> Vec<String> {
        self.filter(self.inner.names())
    }

    fn bind(&self, name: &str, qtype: &QType) -> Result<Setter<S>, Error> {
        if (self.keep)(name) { self.inner.bind(name, qtype) } else { Err(Self::refused(name)) }
    }
}

/// Several loaders, or several listeners, that are used as one. If several of them know a name, the first one in the
/// chain gets the name. But no two of them may list the same name in [`Loader::names`] or [`Listener::names`].
///
/// ```
/// use cembra::loaders::{AccessorsLoader, Chain, Fields, Loader};
/// use cembra::{Model, Options, QType};
///
/// #[derive(cembra::Input)]
/// struct Row { x: f64, y: f64 }
///
/// let sum = AccessorsLoader::new().with("sum", QType::FLOAT64, |row: &Row| (row.x + row.y).into());
/// let rest = AccessorsLoader::new().others_of(QType::FLOAT64, |_: &Row, name| (name.len() as f64).into());
/// let loader = Chain::loaders(vec![Box::new(Fields::<Row>::new()), Box::new(&sum), Box::new(rest)])?;
/// let mut run = Model::parse("x * sum + seven77")?.executor_from::<_, f64>(&loader, &Options::default())?;
/// assert_eq!(run.run(&Row { x: 2.0, y: 1.0 })?, 13.0);
///
/// let error = Chain::loaders::<Row>(vec![Box::new(Fields::<Row>::new()), Box::new(Fields::<Row>::new())]).unwrap_err();
/// assert_eq!((error.code(), error.to_string().as_str()), ("binding", "two loaders of a chain both have x, y"));
/// # Ok::<(), cembra::Error>(())
/// ```
pub struct Chain<T: ?Sized>(Vec<Box<T>>);

impl<T: ?Sized> std::fmt::Debug for Chain<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Chain").field(&self.0.len()).finish()
    }
}

impl<'l> Chain<dyn Loader<()> + 'l> {
    /// Returns one loader that asks the loaders `parts` for each name, in this order.
    ///
    /// # Errors
    /// If two of the loaders list the same name.
    pub fn loaders<R>(parts: Vec<Box<dyn Loader<R> + 'l>>) -> Result<Chain<dyn Loader<R> + 'l>, Error> {
        distinct("loaders", parts.iter().map(|part| part.names()))?;
        Ok(Chain(parts))
    }
}

impl<'l> Chain<dyn Listener<()> + 'l> {
    /// Returns one listener that asks the listeners `parts` for each name, in this order.
    ///
    /// # Errors
    /// If two of the listeners list the same name.
    pub fn listeners<S>(parts: Vec<Box<dyn Listener<S> + 'l>>) -> Result<Chain<dyn Listener<S> + 'l>, Error> {
        distinct("listeners", parts.iter().map(|part| part.names()))?;
        Ok(Chain(parts))
    }
}

fn distinct(what: &str, lists: impl Iterator<Item = Vec<String>>) -> Result<(), Error> {
    let mut seen = BTreeSet::new();
    let twice: BTreeSet<String> = lists.flatten().filter(|name| !seen.insert(name.clone())).collect();
    if twice.is_empty() {
        return Ok(());
    }
    let names = crate::names::list(twice.iter().map(String::as_str));
    Err(Diagnostic::new(Code::Binding, format!("two {what} of a chain both have {names}")).into())
}

fn unknown(name: &str) -> Error {
    Error::values(format!("no loader or listener of the chain has `{name}`"))
}

impl<R> Loader<R> for Chain<dyn Loader<R> + '_> {
    fn knows(&self, name: &str) -> bool {
        self.0.iter().any(|part| part.knows(name))
    }

    fn qtype(&self, name: &str, declared: Option<&QType>) -> Option<QType> {
        self.0.iter().find(|part| part.knows(name))?.qtype(name, declared)
    }

    fn names(&self) -> Vec<String> {
        self.0.iter().flat_map(|part| part.names()).collect()
    }

    fn bind(&self, name: &str, qtype: &QType) -> Result<Accessor<R>, Error> {
        let part = self.0.iter().find(|part| part.knows(name));
        part.ok_or_else(|| unknown(name))?.bind(name, qtype)
    }
}

impl<S> Listener<S> for Chain<dyn Listener<S> + '_> {
    fn knows(&self, name: &str) -> bool {
        self.0.iter().any(|part| part.knows(name))
    }

    fn qtype(&self, name: &str, given: &QType) -> QType {
        self.0.iter().find(|part| part.knows(name)).map_or_else(|| given.clone(), |part| part.qtype(name, given))
    }

    fn names(&self) -> Vec<String> {
        self.0.iter().flat_map(|part| part.names()).collect()
    }

    fn bind(&self, name: &str, qtype: &QType) -> Result<Setter<S>, Error> {
        let part = self.0.iter().find(|part| part.knows(name));
        part.ok_or_else(|| unknown(name))?.bind(name, qtype)
    }
}
