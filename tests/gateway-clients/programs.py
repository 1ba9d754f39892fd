"""Programs with Python packages of providers and frameworks. Each yields what it was answered."""

import asyncio
from dataclasses import dataclass

import anthropic
import openai
from pydantic import BaseModel

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}
FACT = "My cat is called Pixel and she is seven years old."
QUESTION = "How old is my cat Pixel?"
WEATHER = "How is the weather in Paris and Rome?"


class Cat(BaseModel):
    name: str
    age: int


@dataclass
class Place:
    """Where a program finds its provider."""

    url: str  # without /openai/v1 or /anthropic
    headers: dict

    def openai(self, kind=openai.OpenAI):
        return kind(base_url=f"{self.url}/openai/v1", api_key="sk-own", default_headers=self.headers, max_retries=0)

    def anthropic(self, kind=anthropic.Anthropic):
        return kind(base_url=f"{self.url}/anthropic", api_key="sk-ant-own", default_headers=self.headers, max_retries=0)


def openai_chat(place):
    client, ask = place.openai(), {"model": "gpt-4o"}
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": FACT}]
    said = client.chat.completions.create(messages=messages, **ask)
    yield said
    messages += [{"role": "assistant", "content": said.choices[0].message.content}, {"role": "user", "content": WEATHER}]
    tools = [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA, "strict": True}}]
    said = client.chat.completions.create(messages=messages, tools=tools, parallel_tool_calls=True, **ask)
    yield said
    messages.append(said.choices[0].message.model_dump(exclude_none=True))
    messages += [{"role": "tool", "tool_call_id": c.id, "content": "warm"} for c in said.choices[0].message.tool_calls]
    stream = client.chat.completions.create(
        messages=messages, tools=tools, stream=True, stream_options={"include_usage": True}, **ask
    )
    yield list(stream)
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
    yield client.chat.completions.create(
        messages=[{"role": "user", "content": [{"type": "text", "text": "What is this?"}, picture]}], **ask
    )
    yield client.chat.completions.parse(
        messages=[{"role": "user", "content": "Which cat?"}], response_format=Cat, **ask
    ).choices[0].message.parsed
    yield client.models.list().data
    yield client.chat.completions.create(messages=[{"role": "user", "content": QUESTION}], **ask)


def openai_responses(place):
    client, ask = place.openai(), {"model": "gpt-4o"}
    first = client.responses.create(input=FACT, instructions="Be brief.", **ask)
    yield first.output_text, first.usage
    tools = [{"type": "function", "name": "weather", "parameters": SCHEMA, "strict": True}]
    second = client.responses.create(input=WEATHER, previous_response_id=first.id, tools=tools, **ask)
    yield second.output
    results = [{"type": "function_call_output", "call_id": c.call_id, "output": "warm"} for c in second.output]
    with client.responses.stream(input=results, previous_response_id=second.id, tools=tools, **ask) as stream:
        yield [event.type for event in stream]
        yield stream.get_final_response().output_text
    yield client.responses.parse(input="Which cat?", text_format=Cat, **ask).output_parsed
    yield client.responses.create(input=[{"role": "user", "content": QUESTION}], **ask).output_text


def anthropic_messages(place):
    client, ask = place.anthropic(), {"model": "claude-test", "max_tokens": 2000}
    system = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    messages = [{"role": "user", "content": FACT}]
    said = client.messages.create(messages=messages, system=system, **ask)
    yield said
    messages += [{"role": "assistant", "content": said.content}]
    messages += [{"role": "user", "content": [{"type": "text", "text": WEATHER, "cache_control": {"type": "ephemeral"}}]}]
    tools = [{"name": "weather", "input_schema": SCHEMA}]
    more = {"system": system, "tools": tools, "thinking": {"type": "enabled", "budget_tokens": 1024}, **ask}
    with client.messages.stream(messages=messages, **more) as stream:
        yield [event.type for event in stream]
        said = stream.get_final_message()
    yield said
    calls = [block for block in said.content if block.type == "tool_use"]
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": "warm"} for call in calls]
    messages += [{"role": "assistant", "content": said.content}, {"role": "user", "content": results}]
    yield client.messages.create(messages=messages, **more)
    yield client.messages.count_tokens(messages=messages, model=ask["model"], tools=tools)
    yield client.messages.create(messages=[{"role": "user", "content": QUESTION}], **ask)


def langchain(make):
    from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
    from langchain_core.tools import tool

    @tool
    def weather(city: str) -> str:
        """The weather of a city."""
        return "warm"

    def run(place):
        model = make(place)
        messages = [SystemMessage("Be brief."), HumanMessage(FACT)]
        messages += [model.invoke(messages), HumanMessage(WEATHER)]
        yield messages[2].content
        said = model.bind_tools([weather]).invoke(messages)
        yield said.tool_calls
        messages += [said] + [ToolMessage(weather.invoke(call["args"]), tool_call_id=call["id"]) for call in said.tool_calls]
        yield [chunk.content for chunk in model.bind_tools([weather]).stream(messages)]
        yield model.with_structured_output(Cat).invoke("Which cat?")
        yield model.invoke(QUESTION).content

    return run


def langchain_openai(place):
    from langchain_openai import ChatOpenAI

    return langchain(
        lambda p: ChatOpenAI(
            base_url=f"{p.url}/openai/v1", api_key="sk-own", model="gpt-4o", default_headers=p.headers, max_retries=0
        )
    )(place)


def langchain_anthropic(place):
    from langchain_anthropic import ChatAnthropic

    return langchain(
        lambda p: ChatAnthropic(
            base_url=f"{p.url}/anthropic", api_key="sk-ant-own", model="claude-test", default_headers=p.headers,
            max_retries=0,
        )
    )(place)


def agents_sdk(place):
    import agents

    agents.set_tracing_disabled(True)

    @agents.function_tool
    def weather(city: str) -> str:
        """The weather of a city."""
        return "warm"

    async def run():
        seen, client = [], place.openai(openai.AsyncOpenAI)
        for kind in (agents.OpenAIChatCompletionsModel, agents.OpenAIResponsesModel):
            model = kind(model="gpt-4o", openai_client=client)
            bot = agents.Agent(name="bot", instructions="Be brief.", model=model, tools=[weather])
            first = await agents.Runner.run(bot, FACT)
            second = await agents.Runner.run(bot, first.to_input_list() + [{"role": "user", "content": WEATHER}])
            streamed = agents.Runner.run_streamed(bot, second.to_input_list() + [{"role": "user", "content": "Go on."}])
            kinds = [event.type async for event in streamed.stream_events()]
            third = await agents.Runner.run(bot, QUESTION)
            seen += [first.final_output, second.final_output, streamed.final_output, kinds, third.final_output]
        await client.close()
        return seen

    yield asyncio.run(run())


def pydantic_ai(place):
    from pydantic_ai import Agent
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.anthropic import AnthropicProvider
    from pydantic_ai.providers.openai import OpenAIProvider

    async def run():
        seen, clients = [], [place.openai(openai.AsyncOpenAI), place.anthropic(anthropic.AsyncAnthropic)]
        of_openai = OpenAIProvider(openai_client=clients[0])
        of_anthropic = AnthropicProvider(anthropic_client=clients[1])
        for model in (
            OpenAIChatModel("gpt-4o", provider=of_openai),
            AnthropicModel("claude-test", provider=of_anthropic),
        ):
            bot = Agent(model, system_prompt="Be brief.")

            @bot.tool_plain
            def weather(city: str) -> str:
                """The weather of a city."""
                return "warm"

            first = await bot.run(FACT)
            second = await bot.run(WEATHER, message_history=first.all_messages())
            structured = await Agent(model, output_type=Cat).run("Which cat?")
            last = await bot.run(QUESTION)
            seen += [first.output, second.output, structured.output, last.output]
        for client in clients:
            await client.close()
        return seen

    yield asyncio.run(run())


ALL = [
    openai_chat, openai_responses, anthropic_messages, langchain_openai, langchain_anthropic, agents_sdk, pydantic_ai,
]
