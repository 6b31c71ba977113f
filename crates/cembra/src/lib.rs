//! cembra compiles typed expressions with missing values to native code.
//!
//! A [`Model`] is parsed from text or built in Rust; an [`Executor`] is a model compiled for given input types, shared
//! between threads; a [`Session`] or a [`ModelExecutor`] owns a frame and runs it. Rust structs are read and written in
//! place:
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

// Lets code of the derive macros name this crate also when they are used inside of it.
extern crate self as cembra;

mod binding;
#[cfg(doctest)]
mod docs;
#[cfg(feature = "faer")]
mod faer_matrices;
#[cfg(feature = "json")]
mod json;
mod model;
mod names;
mod object;
mod options;
mod pool;
pub mod reference;
mod tensor_graph;
#[cfg(feature = "tiles")]
pub mod tiles;

/// The parts of a [`Program`]: its inputs and outputs, and the nodes of its graph.
pub mod program {
    pub use cembra_expr::{Input, Node, Output};
}

pub use binding::combine::{Chain, Filtered};
pub use binding::field_types::FieldType;
pub use binding::fields::{Input, InputValue, Output, OutputValue};
pub use binding::listener::{AccessorsListener, Listener, Setter};
pub use binding::loader::{Accessor, AccessorsLoader, Fields, Loader, LoaderRow};
pub use binding::plain_fields::Mask;
pub use binding::typed::ModelExecutor;
pub use cembra_derive::{FieldType, Input, Output};
pub use cembra_engine::rows::{
    ArrayView, Bitmap, BitmapMut, ColumnMut, InputColumn, Keys, ListOffsets, OutputColumn, column_bytes,
};
pub use cembra_engine::{
    Backend, Batch, BatchResult, Counters, Counts, Event, Executor, Field, Metrics, Profile, RowFailure, RowPlayer,
    RunOptions, Session, Signature, Tiering, install_metrics, profile_code,
};
pub use cembra_expr::{
    AxisCut, Builder, Expr, Graph, Literal, NodeId, Program, Resolver, Sources, UsedFile, format, is_plain_name,
    parse_type, parse_value, parse_values, print_default, print_expression, print_input_type, print_type, print_value,
    read_binary, write_printed,
};
pub use cembra_native::{CodeCache, Target, Tier};
pub use cembra_ops::limits as operator_limits;
pub use cembra_ops::{Fallible, Reason, Registry, UserFunction, UserOperator, time_zones};
pub use cembra_prepare::{Extension, Id, Mode, Rewriter};
pub use cembra_runtime::{
    ArrayKind, Bytes, Cancellation, Context, Date, Duration, EdgeType, Evaluations, FaultKind, MachineType, Optional,
    QType, RuntimeFn, STATUS_OK, Scalar, ShapeType, Text, Timestamp, live_code_bytes, live_code_limit,
    set_live_code_limit,
};
pub use cembra_tape::{Bin, Cell, Cmp, Datum, Presence, Shift, Tape, Un, Val};
pub use cembra_value::{Array, ArrayBuilder, ArrayData, Edge, EdgeForm, OnError, Promise, StringViews, Words};
pub use cembra_value::{
    CacheCounters, Code, Diagnostic, Error, Label, Limit, Limits, Renderer, ScalarValue, Source, Span, Tensor, Value,
    ValueColumn, ValueRef, Warnings,
};
#[cfg(feature = "json")]
pub use json::serialized::SerializeExecutor;
#[cfg(feature = "json")]
pub use json::{Json, JsonColumns, JsonExecutor, JsonRow, JsonRows};
pub use model::Model;
pub use model::constant::{cast_literal, literal_type};
pub use model::coverage::Branch;
pub use model::explain::{Stage, print};
pub use model::folder::{Folder, GivenFiles};
pub use model::model_tests::{Mismatch, TestFailure, TestReport};
pub use model::set::{FailedModel, ModelSet, Reload};
pub use model::summary::{Summary, WorkSummary};
pub use model::text_file::{read_text, without_mark};
pub use object::Object;
pub use options::Options;
pub use pool::Pool;

/// Types named in the code that the derive macros generate. They change without notice; users derive [`Input`], [`Output`] and [`FieldType`] instead.
#[doc(hidden)]
pub mod derived {
    pub use crate::binding::field_types::ModelScalar;
    pub use crate::binding::fields::{FieldProbe, InputField, OtherField, OutputField};
    pub use crate::binding::shapes::{InputShape, OutputList};
    pub use crate::binding::struct_fields::Part;
    pub use cembra_runtime::FramePtr;
    pub use cembra_value::ListBuilder;
}

/// Types for the project's other crates: the readers and writers of tables, the command and the language server. They change without notice.
#[doc(hidden)]
pub mod doors {
    #[cfg(feature = "json")]
    pub use crate::json::{JsonKind, JsonMisfit, JsonMoments, JsonText};
    pub use crate::model::explain::{Machine, Origin};
    pub use cembra_engine::rows::{KeyType, OutputParts, OutputRoom};
    pub use cembra_runtime::RowsPass;
    #[cfg(feature = "tiles")]
    pub use cembra_tiles::{ArrayPlace, TileSource};
    pub use cembra_value::{SourcePlace, compile_until};
}

/// Tensors: values of any rank and views of them, graphs of operators over them, and user-defined operators.
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
    shared::<Registry>();
    shared::<Cancellation>();
    shared::<Counters>();
    shared::<CodeCache>();
    shared::<Accessor<Value>>();
    shared::<Setter<Value>>();
    shared::<ModelSet>();
    shared::<Pool<Session>>();
    shared::<Pool<ModelExecutor<(), f64>>>();
    sent::<Session>();
    sent::<ModelExecutor<(), f64, Value>>();
};
