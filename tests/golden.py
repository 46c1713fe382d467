"""Golden files: what commands print and write, to see whether a change of the code changes it.

    python tests/golden.py make OLD              # in a checkout before the change
    python tests/golden.py make NEW              # and in one after it
    python tests/golden.py compare OLD NEW       # names what differs; status 1 if anything does

Both are made on one machine with the same versions: draws depend on the
processor in their last bits. The clock stands still, and seeds are fixed. Of
``posterior.nc`` the content is compared, not the bytes.
"""

import argparse
import contextlib
import difflib
import hashlib
import importlib
import io
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

RANKS = "judge,region,Ann,Bob,Cid,Dee\n" + "".join(
    f"j{i},{'north' if i % 3 else 'south'},{','.join(map(str, row))}\n"
    for i, row in enumerate(
        [(1, 2, 3, 4), (4, 3, 2, 1), (1, 3, 2, 4), (2, 1, 3, 4), (4, 2, 3, 1)] * 8
    )
)
ORDERS = "1st,2nd,3rd\nAnn,Bob,Cid\nBob,,\nCid,Bob,\nAnn,Cid,Bob\n" * 5
LONG = "judge,item,rank\n" + "".join(
    f"j{i},{item},{rank}\n"
    for i in range(12)
    for rank, item in enumerate("abc" if i % 2 else "cb", 1)
)
CELL = "who;answer\nj1;Ann,Bob,Cid\nj2;Bob\nj3;Cid,Ann\n"
VOTES = (
    "ballot,rank1,rank2,rank3\n1,Ann,Bob,undervote\n2,Bob,overvote,Cid\n3,Ann,Ann,Cid\n"
    "4,undervote,Cid,Bob\n5,Write-in,Ann,Bob\n"
)
BLT = '3 1\n4 1 2 0\n3 2 3 1 0\n2 3 0\n0\n"Ann"\n"Bob"\n"Cid"\n"A small ward"\n'
POINTS = "who,x,y,day\n" + "".join(
    f"p{i},{5 * (-1) ** i + i * 7 % 5 / 9:.3f},{50 * (-1) ** i + i * 3 % 7 / 3:.3f},{i // 4}\n"
    for i in range(20)
)
GRAPH = "".join(f"p{i},p{i + 2}\n" for i in range(18))
DOCUMENTS = "title,gene,cell,vote,law\n" + "".join(
    f"d{i},{(5, 3, 0, 1)[i % 2 :: 2][0]},{4 - 3 * (i % 2)},{(0, 6)[i % 2]},{2 * (i % 2)}\n"
    for i in range(14)
)
LDA = "2 0:3 1:2\n1 2:5\n2 2:3 3:1\n3 0:2 1:4 3:1\n0\n"
JUDGES = "--layout ranks --judge judge --about region"
SHORT = "--warmup 20 --draws 40 --chains 2 --no-progress --out out"
FIT = f"fit small.soi --max-clusters 16 {SHORT}"
RANKED = f"fit ranks.csv {JUDGES}"
GAUSSIAN = "cluster points.csv --names who --family gaussian"
DESCRIBED = "small.soi ranks.csv orders.csv long.csv cell.csv votes.csv ward.blt points.csv".split()

COMMANDS = {
    "mallows-process": FIT,
    "mallows-beta": f"{FIT} --sampler beta --alpha gamma(1,1)",
    "mallows-3": f"{RANKED} --components 3 {SHORT}",
    "mallows-1": f"{RANKED} --components 1 {SHORT}",
    "plackett-luce-1": f"fit orders.csv --model plackett-luce {SHORT}",
    "plackett-luce-3": f"{RANKED} --model plackett-luce --components 3 {SHORT}",
    "gamma-process": f"fit orders.csv --model gamma-process {SHORT}",
    "dp-plackett-luce": f"fit small.soi --model dp-plackett-luce --max-clusters 16 {SHORT}",
    "blocs": f"{FIT} --blocs 2 --seed 3",
    "long": f"fit long.csv --components 2 {SHORT}",
    "chunks": "fit small.soi --max-clusters 16 --ess 40 --minutes 1 --chains 2",
    "several": f"fit small.soi votes.csv {SHORT}",
    "gaussian": f"{GAUSSIAN} {SHORT}",
    "in-time": f"{GAUSSIAN} --time day --decay exponential:2 {SHORT}",
    "along-a-graph": f"cluster points.csv --family gaussian --graph graph.csv --hops 2 {SHORT}",
    "documents": f"cluster documents.csv --family multinomial {SHORT}",
    "lda": f"cluster corpus.ldac --family multinomial {SHORT}",
    "compare": f"compare ranks.csv {JUDGES} --components 1-2 --chains 2 --minutes 1 --no-progress "
    "--out out",
    **{f"describe-{name.replace('.', '-')}": f"describe {name}" for name in DESCRIBED},
    "describe-page": f"describe ranks.csv {JUDGES} --plot page.html",
    "describe-apa": "describe",
    "refused-gap": f"fit gap.csv {SHORT}",
    "refused-unknown": "fit none.csv",
    **{f"help-{x}": f"{x} --help" for x in ("fit", "describe", "compare", "cluster", "check")},
    "help": "--help",
}


SOI = """\
# FILE NAME: small.soi
# NUMBER ALTERNATIVES: 4
# NUMBER VOTERS: 40
# NUMBER UNIQUE ORDERS: 5
# ALTERNATIVE NAME 1: Ann <A>
# ALTERNATIVE NAME 2: Bob
# ALTERNATIVE NAME 3: Cid
# ALTERNATIVE NAME 4: Dee
14: 1,2,3,4
4: 1,2
12: 4,3,2
6: 4
4: 2,1,3
"""
INPUTS = {
    "small.soi": SOI, "ranks.csv": RANKS, "orders.csv": ORDERS, "long.csv": LONG, "cell.csv": CELL,
    "votes.csv": VOTES, "ward.blt": BLT, "points.csv": POINTS, "graph.csv": GRAPH,
    "documents.csv": DOCUMENTS, "corpus.ldac": LDA, "gap.csv": "Ann,Bob,Cid\n1,3,\n1,2,3\n",
}  # fmt: skip


def write_inputs(folder: Path) -> None:
    for name, text in INPUTS.items():
        (folder / name).write_text(text, encoding="utf-8")


def still_clock() -> None:
    for name in ("numpyro_rankings._system.clock", "numpyro_rankings.clock"):
        with contextlib.suppress(ModuleNotFoundError):
            clock = importlib.import_module(name)
            clock.now, clock.date_and_time = lambda: 0.0, lambda: "2026-01-01 00:00:00"
            return


def content(path: Path) -> str:
    """Return a text of everything in a file of draws: names, types, shapes, hashes, attributes."""
    import h5netcdf

    lines = []

    def visit(group, name):
        for key, value in sorted(group.attrs.items()):
            lines.append(f"{name}@{key} = {value!r}")
        for key, x in sorted(group.variables.items()):
            values = x[...]
            raw = repr(values.tolist()).encode() if values.dtype.hasobject else values.tobytes()
            digest = hashlib.sha256(raw).hexdigest()[:16]
            lines.append(f"{name}{key}{x.dimensions} {x.shape} {x.dtype} {digest}")
            lines.extend(f"{name}{key}@{k} = {v!r}" for k, v in sorted(x.attrs.items()))
        for key, x in sorted(group.groups.items()):
            visit(x, f"{name}{key}/")

    with h5netcdf.File(path) as file:
        visit(file, "/")
    return "\n".join(lines) + "\n"


def make(out: Path, names: list[str]) -> None:
    out = out.absolute()
    os.environ.setdefault("COLUMNS", "100")
    import jax

    jax.config.update("jax_num_cpu_devices", 1)
    from numpyro_rankings import _version

    _version.__version__ = "0.1.0"  # which pages and draws name, whatever it is
    still_clock()
    from numpyro_rankings.cli import main

    for name in names or COMMANDS:
        folder = out / name
        folder.mkdir(parents=True, exist_ok=True)
        write_inputs(folder)
        os.chdir(folder)
        screen = io.StringIO()
        with contextlib.redirect_stdout(screen), contextlib.redirect_stderr(screen):
            status = main(COMMANDS[name].split())
        for path in list(folder.rglob("*.nc")):
            path.with_suffix(".txt").write_text(content(path), encoding="utf-8")
            path.unlink()
        for path in folder.iterdir():
            if path.name in INPUTS:
                path.unlink()
        text = screen.getvalue().replace(str(folder), "FOLDER")
        (folder / "screen.txt").write_text(f"{text}\nstatus {status}\n", encoding="utf-8")
        print(name, status, flush=True)


def lines_of(path: Path, top: Path) -> list[str]:
    """Return the lines of a file, without the folder and the time of its making."""
    text = path.read_bytes().decode("utf-8", "replace").replace(str(top.absolute()), "")
    return [line for line in text.splitlines() if "/@created_at = " not in line]


def compare(old: Path, new: Path) -> int:
    def files(top: Path) -> dict[str, Path]:
        kept = [p for p in top.rglob("*") if p.is_file() and ".run/" not in f"{p}"]
        return {str(p.relative_to(top)): p for p in kept}

    ours, theirs = files(old), files(new)
    differing = sorted(ours.keys() ^ theirs.keys())
    for name in differing:
        print(f"only in {'OLD' if name in ours else 'NEW'}: {name}")
    for name in sorted(ours.keys() & theirs.keys()):
        before, after = lines_of(ours[name], old), lines_of(theirs[name], new)
        if before != after:
            differing.append(name)
            for line in list(difflib.unified_diff(before, after, name, name, "", "", 0))[:12]:
                print(line.rstrip("\n")[:240])
    print(f"{len(ours)} files, {len(differing)} differ")
    return 1 if differing else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True, dest="command")
    one = commands.add_parser("make")
    one.add_argument("out", type=Path)
    one.add_argument("names", nargs="*", help=f"some of {', '.join(COMMANDS)}")
    two = commands.add_parser("compare")
    two.add_argument("old", type=Path)
    two.add_argument("new", type=Path)
    args = parser.parse_args()
    if args.command == "make":
        make(args.out, args.names)
    else:
        raise SystemExit(compare(args.old, args.new))
