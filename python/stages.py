"""Writes python/trommel/_stages.py, the methods of `Pipeline` that add stages, from the JSON schema.

``python stages.py`` writes the file, ``python stages.py --check`` compares it. The schema is
configs/pipeline.schema.json, which ``trommel schema`` prints.
"""

from __future__ import annotations

import json
import keyword
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SCHEMA = HERE.parent / "configs" / "pipeline.schema.json"
FILE = HERE / "python" / "trommel" / "_stages.py"

WIDTH = 100
# Operators without an input.
SOURCES = ("generate", "read")
# Outputs that a stage has beside the one of its id.
OUTPUTS = {"heavy_filter": "Its outputs are ``id.rest`` and ``id.counts``."}
# Parameters that are paths: in JSON they are texts like others.
PATHS = ("index_path", "merge", "names", "path", "paths", "restore", "snapshot")
# Arguments of every method, whose names are taken.
TAKEN = ("id", "inputs", "cores", "workers")
WORKERS = (
    "Number of workers that do its work side by side, if the work can be divided; "
    "by default, one for each core where this pays."
)
# More choices than these are told by the text of a parameter.
CHOICES_MAX = 16

HEAD = '''"""The methods of `Pipeline` that add a stage each, and the types of their parameters.

Written by python/stages.py from the JSON schema of pipelines.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal, SupportsFloat, TypedDict, Union

from ._builder import Builder, operator

FilePath = Union[str, "os.PathLike[str]"]
Exact = Union[str, SupportsFloat]
'''

Schema = dict[str, Any]


class Types:
    """The Python types of a schema, and the definitions that they name."""

    def __init__(self, definitions: dict[str, Schema]) -> None:
        self.definitions = definitions
        self.used: dict[str, str] = {}

    def of(self, schema: Schema, name: str = "") -> str:
        """The type of a value; `name` is that of its parameter."""
        if "$ref" in schema:
            return self.named(schema["$ref"].rpartition("/")[2])
        if "anyOf" in schema:
            return " | ".join(self.of(one, name) for one in schema["anyOf"] if one != {"type": "null"})
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if kinds[:2] == ["number", "string"] and "boolean" not in kinds:
            return "Exact"
        return " | ".join(self.plain(kind, schema, name) for kind in kinds if kind != "null")

    def plain(self, kind: str, schema: Schema, name: str) -> str:
        if kind == "string":
            return "FilePath" if name in PATHS else "str"
        if kind == "array":
            return f"Collection[{self.of(schema['items'], name)}]"
        if kind == "object":
            value = schema["additionalProperties"]
            is_nested = "object" in value["type"]
            return f"Mapping[str, {'Any' if is_nested else self.of(value) + ' | None'}]"
        return {"integer": "int", "number": "float", "boolean": "bool"}[kind]

    def named(self, name: str) -> str:
        """The name of a type of the definitions, or the type itself if it has no keys or choices."""
        schema = self.definitions[name]
        if choices(schema):
            self.used[name] = f"{name} = {self.choice(name, schema)}\n"
        elif "properties" in schema:
            self.used[name] = self.typed_dict(name, schema, "total=False")
        else:
            return self.of(schema)
        return name

    def choice(self, name: str, schema: Schema) -> str:
        values = ", ".join(json.dumps(value) for value in choices(schema))
        others = [one for one in schema.get("oneOf", []) if one["type"] != "string"]
        if not others:
            return bracketed("Literal", values)
        if others[0]["type"] == "array":
            return f"Union[{bracketed('Literal', values)}, list[str]]"
        objects = others
        (one,) = objects
        (key,) = one["required"]
        inner = name + key.title()
        self.used[inner] = self.typed_dict(inner, one)
        return f'Union[Literal[{values}], "{inner}"]'

    def typed_dict(self, name: str, schema: Schema, *options: str) -> str:
        lines = [f"class {', '.join([name + '(TypedDict', *options])}):"]
        lines += documentation(schema["description"].partition("\n\n")[0].splitlines(), 4)
        for key, value in schema["properties"].items():
            lines += ["", *comment(text_of(value)), f"    {key}: {self.of(value, key)}"]
        return "\n".join(lines) + "\n"


def bracketed(name: str, values: str) -> str:
    """A type of `values`, on several lines where one is too short."""
    if len(values) < WIDTH - 30:
        return f"{name}[{values}]"
    return "\n".join([f"{name}[", *wrapped(values, 4), "]"])


def choices(schema: Schema) -> list[str]:
    """The texts that a value can be, if it is one of some."""
    branches = schema.get("oneOf", [])
    listed = [value for one in branches if one.get("type") == "string" for value in one.get("enum", [])]
    return schema.get("enum") or listed or [one["const"] for one in branches if "const" in one]


def in_docstring(text: str) -> str:
    """Text of the schema, with code as docstrings have it."""
    return re.sub(r"`([^`]+)`", r"``\1``", text)


def text_of(schema: Schema) -> str:
    return " ".join(schema.get("description", "").split())


def wrapped(text: str, indent: int) -> list[str]:
    space = " " * indent
    return textwrap.wrap(
        text, WIDTH, initial_indent=space, subsequent_indent=space, break_long_words=False, break_on_hyphens=False
    )


def comment(text: str) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent="    # ", subsequent_indent="    # ", break_long_words=False, break_on_hyphens=False
    )


def documentation(lines: list[str], indent: int) -> list[str]:
    """A docstring of one paragraph."""
    space = " " * indent
    text = in_docstring(" ".join(line.strip() for line in lines))
    found = wrapped(f'"""{text}"""', indent)
    if len(found) == 1:
        return found
    return [*wrapped(f'"""{text}', indent), f'{space}"""']


def argument(name: str) -> str:
    """The name of an argument: with an underscore where Python or the method has the name."""
    return f"{name}_" if keyword.iskeyword(name) or name in TAKEN else name


def described(schema: Schema, definitions: dict[str, Schema]) -> str:
    """The text of a parameter, with its choices, its range and its default."""
    told = [in_docstring(text_of(schema))]
    references = [schema, *schema.get("anyOf", []), schema.get("items", {})]
    for reference in references:
        of_type = choices(definitions[reference["$ref"].rpartition("/")[2]]) if "$ref" in reference else []
        if 0 < len(of_type) <= CHOICES_MAX:
            told.append(f"One of {', '.join(f'``{json.dumps(choice)}``' for choice in of_type)}.")
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and most is not None:
        told.append(f"Range: {number(least)} to {number(most)}.")
    elif least:
        told.append(f"At least {number(least)}.")
    default = schema.get("default")
    if default not in (None, [], {}):
        told.append(f"Default: ``{default if isinstance(default, bool) else json.dumps(default)}``.")
    return " ".join(told)


def number(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value}"


def method(name: str, summary: str, schema: Schema, types: Types) -> str:
    required = schema.get("required", [])
    ordered = sorted(schema["properties"].items(), key=lambda one: one[0] not in required)
    arguments = [("id", "str", "Names the stage in inputs, queries, reports and errors.")]
    if name not in SOURCES:
        kind = "Iterable[str]" if name == "union" else "str | Iterable[str]"
        text = "Ids of the stages that it reads; ``\"stage.port\"`` for an output of a stage with several."
        arguments.append(("inputs", kind, text))
    described_arguments = list(arguments)
    lines = ["    @operator", f"    def {name}(", "        self,"]
    lines += [f"        {argument}: {kind}," for argument, kind, _ in arguments]
    lines.append("        *,")
    for key, value in ordered:
        kind, given = types.of(value, key), argument(key)
        lines.append(f"        {given}: {kind}," if key in required else f"        {given}: {kind} | None = None,")
        described_arguments.append((given, kind, described(value, types.definitions)))
    lines += ["        cores: Iterable[int] | None = None,", "        workers: int | None = None,", "    ) -> str:"]
    described_arguments.append(("cores", "", "Cores for its parts: a thread of its own on each."))
    described_arguments.append(("workers", "", WORKERS))

    head = in_docstring(f"Add a stage to {summary}. {OUTPUTS.get(name, '')}".strip())
    text = [*wrapped(head, 8), "", "        Parameters", "        ----------"]
    for given, _, told in described_arguments:
        text += [f"        {given}", *wrapped(told, 12)]
    docstring = "\n".join(text).lstrip()
    raw = "r" if "\\" in docstring else ""
    lines += [f'        {raw}"""{docstring}', '        """']
    inputs = "inputs" if name not in SOURCES else "()"
    lines.append("        parameters = {")
    lines += [f'            "{key}": {argument(key)},' for key, _ in ordered]
    lines.append("        }")
    lines.append(f'        return self.stage(id, "{name}", {inputs}, cores=cores, workers=workers, parameters=parameters)')
    return "\n".join(lines) + "\n"


def stages() -> str:
    """The file."""
    schema = json.loads(SCHEMA.read_text())
    types = Types(schema["$defs"])
    methods = []
    for stage in schema["properties"]["stages"]["items"]["oneOf"]:
        name = stage["properties"]["operator"]["const"]
        parameters = types.definitions[stage["properties"]["with"]["$ref"].rpartition("/")[2]]
        if "properties" in parameters:
            methods.append(method(name, stage["description"], parameters, types))
    # Names of choices first, which the others use.
    named = sorted(types.used.items(), key=lambda one: (one[1].startswith("class"), one[0]))
    aliases = "".join(text for _, text in named if not text.startswith("class"))
    classes = [text for _, text in named if text.startswith("class")]
    head = 'class Stages(Builder):\n    """The methods of `Pipeline` that add a stage of an operator each."""\n'
    return "\n\n".join([HEAD + aliases, *classes, "\n".join([head, *methods])])


if __name__ == "__main__":
    text = stages()
    if "--check" in sys.argv[1:]:
        if not FILE.exists() or FILE.read_text() != text:
            sys.exit("python/trommel/_stages.py is stale: run python/stages.py")
    else:
        FILE.write_text(text)
