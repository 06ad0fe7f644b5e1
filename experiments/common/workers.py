"""Make runs on several processes that share a GPU: each takes the next run as soon as it is free."""

import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from typing import TypeVar

J = TypeVar("J")
R = TypeVar("R")


def make_runs(
    jobs: deque[J], perform: Callable[[J], R], workers: int, limit_s: float = math.inf
) -> Iterator[tuple[J, R]]:
    """Yield each job with its result as soon as it is done, and begin none after `limit_s` seconds.

    More jobs may be put into `jobs` meanwhile. A job that fails is printed with its error, and the others go on.
    """
    began, going = time.perf_counter(), dict[Future[R], J]()
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        while True:
            while jobs and len(going) < workers and time.perf_counter() - began < limit_s:
                job = jobs.popleft()
                going[pool.submit(perform, job)] = job
            if not going:
                return
            for future in wait(going, return_when=FIRST_COMPLETED).done:
                job, error = going.pop(future), future.exception()
                if error is None:
                    yield job, future.result()
                else:
                    print(f"{job} failed: {error}", flush=True)
