//! A model as a scalar function of DataFusion. How columns become inputs is in `arguments`, the evaluation in `compiled`.

use crate::arguments::{check, coerced};
use crate::compiled::Compiled;
use crate::error;
use crate::options::FunctionOptions;
use crate::scope::QueryScope;
use cembra::errors::{Code, Diagnostic};
use cembra::{Model, QType, RunOptions};
use cembra_arrow::input_type;
use datafusion::arrow::array::new_empty_array;
use datafusion::arrow::datatypes::{DataType, Field as ArrowField, FieldRef};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::scalar::ScalarValue;
use std::any::Any;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

/// The most lists of argument types for which a function keeps compiled code. The oldest is dropped first.
const MOST_COMPILED: usize = 16;

/// The model compiled for these types of the inputs that it does not declare.
type ByTypes = (Vec<QType>, Arc<Compiled>);

/// A model as a scalar function. Its arguments are the model's inputs in the order of the text; at the end, inputs with a default may be left out.
///
/// Two functions are equal if their names, the texts of their models with all used files, and their options are equal. Queries that were planned with
/// a function keep it when another one is registered under its name.
#[derive(Clone)]
pub struct CembraFunction {
    name: String,
    model: Model,
    options: FunctionOptions,
    /// The names of the arguments.
    parameters: Vec<Arc<str>>,
    /// The types of inputs that the model does not declare, by name: those of a statement that made the function.
    types: Vec<(Arc<str>, QType)>,
    /// The number of arguments that must be given.
    least: usize,
    signature: Signature,
    /// The hash of all that tells functions apart.
    identity: blake3::Hash,
    /// The model compiled for lists of types, at most [`MOST_COMPILED`].
    compiled: Arc<Mutex<Vec<ByTypes>>>,
    /// The scope of the query that calls the function; `None` outside of queries, and in sessions without the rules.
    scope: Option<Arc<QueryScope>>,
}

impl CembraFunction {
    /// Returns `model` as the function `name`. The name is written in lower case in SQL, or in double quotes.
    ///
    /// # Errors
    /// If the types of all inputs are declared and the model cannot be compiled.
    pub fn new(name: &str, model: Model, options: FunctionOptions) -> Result<CembraFunction> {
        CembraFunction::of_model(name, &model, options).map_err(|error| error::of_text(error, &model))
    }

    /// Returns `model` as a function, like [`CembraFunction::new`], with the library's own error.
    pub(crate) fn of_model(
        name: &str,
        model: &Model,
        options: FunctionOptions,
    ) -> Result<CembraFunction, cembra::Error> {
        let parameters = model.program().inputs.iter().map(|input| input.name.clone()).collect();
        CembraFunction::with_parameters(name, model.clone(), parameters, Vec::new(), options)
    }

    /// Returns `model` as a function whose arguments are the inputs `parameters`, in this order. Inputs without a declared type have the type that
    /// `types` gives to their name, or else the type of the argument.
    pub(crate) fn with_parameters(
        name: &str,
        model: Model,
        parameters: Vec<Arc<str>>,
        types: Vec<(Arc<str>, QType)>,
        options: FunctionOptions,
    ) -> Result<CembraFunction, cembra::Error> {
        let inputs = &model.program().inputs;
        let has_default = |name: &Arc<str>| {
            let mut named = inputs.iter().filter(|input| input.name == *name);
            named.any(|input| input.default.is_some() || input.is_empty_by_default)
        };
        let least = parameters.len() - parameters.iter().rev().take_while(|name| has_default(name)).count();
        let is_typed =
            inputs.iter().all(|input| input.qtype.is_some() || types.iter().any(|(name, _)| *name == input.name));
        let volatility = if is_pure(&model, &options) { Volatility::Immutable } else { Volatility::Volatile };
        let signature = Signature::user_defined(volatility);
        let names = parameters.iter().map(|name| name.to_string()).collect();
        let signature = signature.clone().with_parameter_names(names).unwrap_or(signature);
        let identity = identity(name, &model, &parameters, &types, &options);
        let (name, compiled, scope) = (name.to_owned(), Arc::default(), None);
        let made =
            CembraFunction { name, model, options, parameters, types, least, signature, identity, compiled, scope };
        if is_typed {
            made.compiled_for(&[])?;
        }
        Ok(made)
    }

    /// The function of a model that `function` is; `None` for another function.
    pub(crate) fn of(function: &ScalarUDF) -> Option<&CembraFunction> {
        let inner: &dyn Any = function.inner().as_ref();
        inner.downcast_ref()
    }

    /// The model.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Returns the function for a query with this scope.
    pub(crate) fn in_scope(&self, scope: Arc<QueryScope>) -> CembraFunction {
        CembraFunction { scope: Some(scope), ..self.clone() }
    }

    /// The scope of the function's query; `None` outside of a query.
    pub(crate) fn scope(&self) -> Option<&Arc<QueryScope>> {
        self.scope.as_ref()
    }

    /// True if equal arguments always give equal results.
    pub(crate) fn is_immutable(&self) -> bool {
        self.signature.volatility == Volatility::Immutable
    }

    /// The options of an evaluation that begins now.
    fn run_options(&self) -> RunOptions {
        let options = RunOptions::new().on_error(self.options.on_error);
        let Some(scope) = &self.scope else { return options };
        let options = options.cancellation(scope.token());
        match scope.bytes_left() {
            Some(bytes) => {
                let limits = self.options.limits;
                options.limits(limits.array_bytes(bytes.min(limits.array_bytes)))
            }
            None => options,
        }
    }

    /// The model compiled for arguments with the types of `fields`.
    pub(crate) fn compiled(&self, fields: &[FieldRef]) -> Result<Arc<Compiled>> {
        self.compiled_for(fields).map_err(|error| error::of_text(error, &self.model))
    }

    /// The model compiled for arguments with the types of `fields`, if the arguments fit.
    ///
    /// # Errors
    /// If there are too many or too few arguments, if the model cannot be compiled, or if an input does not accept its argument.
    pub(crate) fn checked(&self, fields: &[FieldRef]) -> Result<Arc<Compiled>> {
        let (least, most) = (self.least, self.parameters.len());
        if !(least..=most).contains(&fields.len()) {
            let names = self.parameters.join(", ");
            let message = format!("{}({names}) is called with {} arguments", self.name, fields.len());
            let count = if least == most { most.to_string() } else { format!("{least} to {most}") };
            return Err(error::of_use(Diagnostic::new(Code::Arguments, message).hint(format!("give it {count}"))));
        }
        let compiled = self.compiled(fields)?;
        for (input, at) in compiled.inputs() {
            if let Some(field) = at.and_then(|at| fields.get(at)) {
                check(&self.name, input, field.data_type())?;
            }
        }
        Ok(compiled)
    }

    fn compiled_for(&self, fields: &[FieldRef]) -> Result<Arc<Compiled>, cembra::Error> {
        let given = |name: &Arc<str>| {
            if let Some((_, qtype)) = self.types.iter().find(|(of, _)| of == name) {
                return Some(qtype.clone());
            }
            let at = self.parameters.iter().position(|parameter| parameter == name)?;
            // Optional also for a column without nulls, so that the function returns the same type for both.
            fields.get(at).and_then(|field| input_type(&field.as_ref().clone().with_nullable(true)))
        };
        let untyped = self.model.program().inputs.iter().filter(|input| input.qtype.is_none());
        let types: Vec<(Arc<str>, QType)> =
            untyped.filter_map(|input| Some((input.name.clone(), given(&input.name)?))).collect();
        let key: Vec<QType> = types.iter().map(|(_, qtype)| qtype.clone()).collect();
        let lock = || self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = lock().iter().find(|(of, _)| *of == key) {
            return Ok(found.clone());
        }
        let made = Arc::new(Compiled::of(&self.name, &self.model, &self.parameters, &types, &self.options)?);
        let mut all = lock();
        if all.len() == MOST_COMPILED {
            all.remove(0);
        }
        all.push((key, made.clone()));
        Ok(made)
    }
}

/// True if the model's text names no operator that is impure: such an operator may give another result, or have another effect, each time.
fn is_pure(model: &Model, options: &FunctionOptions) -> bool {
    let is_named = |name| model.program().graph.find_name(name).is_some();
    let mut impure = options.registry.iter().filter(|(_, def)| def.overloads().iter().any(|overload| !overload.pure));
    !impure.any(|(_, def)| is_named(def.name))
}

/// Nullable columns of these types.
fn nullable(types: &[DataType]) -> Vec<FieldRef> {
    types.iter().map(|data_type| Arc::new(ArrowField::new("", data_type.clone(), true))).collect()
}

/// The hash of all that tells functions apart.
fn identity(
    name: &str,
    model: &Model,
    parameters: &[Arc<str>],
    types: &[(Arc<str>, QType)],
    options: &FunctionOptions,
) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    let mut add = |part: &[u8]| {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part);
    };
    add(name.as_bytes());
    add(format!("{:?} {:?}", options.on_error, options.limits).as_bytes());
    add(&(std::ptr::from_ref(options.registry) as usize).to_le_bytes());
    parameters.iter().for_each(|name| add(name.as_bytes()));
    types.iter().for_each(|(name, qtype)| add(format!("{name}: {qtype}").as_bytes()));
    match model.sources() {
        Some(sources) => {
            sources.texts().for_each(|(name, text)| [name, text].iter().for_each(|part| add(part.as_bytes())));
        }
        None => add(&model.to_binary()),
    }
    hasher.finalize()
}

impl fmt::Debug for CembraFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CembraFunction({}, {})", self.name, self.identity.to_hex())
    }
}

impl PartialEq for CembraFunction {
    fn eq(&self, other: &Self) -> bool {
        self.identity == other.identity
    }
}

impl Eq for CembraFunction {}

impl Hash for CembraFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.identity.as_bytes().hash(state);
    }
}

impl ScalarUDFImpl for CembraFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        // Arguments that do not fit are refused by `return_field_from_args`: an error here would lose its code.
        let Ok(compiled) = self.compiled(&nullable(types)) else { return Ok(types.to_vec()) };
        let mut all = types.to_vec();
        for (input, at) in compiled.inputs() {
            if let Some(own) = at.and_then(|at| all.get_mut(at)) {
                *own = coerced(input, own);
            }
        }
        Ok(all)
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        Ok(self.checked(&nullable(types))?.returned(&self.name).data_type().clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(self.checked(args.arg_fields)?.returned(&self.name))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let are_constants =
            self.is_immutable() && args.args.iter().all(|given| matches!(given, ColumnarValue::Scalar(_)));
        if args.number_rows == 0 {
            // Constants without rows are not evaluated: they may fail, and no row asks for them.
            return Ok(ColumnarValue::Array(new_empty_array(args.return_field.data_type())));
        }
        let rows = if are_constants { 1 } else { args.number_rows };
        let compiled = self.compiled(&args.arg_fields)?;
        let array = compiled
            .run(&args.args, rows, &self.run_options())
            .map_err(|error| error::of_function(&self.name, error))?;
        match are_constants {
            true => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?)),
            false => Ok(ColumnarValue::Array(array)),
        }
    }
}
