// Errors are of the client's classes, and only those that may pass are tried again.
import Letta, {
  APIConnectionError,
  APIConnectionTimeoutError,
  APIError,
  APIUserAbortError,
  AuthenticationError,
  BadRequestError,
  ConflictError,
  InternalServerError,
  NotFoundError,
  RateLimitError,
  UnprocessableEntityError,
} from '@letta-ai/letta-client';
import { assert, client, connect, createAgent, ended, model, test, unique, watch } from './fixture.js';

const unknown = 'agent-00000000-0000-4000-8000-000000000000';
type Class = abstract new (...parameters: never[]) => Error;

/** Asserts the class of an error and how many requests were sent. */
async function fails(work: () => Promise<unknown>, kind: Class, requests: number): Promise<APIError> {
  let caught: unknown;
  const sent = await watch.during(() => work().catch((err: unknown) => (caught = err)));
  assert.ok(caught instanceof kind, `got ${String(caught)}, want ${kind.name}`);
  assert.equal(sent.length, requests, `requests of ${kind.name}: ${JSON.stringify(sent)}`);
  return caught as unknown as APIError;
}

test('errors have the classes of the client, and are not tried again in vain', async () => {
  const agent = await createAgent();
  const missing = await fails(() => client.agents.retrieve(unknown), NotFoundError, 1);
  assert.equal(missing.status, 404);
  assert.match(missing.message, /detail/);
  await fails(() => client.agents.retrieve('agent-1'), UnprocessableEntityError, 1);
  await fails(() => client.agents.messages.create(agent.id, { messages: [] }), UnprocessableEntityError, 1);
  await fails(() => client.agents.list({ order: 'sideways' as 'asc' }), UnprocessableEntityError, 1);
  await fails(() => client.agents.create({ tools: ['no_such_tool'] }), BadRequestError, 1);
  const name = unique('folder');
  await client.folders.create({ name });
  await fails(() => client.folders.create({ name }), ConflictError, 1);
  await fails(() => client.agents.messages.cancel(agent.id), ConflictError, 1);
  const stranger = connect({ apiKey: 'sk-of-nobody' });
  assert.equal((await fails(() => stranger.agents.list(), AuthenticationError, 1)).status, 401);
  await fails(() => connect({ apiKey: null }).agents.list(), AuthenticationError, 1);
  assert.equal((await connect({ apiKey: null }).health()).status, 'ok');
  await fails(() => client.get('/v1/nothing'), NotFoundError, 1);
  await fails(
    () => client.patch(`/v1/agents/${agent.id}/messages/message-00000000-0000-4000-8000-000000000000`),
    APIError,
    1,
  );
});

/** A client whose first answers have the given statuses, as a proxy in front of the server makes them. */
function behindProxy(statuses: number[], headers: Record<string, string> = {}): Letta {
  const left = [...statuses];
  return connect({
    fetch: async (url, init) => {
      const status = left.shift();
      if (status === undefined) return fetch(url, init);
      if (status === 0) throw new TypeError('connection reset');
      return new Response('{"detail":"out of order"}', {
        status,
        headers: { 'content-type': 'application/json', 'retry-after-ms': '1', ...headers },
      });
    },
  });
}

test('what may pass is tried three times', async () => {
  const agent = await createAgent();
  const kinds: [number, Class, number][] = [
    [0, APIConnectionError, 3],
    [408, APIError, 3],
    [409, ConflictError, 3],
    [429, RateLimitError, 3],
    [500, InternalServerError, 3],
    [503, InternalServerError, 3],
    [400, BadRequestError, 1],
    [401, AuthenticationError, 1],
    [404, NotFoundError, 1],
    [422, UnprocessableEntityError, 1],
  ];
  for (const [status, kind, requests] of kinds) {
    await fails(() => behindProxy([status, status, status, status]).agents.retrieve(agent.id), kind, requests);
  }
  const found = await watch.during(() => behindProxy([503, 0]).agents.retrieve(agent.id));
  assert.deepEqual(
    found.map((s) => s.status),
    [503, 0, 200],
  );
  await fails(
    () => behindProxy([503], { 'x-should-retry': 'false' }).agents.retrieve(agent.id),
    InternalServerError,
    1,
  );
});

test('a message that is sent again because its answer was lost is stored once', async () => {
  const agent = await createAgent();
  let lost = 2;
  const forgetful = connect({
    fetch: async (url, init) => {
      const response = await fetch(url, init);
      if (lost-- <= 0) return response;
      await response.text();
      throw new TypeError('connection reset');
    },
  });
  model.says({ text: 'Once.' }, { text: 'Twice.' });
  const sent = await watch.during(async () => {
    const answer = await forgetful.agents.messages.create(agent.id, {
      messages: [{ role: 'user', content: 'Hello', otid: 'lost-1' }],
    });
    assert.match(JSON.stringify(answer.messages), /Once\./);
  });
  assert.equal(sent.length, 3);
  const listed = await client.agents.messages.list(agent.id);
  assert.deepEqual(
    listed.items.map((m) => m.message_type),
    ['system_message', 'user_message', 'assistant_message'],
  );
});

test('a client that gives up leaves a run that goes on', async () => {
  const agent = await createAgent();
  let go = (): void => undefined;
  model.says({ text: 'Here.', after: new Promise((resolve) => (go = resolve)) });
  const give = new AbortController();
  const waiting = fails(
    () => client.agents.messages.create(agent.id, { input: 'Hello' }, { signal: give.signal }),
    APIUserAbortError,
    1,
  );
  const active = async () => (await client.runs.list({ agent_id: agent.id, active: true })).items;
  while ((await active()).length === 0);
  give.abort();
  await waiting.catch(() => undefined);
  go();
  const run = (await client.runs.list({ agent_id: agent.id })).items[0];
  assert.equal((await ended(run?.id ?? '')).stop_reason, 'end_turn');

  model.says({ text: 'Late.', after: new Promise((resolve) => (go = resolve)) });
  await fails(
    () => client.agents.messages.create(agent.id, { input: 'Slow?' }, { timeout: 300, maxRetries: 0 }),
    APIConnectionTimeoutError,
    1,
  );
  go();
  const late = (await client.runs.list({ agent_id: agent.id })).items[0];
  assert.equal((await ended(late?.id ?? '')).stop_reason, 'end_turn');
});
