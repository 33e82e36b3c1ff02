"""Plans, metrics and progress, in terminals and notebooks."""

from __future__ import annotations

import sys
from html import escape
from typing import Any

from . import _trommel


def _table(head: list[str], rows: list[list[Any]]) -> str:
    def line(tag: str, cells: list[Any]) -> str:
        return "<tr>" + "".join(f"<{tag}>{escape(str(cell))}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(line("td", row) for row in rows)
    return f"<table><thead>{line('th', head)}</thead><tbody>{body}</tbody></table>"


def plan_html(plan: dict[str, Any]) -> str:
    """The stages of a plan, with the thread of each part."""
    threads = {part: n for n, thread in enumerate(plan["threads"]) for part in thread["parts"]}
    devices = {device["part"]: device["device"] for device in plan["devices"]}
    rows = []
    for stage in plan["stages"]:
        columns = ["; ".join(f"{name}: {kind}" for name, kind in out.items()) for out in stage["outputs"]]
        rows.append(
            [
                stage["id"],
                stage["operator"],
                ", ".join(stage["inputs"]),
                " | ".join(columns),
                ", ".join(str(threads[part]) for part in stage["parts"]),
                ", ".join(devices[part] for part in stage["parts"] if part in devices),
            ]
        )
    head = ["stage", "operator", "inputs", "output", "threads", "device"]
    return f"<p><b>{escape(plan['name'])}</b></p>" + _table(head, rows)


def metrics_html(metrics: dict[str, Any], phase: str) -> str:
    """The numbers of all stages."""
    rows = [
        [
            stage["id"],
            stage["operator"],
            f"{stage['items_in']:,}",
            f"{stage['items_out']:,}",
            f"{stage['items_per_second']:,.0f}",
            f"{stage['busy_seconds']:.3f}",
            f"{stage['latency_ms']['p99']:.2f}",
        ]
        for stage in metrics["stages"]
    ]
    head = ["stage", "operator", "items in", "items out", "items/s", "busy s", "p99 ms"]
    name = escape(metrics["pipeline"])
    return f"<p><b>{name}</b>, {phase}, {metrics['wall_seconds']:.2f} s</p>" + _table(head, rows)


def progress_text(items: int, read: int, total: int | None, seconds: float) -> str:
    """The progress of a run, in a line."""
    text = f"{items:,} items  {items / max(seconds, 1e-3):,.0f} items/s  {seconds:.1f} s"
    if total is not None:
        share = min(read / total, 1.0)
        text = f"{'━' * round(24 * share):╌<24} {share:4.0%}  {text}"
    return text


def _is_notebook() -> bool:
    """Whether outputs are shown by a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and "IPKernelApp" in shell.config


class Progress:
    """A line that shows the progress of a run: of a terminal, or the output of a notebook's cell."""

    def __init__(self, run: _trommel.Run) -> None:
        self._run = run
        self._cell: Any = None
        self._is_terminal = False
        if _is_notebook():
            import IPython.display

            notebook: Any = IPython.display
            self._cell = notebook.display({"text/plain": ""}, raw=True, display_id=True)
        else:
            self._is_terminal = sys.stderr is not None and sys.stderr.isatty()

    def draw(self) -> None:
        """Show the numbers of this moment."""
        if self._cell is None and not self._is_terminal:
            return
        import json

        read, items, total = self._run.progress()
        seconds = json.loads(self._run.report())["wall_seconds"]
        text = progress_text(items, read, total, seconds)
        if self._cell is not None:
            self._cell.update({"text/plain": text}, raw=True)
        else:
            sys.stderr.write(f"\r\x1b[2K{text}")
            sys.stderr.flush()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *error: object) -> None:
        if self._cell is not None:
            self.draw()
        elif self._is_terminal:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()
