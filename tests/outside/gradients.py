"""Holds gradients of cembra against the table `tests/gradients.toml`, which lists them by hand, and JAX's beside both.

    python -m venv outside && outside/bin/pip install numpy jax
    cargo build --workspace --bin cembra
    outside/bin/python tests/outside/gradients.py target/debug/cembra

Each case of the table is evaluated by both backends, as it is and in a branch that is not taken, where all derivatives are 0. JAX differentiates the
case's own expression of it, in a branch by a second `where` inside, because the derivative of what is not taken is a NaN there. Where JAX has
another value than the table, the table has to say why.
"""

import pathlib
import sys
import tomllib

import jax
import jax.numpy as jnp
import numpy as np

import cases

jax.config.update("jax_enable_x64", True)
OPERANDS = "xyzw"
TABLE = pathlib.Path(__file__).parent.parent / "gradients.toml"


def near(found, expected):
    """For each element, whether the two are equal, both NaN, or differ by rounding alone."""
    with np.errstate(invalid="ignore"):
        is_near = np.isfinite(expected) & (np.abs(found - expected) <= 1e-9 * np.abs(expected))
    return (found == expected) | is_near | (np.isnan(found) & np.isnan(expected))


def model(case, names, values, kept, keep):
    """A model whose outputs are the derivatives of `kept`, and the inputs that it declares."""
    lines = [f"input {name}: tensor[f64, {values[name].ndim}]" for name in names]
    lines += ["input c: tensor[bool, 1]"] if "c" in case else []
    lines += [f"input keep: {keep}"]
    text = case["text"] if "let n = " in case["text"] else f"let n = {case['text']}"
    lines += [text.replace("; let ", "\nlet "), f"let kept = {kept}"]
    return "\n".join(lines + [f"output by_{name} = tensor.grad(kept, {name})" for name in names]) + "\n"


def evaluated(bench, text, inputs, backend):
    """The outputs of a model, or the error."""
    bench.file("case.cem", text)
    np.savez(bench.folder / "case.npz", **inputs)
    done = bench.run("eval", "case.cem", "case.npz", "--backend", backend, "-o", "found.npz", "--quiet")
    if done.status != 0:
        raise ValueError(f"{done.err}\n{text}")
    with np.load(bench.folder / "found.npz") as found:
        return {name: found[name] for name in found.files}


def by_jax(case, names, values, keep):
    """JAX's derivatives of the case, where elements are kept."""
    given = {"jax": jax, "jnp": jnp}
    if "c" in case:
        given["c"] = jnp.array(case["c"])

    def number(*operands):
        # The second `where`: what is not taken is computed of 1.
        safe = {name: jnp.where(keep, own, jnp.ones_like(own)) for name, own in zip(names, operands)}
        made = eval(case["jax"], given | safe)  # noqa: S307: the table is ours
        return jnp.sum(jnp.where(keep, made, 0.0))

    by = jax.grad(number, argnums=tuple(range(len(names))))(*[jnp.array(values[name]) for name in names])
    return dict(zip(names, map(np.asarray, by)))


def check(bench, table):
    unexplained, differing, beside = [], 0, 0
    for kind, case in [("operator", case) for case in table["operator"]] + [("number", case) for case in table["number"]]:
        names = [name for name in OPERANDS if name in case]
        values = {name: np.array(case[name], float) for name in names}
        expected = {name: np.array(case[f"by_{name}"], float) for name in names}
        of_elements = kind == "operator"
        count = values["x"].shape[0]
        kept = "tensor.sum(tensor.where(keep, n, 0.0))" if of_elements else "tensor.where(keep, n, 0.0)"
        text = model(case, names, values, kept, "tensor[bool, 1]" if of_elements else "bool")
        wheres = [np.full(count, True), np.full(count, False), np.arange(count) % 2 == 0] if of_elements else [True, False]
        for keep in map(np.array, wheres):
            wanted = {name: np.where(keep, own, 0.0) for name, own in expected.items()}
            inputs = values | {"keep": keep} | ({"c": np.array(case["c"])} if "c" in case else {})
            title = "taken" if keep.all() else "not taken" if not keep.any() else "some taken"
            for backend in ("native", "interp"):
                found = evaluated(bench, text, inputs, backend)
                for name in names:
                    for at in np.ndindex(values[name].shape):
                        is_right = near(found[f"by_{name}"][at], wanted[name][at])
                        where = f"{case['text']} by {name}{list(at)}, {backend}"
                        detail = f"{where}: {found[f'by_{name}'][at]}, not {wanted[name][at]}"
                        bench.tally(title, cases.RIGHT if is_right else cases.WRONG, detail)
            jaxes = by_jax(case, names, values, keep)
            for name in names:
                beside += wanted[name].size
                is_near = near(jaxes[name], wanted[name])
                differing += int((~is_near).sum())
                if not is_near.all() and "differs" not in case:
                    unexplained.append(f"{case['text']} by {name}, {title}: JAX has {jaxes[name]}, not {wanted[name]}")
    print(f"{beside} derivatives of JAX, {differing} of which differ from the table")
    bench.value("differences from JAX that the table explains", unexplained, [])


def gradients(bench):
    check(bench, tomllib.loads(TABLE.read_text()))


if __name__ == "__main__":
    cases.main("Gradients", gradients)
