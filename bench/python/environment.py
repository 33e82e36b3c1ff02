"""An environment of packages for the scripts beside this one."""

import json
import os
import pathlib
import subprocess
import sys
import time
import venv


def enter(environment, packages, constraints=(), retry=False):
    """Goes on in the environment; makes it if it is not there or has other packages, and with
    `retry` if some could not be installed.

    Each package is installed by itself. Returns those that could not be, with what pip said.
    """
    stamp = environment / "packages.json"
    installed = json.loads(stamp.read_text()) if stamp.exists() else {}
    if pathlib.Path(sys.prefix).resolve() == environment.resolve():
        return installed["failed"]
    python = environment / "bin" / "python"
    wanted = {"packages": list(packages), "constraints": list(constraints)}
    if installed.get("wanted") != wanted or (retry and installed["failed"]):
        venv.create(environment, with_pip=True, clear=True)
        limits = environment / "constraints.txt"
        limits.write_text("\n".join(constraints))
        said = {package: install(python, package, limits) for package in packages}
        failed = {package: line for package, line in said.items() if line is not None}
        stamp.write_text(json.dumps({"wanted": wanted, "failed": failed}))
    os.execv(python, [str(python), *sys.argv])


def install(python, package, limits):
    """What pip said last, if it could not; else `None`.

    The constraints hold for what builds the package, too, so they go through pip's variable.
    """
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", package]
    variables = {**os.environ, "PIP_CONSTRAINT": str(limits)}
    done = subprocess.run(
        pip, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    if done.returncode == 0:
        return None
    return (done.stderr.strip().splitlines() or ["without a word"])[-1]


def repeated(rounds, query):
    """The seconds of each round, and the last result."""
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        result = query()
        seconds.append(time.perf_counter() - start)
    return seconds, result
