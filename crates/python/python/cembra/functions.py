"""Models of whatever one is written as: a text, expressions, or a function of Python, which is called once with expressions for its arguments."""

from __future__ import annotations

import functools
import inspect
import linecache
import os
from collections.abc import Callable, Mapping
from typing import Any, Literal, overload

from cembra._cembra import Error, Model, _compile, _load
from cembra.expressions import Expr, L, TracingError, _tracing, as_expr
from cembra.statements import Text, text_of

__all__ = ["Function", "compile", "function", "load"]

Backend = Literal["native", "interpreter", "tiered"]


def compile(
    model: str | Expr | Mapping[str, Expr],
    *,
    types: Mapping[str, str] | None = None,
    backend: Backend | None = None,
    name: str | None = None,
    limits: Mapping[str, int | float] | None = None,
    files: Mapping[str, str] | None = None,
) -> Model:
    """Compiles a text, an expression, or expressions by the names of outputs.

    Inputs that the text does not declare have the types of `types`, a dict of names and types as the language writes them; else those of the
    values that they are first given: `int` is `i64`, `float` is `f64`, `str` is `text`. `backend` is `native`, `interpreter` or `tiered`.
    `name` is what errors call the text. `limits` are what a model may take, by the names of the library's limits, such as `nodes`; `files` the
    texts that `use` finds, by their names.
    """
    if isinstance(model, Expr):
        model = text_of({"result": model}).text
    elif isinstance(model, Mapping):
        model = text_of(_outputs(model)).text
    elif not isinstance(model, str):
        raise TypeError(f"a model is a text, an expression or a dict of them, not a {type(model).__qualname__}")
    return _compile(model, types=_dict(types), backend=backend, name=name, limits=_dict(limits), files=_dict(files))


def load(
    path: str | os.PathLike[str],
    *,
    types: Mapping[str, str] | None = None,
    backend: Backend | None = None,
    limits: Mapping[str, int | float] | None = None,
) -> Model:
    """Compiles the text of a file. The files that it uses lie beside it. Arguments are those of `compile`."""
    return _load(path, types=_dict(types), backend=backend, limits=_dict(limits))


def _dict(given: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if given is None else dict(given)


def _outputs(given: Any) -> dict[str, Expr]:
    """The expressions that a function or a dict gives, by the names of outputs."""
    if isinstance(given, Mapping):
        made = {str(name): as_expr(value) for name, value in given.items()}
    elif isinstance(given, tuple) and hasattr(given, "_fields"):
        made = {name: as_expr(value) for name, value in zip(given._fields, given)}
    elif isinstance(given, tuple):
        made = {f"out{at}": as_expr(value) for at, value in enumerate(given)}
    elif given is None:
        raise TracingError("the function gives None: what a model computes is what it returns")
    else:
        made = {"result": as_expr(given)}
    if not made:
        raise TracingError("a model has at least one output")
    return made


class Function:
    """A function of Python as a model. It is traced when it is first called: called once, with expressions as its arguments. What it
    returns is compiled for each set of types that it is called with."""

    def __init__(self, python: Callable[..., Any], types: Mapping[str, str] | None, backend: Backend | None) -> None:
        functools.update_wrapper(self, python)
        self._python = python
        self._types = dict(types or {})
        self._backend: Backend | None = backend
        self._signature = inspect.signature(python)
        for parameter in self._signature.parameters.values():
            if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
                raise TypeError(f"a model has inputs with names: `{parameter.name}` stands for any number of arguments")
        self._count = len(self._signature.parameters)
        self._traced: tuple[Model, Text] | None = None

    def _trace(self) -> tuple[Model, Text]:
        if self._traced is None:
            names = list(self._signature.parameters)
            was_on = getattr(_tracing, "on", False)
            _tracing.on = True
            try:
                given = self._python(**{name: L[name] for name in names})
                outputs = _outputs(given)
            finally:
                _tracing.on = was_on
            text = text_of(outputs, names, is_traced=True)
            name = getattr(self._python, "__qualname__", None)
            self._traced = (_compile(text.text, types=self._types or None, backend=self._backend, name=name), text)
        return self._traced

    @property
    def model(self) -> Model:
        """The model, traced now if it is not yet."""
        return self._trace()[0]

    def run(self, columns: Mapping[str, Any], **options: Any) -> tuple[Any, list[int], list[str]]:
        """`run` of the model: many rows, with threads, rows that fail, and arrays of the caller."""
        return self.model.run(dict(columns), **options)

    def table(self, frame: Any, **options: Any) -> Any:
        """`table` of the model: the rows of a data frame, whose columns are found by the names of parameters."""
        return self.model.table(frame, **options)

    @property
    def source(self) -> str:
        """The text of the model."""
        return self._trace()[1].text

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if kwargs or len(args) != self._count:
            try:
                bound = self._signature.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{self.__name__}: {error}") from None  # type: ignore[attr-defined]
            bound.apply_defaults()
            args = tuple(bound.arguments.values())
        if Expr in map(type, args):
            # A function that is called while another is traced is a part of that.
            return self._python(**dict(zip(self._signature.parameters, args)))
        model, text = self._traced or self._trace()
        try:
            return model(*args)
        except Error as error:
            _say_where(error, text)
            raise

    def __reduce__(self) -> str:
        # It is found again by its name, as functions are.
        return str(self.__qualname__)  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"<cembra.function {self.__name__}{self._signature}>"  # type: ignore[attr-defined]


def _say_where(error: Error, text: Text) -> None:
    """Adds the line of Python that the place of an error in the text was made by."""
    place = None if error.span is None else text.place(error.span[0])
    if place is not None and hasattr(error, "add_note"):
        file, line, function = place
        error.add_note(f'  File "{file}", line {line}, in {function}\n    {linecache.getline(file, line).strip()}')


@overload
def function(python: Callable[..., Any], /) -> Function: ...
@overload
def function(
    *, types: Mapping[str, str] | None = None, backend: Backend | None = None
) -> Callable[[Callable[..., Any]], Function]: ...
def function(
    python: Callable[..., Any] | None = None,
    /,
    *,
    types: Mapping[str, str] | None = None,
    backend: Backend | None = None,
) -> Any:
    """Makes a model of a function of Python.

    >>> @cembra.function
    ... def total(price, pieces, discount=0.0):
    ...     return price * pieces * (1.0 - discount)
    >>> total(2.5, 4.0)
    10.0

    The function is called once, with expressions for its arguments: it may use Python's operators, `cembra.where`, the operators of `cembra.M`
    and functions of NumPy. It may not branch on an argument. Parameters are inputs; a tuple or a dict that is returned gives several outputs.
    `types` and `backend` are those of `compile`.
    """
    if python is None:
        return lambda python: Function(python, types, backend)
    return Function(python, types, backend)
