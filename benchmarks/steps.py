"""How many steps of a device a sweep has that wait for one another, from the compiled program.

``python benchmarks/steps.py``; ``--quick`` is a small version. A step is an operation after fusion,
such as a kernel of a GPU. The steps of a loop count as often as the loop turns; where this depends
on the data, as over occupied clusters, they count once, and the loops are counted beside them.
"""

import argparse
import re

import jax
from devices import kernels

_HEAD = re.compile(r"^(ENTRY )?%(\S+) \(.*\{$")
_OPERATION = re.compile(r" = (?:\([^=]*?\)|\S+) ([\w\-]+)\(")
_CALLED = re.compile(
    r"(calls|body|condition|to_apply|branch_computations)=\{?((?:%[^,}\s]+(?:, ?)?)+)"
)
_TURNS = re.compile(r'known_trip_count":\{"n":"(\d+)"')
_FREE = {
    "parameter",
    "constant",
    "get-tuple-element",
    "tuple",
    "bitcast",
    "after-all",
    "partition-id",
    "copy-done",
}


def computations(text):
    """Return the lines of each computation of a compiled program by name, and its entry."""
    found, lines, entry = {}, None, None
    for line in re.sub(r"/\*index=\d+\*/", "", text).splitlines():
        if head := _HEAD.match(line):
            lines = found.setdefault(head[2], [])
            entry = head[2] if head[1] else entry
        elif line.startswith("}"):
            lines = None
        elif lines is not None:
            lines.append(line)
    return found, entry


def count(found, name):
    """Return the steps of a computation, and its loops whose turns depend on the data."""
    steps = loops = 0
    for line in found[name]:
        operation = _OPERATION.search(line)
        if operation is None or operation[1] in _FREE:
            continue
        called = {
            kind: [x.strip().lstrip("%") for x in names.split(",") if x.strip()]
            for kind, names in _CALLED.findall(line)
        }
        if operation[1] == "while":
            parts = [count(found, called[kind][0]) for kind in ("body", "condition")]
            turns = _TURNS.search(line)
            steps += (int(turns[1]) if turns else 1) * sum(part[0] for part in parts)
            loops += (turns is None) + sum(part[1] for part in parts)
        elif operation[1] == "conditional":
            parts = [count(found, x) for names in called.values() for x in names]
            steps += 1 + max(part[0] for part in parts)
            loops += max(part[1] for part in parts)
        elif operation[1] == "call" and "to_apply" in called and "small_call" not in line:
            part = count(found, called["to_apply"][0])
            steps, loops = steps + part[0], loops + part[1]
        else:
            steps += 1
    return steps, loops


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    print(f"{jax.devices()[0].device_kind} ({jax.default_backend()}), jax {jax.__version__}\n")
    print("| kernel | steps of a sweep that wait for one another | loops over data |")
    print("|---|---|---|")
    for name, kernel, data in kernels(args.quick):
        keys = jax.random.split(jax.random.key(0), 1)
        state = kernel.init(keys, 0, None, model_args=data, model_kwargs={})
        sweep = jax.jit(lambda state, data, kernel=kernel: kernel.sample(state, data, {}))
        steps, loops = count(*computations(sweep.lower(state, data).compile().as_text()))
        print(f"| `{name}` | {steps:,} | {loops} |", flush=True)


if __name__ == "__main__":
    main()
