"""The shape of the code: what is guessed of draws and kernels, how long functions are, names."""

import ast
import re
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "numpyro_rankings"
FILES = {str(path.relative_to(PACKAGE)): path for path in sorted(PACKAGE.rglob("*.py"))}
TREES = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in FILES.items()}
SITES = {
    "assignments", "center", "concentration", "weights", "unseen_weight", "root_weights", "links",
    "cluster_sizes", "num_clusters", "log_joint", "phi", "gamma", "total_weight",
}  # fmt: skip
# what knows draws, and what knows the kernels of NumPyro, which do not say what they are
KNOWS = ("families/", "posterior/draws.py", "run/kernels.py")
# values to start from are what a user gives, and sections are of a page
GIVEN = re.compile(r"start|given|sections|options")


def guesses(tree):
    """Yield the lines that find out by a look what draws, a kernel or a profile are."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            is_site = isinstance(node.left, ast.Constant) and node.left.value in SITES
            if is_site and not GIVEN.search(ast.unparse(node.comparators[0])):
                yield node.lineno
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            arguments = [ast.unparse(argument) for argument in node.args]
            if node.func.id == "isinstance" and re.search(
                r"\w(Gibbs|Kernel|Profile|HMC)\b", arguments[1]
            ):
                yield node.lineno
            elif (
                node.func.id in ("hasattr", "getattr")
                and re.search(
                    r"kernel|profile|sampler|block|mcmc|run\b|draws|posterior|family|^p$",
                    arguments[0],
                )
                and not GIVEN.search(arguments[0])
            ):
                yield node.lineno


def functions():
    """Yield the place and the syntax of every function."""
    for name, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                yield f"{name}:{node.lineno} {node.name}", node


def length(function):
    """The number of lines of a function without its docstring."""
    lines = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function) is not None:
        lines -= function.body[0].end_lineno - function.body[0].lineno + 1
    return lines


def test_what_draws_are_is_known_and_not_guessed():
    places = [
        f"{name}:{line}"
        for name, tree in TREES.items()
        if not name.startswith(KNOWS)
        for line in guesses(tree)
    ]
    assert len(places) < 20, "\n".join(places)


def test_functions_are_short():
    lengths = {place: length(function) for place, function in functions()}
    assert {place: n for place, n in lengths.items() if n > 80} == {}
    long = {place: n for place, n in lengths.items() if n > 40}
    assert len(long) <= 0.02 * len(lengths), (len(lengths), long)


def test_imports_within_functions_say_what_they_save():
    """A comment beside the import gives the reason, or one at the top of the file or package."""
    without = []
    for place, function in functions():
        path = FILES[place.partition(":")[0]]
        text, package = (x.read_text(encoding="utf-8") for x in (path, path.parent / "__init__.py"))
        lines = text.splitlines()
        imports = [x for x in function.body if isinstance(x, ast.Import | ast.ImportFrom)]
        rows = [row for one in imports for row in (one.lineno - 1, one.lineno)]
        reason = r"^# (Functions import|A function imports) "
        for_all = re.search(reason, f"{text}\n{package}", re.MULTILINE)
        if imports and not for_all and not any("#" in lines[row - 1] for row in rows):
            without.append(place)
    assert without == []
