//! Listeners: where outputs go, by name; the mirror of loaders. Outputs that a listener does not know are not computed.

use crate::names::ByName;
use crate::{Error, ValueRef};
use cembra_runtime::QType;
use std::sync::Arc;

/// Knows outputs of a model by name and hands them to sinks of type `S`.
///
/// ```
/// use cembra::{AccessorsListener, Fields, Model, Options, ValueRef};
///
/// #[derive(cembra::Input)]
/// struct Row { x: f64 }
///
/// let model = Model::parse("output y = x * 2; output z = x + 1; output unheard = 1 // 0")?;
/// let listener = AccessorsListener::new().with("z", |heard: &mut Vec<f64>, value| {
///     if let ValueRef::Float64(z) = value {
///         heard.push(z);
///     }
/// });
/// let options = Options::default().ignore_not_listened_named_outputs(true);
/// let mut run = model.executor_between::<_, f64, _>(&Fields::<Row>::new(), &listener, &options)?;
/// let mut heard = Vec::new();
/// assert_eq!(run.listen(&Row { x: 1.5 }, &mut heard)?, 3.0);
/// assert_eq!(heard, [2.5]);
/// # Ok::<(), cembra::Error>(())
/// ```
pub trait Listener<S> {
    /// True if the listener wants the output of this name.
    fn knows(&self, name: &str) -> bool;

    /// The type it wants an output of a name it knows as, which the model gives as `given`. Another type than that is an
    /// error, or a cast with [`Options::cast_outputs`](crate::Options::cast_outputs).
    fn qtype(&self, name: &str, given: &QType) -> QType {
        let _ = name;
        given.clone()
    }

    /// The names to tell the user when an output is not listened to.
    fn names(&self) -> Vec<String>;

    /// What takes the output of this name and type.
    ///
    /// # Errors
    /// The listener cannot take this name or type after all.
    fn bind(&self, name: &str, qtype: &QType) -> Result<Setter<S>, Error>;
}

/// Takes one output to a sink.
pub struct Setter<S>(pub(crate) Set<S>);

pub(crate) type Set<S> = Arc<dyn Fn(&mut S, ValueRef<'_>) -> Result<(), Error> + Send + Sync>;

impl<S> Setter<S> {
    /// The setter that this function is. It may fail, with [`Error::values`].
    pub fn new(set: impl Fn(&mut S, ValueRef<'_>) -> Result<(), Error> + Send + Sync + 'static) -> Self {
        Setter(Arc::new(set))
    }
}

impl<S> std::fmt::Debug for Setter<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Setter")
    }
}

/// A listener to outputs that are listed one by one, each with the function that takes it.
pub struct AccessorsListener<S>(ByName<(Option<QType>, Set<S>)>);

impl<S> AccessorsListener<S> {
    /// A listener to nothing.
    #[must_use]
    pub const fn new() -> Self {
        AccessorsListener(ByName::new())
    }

    /// Adds an output of whatever type it has, in place of an earlier one of the same name.
    #[must_use]
    pub fn with(self, name: &str, set: impl Fn(&mut S, ValueRef<'_>) + Send + Sync + 'static) -> Self {
        self.add(name, None, set)
    }

    /// Adds an output that is wanted as this type.
    #[must_use]
    pub fn with_type(
        self,
        name: &str,
        qtype: QType,
        set: impl Fn(&mut S, ValueRef<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.add(name, Some(qtype), set)
    }

    fn add(
        mut self,
        name: &str,
        qtype: Option<QType>,
        set: impl Fn(&mut S, ValueRef<'_>) + Send + Sync + 'static,
    ) -> Self {
        let set: Set<S> = Arc::new(move |sink, value| {
            set(sink, value);
            Ok(())
        });
        self.0.insert(name, (qtype, set));
        self
    }
}

impl<S> Default for AccessorsListener<S> {
    fn default() -> Self {
        AccessorsListener::new()
    }
}

impl<S> std::fmt::Debug for AccessorsListener<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.0.iter().map(|(name, (qtype, _))| (name, qtype))).finish()
    }
}

impl<S> Listener<S> for AccessorsListener<S> {
    fn knows(&self, name: &str) -> bool {
        self.0.get(name).is_some()
    }

    fn qtype(&self, name: &str, given: &QType) -> QType {
        self.0.get(name).and_then(|(qtype, _)| qtype.as_ref()).unwrap_or(given).clone()
    }

    fn names(&self) -> Vec<String> {
        self.0.names()
    }

    fn bind(&self, name: &str, _: &QType) -> Result<Setter<S>, Error> {
        let (_, set) = self.0.get(name).ok_or_else(|| Error::values(format!("nobody listens to `{name}`")))?;
        Ok(Setter(set.clone()))
    }
}

/// A listener to every output: one function takes them all, by name.
///
/// ```
/// use cembra::{Fields, Model, Options, WildcardListener};
///
/// let model = Model::parse("output a = 1 + 1; output b = \"text\"")?;
/// let listener = WildcardListener::new(|log: &mut Vec<String>, name, value| log.push(format!("{name}: {value:?}")));
/// let mut run = model.executor_between::<(), (), _>(&Fields::new(), &listener, &Options::default())?;
/// let mut log = Vec::new();
/// run.listen(&(), &mut log)?;
/// assert_eq!(log, ["a: Int32(2)", "b: Text(\"text\")"]);
/// # Ok::<(), cembra::Error>(())
/// ```
pub struct WildcardListener<S>(SetNamed<S>);

type SetNamed<S> = Arc<dyn Fn(&mut S, &str, ValueRef<'_>) + Send + Sync>;

impl<S> WildcardListener<S> {
    /// The listener.
    pub fn new(set: impl Fn(&mut S, &str, ValueRef<'_>) + Send + Sync + 'static) -> Self {
        WildcardListener(Arc::new(set))
    }
}

impl<S> std::fmt::Debug for WildcardListener<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("WildcardListener")
    }
}

impl<S: 'static> Listener<S> for WildcardListener<S> {
    fn knows(&self, _: &str) -> bool {
        true
    }

    fn names(&self) -> Vec<String> {
        Vec::new()
    }

    fn bind(&self, name: &str, _: &QType) -> Result<Setter<S>, Error> {
        let (set, name) = (self.0.clone(), name.to_owned());
        Ok(Setter::new(move |sink, value| {
            set(sink, &name, value);
            Ok(())
        }))
    }
}
