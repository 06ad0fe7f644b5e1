"""Recurrent layers, attention and PReLU, written in operations that torch.func can vectorise.

Torch's own kernels for these layers loop over clients under vmap, or fail if examples share weights. The user's module
is not changed: its operations are replaced while its loss is computed.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NoReturn

import torch
from torch import Tensor, nn
from torch._functorch import autograd_function
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from discreet.client_layers.layer_mode import OUR_FUNCTIONS
from discreet.errors import Unsupported

State = tuple[Tensor, ...]
Step = Callable[[Tensor, State, Sequence[Tensor | None]], State]
FLATTEN = "flatten_parameters"


class VectorisedLayers(TorchFunctionMode):
    """A context in which these layers run as matrix products and element-wise operations, with the same results.

    A function or operator with a vmap rule of its own would get the whole batch, so it is refused, unless it is one of
    this package (client_layers).
    """

    def __enter__(self) -> "VectorisedLayers":
        self._apply_rule = autograd_function.custom_function_call_vmap_helper
        refuse = partial(_refuse_rule, autograd_function.custom_function_call_vmap_helper)
        autograd_function.custom_function_call_vmap_helper = refuse
        super().__enter__()  # type: ignore[no-untyped-call]
        return self

    def __exit__(self, *exception: Any) -> None:
        super().__exit__(*exception)  # type: ignore[no-untyped-call]
        autograd_function.custom_function_call_vmap_helper = self._apply_rule

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        substitute = SUBSTITUTES.get(func, func)
        return substitute(*args, **(kwargs or {}))


@contextmanager
def without_weight_flattening(module: nn.Module) -> Iterator[None]:
    """Keep the module's recurrent layers from moving their weights in memory.

    On a GPU, a recurrent layer whose weights were replaced asks for their addresses, to move them next to each other
    for cuDNN. Under vmap a tensor has no address, and `VectorisedLayers` does not call cuDNN's recurrent kernels.
    """
    layers = [layer for layer in module.modules() if isinstance(layer, nn.RNNBase) and FLATTEN not in vars(layer)]
    for layer in layers:
        vars(layer)[FLATTEN] = _do_nothing
    try:
        yield
    finally:
        for layer in layers:
            del vars(layer)[FLATTEN]


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Compute softmax(query·keyᵀ/√d + mask)·value, with the arguments of torch's function."""
    if enable_gqa:
        groups = query.shape[-3] // key.shape[-3]
        key, value = key.repeat_interleave(groups, -3), value.repeat_interleave(groups, -3)
    scores = query @ key.transpose(-2, -1) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=query.device).tril()
    if attn_mask is not None:
        scores = scores.masked_fill(~attn_mask, -math.inf) if attn_mask.dtype == torch.bool else scores + attn_mask
    weights = torch._safe_softmax(scores, dim=-1)  # a fully masked query gets zeros, as in torch
    return functional.dropout(weights, dropout_p) @ value


def multi_head_attention(*args: Any, need_weights: bool = True, **options: Any) -> tuple[Tensor, Tensor | None]:
    """Always ask torch for the attention weights: it then uses plain matrix products."""
    options["need_weights"] = True
    output, weights = functional.multi_head_attention_forward(*args, **options)
    return output, weights if need_weights else None


def refuse_packed_sequence(*arguments: Any) -> NoReturn:
    """Refuse packed sequences."""
    raise Unsupported(
        "Packed sequences differ in shape from example to example, so they can't be vectorised.",
        fix="Pad them, pass the padded tensor to the recurrent layer, and mask what comes after the end.",
    )


def prelu(inputs: Tensor, weight: Tensor) -> Tensor:
    """Apply one slope to all channels, or one to each. Channels are dimension 1."""
    slope = weight if len(weight) == 1 else weight.reshape(-1, *[1] * (inputs.dim() - 2))
    return torch.where(inputs > 0, inputs, slope * inputs)


def _refuse_rule(
    apply_rule: Callable[..., Any], interpreter: Any, rule: Any, operation: Any, *arguments: Any, **options: Any
) -> Any:
    """Refuse an operation with a vmap rule of its own; apply the rules of this package's own functions."""
    if operation in OUR_FUNCTIONS:
        return apply_rule(interpreter, rule, operation, *arguments, **options)
    name = getattr(operation, "__name__", operation)
    raise Unsupported(
        f"{name} has a vmap rule of its own, which would see all examples at once.",
        fix="Set generate_vmap_rule = True on the autograd function instead of writing vmap().",
    )


def _do_nothing() -> None:
    """Replace a layer's flatten_parameters()."""


def _cell(
    step: Step, inputs: Tensor, state: State | Tensor, from_input: Tensor, from_hidden: Tensor, *biases: Any
) -> State | Tensor:
    """Compute one time step of one layer, and return the state in the form it came in: several tensors, or one."""
    input_bias, hidden_bias = biases or (None, None)
    projected, weights = functional.linear(inputs, from_input, input_bias), (from_hidden, input_bias, hidden_bias, None)
    return step(projected, state, weights) if isinstance(state, tuple) else step(projected, (state,), weights)[0]


def _unroll(step: Step, *arguments: Any) -> State:
    """Compute all layers and directions of a recurrent network, one time step after the other.

    Returns:
        The outputs, followed by the tensors of the last state.
    """
    if len(arguments) != 9 or not isinstance(arguments[3], bool):
        refuse_packed_sequence()
    inputs, start, flat, biases, layers, dropout, training, bidirectional, batch_first = arguments
    states = start if isinstance(start, tuple) else (start,)
    directions = 2 if bidirectional else 1
    width = len(flat) // (layers * directions)
    outputs, ends = inputs.transpose(0, 1) if batch_first else inputs, []
    for layer in range(layers):
        directed = []
        for direction in range(directions):
            row = layer * directions + direction
            weights = _weights(flat[row * width : (row + 1) * width], biased=biases)
            sequence = outputs.flip(0) if direction else outputs
            out, end = _layer(step, sequence, tuple(state[row] for state in states), weights)
            directed.append(out.flip(0) if direction else out)
            ends.append(end)
        outputs = torch.cat(directed, dim=-1)
        if dropout and training and layer < layers - 1:
            outputs = functional.dropout(outputs, dropout)
    last = (torch.stack(states) for states in zip(*ends, strict=True))
    return (outputs.transpose(0, 1) if batch_first else outputs), *last


def _weights(flat: Sequence[Tensor], *, biased: bool) -> list[Tensor | None]:
    """Return input weights, hidden weights, their biases and the projection; None for what the layer lacks."""
    rest: list[Tensor | None] = list(flat[2:]) if biased else [None, None, *flat[2:]]
    return [*flat[:2], *rest, None][:5]


def _layer(step: Step, sequence: Tensor, state: State, weights: Sequence[Tensor | None]) -> tuple[Tensor, State]:
    from_input, *recurrent = weights
    assert from_input is not None
    projected = functional.linear(sequence, from_input, recurrent[1])  # all time steps in one product
    outputs = []
    for now in projected.unbind(0):
        state = step(now, state, recurrent)
        outputs.append(state[0])
    return torch.stack(outputs), state


def _recurrent(hidden: Tensor, weights: Sequence[Tensor | None]) -> Tensor:
    assert weights[0] is not None
    return functional.linear(hidden, weights[0], weights[2])


def _rnn_step(activation: Callable[[Tensor], Tensor], now: Tensor, state: State, weights: Any) -> State:
    return (activation(now + _recurrent(state[0], weights)),)


def _gru_step(now: Tensor, state: State, weights: Sequence[Tensor | None]) -> State:
    reset, update, new = now.chunk(3, dim=-1)
    hidden_reset, hidden_update, hidden_new = _recurrent(state[0], weights).chunk(3, dim=-1)
    keep = torch.sigmoid(update + hidden_update)
    candidate = torch.tanh(new + torch.sigmoid(reset + hidden_reset) * hidden_new)
    return (candidate + keep * (state[0] - candidate),)


def _lstm_step(now: Tensor, state: State, weights: Sequence[Tensor | None]) -> State:
    let_in, forget, new, let_out = (now + _recurrent(state[0], weights)).chunk(4, dim=-1)
    cell = torch.sigmoid(forget) * state[1] + torch.sigmoid(let_in) * torch.tanh(new)
    hidden = torch.sigmoid(let_out) * torch.tanh(cell)
    projection = weights[3]
    return (hidden if projection is None else functional.linear(hidden, projection)), cell


RECURRENT_STEPS: dict[str, Step] = {
    "lstm": _lstm_step,
    "gru": _gru_step,
    "rnn_tanh": partial(_rnn_step, torch.tanh),
    "rnn_relu": partial(_rnn_step, torch.relu),
}
SUBSTITUTES: dict[Any, Callable[..., Any]] = {
    functional.scaled_dot_product_attention: attention,
    functional.multi_head_attention_forward: multi_head_attention,
    functional.prelu: prelu,
    torch._pack_padded_sequence: refuse_packed_sequence,
    **{getattr(torch, name): partial(_unroll, step) for name, step in RECURRENT_STEPS.items()},
    **{getattr(torch, f"{name}_cell"): partial(_cell, step) for name, step in RECURRENT_STEPS.items()},
}
