"""The task executor of a stock SuperNode that was started with `--isolation process`: the local code, and no bundle.

The SuperNode fetches the bundle that a server ships and hands it on with each task; here it is left unopened. What
Flower's own executor would do, a process for each task that installs and imports it, is not done. Pinned to flwr 1.41.
"""

import time
from collections.abc import Callable
from typing import Any

from flwr.app import Error, Message
from flwr.common.constant import ErrorCode, SubStatus
from flwr.proto.runtime_pb2 import AcquireTaskRequest
from flwr.supercore.constant import TaskType
from flwr.supercore.interceptors import RuntimeTokenHttpInterceptor, RuntimeVersionHttpInterceptor
from flwr.supercore.retry import make_simple_http_retry_invoker
from flwr.supercore.runtime import RuntimeHttpClient
from flwr.supernode.runtime.run_clientapp import pull_task_input, push_message, push_task_output

from discreet.engines.flower.carrier import Responder
from discreet.engines.flower.message_content import pack, unpack

PAUSE_SECONDS = 0.05


def run_executor(address: str, answer: Responder, say: Callable[[str], None]) -> None:
    """Take tasks from the SuperNode at this address, on this machine, until the process ends."""
    tasks = _runtime_client(address)
    say(f"Working for the SuperNode at {address}.")
    while True:
        found = tasks.AcquireTask(AcquireTaskRequest(supported_task_types=[TaskType.CLIENT_APP]))
        if found.HasField("task") and found.token:
            try:
                _answer_task(_runtime_client(address, RuntimeTokenHttpInterceptor(found.token)), answer)
            except Exception as fault:  # noqa: BLE001 - whatever a server sends, the client stays
                say(f"A message was not understood ({type(fault).__name__}), and is left alone.")
        else:
            time.sleep(PAUSE_SECONDS)


def _answer_task(task: RuntimeHttpClient, answer: Responder) -> None:
    message, context, _run, _bundle = pull_task_input(task)
    request = unpack(message)
    if request is None:
        error = Error(ErrorCode.CLIENT_APP_RAISED_EXCEPTION, "The message is none of discreet's.")
        reply = Message(error, reply_to=message)
    else:
        reply = Message(pack(answer(request)), reply_to=message)
    push_message(task, reply, context)
    push_task_output(task, context, SubStatus.COMPLETED, "")
    task.close()


def _runtime_client(address: str, *proofs: Any) -> RuntimeHttpClient:
    return RuntimeHttpClient.from_server_address(
        server_address=address,
        insecure=True,  # on this machine alone
        root_certificates=None,
        interceptors=[RuntimeVersionHttpInterceptor(component_name="SuperExec"), *proofs],
        retry_invoker=make_simple_http_retry_invoker(),
    )
