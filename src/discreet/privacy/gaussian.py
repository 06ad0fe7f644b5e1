"""The Gaussian mechanism, exactly: N(μ, 1) against N(0, 1), where μ is the sensitivity over the noise's deviation.

T releases with noise multiplier z are one with μ = √T/z, so this is also every composition of Gaussians without
sampling (Balle & Wang, 2018; Dong, Roth & Su, 2019).
"""

import math

LOG_SQRT_TAU = 0.5 * math.log(2 * math.pi)
DEEP = 5.0  # from here on a continued fraction takes over from erfc, which underflows at 38
TERMS = 80  # of that fraction: relative error below 1e-16 from `DEEP` on
# Gauss–Legendre on (−1, 1), 8 points, the positive half: node and weight.
LEGENDRE = (
    (0.18343464249564980494, 0.36268378337836198297),
    (0.52553240991632898582, 0.31370664587788728734),
    (0.79666647741362673959, 0.22238103445337447054),
    (0.96028985649753623168, 0.10122853629037625915),
)


def delta(mu: float, epsilon: float) -> float:
    """Return the smallest δ for which the mechanism is (ε, δ)-private, at ε ≥ 0.

    Its relative error is about 1e-12, down to δ = 1e-300.
    """
    if mu == 0:
        return 0.0
    near, far = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    # δ = Q(near) − e^ε Q(far), and e^ε φ(far) = φ(near): in Mills' ratios nothing overflows.
    if near > DEEP or mu <= 1:
        return _density(near) * _mills_drop(epsilon / mu, mu / 2)
    return max(0.0, math.exp(log_survival(near)) - _density(near) * _mills(far))


def epsilon(mu: float, delta_: float) -> float:
    """Return the smallest ε for which the mechanism is (ε, δ)-private.

    Guarantee: δ(ε) at the value returned does not exceed `delta_`; it is above the true ε by rounding only.
    """
    if mu == 0 or delta(mu, 0.0) <= delta_:
        return 0.0
    if delta_ <= 0 or math.isinf(mu):
        return math.inf
    low, high = 0.0, mu * mu / 2 + mu * math.sqrt(-2 * math.log(delta_))  # Q(x) ≤ exp(−x²/2)
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if delta(mu, middle) <= delta_ else (middle, high)
    return high


def equivalent_mu(epsilon_: float, delta_: float) -> float:
    """Return the μ of the Gaussian that has this ε at this δ, to show a guarantee; it bounds no other curve.

    Guarantee: that Gaussian is not more private than (ε, δ) says, rounding included.
    """
    if delta_ <= 0 or delta_ >= 1 or math.isinf(epsilon_):
        return 0.0 if delta_ <= 0 and epsilon_ == 0 else math.inf
    low, high = 0.0, 1.0
    while delta(high, epsilon_) < delta_:
        low, high = high, 2 * high
    while low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if delta(middle, epsilon_) >= delta_ else (middle, high)
    return high


def true_positive_rate(mu: float, false_positive_rate: float) -> float:
    """Return the largest true positive rate of any test for one unit's presence at this false positive rate."""
    if not 0 < false_positive_rate < 1 or mu == 0:
        return min(max(false_positive_rate, 0.0), 1.0)
    return math.exp(log_survival(upper_quantile(math.log(false_positive_rate)) - mu))


def log_survival(x: float) -> float:
    """Return log P[N(0, 1) > x], with a small relative error in both tails."""
    if x > DEEP:
        return -x * x / 2 - LOG_SQRT_TAU + math.log(_mills(x))
    if x < -1:
        return math.log1p(-math.erfc(-x / math.sqrt(2)) / 2)
    return math.log(math.erfc(x / math.sqrt(2)) / 2)


def upper_quantile(log_probability: float) -> float:
    """Return the x at which `log_survival` has this value, for any negative log-probability."""
    if log_probability > -math.log(2):
        return -upper_quantile(math.log(-math.expm1(log_probability)))
    x = math.sqrt(-2 * log_probability) - 0.6  # near enough: log-survival is concave, so Newton's steps converge
    for _ in range(50):
        step = (log_survival(x) - log_probability) * _mills(x)
        x += step
        if abs(step) <= 1e-15 * max(1.0, x):
            break
    return x


def _density(x: float) -> float:
    return math.exp(-x * x / 2 - LOG_SQRT_TAU)


def _mills(x: float) -> float:
    """Return Mills' ratio: the survival function over the density."""
    if x <= DEEP:
        return math.erfc(x / math.sqrt(2)) / 2 / _density(x)
    return 1 / (x + _fraction(x))


def _fraction(x: float) -> float:
    """Return 1/(x + 2/(x + 3/(x + …))), by which Mills' ratio is 1/(x + this) (Laplace)."""
    rest = 0.0
    for n in range(TERMS, 0, -1):
        rest = n / (x + rest)
    return rest


def _mills_drop(middle: float, half: float) -> float:
    """Return mills(middle − half) − mills(middle + half); if it would cancel, by the integral of the slope."""
    if half > 0.5:
        return _mills(middle - half) - _mills(middle + half)
    return half * sum(w * (_mills_slope(middle - half * x) + _mills_slope(middle + half * x)) for x, w in LEGENDRE)


def _mills_slope(x: float) -> float:
    """Return −d/dx of Mills' ratio, 1 − x·mills(x), without its cancellation in the tail."""
    if x <= DEEP:
        return 1 - x * _mills(x)
    rest = _fraction(x)
    return rest / (x + rest)
