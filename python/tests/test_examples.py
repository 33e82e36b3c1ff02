"""The programs of the folder `examples` run, and print what they promise."""

import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[1] / "examples"

LOG = """\
10.0.0.1 - - [29/Nov/2026:10:00:00 +0000] "GET /index HTTP/1.1" 200
10.0.0.2 - - [29/Nov/2026:10:00:01 +0000] "GET /help HTTP/1.1" 404
10.0.0.1 - - [29/Nov/2026:10:00:02 +0000] "GET /index HTTP/1.1" 200
"""

# Each program, its arguments, and beginnings of lines that it prints.
EXAMPLES = {
    "top_of_a_log": (["access.log", "5"], ["GET /index HTTP/1.1: 2", "GET /help HTTP/1.1: 1"]),
    "near_duplicates_of_a_frame": ([], ["1.00 LICENSE-MIT LICENSE-MIT: Permission is hereby granted, free of charge, to a"]),
    "live_top_of_a_stream": ([], ["1: at most ", "3: at most "]),
    "market_baskets": ([], ["bread and butter: 3 baskets, 75% of those with bread, lift 1.50"]),
    "close_embeddings": ([], ["0.77 posting, posting list", "96 of 102 terms have no close one before them"]),
}


def test_all_examples_are_run_and_are_short():
    assert {path.stem for path in FOLDER.glob("*.py")} == set(EXAMPLES)
    for path in FOLDER.glob("*.py"):
        assert len(path.read_text().splitlines()) < 60, path


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_prints_what_it_promises(name, tmp_path):
    arguments, lines = EXAMPLES[name]
    (tmp_path / "access.log").write_text(LOG)
    program = [sys.executable, str(FOLDER / f"{name}.py"), *arguments]
    ended = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    printed = ended.stdout.splitlines()
    for line in lines:
        assert any(found.startswith(line) for found in printed), ended.stdout
