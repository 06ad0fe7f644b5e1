"""Replies that are missing, malformed or in another's name: a client spoils only its own answer."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("flwr")

import httpx
from flwr.app import ConfigRecord, Message
from flwr.app.message import remove_content_from_message
from flwr.common.serde import message_from_proto, message_to_proto
from flwr.proto import message_pb2
from flwr.proto import runtime_pb2 as runtime
from flwr.proto.node_pb2 import NodeInfo
from flwr.supercore.inflatable.inflatable_object import (
    get_all_nested_objects,
    get_object_tree,
    no_object_id_recompute,
)
from flwr.supercore.run import Run
from flwr.supercore.task_identity import TaskIdentity
from flwr.superlink.grid.http_grid import HttpGrid

from discreet.engines.flower.flower_errors import SendFailed
from discreet.engines.flower.grid_carrier import GridCarrier
from discreet.engines.flower.held_polls import SentMark
from discreet.engines.flower.message_content import pack
from discreet.engines.flower.reply_deadline import ReplyDeadline

NODES = (100, 101, 102)
RUN, TIMEOUT, PATIENCE = 5, 600.0, 30.0
NEVER = float("inf")


class SuperLink:
    """A SuperLink whose nodes answer every message at once; its clock advances as the server sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self.there_at = dict.fromkeys(NODES, 0.0)  # when the bytes of each node's replies come
        self.gone_at = dict.fromkeys(NODES, NEVER)  # when its heartbeats are missed
        self.altered: Callable[[int, bytes], bytes] = lambda node, content: content
        self.source: Callable[[int], int] = lambda node: node  # which node a reply says that it comes from
        self.replies: dict[str, tuple[int, Any]] = {}  # by the message that is answered
        self.objects: dict[str, tuple[int, bytes]] = {}
        self.expired: set[int] = set()  # nodes whose replies are announced, and their objects forgotten
        self.extra = dict.fromkeys(NODES, 0)  # records that each node adds to its replies
        self.seconds = 0.0  # for each object that the server fetches
        self.broken: set[int] = set()  # nodes of whose replies the SuperLink can't give an object
        self.unconfirmed = False  # whether it can't delete the objects of a reply
        self.is_deaf = False  # whether it asks for an object of a request and does not store it
        self.on_push: Callable[[], None] = lambda: None

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def GetNodes(self, asked: runtime.GetNodesRequest) -> runtime.GetNodesResponse:
        online = [node for node in NODES if self.now < self.gone_at[node]]
        return runtime.GetNodesResponse(nodes=[NodeInfo(node_id=node) for node in online])

    def PushMessages(self, asked: runtime.PushAppMessagesRequest) -> runtime.PushAppMessagesResponse:
        names = []
        self.on_push()
        for proto in asked.messages_list:
            message = message_from_proto(proto)
            node = message.metadata.dst_node_id
            names.append(message.metadata.message_id)
            self.replies[names[-1]] = node, self._reply(node, message)
        return runtime.PushAppMessagesResponse(
            message_ids=names, objects_to_push=[asked.message_object_trees[0].object_id] if self.is_deaf else []
        )

    def PushObject(self, asked: message_pb2.PushObjectRequest) -> message_pb2.PushObjectResponse:
        assert self.is_deaf, "no object of a request is asked for"
        return message_pb2.PushObjectResponse(stored=False)

    def PullMessages(self, asked: runtime.PullAppMessagesRequest) -> runtime.PullAppMessagesResponse:
        """Each reply is announced once, as the SuperLink does it."""
        came = [self.replies.pop(name)[1] for name in asked.message_ids if name in self.replies]
        with no_object_id_recompute():
            return runtime.PullAppMessagesResponse(
                messages_list=[message_to_proto(remove_content_from_message(reply)) for reply in came],
                message_object_trees=[get_object_tree(reply) for reply in came],
            )

    def PullObject(self, asked: message_pb2.PullObjectRequest) -> message_pb2.PullObjectResponse:
        self.now += self.seconds
        node, content = self.objects[asked.object_id]
        self._fail_for(node)
        there = self.now >= self.there_at[node]
        return message_pb2.PullObjectResponse(
            object_found=node not in self.expired, object_available=there, object_content=content if there else b""
        )

    def ConfirmMessageReceived(self, asked: message_pb2.ConfirmMessageReceivedRequest) -> None:
        if self.unconfirmed:
            self._fail()

    def _fail_for(self, node: int) -> None:
        if node in self.broken:
            self._fail()

    def _fail(self) -> None:
        request = httpx.Request("POST", "https://superlink")
        raise httpx.HTTPStatusError("500", request=request, response=httpx.Response(500, request=request))

    def _reply(self, node: int, message: Any) -> Any:
        TaskIdentity.run_id, TaskIdentity.node_id = RUN, node
        content = pack(b"from %d" % node)
        for number in range(self.extra[node]):
            content[f"extra {number}"] = ConfigRecord({"number": number})
        reply = Message(content, reply_to=message)
        reply.metadata.__dict__["_src_node_id"] = self.source(node)
        reply.metadata.__dict__["_message_id"] = reply.object_id
        with no_object_id_recompute():
            for name, each in get_all_nested_objects(reply).items():
                self.objects[name] = node, self.altered(node, each.deflate())
        return reply


@pytest.fixture
def link() -> SuperLink:
    return SuperLink()


def exchange(link: SuperLink, enough: int = 2, most: int = 2**20, mark: Path = Path(os.devnull)) -> dict[int, bytes]:
    TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = RUN, 1, 3
    grid = HttpGrid(token="any")
    grid.set_run(Run.create_empty(RUN))
    grid._client = link
    carrier = GridCarrier(grid, ReplyDeadline(TIMEOUT, PATIENCE, lambda: link.now), SentMark(mark), most, link.sleep)
    return dict(carrier.exchange(dict.fromkeys(NODES, b"a request"), enough))


def answers(*nodes: int) -> dict[int, bytes]:
    return {node: b"from %d" % node for node in nodes}


def test_replies_that_are_there_are_taken_at_once(link: SuperLink) -> None:
    assert exchange(link) == answers(*NODES)
    assert link.now == 0


@pytest.mark.parametrize("silent", NODES)
def test_a_reply_whose_bytes_never_come_is_waited_for_no_longer_than_none(link: SuperLink, silent: int) -> None:
    """As if a client was killed between the two, or lies; at any place in the order of replies."""
    link.there_at[silent] = NEVER
    assert exchange(link) == answers(*{*NODES} - {silent})
    assert PATIENCE <= link.now < PATIENCE + 3


def test_where_too_few_replies_have_their_bytes_waiting_ends_after_the_timeout(link: SuperLink) -> None:
    link.there_at[100] = link.there_at[101] = NEVER
    assert exchange(link) == answers(102)
    assert TIMEOUT <= link.now < TIMEOUT + 3


def test_a_reply_without_bytes_is_given_up_when_its_node_is_gone(link: SuperLink) -> None:
    """The SuperLink reports an unannounced reply as missing; for an announced one, nobody does."""
    link.there_at[101], link.gone_at[101] = NEVER, PATIENCE / 3
    assert exchange(link, enough=3) == answers(100, 102)
    assert PATIENCE / 3 <= link.now < PATIENCE / 3 + 3


def test_bytes_that_come_late_and_in_time_are_taken_soon(link: SuperLink) -> None:
    link.there_at[101] = PATIENCE / 2
    assert exchange(link) == answers(*NODES)
    assert PATIENCE / 2 <= link.now < PATIENCE / 2 + 3


def test_bytes_that_come_right_after_their_announcement_are_not_slept_through(link: SuperLink) -> None:
    link.there_at = dict.fromkeys(NODES, 0.1)
    assert exchange(link) == answers(*NODES)
    assert link.now < 0.2


def test_a_reply_whose_objects_have_expired_is_not_waited_for(link: SuperLink) -> None:
    link.expired = {101}
    assert exchange(link) == answers(100, 102)
    assert link.now == 0


def test_a_reply_of_many_small_objects_is_as_none_and_is_not_fetched(link: SuperLink) -> None:
    """All of them are there, and fetching them would take longer than any reply is waited for."""
    link.extra[101], link.seconds = 1000, 1.0
    assert exchange(link) == answers(100, 102)
    assert link.now < PATIENCE


@pytest.mark.parametrize("content", [b"", b"garbled", b"Message \x00"])
def test_a_reply_that_is_garbled_is_as_none(link: SuperLink, content: bytes) -> None:
    link.altered = lambda node, own: content if node == 101 else own
    assert exchange(link) == answers(100, 102)


def test_a_reply_counts_as_that_of_the_node_which_was_asked_whatever_it_says(link: SuperLink) -> None:
    """The metadata in a reply is only its sender's claim; the SuperLink has checked which message it answers."""
    link.source = lambda node: 100
    assert exchange(link) == answers(*NODES)


def test_a_reply_with_more_bytes_than_any_of_the_run_is_as_none(link: SuperLink) -> None:
    link.altered = lambda node, content: content + bytes(2**20 if node == 101 else 0)
    assert exchange(link, most=1000) == answers(100, 102)


def test_a_reply_that_the_superlink_can_t_give_is_as_none(link: SuperLink) -> None:
    link.broken = {101}
    assert exchange(link) == answers(100, 102)


def test_a_reply_whose_objects_can_t_be_deleted_is_taken(link: SuperLink) -> None:
    link.unconfirmed = True
    assert exchange(link) == answers(*NODES)


def test_messages_are_marked_as_being_sent_until_all_of_them_are_stored(link: SuperLink, tmp_path: Path) -> None:
    mark, seen = SentMark(tmp_path / "sent"), list[bool]()
    link.on_push = lambda: seen.append(mark.read().is_sending)
    exchange(link, mark=mark.path)
    assert seen == [True]
    assert not mark.read().is_sending


def test_messages_that_the_superlink_does_not_store_end_the_run_with_a_sentence(
    link: SuperLink, tmp_path: Path
) -> None:
    link.is_deaf, mark = True, SentMark(tmp_path / "sent")
    with pytest.raises(SendFailed, match="did not take the messages to the clients: it refused a part of one"):
        exchange(link, mark=mark.path)
    assert not mark.read().is_sending
    link.on_push = link._fail
    with pytest.raises(SendFailed, match="it answered 500"):
        exchange(link)
