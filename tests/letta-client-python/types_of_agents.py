"""What agents of Letta's types have: their tools, in Loci with expand beside conversation_search, and their rules."""

TOOLS = {
    "letta_v1_agent": ["conversation_search", "expand", "memory_insert", "memory_replace"],
    "memgpt_agent": [
        "conversation_search",
        "core_memory_append",
        "core_memory_replace",
        "expand",
        "memory",
        "memory_apply_patch",
        "send_message",
    ],
    "memgpt_v2_agent": ["conversation_search", "expand", "memory_insert", "memory_replace", "send_message"],
    "react_agent": [],
    "workflow_agent": [],
    "sleeptime_agent": ["memory_finish_edits", "memory_insert", "memory_replace", "memory_rethink"],
}

ENDING = {"memgpt_agent": "send_message", "memgpt_v2_agent": "send_message", "sleeptime_agent": "memory_finish_edits"}


def check(agent, kind):
    """Checks the tools and the rules of a new agent."""
    names = sorted(tool.name for tool in agent.tools)
    assert names == TOOLS[kind], f"{kind}: {names}"
    rules = {rule.tool_name: rule.type for rule in agent.tool_rules or []}
    ending = ENDING.get(kind)
    want = {}
    if ending:
        want = {name: "continue_loop" for name in names if name != "expand"} | {ending: "exit_loop"}
    assert rules == want, f"{kind}: {rules}"
