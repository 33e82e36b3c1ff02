"""The notebooks of the guide run, and show what they say."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[1] / "notebooks"


def shown(notebook):
    """The text that each cell shows."""
    cells = []
    for cell in notebook.cells:
        texts = []
        for output in cell.get("outputs", []):
            texts.append(output["text"] if "text" in output else output["data"]["text/plain"])
        cells.append("".join(texts))
    return cells


def test_there_are_four():
    assert len(list(FOLDER.glob("*.ipynb"))) == 4


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_shows_what_it_says(path):
    notebook = nbformat.read(path, as_version=4)
    expected = shown(notebook)
    assert sum(1 for text in expected if text) >= 4
    client = NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(FOLDER)}}
    )
    client.execute()
    assert shown(notebook) == expected
