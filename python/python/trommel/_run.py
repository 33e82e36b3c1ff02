"""Runs of a few stages over data as a whole."""

from __future__ import annotations

import json
from typing import Any

from . import _trommel
from ._inputs import given
from ._trommel import Table

Stage = dict[str, Any]
Input = tuple[str, Any, dict[str, Any]]


def run(stages: list[Stage], inputs: list[Input]) -> Table:
    feeds: list[Stage] = [{"id": id, "operator": "feed"} for id, _, _ in inputs]
    sink: Stage = {"id": "rows", "operator": "collect", "inputs": [stages[-1]["id"]]}
    config = json.dumps({"stages": [*feeds, *stages, sink]}, allow_nan=False)
    return _trommel.run(config, inputs, "rows")


def with_parameters(id: str, operator: str, inputs: list[str], /, **parameters: Any) -> Stage:
    return {"id": id, "operator": operator, "inputs": inputs, "with": given(**parameters)}
