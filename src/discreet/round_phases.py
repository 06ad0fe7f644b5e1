"""The phases of a round: what its time is divided into, by the names of profile.json."""

from enum import StrEnum


class Phase(StrEnum):
    """What a round does, in the order of a round."""

    LEDGER = "ledger"
    COHORT = "cohort"
    BROADCAST = "broadcast"
    DATA = "data"
    TRAINING = "training"
    CLIPPING = "clipping"
    ENCODING = "encoding"
    SUM = "sum"
    SECURE_SUM = "secure_sum"
    WAITING = "waiting"
    NOISE = "noise"
    SERVER_STEP = "server_step"
    EVALUATION = "evaluation"
    EPSILON = "epsilon"
    DIAGNOSTICS = "diagnostics"
    WRITING = "writing"
    CALLBACKS = "callbacks"
    OTHER = "other"
