//! Declares the operators on whole tensors for texts: their names, parameters and descriptions. They have no kernels: a
//! model with tensors is lowered to a graph of tensors, which defines each operator.

use crate::definition::{Example, OWN, OpDef, Typing, ex, param, param_or};
use crate::typing::TypeFault;
use cembra_expr::{Integers, Parameter};
use cembra_value::{Code, ScalarValue, Value};

const fn integer(value: i32) -> Value {
    Value::Scalar(ScalarValue::Int32(value))
}

/// The fault for a call of a tensor operator in a model whose values are scalars and arrays.
pub(crate) fn without_tensors(name: &str) -> TypeFault {
    let message = format!("{name} needs a tensor, but no input of the model is a tensor");
    TypeFault { code: Code::Tensors, ..TypeFault::mismatch(message, None) }
        .hint("declare one: `input x: tensor[f64, 2]`")
}

/// Default fields for the records of operators on whole tensors.
const WHOLE: OpDef = OpDef { typing: Typing::OfTensors, ..OWN };

const AXES: Parameter = param_or("axes", Value::Unspecified);
const AXIS: Parameter = param_or("axis", integer(-1));
const KEEP: Parameter = param_or("keep", Value::Scalar(ScalarValue::Boolean(false)));

macro_rules! whole {
    ($($id:ident $name:literal ($($params:expr),*) $text:literal $summary:literal $(, $integers:ident)?;)*) => {
        $(pub(crate) static $id: OpDef = OpDef {
            name: $name,
            summary: $summary,
            params: &[$($params),*],
            // There are no literal tensors, so the call is in a function that is never called.
            examples: {
                const EXAMPLES: &[Example] = &[ex($text, "1")];
                EXAMPLES
            },
            $(integers: Integers::$integers,)?
            ..WHOLE
        };)*
    };
}

whole! {
    AT "tensor._at" (param("x"), param("labels")) "fn f(x) = tensor._at(x, \"i,j\"); 1"
        "The tensor with one label per axis. Written `x(\"i,j\")`.";
    BIND "tensor._bind" (param("x"), param("labels")) "fn f(x) = tensor._bind(x, \"i,j\"); 1"
        "The tensor that a labelled expression defines, with its axes in the order of these labels. Written `let x(\"i,j\") = ..`.";
    ASSIGN "tensor._assign" (param("old"), param("x"), param("labels")) "fn f(x) = tensor._assign(x, x, \"i,j\"); 1"
        "`x` as the new value of `old`, which must have the same type and the same extents. Written `old(\"i,j\") = ..`.";
    WHOLE_SUM "tensor._whole.sum" (param("x")) "fn f(x) = tensor._whole.sum(x); 1"
        "The sum of all elements. Written `x(\"i,j\").sum()`.";
    WHOLE_PRODUCT "tensor._whole.product" (param("x")) "fn f(x) = tensor._whole.product(x); 1"
        "The product of all elements. Written `x(\"i,j\").product()`.";
    WHOLE_MIN "tensor._whole.min" (param("x")) "fn f(x) = tensor._whole.min(x); 1"
        "The smallest of all elements. Written `x(\"i,j\").min()`.";
    WHOLE_MAX "tensor._whole.max" (param("x")) "fn f(x) = tensor._whole.max(x); 1"
        "The largest of all elements. Written `x(\"i,j\").max()`.";
    WHOLE_ABSMIN "tensor._whole.absmin" (param("x")) "fn f(x) = tensor._whole.absmin(x); 1"
        "The smallest magnitude of all elements. Written `x(\"i,j\").absmin()`.";
    WHOLE_ABSMAX "tensor._whole.absmax" (param("x")) "fn f(x) = tensor._whole.absmax(x); 1"
        "The largest magnitude of all elements. Written `x(\"i,j\").absmax()`.";
    WHOLE_NORM "tensor._whole.norm" (param("x")) "fn f(x) = tensor._whole.norm(x); 1"
        "The square root of the sum of all squares. Written `x(\"i,j\").norm()`.", WidenFirst;
    WHOLE_SQUARED_NORM "tensor._whole.squared_norm" (param("x")) "fn f(x) = tensor._whole.squared_norm(x); 1"
        "The sum of all squares. Written `x(\"i,j\").squared_norm()`.";
    WHOLE_TRACE "tensor._whole.trace" (param("x")) "fn f(x) = tensor._whole.trace(x); 1"
        "The sum of the diagonal of a tensor with two axes. Written `x(\"i,j\").trace()`.";
    SUM "tensor.sum" (param("x"), AXES, KEEP) "fn f(x) = tensor.sum(x, (0, 1)); 1"
        "The sum over some axes, or over all; with `keep` these axes stay, with an extent of 1. Integers wrap around. 0 if there are no elements.";
    PRODUCT "tensor.product" (param("x"), AXES, KEEP) "fn f(x) = tensor.product(x, 0); 1"
        "The product over some axes, or over all; with `keep` these axes stay, with an extent of 1. Integers wrap around. 1 if there are no elements.";
    MAX "tensor.max" (param("x"), AXES, KEEP) "fn f(x) = tensor.max(x, 0, keep=true); 1"
        "The largest element over some axes, or over all; NaN if one of them is NaN. +0 is larger than -0.";
    MIN "tensor.min" (param("x"), AXES, KEEP) "fn f(x) = tensor.min(x, -1); 1"
        "The smallest element over some axes, or over all; NaN if one of them is NaN. -0 is smaller than +0.";
    ARGMAX "tensor.argmax" (param("x"), AXIS) "fn f(x) = tensor.argmax(x, 0); 1"
        "The index of the largest element along an axis, by default the last; the first one if several are equal, and the first NaN if there is one. Zeros of both signs are equal.";
    ARGMIN "tensor.argmin" (param("x"), AXIS) "fn f(x) = tensor.argmin(x, 0); 1"
        "The index of the smallest element along an axis, by default the last; the first one if several are equal, and the first NaN if there is one. Zeros of both signs are equal.";
    CUM_SUM "tensor.cum_sum" (param("x"), AXIS) "fn f(x) = tensor.cum_sum(x, 0); 1"
        "For each index of an axis, by default the last, the sum of the elements up to and including it. Sums are composed of sums of 1, 2, 4, .. elements, for f32 in f64; integers wrap around.";
    ANY "tensor.any" (param("x"), AXES, KEEP) "fn f(x) = tensor.any(x); 1"
        "True if at least one element is true, over some axes or over all.";
    ALL "tensor.all" (param("x"), AXES, KEEP) "fn f(x) = tensor.all(x); 1"
        "True if every element is true, over some axes or over all.";
    MEAN "tensor.mean" (param("x"), AXES, KEEP) "fn f(x) = tensor.mean(x, 0); 1"
        "The sum over some axes, or over all, divided by the number of its terms.", WidenFirst;
    SOFTMAX "tensor.softmax" (param("x"), AXIS) "fn f(x) = tensor.softmax(x); 1"
        "`e / sum(e)` along an axis, by default the last, where `e` is `exp(x - max(x))`.", WidenFirst;
    LOG_SOFTMAX "tensor.log_softmax" (param("x"), AXIS) "fn f(x) = tensor.log_softmax(x); 1"
        "The logarithm of `tensor.softmax` along an axis, by default the last.", WidenFirst;
    LOGSUMEXP "tensor.logsumexp" (param("x"), AXIS) "fn f(x) = tensor.logsumexp(x, 0); 1"
        "`log(sum(exp(x)))` along an axis, by default the last. The result does not have this axis.", WidenFirst;
    LAYER_NORM "tensor.layer_norm" (param("x"), AXIS, param_or("eps", Value::Scalar(ScalarValue::WeakFloat(1e-5))))
        "fn f(x) = tensor.layer_norm(x, -1, 1e-6); 1"
        "`(x - mean(x)) / sqrt(mean((x - mean(x)) ** 2) + eps)` along an axis, by default the last.", WidenFirst;
    CROSS_ENTROPY "tensor.softmax_cross_entropy" (param("z"), param("y"))
        "fn f(z, y) = tensor.softmax_cross_entropy(z, y); 1"
        "The mean over all rows of `-sum(y * log_softmax(z))`, for two matrices.", Widen;
    OF_ARRAY "tensor.of_array" (param("x")) "fn f(x) = tensor.of_array(x); 1"
        "The elements of an array as a tensor with one axis. A missing element is an error.";
    TO_ARRAY "array.of_tensor" (param("x")) "fn f(x) = array.of_tensor(x); 1"
        "The elements of a tensor with one axis as an array.";
    TRANSPOSE "tensor.transpose" (param("x"), AXES) "fn f(x) = tensor.transpose(x, (1, 0, 2)); 1"
        "The same elements with the axes in another order, by default in reverse: axis `i` of the result is axis `axes.i` of `x`.";
    RESHAPE "tensor.reshape" (param("x"), param("extents")) "fn f(x) = tensor.reshape(x, (2, -1)); 1"
        "The same elements, in the same order, with other extents. One extent may be -1; it is computed from the others.";
    BROADCAST "tensor.broadcast" (param("x"), param("extents")) "fn f(x) = tensor.broadcast(x, (2, 3)); 1"
        "The tensor with the extents `extents`: it is repeated along new axes, which come first, and along axes of extent 1.";
    SLICE "tensor.slice" (param("x"), param("axis"), param("start"), param("stop"), param_or("step", integer(1)))
        "fn f(x) = tensor.slice(x, 0, 2, 10, 2); 1"
        "The part of a tensor that has the indices of an axis from `start` to before `stop`, in steps of at least 1. A negative index counts from the end.";
    BLOCK "tensor.block" (param("x"), param("start"), param("stop")) "fn f(x) = tensor.block(x, [0, 0], [2, 3]); 1"
        "The tiles of each axis from `start` to before `stop`, which are two lists with one number per axis. Written `x(\"i,j\").block([0, 0], [2, 3])`.";
    TAKE "tensor.take" (param("x"), param("indices"), param_or("axis", integer(0)))
        "fn f(x, i) = tensor.take(x, i); 1"
        "The elements at the indices of an axis that another tensor names. The axes of that tensor take the place of the axis.";
    CONCAT "tensor.concat" (param("tensors"), param_or("axis", integer(0))) "fn f(x, y) = tensor.concat((x, y)); 1"
        "The tensors of a tuple, joined along an axis.";
    GRAD "tensor.grad" (param("y"), param("x")) "fn f(x) = tensor.grad(tensor.sum(x * x), x); 1"
        "The gradient of `y`, which is a float without axes, with respect to `x`: one derivative per element of `x`.";
}
