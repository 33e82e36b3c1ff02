"""Examples of the documentation, and its completeness."""

import doctest
import inspect
import re
from pathlib import Path

import pytest

import trommel
import usage
from trommel import _functions, _index, _inputs, _items, _pipeline, _streams, _tables


@pytest.mark.parametrize("module", [_functions, _tables, _inputs, _items, _streams, _index, _pipeline])
def test_examples_of_docstrings(module):
    failed, tried = doctest.testmod(module)
    assert tried > 0 and failed == 0


def test_the_usage_that_is_type_checked_runs():
    usage.everything()


def members(owner):
    for name, member in vars(owner).items():
        if not name.startswith("_") and (callable(member) or isinstance(member, (property, classmethod))):
            yield name, member.__func__ if isinstance(member, classmethod) else member


def test_everything_public_is_documented():
    for name in trommel.__all__:
        public = getattr(trommel, name)
        if name.startswith("__"):
            continue
        assert inspect.getdoc(public), name
        if inspect.isclass(public) and public.__module__.startswith("trommel._") and not issubclass(public, tuple):
            for method, member in members(public):
                assert inspect.getdoc(member), f"{name}.{method}"
        if inspect.isfunction(public):
            text = inspect.getdoc(public)
            for section in ("Parameters", "Raises", "Examples"):
                assert section in text, f"{name}: {section}"
            for parameter in inspect.signature(public).parameters:
                assert parameter in text, f"{name}: {parameter}"


def test_the_methods_of_pipelines_are_those_of_the_schema():
    import stages

    assert stages.FILE.read_text() == stages.stages(), "run python/stages.py"


def test_the_reference_is_that_of_the_docstrings():
    import reference

    assert reference.PAGE.read_text() == reference.reference()


GUIDE = Path(__file__).parents[2] / "docs" / "python.md"


def test_the_code_of_the_guide_runs(monkeypatch, capsys):
    monkeypatch.chdir(GUIDE.parents[1])
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert len(blocks) >= 4
    names = {}
    for block in blocks:
        exec(compile(block, str(GUIDE), "exec"), names)
    pairs = names["pl"].DataFrame(names["pairs"]).to_dicts()
    assert [(pair["left_path"], pair["right_path"]) for pair in pairs] == [("x", "y")]
    assert len(names["running"].rows("rows")) == 10


def test_the_licences_go_into_the_wheel():
    root = Path(__file__).parents[2]
    licences = sorted(path.name for path in root.glob("LICENSE-*"))
    assert len(licences) == 2 and 'license-files = ["LICENSE-*"]' in (root / "python" / "pyproject.toml").read_text()
    for name in licences:
        assert (root / "python" / name).read_text() == (root / name).read_text()
