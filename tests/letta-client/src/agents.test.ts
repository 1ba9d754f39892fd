import { assert, client, collect, createAgent, model, test, unique } from './fixture.js';
import { BadRequestError, NotFoundError, toFile, UnprocessableEntityError } from '@letta-ai/letta-client';

test('an agent is created, read, changed, listed and deleted', async () => {
  const name = unique('keeper');
  const agent = await client.agents.create({
    name,
    description: 'keeps things',
    tags: ['b', 'a'],
    metadata: { shelf: 3 },
    timezone: 'Europe/Berlin',
    memory_blocks: [
      { label: 'human', value: 'Ada', limit: 500 },
      { label: 'persona', value: 'calm', read_only: true },
    ],
  });
  assert.match(agent.id, /^agent-[0-9a-f-]{36}$/);
  assert.equal(agent.name, name);
  assert.deepEqual(agent.metadata, { shelf: 3 });
  assert.deepEqual([...agent.tags].sort(), ['a', 'b']);
  assert.deepEqual(
    agent.memory.blocks.map((b) => [b.label, b.value]),
    [
      ['human', 'Ada'],
      ['persona', 'calm'],
    ],
  );
  assert.equal(agent.model, null);
  assert.equal(agent.timezone, 'Europe/Berlin');
  assert.equal(agent.message_ids?.length, 1);

  const read = await client.agents.retrieve(agent.id, { include: ['agent.blocks', 'agent.tools', 'agent.tags'] });
  assert.deepEqual(
    read.blocks.map((b) => b.label),
    ['human', 'persona'],
  );
  assert.ok(read.tools.some((t) => t.name === 'conversation_search'));

  const changed = await client.agents.update(agent.id, { description: 'keeps more', tags: ['c'] });
  assert.equal(changed.description, 'keeps more');
  assert.deepEqual(changed.tags, ['c']);
  assert.deepEqual(changed.metadata, { shelf: 3 });

  const named = await collect(client.agents.list({ name }));
  assert.deepEqual(
    named.map((a) => a.id),
    [agent.id],
  );
  const tagged = await collect(client.agents.list({ tags: ['c', 'nobody'], match_all_tags: false }));
  assert.deepEqual(
    tagged.map((a) => a.id),
    [agent.id],
  );
  assert.ok((await client.tags.list({ name: 'c' })).includes('c'));

  await client.agents.delete(agent.id);
  await assert.rejects(client.agents.retrieve(agent.id), NotFoundError);
});

test('an agent starts with the messages that it is given, and its prompt is compiled again', async () => {
  const agent = await createAgent({
    initial_message_sequence: [
      { role: 'user', content: 'Hello' },
      { role: 'assistant', content: 'Good day' },
    ],
    memory_blocks: [{ label: 'human', value: 'Ada' }],
  });
  const listed = await collect(client.agents.messages.list(agent.id));
  assert.deepEqual(
    listed.map((m) => m.message_type),
    ['system_message', 'user_message', 'assistant_message'],
  );
  await client.agents.blocks.update('human', { agent_id: agent.id, value: 'Grace' });
  const compiled = await client.agents.recompile(agent.id);
  assert.equal(typeof compiled, 'string');
  assert.match(compiled, /<memory_blocks>[^]*<human>[^]*Grace/);
  assert.match(compiled, new RegExp(`- AGENT_ID: ${agent.id}`));
});

test('models are listed, and an agent may name any of them', async () => {
  const listed = await client.models.list();
  assert.equal(listed[0]?.handle, 'openai/scripted');
  assert.equal(listed[0]?.max_context_window, 32000);
  const embeddings = await client.models.embeddings.list();
  assert.equal(embeddings.length, 1);
  const agent = await createAgent({
    model: 'openai/gpt-4o-mini',
    model_settings: { provider_type: 'openai', temperature: 0.5, max_output_tokens: 300 },
  });
  assert.equal(agent.model, 'openai/gpt-4o-mini');
  assert.equal((agent.model_settings as { temperature?: number }).temperature, 0.5);
  await client.agents.messages.create(agent.id, { input: 'Hello' });
  const asked = model.asked.at(-1)?.body;
  assert.equal(asked?.['model'], 'gpt-4o-mini');
  assert.equal(asked?.['temperature'], 0.5);
  assert.equal((await client.health()).status, 'ok');
});

test('an identity selects the agents that it is attached to', async () => {
  const identifier_key = unique('ada');
  const body = { identifier_key, name: 'Ada', identity_type: 'user' };
  const identity = (await client.post('/v1/identities/', { body })) as { id: string };
  const agent = await createAgent();
  assert.equal(await client.agents.identities.attach(identity.id, { agent_id: agent.id }), null);
  const state = await client.agents.retrieve(agent.id, { include: ['agent.identities'] });
  assert.deepEqual(
    state.identities?.map((i) => i.identifier_key),
    [identifier_key],
  );
  const selected = async () => (await collect(client.agents.list({ identity_id: identity.id }))).map((a) => a.id);
  assert.deepEqual(await selected(), [agent.id]);
  const byKey = await collect(client.agents.list({ identifier_keys: [identifier_key] }));
  assert.deepEqual(
    byKey.map((a) => a.id),
    [agent.id],
  );
  assert.equal(await client.agents.identities.detach(identity.id, { agent_id: agent.id }), null);
  assert.deepEqual(await selected(), []);
});

/** An agent file. The client declares an export as a string, and reads the object that a server sends. */
interface AgentFile {
  agents: { name: string; messages: { role: string }[]; in_context_message_ids: string[] }[];
  tools: { name: string; json_schema: { description: string } }[];
}

test('an agent is exported to a file, and imported from it as its caller wants it', async () => {
  const name = unique('forecast').replace(' ', '_');
  const tool = await client.tools.create({
    source_code: `def ${name}(city: str) -> str:\n    """Tells the weather.\n\n    Args:\n        city: Where.\n    """\n`,
  });
  const agent = await createAgent({
    model: 'openai/scripted',
    tool_ids: [tool.id],
    memory_blocks: [{ label: 'human', value: 'Ada' }],
    initial_message_sequence: [{ role: 'user', content: 'Hello' }],
  });
  const file = (await client.agents.exportFile(agent.id)) as unknown as AgentFile;
  assert.equal(file.agents[0]?.name, agent.name);
  assert.deepEqual(
    file.agents[0]?.messages.map((m) => m.role),
    ['system', 'user'],
  );
  assert.ok(file.tools.some((t) => t.name === name));
  const scrubbed = (await client.agents.exportFile(agent.id, { scrub_messages: true })) as unknown as AgentFile;
  assert.deepEqual(scrubbed.agents[0]?.messages, []);

  const upload = async (content: unknown) => toFile(Buffer.from(JSON.stringify(content)), 'agent.af');
  const plain = await client.agents.importFile({ file: await upload(file) });
  assert.equal(plain.agent_ids.length, 1);
  const copy = await client.agents.retrieve(plain.agent_ids[0]!, { include: ['agent.blocks', 'agent.tools'] });
  assert.equal(copy.name, agent.name);
  assert.deepEqual(
    copy.blocks.map((b) => b.value),
    ['Ada'],
  );
  assert.deepEqual(
    copy.tools.filter((t) => t.tool_type === 'custom').map((t) => t.id),
    [tool.id],
  );
  assert.equal((await collect(client.agents.messages.list(copy.id))).length, 2);

  for (const t of file.tools) if (t.name === name) t.json_schema.description = 'Tells the weather of tomorrow.';
  const renamed = await client.agents.importFile({
    file: await upload(file),
    name: 'Other',
    model: 'openai/gpt-4o-mini',
    embedding: 'openai/text-embedding-3-small',
    strip_messages: true,
    override_existing_tools: false,
    secrets: '{}',
  });
  const other = await client.agents.retrieve(renamed.agent_ids[0]!);
  assert.deepEqual([other.name, other.model, other.message_ids?.length], ['Other', 'openai/gpt-4o-mini', 1]);
  const older = await client.agents.importFile({
    file: await upload(scrubbed),
    override_name: 'Older',
    append_copy_suffix: true,
    override_model_handle: 'openai/gpt-4o-mini',
    override_embedding_handle: 'openai/text-embedding-3-small',
    env_vars_json: '{}',
  });
  assert.equal((await client.agents.retrieve(older.agent_ids[0]!)).name, 'Older_copy');
  await client.agents.messages.create(older.agent_ids[0]!, { input: 'Hello' });

  await assert.rejects(client.agents.importFile({ file: await upload('no agents') }), BadRequestError);
  await assert.rejects(
    client.agents.importFile({ file: await upload(file), secrets: '{"KEY":"value"}' }),
    UnprocessableEntityError,
  );
  await assert.rejects(client.agents.exportFile(agent.id, { use_legacy_format: true }), BadRequestError);
});
