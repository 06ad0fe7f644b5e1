"""Per-example gradients of embeddings: one row for each word of an example, instead of one for each word there is."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from discreet.algorithms.training.gradient_records import DenseGradient, Gradient, zero_nonfinite


@dataclass(frozen=True)
class WordGradient:
    """Gradients of a table of words that are zero except in the rows of an example's own words.

    Attributes:
        words: The words of each example, of which several may be equal. Axes: examples, positions.
        rows: Row of the gradient for the word at each position: whole where the word occurs first in the example, and
            zero where it occurs again. Axes: examples, positions, values.
        count: Number of words in the table.
    """

    words: Tensor
    rows: Tensor
    count: int

    def squared_norms(self) -> Tensor:
        return DenseGradient(self.rows).squared_norms()

    def weighted_sum(self, weights: Tensor) -> Tensor:
        clients, width = len(weights), self.rows.shape[2]
        total = self.rows.new_zeros(clients * self.count, width, dtype=torch.float64)
        table = torch.arange(clients, device=self.words.device)[:, None] * self.count
        places = self.words.reshape(clients, -1) + table
        rows = self.rows.double() * weights.double().reshape(-1, 1, 1)
        return add_rows(total, places.flatten(), rows.flatten(0, 1)).reshape(clients, self.count, width)

    def zero_nonfinite(self) -> "WordGradient":
        return WordGradient(self.words, zero_nonfinite(self.rows), self.count)


def embedding_gradients(layer: nn.Module, inputs: Tensor, outer: Tensor) -> dict[str, Gradient]:
    """Return the sum of g over the positions of each word; the padding has none."""
    assert isinstance(layer, nn.Embedding)
    words = inputs.reshape(len(inputs), -1).long()
    gradients = outer.reshape(*words.shape, -1)
    if layer.padding_idx is not None:
        gradients = gradients.masked_fill((words == layer.padding_idx)[..., None], 0.0)
    examples = torch.arange(len(words), device=words.device)[:, None] * words.shape[1]
    places = first_positions(words) + examples
    rows = add_rows(torch.zeros_like(gradients).flatten(0, 1), places.flatten(), gradients.flatten(0, 1))
    return {"weight": WordGradient(words, rows.reshape(gradients.shape), layer.num_embeddings)}


def first_positions(words: Tensor) -> Tensor:
    """Return for each position of an example the first position that has the same word."""
    ordered, order = words.sort(dim=1, stable=True)
    column = torch.arange(words.shape[1], device=words.device).expand_as(words)
    begins = torch.ones_like(words, dtype=torch.bool)
    begins[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    start = torch.where(begins, column, 0).cummax(dim=1).values
    return torch.empty_like(words).scatter_(1, order, order.gather(1, start))


def add_rows(total: Tensor, places: Tensor, rows: Tensor) -> Tensor:
    """Add each row to the row of `total` at its place, in an order that is the same each time."""
    if total.is_cuda:  # where index_add_ adds in the order in which threads come
        return total.index_put_((places,), rows, accumulate=True)
    return total.index_add_(0, places, rows)
