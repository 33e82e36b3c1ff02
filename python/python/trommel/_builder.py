"""What the methods that add a stage of an operator share."""

from __future__ import annotations

import functools
import keyword
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ParamSpec

_P = ParamSpec("_P")


class Builder(ABC):
    """A graph that takes stages."""

    @abstractmethod
    def stage(
        self,
        id: str,
        operator: str,
        inputs: str | Iterable[str] = (),
        *,
        cores: Iterable[int] | None = None,
        workers: int | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> str:
        """Add a stage, and return its id."""


def operator(method: Callable[_P, str]) -> Callable[_P, str]:
    """Let a method that adds a stage name the parameter that a wrong name may mean.

    A name that Python reserves, such as ``from``, stands for the argument ``from_``.
    """
    code = method.__code__
    known = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]

    @functools.wraps(method)
    def checked(*args: _P.args, **kwargs: _P.kwargs) -> str:
        for name in tuple(kwargs):
            if keyword.iskeyword(name) and f"{name}_" in known:
                kwargs[f"{name}_"] = kwargs.pop(name)
            elif name not in known:
                raise TypeError(_unknown(method.__name__, name, known))
        return method(*args, **kwargs)

    return checked


def _unknown(operator: str, name: str, known: tuple[str, ...]) -> str:
    from difflib import get_close_matches

    parameters = ", ".join(sorted(known[known.index("id") + 1 :]))
    near = get_close_matches(name, known, n=1)
    meant = f"; did you mean `{near[0]}`?" if near else ""
    return f"{operator}() has no parameter `{name}`; parameters: {parameters}{meant}"
