"""The purposes that randomness is drawn for. Every stream is named by one, so that no two purposes share a stream."""

from enum import Enum, unique

from discreet.errors import InvalidInput


@unique
class Purpose(Enum):
    """One member for each purpose. Its text is part of the keys of its streams: another text would change all draws."""

    # Drawn from the run's key, for the whole run.
    TASK = "task"  # how a task deals its examples to clients
    MODEL = "model"  # the first weights of a model
    SAMPLING = "sampling"  # who joins a round
    DROP_OUT = "drop out"  # who leaves a simulated secure sum, and when
    TRAINING_EXAMPLES = "training examples"  # which training examples the model is evaluated on
    PILOT = "pilot"  # the made-up clients of the planner's pilot
    ATTACK = "attack"  # the coins and the stand-in data of attacks on an experiment
    AUDIT = "audit"  # the coins and directions of an audit's canaries
    TURNS = "turns"  # in which order clients take turns, in experiments/theory

    # Drawn by a client or the server, in one round.
    NETWORK = "network"  # what a network draws by itself, such as dropout
    TRAIN = "train"  # all of local training, which draws for the purposes below
    ENCODE = "encode"  # the rounding of a client's bounded update
    SHARE = "share"  # the noise that a client adds to its update
    SERVER = "server"  # the noise that the server adds to the sum
    PUBLIC = "public"  # the server's own training on public data
    ATTEMPT = "attempt"  # a deployed client that answers another question in the same round
    SESSION = "session"  # a deployed client in one session of secure sums

    # Drawn within local training.
    BATCH = "batch"  # which examples join a step of noisy training
    NOISE = "noise"  # the noise of each step
    ROUNDING = "rounding"  # the rounding of each step's sum
    BATCHES = "batches"  # in which order examples are visited
    COINS = "coins"  # which examples join a round
    SHARD = "shard"  # which shard each example is in
    LOCAL = "local"  # the training on one shard


def stream_name(purpose: Purpose, numbers: tuple[int | str, ...]) -> tuple[int | str, ...]:
    """Return the name that a stream's key is derived from: the purpose and the numbers that distinguish its streams."""
    if not isinstance(purpose, Purpose):
        raise InvalidInput(
            f"A stream must be named by a Purpose, and got {purpose!r} ({type(purpose).__name__}).",
            fix="Use a member of discreet.randomness.purposes.Purpose, or add one for what is drawn.",
        )
    return (purpose.value, *numbers)
