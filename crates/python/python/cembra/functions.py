"""Models made of a text, of expressions, or of a Python function, which is called once with expressions as its arguments."""

from __future__ import annotations

import functools
import inspect
import linecache
import os
import weakref
from collections.abc import Callable, Mapping
from types import MethodType
from typing import Any, Concatenate, Generic, Literal, ParamSpec, TypeVar, overload

from cembra._cembra import Cancellation, Error, Model, _compile, _load
from cembra.expressions import Expr, L, TracingError, _tracing, as_expr
from cembra.statements import Text, text_of

__all__ = ["Function", "compile", "function", "load"]

Backend = Literal["native", "interpreter", "tiered"]
P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
T = TypeVar("T")


def compile(
    model: str | Expr | Mapping[str, Expr],
    *,
    types: Mapping[str, str] | None = None,
    backend: Backend | None = None,
    name: str | None = None,
    limits: Mapping[str, int | float] | None = None,
    files: Mapping[str, str] | None = None,
) -> Model:
    """Compiles a text, an expression, or a dict of expressions by the names of outputs.

    `types` is a dict with the types of inputs that the text does not declare, as the language writes them. An input without a type has the type of
    the values that a call gives it: `int` is `i64`, `float` is `f64`, `str` is `text`. `backend` is `native`, `interpreter` or `tiered`. `name` is
    the name of the text in errors. `limits` is a dict of limits for the model, by the names of the library's limits, such as `nodes`. `files` is a
    dict of the texts that `use` finds, by their names.
    """
    if isinstance(model, Expr):
        model = text_of({"result": model}).text
    elif isinstance(model, Mapping):
        model = text_of(_outputs(model)).text
    elif not isinstance(model, str):
        raise TypeError(f"a model must be a text, an expression or a dict of expressions, not a {type(model).__qualname__}")
    return _compile(model, types=_dict(types), backend=backend, name=name, limits=_dict(limits), files=_dict(files))


def load(
    path: str | os.PathLike[str],
    *,
    types: Mapping[str, str] | None = None,
    backend: Backend | None = None,
    limits: Mapping[str, int | float] | None = None,
) -> Model:
    """Compiles the text of a file. Files that the text uses are found relative to it. The other arguments are those of `compile`."""
    return _load(path, types=_dict(types), backend=backend, limits=_dict(limits))


def _dict(given: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if given is None else dict(given)


def _outputs(given: Any) -> dict[str, Expr]:
    """Returns the expressions by the names of outputs, from a dict of expressions or from the result of a function."""
    if isinstance(given, Mapping):
        made = {str(name): as_expr(value) for name, value in given.items()}
    elif isinstance(given, tuple) and hasattr(given, "_fields"):
        made = {name: as_expr(value) for name, value in zip(given._fields, given)}
    elif isinstance(given, tuple):
        made = {f"out{at}": as_expr(value) for at, value in enumerate(given)}
    elif given is None:
        raise TracingError("the function returned None: return the expressions that the model computes")
    else:
        made = {"result": as_expr(given)}
    if not made:
        raise TracingError("a model must have at least one output")
    return made


class Function(Generic[P, R]):
    """A Python function as a model. At the first call the function is traced: it is called once, with expressions as its arguments. The expressions
    that it returns are compiled for each set of types that the model is called with.

    In a class, the function is a method. Each instance has a model of its own: the method is traced at its first call on the instance, with the
    instance as `self`, which is not an input. An attribute that the method reads from `self` is a constant of the model, with its value at that
    call: setting it later changes nothing. The model of an instance is dropped with the instance.
    """

    def __init__(self, python: Callable[P, R], types: Mapping[str, str] | None, backend: Backend | None) -> None:
        functools.update_wrapper(self, python)
        self._python: Callable[..., Any] = python
        self._types = dict(types or {})
        self._backend: Backend | None = backend
        self._signature = inspect.signature(python)
        for parameter in self._signature.parameters.values():
            if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
                raise TypeError(f"the inputs of a model must have names, but `{parameter.name}` takes any number of arguments: write a parameter for each input")
        self._count = len(self._signature.parameters)
        self._signature_of_method = self._signature.replace(parameters=list(self._signature.parameters.values())[1:])
        # Empty until the function is traced; then the only element is its model, with the model's text.
        self._traced: list[tuple[Model, Text]] = []
        # The same list for each instance, by the address of the instance, with a reference that does not keep the instance alive.
        self._instances: dict[int, tuple[weakref.ref[Any], list[tuple[Model, Text]]]] = {}
        self._is_method = False

    def __set_name__(self, owner: type, name: str) -> None:
        # A function of a module that is also an attribute of a class can still be called without an instance.
        self._is_method = self.__qualname__ == f"{owner.__qualname__}.{name}"  # type: ignore[attr-defined]

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Function[P, R]: ...
    @overload
    def __get__(
        self: Function[Concatenate[Any, Q], R], instance: object, owner: type | None = None
    ) -> Function[Q, R]: ...
    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else _BoundFunction(self, instance)

    def _trace(self) -> list[tuple[Model, Text]]:
        if self._is_method:
            raise TypeError(f"{self.__qualname__} is a method, and each instance has its own model: use the method of an instance")  # type: ignore[attr-defined]
        if not self._traced:
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
            self._traced.append((_compile(text.text, types=self._types or None, backend=self._backend, name=name), text))
        return self._traced

    @property
    def model(self) -> Model:
        """The model. The function is traced now if it is not traced yet."""
        return self._trace()[0][0]

    def run(
        self,
        columns: Mapping[str, Any],
        *,
        threads: int = 1,
        on_error: Literal["stop", "missing"] = "stop",
        out: Mapping[str, Any] | None = None,
        time_limit: float | None = None,
        cancellation: Cancellation | None = None,
    ) -> tuple[Any, list[int], list[str]]:
        """Evaluates many rows, as `Model.run` does: with threads, a choice for rows that fail, and arrays of the caller for outputs."""
        return self.model.run(
            dict(columns), threads=threads, on_error=on_error, out=out, time_limit=time_limit, cancellation=cancellation
        )

    def table(
        self,
        frame: T,
        *,
        threads: int = 1,
        on_error: Literal["stop", "missing", "skip"] = "stop",
        time_limit: float | None = None,
        cancellation: Cancellation | None = None,
    ) -> T:
        """Evaluates the rows of a data frame, as `Model.table` does. Columns are found by the names of parameters."""
        return self.model.table(
            frame, threads=threads, on_error=on_error, time_limit=time_limit, cancellation=cancellation
        )

    @property
    def source(self) -> str:
        """The text of the model."""
        return self._trace()[0][1].text

    # The annotations of a function that returns an expression are those of the trace, but the function is called with values.
    @overload
    def __call__(self: Function[..., Expr], *args: Any, **kwargs: Any) -> Any: ...
    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._is_method and args:
            return self.__get__(args[0])(*args[1:], **kwargs)
        if kwargs or len(args) != self._count:
            try:
                bound = self._signature.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{self.__name__}: {error}") from None  # type: ignore[attr-defined]
            bound.apply_defaults()
            args = tuple(bound.arguments.values())
        if Expr in map(type, args):
            # A function that is called while another one is traced is a part of the other.
            return self._python(**dict(zip(self._signature.parameters, args)))
        model, text = (self._traced or self._trace())[0]
        try:
            return model(*args)
        except Error as error:
            _say_where(error, text)
            raise

    def __reduce__(self) -> str | tuple[Any, ...]:
        # A pickle finds the function by its name, as it finds other functions.
        return str(self.__qualname__)  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"<cembra.function {self.__name__}{self._signature}>"  # type: ignore[attr-defined]


class _BoundFunction(Function[P, R]):
    """A function as a method of an instance. The method keeps the instance alive, as Python's methods do; the function does not."""

    def __init__(self, function: Function[Any, R], instance: Any) -> None:
        vars(self).update(vars(function))
        self._is_method = False
        self.__self__ = instance
        self.__func__ = function
        self._python = MethodType(function._python, instance)
        self._signature = self.__signature__ = function._signature_of_method
        self._count = function._count - 1
        kept = function._instances.get(id(instance))
        if kept is None or kept[0]() is not instance:
            kept = function._instances[id(instance)] = (_reference(function, instance), [])
        self._traced = kept[1]

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        # A bound method that is an attribute of a class stays with its own instance.
        return self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _BoundFunction) and self.__func__ is other.__func__ and self.__self__ is other.__self__

    def __hash__(self) -> int:
        return hash((id(self.__func__), id(self.__self__)))

    def __reduce__(self) -> tuple[Any, ...]:
        return getattr, (self.__self__, self.__func__.__name__)  # type: ignore[attr-defined]


def _reference(function: Function[Any, Any], instance: Any) -> weakref.ref[Any]:
    """Makes a weak reference to an instance. When the instance ends, its model is dropped."""
    instances, at = function._instances, id(instance)

    def forget(ended: weakref.ref[Any]) -> None:
        # Another instance may have the same address already.
        kept = instances.get(at)
        if kept is not None and kept[0] is ended:
            del instances[at]

    try:
        return weakref.ref(instance, forget)
    except TypeError:
        name = type(instance).__qualname__
        hint = "name `__weakref__` in its `__slots__`, or make the method a function with parameters"
        raise TypeError(f"a {name} must allow weak references, because each instance has its own model: {hint}") from None


def _say_where(error: Error, text: Text) -> None:
    """Adds a note to an error with the line of Python that made the part of the text where the error is."""
    place = None if error.span is None else text.place(error.span[0])
    if place is not None and hasattr(error, "add_note"):
        file, line, function = place
        error.add_note(f'  File "{file}", line {line}, in {function}\n    {linecache.getline(file, line).strip()}')


@overload
def function(python: Callable[P, R], /) -> Function[P, R]: ...
@overload
def function(
    *, types: Mapping[str, str] | None = None, backend: Backend | None = None
) -> Callable[[Callable[P, R]], Function[P, R]]: ...
def function(
    python: Callable[..., Any] | None = None,
    /,
    *,
    types: Mapping[str, str] | None = None,
    backend: Backend | None = None,
) -> Any:
    """Makes a model of a Python function.

    >>> @cembra.function
    ... def total(price, pieces, discount=0.0):
    ...     return price * pieces * (1.0 - discount)
    >>> total(2.5, 4.0)
    10.0

    The function is called once, with expressions as its arguments: it may use Python's operators, `cembra.where`, the operators of `cembra.M` and
    functions of NumPy. It must not branch on an argument. Its parameters are the inputs of the model. If it returns a tuple or a dict, the model has
    several outputs. `types` and `backend` are those of `compile`.

    A method has a model for each instance. The attributes that it reads are constants of the model:

    >>> class Prices:
    ...     def __init__(self, rate):
    ...         self.rate = rate
    ...     @cembra.function
    ...     def total(self, price):
    ...         return price * (1.0 + self.rate)
    >>> Prices(0.5).total(2.0), Prices(0.25).total(2.0)
    (3.0, 2.5)
    """
    if python is None:
        return lambda python: Function(python, types, backend)
    return Function(python, types, backend)
