//! Listeners: they receive the outputs of a model by name, such as each output of a model whose outputs are not known
//! when the program is compiled. When an executor is made, it asks the listener for one setter per output. It calls the
//! setters after each evaluation.

use crate::names::ByName;
use crate::{Error, ValueRef};
use cembra_runtime::QType;
use std::sync::Arc;

/// Receives outputs of a model by name and passes them to a sink: a value of the caller, of type `S`.
///
/// ```
/// use cembra::loaders::{AccessorsListener, Fields};
/// use cembra::{Model, Options, ValueRef};
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
    /// Returns true if the listener takes the output `name`.
    fn knows(&self, name: &str) -> bool;

    /// Returns the type that the listener takes the output `name` as. `given` is the model's type. A different type is an error, or a cast with
    /// [`Options::cast_outputs`](crate::Options::cast_outputs).
    fn qtype(&self, name: &str, given: &QType) -> QType {
        let _ = name;
        given.clone()
    }

    /// Returns the names of the outputs that the listener knows, for the error message about an unknown output.
    fn names(&self) -> Vec<String>;

    /// Returns the setter for the output `name` of type `qtype`.
    ///
    /// # Errors
    /// If the listener cannot take this output after all.
    fn bind(&self, name: &str, qtype: &QType) -> Result<Setter<S>, Error>;
}

/// A setter: the function of a listener that passes the value of one output to a sink.
pub struct Setter<S>(pub(crate) Set<S>);

/// A function that passes the value of one output to a sink, or fails.
pub(crate) type Set<S> = Arc<dyn Fn(&mut S, ValueRef<'_>) -> Result<(), Error> + Send + Sync>;

impl<S> Setter<S> {
    /// Returns a setter that calls `set`, which may fail with [`Error::values`].
    pub fn new(set: impl Fn(&mut S, ValueRef<'_>) -> Result<(), Error> + Send + Sync + 'static) -> Self {
        Setter(Arc::new(set))
    }
}

impl<S> std::fmt::Debug for Setter<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Setter")
    }
}

type SetterOf<S> = Box<dyn Fn(&str) -> Setter<S> + Send + Sync>;

/// A listener with a function for each output that is listed. Optionally, one more function takes all other outputs, with their names.
pub struct AccessorsListener<S> {
    listed: ByName<(Option<QType>, Set<S>)>,
    /// Makes the setter for an output without a function of its own; `None` if the listener takes only outputs that
    /// have one.
    others: Option<SetterOf<S>>,
}

impl<S> AccessorsListener<S> {
    /// Returns a listener without outputs.
    #[must_use]
    pub const fn new() -> Self {
        AccessorsListener { listed: ByName::new(), others: None }
    }

    /// Makes the listener pass the output `name`, with the type that it has in the model, to `set`. This replaces an earlier function for the
    /// same name.
    #[must_use]
    pub fn with(self, name: &str, set: impl Fn(&mut S, ValueRef<'_>) + Send + Sync + 'static) -> Self {
        self.add(name, None, set)
    }

    /// Makes the listener pass the output `name`, as a value of type `qtype`, to `set`.
    #[must_use]
    pub fn with_type(
        self,
        name: &str,
        qtype: QType,
        set: impl Fn(&mut S, ValueRef<'_>) + Send + Sync + 'static,
    ) -> Self {
        self.add(name, Some(qtype), set)
    }

    /// Makes the listener pass all outputs that are not listed to `set`. `set` gets the output's name, and its value with the type that it has in the
    /// model.
    ///
    /// ```
    /// use cembra::loaders::{AccessorsListener, Fields};
    /// use cembra::{Model, Options};
    ///
    /// let model = Model::parse("output a = 1 + 1; output b = \"text\"")?;
    /// let listener =
    ///     AccessorsListener::new().others(|log: &mut Vec<String>, name, value| log.push(format!("{name}: {value:?}")));
    /// let mut run = model.executor_between::<(), (), _>(&Fields::new(), &listener, &Options::default())?;
    /// let mut log = Vec::new();
    /// run.listen(&(), &mut log)?;
    /// assert_eq!(log, ["a: Int32(2)", "b: Text(\"text\")"]);
    /// # Ok::<(), cembra::Error>(())
    /// ```
    #[must_use]
    pub fn others(mut self, set: impl Fn(&mut S, &str, ValueRef<'_>) + Send + Sync + 'static) -> Self
    where
        S: 'static,
    {
        let set = Arc::new(set);
        self.others = Some(Box::new(move |name| {
            let (set, name) = (set.clone(), name.to_owned());
            Setter::new(move |sink, value| {
                set(sink, &name, value);
                Ok(())
            })
        }));
        self
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
        self.listed.insert(name, (qtype, set));
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
        let mut map = f.debug_map();
        map.entries(self.listed.iter().map(|(name, (qtype, _))| (name, qtype)));
        if self.others.is_some() {
            map.entry(&"..", &None::<QType>);
        }
        map.finish()
    }
}

impl<S> Listener<S> for AccessorsListener<S> {
    fn knows(&self, name: &str) -> bool {
        self.others.is_some() || self.listed.get(name).is_some()
    }

    fn qtype(&self, name: &str, given: &QType) -> QType {
        self.listed.get(name).and_then(|(qtype, _)| qtype.as_ref()).unwrap_or(given).clone()
    }

    fn names(&self) -> Vec<String> {
        self.listed.names()
    }

    fn bind(&self, name: &str, _: &QType) -> Result<Setter<S>, Error> {
        match (self.listed.get(name), &self.others) {
            (Some((_, set)), _) => Ok(Setter(set.clone())),
            (None, Some(others)) => Ok(others(name)),
            (None, None) => Err(Error::values(format!("no listener takes the output `{name}`"))),
        }
    }
}
