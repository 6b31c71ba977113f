//! `CREATE FUNCTION .. LANGUAGE cembra AS '<model>'`: models as functions that SQL defines.

use crate::error;
use crate::function::CembraFunction;
use crate::options::FunctionOptions;
use async_trait::async_trait;
use cembra::errors::{Code, Diagnostic};
use cembra::{Model, QType};
use cembra_arrow::{Strings, data_type_with, input_type};
use datafusion::arrow::datatypes::{DataType, Field as ArrowField, FieldRef};
use datafusion::error::Result;
use datafusion::execution::context::{FunctionFactory, RegisterFunction};
use datafusion::execution::session_state::SessionState;
use datafusion::logical_expr::{CreateFunction, Expr, ScalarUDF};
use std::sync::Arc;

/// The language that statements name.
const LANGUAGE: &str = "cembra";

/// Creates functions from the statements of SQL that define them.
///
/// ```
/// use cembra_datafusion::CreateFunctions;
/// use datafusion::prelude::SessionContext;
/// use std::sync::Arc;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> datafusion::error::Result<()> {
/// let ctx = SessionContext::new().with_function_factory(Arc::new(CreateFunctions::default()));
/// ctx.sql("CREATE FUNCTION total(sum DOUBLE, rate DOUBLE) RETURNS DOUBLE LANGUAGE cembra AS 'sum * (1.0 + (rate ?? 0.25))'").await?;
/// let rows = ctx.sql("SELECT total(8.0, NULL)").await?.collect().await?;
/// # assert_eq!(rows[0].column(0).as_ref(), &datafusion::arrow::array::Float64Array::from(vec![10.0]) as &dyn datafusion::arrow::array::Array);
/// # Ok(())
/// # }
/// ```
///
/// The arguments name the model's inputs, in any order. An input that the model declares must accept the argument's type; another input has the
/// argument's type, and may be `NULL`. The model must have one output, of the type that `RETURNS` names. A model of SQL can use no files.
#[derive(Clone, Debug, Default)]
pub struct CreateFunctions {
    options: FunctionOptions,
}

impl CreateFunctions {
    /// Returns a factory whose functions have these options. Their limits hold for the texts, too.
    #[must_use]
    pub fn new(options: FunctionOptions) -> Self {
        CreateFunctions { options }
    }

    fn function(&self, state: &SessionState, statement: &CreateFunction) -> Result<CembraFunction> {
        let name = &statement.name;
        let problem = |code, message: String, hint: &str| error::of_use(Diagnostic::new(code, message).hint(hint));
        if !statement.or_replace && state.scalar_functions().contains_key(name) {
            let message = format!("there is a function `{name}` already");
            return Err(problem(Code::Name, message, "write CREATE OR REPLACE FUNCTION, or another name"));
        }
        let language = statement.params.language.as_ref().map(|language| language.value.as_str());
        if !language.is_some_and(|language| language.eq_ignore_ascii_case(LANGUAGE)) {
            let message = format!("the language of function `{name}` must be {LANGUAGE}");
            return Err(problem(Code::Option, message, "write LANGUAGE cembra before AS"));
        }
        let Some(Expr::Literal(text, _)) = &statement.params.function_body else {
            let message = format!("function `{name}` has no text of a model");
            return Err(problem(Code::Syntax, message, "write AS '<model>'"));
        };
        let text = text.try_as_str().flatten().unwrap_or_default();
        let FunctionOptions { limits, registry, .. } = &self.options;
        let model = Model::parse_with(text, registry, limits).map_err(|error| error::of_text(error, text))?;

        let (mut parameters, mut model_types): (Vec<Arc<str>>, Vec<FieldRef>) = (Vec::new(), Vec::new());
        for argument in statement.args.iter().flatten() {
            let Some(name) = &argument.name else {
                let message = format!("an argument of function `{name}` has no name");
                return Err(problem(Code::Arguments, message, "write the name of the model's input before its type"));
            };
            if argument.default_expr.is_some() {
                let message = format!("argument `{}` of function `{}` has a default", name.value, statement.name);
                return Err(problem(
                    Code::Arguments,
                    message,
                    "write the default in the model, as in input x: f64? = 1.0",
                ));
            }
            let Some(input) = model.program().inputs.iter().find(|input| *input.name == *name.value) else {
                let message = format!("the model of function `{}` has no input `{}`", statement.name, name.value);
                let names: Vec<&str> = model.program().inputs.iter().map(|input| &*input.name).collect();
                let hint = format!("name one of its inputs: {}", names.join(", "));
                return Err(problem(Code::UnknownName, message, &hint));
            };
            if parameters.contains(&input.name) {
                let message = format!("function `{}` has two arguments `{}`", statement.name, name.value);
                return Err(problem(Code::Name, message, "give each argument another name"));
            }
            parameters.push(input.name.clone());
            model_types.push(Arc::new(ArrowField::new(&name.value, argument.data_type.clone(), true)));
        }
        let given = |input: &Arc<str>| parameters.contains(input);
        let lacking = model
            .program()
            .inputs
            .iter()
            .find(|input| !given(&input.name) && input.default.is_none() && !input.is_empty_by_default);
        if let Some(input) = lacking {
            let message = format!("function `{name}` has no argument for the input `{}` of its model", input.name);
            return Err(problem(Code::Arguments, message, "name each input without a default as an argument"));
        }
        for (input, field) in parameters.iter().zip(&model_types) {
            let is_declared = |of: &&cembra::program::Input| of.name == *input && of.qtype.is_some();
            if model.program().inputs.iter().find(is_declared).is_none() && input_type(field).is_none() {
                let message = format!(
                    "argument `{input}` of function `{name}` is {}, which no input can have",
                    field.data_type()
                );
                return Err(problem(Code::InputType, message, "use a type such as DOUBLE, BIGINT, TEXT or DATE"));
            }
        }
        let typed = |(input, field): (&Arc<str>, &FieldRef)| Some((input.clone(), input_type(field)?));
        let types = parameters.iter().zip(&model_types).filter_map(typed).collect();
        let function = CembraFunction::with_parameters(name, model, parameters, types, self.options.clone());
        let function = function.map_err(|error| error::of_text(error, text))?;
        let returned = function.checked(&model_types)?.returned(name);
        if let Some(promised) = &statement.return_type
            && !is_same(promised, returned.data_type())
        {
            let message =
                format!("function `{name}` returns {promised}, but its model computes {}", returned.data_type());
            return Err(problem(
                Code::TypeMismatch,
                message,
                "change RETURNS, or convert the output, as in to_float64(..)",
            ));
        }
        Ok(function)
    }
}

/// True if columns of both types have the same values: layouts of texts and bytes may differ.
fn is_same(promised: &DataType, returned: &DataType) -> bool {
    let views = |of: &DataType| {
        let scalar = cembra_arrow::scalar(of)?;
        data_type_with(&QType::Optional(scalar), Strings::Views)
            .filter(|_| matches!(of, DataType::Utf8 | DataType::LargeUtf8 | DataType::Binary | DataType::LargeBinary))
    };
    promised == returned || views(promised).is_some_and(|promised| promised == *returned)
}

#[async_trait]
impl FunctionFactory for CreateFunctions {
    async fn create(&self, state: &SessionState, statement: CreateFunction) -> Result<RegisterFunction> {
        let function = self.function(state, &statement)?;
        Ok(RegisterFunction::Scalar(Arc::new(ScalarUDF::from(function))))
    }
}
