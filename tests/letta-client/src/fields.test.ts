// Each field that the client can send is served, refused with a sentence, or known to change nothing.
import { APIError, toFile } from '@letta-ai/letta-client';
import { honoured, inert, refused, renamed } from './fields.js';
import { all, assert, client, createAgent, key, loci, notServed, test, types, unique, watch } from './fixture.js';
import { calls } from './surface.js';

const words = (list: string | undefined) => list?.split(' ') ?? [];

test('each field of each method has its place', () => {
  const served = all.map((o) => o.name).filter((name) => !notServed(name));
  for (const name of served) {
    const placed = [
      ...words(honoured[name]),
      ...Object.keys(refused[name] ?? {}),
      ...Object.keys(inert[name] ?? {}),
    ];
    assert.deepEqual(placed.sort(), types.fieldsOf(`parameters of ${name}`).sort(), `the fields of ${name}`);
  }
  for (const name of [honoured, refused, inert].flatMap((lists) => Object.keys(lists))) {
    assert.ok(served.includes(name), `${name} is no method that is served`);
  }
});

type Schema = { $ref?: string; name?: string; properties?: Record<string, unknown> } & Partial<
  Record<'allOf' | 'anyOf' | 'oneOf', Schema[]>
>;
type Described = {
  parameters?: Schema[];
  requestBody?: { content: Record<string, { schema: Schema }> };
};

test('each field that is served is in the description of its route', async () => {
  const answer = await fetch(`${loci.url}/openapi.json`, { headers: { authorization: `Bearer ${key}` } });
  const document = (await answer.json()) as { paths: Record<string, Record<string, Described>> };
  const resolved = (schema: Schema | undefined): Schema | undefined => {
    const at = schema?.$ref?.split('/').slice(1);
    return at ? (at.reduce((of: unknown, name) => (of as Record<string, unknown>)[name], document) as Schema) : schema;
  };
  const names = (reference: Schema | undefined): string[] => {
    const schema = resolved(reference);
    const parts = [schema?.allOf, schema?.anyOf, schema?.oneOf].flatMap((of) => of ?? []);
    return [...Object.keys(schema?.properties ?? {}), ...parts.flatMap(names)];
  };
  for (const [name, list] of Object.entries(honoured)) {
    const operation = all.find((o) => o.name === name);
    const method = operation?.method.toLowerCase() ?? '';
    const fits = (path: string) => operation?.path.test(path) || operation?.path.test(`${path}/`);
    const route = Object.entries(document.paths)
      .filter(([path, methods]) => methods[method] && fits(path.replace(/\{[^}]*\}/g, 'x')))
      .sort(([a], [b]) => b.split('{').length - a.split('{').length)[0]?.[1][method];
    const known = (route?.parameters ?? []).map((p) => resolved(p)?.name ?? '');
    for (const { schema } of Object.values(route?.requestBody?.content ?? {})) known.push(...names(schema));
    // Each list takes the one order that the client declares.
    const lacks = words(list).filter((field) => field !== 'order_by' && !known.includes(renamed[field] ?? field));
    assert.deepEqual(lacks, [], `the description of ${name}`);
  }
});

test('each field that is refused is refused with a sentence', async () => {
  const agent = await createAgent({ memory_blocks: [{ label: 'human', value: 'Ada.' }] });
  const block = agent.blocks[0]?.id ?? '';
  const conversation = await client.conversations.create({ agent_id: agent.id });
  const file = await client.agents.exportFile(agent.id);
  const input = { input: 'Hello' };
  const before: Record<string, [unknown[], object]> = {
    'agents.create': [[], { name: unique('refused') }],
    'agents.update': [[agent.id], {}],
    'agents.exportFile': [[agent.id], {}],
    'agents.importFile': [[], { file: await toFile(Buffer.from(JSON.stringify(file)), 'agent.af') }],
    'agents.recompile': [[agent.id], {}],
    'agents.messages.create': [[agent.id], input],
    'agents.messages.stream': [[agent.id], input],
    'agents.messages.createAsync': [[agent.id], input],
    'conversations.messages.create': [[conversation.id], input],
    'agents.blocks.update': [['human'], { agent_id: agent.id }],
    'blocks.create': [[], { label: 'human', value: 'Ada.' }],
    'blocks.update': [[block], {}],
    'conversations.recompile': [[conversation.id], {}],
  };
  const methods = calls(client);
  for (const [name, fields] of Object.entries(refused)) {
    const [path, body] = before[name] ?? assert.fail(`no test knows how to call ${name}`);
    for (const [field, value] of Object.entries(fields)) {
      let caught: unknown;
      const sent = await watch.during(() =>
        Promise.resolve(methods.get(name)?.(...path, { ...body, [field]: value })).catch((err) => (caught = err)),
      );
      assert.ok(caught instanceof APIError, `${name} with ${field}: ${String(caught)}`);
      assert.ok([400, 422, 501].includes(caught.status ?? 0), `${name} with ${field}: ${caught.status}`);
      assert.match(caught.message, new RegExp(`${field}: .* .* `), `${name} with ${field}`);
      assert.equal(sent.length, 1, `${name} with ${field} is sent again`);
    }
  }
});
