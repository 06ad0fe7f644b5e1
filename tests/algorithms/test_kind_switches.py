"""How often code outside the parts asks which part it has, and how many methods of parts only say no."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from discreet.algorithms.aggregation import AnyAggregation
from discreet.algorithms.mechanisms import AnyMechanism
from discreet.algorithms.sampling import AnySampling
from discreet.algorithms.server_optimizers import AnyServer
from discreet.algorithms.sparsifiers import AnySparsifier
from discreet.algorithms.training import AnyTrainer

PACKAGE = Path(__file__).parents[2] / "src" / "discreet"
UNIONS = (AnyMechanism, AnyTrainer, AnySparsifier, AnyAggregation, AnySampling, AnyServer)
KINDS = {kind.__name__ for union in UNIONS for kind in get_args(get_args(union)[0])}
HOLDERS = {"mechanism", "trainer", "sparsifier", "aggregation", "sampling", "server"}
PARTS = ["mechanisms", "training", "sparsifiers", "aggregation", "sampling.py", "server_optimizers.py"]
EXEMPT = ["soundness.py"]  # which parts go together is what it decides
MOST_SWITCHES, MOST_STUBS = 10, 30
MOST_IN_AUDIT = 11  # an attack is written for one kind of training, and no guarantee depends on it; may only shrink


def test_code_outside_the_parts_seldom_asks_which_part_it_has() -> None:
    """A question that a part could answer belongs into its contract: then a new part changes one folder."""
    apart = {PACKAGE / "algorithms" / name for name in PARTS + EXEMPT}
    found = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if not apart & {path, *path.parents}
        for line in switches(path.read_text(encoding="utf-8"))
    ]
    audit = [place for place in found if place.startswith("audit/")]
    assert len(audit) <= MOST_IN_AUDIT, audit
    assert len(found) - len(audit) <= MOST_SWITCHES, found


def test_few_methods_of_parts_only_say_no() -> None:
    """A member that most parts leave alone has a default in the contract, where that is safe."""
    found = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for path in sorted((PACKAGE / "algorithms").rglob("*.py"))
        for line in stubs(path.read_text(encoding="utf-8"))
    ]
    assert len(found) <= MOST_STUBS, found


def switches(source: str) -> Iterator[int]:
    """Yield the line of each place that tests the class or the kind of a part."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, kinds]) if KINDS & names(kinds):
                yield node.lineno
            case ast.match_case(pattern=pattern) if KINDS & names(pattern):
                yield pattern.lineno
            case ast.Compare(left=left, comparators=others) if any(map(is_kind, [left, *others])):
                yield node.lineno


def is_kind(node: ast.expr) -> bool:
    """Return whether an expression is `mechanism.kind` or the like, or `type(mechanism)`."""
    match node:
        case ast.Attribute(value=ast.Name(id=holder) | ast.Attribute(attr=holder), attr="kind"):
            return holder in HOLDERS
        case ast.Call(func=ast.Name(id="type"), args=[ast.Name(id=holder) | ast.Attribute(attr=holder)]):
            return holder in HOLDERS
    return False


def names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def stubs(source: str) -> Iterator[int]:
    """Yield the line of each method of a part that returns only a constant, an argument, itself or nothing."""
    for cls in ast.walk(ast.parse(source)):
        if isinstance(cls, ast.ClassDef) and any(ast.unparse(each) == "part" for each in cls.decorator_list):
            for method in cls.body:
                if isinstance(method, ast.FunctionDef) and is_stub(method):
                    yield method.lineno


def is_stub(method: ast.FunctionDef) -> bool:
    body = method.body[1:] if ast.get_docstring(method) else method.body
    match body:
        case [] | [ast.Pass()] | [ast.Return(value=None | ast.Constant() | ast.Name())]:
            return True
        case [ast.Return(value=ast.Dict(keys=[]) | ast.Tuple(elts=[]) | ast.List(elts=[]))]:
            return True
        case [ast.Return(value=ast.Tuple(elts=elements))]:
            return all(isinstance(each, ast.Constant | ast.Name) for each in elements)
    return False


def test_the_counters_see_what_they_count() -> None:
    asked = """
if isinstance(x, Gaussian | int): pass
match x:
    case DpSgd(steps=1): pass
    case {"a": Shards()}: pass
    case Other(): pass
if algorithm.mechanism.kind == "gaussian" or "sgd" != trainer.kind or type(sampling) is Poisson: pass
if task.kind == "a" or isinstance(x, float): pass
"""
    assert sorted(switches(asked)) == [2, 4, 5, 7, 7, 7]
    written = """
@part
class A:
    def a(self): return 1
    def b(self, x): return x
    def c(self):
        "Doc."
        return {}
    def d(self): return self.x
    def e(self, x, y): return x, y
class B:
    def a(self): return 1
"""
    assert list(stubs(written)) == [4, 5, 6, 10]
