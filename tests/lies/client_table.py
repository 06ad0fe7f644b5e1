"""The table of clients' lies. Client 0 lies where no other is named, in each of three rounds."""

import torch

from tests.lies import client_lies as lie
from tests.lies.client_lies import ClientLie, from_second_time, liars, nonsense_for, silent

SILENT = {0: dict.fromkeys(("Keys", "Shares", "Masked", "Agreed", "Revealed"), silent)}
CODES = "\x1b]0;owned\x07\x1b[2J\nround 99 of 3"

GREETING = "Greeting"
KEYS = "Keys"
SHARES = "Shares of mask keys"
VECTORS = "Masked vectors"
AGREEMENT = "Agreement on who is in the sum"
UNMASKING = "Unmasking"
REPLAYS = "Replays and refusals"
MORE = "Several liars, and plans without drop-outs"
CLEAR = "Updates in clear"

CLIENT_LIES = (
    ClientLie(GREETING, "signs the greeting with another key", liars({"hello": lie.sign_greeting_with_another_key})),
    ClientLie(GREETING, "says that it is client 1", liars({"hello": lie.claim_another})),
    ClientLie(GREETING, "speaks an older version of the protocol", liars({"hello": lie.say_older_version})),
    ClientLie(GREETING, "answers the greeting with garbage", liars({"hello": lie.garbage})),
    ClientLie(GREETING, "refuses the greeting with control codes for a terminal", liars({"hello": lie.refuse(CODES)})),
    ClientLie(GREETING, "does not answer the greeting", liars({"hello": silent})),
    ClientLie(KEYS, "sends its keys in client 1's name", liars({"Keys": lie.name_another})),
    ClientLie(KEYS, "does not sign the message with its keys", liars({"Keys": lie.leave_unsigned})),
    ClientLie(KEYS, "does not sign the keys themselves", liars({"Keys": lie.keys_not_signed})),
    ClientLie(KEYS, "signs with a key that nobody knows", liars({"Keys": lie.signed_by_nobody})),
    ClientLie(KEYS, "sends a sealing key of small order", liars({"Keys": lie.weaken(0)})),
    ClientLie(KEYS, "sends a mask key of small order", liars({"Keys": lie.weaken(2)})),
    ClientLie(
        KEYS, "sends one key for all purposes and rounds, whose secrets it does not know", liars({"Keys": lie.one_key})
    ),
    ClientLie(KEYS, "sends garbage for keys", liars({"Keys": lie.garbage})),
    ClientLie(KEYS, "says nothing when keys are asked for", liars({"Keys": silent})),
    ClientLie(SHARES, "deals in client 1's name", liars({"Shares": lie.name_another})),
    ClientLie(SHARES, "does not sign what it deals", liars({"Shares": lie.leave_unsigned})),
    ClientLie(SHARES, "deals client 1 nothing", liars({"Shares": lie.deal_to_fewer})),
    ClientLie(SHARES, "swaps the rows of clients 1 and 2", liars({"Shares": lie.swap_rows})),
    ClientLie(SHARES, "deals client 1 nonsense", liars({"Shares": nonsense_for(1)})),
    ClientLie(SHARES, "deals everybody nonsense", liars({"Shares": nonsense_for()})),
    ClientLie(SHARES, "deals client 1 shares of another secret", liars({"Shares": lie.deal_of_another_secret})),
    ClientLie(
        SHARES,
        "deals two clients nonsense, and is silent when vectors are due",
        liars({"Shares": nonsense_for(1, 2), "Masked": silent}),
    ),
    ClientLie(
        SHARES,
        "deals everybody nonsense, and is silent when vectors are due",
        liars({"Shares": nonsense_for(), "Masked": silent}),
    ),
    ClientLie(
        SHARES,
        "deals client 1 shares of another secret, and is silent when vectors are due",
        liars({"Shares": lie.deal_of_another_secret, "Masked": silent}),
    ),
    ClientLie(SHARES, "says nothing when shares are asked for", liars({"Shares": silent})),
    ClientLie(VECTORS, "sends a vector in client 1's name", liars({"Masked": lie.name_another})),
    ClientLie(VECTORS, "does not sign its vector", liars({"Masked": lie.leave_unsigned})),
    ClientLie(VECTORS, "sends a vector for the round after", liars({"Masked": lie.next_round})),
    ClientLie(VECTORS, "sends garbage for a vector", liars({"Masked": lie.garbage})),
    ClientLie(VECTORS, "says nothing when vectors are due", liars({"Masked": silent})),
    ClientLie(VECTORS, "deals client 1 no share of its self-mask", liars({"Masked": lie.deal_to_fewer})),
    ClientLie(VECTORS, "swaps the rows of clients 1 and 2", liars({"Masked": lie.swap_rows})),
    ClientLie(VECTORS, "deals client 1 nonsense", liars({"Masked": nonsense_for(1)})),
    ClientLie(VECTORS, "deals everybody nonsense", liars({"Masked": nonsense_for()})),
    ClientLie(VECTORS, "deals client 1 a share of another secret", liars({"Masked": lie.deal_of_another_secret})),
    ClientLie(
        VECTORS,
        "deals two clients nonsense, and is silent when masks are opened",
        liars({"Masked": nonsense_for(1, 2), "Revealed": silent}),
    ),
    ClientLie(
        VECTORS,
        "deals everybody nonsense, and is silent when masks are opened",
        liars({"Masked": nonsense_for(), "Revealed": silent}),
    ),
    ClientLie(
        VECTORS,
        "deals everybody nonsense, and does not sign who is in the sum",
        liars({"Masked": nonsense_for(), "Agreed": silent}),
    ),
    ClientLie(
        VECTORS,
        "deals everybody nonsense, and reveals another seed",
        liars({"Masked": nonsense_for(), "Revealed": lie.another_seed}),
    ),
    ClientLie(
        VECTORS,
        "deals client 1 a share of another secret, and is silent when masks are opened",
        liars({"Masked": lie.deal_of_another_secret, "Revealed": silent}),
    ),
    ClientLie(VECTORS, "commits to another seed than its own", liars({"Masked": lie.another_commitment})),
    ClientLie(VECTORS, "masks any numbers, with no regard to the limit", liars({"Masked": lie.any_numbers})),
    ClientLie(AGREEMENT, "signs another list, or for another broadcast", liars({"Agreed": lie.sign_another_list})),
    ClientLie(AGREEMENT, "agrees in client 1's name", liars({"Agreed": lie.name_another})),
    ClientLie(AGREEMENT, "does not sign the message with its agreement", liars({"Agreed": lie.leave_unsigned})),
    ClientLie(AGREEMENT, "sends garbage", liars({"Agreed": lie.garbage})),
    ClientLie(AGREEMENT, "says nothing", liars({"Agreed": silent})),
    ClientLie(UNMASKING, "reveals wrong shares of all", liars({"Revealed": lie.zeros})),
    ClientLie(UNMASKING, "reveals a wrong share of client 1", liars({"Revealed": lie.zero_for_one})),
    ClientLie(UNMASKING, "reveals another seed than its own", liars({"Revealed": lie.another_seed})),
    ClientLie(
        UNMASKING,
        "reveals shares as those of mask keys of clients in the sum",
        liars({"Revealed": lie.reveal_other_kind}),
    ),
    ClientLie(UNMASKING, "reveals in client 1's name", liars({"Revealed": lie.name_another})),
    ClientLie(UNMASKING, "does not sign what it reveals", liars({"Revealed": lie.leave_unsigned})),
    ClientLie(UNMASKING, "says falsely that it can't use client 1's shares", liars({"Revealed": lie.no_share_of_one})),
    ClientLie(UNMASKING, "says falsely that it can't use anybody's shares", liars({"Revealed": lie.no_shares})),
    ClientLie(
        UNMASKING,
        "says falsely that it can't use the shares of client 4, which is silent by accident when masks are opened",
        liars({"Revealed": lie.no_share_of_4}) | {4: {"Revealed": silent}},
        honest=frozenset({4}),
    ),
    ClientLie(
        UNMASKING,
        "says falsely that it can't use the shares of client 4, which is silent by accident when vectors are due",
        liars({"Revealed": lie.no_share_of_4}) | {4: {"Masked": silent}},
        honest=frozenset({4}),
    ),
    ClientLie(
        UNMASKING,
        "reveals a wrong share of the mask key of client 4, which is silent by accident when vectors are due",
        liars({"Revealed": lie.zeros_of_keys}) | {4: {"Masked": silent}},
        honest=frozenset({4}),
    ),
    ClientLie(UNMASKING, "sends garbage", liars({"Revealed": lie.garbage})),
    ClientLie(UNMASKING, "says nothing when masks are opened", liars({"Revealed": silent})),
    ClientLie(REPLAYS, "sends its vector of the first round again", liars({"Masked": lie.repeat_first})),
    ClientLie(REPLAYS, "sends its agreement of the first round again", liars({"Agreed": lie.repeat_first})),
    ClientLie(REPLAYS, "sends what it revealed in the first round again", liars({"Revealed": lie.repeat_first})),
    ClientLie(
        REPLAYS, "refuses every vector, as if its budget were spent", liars({"Masked": lie.refuse("No.", spent=True)})
    ),
    ClientLie(REPLAYS, "refuses to open masks", liars({"Revealed": lie.refuse("No.")})),
    ClientLie(REPLAYS, "sends an empty reply for a vector", liars({"Masked": lie.send(b"")})),
    ClientLie(REPLAYS, "is silent in a whole secure sum", SILENT),
    ClientLie(
        MORE,
        "and another one deal everybody nonsense, and are silent when masks are opened",
        liars({"Masked": nonsense_for(), "Revealed": silent}, 0, 1),
    ),
    ClientLie(
        MORE,
        "deals everybody nonsense, and is silent when masks are opened; another one does so from the second round on",
        liars({"Masked": nonsense_for(), "Revealed": silent})
        | {1: {"Masked": from_second_time(nonsense_for()), "Revealed": from_second_time(silent)}},
    ),
    ClientLie(MORE, "and another one reveal wrong shares", liars({"Revealed": lie.zeros}, 0, 1)),
    ClientLie(
        MORE,
        "and another one say falsely that they can't use anybody's shares",
        liars({"Revealed": lie.no_shares}, 0, 1),
    ),
    ClientLie(
        MORE,
        "and another one say falsely that they can't use the shares of client 4, which is silent by accident when "
        "masks are opened: three at fault, and the session withstands two",
        liars({"Revealed": lie.no_share_of_4}, 0, 1) | {4: {"Revealed": silent}},
        honest=frozenset({4}),
        limit="beyond",
    ),
    ClientLie(
        MORE,
        "and two more are silent when masks are opened: three, and the session withstands two",
        liars({"Revealed": silent}, 0, 1, 2),
        limit="silence",
    ),
    ClientLie(
        MORE,
        "says nothing when vectors are due, in a plan without drop-outs",
        liars({"Masked": silent}),
        "no drop-outs",
        limit="silence",
    ),
    ClientLie(
        MORE,
        "deals everybody nonsense and is silent when masks are opened, in a plan without drop-outs",
        liars({"Masked": nonsense_for(), "Revealed": silent}),
        "no drop-outs",
    ),
    *(
        ClientLie(CLEAR, text, liars({"train": told}), "noise at each client")
        for text, told in {
            "sends garbage for an update": lie.garbage,
            "sends an empty reply": lie.send(b""),
            "sends tensors of other names": lie.alter(lambda row: {"x": torch.zeros(1)}),
            "sends one number more": lie.alter(lambda row: {**row, "x": torch.zeros(())}),
            "sends tensors of another shape": lie.change_tensors(lambda value: value.flatten()[:3]),
            "sends one number for each tensor, which would be spread": lie.change_tensors(
                lambda value: value.flatten()[:1]
            ),
            "sends a tensor whose header names an impossible shape": lie.impossible_shape,
            "sends NaN": lie.change_tensors(lambda value: value * float("nan")),
            "sends infinity": lie.change_tensors(lambda value: value + float("inf")),
            "sends numbers of another type": lie.change_tensors(lambda value: value.double()),
            "sends an update a million times too long": lie.change_tensors(lambda value: 1e6 * value),
            "sends its first update again": lie.repeat_first,
            "refuses with control codes for a terminal": lie.refuse(CODES),
            "says nothing": silent,
        }.items()
    ),
    ClientLie(
        CLEAR,
        "sends an update a million times too long where the server adds the noise",
        liars({"train": lie.change_tensors(lambda value: 1e6 * value)}),
        "noise at the server",
    ),
    ClientLie(
        CLEAR,
        "sends zeros for an update",
        liars({"train": lie.change_tensors(torch.zeros_like)}),
        "noise at the server",
    ),
)
