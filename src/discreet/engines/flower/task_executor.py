"""The task executor of a stock SuperNode that was started with `--isolation process`: it runs installed code only.

The SuperNode fetches the bundle that a server ships, and passes it on with each task. Flower's own executor would
install and import it in a process for each task; this one does not open it. Written for flwr 1.41.
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
    """Answer the tasks of the SuperNode at this address, on this machine, until the process ends."""
    tasks = _runtime_client(address)
    say(f"Working for the SuperNode at {address}.")
    while True:
        response = tasks.AcquireTask(AcquireTaskRequest(supported_task_types=[TaskType.CLIENT_APP]))
        if response.HasField("task") and response.token:
            try:
                _answer_task(_runtime_client(address, RuntimeTokenHttpInterceptor(response.token)), answer)
            except Exception as fault:  # noqa: BLE001 - whatever a server sends, the client stays
                say(f"Ignored a message that could not be read ({type(fault).__name__}).")
        else:
            time.sleep(PAUSE_SECONDS)


def _answer_task(task: RuntimeHttpClient, answer: Responder) -> None:
    message, context, _run, _bundle = pull_task_input(task)
    request = unpack(message)
    if request is None:
        error = Error(ErrorCode.CLIENT_APP_RAISED_EXCEPTION, "The message is not one of discreet's.")
        reply = Message(error, reply_to=message)
    else:
        reply = Message(pack(answer(request)), reply_to=message)
    push_message(task, reply, context)
    push_task_output(task, context, SubStatus.COMPLETED, "")
    task.close()


def _runtime_client(address: str, *proofs: Any) -> RuntimeHttpClient:
    return RuntimeHttpClient.from_server_address(
        server_address=address,
        insecure=True,  # the connection stays on this machine
        root_certificates=None,
        interceptors=[RuntimeVersionHttpInterceptor(component_name="SuperExec"), *proofs],
        retry_invoker=make_simple_http_retry_invoker(),
    )
