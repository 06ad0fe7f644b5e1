"""A sparsifier or an aggregation that breaks its contract is refused, with a sentence that says how."""

from typing import Any

import pytest
import torch

from discreet.params import count_values, scale, unflatten
from discreet.testing import PartFailed, check_aggregation, check_sparsifier


class Largest:
    """A sound sparsifier of a user's own: each client keeps what is above the mean of its tensor."""

    depends_on_data = True
    has_common_mask = False
    unsound_reason: Any = None

    def select(self, delta: Any, announcement: Any) -> Any:
        return {
            name: torch.where(
                value.abs() >= value.abs().flatten(1).amax(1).reshape(-1, *[1] * (value.dim() - 1)) / 2, value, 0
            )
            for name, value in delta.items()
        }


class FirstHalf:
    """A sound sparsifier with a common mask: the first half of all coordinates, in the order of the tensors' names."""

    depends_on_data = False
    has_common_mask = True
    unsound_reason: Any = None

    def announce(self, params: Any, round: int, public: Any = None) -> Any:
        size = count_values(params)
        masks = unflatten(torch.arange(size) < self.coordinates(size), params)
        return {f"half {name}": mask for name, mask in masks.items()}

    def select(self, delta: Any, announcement: Any) -> Any:
        return {name: value * announcement[f"half {name}"] for name, value in delta.items()}

    def expand(self, released: Any, announcement: Any) -> Any:
        return self.select(released, announcement)

    def coordinates(self, update: int) -> int:
        return update // 2


@pytest.mark.parametrize("sound", [Largest(), FirstHalf()], ids=lambda each: type(each).__name__)
def test_a_sound_sparsifier_of_a_users_own_passes(sound: Any) -> None:
    assert check_sparsifier(sound)[0].startswith("Selected coordinates of 4 clients in 3 rounds")


def test_a_large_model_has_no_zero_that_looks_left_out() -> None:
    """Of four million random numbers in single precision some are zero."""
    assert check_sparsifier(FirstHalf(), {"weight": torch.zeros(1000, 1000)})  # type: ignore[arg-type]


class LargestAsIndependent(Largest):
    depends_on_data = False


class LargerValues(FirstHalf):
    def select(self, delta: Any, announcement: Any) -> Any:
        return scale(super().select(delta, announcement), 2.0)


class LargestAsCommon(Largest):
    has_common_mask = True

    def announce(self, params: Any, round: int, public: Any = None) -> Any:
        return {"mask": torch.ones(1)}


class SecretMask(FirstHalf):
    def announce(self, params: Any, round: int, public: Any = None) -> Any:
        return {}

    def select(self, delta: Any, announcement: Any) -> Any:
        return delta

    def coordinates(self, update: int) -> int:
        return update


class WrongCount(FirstHalf):
    def announce(self, params: Any, round: int, public: Any = None) -> Any:
        return {f"half {name}": torch.ones_like(value) for name, value in params.items()}


class MeanOfTheBlock(Largest):
    def select(self, delta: Any, announcement: Any) -> Any:
        return {name: torch.where(value.abs() >= value.abs().mean(), value, 0) for name, value in delta.items()}


class OtherAtEachCall(Largest):
    """Keeps another half of what is left, at every call."""

    def select(self, delta: Any, announcement: Any) -> Any:
        median = {name: value.abs().flatten(1).median(dim=1).values for name, value in delta.items()}
        return {
            name: torch.where(value.abs() > median[name].reshape(-1, *[1] * (value.dim() - 1)) - 1e-9, value, 0)
            if bool((value == 0).float().mean() < 0.1)
            else value.flip(-1)
            if value.dim() > 1
            else value
            for name, value in delta.items()
        }


class HiddenMemory(Largest):
    def __init__(self) -> None:
        self.seen: Any = None

    def select(self, delta: Any, announcement: Any) -> Any:
        self.seen = {name: value[0] for name, value in delta.items()}
        return super().select(delta, announcement)

    def expand(self, released: Any, announcement: Any) -> Any:
        return self.seen


class ThinnedNoise(Largest):
    def select(self, delta: Any, announcement: Any) -> Any:
        return delta

    def finish(self, sent: Any, announcement: Any) -> Any:
        chosen = Largest.select(self, {name: value for name, value in sent.items() if name != "extra"}, announcement)
        return chosen | {name: value for name, value in sent.items() if name == "extra"}


class ExtraLost(Largest):
    def finish(self, sent: Any, announcement: Any) -> Any:
        return {name: value for name, value in sent.items() if name != "extra"}


class Announcer(Largest):
    def announce(self, params: Any, round: int, public: Any = None) -> Any:
        return {"clip": torch.ones(())}


class RandomAnnouncement(Largest):
    def announce(self, params: Any, round: int, public: Any = None) -> Any:
        return {"mask": torch.rand(5)}


class Shapeless(Largest):
    def select(self, delta: Any, announcement: Any) -> Any:
        return {name: value.flatten(1) for name, value in delta.items()}


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (
            LargestAsIndependent,
            r"moved what was selected by \S+ times itself, and `depends_on_data` says that it can't",
        ),
        (LargerValues, r"moved what was selected by 2 times itself|moved what was selected by 1.\d+ times itself"),
        (LargestAsCommon, r"Two clients left out different coordinates, and `has_common_mask` says"),
        (SecretMask, r"A common mask must be announced, and nothing is"),
        (WrongCount, r"2041 coordinates were kept, and `coordinates` says 1020"),
        (MeanOfTheBlock, r"`select` treats a client in another way when others are in its block"),
        (OtherAtEachCall, r"Selecting from a selection leaves out other coordinates than before"),
        (HiddenMemory, r"`expand` gave another result for the same sum after other updates were selected"),
        (ThinnedNoise, r"`finish` chooses by the noisy upload, which removes noise that is accounted"),
        (ExtraLost, r"`finish` must send what a mechanism adds to an update as it is"),
        (Announcer, r"A sparsifier must not announce 'clip', which is the mechanism's"),
        (RandomAnnouncement, r"One round was announced in two ways"),
        (Shapeless, r"`select` must keep names and shapes of tensors"),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_a_sparsifier_that_breaks_its_contract_is_refused(wrong: Any, sentence: str) -> None:
    with pytest.raises(PartFailed, match=sentence):
        check_sparsifier(wrong())


class Real:
    """A sound aggregation of a user's own: sums halves, and doubles the sum."""

    is_secure = False

    def encode(self, unit: Any, encoding: Any, rows: Any, *, bounded: bool) -> Any:
        return scale(unit, 0.5)

    def decode(self, total: Any, encoding: Any, like: Any) -> Any:
        return scale(total, 2.0)


def test_a_sound_aggregation_of_a_users_own_passes() -> None:
    assert check_aggregation(Real())[0].startswith("Encoded, summed and decoded 4 updates")  # type: ignore[arg-type]


class FalselySecure(Real):
    is_secure = True


class Longer(Real):
    def encode(self, unit: Any, encoding: Any, rows: Any, *, bounded: bool) -> Any:
        return scale(unit, 1.5)


class NotTheSum(Real):
    def decode(self, total: Any, encoding: Any, like: Any) -> Any:
        return scale(total, 1.9)


class Offset(Real):
    def decode(self, total: Any, encoding: Any, like: Any) -> Any:
        return {name: 2 * value + 0.1 for name, value in total.items()}


class ByTheBlock(Real):
    def encode(self, unit: Any, encoding: Any, rows: Any, *, bounded: bool) -> Any:
        return {name: (value + value.mean(dim=0)) / 4 for name, value in unit.items()}


class Flat(Real):
    def decode(self, total: Any, encoding: Any, like: Any) -> Any:
        return {name: 2 * value.flatten() for name, value in total.items()}


class Fewer(Real):
    def coordinates(self, kept: int) -> int:
        return kept - 1


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (FalselySecure, r"An aggregation that is secure must sum integers in a ring"),
        (Longer, r"An encoded update has a norm of 1.5, and noise is priced for 1"),
        (NotTheSum, r"The decoded sum is off by \S+ in a coordinate"),
        (Offset, r"The sum of zero updates must be zero, and it is not"),
        (ByTheBlock, r"A client's update is encoded in another way when others are in its block"),
        (Flat, r"`decode` must return an update of the whole model"),
        (Fewer, r"`coordinates` must count at least those of the update"),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)
def test_an_aggregation_that_breaks_its_contract_is_refused(wrong: Any, sentence: str) -> None:
    with pytest.raises(PartFailed, match=sentence):
        check_aggregation(wrong())
