import { ConflictError } from '@letta-ai/letta-client';
import type { LettaStreamingResponse, Message } from '@letta-ai/letta-client/resources/agents/messages';
import { assert, client, collect, createAgent, ended, model, test, textOf } from './fixture.js';

const kinds = (messages: { message_type?: string }[]) => messages.map((m) => m.message_type);
const clientTool = {
  name: 'read_thermometer',
  description: 'Reads a thermometer.',
  parameters: { type: 'object', properties: { room: { type: 'string' } }, required: ['room'] },
};
const reading = { id: 'call_1', name: 'read_thermometer', input: { room: 'attic' } };

type OfKind<M, K> = Extract<M, { message_type?: K }>;

/** The messages of a type. */
function ofKind<M extends { message_type?: string }, K extends M['message_type']>(all: M[], kind: K): OfKind<M, K>[] {
  return all.filter((m) => m.message_type === kind) as OfKind<M, K>[];
}

/** The message of a type; the test fails if there is none, or if there are several. */
function only<K extends Message['message_type']>(all: Message[], kind: K): OfKind<Message, K> {
  const found = ofKind(all, kind);
  assert.equal(found.length, 1, `${String(kind)} in ${kinds(all).join(', ')}`);
  return found[0] as OfKind<Message, K>;
}

const said = (all: LettaStreamingResponse[]) =>
  ofKind(all, 'assistant_message')
    .map((e) => textOf(e.content))
    .join('');
const numbers = (all: LettaStreamingResponse[]) => all.map((e) => ('seq_id' in e && e.seq_id) || 0);

test('a chat runs memory tools, and all of it is in the list', async () => {
  const agent = await createAgent({ memory_blocks: [{ label: 'human', value: 'Name: unknown' }] });
  model.says(
    {
      thought: 'Her name is new.',
      calls: [
        { id: 'call_a', name: 'memory_replace', input: { label: 'human', old_string: 'unknown', new_string: 'Ada' } },
      ],
    },
    { text: 'Hello Ada.', promptTokens: 1234 },
  );
  const answer = await client.agents.messages.create(agent.id, {
    messages: [{ role: 'user', content: [{ type: 'text', text: 'I am Ada.' }], otid: 'otid-1' }],
  });
  assert.deepEqual(kinds(answer.messages), [
    'reasoning_message',
    'tool_call_message',
    'tool_return_message',
    'assistant_message',
  ]);
  assert.equal(answer.stop_reason.stop_reason, 'end_turn');
  assert.equal(answer.usage.step_count, 2);
  assert.equal(answer.usage.prompt_tokens, 1334);
  assert.equal(only(answer.messages, 'reasoning_message').reasoning, 'Her name is new.');
  const call = only(answer.messages, 'tool_call_message').tool_call;
  assert.equal(call.tool_call_id, 'call_a');
  assert.equal((JSON.parse(call.arguments ?? '') as { new_string: string }).new_string, 'Ada');
  assert.equal(only(answer.messages, 'tool_return_message').status, 'success');
  assert.equal(textOf(only(answer.messages, 'assistant_message').content), 'Hello Ada.');
  assert.equal((await client.agents.blocks.retrieve('human', { agent_id: agent.id })).value, 'Name: Ada');

  const listed = await collect(client.agents.messages.list(agent.id));
  assert.deepEqual(kinds(listed), ['system_message', 'user_message', ...kinds(answer.messages)]);
  assert.equal(listed[1]?.otid, 'otid-1');
  const last = await client.messages.retrieve(listed.at(-1)?.id ?? '');
  assert.deepEqual(kinds(last), ['assistant_message']);
  const again = await client.agents.messages.create(agent.id, {
    messages: [{ role: 'user', content: [{ type: 'text', text: 'I am Ada.' }], otid: 'otid-1' }],
  });
  assert.deepEqual(
    again.messages.map((m) => m.id),
    answer.messages.map((m) => m.id),
  );
});

test('a stream of steps has whole messages, and one of tokens has pieces of them', async () => {
  const agent = await createAgent();
  const script = () =>
    model.says(
      { thought: 'Look first.', calls: [{ id: 'call_s', name: 'conversation_search', input: { query: 'escrow' } }] },
      { text: 'There is nothing yet.' },
    );
  script();
  const steps = await collect(await client.agents.messages.create(agent.id, { input: 'Find it.', streaming: true }));
  assert.deepEqual(kinds(steps), [
    'ping',
    'reasoning_message',
    'tool_call_message',
    'tool_return_message',
    'assistant_message',
    'stop_reason',
    'usage_statistics',
  ]);
  script();
  const tokens = await collect(
    await client.agents.messages.stream(agent.id, { input: 'Again.', stream_tokens: true, include_pings: false }),
  );
  const pieces = ofKind(tokens, 'assistant_message');
  assert.ok(pieces.length > 1, 'the text comes in pieces');
  assert.equal(said(tokens), 'There is nothing yet.');
  const input = ofKind(tokens, 'tool_call_message').map((e) => e.tool_call.arguments ?? '');
  assert.deepEqual(JSON.parse(input.join('')), { query: 'escrow' });
  const all = await collect(client.agents.messages.list(agent.id, { order: 'asc' }));
  assert.equal(pieces[0]?.id, all.at(-1)?.id, 'pieces have the id of the stored message');
});

test('a stream shows a provider that fails as an error, with the stop reason before it', async () => {
  const agent = await createAgent();
  model.answers(() => ({ status: 500 }));
  const seen: LettaStreamingResponse[] = [];
  await assert.rejects(async () => {
    for await (const event of await client.agents.messages.stream(agent.id, { input: 'Hello' })) seen.push(event);
  }, /status 500/);
  assert.deepEqual(
    ofKind(seen, 'stop_reason').map((e) => e.stop_reason),
    ['llm_api_error'],
  );
  await assert.rejects(
    client.agents.messages.create(agent.id, { input: 'Hello?' }, { maxRetries: 0 }),
    (error: { status?: number }) => error.status === 500,
  );
  model.says({ text: 'Here I am.' });
  assert.equal(
    (await client.agents.messages.create(agent.id, { input: 'And now?' })).stop_reason.stop_reason,
    'end_turn',
  );
});

test('a background stream is attached to again from where it broke off', async () => {
  const agent = await createAgent();
  let go = (): void => undefined;
  model.says({ thought: 'Slow.', text: 'One two three.', after: new Promise((resolve) => (go = resolve)) });
  const first = await client.agents.messages.create(agent.id, {
    input: 'Count.',
    streaming: true,
    background: true,
    stream_tokens: true,
  });
  let run = '';
  for await (const event of first) {
    assert.equal(event.message_type, 'ping');
    run = ('run_id' in event && event.run_id) || '';
    break; // the connection is closed
  }
  assert.match(run, /^run-/);
  assert.equal((await client.runs.retrieve(run)).status, 'running');
  go();
  const rest = await collect(await client.runs.messages.stream(run, { starting_after: 1 }));
  const ids = numbers(rest);
  assert.deepEqual(
    ids,
    [...ids].sort((a, b) => a - b),
  );
  assert.ok((ids[0] ?? 0) > 1, `begins after 1: ${ids}`);
  assert.equal(said(rest), 'One two three.');
  const tail = await collect(await client.runs.messages.stream(run, { starting_after: ids.at(-2) ?? 0 }));
  assert.deepEqual(numbers(tail), ids.slice(-1));
  assert.equal((await client.runs.retrieve(run)).status, 'completed');
});

test('an asynchronous run works behind, and is a record', async () => {
  const agent = await createAgent();
  model.says({ text: 'Done.' });
  const started = await client.agents.messages.createAsync(agent.id, { input: 'Work.' });
  assert.equal(started.agent_id, agent.id);
  assert.equal(started.background, true);
  const run = await ended(started.id);
  assert.equal(run.status, 'completed');
  assert.equal(run.stop_reason, 'end_turn');
  const messages = await collect(client.runs.messages.list(run.id));
  assert.deepEqual(kinds(messages), ['user_message', 'assistant_message']);
  const usage = await client.runs.usage.retrieve(run.id);
  assert.equal(usage.total_tokens, 120);
  const steps = await collect(client.runs.steps.list(run.id));
  assert.equal(steps.length, 1);
  const step = await client.steps.retrieve(steps[0]?.id ?? '');
  assert.equal(step.run_id, run.id);
  assert.equal(step.status, 'success');
  assert.deepEqual(kinds(await collect(client.steps.messages.list(step.id))), ['assistant_message']);
  const metrics = await client.steps.metrics.retrieve(step.id);
  assert.equal(metrics.id, step.id);
  assert.equal((await client.steps.feedback.create(step.id, { feedback: 'positive' })).feedback, 'positive');
  const ofAgent = await collect(client.steps.list({ agent_id: agent.id }));
  assert.deepEqual(
    ofAgent.map((s) => s.id),
    [step.id],
  );
  const runs = await collect(client.runs.list({ agent_id: agent.id }));
  assert.deepEqual(
    runs.map((r) => r.id),
    [run.id],
  );
});

test('a run is cancelled, and another one meanwhile is a conflict', async () => {
  const agent = await createAgent();
  await assert.rejects(client.agents.messages.cancel(agent.id), (err: Error) => {
    assert.ok(err instanceof ConflictError);
    assert.match(err.message, /No active runs/);
    return true;
  });
  let go = (): void => undefined;
  model.says({ text: 'Too late.', after: new Promise((resolve) => (go = resolve)) });
  const run = await client.agents.messages.createAsync(agent.id, { input: 'Think.' });
  await assert.rejects(client.agents.messages.create(agent.id, { input: 'Me too.' }), (err: Error) => {
    assert.ok(err instanceof ConflictError);
    assert.equal((err.error as { run_id?: string }).run_id, run.id);
    return true;
  });
  assert.deepEqual(await client.agents.messages.cancel(agent.id), { [run.id]: 'cancelled' });
  go();
  const cancelled = await ended(run.id);
  assert.equal(cancelled.status, 'cancelled');
  assert.equal(cancelled.stop_reason, 'cancelled');
});

test('a tool of the client stops the run until its result comes', async () => {
  const agent = await createAgent();
  model.says({ text: 'I look.', calls: [reading] }, { text: 'It has 19 degrees.' });
  const asked = await client.agents.messages.create(agent.id, { input: 'How warm?', client_tools: [clientTool] });
  assert.equal(asked.stop_reason.stop_reason, 'requires_approval');
  const request = only(asked.messages, 'approval_request_message');
  assert.equal(request.tool_call.tool_call_id, 'call_1');
  await assert.rejects(client.agents.messages.create(agent.id, { input: 'Well?' }), (err: Error) => {
    assert.ok(err instanceof ConflictError);
    assert.match(err.message, /^409 Cannot send a new message: The agent is waiting for approval on a tool call/);
    assert.deepEqual((err.error as { detail: object }).detail, {
      code: 'PENDING_APPROVAL',
      message: (err.error as { message: string }).message,
      pending_request_id: request.id,
    });
    return true;
  });
  const done = await client.agents.messages.create(agent.id, {
    messages: [
      {
        type: 'approval',
        approvals: [{ type: 'tool', tool_call_id: 'call_1', tool_return: '19', status: 'success', stdout: ['read'] }],
      },
    ],
    client_tools: [clientTool],
  });
  assert.equal(textOf(only(done.messages, 'assistant_message').content), 'It has 19 degrees.');
  const listed = await collect(client.agents.messages.list(agent.id));
  assert.deepEqual(only(listed, 'tool_return_message').stdout, ['read']);
  assert.equal(only(listed, 'approval_request_message').tool_call.tool_call_id, 'call_1');
  const [answer] = only(listed, 'approval_response_message').approvals ?? [];
  assert.ok(answer?.type === 'tool');
  assert.equal(answer.tool_return, '19');
  assert.deepEqual(
    model.asked
      .at(-1)
      ?.body['tools'].map((t: { function: { name: string } }) => t.function.name)
      .filter((name: string) => name === clientTool.name),
    [clientTool.name],
  );
});

test('a tool of the server with a rule waits to be approved, and to be denied', async () => {
  const agent = await createAgent({
    memory_blocks: [{ label: 'human', value: 'Ada' }],
    tool_rules: [{ type: 'requires_approval', tool_name: 'memory_insert' }],
  });
  const insert = (id: string) => ({ id, name: 'memory_insert', input: { label: 'human', new_string: id } });
  model.says({ calls: [insert('call_yes')] }, { text: 'Kept.' });
  const asked = await client.agents.messages.create(agent.id, { input: 'Keep it.' });
  const request = only(asked.messages, 'approval_request_message');
  assert.equal(request.tool_call.name, 'memory_insert');
  const yes = await client.agents.messages.create(agent.id, {
    messages: [{ type: 'approval', approvals: [{ type: 'approval', tool_call_id: 'call_yes', approve: true }] }],
  });
  assert.equal(only(yes.messages, 'tool_return_message').status, 'success');
  assert.match((await client.agents.blocks.retrieve('human', { agent_id: agent.id })).value, /call_yes/);

  model.says({ calls: [insert('call_no')] }, { text: 'As you wish.' });
  const again = await collect(await client.agents.messages.stream(agent.id, { input: 'And this.' }));
  assert.ok(kinds(again).includes('approval_request_message'));
  const no = await client.agents.messages.create(agent.id, {
    messages: [
      {
        type: 'approval',
        approvals: [{ type: 'approval', tool_call_id: 'call_no', approve: false, reason: 'not that' }],
      },
    ],
  });
  assert.deepEqual(kinds(no.messages), ['tool_return_message', 'assistant_message']);
  assert.equal(only(no.messages, 'tool_return_message').name, 'memory_insert');
  assert.doesNotMatch((await client.agents.blocks.retrieve('human', { agent_id: agent.id })).value, /call_no/);
  const listed = await collect(client.agents.messages.list(agent.id));
  const returns = ofKind(listed, 'tool_return_message');
  assert.deepEqual(
    returns.map((m) => m.status),
    ['success', 'error'],
  );
  assert.match(returns[1]?.tool_return ?? '', /not that/);
  const shown = again.flatMap((m) => (m.message_type === 'approval_request_message' ? [m.id] : []));
  assert.deepEqual(
    ofKind(listed, 'approval_request_message').map((m) => m.id),
    [request.id, ...shown],
  );
  assert.deepEqual(
    ofKind(listed, 'approval_response_message').flatMap((m) => m.approvals ?? []),
    [
      { type: 'approval', approve: true, tool_call_id: 'call_yes', reason: null },
      { type: 'approval', approve: false, tool_call_id: 'call_no', reason: 'not that' },
    ],
  );
});

test('an agent with a handle of Anthropic asks Anthropic', async () => {
  const agent = await createAgent({
    model: 'anthropic/claude-sonnet-4-5',
    memory_blocks: [{ label: 'human', value: '' }],
  });
  model.says(
    {
      thought: 'Remember.',
      calls: [{ id: 'toolu_1', name: 'memory_insert', input: { label: 'human', new_string: 'Ada' } }],
    },
    { text: 'Hello from afar.' },
  );
  const answer = await client.agents.messages.create(agent.id, { input: 'Hello, I am Ada.' });
  assert.deepEqual(kinds(answer.messages), [
    'reasoning_message',
    'tool_call_message',
    'tool_return_message',
    'assistant_message',
  ]);
  const asked = model.asked.at(-1);
  assert.equal(asked?.path, '/v1/messages');
  assert.equal(asked?.key, 'anthropic-key');
  assert.equal(asked?.body['model'], 'claude-sonnet-4-5');
  const tokens = await collect(
    await client.agents.messages.stream(agent.id, { input: 'More.', stream_tokens: true, include_pings: false }),
  );
  assert.equal(kinds(tokens)[0], 'assistant_message');
});

test('messages are searched, compacted and reset', async () => {
  const agent = await createAgent();
  for (const text of ['The escrow code is kept by Grace.', 'The lift is broken.', 'Lunch is at noon.']) {
    await client.agents.messages.create(agent.id, { input: text });
  }
  const found = await client.messages.search({ query: 'escrow code', agent_id: agent.id });
  assert.equal(found[0]?.message_type, 'user_message');
  assert.match(JSON.stringify(found[0]), /Grace/);
  const kept = await client.messages.list({ limit: 3 });
  assert.equal(kept.length, 3);
  const compacted = await client.agents.messages.compact(agent.id, { compaction_settings: { mode: 'all' } });
  assert.ok(compacted.num_messages_after < compacted.num_messages_before);
  assert.ok(compacted.summary.length > 0);
  await client.agents.messages.reset(agent.id, { add_default_initial_messages: false });
  assert.equal((await client.agents.retrieve(agent.id)).message_ids!.length, 1);
  const listed = kinds(await collect(client.agents.messages.list(agent.id)));
  assert.ok(listed.includes('user_message'), `the list has only ${listed}`); // the log keeps what was said, and lists show it
});

test('what cannot be run is refused with its reason', async () => {
  const agent = await createAgent();
  await assert.rejects(client.agents.messages.create(agent.id, { messages: [] }), /422/);
  await assert.rejects(
    client.agents.messages.create(agent.id, { input: 'a', messages: [{ role: 'user', content: 'b' }] }),
  );
});
