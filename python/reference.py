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
# In the order in which a reader meets them.
SOURCES = [
    ("_functions.py", "Functions"),
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


def described(node: ast.ClassDef | ast.FunctionDef, owner: str = "") -> list[str]:
    text = ast.get_docstring(node) or ""
    if isinstance(node, ast.FunctionDef):
        decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
        shown = f"{owner}.{node.name}" if "property" in decorators else signature(node, owner)
        level = "####" if owner else "###"
        return [f"{level} `{shown}`\n", prose(text), ""]
    methods = [member for member in node.body if isinstance(member, ast.FunctionDef)]
    made = [member for member in methods if member.name == "__init__"]
    page = [f"### `{signature(made[0], node.name) if made else node.name}`\n", prose(text), ""]
    for member in methods:
        if ast.get_docstring(member) and not member.name.startswith("_"):
            page += described(member, node.name)
    return page


def reference() -> str:
    names = public_names()
    page = [
        "# The interface of the Python package\n",
        "Made from the signatures and docstrings by `python/reference.py`. [python.md](../python.md) is the guide.\n",
    ]
    heading = ""
    for file, title in SOURCES:
        tree = ast.parse((PACKAGE / file).read_text())
        shared = {n.name: n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "_Stream"}
        for node in tree.body:
            if not isinstance(node, (ast.ClassDef, ast.FunctionDef)) or node.name not in names:
                continue
            if title != heading:
                heading = title
                page.append(f"## {title}\n")
            page += described(node)
            if isinstance(node, ast.ClassDef) and any(ast.unparse(b) == "_Stream" for b in node.bases):
                for member in shared["_Stream"].body:
                    if isinstance(member, ast.FunctionDef) and not member.name.startswith("_"):
                        page += described(member, node.name)
    return "\n".join(page).rstrip() + "\n"


if __name__ == "__main__":
    text = reference()
    if "--check" in sys.argv[1:]:
        if not PAGE.exists() or PAGE.read_text() != text:
            sys.exit("docs/reference/python-api.md is stale: run python/reference.py")
    else:
        PAGE.write_text(text)
