"""Everything that an algorithm is composed of, for one import: contracts, the parts of this package, and noise.

from discreet import parts

class SignStep(parts.ServerOptimizer): ...
"""

from discreet.algorithms.aggregation import Aggregation, Lattice, Median, Plain, TrimmedMean
from discreet.algorithms.algorithm import Algorithm
from discreet.algorithms.broadcast import Broadcast
from discreet.algorithms.clipping import clip
from discreet.algorithms.mechanisms import (
    AdaptiveGaussian,
    DistributedGaussian,
    Gaussian,
    IntegerNoise,
    LocalNoise,
    Mechanism,
    NoPrivacy,
)
from discreet.algorithms.population import Population
from discreet.algorithms.sampling import Everyone, FixedSize, Poisson, RoundRobin, Sampling
from discreet.algorithms.server_optimizers import ServerAdam, ServerOptimizer, ServerSgd
from discreet.algorithms.sparsifiers import AllCoordinates, PublicTopK, RandomK, ServerTopK, Sparsifier, TopK
from discreet.algorithms.training import (
    BroadcastGradients,
    ConvexLocal,
    DenoisedRelease,
    DpSgd,
    GradientDescent,
    LocalSgd,
    LocalTrainer,
    MinibatchDp,
    Shards,
)
from discreet.algorithms.training.batches import Batch, Batches
from discreet.algorithms.training.exposure import ExampleBound, Exposure, expose_update
from discreet.algorithms.training.schedules import Constant, Cosine, Exponential, Harmonic, Inverse, Schedule, StepDecay
from discreet.params import Params, add, norms, scale
from discreet.privacy.events import GaussianNoise, LaplaceNoise, PoissonSampled, SampledWithoutReplacement
from discreet.randomness.streams import Rows, Streams

__all__ = [
    "AdaptiveGaussian",
    "Aggregation",
    "Algorithm",
    "AllCoordinates",
    "Batch",
    "Batches",
    "Broadcast",
    "BroadcastGradients",
    "Constant",
    "ConvexLocal",
    "Cosine",
    "DenoisedRelease",
    "DistributedGaussian",
    "DpSgd",
    "Everyone",
    "ExampleBound",
    "Exponential",
    "Exposure",
    "FixedSize",
    "Gaussian",
    "GaussianNoise",
    "GradientDescent",
    "Harmonic",
    "IntegerNoise",
    "Inverse",
    "LaplaceNoise",
    "Lattice",
    "LocalNoise",
    "LocalSgd",
    "LocalTrainer",
    "Mechanism",
    "Median",
    "MinibatchDp",
    "NoPrivacy",
    "Params",
    "Plain",
    "Poisson",
    "PoissonSampled",
    "Population",
    "PublicTopK",
    "RandomK",
    "RoundRobin",
    "Rows",
    "SampledWithoutReplacement",
    "Sampling",
    "Schedule",
    "ServerAdam",
    "ServerOptimizer",
    "ServerSgd",
    "ServerTopK",
    "Shards",
    "Sparsifier",
    "StepDecay",
    "Streams",
    "TopK",
    "TrimmedMean",
    "add",
    "clip",
    "expose_update",
    "norms",
    "scale",
]
