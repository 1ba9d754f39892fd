"""Flows with the client of version 1."""

import io
import itertools

import letta_client
from letta_client import AsyncLetta, Letta

import types_of_agents
from run import do, each, refused

numbers = itertools.count(1)


def clients(url, key):
    """The clients that the flows are driven with. They refuse answers that their types do not allow."""
    options = {"base_url": url, "api_key": key, "_strict_response_validation": True, "max_retries": 0}
    return [("sync", Letta(**options)), ("async", AsyncLetta(**options))]


def unique(what):
    return f"{what} {next(numbers)}"


async def agent_of(client, **fields):
    return await do(client.agents.create(name=unique("agent"), **fields))


def kinds(messages):
    return [m.message_type for m in messages]


async def types(client, model):
    for kind in types_of_agents.TOOLS:
        agent = await agent_of(client, agent_type=kind, memory_blocks=[{"label": "human", "value": "Ada"}])
        assert agent.agent_type == kind
        types_of_agents.check(agent, kind)
        assert agent.message_buffer_autoclear == (kind == "workflow_agent"), kind
        ending = types_of_agents.ENDING.get(kind)
        model.says([(ending, {"message": "Hello."} if ending == "send_message" else {})] if ending else "Hello.")
        answer = await do(client.agents.messages.create(agent.id, input="Hi"))
        reason = "tool_rule" if kind == "sleeptime_agent" else "end_turn"
        assert answer.stop_reason.stop_reason == reason, (kind, answer.stop_reason)
        said = [m.content for m in answer.messages if m.message_type == "assistant_message"]
        assert said == ([] if kind == "sleeptime_agent" else ["Hello."]), (kind, said)
        assert len(model.asked) == 1, kind


async def left_out(client, model):
    agent = await agent_of(
        client,
        tools=["run_code", "web_search", "send_message_to_agent_async", "memory_rethink"],
        tool_rules=[{"type": "run_first", "tool_name": "memory_rethink", "args": {"label": "human"}}],
        secrets={"KEY": "value"},
        tool_exec_environment_variables={"KEY": "value"},
        enable_sleeptime=True,
        include_default_source=True,
        project_id="project-1",
    )
    names = [tool.name for tool in agent.tools]
    assert "memory_rethink" in names and "run_code" not in names, names
    said = "\n".join(agent.model_extra["warnings"])
    for word in ["run_code", "web_search", "send_message_to_agent_async", "args", "secrets", "enable_sleeptime"]:
        assert word in said, said
    err = await refused(letta_client.BadRequestError, lambda: agent_of(client, tools=["memory_isnert"]))
    assert "memory_insert" in str(err), err
    model.says([("run_code", {"code": "1"})], "I cannot.")
    answer = await do(client.agents.messages.create(agent.id, input="Calculate"))
    returned = next(m for m in answer.messages if m.message_type == "tool_return_message")
    assert returned.status == "error" and "This server does not run run_code" in returned.tool_return, returned


async def autoclear(client, model):
    agent = await agent_of(client, message_buffer_autoclear=True)
    await do(client.agents.messages.create(agent.id, input="The first request"))
    await do(client.agents.messages.create(agent.id, input="The second request"))
    prompt = str(model.asked[-1]["messages"])
    assert "The second request" in prompt and "The first request" not in prompt, prompt
    assert len(await each(client.agents.messages.list(agent.id, order="asc"))) == 5


async def blocks(client, model):
    block = await do(client.blocks.create(label="notes", value="Tea"))
    agent = await agent_of(client, memory_blocks=[{"label": "human", "value": "Ada"}])
    await do(client.agents.blocks.attach(block.id, agent_id=agent.id))
    labels = [b.label for b in await each(client.agents.blocks.list(agent.id))]
    assert sorted(labels) == ["human", "notes"], labels
    changed = await do(client.agents.blocks.update("notes", agent_id=agent.id, value="Coffee"))
    assert changed.value == "Coffee"
    assert (await do(client.blocks.retrieve(block.id))).value == "Coffee"
    await do(client.agents.blocks.detach(block.id, agent_id=agent.id))
    labels = [b.label for b in await each(client.agents.blocks.list(agent.id))]
    assert labels == ["human"], labels
    await do(client.blocks.delete(block.id))
    await refused(letta_client.NotFoundError, lambda: client.blocks.retrieve(block.id))


async def messages(client, model):
    agent = await agent_of(client, memory_blocks=[{"label": "human", "value": "Name: unknown"}])
    edit = {"label": "human", "old_string": "unknown", "new_string": "Ada"}
    model.says([("memory_replace", edit)], "Hello Ada.")
    sent = [{"role": "user", "content": [{"type": "text", "text": "I am Ada."}]}]
    answer = await do(client.agents.messages.create(agent.id, messages=sent))
    assert kinds(answer.messages) == ["tool_call_message", "tool_return_message", "assistant_message"]
    assert answer.usage.step_count == 2
    assert (await do(client.agents.blocks.retrieve("human", agent_id=agent.id))).value == "Name: Ada"
    listed = await each(client.agents.messages.list(agent.id, order="asc", limit=2))
    want = ["system_message", "user_message", "tool_call_message", "tool_return_message", "assistant_message"]
    assert kinds(listed) == want, kinds(listed)
    assert len({m.id for m in listed}) >= 4
    run = (await each(client.runs.list(agent_id=agent.id)))[0]
    assert run.status == "completed", run.status
    steps = await each(client.runs.steps.list(run.id))
    assert len(steps) == 2, steps
    await do(client.agents.messages.reset(agent.id))


async def streams(client, model):
    agent = await agent_of(client)
    for options in [{}, {"stream_tokens": True}, {"stream_tokens": True, "background": True, "include_pings": True}]:
        model.says("One two three.")
        events = await each(client.agents.messages.stream(agent.id, input="Count", **options))
        texts = [e.content for e in events if e.message_type == "assistant_message"]
        said = "".join(t if isinstance(t, str) else "".join(p.text for p in t) for t in texts)
        assert said == "One two three.", (options, said)
        assert {"stop_reason", "usage_statistics"} <= set(kinds(events)), (options, kinds(events))
        if "background" in options:
            run = next(e.run_id for e in events if getattr(e, "run_id", None))
            again = await each(client.runs.messages.stream(run, starting_after=0))
            assert "assistant_message" in kinds(again), kinds(again)


async def approvals(client, model):
    agent = await agent_of(
        client,
        memory_blocks=[{"label": "human", "value": "Ada"}],
        tool_rules=[{"type": "requires_approval", "tool_name": "memory_insert"}],
    )
    for approve in [False, True]:
        model.says([("memory_insert", {"label": "human", "new_string": "Likes tea."})], "Done.")
        asked = await do(client.agents.messages.create(agent.id, input="I like tea"))
        assert asked.stop_reason.stop_reason == "requires_approval"
        call = asked.messages[-1].tool_call.tool_call_id
        decision = {"type": "approval", "tool_call_id": call, "approve": approve, "reason": "No."}
        answer = await do(
            client.agents.messages.create(agent.id, messages=[{"type": "approval", "approvals": [decision]}])
        )
        assert answer.messages[-1].content == "Done.", answer
        value = (await do(client.agents.blocks.retrieve("human", agent_id=agent.id))).value
        assert ("Likes tea." in value) == approve, value


async def client_tools(client, model):
    agent = await agent_of(client)
    tool = {"name": "thermometer", "description": "Reads it.", "parameters": {"type": "object", "properties": {}}}
    model.says([("thermometer", {})], "It is warm.")
    asked = await do(client.agents.messages.create(agent.id, input="How warm is it?", client_tools=[tool]))
    call = asked.messages[-1].tool_call.tool_call_id
    result = {"type": "tool", "tool_call_id": call, "status": "success", "tool_return": "21 degrees"}
    sent = [{"type": "approval", "approvals": [result]}]
    answer = await do(client.agents.messages.create(agent.id, messages=sent, client_tools=[tool]))
    assert answer.messages[-1].content == "It is warm.", answer
    assert "21 degrees" in str(model.asked[-1]["messages"])


async def tools(client, model):
    name = f"roll_{next(numbers)}"
    source = f'def {name}(sides: int) -> int:\n    """Roll a die.\n\n    Args:\n        sides (int): Its sides.\n    """\n'
    tool = await do(client.tools.create(source_code=source + "    return sides\n"))
    assert tool.name == name and tool.tool_type == "custom"
    agent = await agent_of(client, agent_type="react_agent")
    await do(client.agents.tools.attach(tool.id, agent_id=agent.id))
    assert [t.name for t in await each(client.agents.tools.list(agent.id))] == [name]
    await do(client.agents.tools.detach(tool.id, agent_id=agent.id))
    assert await each(client.agents.tools.list(agent.id)) == []
    assert len(await each(client.tools.list(limit=5))) > 20
    await do(client.tools.delete(tool.id))


async def folders(client, model):
    folder = await do(client.folders.create(name=unique("papers")))
    file = io.BytesIO(b"The kettle is blue.\n")
    file.name = "kettle.txt"
    uploaded = await do(client.folders.files.upload(folder.id, file=file))
    assert uploaded.file_name == "kettle.txt", uploaded
    agent = await agent_of(client)
    await do(client.agents.folders.attach(folder.id, agent_id=agent.id))
    names = [t.name for t in await each(client.agents.tools.list(agent.id))]
    assert {"open_files", "grep_files", "semantic_search_files"} <= set(names), names
    assert [f.file_name for f in await each(client.agents.files.list(agent.id))]
    assert len(await each(client.folders.files.list(folder.id))) == 1
    assert agent.id in [getattr(a, "id", a) for a in await each(client.folders.agents.list(folder.id))]
    await do(client.agents.folders.detach(folder.id, agent_id=agent.id))
    await do(client.folders.delete(folder.id))


async def archives(client, model):
    archive = await do(client.archives.create(name=unique("facts")))
    passage = await do(client.archives.passages.create(archive.id, text="The kettle is blue.", tags=["tea"]))
    more = [{"text": "The cup is red."}, {"text": "The spoon is old."}]
    assert len(await do(client.archives.passages.create_many(archive.id, passages=more))) == 2
    agent = await agent_of(client)
    await do(client.agents.archives.attach(archive.id, agent_id=agent.id))
    found = await do(client.agents.passages.search(agent.id, query="kettle"))
    assert found.results and "kettle" in found.results[0].content, found
    assert await do(client.passages.search(query="kettle", archive_id=archive.id))
    await do(client.archives.passages.delete(passage.id, archive_id=archive.id))
    await do(client.agents.archives.detach(archive.id, agent_id=agent.id))
    await do(client.archives.delete(archive.id))


async def conversations(client, model):
    agent = await agent_of(client)
    conversation = await do(client.conversations.create(agent_id=agent.id, summary="Tea"))
    await each(client.conversations.messages.create(conversation.id, input="Hello"))
    listed = await each(client.conversations.messages.list(conversation.id, order="asc"))
    assert kinds(listed) == ["system_message", "user_message", "assistant_message"], kinds(listed)
    fork = await do(client.conversations.fork(conversation.id))
    assert fork.id != conversation.id
    found = await do(client.conversations.list(agent_id=agent.id))
    assert len(await each(found)) >= 2
    await do(client.conversations.delete(fork.id))


async def pages(client, model):
    tag = unique("tag")
    made = [(await agent_of(client, tags=[tag])).id for _ in range(5)]
    for order, want in [("asc", made), ("desc", made[::-1])]:
        listed = await each(client.agents.list(tags=[tag], limit=2, order=order))
        assert [a.id for a in listed] == want, (order, len(listed))
    page = await do(client.agents.list(tags=[tag], limit=0))
    assert page.items == [], page
    for id in made:
        await do(client.agents.delete(id))
    assert await each(client.agents.list(tags=[tag])) == []


async def files_of_agents(client, model):
    agent = await agent_of(client, agent_type="memgpt_agent", memory_blocks=[{"label": "human", "value": "Ada"}])
    model.says([("send_message", {"message": "Hello."})])
    await do(client.agents.messages.create(agent.id, input="Hi"))
    exported = await do(client.agents.export_file(agent.id))
    file = io.BytesIO(exported.encode() if isinstance(exported, str) else exported)
    imported = await do(client.agents.import_file(file=("agent.af", file, "application/json")))
    copy = await do(client.agents.retrieve(imported.agent_ids[0], include=["agent.tools", "agent.blocks"]))
    types_of_agents.check(copy, "memgpt_agent")
    assert kinds(await each(client.agents.messages.list(copy.id, order="asc")))[-1] == "assistant_message"


async def errors(client, model):
    gone = "agent-123e4567-e89b-42d3-8456-426614174000"
    await refused(letta_client.NotFoundError, lambda: client.agents.retrieve(gone))
    wrong = {"agent_type": "robot"}
    await refused(letta_client.UnprocessableEntityError, lambda: client.agents.create(extra_body=wrong))
    await refused(letta_client.BadRequestError, lambda: client.agents.create(from_template="project/template"))


ALL = [types, left_out, autoclear, blocks, messages, streams, approvals, client_tools, tools, folders, archives,
       conversations, pages, files_of_agents, errors]
