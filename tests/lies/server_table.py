"""The table of servers' lies. The server lies to client 0 where no other is named, in each of three rounds."""

import torch

from tests.lies import node_disk
from tests.lies import server_lies as lie
from tests.lies import session_lies as session
from tests.lies.play import ROUNDS
from tests.lies.server_lies import ServerLieCase, victims

EVERYBODY = (0, 1, 2, 3, 4)
FOLDER = "Cards and the app folder, before a run"
REQUESTS = "Requests"
TERMS = "Terms of a secure sum"
KEYS = "Lists of keys"
MEMBERS = "Lists of members"
BROADCASTS = "Broadcasts"
SURVIVORS = "Lists of who is in the sum"
AGREEMENT = "Signatures of the agreement"
REPLAYS = "Replays and repeated questions"
CLEAR = "Updates in clear"
ROLL_BACKS = "Roll-backs at a node, by whoever has its disk"

REAL_RUN = '"' + "a" * 32 + '"'


def vectors(told: lie.ServerLie) -> dict[str, lie.ServerLie]:
    """Tell this lie when a vector is asked for, in the first round of a session and in later ones."""
    return {"Members": told, "mask": told}


SERVER_LIES = (
    *(
        ServerLieCase(FOLDER, text, {}, folder=changed)
        for text, changed in {
            "puts a key of its own on client 1's card, after the owners have compared them": lie.edit(
                "clients/client-1.toml", r'identity = "\w{64}"', f'identity = "{"ab" * 32}"'
            ),
            "swaps the keys on the cards of clients 1 and 2": lie.swap_cards,
            "lowers the agreed noise": lie.edit("resolved.toml", r"noise_multiplier = \S+", "noise_multiplier = 0.1"),
            "raises the agreed clip norm": lie.edit("resolved.toml", "clip_norm = 0.5", "clip_norm = 5.0"),
            "writes ten times the agreed rounds": lie.edit("resolved.toml", "rounds = 3", "rounds = 30"),
        }.items()
    ),
    ServerLieCase(REQUESTS, "signs with another key than the policy pins", victims(vectors(lie.sign_with_another_key))),
    ServerLieCase(REQUESTS, "(or the network) changes a bit of a request", victims(vectors(lie.flip_a_bit))),
    ServerLieCase(REQUESTS, "speaks an older version of the protocol", victims({"hello": lie.speak_older_version})),
    ServerLieCase(REQUESTS, "asks for another experiment", victims({"session": lie.ask(experiment="0" * 64)})),
    ServerLieCase(REQUESTS, "asks client 0 as if it were client 1", victims({"session": lie.ask(client=1)})),
    ServerLieCase(
        REQUESTS, "asks for a round that the experiment does not have", victims({"session": lie.ask(round=ROUNDS)})
    ),
    ServerLieCase(REQUESTS, "invents a client in the cohort", victims({"session": lie.ask(cohort=(0, 1, 2, 3, 4, 9))})),
    ServerLieCase(
        REQUESTS, "names a client twice in the cohort", victims({"session": lie.ask(cohort=(0, 1, 2, 3, 4, 4))})
    ),
    ServerLieCase(
        REQUESTS,
        "leaves client 0 out of the cohort that it asks it for",
        victims({"session": lie.ask(cohort=(1, 2, 3, 4))}),
    ),
    ServerLieCase(
        REQUESTS,
        "names a cohort of two in the first round",
        victims({"session": lie.first_time(lie.ask(cohort=(0, 1)))}),
    ),
    ServerLieCase(REQUESTS, "asks for the update itself where a secure sum is agreed", victims(vectors(lie.in_clear))),
    ServerLieCase(REQUESTS, "asks for a vector before keys are exchanged", victims({"session": lie.mask_before_keys})),
    ServerLieCase(
        REQUESTS, "names a run like a path on the node's disk", victims({"session": lie.name_run('"../../elsewhere"')})
    ),
    ServerLieCase(REQUESTS, "sends a header that is not text", victims({"session": lie.head(b"\xff\xfe")})),
    ServerLieCase(
        REQUESTS, "sends a header of lists nested 100,000 deep", victims({"session": lie.head(b"[" * 100_000)})
    ),
    ServerLieCase(
        REQUESTS,
        "sends a header with a number of 5,000 digits",
        victims({"session": lie.name_run(REAL_RUN, "9" * 5000)}),
    ),
    ServerLieCase(
        REQUESTS, "sends a header of more than a mebibyte", victims({"session": lie.head(b" " * (2**20 + 1))})
    ),
    ServerLieCase(TERMS, "makes the sum longer than the model", victims({"session": lie.terms(length=2**31)})),
    ServerLieCase(TERMS, "makes the ring larger than agreed", victims({"session": lie.terms(bits=40)})),
    ServerLieCase(
        TERMS,
        "begins a sum for more rounds than are left",
        victims({"session": lie.first_time(lie.terms(rounds=ROUNDS + 1))}),
    ),
    ServerLieCase(
        TERMS, "begins a sum for another run or experiment", victims({"session": lie.terms(purpose=bytes(32))})
    ),
    ServerLieCase(TERMS, "puts a key of its own in client 4's place", victims({"session": lie.invent_client})),
    ServerLieCase(TERMS, "leaves out all identities", victims({"session": lie.without_identities})),
    ServerLieCase(TERMS, "opens sums of a single client", victims({"session": lie.terms_bytes(6, 1)})),
    ServerLieCase(TERMS, "lets one share open a secret", victims({"session": lie.terms_bytes(5, 1)})),
    ServerLieCase(TERMS, "puts the clients on a graph that it can cut", victims({"session": lie.terms_bytes(4, 2)})),
    ServerLieCase(KEYS, "shows client 0 its own keys as client 1's", victims({"Roster": session.forge_keys})),
    ServerLieCase(KEYS, "swaps the keys of clients 1 and 2", victims({"Roster": session.change(session.swap_keys)})),
    ServerLieCase(
        KEYS, "shows the same keys for two clients", victims({"Roster": session.change(session.same_keys_twice)})
    ),
    ServerLieCase(
        KEYS, "leaves client 0's own keys out", victims({"Roster": session.change(session.roster_without(0))})
    ),
    ServerLieCase(KEYS, "shows two clients alone", victims({"Roster": session.change(session.roster_of_two)})),
    ServerLieCase(
        KEYS,
        "shows client 0 a list without client 4, and the others one with it",
        victims({"Roster": session.change(session.roster_without(4))}),
    ),
    ServerLieCase(
        MEMBERS,
        "shows client 0 a list without it",
        victims({"Members": session.with_list(lambda listed: listed - {0})}),
    ),
    ServerLieCase(
        MEMBERS,
        "shows client 0 a list of two",
        victims({"Members": session.with_list(lambda listed: frozenset({0, 1}))}),
    ),
    ServerLieCase(
        MEMBERS, "swaps the rows that clients 1 and 2 dealt", victims({"Members": session.change(session.swap_rows)})
    ),
    ServerLieCase(
        MEMBERS,
        "spoils all rows that were dealt to client 0",
        victims({"Members": session.change(session.spoil_rows(1, 2, 3, 4))}),
    ),
    ServerLieCase(
        MEMBERS,
        "spoils the row that client 1 dealt, so that it is taken for a liar",
        victims({"Members": session.change(session.spoil_rows(1))}),
    ),
    ServerLieCase(
        MEMBERS,
        "shows client 0 a list without client 4, and the others one with it",
        victims({"Members": session.with_list(lambda listed: listed - {4})}),
    ),
    ServerLieCase(
        BROADCASTS,
        "sends client 0 another model than the rest",
        victims(vectors(lie.broadcast(lie.change_tensors(lambda value: value + 1)))),
    ),
    ServerLieCase(
        BROADCASTS,
        "sends everybody but client 0 a model of zeros",
        victims(vectors(lie.broadcast(lie.change_tensors(torch.zeros_like))), 1, 2, 3, 4),
    ),
    ServerLieCase(BROADCASTS, "asks client 0 for another round than the rest", victims(vectors(lie.ask(round=2)))),
    ServerLieCase(
        BROADCASTS,
        "sends a model of other shapes",
        victims(vectors(lie.broadcast(lie.change_tensors(lambda value: value.flatten())))),
    ),
    ServerLieCase(
        BROADCASTS,
        "announces a value that the algorithm does not have",
        victims(vectors(lie.broadcast(dict, {"more": torch.zeros(())}))),
    ),
    ServerLieCase(
        BROADCASTS,
        "asks for a round of the session that is over, or does not exist",
        victims(vectors(lie.add_before(lie.number(lambda now: now + 7)))),
    ),
    ServerLieCase(
        SURVIVORS,
        "shows client 0 a list without it",
        victims({"Survivors": session.with_list(lambda listed: listed - {0})}),
    ),
    ServerLieCase(
        SURVIVORS,
        "shows client 0 a list of two",
        victims({"Survivors": session.with_list(lambda listed: frozenset({0, 1}))}),
    ),
    ServerLieCase(
        SURVIVORS,
        "shows client 0 a list without client 4, and the others one with it",
        victims({"Survivors": session.with_list(lambda listed: listed - {4})}),
    ),
    ServerLieCase(
        SURVIVORS,
        "shows half of the clients another list",
        victims({"Survivors": session.with_list(lambda listed: listed - {4})}, 0, 1),
    ),
    ServerLieCase(
        SURVIVORS,
        "sends a second list after the first, for both shares of client 4",
        victims({"Survivors": session.second_list}),
    ),
    ServerLieCase(
        SURVIVORS,
        "sends everybody a second list after the first",
        victims({"Survivors": session.second_list}, 0, 1, 2, 3),
    ),
    ServerLieCase(
        SURVIVORS,
        "swaps the rows that clients 1 and 2 dealt",
        victims({"Survivors": session.change(session.swap_rows)}),
    ),
    ServerLieCase(
        SURVIVORS,
        "spoils all rows that were dealt to client 0",
        victims({"Survivors": session.change(session.spoil_rows(1, 2, 3, 4))}),
    ),
    ServerLieCase(
        SURVIVORS,
        "spoils the row that client 1 dealt, so that it is taken for a liar",
        victims({"Survivors": session.change(session.spoil_rows(1))}),
    ),
    ServerLieCase(
        SURVIVORS,
        "asks for the shares of another round",
        victims({"Survivors": lie.add_before(session.change(session.other_round))}),
    ),
    ServerLieCase(
        SURVIVORS, "asks for shares before anybody has signed", victims({"Survivors": session.skip_agreement})
    ),
    ServerLieCase(AGREEMENT, "shows nobody's signature", victims({"Agreement": session.change(session.no_signatures)})),
    ServerLieCase(
        AGREEMENT,
        "shows one signature, of three that are needed",
        victims({"Agreement": session.change(session.one_signature)}),
    ),
    ServerLieCase(
        AGREEMENT, "forges client 1's signature", victims({"Agreement": session.change(session.forge_signature)})
    ),
    ServerLieCase(
        AGREEMENT,
        "shows client 2's signature as client 1's",
        victims({"Agreement": session.change(session.swap_signatures)}),
    ),
    ServerLieCase(
        AGREEMENT,
        "shows the signatures for another round",
        victims({"Agreement": lie.add_before(session.change(session.other_round))}),
    ),
    ServerLieCase(
        AGREEMENT,
        "asks for shares a second time, with other signatures",
        victims({"Agreement": lie.add_after(lambda asked: session.reveal_again(asked)[1:])}),
    ),
    ServerLieCase(
        AGREEMENT,
        "shows everybody too few signatures",
        victims({"Agreement": session.change(session.one_signature)}, *EVERYBODY),
    ),
    ServerLieCase(REPLAYS, "asks for the vector twice in the same words", victims(vectors(lie.twice))),
    ServerLieCase(
        REPLAYS,
        "asks for a second vector of the round, for another model",
        victims(vectors(lie.add_after(lie.broadcast(lie.change_tensors(lambda value: value + 1))))),
    ),
    ServerLieCase(REPLAYS, "repeats its first request for a vector in every round", victims({"mask": lie.first_again})),
    ServerLieCase(REPLAYS, "repeats its first list in every round", victims({"Survivors": lie.first_again})),
    ServerLieCase(REPLAYS, "asks for the vector in another run's name", victims(vectors(lie.under_another_name))),
    ServerLieCase(REPLAYS, "begins a second sum while one is open", victims({"session": lie.another_session})),
    *(
        ServerLieCase(CLEAR, text, victims({"train": told}), "noise at each client")
        for text, told in {
            "asks for an update twice in the same words": lie.twice,
            "asks for a second update of the round, for another model": lie.add_after(
                lie.broadcast(lie.change_tensors(lambda value: value + 1))
            ),
            "asks for the round once more in another run's name": lie.under_another_name,
            "repeats its first request in every round": lie.first_again,
            "sends a model of other shapes": lie.broadcast(lie.change_tensors(lambda value: value.flatten())),
            "announces a value that the algorithm does not have": lie.broadcast(dict, {"more": torch.zeros(())}),
            "leaves out a client of the cohort, so that fewer would share the noise": lie.ask(cohort=(0, 1)),
        }.items()
    ),
    ServerLieCase(
        ROLL_BACKS,
        "put an older copy of the ledger back",
        victims({"train": node_disk.roll_back_ledger}),
        "noise at each client",
    ),
    ServerLieCase(
        ROLL_BACKS,
        "remove the counter of the ledger",
        victims({"train": node_disk.remove_counter}),
        "noise at each client",
    ),
    ServerLieCase(
        ROLL_BACKS,
        "remove the journal of answers",
        victims({"train": node_disk.forget_journal}),
        "noise at each client",
    ),
)
