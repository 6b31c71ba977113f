//! What people write who know tensors of other libraries, and how that is written here, or that it is not there. The words are those that have no
//! operator on tensors of their name; of the others the operator itself is named.

/// How products of tensors are written.
pub(super) const BY_LABELS: &str =
    "products of tensors are written by labels: `let c(\"i,j\") = a(\"i,k\") * b(\"k,j\")`";

/// Words, and what to write in their place.
const WORDS: &[(&[&str], &str)] = &[
    (&["einsum", "matmul", "dot", "vdot", "tensordot", "inner", "outer", "mm", "bmm"], BY_LABELS),
    (&["trace"], "the diagonal is `let d(\"i\") = x(\"i,i\")`, and the trace `tensor.sum(d)`"),
    (&["diag", "diagonal"], "the diagonal is `let d(\"i\") = x(\"i,i\")`"),
    (&["norm"], "of all elements it is `sqrt(tensor.sum(x * x))`"),
    (
        &["std", "nanstd"],
        "of all elements it is `sqrt(tensor.mean(tensor.square(x - tensor.mean(x))))`; of an axis, with `tensor.mean(x, 0, keep=true)` inside",
    ),
    (
        &["var", "nanvar"],
        "of all elements it is `tensor.mean(tensor.square(x - tensor.mean(x)))`; of an axis, with `tensor.mean(x, 0, keep=true)` inside",
    ),
    (
        &["cov", "covariance", "corrcoef", "correlation"],
        "take the means away, and multiply by labels: `let c(\"i,j\") = x(\"n,i\") * x(\"n,j\")`",
    ),
    (
        &["sort", "argsort", "unique", "median", "quantile", "percentile", "topk", "dense_rank", "ordinal_rank"],
        "nothing sorts tensors in a model; in Rust a `TensorOp` of your own can",
    ),
    (
        &["cumsum", "cumprod", "cum_sum", "cum_max", "cum_min", "cum_count"],
        "nothing goes along an axis like this in a model; in Rust a `TensorOp` of your own can",
    ),
    (&["concatenate", "cat", "hstack", "vstack"], "`tensor.concat((x, y), 0)` joins tensors along an axis"),
    (
        &["stack"],
        "give each the new axis, and join them: `tensor.concat((tensor.reshape(x, (1, -1)), tensor.reshape(y, (1, -1))))`",
    ),
    (&["where", "select", "choose"], "choose by `if c then x else y`"),
    (&["count", "count_nonzero"], "`tensor.sum(if x != 0.0 then 1 else 0)` counts elements"),
    (&["prod", "nanprod"], "of whole tensors it is `tensor.product`"),
    (&["amax", "nanmax"], "of whole tensors it is `tensor.max`"),
    (&["amin", "nanmin"], "of whole tensors it is `tensor.min`"),
    (&["swapaxes", "moveaxis", "permute"], "`tensor.transpose(x, (1, 0))` has the axes in another order"),
    (&["flatten", "ravel"], "`tensor.reshape(x, -1)` has one axis"),
    (
        &["squeeze", "unsqueeze", "expand_dims", "view"],
        "`tensor.reshape(x, (1, -1))` has other axes; one extent may be -1, which is found from the others",
    ),
    (&["tile", "repeat", "broadcast_to"], "`tensor.broadcast(x, (4, 2, 3))` is `x` for each index of new axes"),
    (
        &["roll", "flip", "fliplr", "flipud"],
        "`tensor.take(x, [i64?]{2, 1, 0})` has the indices of an axis in any order",
    ),
    (&["gather", "index_select"], "`tensor.take(x, i, 0)` has the indices of an axis that `i` names"),
    (&["split", "chunk"], "`tensor.slice(x, 0, 2, 5)` has some indices of axis 0"),
    (&["astype"], "`cast(x, f32)` has elements of another type"),
    (&["clip"], "`clamp(x, 0.0, 1.0)` is cut off at both ends"),
    (&["power"], "powers are written `x ** 2.0`"),
    (&["zeros", "ones", "full"], "`tensor.broadcast(0.0, (2, 3))` is a tensor of one number"),
    (
        &["arange", "linspace", "eye"],
        "a literal is a tensor of one axis, `[f64?]{0, 1, 2}`; what is larger is an input",
    ),
    (
        &["shape", "size", "ndim", "len"],
        "extents are no values in a model, which is the same for all of them: give such a number as an input",
    ),
    (
        &["inv", "pinv", "det", "solve", "lstsq", "svd", "qr", "eig", "eigh", "cholesky"],
        "there are no decompositions and solvers; in Rust a tensor can be lent to faer as a matrix",
    ),
    (&["is_nan", "isnan"], "of a NaN `x != x` is true"),
    (&["is_inf", "isinf"], "write `abs(x) == inf`"),
    (&["is_finite", "isfinite"], "write `abs(x) < inf`"),
    (&["is_close", "isclose", "allclose"], "write `abs(x - y) < 1e-9`"),
];

/// How something is written of tensors that is known under this name elsewhere, or of arrays; or that it is not there. Nothing for names that
/// nobody is known to expect.
#[must_use]
pub fn tensor_form(name: &str) -> Option<&'static str> {
    WORDS.iter().find(|(words, _)| words.contains(&name)).map(|(_, form)| *form)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_stands_once() {
        let mut words: Vec<&str> = WORDS.iter().flat_map(|(words, _)| words.iter().copied()).collect();
        let count = words.len();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), count);
        assert_eq!((tensor_form("dot"), tensor_form("sum")), (Some(BY_LABELS), None));
    }
}
