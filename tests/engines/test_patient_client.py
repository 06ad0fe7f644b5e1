"""A SuperLink whose database is busy is asked again, and one that refuses is not."""

from dataclasses import dataclass, field

import pytest

pytest.importorskip("flwr")

import httpx

from discreet.engines.flower.patient_client import PATIENCE_SECONDS, PatientClient


@dataclass
class SuperLink:
    """Answers with these statuses, one after the other, and then with 200."""

    statuses: list[int]
    asked: list[str] = field(default_factory=list)
    now: float = 0.0

    def PushObject(self, request: str) -> str:
        self.asked.append(request)
        status = self.statuses.pop(0) if self.statuses else 200
        httpx.Response(status, request=httpx.Request("POST", "https://server")).raise_for_status()
        return "stored"

    def close(self) -> str:
        return "closed"

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def patient(self) -> PatientClient:
        return PatientClient(self, lambda: self.now, self.sleep)


def test_a_busy_superlink_is_asked_again() -> None:
    link = SuperLink([500, 500])
    assert link.patient().PushObject("a piece") == "stored"
    assert link.asked == ["a piece"] * 3


@pytest.mark.parametrize("status", [401, 404, 409, 502])
def test_any_other_refusal_is_said_at_once(status: int) -> None:
    link = SuperLink([status])
    with pytest.raises(httpx.HTTPStatusError):
        link.patient().PushObject("a piece")
    assert len(link.asked) == 1


def test_a_superlink_that_stays_busy_is_given_up() -> None:
    link = SuperLink([500] * 1000)
    with pytest.raises(httpx.HTTPStatusError):
        link.patient().PushObject("a piece")
    assert link.now == PATIENCE_SECONDS


def test_what_is_no_call_is_the_clients_own() -> None:
    assert SuperLink([]).patient().close() == "closed"
