"""A digest of code covers the values it holds in any object, and every file of the user that it imports."""

import argparse
import importlib
import logging
import sys
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import lru_cache, partial, update_wrapper, wraps
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from discreet.experiment.run_directory.code_digest import code_digest

Loss = Callable[[Tensor, Tensor], Tensor]


class SlotsOnly:
    __slots__ = ("__hidden", "factor")

    def __init__(self, factor: float, hidden: float = 0.0) -> None:
        self.factor, self.__hidden = factor, hidden


class Factors(list[float]):
    """A list with an extra field."""

    def __init__(self, factor: float) -> None:
        super().__init__([1.0])
        self.factor = factor


class Factor(float):
    """A number of the user's own class."""


class CallableLoss:
    def __init__(self, factor: float) -> None:
        self.factor = factor
        update_wrapper(self, cross_entropy)

    def __call__(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return cross_entropy(outputs, targets) * self.factor


def wrap_loss(factor: float) -> Loss:
    @wraps(cross_entropy)
    def loss(outputs: Tensor, targets: Tensor) -> Tensor:
        return cross_entropy(outputs, targets) * factor

    return loss


def wrapped_class(factor: float) -> type:
    @wraps(nn.Linear, updated=())
    class Layer:
        def __call__(self) -> float:
            return factor

    return Layer


def cache_scale(factor: float) -> Callable[[], float]:
    @lru_cache
    def scale() -> float:
        return factor

    return scale


def without_gradient(factor: float) -> Callable[[Tensor], Tensor]:
    """Wrap the user's function in one of torch, which holds it in its closure."""
    return torch.no_grad()(lambda values: values * factor)


def trace_scale(factor: float) -> Callable[[Tensor], Tensor]:
    return torch.jit.trace(lambda values: values * factor, torch.ones(1))  # type: ignore[no-any-return]


class Scale(nn.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, values: Tensor) -> Tensor:
        return values * self.factor


def scripted_module(factor: float) -> nn.Module:
    return torch.jit.trace(Scale(factor), torch.ones(1))  # type: ignore[no-any-return]


def with_attribute(factor: float) -> Callable[[], float]:
    def scale() -> float:
        return scale.factor  # type: ignore[attr-defined, no-any-return]

    scale.factor = factor  # type: ignore[attr-defined]
    return scale


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's, of TorchScript
@pytest.mark.parametrize(
    "make",
    [
        lambda factor: SimpleNamespace(factor=factor),
        lambda factor: argparse.Namespace(factor=factor),
        lambda factor: deque([factor]),
        lambda factor: Decimal(str(factor)),
        lambda factor: OrderedDict(factor=factor),
        lambda factor: torch.distributions.Normal(0.0, factor),
        lambda factor: [factor].count,
        SlotsOnly,
        lambda factor: SlotsOnly(1.0, factor),
        Factors,
        Factor,
        CallableLoss,
        wrap_loss,
        wrapped_class,
        cache_scale,
        without_gradient,
        with_attribute,
        trace_scale,
        scripted_module,
        lambda factor: torch.compile(nn.Softplus(factor), backend="eager"),
        lambda factor: torch.compile(wrap_loss(factor), backend="eager"),
    ],
)
def test_a_value_counts_in_whatever_holds_it(make: Callable[[float], Any]):
    held = partial(max, make(0.5))
    assert code_digest(held) == code_digest(partial(max, make(0.5)))
    assert code_digest(held) != code_digest(partial(max, make(5.0)))


@pytest.mark.parametrize("make", [object, threading.Lock, lambda: {print, wrap_loss}, lambda: logging.getLogger("own")])
def test_the_address_of_an_object_does_not_count(make: Callable[[], Any]):
    one, two = make(), make()
    assert code_digest([one]) == code_digest([two])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of modules that can be imported; its imports are removed afterwards."""
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", None)):
            del sys.modules[name]


def write(folder: Path, **texts: str) -> None:
    """Write modules; `package__name` is a module in a package."""
    for name, text in texts.items():
        path = folder / (name.replace("__", "/") + ".py")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    for path in folder.glob("*/*.py"):
        (path.parent / "__init__.py").touch()
    importlib.invalidate_caches()


def script(text: str) -> dict[str, Any]:
    """Return the names that a script with this text defines; the script has no file."""
    found: dict[str, Any] = {"__name__": "__main__"}
    exec(text, found)
    return found


LEAF = "def f(values):\n    return values * 0.5\n"


@pytest.mark.parametrize(
    ("modules", "leaf", "text"),
    [
        ({"own_inner": LEAF}, "own_inner", "import own_inner\ndef loss(o, t): return own_inner.f(o)"),
        (
            {"own_pkg__losses": LEAF},
            "own_pkg/losses",
            "import own_pkg.losses\ndef loss(o, t): return own_pkg.losses.f(o)",
        ),
        (
            {"own_inner": LEAF, "own_outer": "import own_inner\ndef g(v): return own_inner.f(v)"},
            "own_inner",
            "import own_outer\ndef loss(o, t): return own_outer.g(o)",
        ),
        (
            {"own_inner": LEAF, "own_outer": "def g(v):\n    from own_inner import f\n    return f(v)"},
            "own_inner",
            "from own_outer import g\ndef loss(o, t): return g(o)",
        ),
        (
            {"own_pkg__deep": LEAF, "own_pkg__outer": "from . import deep\nfrom .deep import f"},
            "own_pkg/deep",
            "def loss(o, t):\n    from own_pkg import outer\n    return outer.f(o)",
        ),
        ({"own_inner": LEAF}, "own_inner", "def loss(o, t):\n    from own_inner import f\n    return f(o)"),
    ],
)
def test_an_edit_of_a_file_that_is_imported_counts(modules: dict[str, str], leaf: str, text: str, folder: Path):
    write(folder, **modules)
    loss = script(text)["loss"]
    before = code_digest(loss)
    assert code_digest(loss) == before
    loss(torch.ones(1), None)  # which may import more
    assert code_digest(loss) == before
    path = folder / f"{leaf}.py"
    path.write_text(path.read_text().replace("0.5", "5.0"))
    assert code_digest(loss) != before


def test_a_file_that_the_code_does_not_import_does_not_count(folder: Path):
    write(folder, own_inner=LEAF, own_other="X = 1")
    found = script("import own_inner, own_other\ndef loss(o, t): return own_inner.f(o)")
    before = code_digest(found["loss"])
    (folder / "own_other.py").write_text("X = 2")
    assert code_digest(found["loss"]) == before


def test_a_value_that_was_set_in_a_module_at_run_time_counts(folder: Path):
    write(folder, own_config="FACTOR = 0.5")
    found = script("import own_config\ndef loss(o, t): return o * own_config.FACTOR")
    before = code_digest(found["loss"])
    config: ModuleType = found["own_config"]
    config.FACTOR = 5.0  # type: ignore[attr-defined]
    assert code_digest(found["loss"]) != before


def test_a_script_that_calls_train_in_another_way_has_the_same_digest():
    text = "from torch import nn\nF = 0.5\ndef loss(o, t): return o * F\ndef main(): train({})\n"
    assert code_digest(script(text.format("out=1"))["loss"]) == code_digest(script(text.format("resume=1"))["loss"])


def test_a_module_of_the_users_own_with_the_name_of_a_library_is_the_users(folder: Path):
    """`antigravity` is a name of the standard library, but this file is the user's."""
    write(folder, antigravity=LEAF)
    loss = script("import antigravity\ndef loss(o, t): return antigravity.f(o)")["loss"]
    before = code_digest(loss)
    (folder / "antigravity.py").write_text(LEAF.replace("0.5", "5.0"))
    assert code_digest(loss) != before


def test_a_network_of_the_library_has_the_same_digest_twice():
    torch.manual_seed(0)
    net = nn.TransformerEncoderLayer(8, 2)
    before = code_digest(net)
    net(torch.ones(1, 2, 8))
    assert code_digest(net) == before
