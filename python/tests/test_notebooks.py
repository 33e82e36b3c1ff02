"""The notebooks of the guide run, and show what they say."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

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


class Recorder(NotebookClient):
    """Keeps what a cell shows in place of what it showed before."""

    updates = ()

    def process_message(self, message, cell, index):
        if message["msg_type"] == "update_display_data":
            self.updates += (message["content"]["data"]["text/plain"],)
        return super().process_message(message, cell, index)


def test_a_notebook_shows_the_progress_and_the_plan(tmp_path):
    numbers = tmp_path / "numbers.txt"
    numbers.write_text("7\n" * 1000)
    cells = [
        "import time, trommel\n"
        "p = trommel.Pipeline('endless')\n"
        "_ = p.discard('end', p.generate('items', items=1_500_000, rate=2e6))\n"
        "_ = p.run()",
        "p",
        "p.run(progress=False)",
        "f = trommel.Pipeline()\n"
        f"lines = f.read('in', paths=[{str(numbers)!r}], format='lines')\n"
        "_ = f.for_each('end', lines, lambda rows: time.sleep(0.4))\n"
        "_ = f.run()",
    ]
    notebook = new_notebook(cells=list(map(new_code_cell, cells)))
    client = Recorder(notebook, timeout=60, kernel_name="python3")
    client.execute()
    running, plan, metrics, file = (cell.outputs for cell in notebook.cells)
    # One output, which ends with all items.
    (progress,) = running
    assert progress["data"]["text/plain"].startswith("1,500,000 items  ")
    numbers_shown = [int(text.split()[0].replace(",", "")) for text in client.updates if text[0].isdigit()]
    assert numbers_shown == sorted(numbers_shown) and 0 < numbers_shown[1] < numbers_shown[-1] == 1_500_000
    assert "<td>generate</td>" in plan[0]["data"]["text/html"]
    (shown,) = metrics
    assert "<td>1,500,000</td>" in shown["data"]["text/html"]
    # A file has a known end.
    (progress,) = file
    assert progress["data"]["text/plain"].startswith("━" * 24 + " 100%  1,000 items  ")
