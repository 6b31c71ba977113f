//! Iterative solvers that are written as statements of the language on tiled tensors: conjugate gradients for linear
//! systems, and Newton-Schulz iterations for inverses, inverse square roots and signs of matrices. Each step drops
//! small tiles, so sparse matrices stay sparse. The solvers also serve as examples of statements: apart from making the
//! identity matrix, their code does not depend on tiles.

use super::parts::of_number;
use super::run::Run;
use crate::{Error, Scalar};
use cembra_tensor::TensorErrorKind;
use cembra_tiles::{Screening, Shape, Tiled};
use cembra_value::ScalarValue;

/// The stopping rule of an iterative solver.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Stop {
    /// The largest residual at which the iteration stops: 1e-8 by default. The documentation of each solver says what
    /// its residual is. Steps drop small tiles, by the threshold in the options. A tolerance that is smaller than the
    /// error from dropped tiles is never reached.
    pub tolerance: f64,
    /// The most steps before the iteration fails: 100 by default.
    pub most_steps: usize,
}

impl Default for Stop {
    fn default() -> Self {
        Stop { tolerance: 1e-8, most_steps: 100 }
    }
}

impl Stop {
    /// Returns true if the residual is at most the tolerance.
    ///
    /// # Errors
    /// If the residual is larger after the last step, or is NaN or infinite.
    fn is_reached(&self, steps: usize, residual: f64) -> Result<bool, Error> {
        if residual <= self.tolerance {
            return Ok(true);
        }
        if steps < self.most_steps && residual.is_finite() {
            return Ok(false);
        }
        let message = format!("the iteration still has a residual of {residual:e} after {steps} steps");
        Err(Error::tensors(TensorErrorKind::Evaluation, message)
            .hint("allow more steps, a larger tolerance, or lower the threshold of the options"))
    }
}

/// The result of an iterative solver.
#[derive(Clone, Debug)]
pub struct Solution {
    /// The solution that the solver found.
    pub value: Tiled,
    /// The number of steps that the solver took.
    pub steps: usize,
    /// The residual of the solution, which is at most the tolerance.
    pub residual: f64,
}

impl Run {
    /// Solves `a x = b` by conjugate gradients. The matrix `a` must be symmetric and positive definite. The residual is the norm of `b - a x` divided
    /// by that of `b`.
    ///
    /// ```
    /// use cembra::tiles::{MOST_TILES, Options, Shape, Stop, Tiled, Tiling, Tiling1, World};
    ///
    /// let axis = Tiling1::blocked(40, 8)?;
    /// let shape = |tiling| Shape::dense(&tiling, MOST_TILES);
    /// let band = |at: &[i64]| [2.5, -1.0].get(at[0].abs_diff(at[1]) as usize).copied().unwrap_or(0.0);
    /// let a = Tiled::from_fn(&shape(Tiling::new([&axis, &axis])?)?, band)?;
    /// let b = Tiled::from_fn(&shape(Tiling::new([&axis])?)?, |_| 1.0)?;
    /// let mut run = World::from_environment()?.evaluator(Options::default());
    /// let x = run.conjugate_gradients(&a, &b, Stop::default())?;
    /// let error = run.statement(r#"e("i") = a("i,j") * x("j") - b("i")"#, [("a", &a), ("x", &x.value), ("b", &b)])?;
    /// assert!(run.number("tensor.max(abs(e))", [("e", &error)])? < 1e-6);
    /// # Ok::<(), cembra::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a statement fails, or the residual is above the tolerance after the last step.
    pub fn conjugate_gradients(&mut self, a: &Tiled, b: &Tiled, stop: Stop) -> Result<Solution, Error> {
        self.as_one(|run| run.conjugate_gradients_steps(a, b, stop))
    }

    fn conjugate_gradients_steps(&mut self, a: &Tiled, b: &Tiled, stop: Stop) -> Result<Solution, Error> {
        let scalar = b.scalar_type();
        let all = self.number("tensor.sum(b * b)", [("b", b)])?;
        let mut squares = all;
        let (mut x, mut r, mut p) = (zeros_like(b)?, b.clone(), b.clone());
        let mut steps = 0;
        loop {
            let residual = if all > 0.0 { (squares / all).sqrt() } else { squares.sqrt() };
            if stop.is_reached(steps, residual)? {
                return Ok(Solution { value: x, steps, residual });
            }
            let q = self.statement(r#"q("i") = a("i,j") * p("j")"#, [("a", a), ("p", &p)])?;
            let along = self.number("tensor.sum(p * q)", [("p", &p), ("q", &q)])?;
            let step = number(squares / along, scalar)?;
            x = self.kept(r#"x("i") += step * p("i")"#, &[("x", &x), ("step", &step), ("p", &p)])?;
            r = self.kept(r#"r("i") -= step * q("i")"#, &[("r", &r), ("step", &step), ("q", &q)])?;
            let next = self.number("tensor.sum(r * r)", [("r", &r)])?;
            let turn = number(next / squares, scalar)?;
            p = self.kept(r#"p("i") = r("i") + turn * p("i")"#, &[("r", &r), ("turn", &turn), ("p", &p)])?;
            squares = next;
            steps += 1;
        }
    }

    /// Returns the inverse of the square matrix `a`, by `x = x + x (1 - a x)` (Schulz 1933). The residual is the norm of `1 - a x`.
    ///
    /// # Errors
    /// If a statement fails, the two axes have different tilings, or the residual is above the tolerance after the last step. The latter happens for
    /// a matrix without an inverse.
    pub fn inverse(&mut self, a: &Tiled, stop: Stop) -> Result<Solution, Error> {
        self.as_one(|run| run.inverse_steps(a, stop))
    }

    fn inverse_steps(&mut self, a: &Tiled, stop: Stop) -> Result<Solution, Error> {
        let one = identity(a)?;
        // The product of the largest column sum and the largest row sum bounds the square of every singular value.
        let bound = self.largest_sum(a)?;
        let mut x = self
            .kept(r#"x("i,j") = a("j,i") / bound"#, &[("a", a), ("bound", &number(bound * bound, a.scalar_type())?)])?;
        let mut steps = 0;
        loop {
            let left =
                self.kept(r#"left("i,j") = one("i,j") - a("i,k") * x("k,j")"#, &[("one", &one), ("a", a), ("x", &x)])?;
            let residual = self.number("math.sqrt(tensor.sum(left * left))", [("left", &left)])?;
            if stop.is_reached(steps, residual)? {
                return Ok(Solution { value: x, steps, residual });
            }
            x = self.kept(r#"x("i,j") += x("i,k") * left("k,j")"#, &[("x", &x), ("left", &left)])?;
            steps += 1;
        }
    }

    /// Returns the inverse square root of the symmetric, positive definite matrix `a`, by the coupled Newton-Schulz iteration (Higham 1997). The
    /// residual is the norm of `1 - z y`, where `y` converges to the square root and `z` to its inverse.
    ///
    /// # Errors
    /// The errors of [`inverse`](Run::inverse).
    pub fn inverse_square_root(&mut self, a: &Tiled, stop: Stop) -> Result<Solution, Error> {
        self.as_one(|run| run.inverse_square_root_steps(a, stop))
    }

    fn inverse_square_root_steps(&mut self, a: &Tiled, stop: Stop) -> Result<Solution, Error> {
        let one = identity(a)?;
        let bound = self.largest_sum(a)?;
        let mut y =
            self.kept(r#"y("i,j") = a("i,j") / bound"#, &[("a", a), ("bound", &number(bound, a.scalar_type())?)])?;
        let mut z = one.clone();
        let mut steps = 0;
        loop {
            let left =
                self.kept(r#"left("i,j") = one("i,j") - z("i,k") * y("k,j")"#, &[("one", &one), ("z", &z), ("y", &y)])?;
            let residual = self.number("math.sqrt(tensor.sum(left * left))", [("left", &left)])?;
            if stop.is_reached(steps, residual)? {
                let root = number(bound.sqrt(), a.scalar_type())?;
                let value = self.kept(r#"x("i,j") = z("i,j") / root"#, &[("z", &z), ("root", &root)])?;
                return Ok(Solution { value, steps, residual });
            }
            (y, z) = (
                self.kept(r#"y("i,j") += 0.5 * y("i,k") * left("k,j")"#, &[("y", &y), ("left", &left)])?,
                self.kept(r#"z("i,j") += 0.5 * left("i,k") * z("k,j")"#, &[("z", &z), ("left", &left)])?,
            );
            steps += 1;
        }
    }

    /// Returns the sign of the symmetric matrix `a`, which must not have the eigenvalue 0: the matrix with the same eigenvectors whose eigenvalues
    /// are 1 and -1. The iteration is `x = x + x (1 - x x) / 2`. The residual is the norm of `1 - x x`.
    ///
    /// # Errors
    /// The errors of [`inverse`](Run::inverse).
    pub fn sign(&mut self, a: &Tiled, stop: Stop) -> Result<Solution, Error> {
        self.as_one(|run| run.sign_steps(a, stop))
    }

    fn sign_steps(&mut self, a: &Tiled, stop: Stop) -> Result<Solution, Error> {
        let one = identity(a)?;
        let bound = number(self.largest_sum(a)?, a.scalar_type())?;
        let mut x = self.kept(r#"x("i,j") = a("i,j") / bound"#, &[("a", a), ("bound", &bound)])?;
        let mut steps = 0;
        loop {
            let left = self.kept(r#"left("i,j") = one("i,j") - x("i,k") * x("k,j")"#, &[("one", &one), ("x", &x)])?;
            let residual = self.number("math.sqrt(tensor.sum(left * left))", [("left", &left)])?;
            if stop.is_reached(steps, residual)? {
                return Ok(Solution { value: x, steps, residual });
            }
            x = self.kept(r#"x("i,j") += 0.5 * x("i,k") * left("k,j")"#, &[("x", &x), ("left", &left)])?;
            steps += 1;
        }
    }

    /// Returns an upper bound of the singular values: the largest sum of magnitudes in a row or in a column.
    fn largest_sum(&mut self, a: &Tiled) -> Result<f64, Error> {
        let text = "let m = abs(a); max(tensor.max(tensor.sum(m, 0)), tensor.max(tensor.sum(m, 1)))";
        self.number(text, [("a", a)])
    }

    /// Evaluates a statement and drops the tiles of its result whose norm is below the threshold in the options.
    fn kept(&mut self, text: &str, inputs: &[(&str, &Tiled)]) -> Result<Tiled, Error> {
        let made = self.statement(text, inputs.iter().copied())?;
        let screening = self.options().screening(made.scalar_type())?;
        self.evaluator().truncate(&made, &screening)
    }
}

/// Returns a number as a tensor without axes, of the element type `scalar`.
fn number(number: f64, scalar: Scalar) -> Result<Tiled, Error> {
    of_number(&if scalar == Scalar::Float32 { ScalarValue::from(number as f32) } else { ScalarValue::from(number) })
}

/// Returns the identity matrix with the tiling and element type of the square matrix `a`.
fn identity(a: &Tiled) -> Result<Tiled, Error> {
    let [rows, columns] = a.tiling().axes() else {
        let message = format!("a tensor of {} axes is given where a matrix is needed", a.tiling().rank());
        return Err(Error::tensors(TensorErrorKind::RankMismatch, message));
    };
    if rows != columns {
        let message = format!("the rows of the matrix are cut at {rows:?}, but its columns at {columns:?}");
        return Err(Error::tensors(TensorErrorKind::SizeMismatch, message).hint("cut both axes at the same boundaries"));
    }
    let tiles = rows.tiles();
    let diagonal = (0..tiles).map(|at| (at * (tiles + 1), f64::INFINITY));
    let shape = Shape::of_norms(a.tiling(), diagonal, &Screening::threshold(0.0))?;
    match a.scalar_type() {
        Scalar::Float32 => Tiled::from_fn(&shape, |at| if at[0] == at[1] { 1.0_f32 } else { 0.0 }),
        _ => Tiled::from_fn(&shape, |at| if at[0] == at[1] { 1.0_f64 } else { 0.0 }),
    }
}

/// Returns a tensor of zeros: it has the tiling of `of`, but no tile is present.
fn zeros_like(of: &Tiled) -> Result<Tiled, Error> {
    of.masked(&Shape::empty(of.tiling()))
}
