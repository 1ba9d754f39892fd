// Every list has all of its items, each once, when the client pages through it.
import { toFile } from '@letta-ai/letta-client';
import { assert, client, collect, createAgent, model, test, times, unique, watch } from './fixture.js';

const count = 260;
const limit = 100;

type Item = { id?: string | null };

/** Asserts that a list has these ids, each once, and that they took no more pages than needed and an empty one. */
async function pages(name: string, list: () => AsyncIterable<Item>, want: (string | null | undefined)[], size = limit) {
  let found: Item[] = [];
  const sent = await watch.during(async () => (found = await collect(list())));
  const ids = found.map((item) => item.id);
  assert.equal(new Set(ids).size, ids.length, `${name}: no item comes twice`);
  assert.deepEqual([...ids].sort(), [...want].sort(), name);
  assert.ok(sent.length <= Math.ceil(want.length / size) + 1, `${name}: ${sent.length} requests`);
}

/** Both orders of a list have the same items. */
async function bothWays(
  name: string,
  list: (order: 'asc' | 'desc') => AsyncIterable<Item>,
  want: string[],
  size = limit,
) {
  await pages(`${name}, ascending`, () => list('asc'), want, size);
  await pages(`${name}, descending`, () => list('desc'), want, size);
}

/** The items of a list without pages of its own, by its cursor. */
async function* byCursor<T>(page: (after: string | undefined) => Promise<T[]>, id: (item: T) => string) {
  for (let after: string | undefined; ;) {
    const items = await page(after);
    yield* items.map((item) => ({ id: id(item) }));
    const last = items.at(-1);
    if (last === undefined) return;
    after = id(last);
  }
}

const idsOf = (items: Item[]) => items.map((item) => item.id ?? '');

test('agents, their blocks and tags are paged through', async () => {
  const tag = unique('paged');
  const block = await client.blocks.create({ label: 'shared', value: '' });
  const agents = idsOf(
    await times(count, (i) =>
      createAgent({
        tags: [tag, `${tag} ${String(i).padStart(3, '0')}`],
        block_ids: [block.id],
        include_base_tools: false,
      }),
    ),
  );
  await bothWays('agents.list', (order) => client.agents.list({ tags: [tag], order, limit }), agents);
  await bothWays('blocks.agents.list', (order) => client.blocks.agents.list(block.id, { order, limit }), agents);
  const tags = await collect(
    byCursor(
      (after) => client.tags.list({ name: `${tag} `, limit, ...(after ? { after } : {}) }),
      (name) => name,
    ),
  );
  assert.deepEqual(
    idsOf(tags),
    agents.map((_, i) => `${tag} ${String(i).padStart(3, '0')}`),
  );
  const folder = await client.folders.create({ name: unique('folder') });
  await times(count, (i) => client.agents.folders.attach(folder.id, { agent_id: agents[i] ?? '' }));
  const attached = await collect(
    byCursor(
      (after) => client.folders.agents.list(folder.id, { limit, ...(after ? { after } : {}) }),
      (id) => id,
    ),
  );
  assert.deepEqual(idsOf(attached).sort(), [...agents].sort());
});

test('blocks, folders, archives and passages are paged through', async () => {
  const label = 'paged_block';
  const agent = await createAgent();
  const blocks = idsOf(await times(count, (i) => client.blocks.create({ label, value: String(i) })));
  await bothWays('blocks.list', (order) => client.blocks.list({ label, order, limit }), blocks);
  const own = idsOf(await times(count, (i) => client.blocks.create({ label: `own_${i}`, value: '' })));
  await client.agents.update(agent.id, { block_ids: own });
  await bothWays('agents.blocks.list', (order) => client.agents.blocks.list(agent.id, { order, limit }), own);
  const prefix = unique('shelf');
  const folders = idsOf(await times(count, (i) => client.folders.create({ name: `${prefix} ${i}` })));
  await bothWays('folders.list', (order) => client.folders.list({ name: prefix, order, limit }), folders);
  await times(count, (i) => client.agents.folders.attach(folders[i] ?? '', { agent_id: agent.id }));
  await bothWays('agents.folders.list', (order) => client.agents.folders.list(agent.id, { order, limit }), folders);
  const name = unique('archive');
  const archives = idsOf(await times(count, () => client.archives.create({ name })));
  await bothWays('archives.list', (order) => client.archives.list({ name, order, limit }), archives);
  const passages = idsOf(
    await times(count, async (i) => (await client.agents.passages.create(agent.id, { text: `fact ${i}` }))[0] ?? {}),
  );
  const listed = await collect(
    byCursor(
      (after) => client.agents.passages.list(agent.id, { limit, ...(after ? { after } : {}) }),
      (p) => p.id ?? '',
    ),
  );
  assert.deepEqual(idsOf(listed).sort(), [...passages].sort());
});

test('files are paged through', async () => {
  const folder = await client.folders.create({ name: unique('many files') });
  const files = idsOf(
    await times(count, async (i) =>
      client.folders.files.upload(folder.id, { file: await toFile(Buffer.from(`file ${i}`), `${i}.txt`) }),
    ),
  );
  await bothWays('folders.files.list', (order) => client.folders.files.list(folder.id, { order, limit }), files);
  const agent = await createAgent();
  await client.agents.folders.attach(folder.id, { agent_id: agent.id });
  const all = await collect(client.agents.files.list(agent.id, { limit: 1000 }));
  assert.deepEqual(all.map((f) => f.file_id).sort(), [...files].sort());
  await bothWays('agents.files.list', (order) => client.agents.files.list(agent.id, { order, limit }), idsOf(all));
});

test('conversations, messages, runs and steps are paged through', async () => {
  const agent = await createAgent();
  const created = await times(count, () => client.conversations.create({ agent_id: agent.id }));
  for (const order of ['asc', 'desc'] as const) {
    const listed = await collect(
      byCursor(
        (after) => client.conversations.list({ agent_id: agent.id, order, limit, ...(after ? { after } : {}) }),
        (c) => c.id,
      ),
    );
    assert.deepEqual(idsOf(listed).sort(), idsOf(created).sort());
  }
  model.answers(() => ({ text: 'Yes.' }));
  const runs = await times(count, (i) =>
    client.conversations.messages.create(created[i]?.id ?? '', { input: `Question ${i}?` }).then(async (events) => {
      const ping = (await collect(events)).find((e) => e.message_type === 'ping');
      return (ping && 'run_id' in ping && ping.run_id) || '';
    }),
  );
  await bothWays('runs.list', (order) => client.runs.list({ agent_id: agent.id, order, limit }), runs);
  const steps = idsOf(await collect(client.steps.list({ agent_id: agent.id, limit: 1000 })));
  assert.equal(steps.length, count);
  await bothWays('steps.list', (order) => client.steps.list({ agent_id: agent.id, order, limit }), steps);
  const all = new Set<string>();
  for (const order of ['asc', 'desc'] as const) {
    const messages = await collect(
      byCursor(
        (after) =>
          client.messages.list({ limit, order, conversation_id: created[0]?.id ?? '', ...(after ? { after } : {}) }),
        (m) => m.id,
      ),
    );
    assert.equal(messages.length, 3);
    for (const m of messages) all.add(m.id);
  }
  assert.equal(all.size, 3);
});

test('a long run is paged through', async () => {
  const agent = await createAgent({ memory_blocks: [{ label: 'human', value: '' }], context_window_limit: 1_000_000 });
  const c = await client.conversations.create({ agent_id: agent.id });
  let asked = 0;
  model.answers(() =>
    asked++ < count - 1
      ? { calls: [{ id: `call_${asked}`, name: 'conversation_search', input: { query: 'nothing' } }] }
      : { text: 'Enough.' },
  );
  const events = await collect(await client.conversations.messages.create(c.id, { input: 'Search.', max_steps: 1000 }));
  const ping = events[0] as { run_id: string };
  const produced = 2 * count - 1;
  assert.equal(events.length, produced + 3);
  const steps = idsOf(await collect(client.runs.steps.list(ping.run_id, { limit: 1000 })));
  assert.equal(steps.length, count);
  await bothWays('runs.steps.list', (order) => client.runs.steps.list(ping.run_id, { order, limit }), steps);
  const ids = idsOf(await collect(client.runs.messages.list(ping.run_id, { limit: 1000 })));
  assert.equal(ids.length, produced + 1);
  await bothWays('runs.messages.list', (order) => client.runs.messages.list(ping.run_id, { order, limit }), ids);
  const step = idsOf(await collect(client.steps.messages.list(steps[7] ?? '')));
  await bothWays(
    'steps.messages.list',
    (order) => client.steps.messages.list(steps[7] ?? '', { order, limit: 1 }),
    step,
    1,
  );
  const whole = idsOf(await collect(client.conversations.messages.list(c.id, { limit: 1000 })));
  assert.equal(whole.length, produced + 2);
  await bothWays(
    'conversations.messages.list',
    (order) => client.conversations.messages.list(c.id, { order, limit }),
    whole,
  );
  await pages(
    'agents.messages.list, ascending',
    () => client.agents.messages.list(agent.id, { conversation_id: c.id, order: 'asc', limit }),
    whole,
  );
  const newest = await client.agents.messages.list(agent.id, { conversation_id: c.id, limit });
  assert.deepEqual(idsOf(newest.items), whole.slice(0, limit).reverse());
  const before = client.agents.messages.list(agent.id, {
    conversation_id: c.id,
    before: newest.items[0]?.id ?? '',
    limit,
  });
  assert.deepEqual(idsOf(await collect(before)).sort(), whole.slice(limit).sort());
  const all = collect(
    byCursor(
      (after) => client.messages.list({ conversation_id: c.id, order: 'asc', limit, ...(after ? { after } : {}) }),
      (m) => m.id,
    ),
  );
  assert.deepEqual(idsOf(await all).sort(), [...whole].sort());
});

test('tools are paged through', async () => {
  const tools = idsOf(
    await times(count, (i) =>
      client.tools.create({ source_code: `def paged_${i}():\n    """Does ${i}."""\n`, tags: ['paged'] }),
    ),
  );
  const listed = (order: 'asc' | 'desc') =>
    client.tools.list({ tool_types: ['custom'], search: 'paged_', order, limit });
  await bothWays('tools.list', listed, tools);
  const all = idsOf(await collect(client.tools.list({ limit: 1000 })));
  await bothWays('tools.list, all', (order) => client.tools.list({ order, limit }), all);
  const agent = await createAgent({ tool_ids: tools, include_base_tools: false });
  await bothWays('agents.tools.list', (order) => client.agents.tools.list(agent.id, { order, limit }), tools);
});

test('lists of what Loci has not are empty, and limits are as in Letta', async () => {
  assert.deepEqual(await client.mcpServers.list(), []);
  await createAgent({});
  assert.deepEqual(idsOf((await client.agents.list({ limit: 0 })).getPaginatedItems()), []);
  assert.ok(idsOf((await client.agents.list({ limit: 5000 })).getPaginatedItems()).length > 0);
});
