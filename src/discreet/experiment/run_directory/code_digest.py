"""A digest of what a user's own functions and modules do, wherever their source is.

Bytecode is read rather than source text: the script that resumes a run differs from the one that started it at least
in the call itself, and code that was typed into an interpreter has no file. The functions, classes and values that the
code names are followed. The files of the user's modules are digested whole, with everything they import; installed
packages are described by name and version only.
"""

import functools
import hashlib
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from pathlib import PurePath
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from discreet.data.features.feature_cache import tensor_digest
from discreet.experiment.run_directory.code_origin import package_name, qualified_name, source_file, source_module
from discreet.module_files import ModuleFiles, is_installed, is_library

PLAIN = (  # types whose representation is their value
    *(str, bytes, int, float, complex, type(None), type(...), range, slice),
    *(np.generic, torch.dtype, torch.device, PurePath, re.Pattern),
)
LIBRARIES = {"discreet", "torch", "numpy", *sys.stdlib_module_names}
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
# Attributes of a class that say where it is, document it, or belong to Python.
NOT_CODE = {"__module__", "__doc__", "__dict__", "__weakref__", "__firstlineno__", "__static_attributes__"}
COMPILERS = ("torch._dynamo", "torch._inductor")  # whose objects count what they compiled, and hold addresses
HOOKS = ("_forward_pre_hooks", "_forward_hooks")


def code_digest(*objects: Any, trained: Iterable[Tensor] = ()) -> str:
    """Return one digest of what these functions, classes and modules do. Only the shape of `trained` tensors counts."""
    walk = _Walk([item for item in objects if item is not None], {id(item) for item in trained})
    walk.visit(objects)
    walk.finish()
    return hashlib.sha256("\n".join(walk.lines).encode()).hexdigest()


class _Walk:
    """Describes objects line by line: functions, classes and objects once each, in the order in which they turn up."""

    def __init__(self, roots: list[Any], trained: set[int]) -> None:
        self.lines: list[str] = []
        self._trained = trained
        self._own = {package_name(root) for root in roots} - LIBRARIES  # to be digested even if they are installed
        self._files = ModuleFiles()
        self._numbers: dict[int, int] = {}
        self._found: list[Any] = []  # kept, since an id belongs to its object only while that lives

    def visit(self, value: Any) -> None:
        if isinstance(value, PLAIN) and not self._is_own(type(value)):
            self.lines.append(f"{type(value).__name__} {value!r}")
        elif isinstance(value, Tensor):
            self._tensor(value)
        elif isinstance(value, np.ndarray):
            self._array(value)
        elif isinstance(value, CodeType):
            self._code(value)
        elif type(value) is tuple:
            self._visit_all("tuple", value)
        else:
            if id(value) not in self._numbers:
                self._numbers[id(value)] = len(self._found)
                self._found.append(value)
            self.lines.append(f"object {self._numbers[id(value)]}")

    def finish(self) -> None:
        """Describe what was found, and what turns up meanwhile."""
        for value in self._found:  # which grows
            self._describe(value)
        self.lines += self._files.lines()

    def _describe(self, value: Any) -> None:
        if isinstance(value, FunctionType):
            self._function(value)
        elif isinstance(value, MethodType):
            self._visit_all("method", (value.__func__, value.__self__))
        elif isinstance(value, functools.partial):
            self._visit_all("partial", (value.func, value.args, value.keywords))
        elif isinstance(value, staticmethod | classmethod):
            self._visit_all(type(value).__name__, (value.__func__,))
        elif isinstance(value, property):
            self._visit_all("property", (value.fget, value.fset, value.fdel))
        elif type(value) is list:
            self._visit_all("list", value)
        elif isinstance(value, AbstractSet):
            self._set(value)
        elif type(value) in (dict, MappingProxyType):
            self._visit_all("mapping", (item for pair in value.items() for item in pair))
        elif isinstance(value, ModuleType):
            self._module(value)
        elif isinstance(value, type):
            self._class(value)
        elif isinstance(value, nn.Module):
            self._network(value)
        elif isinstance(value, torch.jit.ScriptFunction):
            self._script(value)
        elif isinstance(value, BuiltinFunctionType):
            self._visit_all(f"builtin {qualified_name(value)}", (value.__self__,))
        else:
            self._object(value)

    def _visit_all(self, what: str, values: Iterable[Any]) -> None:
        held = list(values)
        self.lines.append(f"{what} of {len(held)}")
        for item in held:
            self.visit(item)

    def _tensor(self, value: Tensor) -> None:
        if id(value) in self._trained:
            self.lines.append(f"trained {value.dtype} {tuple(value.shape)}")
        else:
            self.lines.append(f"tensor {tensor_digest(value if value.layout == torch.strided else value.to_dense())}")

    def _array(self, value: Any) -> None:
        if value.dtype.hasobject:
            self._visit_all("objects", value.ravel().tolist())
        else:
            content = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
            self.lines.append(f"array {value.dtype} {value.shape} {content}")

    def _code(self, code: CodeType) -> None:
        """Describe what the code does, without its file, its lines and its own name."""
        about = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags)
        names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
        self.lines.append(f"code {about} {names} {code.co_code.hex()} {code.co_exceptiontable.hex()}")
        self._visit_all("constants", code.co_consts)

    def _function(self, function: FunctionType) -> None:
        cells = tuple(_contents(cell) for cell in function.__closure__ or ())
        if not self._is_own(function):
            # A decorator of a library holds the user's function in its closure.
            self._visit_all(f"function {qualified_name(function)}", (cells, vars(function).get("__wrapped__")))
            return
        self._visit_all("function", (function.__code__, function.__defaults__, function.__kwdefaults__, cells))
        self._fields(vars(function))
        home = source_module(function)
        self._files.add_module(home)
        self._files.add_imports(function.__code__, function.__globals__.get("__package__") or home.rpartition(".")[0])
        self._named_values(function.__globals__, {*_names(function.__code__)}, set())

    def _named_values(self, values: Mapping[str, Any], names: set[str], seen: set[int]) -> None:
        """Visit the values that code names, also those in the user's modules: `package.module.value`."""
        for name in sorted(names & values.keys()):
            value = values[name]
            self.lines.append(f"global {name}")
            self.visit(value)
            if isinstance(value, ModuleType) and self._is_own(value) and id(value) not in seen:
                seen.add(id(value))
                self._named_values(vars(value), names, seen)

    def _class(self, kind: type) -> None:
        methods = [value for value in vars(kind).values() if isinstance(value, FunctionType)]
        if not self._is_own(kind) and not any(source_file(method) and self._is_own(method) for method in methods):
            self.lines.append(f"class {qualified_name(kind)}")
            return
        self._files.add_module(source_module(kind))
        self._visit_all(f"class {kind.__name__}", kind.__bases__)
        for name, value in sorted(vars(kind).items()):
            if name not in NOT_CODE:
                self.lines.append(f"attribute {name}")
                self.visit(value)

    def _module(self, module: ModuleType) -> None:
        file = source_file(module)
        if self._is_own(module) and module.__name__ != "__main__" and file is not None and file.is_file():
            self.lines.append(f"module {hashlib.sha256(file.read_bytes()).hexdigest()}")
            self._files.add_module(module.__name__)
        else:
            self.lines.append(f"module {qualified_name(module)}")

    def _set(self, value: AbstractSet[Any]) -> None:
        """Describe a set in a fixed order, since its own differs from process to process."""
        self.visit(type(value))
        self._visit_all("set", sorted(value, key=lambda item: ADDRESS.sub("", repr(item))))
        if self._is_own(type(value)):
            self._state(object.__getstate__(value))

    def _script(self, script: Any) -> None:
        """Describe what TorchScript compiled from a function or module, with the constants that its text only names."""
        graph = script.inlined_graph  # whose nodes live as long as it does
        constants = [node.output().toIValue() for node in graph.findAllNodes("prim::Constant")]
        self._visit_all(f"script {script.code}", constants)

    def _network(self, network: nn.Module) -> None:
        self._visit_all("network", (type(network), network.training))
        if isinstance(network, torch.jit.ScriptModule) and network._c._has_method("forward"):
            self._script(network)
        inside = vars(nn.Module())
        if not source_module(type(network)).startswith(COMPILERS):
            self._fields({name: value for name, value in vars(network).items() if name not in inside})
        for hooks in HOOKS:
            self._visit_all(hooks, getattr(network, hooks).values())
        for held in (network._parameters, network._buffers, network._modules):
            self._visit_all("held", (item for pair in held.items() for item in pair))

    def _object(self, value: Any) -> None:
        """Describe the object's class and its state: all fields and what a pickle would hold, as far as known."""
        self.visit(type(value))
        if source_module(type(value)).startswith(COMPILERS):
            return
        reduced = _pickle_parts(value)
        if reduced is None or isinstance(reduced, str) or self._is_own(type(value)):
            self._state(object.__getstate__(value))
        if isinstance(reduced, tuple):
            make, arguments, state, items, pairs, *_ = (*reduced, None, None, None)
            self._visit_all("reduced", (make, arguments))
            self._state(state)
            self._visit_all("items", items or ())
            self._visit_all("pairs", pairs or ())
        elif reduced is not None:
            self.lines.append(f"global {reduced}")

    def _state(self, state: Any) -> None:
        """Describe the result of `__getstate__`: a dict of fields, or a pair of dicts for `__dict__` and for slots."""
        for part in state if isinstance(state, tuple) and len(state) == 2 else (state,):
            if isinstance(part, dict) and all(isinstance(name, str) for name in part):
                self._fields(part)
            else:
                self.visit(part)

    def _fields(self, fields: Mapping[str, Any]) -> None:
        kept = {name: value for name, value in fields.items() if name not in NOT_CODE}
        self._visit_all("fields", (item for pair in sorted(kept.items(), key=lambda pair: pair[0]) for item in pair))

    def _is_own(self, value: Any) -> bool:
        """Whether the value is the user's: neither of a library nor installed, unless the digest is of its package."""
        package, file = package_name(value), source_file(value)
        if file is None or not file.is_absolute():
            return package not in LIBRARIES
        return not is_library(file) and (package in self._own or not is_installed(file))


def _pickle_parts(value: Any) -> Any:
    """Return what a pickle of the object would hold, None if it can't be pickled."""
    try:
        return value.__reduce_ex__(2)
    except Exception:  # noqa: BLE001 - a class may refuse in any way
        return None


def _contents(cell: CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a variable that has no value yet
        return None


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)
