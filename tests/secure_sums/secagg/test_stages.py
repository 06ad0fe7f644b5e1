"""The table of stages: the one order that client, server and both kinds of sessions follow."""

from typing import get_args

from discreet.secure_sums.secagg import client_round, client_setup
from discreet.secure_sums.secagg.message_codec import KINDS
from discreet.secure_sums.secagg.session_client import ANSWERS
from discreet.secure_sums.secagg.session_messages import ROUND, SETUP, ClientStage, Message, next_stage


def test_the_table_of_stages_holds_every_message_of_a_session_once() -> None:
    held = [kind for stage in (*SETUP, *ROUND) for kind in (stage.reply, stage.closed_by) if kind is not None]
    assert sorted(kind.KIND for kind in held) == sorted(KINDS) == list(range(1, len(held) + 1))
    assert set(held) == set(get_args(Message))


def test_the_stages_of_client_and_server_follow_the_table() -> None:
    setup, rounds = ([stage.client_stage for stage in stages] for stages in (SETUP, ROUND))
    assert get_args(ClientStage) == ("new", *setup, "ready", *rounds, "over")
    for stages in (SETUP, ROUND):
        names = [stage.name for stage in stages]
        assert [next_stage(name, signed=True) for name in names] == [*names[1:], "ready"]
    assert next_stage("masked", signed=False) == "revealed"


def test_a_client_has_an_answer_for_every_message_that_ends_a_stage() -> None:
    assert set(ANSWERS) == {stage.closed_by for stage in (*SETUP, *ROUND)} - {None}
    assert not set(client_setup.ANSWERS) & set(client_round.ANSWERS)


def test_exactly_the_messages_of_a_round_name_their_round() -> None:
    """Client and server refuse a message of another round by that number."""
    for stages, named in ((SETUP, False), (ROUND, True)):
        for kind in (kind for stage in stages for kind in (stage.reply, stage.closed_by) if kind is not None):
            assert ("round" in kind.__annotations__) is named, kind
