import { BadRequestError, ConflictError, NotFoundError } from '@letta-ai/letta-client';
import { assert, client, collect, createAgent, ended, model, test, textOf } from './fixture.js';

test('conversations of an agent keep apart', async () => {
  const agent = await createAgent({ memory_blocks: [{ label: 'human', value: 'Ada' }] });
  const one = await client.conversations.create({ agent_id: agent.id, summary: 'first' });
  const two = await client.conversations.create({ agent_id: agent.id });
  assert.equal(one.in_context_message_ids?.length, 1);
  model.says({ thought: 'Hm.', text: 'Hello in one.' });
  const events = await collect(await client.conversations.messages.create(one.id, { input: 'Hello one' }));
  assert.deepEqual(
    events.map((e) => e.message_type),
    ['ping', 'reasoning_message', 'assistant_message', 'stop_reason', 'usage_statistics'],
  );
  const listed = await collect(client.conversations.messages.list(one.id, { order: 'asc' }));
  assert.deepEqual(
    listed.map((m) => m.message_type),
    ['system_message', 'user_message', 'reasoning_message', 'assistant_message'],
  );
  const other = await collect(client.conversations.messages.list(two.id));
  assert.deepEqual(
    other.map((m) => m.message_type),
    ['system_message'],
  );
  const newest = await collect(client.conversations.messages.list(one.id, { limit: 1 }));
  assert.deepEqual(
    newest.map((m) => m.message_type),
    listed.map((m) => m.message_type).reverse(),
  );
  const all = await client.conversations.list({ agent_id: agent.id });
  assert.deepEqual(
    all.map((c) => c.id),
    [two.id, one.id],
  );

  await client.agents.blocks.update('human', { agent_id: agent.id, value: 'Grace' });
  assert.match(await client.conversations.recompile(one.id, { dry_run: true }), /Grace/);
  assert.match(await client.conversations.recompile(one.id), new RegExp(`- CONVERSATION_ID: ${one.id}`));
  const updated = await client.conversations.update(one.id, { summary: 'changed', description: 'about one' });
  assert.equal(updated.summary, 'changed');
  assert.equal(updated.description, 'about one');
  assert.equal((await client.conversations.retrieve(one.id)).description, 'about one');
  await client.conversations.delete(two.id);
  await assert.rejects(client.conversations.retrieve(two.id), NotFoundError);
  await assert.rejects(client.conversations.delete(two.id), NotFoundError);
});

test('a conversation is archived, compacted, and attached to while it works', async () => {
  const agent = await createAgent();
  const c = await client.conversations.create({ agent_id: agent.id });
  await assert.rejects(client.conversations.messages.stream(c.id, {}), (err: Error) => {
    assert.ok(err instanceof BadRequestError);
    assert.match(err.message, /No active runs found/);
    return true;
  });
  await assert.rejects(client.conversations.cancel(c.id), ConflictError);
  let go = (): void => undefined;
  model.says({ text: 'Slowly.', after: new Promise((resolve) => (go = resolve)) });
  const started = await client.conversations.messages.create(c.id, {
    messages: [{ role: 'user', content: 'Work.', otid: 'work-1' }],
    background: true,
  });
  const first = await started[Symbol.asyncIterator]().next();
  const run = (first.value as { run_id: string }).run_id;
  const attached = await client.conversations.messages.stream(c.id, { otid: 'work-1' });
  go();
  const events = await collect(attached);
  assert.ok(events.some((e) => e.message_type === 'assistant_message' && textOf(e.content) === 'Slowly.'));
  assert.equal((await client.runs.retrieve(run)).conversation_id, c.id);

  model.says({ after: new Promise((resolve) => (go = resolve)) });
  const running = await client.conversations.messages.create(c.id, { input: 'More.', background: true });
  await running[Symbol.asyncIterator]().next();
  const cancelled = await client.conversations.cancel(c.id);
  assert.deepEqual(Object.values(cancelled), ['cancelled']);
  go();
  await ended(Object.keys(cancelled)[0] ?? '');
  await collect(await client.conversations.messages.create(c.id, { input: 'Again.' }));
  const compacted = await client.conversations.messages.compact(c.id, { compaction_settings: { mode: 'all' } });
  assert.ok(compacted.num_messages_after <= compacted.num_messages_before);
  const archived = await client.conversations.update(c.id, { archived: true });
  assert.equal(archived.archived, true);
  const lists = async (archive_status: 'archived' | 'unarchived') =>
    (await client.conversations.list({ agent_id: agent.id, archive_status })).map((found) => found.id);
  assert.deepEqual(await lists('archived'), [c.id]);
  assert.deepEqual(await lists('unarchived'), []);
});

test('a conversation is forked, whole and at a message', async () => {
  const agent = await createAgent();
  const c = await client.conversations.create({ agent_id: agent.id });
  model.says({ text: 'One.' }, { text: 'Two.' });
  for (const input of ['First?', 'Second?']) {
    await collect(await client.conversations.messages.create(c.id, { input }));
  }
  const texts = async (id: string) =>
    (await collect(client.conversations.messages.list(id, { order: 'asc' }))).flatMap((m) =>
      m.message_type === 'user_message' || m.message_type === 'assistant_message' ? [textOf(m.content)] : [],
    );
  const whole = await client.conversations.fork(c.id);
  assert.equal(whole.agent_id, agent.id);
  assert.notEqual(whole.id, c.id);
  assert.deepEqual(await texts(whole.id), ['First?', 'One.', 'Second?', 'Two.']);
  const listed = await collect(client.conversations.messages.list(c.id, { order: 'asc' }));
  const at = listed.find((m) => m.message_type === 'assistant_message')?.id ?? '';
  const part = await client.conversations.fork(c.id, { message_id: at });
  assert.deepEqual(await texts(part.id), ['First?', 'One.']);
  await collect(await client.conversations.messages.create(part.id, { input: 'Third?' }));
  assert.deepEqual(await texts(c.id), ['First?', 'One.', 'Second?', 'Two.']);
});
