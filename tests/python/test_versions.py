"""Agents and testmasters of other versions: those of one schema work together, others refuse in one line."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc
import pytest

from wiregauge import __version__
from wiregauge.runner.agent_program import agent_program
from wiregauge.runner.agents.client import Agent, AgentLostError
from wiregauge.runner.agents.network import AgentPlace
from wiregauge.runner.agents.pool import AgentPool
from wiregauge.runner.agents.versions import OURS, disagreement
from wiregauge.runner.lab.hosts import describe
from wiregauge.runner.lab.placement import unfit
from wiregauge.runner.rpc import agent_pb2 as pb

PLAN, RECORD = OURS
OLDER, NEWER = (PLAN - 1, RECORD), (PLAN, RECORD + 1)

Pretend = Callable[[tuple[int, int]], str]


@pytest.fixture
def pretend(tmp_path: Path) -> Iterator[Pretend]:
    """Starts an agent of version 7.7.7 that has other schemas and knows Hello and Describe alone; where it is."""
    servers: list[grpc.Server] = []

    def started(schemas: tuple[int, int]) -> str:
        plan, record = schemas

        def answer(reply: Any) -> grpc.RpcMethodHandler:
            told = reply(agent_version="7.7.7", plan_schema=plan, record_schema=record)
            return grpc.unary_unary_rpc_method_handler(
                lambda request, context: told, lambda raw: raw, reply.SerializeToString
            )

        server = grpc.server(ThreadPoolExecutor(2))
        calls = {"Hello": answer(pb.HelloReply), "Describe": answer(pb.DescribeReply)}
        handler = grpc.method_handlers_generic_handler("wiregauge.agent.v1.Agent", calls)
        server.add_generic_rpc_handlers((handler,))
        address = f"unix:{tmp_path}/pretended-{len(servers)}"
        server.add_insecure_port(address)
        server.start()
        servers.append(server)
        return address

    yield started
    for server in servers:
        server.stop(None)


def place(address: str) -> AgentPlace:
    return AgentPlace("drive", 0, address, "eth0", -1, 0, shares_run_directory=False)


def greeted(address: str) -> str:
    """What a testmaster says that greets this agent; empty where it goes on."""
    pool = AgentPool([place(address)])
    try:
        pool.greet()
    except AgentLostError as error:
        return str(error)
    finally:
        pool.close()
    return ""


def test_releases_of_one_schema_work_together(pretend: Pretend) -> None:
    assert disagreement("7.7.7", *OURS) is None
    assert greeted(pretend(OURS)) == ""


@pytest.mark.parametrize(
    ("schemas", "cure"),
    [
        pytest.param(OLDER, f"install {__version__} on the agent's host", id="older"),
        pytest.param(NEWER, "install 7.7.7 for the testmaster", id="newer"),
    ],
)
def test_a_testmaster_refuses_an_agent_of_other_schemas(
    pretend: Pretend, schemas: tuple[int, int], cure: str
) -> None:
    address = pretend(schemas)
    said = greeted(address)
    assert said == (
        f"the agent of drive: it is version 7.7.7 (plan schema {schemas[0]}, record schema {schemas[1]}), and the "
        f"testmaster is {__version__} (plan schema {PLAN}, record schema {RECORD}), which do not work together; {cure}"
    )
    # Before anything is built or sent, too: `lab status`, `lab map` and a run ask what a host is first.
    assert unfit(describe("drive", address, None)) == said.removeprefix("the agent of drive: ")


def test_an_agent_that_lacks_a_call_is_of_another_version(pretend: Pretend) -> None:
    agent = Agent(place(pretend(OURS)))
    with pytest.raises(AgentLostError) as refused:
        agent.received_frames()
    agent.close()
    assert str(refused.value) == (
        f"the agent of drive: it is of another version and does not know this call; install {__version__} on its host"
    )


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    """A real one."""
    (tmp_path / "spool").mkdir(mode=0o700)
    address = f"unix:{tmp_path}/socket"
    process = subprocess.Popen(
        [
            str(agent_program()),
            "serve",
            "--listen",
            address,
            "--spool",
            str(tmp_path / "spool"),
            "--announce",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("listening ")
    made = Agent(place(address))
    yield made
    made.close()
    process.terminate()
    process.communicate(timeout=10)


@pytest.mark.parametrize(
    ("schemas", "cure"),
    [
        pytest.param(OLDER, f"install {__version__} for the testmaster", id="older"),
        pytest.param(NEWER, "install 7.7.7 on the agent's host", id="newer"),
    ],
)
def test_an_agent_refuses_a_testmaster_of_other_schemas(
    agent: Agent, schemas: tuple[int, int], cure: str
) -> None:
    request = pb.HelloRequest(master_version="7.7.7", plan_schema=schemas[0], record_schema=schemas[1])
    with pytest.raises(AgentLostError) as refused:
        agent._call("Hello", request, pb.HelloReply)
    assert str(refused.value) == (
        f"the agent of drive: it is version {__version__} (plan schema {PLAN}, record schema {RECORD}), and the "
        f"testmaster is 7.7.7 (plan schema {schemas[0]}, record schema {schemas[1]}), which do not work "
        f"together; {cure}"
    )
    # One that says no schema compares the reply itself; ours says it, and is taken.
    agent._call("Hello", pb.HelloRequest(master_version="0.0.1"), pb.HelloReply)
    assert agent.hello(__version__, 0).plan_schema == PLAN
