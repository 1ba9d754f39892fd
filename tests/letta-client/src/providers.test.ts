// A loop of one's own: prompts of Loci go through the official clients of OpenAI and Anthropic, and answers come back.
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { assert, client, collect, createAgent, model, test, textOf, types } from './fixture.js';

type Request = Record<string, unknown>;

interface Prompt {
  request: Request;
  pending_tool_calls: { tool_call_id: string }[];
}

interface Step {
  next: 'model' | 'calls' | 'user';
  prompt: Prompt;
  calls: { tool_call_id: string; name: string; arguments: string }[];
  tool_results: { tool_call_id: string }[];
}

/** How a provider's client is asked, and what the result of a tool is in its format. */
interface Provider {
  format: 'openai' | 'responses' | 'anthropic';
  model: string;
  ask(request: Request): Promise<unknown>;
  stream(request: Request): Promise<unknown>;
  result(id: string, text: string): Request;
}

function providers(): Provider[] {
  const openai = new OpenAI({ apiKey: 'of-the-client', baseURL: `${model.url}/v1` });
  const anthropic = new Anthropic({ apiKey: 'of-the-client', baseURL: model.url });
  return [
    {
      format: 'openai',
      model: 'openai/gpt-4o-mini',
      ask: (request) =>
        openai.chat.completions.create(request as unknown as OpenAI.ChatCompletionCreateParamsNonStreaming),
      stream: (request) =>
        openai.chat.completions
          .stream(request as unknown as OpenAI.ChatCompletionCreateParamsStreaming)
          .finalChatCompletion(),
      result: (id, text) => ({ role: 'tool', tool_call_id: id, content: text }),
    },
    {
      format: 'responses',
      model: 'openai/gpt-5',
      ask: (request) =>
        openai.responses.create(request as unknown as OpenAI.Responses.ResponseCreateParamsNonStreaming),
      stream: async (request) => {
        const events = await openai.responses.create({ ...request, stream: true });
        const done = (await collect(events)).find((e) => e.type === 'response.completed');
        return done && 'response' in done ? done.response : undefined;
      },
      result: (id, text) => ({ type: 'function_call_output', call_id: id, output: text }),
    },
    {
      format: 'anthropic',
      model: 'anthropic/claude-sonnet-4-5',
      ask: (request) => anthropic.messages.create(limited(request)),
      stream: (request) => anthropic.messages.stream(limited(request)).finalMessage(),
      result: (id, text) => ({ role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: text }] }),
    },
  ];
}

/** A request of Anthropic's needs max_tokens, which Loci leaves to the caller. */
function limited(request: Request): Anthropic.MessageCreateParamsNonStreaming {
  return { max_tokens: 1024, ...request } as Anthropic.MessageCreateParamsNonStreaming;
}

/** Asserts that a prompt is a request that the provider's client declares. */
function checked(format: Provider['format'], request: Request): Request {
  const whole = { ...(format === 'anthropic' ? limited(request) : request) } as Request;
  if (format === 'responses') whole['input'] = (whole['input'] as Request[]).map(declared);
  assert.deepEqual(types.problems(whole, format), [], `a prompt for ${format}`);
  return request;
}

/** OpenAI takes a model's own messages back without their id, status and annotations; its client's types have them. */
function declared(item: Request): Request {
  if (item['type'] !== 'message' || item['role'] !== 'assistant') return item;
  const content = (item['content'] as Request[]).map((part) => ({ annotations: [], ...part }));
  return { id: 'msg_1', status: 'completed', ...item, content };
}

const insert = { id: 'call_memory', name: 'memory_insert', input: { label: 'human', new_string: 'Her name is Ada.' } };
const own = { id: 'call_own', name: 'read_thermometer', input: { room: 'attic' } };

test('a loop of steps goes through each provider', async () => {
  for (const provider of providers()) {
    const agent = await createAgent({ model: provider.model, memory_blocks: [{ label: 'human', value: '' }] });
    const step = (body: Request) =>
      client.post(`/v1/agents/${agent.id}/step`, { body: { format: provider.format, ...body } }) as Promise<Step>;
    let at = await step({ messages: [{ role: 'user', content: 'I am Ada. How warm is the attic?' }], otid: 'step-0' });
    assert.equal(at.next, 'model', provider.format);
    model.says({ thought: 'Keep her name.', text: 'I look.', calls: [insert, own] }, { text: 'It has 19 degrees.' });
    at = await step({ response: await provider.ask(checked(provider.format, at.prompt.request)), otid: 'step-1' });
    assert.equal(at.next, 'calls', provider.format);
    assert.deepEqual(
      at.tool_results.map((r) => r.tool_call_id),
      ['call_memory'],
    );
    assert.deepEqual(
      at.calls.map((c) => [c.tool_call_id, c.name]),
      [['call_own', 'read_thermometer']],
    );
    assert.deepEqual(JSON.parse(at.calls[0]?.arguments ?? ''), { room: 'attic' });
    at = await step({ messages: [provider.result('call_own', '19')], otid: 'step-2' });
    assert.equal(at.next, 'model', provider.format);
    const answer = await provider.stream(checked(provider.format, at.prompt.request));
    at = await step({ response: answer, otid: 'step-3' });
    assert.equal(at.next, 'user', provider.format);
    assert.deepEqual((await step({ response: answer, otid: 'step-3' })).next, 'user');

    assert.match((await client.agents.blocks.retrieve('human', { agent_id: agent.id })).value, /Ada/);
    const listed = await collect(client.agents.messages.list(agent.id));
    assert.deepEqual(
      listed.map((m) => m.message_type),
      [
        'system_message',
        'user_message',
        'reasoning_message',
        'assistant_message',
        'tool_call_message',
        'tool_return_message',
        'tool_return_message',
        'assistant_message',
      ],
      provider.format,
    );
    const last = listed.at(-1);
    assert.equal(last?.message_type === 'assistant_message' && textOf(last.content), 'It has 19 degrees.');
  }
});

test('what a prompt asks and what is answered is captured, in every format', async () => {
  for (const provider of providers()) {
    const agent = await createAgent({ model: provider.model });
    const capture = (body: Request) => client.post(`/v1/agents/${agent.id}/messages/capture`, { body });
    const prompt = (): Promise<Prompt> =>
      client.get(`/v1/agents/${agent.id}/prompt`, { query: { format: provider.format } }) as Promise<Prompt>;
    await capture({ messages: [{ role: 'user', content: 'How warm is the attic?' }] });
    model.says({ thought: 'I need it.', calls: [own] }, { thought: 'Now I know.', text: 'It has 19 degrees.' });
    const asked = (await prompt()).request;
    const answer = (await provider.ask(checked(provider.format, asked))) as Request;
    await capture({ messages: messagesOf(answer) });
    assert.deepEqual(
      (await prompt()).pending_tool_calls.map((c) => c.tool_call_id),
      ['call_own'],
    );
    await capture({ messages: [provider.result('call_own', '19')] });
    const done = (await provider.ask(checked(provider.format, (await prompt()).request))) as Request;
    await capture({ messages: messagesOf(done) });
    await capture({ messages: [{ role: 'user', content: 'Thanks.' }] });
    const whole = (await prompt()).request;
    checked(provider.format, whole);
    const copy = await createAgent({ model: provider.model });
    const history = (whole['messages'] ?? whole['input']) as Request[];
    await client.post(`/v1/agents/${copy.id}/messages/capture`, {
      body: { messages: history.filter((m) => m['role'] !== 'system' && m['role'] !== 'developer') },
    });
    const kinds = async (id: string) => (await collect(client.agents.messages.list(id))).map((m) => m.message_type);
    assert.deepEqual(
      await kinds(copy.id),
      // A chat completion is sent the reasonings that led to calls, and no others.
      (await kinds(agent.id)).filter(
        (kind, i, all) =>
          provider.format !== 'openai' || kind !== 'reasoning_message' || all[i + 1] === 'tool_call_message',
      ),
      `${provider.format}: a prompt is captured again`,
    );
  }
});

/** The messages of an answer, unchanged. */
function messagesOf(answer: Request): unknown[] {
  if (Array.isArray(answer['choices'])) return [(answer['choices'][0] as { message: unknown }).message];
  if (Array.isArray(answer['output'])) return answer['output'];
  return [{ role: answer['role'], content: answer['content'] }];
}
