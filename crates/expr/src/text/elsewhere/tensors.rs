//! Hints for names from other tensor libraries, if cembra has no tensor operator of the same name. If cembra has such an operator, other code
//! suggests it.

use super::{Foreign, ForeignUse, of};

/// The hint for products of tensors.
pub(in crate::text) const BY_LABELS: &str =
    "products of tensors are written by labels: `let c(\"i,j\") = a(\"i,k\") * b(\"k,j\")`";

const fn tensors(names: &'static [&'static str], form: &'static str) -> Foreign {
    of(ForeignUse::Tensors, names, form)
}

/// The table of tensor names from other libraries, with hints for what to write instead.
pub(super) const TENSORS: &[Foreign] = &[
    tensors(&["einsum", "matmul", "dot", "vdot", "tensordot", "inner", "outer", "mm", "bmm"], BY_LABELS),
    tensors(&["trace"], "the diagonal is `let d(\"i\") = x(\"i,i\")`, and the trace `tensor.sum(d)`"),
    tensors(&["diag", "diagonal"], "the diagonal is `let d(\"i\") = x(\"i,i\")`"),
    tensors(&["norm"], "of all elements it is `sqrt(tensor.sum(x * x))`"),
    tensors(
        &["std", "nanstd"],
        "of all elements it is `sqrt(tensor.mean(tensor.square(x - tensor.mean(x))))`; of an axis, with `tensor.mean(x, 0, keep=true)` inside",
    ),
    tensors(
        &["var", "nanvar"],
        "of all elements it is `tensor.mean(tensor.square(x - tensor.mean(x)))`; of an axis, with `tensor.mean(x, 0, keep=true)` inside",
    ),
    tensors(
        &["cov", "covariance", "corrcoef", "correlation"],
        "take the means away, and multiply by labels: `let c(\"i,j\") = x(\"n,i\") * x(\"n,j\")`",
    ),
    tensors(
        &["sort", "argsort", "unique", "median", "quantile", "percentile", "topk", "denserank", "ordinalrank"],
        "nothing sorts tensors in a model; in Rust a `TensorOp` of your own can",
    ),
    tensors(
        &["cumprod", "cummax", "cummin", "cumcount"],
        "nothing goes along an axis like this in a model; in Rust a `TensorOp` of your own can",
    ),
    tensors(&["cumsum"], "`tensor.cum_sum(x, 0)` has running sums along an axis"),
    tensors(&["concatenate", "cat", "hstack", "vstack"], "`tensor.concat((x, y), 0)` joins tensors along an axis"),
    tensors(
        &["stack"],
        "give each the new axis, and join them: `tensor.concat((tensor.reshape(x, (1, -1)), tensor.reshape(y, (1, -1))))`",
    ),
    tensors(&["where", "select", "choose"], "choose by `if c then x else y`"),
    tensors(&["count", "countnonzero"], "`tensor.sum(if x != 0.0 then 1 else 0)` counts elements"),
    tensors(&["prod", "nanprod"], "of whole tensors it is `tensor.product`"),
    tensors(&["amax", "nanmax"], "of whole tensors it is `tensor.max`"),
    tensors(&["amin", "nanmin"], "of whole tensors it is `tensor.min`"),
    tensors(&["swapaxes", "moveaxis", "permute"], "`tensor.transpose(x, (1, 0))` has the axes in another order"),
    tensors(&["flatten", "ravel"], "`tensor.reshape(x, -1)` has one axis"),
    tensors(
        &["squeeze", "unsqueeze", "expanddims", "view"],
        "`tensor.reshape(x, (1, -1))` has other axes; one extent may be -1, which is found from the others",
    ),
    tensors(&["tile", "repeat", "broadcastto"], "`tensor.broadcast(x, (4, 2, 3))` is `x` for each index of new axes"),
    tensors(
        &["roll", "flip", "fliplr", "flipud"],
        "`tensor.take(x, [i64?]{2, 1, 0})` has the indices of an axis in any order",
    ),
    tensors(&["gather", "indexselect"], "`tensor.take(x, i, 0)` has the indices of an axis that `i` names"),
    tensors(&["split", "chunk"], "`tensor.slice(x, 0, 2, 5)` has some indices of axis 0"),
    tensors(&["astype"], "`cast(x, f32)` has elements of another type"),
    tensors(&["clip"], "`clamp(x, 0.0, 1.0)` is cut off at both ends"),
    tensors(&["power"], "powers are written `x ** 2.0`"),
    tensors(&["zeros", "ones", "full"], "`tensor.broadcast(0.0, (2, 3))` is a tensor of one number"),
    tensors(
        &["arange", "linspace", "eye", "array", "asarray"],
        "a literal is a tensor of one axis, `[f64?]{0, 1, 2}`; what is larger is an input",
    ),
    tensors(
        &["shape", "size", "ndim", "len"],
        "extents are no values in a model, which is the same for all of them: give such a number as an input",
    ),
    tensors(
        &["inv", "pinv", "det", "solve", "lstsq", "svd", "qr", "eig", "eigh", "cholesky"],
        "there are no decompositions and solvers; in Rust a tensor can be lent to faer as a matrix",
    ),
    tensors(&["isnan"], "of a NaN `x != x` is true"),
    tensors(&["isinf"], "write `abs(x) == inf`"),
    tensors(&["isfinite"], "write `abs(x) < inf`"),
    tensors(&["isclose", "allclose"], "write `abs(x - y) < 1e-9`"),
    tensors(
        &["grad", "valueandgrad", "vjp", "jvp", "jacfwd", "jacrev", "hessian", "backward"],
        "the gradient of a number without axes is an expression: `tensor.grad(tensor.sum(x * x), x)`",
    ),
    tensors(
        &["jit", "checkpoint", "compile", "eval", "numpy", "item", "detach"],
        "a model is compiled as a whole: leave this out",
    ),
    tensors(
        &["vmap", "pmap", "vectorize", "applyalongaxis"],
        "operators are of whole tensors, whatever their extents: leave this out, and write `x * 2.0`",
    ),
    tensors(
        &["scan", "foriloop", "whileloop"],
        "nothing loops in a model with tensors: the program runs its session again and again",
    ),
    tensors(&["cond"], "choose by `if rate > 0.0 then x else y`"),
    tensors(
        &["at", "set", "indexupdate"],
        "a value does not change: choose by `if x > 0.0 then x else y`, or join parts with `tensor.concat((x, y), 0)`",
    ),
    tensors(
        &["rand", "randn", "random", "normal", "uniform", "bernoulli", "dropout"],
        "a model gives the same for the same inputs: give random numbers as an input, `input noise: tensor[f64, 2]`",
    ),
    tensors(&["average"], "of whole tensors it is `tensor.mean(x, 0)`"),
];
