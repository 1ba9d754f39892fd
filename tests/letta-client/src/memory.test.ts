import Letta, { ConflictError, NotFoundError, toFile } from '@letta-ai/letta-client';
import { assert, client, collect, createAgent, model, test, unique } from './fixture.js';

test('blocks are shared by agents', async () => {
  const block = await client.blocks.create({
    label: 'human',
    value: 'Ada',
    description: 'who',
    metadata: { a: 1 },
    tags: ['t'],
  });
  assert.equal(block.limit, 100000);
  const [one, two] = [await createAgent({ block_ids: [block.id] }), await createAgent()];
  const attached = await client.agents.blocks.attach(block.id, { agent_id: two.id });
  assert.deepEqual(
    attached.memory.blocks.map((b) => b.id),
    [block.id],
  );
  await client.agents.blocks.update('human', { agent_id: one.id, value: 'Grace' });
  assert.equal((await client.agents.blocks.retrieve('human', { agent_id: two.id })).value, 'Grace');
  const agents = await collect(client.blocks.agents.list(block.id));
  assert.deepEqual(agents.map((a) => a.id).sort(), [one.id, two.id].sort());
  assert.equal((await client.blocks.update(block.id, { value: 'Ada', read_only: true })).read_only, true);
  const detached = await client.agents.blocks.detach(block.id, { agent_id: two.id });
  assert.deepEqual(detached.memory.blocks, []);
  assert.deepEqual(
    (await collect(client.agents.blocks.list(one.id))).map((b) => b.value),
    ['Ada'],
  );
  assert.deepEqual(
    (await collect(client.blocks.list({ value_search: 'ADA', label: 'human' }))).map((b) => b.id).includes(block.id),
    true,
  );
  assert.deepEqual((await client.blocks.retrieve(block.id)).tags, ['t']);
  await client.blocks.delete(block.id);
  await assert.rejects(client.blocks.retrieve(block.id), NotFoundError);
  const odd = await client.blocks.create({ label: 'system/human', value: '' });
  await client.agents.blocks.attach(odd.id, { agent_id: one.id });
  assert.equal((await client.agents.blocks.retrieve('system/human', { agent_id: one.id })).id, odd.id);
});

test('passages are kept in archives, and found', async () => {
  const agent = await createAgent();
  const created = await client.agents.passages.create(agent.id, {
    text: 'The escrow code is kept by Grace.',
    tags: ['safe'],
  });
  assert.equal(created.length, 1);
  const id = created[0]?.id ?? '';
  await client.agents.passages.create(agent.id, { text: 'The lift is broken.', created_at: '2020-01-02T03:04:05Z' });
  const listed = await client.agents.passages.list(agent.id, { ascending: true });
  assert.equal(listed.length, 2);
  const found = await client.agents.passages.search(agent.id, { query: 'escrow code', tags: ['safe'], top_k: 1 });
  assert.equal(found.count, 1);
  assert.equal(found.results[0]?.id, id);
  assert.deepEqual(found.results[0]?.tags, ['safe']);
  await client.agents.passages.delete(id, { agent_id: agent.id });
  assert.equal((await client.agents.passages.list(agent.id)).length, 1);

  const archive = await client.archives.create({ name: unique('archive'), description: 'old things' });
  const one = await client.archives.passages.create(archive.id, {
    text: 'Ferns grow in shade.',
    metadata: { page: 3 },
  });
  assert.deepEqual(one.metadata, { page: 3 });
  const many = await client.archives.passages.createMany(archive.id, {
    passages: [{ text: 'Moss grows on stones.', tags: ['moss'] }, { text: 'Lichen grows slowly.' }],
  });
  assert.equal(many.length, 2);
  await client.agents.archives.attach(archive.id, { agent_id: agent.id });
  assert.deepEqual(
    (await collect(client.archives.list({ agent_id: agent.id }))).map((a) => a.id).includes(archive.id),
    true,
  );
  const hits = await client.passages.search({ archive_id: archive.id, query: 'moss on stones' });
  assert.equal(hits[0]?.passage.text, 'Moss grows on stones.');
  assert.equal((await client.passages.search({ archive_id: archive.id })).length, 3);
  await client.archives.passages.delete(one.id ?? '', { archive_id: archive.id });
  await client.agents.archives.detach(archive.id, { agent_id: agent.id });
  assert.equal((await client.archives.update(archive.id, { name: 'renamed' })).name, 'renamed');
  assert.equal((await client.archives.retrieve(archive.id)).name, 'renamed');
  await client.archives.delete(archive.id);
  await assert.rejects(client.archives.retrieve(archive.id), NotFoundError);
});

/** Waits until a file is processed. */
async function processed(folder: string, file: string): Promise<Letta.Folders.FileRetrieveResponse> {
  for (;;) {
    const read = await client.folders.files.retrieve(file, { folder_id: folder });
    if (read.processing_status === 'completed' || read.processing_status === 'error') return read;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

test('files are uploaded, processed, opened and searched', async () => {
  const name = unique('folder');
  const folder = await client.folders.create({ name, description: 'manuals', metadata: { shelf: 1 } });
  await assert.rejects(client.folders.create({ name }), ConflictError);
  const text = 'Disks\n\nDelete the oldest backups first.\n';
  const upload = await client.folders.files.upload(folder.id, { file: await toFile(Buffer.from(text), 'disks.md') });
  const file = await processed(folder.id, upload.id);
  assert.equal(file.processing_status, 'completed');
  assert.equal(file.file_name, 'disks.md');
  assert.equal(file.file_size, text.length);
  assert.ok((file.total_chunks ?? 0) > 0);
  assert.equal(file.chunks_embedded, file.total_chunks);
  const again = await client.folders.files.upload(folder.id, {
    file: await toFile(Buffer.from(text), 'disks.md'),
    duplicate_handling: 'suffix',
  });
  assert.equal((await processed(folder.id, again.id)).file_name, 'disks_(1).md');
  const listed = await collect(client.folders.files.list(folder.id, { include_content: true }));
  assert.equal(listed.length, 2);
  assert.equal(listed[0]?.content, text);

  const agent = await createAgent();
  await client.agents.folders.attach(folder.id, { agent_id: agent.id });
  assert.deepEqual(
    (await collect(client.agents.folders.list(agent.id))).map((f) => f.id),
    [folder.id],
  );
  assert.deepEqual(await client.folders.agents.list(folder.id), [agent.id]);
  assert.deepEqual(await client.agents.files.closeAll(agent.id), [`${name}/disks.md`, `${name}/disks_(1).md`]);
  assert.deepEqual(await client.agents.files.open(file.id, { agent_id: agent.id }), []);
  const files = await collect(client.agents.files.list(agent.id));
  assert.deepEqual(
    files.map((f) => [f.file_id, f.is_open]).sort(),
    [
      [file.id, true],
      [again.id, false],
    ].sort(),
  );
  const state = await client.agents.retrieve(agent.id, { include: ['agent.blocks'] });
  assert.match(state.memory.file_blocks?.find((b) => b.is_open)?.value ?? '', /oldest backups/);
  const found = await client.agents.tools.run('semantic_search_files', {
    agent_id: agent.id,
    args: { query: 'backups' },
  });
  assert.equal(found.status, 'success');
  assert.match(String(found.func_return), /oldest backups/);
  await client.agents.files.close(file.id, { agent_id: agent.id });
  await client.agents.folders.detach(folder.id, { agent_id: agent.id });
  await client.folders.files.delete(again.id, { folder_id: folder.id });
  assert.equal((await client.folders.update(folder.id, { description: 'gone soon' })).description, 'gone soon');
  assert.equal((await client.folders.retrieve(folder.id)).description, 'gone soon');
  assert.deepEqual(
    (await collect(client.folders.list({ name }))).map((f) => f.id),
    [folder.id],
  );
  await client.folders.delete(folder.id);
  await assert.rejects(client.folders.retrieve(folder.id), NotFoundError);
});

test('tools of the server are listed, attached and detached', async () => {
  const [tool] = await collect(client.tools.list({ name: 'archival_memory_search' }));
  assert.ok(tool);
  assert.equal(tool.name, 'archival_memory_search');
  assert.equal((await client.tools.retrieve(tool.id)).id, tool.id);
  const agent = await createAgent({ tools: ['conversation_search'], include_base_tools: false });
  assert.deepEqual(
    (await collect(client.agents.tools.list(agent.id))).map((t) => t.name),
    ['conversation_search'],
  );
  assert.equal(await client.agents.tools.attach(tool.id, { agent_id: agent.id }), null);
  const both = await collect(client.agents.tools.list(agent.id));
  assert.deepEqual(both.map((t) => t.name).sort(), ['archival_memory_search', 'conversation_search']);
  const approval = { agent_id: agent.id, body_requires_approval: true };
  assert.equal(await client.agents.tools.updateApproval(tool.name, approval), null);
  assert.deepEqual((await client.agents.retrieve(agent.id)).tool_rules, [
    { tool_name: 'conversation_search', type: 'continue_loop' },
    { tool_name: 'archival_memory_search', type: 'requires_approval' },
  ]);
  assert.equal(await client.agents.tools.detach(tool.id, { agent_id: agent.id }), null);
  const lacking = await client.agents.tools.run('archival_memory_search', { agent_id: agent.id, args: {} });
  assert.equal(lacking.status, 'error');
  assert.match(String(lacking.func_return), /is not attached to you. Your tools are conversation_search/);
});

const source = [
  'def read_thermometer(room: str, samples: int = 1) -> str:',
  '    """Reads a thermometer.',
  '',
  '    Args:',
  '        room (str): The room it hangs in.',
  '        samples (int): How often to read it.',
  '    """',
  '    raise NotImplementedError',
].join('\n');

test('tools of the client are definitions, whose calls the client runs', async () => {
  const tool = await client.tools.create({ source_code: source, tags: ['sensor'], return_char_limit: 2000 });
  assert.equal(tool.name, 'read_thermometer');
  assert.equal(tool.tool_type, 'custom');
  assert.deepEqual((tool.json_schema?.['parameters'] as { required: string[] }).required, ['room']);
  assert.equal((await client.tools.upsert({ source_code: source, description: 'How warm it is.' })).id, tool.id);
  const updated = await client.tools.update(tool.id, { tags: ['sensor', 'attic'] });
  assert.deepEqual(updated.tags, ['sensor', 'attic']);
  assert.equal((await client.tools.retrieve(tool.id)).description, 'How warm it is.');
  const [found] = await client.tools.search({ query: 'thermometer', tool_types: ['custom'], limit: 1 });
  assert.equal(found?.tool.id, tool.id);
  assert.ok((found?.combined_score ?? 0) > 0 && found?.fts_rank === 1);
  const agent = await createAgent({ tool_ids: [tool.id] });
  model.says({ calls: [{ id: 'call_t', name: 'read_thermometer', input: { room: 'attic' } }] }, { text: 'Warm.' });
  const asked = await client.agents.messages.create(agent.id, { input: 'How warm?' });
  assert.equal(asked.stop_reason.stop_reason, 'requires_approval');
  const done = await client.agents.messages.create(agent.id, {
    messages: [
      {
        type: 'tool_return',
        tool_returns: [{ type: 'tool', tool_call_id: 'call_t', tool_return: '19', status: 'success' }],
      },
    ],
  });
  assert.equal(done.stop_reason.stop_reason, 'end_turn');
  await client.tools.delete(tool.id);
  await assert.rejects(client.tools.retrieve(tool.id), NotFoundError);
});
