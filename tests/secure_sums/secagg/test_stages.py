"""The table of stages: the one order that client, server and both kinds of sessions follow."""

from typing import get_args

from discreet.secure_sums.secagg.message_codec import KINDS
from discreet.secure_sums.secagg.session_messages import ROUND, SETUP, ClientStage, Message, next_stage


def test_the_table_of_stages_holds_every_message_of_a_session_once() -> None:
    held = [kind for stage in (*SETUP, *ROUND) for kind in (stage.reply, stage.closed_by) if kind is not None]
    assert sorted(kind.KIND for kind in held) == sorted(KINDS) == list(range(1, 10))
    assert set(held) == set(get_args(Message))


def test_the_stages_of_client_and_server_follow_the_table() -> None:
    setup, rounds = ([stage.client_stage for stage in stages] for stages in (SETUP, ROUND))
    assert get_args(ClientStage) == ("new", *setup, "ready", *rounds, "over")  # saved states hold the index
    assert [next_stage(stage.name, signed=True) for stage in (*SETUP, *ROUND)] == [
        "shares",
        "ready",
        "agreed",
        "revealed",
        "ready",
    ]
    assert next_stage("masked", signed=False) == "revealed"
