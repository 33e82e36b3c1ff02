"""Writes docs/reference/python-api.md from the signatures and docstrings of the package.

``python reference.py`` writes the page, ``python reference.py --check`` compares it.
"""

from __future__ import annotations

import ast
import inspect
import sys
from pathlib import Path

HERE = Path(__file__).parent
PACKAGE = HERE / "python" / "trommel"
PAGE = HERE.parent / "docs" / "reference" / "python-api.md"
# Classes whose methods others have, and their files.
SHARED = {"_Stream": "_streams.py", "Stages": "_stages.py"}
# Signatures with more characters have a line for each argument.
SIGNATURE_MAX = 100
# In the order in which a reader meets them.
SOURCES = [
    ("_functions.py", "Functions"),
    ("_tables.py", "Functions"),
    ("_inputs.py", "Functions"),
    ("_items.py", "Objects"),
    ("_streams.py", "Objects"),
    ("_index.py", "Objects"),
    ("_pipeline.py", "Pipelines"),
    ("_trommel.pyi", "Tables and errors"),
]


def public_names() -> list[str]:
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    lists = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    return list(ast.literal_eval(lists[0]))


def shared_members(bases: list[ast.expr]) -> list[ast.FunctionDef]:
    """The public methods that a class has from these classes of other files."""
    members: list[ast.FunctionDef] = []
    for base in bases:
        file = SHARED.get(ast.unparse(base))
        tree = ast.parse((PACKAGE / file).read_text()).body if file else []
        for node in tree:
            if isinstance(node, ast.ClassDef) and node.name == ast.unparse(base):
                members += [member for member in node.body if isinstance(member, ast.FunctionDef)]
    return [member for member in members if not member.name.startswith("_")]


def signature(node: ast.FunctionDef | ast.AsyncFunctionDef, owner: str = "") -> str:
    arguments = ast.unparse(node.args)
    for receiver in ("self, ", "cls, ", "self", "cls"):
        arguments = arguments.removeprefix(receiver)
    name = owner if node.name == "__init__" else f"{owner}.{node.name}" if owner else node.name
    returns = f" -> {ast.unparse(node.returns)}" if node.returns and node.name != "__init__" else ""
    return f"{name}({arguments}){returns}"


def prose(docstring: str) -> str:
    """The sections of a docstring as Markdown."""
    lines = inspect.cleandoc(docstring).replace("``", "`").splitlines()
    page: list[str] = []
    in_code = in_names = False
    for number, line in enumerate(lines):
        below = lines[number + 1] if number + 1 < len(lines) else ""
        if below and set(below) == {"-"}:
            page.append(f"*{line}*\n")
            in_names = line in ("Parameters", "Raises", "Returns")
            continue
        if line and set(line) == {"-"}:
            continue
        is_code = line.startswith((">>> ", "... ")) or (in_code and line.strip() != "")
        if is_code != in_code:
            page.append("```python" if is_code else "```")
            in_code = is_code
        if in_names and not is_code and line and not line.startswith(" "):
            page.append(f"- `{line}`:")
        else:
            page.append(line if is_code else f"  {line.strip()}" if in_names and line else line)
    if in_code:
        page.append("```")
    return "\n".join(page)


def heading(node: ast.FunctionDef, owner: str, level: str) -> list[str]:
    """The heading of a function: its signature, which stands below the name if it is long."""
    whole = signature(node, owner)
    if len(whole) <= SIGNATURE_MAX:
        return [f"{level} `{whole}`\n"]
    name, _, rest = whole.partition("(")
    returns = rest.rpartition(")")[2]
    lines = [f"    {line}," for line in arguments(node)]
    return [f"{level} `{name}`\n", "```python", f"{name}(", *lines, f"){returns}", "```\n"]


def arguments(node: ast.FunctionDef) -> list[str]:
    """The arguments of a function without its receiver, one by one."""
    of = node.args
    defaults: list[ast.expr | None] = [None] * (len(of.args) - len(of.defaults)) + list(of.defaults)
    positional = [one for one in zip(of.args, defaults) if one[0].arg not in ("self", "cls")]
    lines = [argument(*one) for one in positional]
    if of.kwonlyargs:
        lines.append("*")
    lines += [argument(*one) for one in zip(of.kwonlyargs, of.kw_defaults)]
    return lines + ([f"**{ast.unparse(of.kwarg)}"] if of.kwarg else [])


def argument(node: ast.arg, default: ast.expr | None) -> str:
    return ast.unparse(node) + (f" = {ast.unparse(default)}" if default else "")


def described(node: ast.ClassDef | ast.FunctionDef, owner: str = "") -> list[str]:
    text = ast.get_docstring(node) or ""
    if isinstance(node, ast.FunctionDef):
        decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
        level = "####" if owner else "###"
        is_property = "property" in decorators
        head = [f"{level} `{owner}.{node.name}`\n"] if is_property else heading(node, owner, level)
        return [*head, prose(text), ""]
    methods = [member for member in node.body if isinstance(member, ast.FunctionDef)]
    made = [member for member in methods if member.name == "__init__"]
    head = heading(made[0], node.name, "###") if made else [f"### `{node.name}`\n"]
    page = [*head, prose(text), ""]
    for member in methods:
        if ast.get_docstring(member) and not member.name.startswith("_"):
            page += described(member, node.name)
    for member in shared_members(node.bases):
        page += described(member, node.name)
    return page


def types() -> list[str]:
    """The types of parameters: what a text can be, and what an object has."""
    page = [
        "## Types of parameters\n",
        "For type checkers; a program passes texts and dicts.\n",
    ]
    tree = ast.parse((PACKAGE / "_stages.py").read_text())
    for node in tree.body:
        if isinstance(node, ast.Assign):
            page.append(f"- `{ast.unparse(node)}`")
        elif isinstance(node, ast.ClassDef) and "TypedDict" in map(ast.unparse, node.bases):
            keys = ", ".join(ast.unparse(key) for key in node.body if isinstance(key, ast.AnnAssign))
            page.append(f"- `{node.name}`, a dict with `{keys}`")
    return [*page, ""]


def reference() -> str:
    names = public_names()
    page = [
        "# The interface of the Python package\n",
        "Made from the signatures and docstrings by `python/reference.py`. [python.md](../python.md) is the guide.\n",
    ]
    heading = ""
    for file, title in SOURCES:
        tree = ast.parse((PACKAGE / file).read_text())
        for node in tree.body:
            if not isinstance(node, (ast.ClassDef, ast.FunctionDef)) or node.name not in names:
                continue
            if title != heading:
                heading = title
                page.append(f"## {title}\n")
            page += described(node)
    page += types()
    return "\n".join(page).rstrip() + "\n"


if __name__ == "__main__":
    text = reference()
    if "--check" in sys.argv[1:]:
        if not PAGE.exists() or PAGE.read_text() != text:
            sys.exit("docs/reference/python-api.md is stale: run python/reference.py")
    else:
        PAGE.write_text(text)
