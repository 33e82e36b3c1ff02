"""Virtual environments with packages for the scripts of this folder."""

import json
import os
import pathlib
import subprocess
import sys
import time
import venv


def enter(environment, packages, constraints=(), retry=False):
    """Continues in the environment; creates it if it does not exist or has other packages or, with
    `retry`, if some packages could not be installed.

    Each package is installed separately. Returns the failed ones, each with the message of pip.
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
    """Installs `package`. Returns the last message of pip if that fails, else `None`.

    The constraints also hold for the build of the package, so they are passed in pip's variable.
    """
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", package]
    variables = {**os.environ, "PIP_CONSTRAINT": str(limits)}
    done = subprocess.run(
        pip, env=variables, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    if done.returncode == 0:
        return None
    return (done.stderr.strip().splitlines() or ["no message"])[-1]


def repeated(rounds, query, patience=5):
    """Seconds of each round after one to warm up, and the last result. A first round of more than
    `patience` seconds is the only one."""
    seconds = []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        result = query()
        seconds.append(time.perf_counter() - start)
        if seconds[0] > patience:
            return seconds, result
    return seconds[1:], result
