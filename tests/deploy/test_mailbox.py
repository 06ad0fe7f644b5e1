"""Messages that are announced but missing: none delays the next, and a node forgets messages nobody waits for."""

import pytest

pytest.importorskip("flwr")

import httpx
from flwr.app import Message
from flwr.app.message import remove_content_from_message
from flwr.common.serde import message_to_proto
from flwr.proto import fleet_pb2 as fleet
from flwr.proto import message_pb2
from flwr.proto.node_pb2 import Node
from flwr.supercore.inflatable.inflatable_object import (
    get_all_nested_objects,
    get_object_tree,
    no_object_id_recompute,
)
from flwr.supercore.task_identity import TaskIdentity

from discreet.engines.flower.mailbox import MAX_PENDING, Mailbox
from discreet.engines.flower.message_content import pack

NODE, TTL = Node(node_id=7), 40.0


class SuperLink:
    """A SuperLink that announces messages, and has the objects of some of them."""

    def __init__(self) -> None:
        self.made: dict[str, bytes] = {}  # objects that were announced
        self.objects: dict[str, bytes] = {}  # objects that have arrived
        self.away = False
        self.answers: list[str] = []  # the messages that were answered
        self.deaf = False

    def announce(self, data: bytes, there: bool) -> fleet.PullMessagesResponse:
        TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 5, 1, 3
        message = Message(pack(data), NODE.node_id, "query", ttl=TTL)
        message.metadata.__dict__["_message_id"] = message.object_id
        with no_object_id_recompute():
            made = {name: each.deflate() for name, each in get_all_nested_objects(message).items()}
            self.made |= made
            if there:
                self.objects |= made
            return fleet.PullMessagesResponse(
                messages_list=[message_to_proto(remove_content_from_message(message))],
                message_object_trees=[get_object_tree(message)],
            )

    def PullObject(self, asked: message_pb2.PullObjectRequest) -> message_pb2.PullObjectResponse:
        if self.away:
            raise httpx.ConnectError("nobody is there")
        name = asked.object_id
        return message_pb2.PullObjectResponse(
            object_found=name in self.made,
            object_available=name in self.objects,
            object_content=self.objects.get(name, b""),
        )

    def ConfirmMessageReceived(self, asked: message_pb2.ConfirmMessageReceivedRequest) -> None:
        pass

    def PushMessages(self, asked: fleet.PushMessagesRequest) -> fleet.PushMessagesResponse:
        if self.deaf:
            raise httpx.ReadTimeout("nothing was heard")
        self.answers.append(asked.messages_list[0].metadata.reply_to_message_id)
        return fleet.PushMessagesResponse()

    def PushObject(self, asked: message_pb2.PushObjectRequest) -> message_pb2.PushObjectResponse:
        raise AssertionError("no object of an answer is asked for")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def link() -> SuperLink:
    return SuperLink()


def open_mailbox(link: SuperLink, clock: Clock | None = None) -> tuple[Mailbox, list[bytes], list[str]]:
    asked: list[bytes] = []
    said: list[str] = []

    def answer(request: bytes) -> bytes:
        asked.append(request)
        return b"answer to " + request

    return Mailbox(link, NODE, answer, said.append, clock or Clock()), asked, said  # type: ignore[arg-type]


def test_a_message_whose_bytes_never_come_does_not_hold_up_the_next(link: SuperLink) -> None:
    """As if a server died between the two and another was started."""
    box, asked, said = open_mailbox(link)
    box.announce(link.announce(b"of the server that died", there=False))
    assert not box.answer_pending()
    box.announce(link.announce(b"of the next one", there=True))
    assert box.answer_pending()
    assert asked == [b"of the next one"]
    assert len(link.answers) == 1
    assert said == []


def test_a_message_is_answered_once_when_its_bytes_come_late_or_the_server_was_away(link: SuperLink) -> None:
    box, asked, _ = open_mailbox(link)
    box.announce(link.announce(b"late", there=False))
    assert not box.answer_pending()
    link.objects, link.away = link.made, True
    assert not box.answer_pending()
    link.away = False
    assert box.answer_pending()
    assert not box.answer_pending()
    assert asked == [b"late"]
    assert len(link.answers) == 1


def test_a_message_is_forgotten_when_nobody_waits_for_its_answer(link: SuperLink) -> None:
    clock = Clock()
    box, asked, _ = open_mailbox(link, clock)
    box.announce(link.announce(b"late", there=False))
    clock.now = TTL - 1
    assert not box.answer_pending()
    clock.now = TTL
    assert box.answer_pending()
    link.objects = link.made
    assert not box.answer_pending()
    assert asked == []


def test_of_too_many_unfinished_messages_the_oldest_are_given_up(link: SuperLink) -> None:
    box, asked, _ = open_mailbox(link)
    for number in range(MAX_PENDING + 1):
        box.announce(link.announce(bytes([number]), there=False))
    link.objects = link.made
    assert box.answer_pending()
    assert asked == [bytes([number]) for number in range(1, MAX_PENDING + 1)]


@pytest.mark.parametrize("objects", [b"", b"garbled"])
def test_a_message_that_is_garbled_is_left_alone_and_the_node_stays(link: SuperLink, objects: bytes) -> None:
    box, asked, said = open_mailbox(link)
    box.announce(link.announce(b"garbled", there=True))
    link.objects = dict.fromkeys(link.objects, objects)
    assert box.answer_pending()
    box.announce(link.announce(b"good", there=True))
    assert box.answer_pending()
    assert asked == [b"good"]
    assert len(said) == 1
    assert "could not be read" in said[0]


def test_a_message_of_a_run_that_is_over_is_dropped_without_words(link: SuperLink) -> None:
    box, asked, said = open_mailbox(link)
    box.announce(link.announce(b"over", there=True))
    link.made.clear()
    assert box.answer_pending()
    assert (asked, said) == ([], [])


def test_an_answer_that_did_not_come_through_is_sent_again(link: SuperLink) -> None:
    """A node stores its answers, so the second equals the first."""
    box, asked, _ = open_mailbox(link)
    box.announce(link.announce(b"asked", there=True))
    link.deaf = True
    assert not box.answer_pending()
    link.deaf = False
    assert box.answer_pending()
    assert asked == [b"asked", b"asked"]
    assert len(link.answers) == 1
