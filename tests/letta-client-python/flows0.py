"""Flows with the client of version 0.1."""

import io
import itertools
import json

from letta_client import ApprovalCreate, AsyncLetta, ContinueToolRule, CreateBlock, Letta, MessageCreate
from letta_client.core.api_error import ApiError

import types_of_agents
from run import do, each, refused

numbers = itertools.count(1)


def clients(url, key):
    """The clients that the flows are driven with."""
    options = {"base_url": url, "token": key, "timeout": 60}
    return [("sync", Letta(**options)), ("async", AsyncLetta(**options))]


def unique(what):
    return f"{what} {next(numbers)}"


async def fails(status, result):
    err = await refused(ApiError, result)
    assert err.status_code == status, err


# Letta 0.16 answers null, too: this client is older than that.
MAY_BE_NULL = ["embedding_config"]


def known(value, path=""):
    """Checks that a value is of the client's own types down to its last field: the client passes on what it cannot read."""
    for name, field in type(value).model_fields.items() if hasattr(type(value), "model_fields") else []:
        item = getattr(value, name)
        null = not field.is_required() or "None" in str(field.annotation) or name in MAY_BE_NULL
        assert item is not None or null, f"{path}.{name} is None"
        for each_item in item if isinstance(item, list) else [item]:
            known(each_item, f"{path}.{name}")
    return value


async def agent_of(client, **fields):
    return known(await do(client.agents.create(name=unique("agent"), **fields)), "agent")


def say(text):
    return [MessageCreate(role="user", content=text)]


def kinds(messages):
    return [m.message_type for m in messages]


async def types(client, model):
    for kind in types_of_agents.TOOLS:
        agent = await agent_of(client, agent_type=kind, memory_blocks=[CreateBlock(label="human", value="Ada")])
        types_of_agents.check(agent, kind)
        ending = types_of_agents.ENDING.get(kind)
        model.says([(ending, {"message": "Hello."} if ending == "send_message" else {})] if ending else "Hello.")
        answer = known(await do(client.agents.messages.create(agent.id, messages=say("Hi"))))
        said = [m.content for m in answer.messages if m.message_type == "assistant_message"]
        assert said == ([] if kind == "sleeptime_agent" else ["Hello."]), (kind, said)


async def left_out(client, model):
    agent = await agent_of(
        client,
        tools=["send_message", "run_code", "memory_rethink"],
        tool_rules=[ContinueToolRule(tool_name="memory_rethink")],
        include_multi_agent_tools=True,
        tool_exec_environment_variables={"KEY": "value"},
        enable_sleeptime=True,
        message_buffer_autoclear=True,
    )
    said = "\n".join(agent.warnings)
    for word in ["run_code", "include_multi_agent_tools", "tool_exec_environment_variables", "enable_sleeptime"]:
        assert word in said, said
    assert "autoclear" not in said and "send_message:" not in said, said


async def blocks(client, model):
    block = known(await do(client.blocks.create(label="notes", value="Tea")))
    agent = await agent_of(client, memory_blocks=[CreateBlock(label="human", value="Ada")])
    state = known(await do(client.agents.blocks.attach(agent.id, block.id)))
    assert {b.label for b in state.memory.blocks} == {"human", "notes"}
    assert known(await do(client.agents.blocks.modify(agent.id, "notes", value="Coffee"))).value == "Coffee"
    assert len(await each(client.agents.blocks.list(agent.id))) == 2
    state = await do(client.agents.blocks.detach(agent.id, block.id))
    assert [b.label for b in state.memory.blocks] == ["human"]
    await do(client.blocks.delete(block.id))
    await fails(404, lambda: client.blocks.retrieve(block.id))


async def messages(client, model):
    agent = await agent_of(client, memory_blocks=[CreateBlock(label="human", value="Name: unknown")])
    edit = {"label": "human", "old_string": "unknown", "new_string": "Ada"}
    model.says([("memory_replace", edit)], "Hello Ada.")
    answer = known(await do(client.agents.messages.create(agent.id, messages=say("I am Ada."))))
    assert kinds(answer.messages) == ["tool_call_message", "tool_return_message", "assistant_message"]
    listed = known(await each(client.agents.messages.list(agent.id)))
    want = ["system_message", "user_message", "tool_call_message", "tool_return_message", "assistant_message"]
    assert kinds(listed) == want, kinds(listed)
    last = await each(client.agents.messages.list(agent.id, limit=1))
    assert kinds(last) == ["assistant_message"], kinds(last)
    runs = await each(client.runs.list(agent_ids=[agent.id]))
    assert runs[0].status == "completed", runs


async def streams(client, model):
    agent = await agent_of(client)
    for options in [{}, {"stream_tokens": True}, {"stream_tokens": True, "background": True}]:
        model.says("One two three.")
        events = await each(client.agents.messages.create_stream(agent.id, messages=say("Count"), **options))
        texts = [e.content for e in events if e.message_type == "assistant_message"]
        said = "".join(t if isinstance(t, str) else "".join(p.text for p in t) for t in texts)
        assert said == "One two three.", (options, said)
        assert {"stop_reason", "usage_statistics"} <= set(kinds(events)), (options, kinds(events))


async def approvals(client, model):
    rule = {"type": "requires_approval", "tool_name": "memory_insert"}
    agent = await agent_of(client, memory_blocks=[CreateBlock(label="human", value="Ada")], tool_rules=[rule])
    for approve in [False, True]:
        model.says([("memory_insert", {"label": "human", "new_string": "Likes tea."})], "Done.")
        asked = await do(client.agents.messages.create(agent.id, messages=say("I like tea")))
        assert asked.stop_reason.stop_reason == "requires_approval", asked
        decision = ApprovalCreate(type="approval", approval_request_id=asked.messages[-1].id, approve=approve)
        answer = known(await do(client.agents.messages.create(agent.id, messages=[decision])))
        assert answer.messages[-1].content == "Done.", answer
        value = (await do(client.agents.blocks.retrieve(agent.id, "human"))).value
        assert ("Likes tea." in value) == approve, value


async def tools(client, model):
    name = f"roll_{next(numbers)}"
    source = f'def {name}(sides: int) -> int:\n    """Roll a die.\n\n    Args:\n        sides (int): Its sides.\n    """\n'
    tool = known(await do(client.tools.create(source_code=source + "    return sides\n")))
    agent = await agent_of(client, agent_type="react_agent")
    state = known(await do(client.agents.tools.attach(agent.id, tool.id)))
    assert [t.name for t in state.tools] == [name]
    state = known(await do(client.agents.tools.detach(agent.id, tool.id)))
    assert state.tools == []
    assert len(await each(client.tools.list(limit=100))) > 20
    await do(client.tools.delete(tool.id))


async def folders(client, model):
    folder = known(await do(client.folders.create(name=unique("papers"))))
    file = ("kettle.txt", io.BytesIO(b"The kettle is blue.\n"), "text/plain")
    assert known(await do(client.folders.files.upload(folder.id, file=file))).file_name == "kettle.txt"
    agent = await agent_of(client)
    state = known(await do(client.agents.folders.attach(agent.id, folder.id)))
    assert {"open_files", "grep_files", "semantic_search_files"} <= {t.name for t in state.tools}
    assert [f.id for f in await each(client.agents.folders.list(agent.id))] == [folder.id]
    assert len(await each(client.folders.files.list(folder.id))) == 1
    await do(client.agents.folders.detach(agent.id, folder.id))
    await do(client.folders.delete(folder.id))


async def passages(client, model):
    agent = await agent_of(client)
    made = known(await do(client.agents.passages.create(agent.id, text="The kettle is blue.", tags=["tea"])))
    assert made[0].text == "The kettle is blue."
    found = await do(client.agents.passages.search(agent.id, query="kettle"))
    assert found.count == 1, found
    assert len(await each(client.agents.passages.list(agent.id))) == 1
    await do(client.agents.passages.delete(agent.id, made[0].id))
    assert await each(client.agents.passages.list(agent.id)) == []


async def pages(client, model):
    tag = unique("tag")
    made = [(await agent_of(client, tags=[tag])).id for _ in range(5)]
    seen, after = [], None
    while page := await each(client.agents.list(tags=[tag], limit=2, ascending=True, after=after)):
        seen += [a.id for a in page]
        after = page[-1].id
    assert seen == made, (seen, made)
    for id in made:
        await do(client.agents.delete(id))


async def files_of_agents(client, model):
    agent = await agent_of(client, agent_type="memgpt_agent", memory_blocks=[CreateBlock(label="human", value="Ada")])
    model.says([("send_message", {"message": "Hello."})])
    await do(client.agents.messages.create(agent.id, messages=say("Hi")))
    exported = await do(client.agents.export_file(agent.id))
    file = ("agent.af", io.BytesIO(json.dumps(exported).encode()), "application/json")
    imported = await do(client.agents.import_file(file=file))
    copy = known(await do(client.agents.retrieve(imported.agent_ids[0])))
    types_of_agents.check(copy, "memgpt_agent")
    assert kinds(await each(client.agents.messages.list(copy.id)))[-1] == "assistant_message"


async def errors(client, model):
    gone = "agent-123e4567-e89b-42d3-8456-426614174000"
    await fails(404, lambda: client.agents.retrieve(gone))
    await fails(422, lambda: client.agents.create(agent_type="robot"))
    await fails(400, lambda: client.agents.create(tools=["memory_isnert"]))


ALL = [types, left_out, blocks, messages, streams, approvals, tools, folders, passages, pages, files_of_agents, errors]
