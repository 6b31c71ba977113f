//! A compiler for typed expressions with missing values. The text of a model becomes one native function, or is run by an interpreter that gives the
//! same bits.
//!
//! ```
//! use cembra::{Model, Options, Optional};
//!
//! #[derive(cembra::Input)]
//! struct Coefficients { a: f32, b: f64, c: f64 }
//!
//! #[derive(cembra::Output)]
//! struct Roots { first: Optional<f64>, second: Optional<f64> }
//!
//! let model = Model::parse(
//!     "let d = b*b - 4.0*a*c
//!      let s = math.sqrt(d)
//!      output first  = where(d >= 0, (-b + s) / 2.0 / a)
//!      output second = where(d >= 0, (-b - s) / 2.0 / a)",
//! )?;
//! let mut roots = model.executor::<Coefficients, Roots>(&Options::default())?;
//! let found = roots.run(&Coefficients { a: 1.0, b: -3.0, c: 2.0 })?;
//! assert_eq!((found.first.get(), found.second.get()), (Some(2.0), Some(1.0)));
//! # Ok::<(), cembra::Error>(())
//! ```
//!
//! # Models and runs
//!
//! A [`Model`] is the text of a program after parsing and type checks. [`Options`] say how it is compiled: types of inputs, the [`Backend`], and
//! [`Limits`]. A compiled model is run in one of four ways:
//!
//! * [`ModelExecutor`]: the inputs are one Rust type, and the outputs another. This is the fastest way for single rows.
//! * [`Session`]: inputs are set and outputs are read by name or position, as [`Value`]s. This way is for models that are known at run time only.
//! * [`Batch`]: many rows, as slices of structs or as [`columns`]. [`RunOptions`] set threads, a [`Cancellation`], a time limit, and the treatment of
//!   rows that fail ([`OnError`]); a run returns a [`BatchResult`], with the first rows that failed ([`RowFailure`]).
//! * [`Executor`]: a compiled model that threads share. It makes sessions and batches, and its [`Signature`] has a [`Field`] for each input and output.
//!
//! A [`ModelSet`] has the models of a folder by name and loads files again when they change. A [`Pool`] lends executors and sessions to threads.
//!
//! # Structs of Rust as inputs and outputs
//!
//! The derives [`Input`](derive@Input), [`Output`](derive@Output) and [`FieldType`](derive@FieldType) connect fields of structs with inputs and
//! outputs by name. [`Mask`] is the type of a field that has no value, but is present or missing. [`loaders`] reads rows of any other type.
//!
//! # Values
//!
//! [`QType`] is the type of a value, and [`Scalar`] the type of a scalar or of an array's elements. [`Optional`] is a scalar that may be missing;
//! [`Text`], [`Bytes`], [`Date`], [`Timestamp`] and [`Duration`] are scalars without a counterpart in Rust. [`Value`] holds any value, and
//! [`ValueRef`] borrows one; [`ScalarValue`], [`Array`], [`Edge`] (the groups of an array's elements) and [`Tensor`] are the kinds of values. The
//! module [`values`] has further types for arrays and edges.
//!
//! # Errors
//!
//! Every fallible function returns an [`Error`], with a code, the place in the text, and a hint. [`FaultKind`] is the reason for which an operator
//! failed in a row. The module [`errors`] has the types inside an error.
//!
//! # Modules by topic
//!
//! * [`columns`]: the memory of input and output columns.
//! * [`json`]: rows of JSON, and rows of types with `serde`'s traits.
//! * [`tensor`]: values of any rank, and graphs of tensor operators.
//! * [`tiles`]: tensors in tiles, with statements such as `c("i,j") = a("i,k") * b("k,j")`.
//! * [`program`]: parsing, building and printing programs.
//! * [`operators`]: the registry of operators, and user-defined operators.
//! * [`native`]: native code, its cache and object files.
//! * [`metrics`]: counts and times of what a program compiles and runs.
//! * [`testing`]: the results of the tests in a model's text.
//! * [`explain`]: the stages of a model's compilation, as text.

// The code that the derive macros generate names this crate `cembra`, also when the macros are used in this crate.
extern crate self as cembra;

mod binding;
#[cfg(doctest)]
mod docs;
#[cfg(feature = "faer")]
mod faer_matrices;
#[cfg(feature = "json")]
pub mod json;
mod model;
mod names;
mod object;
pub mod operators;
mod options;
mod pool;
mod tensor_graph;
#[cfg(feature = "tiles")]
pub mod tiles;

// Models, and what runs them.
pub use binding::typed::ModelExecutor;
pub use cembra_engine::{Backend, Batch, BatchResult, Executor, Field, RowFailure, RunOptions, Session, Signature};
pub use cembra_runtime::Cancellation;
pub use cembra_value::OnError;
pub use model::Model;
pub use model::set::{FailedModel, ModelSet, Reload};
pub use options::Options;
pub use pool::Pool;

// Structs of Rust as inputs and outputs.
pub use binding::field_types::FieldType;
pub use binding::fields::{Input, InputValue, Output, OutputValue};
pub use binding::plain_fields::Mask;
pub use cembra_derive::{FieldType, Input, Output};

// Values and types.
pub use cembra_runtime::{Bytes, Date, Duration, Optional, QType, Scalar, Text, Timestamp};
pub use cembra_value::{Array, Edge, ScalarValue, Tensor, Value, ValueRef};

// Errors and limits.
pub use cembra_runtime::FaultKind;
pub use cembra_value::{Error, Limits};

/// Columns for evaluating many rows with a [`Batch`]: input columns in the caller's memory, and memory that output columns are written to.
pub mod columns {
    pub use cembra_engine::rows::{
        ArrayView, Bitmap, BitmapMut, ColumnMut, InputColumn, Keys, ListOffsets, OutputColumn, column_bytes,
    };
    pub use cembra_value::{StringViews, ValueColumn};
}

/// The parts of an [`Error`], the warnings about a model's text, and the renderer that prints both beside the text.
pub mod errors {
    pub use cembra_value::{Code, Diagnostic, Label, Limit, Renderer, Source, Span, Warnings};
}

/// The stages of a model's compilation as text, and a compiled model in numbers: see [`Model::explain`] and [`Executor`].
pub mod explain {
    pub use crate::model::explain::{ExpressionNode, FrameUse, SlotBox, Stage, print};
    pub use crate::model::summary::{Summary, WorkSummary};
    pub use cembra_engine::RowPlayer;
    pub use cembra_runtime::{LineKind, Listing, ListingLine};
}

/// Loaders, which read inputs from rows of any type, and listeners, which receive outputs. Structs that derive `Input` or `Output` need neither.
pub mod loaders {
    pub use crate::binding::combine::{Chain, Filtered};
    pub use crate::binding::listener::{AccessorsListener, Listener, Setter};
    pub use crate::binding::loader::{Accessor, AccessorsLoader, Fields, Loader, LoaderRow};
}

/// Metrics, which count what a program compiles and runs, and profiles, which tell the time that each row and operator takes.
pub mod metrics {
    pub use cembra_engine::{Counters, Counts, Event, Metrics, Profile, install_metrics, profile_code};
    pub use cembra_value::CacheCounters;
}

/// Native code: its target and tiers (levels of optimisation), the cache of code on disk, object files, and the limit of memory for code.
pub mod native {
    pub use crate::object::Object;
    pub use cembra_engine::Tiering;
    pub use cembra_native::{CodeCache, Target, Tier};
    pub use cembra_runtime::{live_code_bytes, live_code_limit, set_live_code_limit};
}

/// Programs: the text of a model parsed into a graph of nodes, built without text by a [`Builder`](program::Builder), printed as text again, or read from
/// the binary form.
pub mod program {
    pub use crate::model::constant::{cast_literal, literal_type};
    pub use crate::model::folder::{Folder, GivenFiles};
    pub use crate::model::text_file::{read_text, without_mark};
    pub use cembra_expr::{
        AxisCut, Builder, Expr, Graph, Input, Literal, Node, NodeId, Output, Program, Resolver, Sources, UsedFile,
        format, is_plain_name, print_default, print_expression, print_input_type, read_binary,
    };
}

/// The tests that a model's text contains: their results ([`Model::run_tests`]), and the branches of the model that the tests took.
pub mod testing {
    pub use crate::model::coverage::Branch;
    pub use crate::model::model_tests::{Mismatch, TestFailure, TestReport};
}

/// Types for building and reading arrays and edges (the groups of an array's elements), and functions that parse and print types and values.
pub mod values {
    pub use cembra_expr::{parse_type, parse_value, parse_values, print_type, print_value, write_printed};
    pub use cembra_runtime::{ArrayKind, EdgeType, ShapeType};
    pub use cembra_value::{ArrayBuilder, ArrayData, EdgeForm, Promise, Words};
}

/// Types that the code generated by the derive macros uses. They change without notice; users derive [`Input`], [`Output`] and [`FieldType`] instead.
#[doc(hidden)]
pub mod derived {
    pub use crate::binding::field_types::ModelScalar;
    pub use crate::binding::fields::{FieldProbe, InputField, OtherField, OutputField};
    pub use crate::binding::shapes::{InputShape, OutputList};
    pub use crate::binding::struct_fields::Part;
    pub use cembra_runtime::FramePtr;
    pub use cembra_value::ListBuilder;
}

/// Types for the project's other crates: the readers and writers of tables, the command and the language server. These types change without notice.
#[doc(hidden)]
pub mod doors {
    #[cfg(feature = "json")]
    pub use crate::json::moments::JsonMoments;
    #[cfg(feature = "json")]
    pub use crate::json::text::{JsonKind, JsonText};
    pub use crate::model::explain::{Machine, Origin};
    pub use cembra_engine::rows::{KeyType, OutputParts, OutputRoom};
    pub use cembra_runtime::RowsPass;
    #[cfg(feature = "tiles")]
    pub use cembra_tiles::{ArrayPlace, TileSource};
    pub use cembra_value::{SourcePlace, compile_until};
}

/// Tensors: values of any rank and views of them, graphs of tensor operators, and user-defined tensor operators.
///
/// A model in the text language is compiled with [`Model::compile`], whether its values are scalars or tensors, and run by [`Session::run_tensors`]
/// or [`Session::evaluate`]. A graph is compiled with [`CompileGraph::compile`](tensor::CompileGraph::compile).
pub mod tensor {
    #[cfg(feature = "faer")]
    pub use crate::faer_matrices::{as_mat_ref, from_mat_ref};
    pub use crate::model::explain::LISTED_EXTENT;
    pub use crate::tensor_graph::CompileGraph;
    pub use cembra_engine::{MOST_MODEL_NODES, OutputMemory, Reader, TensorPlan};
    pub use cembra_tensor::{
        Buffer, Data, Element, ElementForm, ElementReads, Exactness, Half, HalfTensor, Labels, Layout, MOST_AXES,
        MOST_FACTORS, MOST_LABELS, MapOperand, PlanCounters, Reduction, RewriteRule, RuleMatch, Slice, Tensor,
        TensorErrorKind, TensorGraph, TensorMut, TensorNodeId, TensorOp, TensorType, bf16, f16, same_bits,
    };
}

/// Checks at compile time which tensor types threads may share.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<tensor::TensorGraph>();
    shared::<tensor::TensorPlan>();
    shared::<tensor::Reader<'static>>();
};

/// Checks at compile time which types threads may share, and which may only move from thread to thread.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    const fn sent<T: Send>() {}
    shared::<Model>();
    shared::<Options>();
    shared::<Executor>();
    shared::<Error>();
    shared::<Tensor>();
    shared::<Value>();
    shared::<ValueRef<'static>>();
    shared::<operators::Registry>();
    shared::<Cancellation>();
    shared::<metrics::Counters>();
    shared::<native::CodeCache>();
    shared::<loaders::Accessor<Value>>();
    shared::<loaders::Setter<Value>>();
    shared::<ModelSet>();
    shared::<Pool<Session>>();
    shared::<Pool<ModelExecutor<(), f64>>>();
    sent::<Session>();
    sent::<ModelExecutor<(), f64, Value>>();
};
