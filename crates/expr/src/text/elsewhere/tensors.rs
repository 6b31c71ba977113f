//! Hints for names from other tensor libraries, if cembra has no tensor operator of the same name. If cembra has such an operator, other code
//! suggests it.

use super::{Foreign, ForeignUse, of};

/// The hint for how to write a product of tensors.
pub(in crate::text) const BY_LABELS: &str =
    "write products of tensors with labels: `let c(\"i,j\") = a(\"i,k\") * b(\"k,j\")`";

const fn tensors(names: &'static [&'static str], hint: &'static str) -> Foreign {
    of(ForeignUse::Tensors, names, hint)
}

/// The table of tensor names from other libraries, with hints for what to write instead.
pub(super) const TENSORS: &[Foreign] = &[
    tensors(&["einsum", "matmul", "dot", "vdot", "tensordot", "inner", "outer", "mm", "bmm"], BY_LABELS),
    tensors(&["trace"], "write `let d(\"i\") = x(\"i,i\")` for the diagonal, and `tensor.sum(d)` for the trace"),
    tensors(&["diag", "diagonal"], "write `let d(\"i\") = x(\"i,i\")` for the diagonal"),
    tensors(&["norm"], "write `sqrt(tensor.sum(x * x))` for all elements"),
    tensors(
        &["std", "nanstd"],
        "write `sqrt(tensor.mean(tensor.square(x - tensor.mean(x))))` for all elements; for one axis, use `tensor.mean(x, 0, keep=true)` inside",
    ),
    tensors(
        &["var", "nanvar"],
        "write `tensor.mean(tensor.square(x - tensor.mean(x)))` for all elements; for one axis, use `tensor.mean(x, 0, keep=true)` inside",
    ),
    tensors(
        &["cov", "covariance", "corrcoef", "correlation"],
        "subtract the means, and multiply with labels: `let c(\"i,j\") = x(\"n,i\") * x(\"n,j\")`",
    ),
    tensors(
        &["sort", "argsort", "unique", "median", "quantile", "percentile", "topk", "denserank", "ordinalrank"],
        "no operator sorts tensors; in Rust a `TensorOp` of your own can",
    ),
    tensors(
        &["cumprod", "cummax", "cummin", "cumcount"],
        "no operator does this along an axis; in Rust a `TensorOp` of your own can",
    ),
    tensors(&["cumsum"], "`tensor.cum_sum(x, 0)` has running sums along an axis"),
    tensors(
        &["concatenate", "cat", "hstack", "vstack"],
        "write `tensor.concat((x, y), 0)` to join tensors along an axis",
    ),
    tensors(
        &["stack"],
        "add an axis to each tensor, and join them: `tensor.concat((tensor.reshape(x, (1, -1)), tensor.reshape(y, (1, -1))))`",
    ),
    tensors(&["where", "select", "choose"], "write `if c then x else y`"),
    tensors(&["count", "countnonzero"], "write `tensor.sum(if x != 0.0 then 1 else 0)` to count elements"),
    tensors(&["prod", "nanprod"], "use `tensor.product` for tensors"),
    tensors(&["amax", "nanmax"], "use `tensor.max` for tensors"),
    tensors(&["amin", "nanmin"], "use `tensor.min` for tensors"),
    tensors(&["swapaxes", "moveaxis", "permute"], "write `tensor.transpose(x, (1, 0))` for another order of the axes"),
    tensors(&["flatten", "ravel"], "write `tensor.reshape(x, -1)` for a tensor with one axis"),
    tensors(
        &["squeeze", "unsqueeze", "expanddims", "view"],
        "write `tensor.reshape(x, (1, -1))` for other axes; an extent of -1 is computed from the others",
    ),
    tensors(&["tile", "repeat", "broadcastto"], "write `tensor.broadcast(x, (4, 2, 3))` to repeat `x` along new axes"),
    tensors(
        &["roll", "flip", "fliplr", "flipud"],
        "write `tensor.take(x, [i64?]{2, 1, 0})` for the indices of an axis in another order",
    ),
    tensors(&["gather", "indexselect"], "write `tensor.take(x, i, 0)` for the indices `i` of axis 0"),
    tensors(&["split", "chunk"], "write `tensor.slice(x, 0, 2, 5)` for a range of indices on axis 0"),
    tensors(&["astype"], "write `cast(x, f32)` for elements of another type"),
    tensors(&["clip"], "write `clamp(x, 0.0, 1.0)`"),
    tensors(&["power"], "write `x ** 2.0`"),
    tensors(&["zeros", "ones", "full"], "write `tensor.broadcast(0.0, (2, 3))` for a tensor filled with one number"),
    tensors(
        &["arange", "linspace", "eye", "array", "asarray"],
        "write `[f64?]{0, 1, 2}` for a tensor with one axis; declare a larger one as an input",
    ),
    tensors(
        &["shape", "size", "ndim", "len"],
        "declare such a number as an input: a model cannot read the extents of a tensor",
    ),
    tensors(
        &["inv", "pinv", "det", "solve", "lstsq", "svd", "qr", "eig", "eigh", "cholesky"],
        "compute decompositions and solutions outside of the model; in Rust a tensor can be passed to faer as a matrix",
    ),
    tensors(&["isnan"], "write `x != x`, which is true for a NaN"),
    tensors(&["isinf"], "write `abs(x) == inf`"),
    tensors(&["isfinite"], "write `abs(x) < inf`"),
    tensors(&["isclose", "allclose"], "write `abs(x - y) < 1e-9`"),
    tensors(
        &["grad", "valueandgrad", "vjp", "jvp", "jacfwd", "jacrev", "hessian", "backward"],
        "write `tensor.grad(tensor.sum(x * x), x)`: the gradient of a number is an expression",
    ),
    tensors(
        &["jit", "checkpoint", "compile", "eval", "numpy", "item", "detach"],
        "leave this out: a model is compiled as a whole",
    ),
    tensors(
        &["vmap", "pmap", "vectorize", "applyalongaxis"],
        "leave this out, and write `x * 2.0`: operators are applied to whole tensors",
    ),
    tensors(
        &["scan", "foriloop", "whileloop"],
        "repeat the evaluation in your program: a model with tensors has no loops",
    ),
    tensors(&["cond"], "write `if rate > 0.0 then x else y`"),
    tensors(
        &["at", "set", "indexupdate"],
        "write `if x > 0.0 then x else y`, or join parts with `tensor.concat((x, y), 0)`: a value cannot change",
    ),
    tensors(
        &["rand", "randn", "random", "normal", "uniform", "bernoulli", "dropout"],
        "declare `input noise: tensor[f64, 2]`, and give random numbers with the data: the same inputs always give the same outputs",
    ),
    tensors(&["average"], "write `tensor.mean(x, 0)` for tensors"),
];
