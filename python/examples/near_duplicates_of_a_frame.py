"""Rows of a frame that share most of their words, exactly.

    python near_duplicates_of_a_frame.py

The frame has the paragraphs of two licences of this repository; any frame of polars or pandas and any
table of pyarrow or DuckDB will do.
"""

from pathlib import Path

import polars as pl

import trommel

ROOT = Path(__file__).parents[2]


def paragraphs(*files: Path) -> pl.DataFrame:
    rows = [(file.name, text) for file in files for text in file.read_text().split("\n\n") if text.strip()]
    return pl.DataFrame(rows, schema=["file", "text"], orient="row")


def near_duplicates(frame: pl.DataFrame, threshold: str) -> pl.DataFrame:
    pairs = trommel.near_duplicates(frame, threshold, column="text", carry=["file", "text"])
    return pl.DataFrame(pairs).sort("similarity", descending=True)


if __name__ == "__main__":
    frame = paragraphs(ROOT / "LICENSE-APACHE", ROOT / "LICENSE-MIT", ROOT / "python" / "LICENSE-MIT")
    for pair in near_duplicates(frame, "1/2").iter_rows(named=True):
        text = " ".join(pair["left_text"].split())[:50]
        print(f"{pair['similarity']:.2f} {pair['left_file']} {pair['right_file']}: {text}")
