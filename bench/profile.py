#!/usr/bin/env python3
"""Prints the samples of one thread in a profile of `perf record`, by source file of the project.

    perf record -o profile.data target/release/trommel-bench ...
    bench/profile.py profile.data target/release/trommel-bench THREAD

A sample counts for the innermost file of the project among the inlined calls at its address, and otherwise for the
kernel or the library that it is in. `perf report --sort srcfile` asks for each address alone, which takes far longer.
"""

import collections
import pathlib
import re
import subprocess
import sys

LEAST_PERCENT = 2.0


def output(*command, text=None):
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def text_segment(binary):
    """Offset in the file and address of the code of a binary."""
    for line in output("readelf", "-lW", binary).splitlines():
        if re.search(r"LOAD.* R E ", line):
            return [int(word, 16) for word in line.split()[1:3]]
    sys.exit(f"{binary} has no code")


def shift_to_binary(profile, binary):
    """What turns an address of the process into one of the binary."""
    path = str(pathlib.Path(binary).resolve())
    for line in output("perf", "script", "-i", profile, "--show-mmap-events").splitlines():
        found = re.search(r"\[0x(\w+)\(0x\w+\) @ (?:0x)?(\w+).*r-xp (.*)", line)
        if found and found[3] == path:
            begin, offset = int(found[1], 16), int(found[2], 16)
            in_file, address = text_segment(binary)
            return offset - begin + address - in_file
    sys.exit(f"{profile} is not of {path}")


def files_of(binary, addresses):
    """The innermost file of the project for each address."""
    asked = "\n".join(f"{address:#x}" for address in addresses)
    files, address = {}, None
    for line in output("addr2line", "-a", "-i", "-e", binary, text=asked).splitlines():
        if line.startswith("0x"):
            address = int(line, 16)
        elif address not in files:
            found = re.search(r"/((?:engine|kernels|operators|bench)/src/.*\.rs):", line)
            if found:
                files[address] = found[1]
    return files


def main():
    profile, binary, thread = sys.argv[1:]
    shift = shift_to_binary(profile, binary)
    samples = collections.Counter()
    for line in output("perf", "script", "-i", profile, "--comm", thread, "-F", "ip,sym,dso").splitlines():
        ip, rest = line.split(maxsplit=1)
        library = rest[rest.rindex("(") + 1 : -1]
        is_ours = pathlib.Path(library).name == pathlib.Path(binary).name
        samples[int(ip, 16) + shift if is_ours else pathlib.Path(library).name] += 1
    files = files_of(binary, [place for place in samples if isinstance(place, int)])
    by_file = collections.Counter()
    for place, count in samples.items():
        by_file[files.get(place, "other") if isinstance(place, int) else place] += count
    total = sum(by_file.values())
    print(f"{total} samples of the thread `{thread}`\n\n| source | share, % |\n|---|---:|")
    shown = [(file, count) for file, count in by_file.most_common() if 100 * count >= LEAST_PERCENT * total]
    for file, count in shown:
        print(f"| `{file}` | {100 * count / total:.1f} |")
    print(f"| less than {LEAST_PERCENT:.0f} % each | {100 * (1 - sum(count for _, count in shown) / total):.1f} |")


if __name__ == "__main__":
    main()
