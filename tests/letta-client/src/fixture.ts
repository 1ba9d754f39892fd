// One server, one model and one client for all tests of a run.
import assert from 'node:assert/strict';
import { File } from 'node:buffer';
import { after, afterEach, test } from 'node:test';
import type Letta from '@letta-ai/letta-client';
import type { ClientOptions } from '@letta-ai/letta-client';
import type { AgentCreateParams, AgentState } from '@letta-ai/letta-client/resources/agents/agents';
import type { Run } from '@letta-ai/letta-client/resources/agents/messages';
import { Watch } from './client.js';
import { declarations } from './declared.js';
import { Loci } from './loci.js';
import { Model } from './model.js';
import { ownFields } from './ownfields.js';
import { operations } from './surface.js';
import { Types } from './types.js';

export const key = 'sk-loci-client-test-0123456789abcdef';

// Clients upload files of the global class, which Node.js 18 does not have.
(globalThis as { File?: unknown }).File ??= File;

export const all = await operations();
export const types = new Types(declarations(all), ownFields);
export const watch = new Watch(all, types);
export const model = await Model.start();
export const loci = await Loci.start({
  LOCI_API_KEY: key,
  LOCI_LLM_BASE_URL: `${model.url}/v1`,
  LOCI_LLM_MODEL: 'scripted',
  LOCI_LLM_CONTEXT_WINDOW: '32000',
  LOCI_ANTHROPIC_API_KEY: 'anthropic-key',
  LOCI_ANTHROPIC_BASE_URL: model.url,
});
export const client = connect();

afterEach(async () => {
  const problems = (await watch.takeProblems()).map((problem) => problem.replace(/\[\d+\]/g, '[]'));
  assert.deepEqual([...new Set(problems)], [], 'answers differ from the types of the client');
  assert.deepEqual(model.faults.splice(0), [], 'a provider would refuse these requests');
});

after(async () => {
  const status = await loci.stop();
  await model.stop();
  assert.equal(status, 0, 'the server ends without an error');
  assert.deepEqual(loci.faults(), [], 'the server logs no fault');
});

/** Another client of the server. */
export function connect(options: ClientOptions = {}): Letta {
  return watch.client(loci.url, { apiKey: key, ...options });
}

let made = 0;

/** A name that no other test has. */
export function unique(what: string): string {
  return `${what} ${++made}`;
}

export function createAgent(body: AgentCreateParams = {}): Promise<AgentState> {
  return client.agents.create({ name: unique('agent'), ...body });
}

/** Waits until a run has ended. */
export async function ended(id: string): Promise<Run> {
  for (;;) {
    const run = await client.runs.retrieve(id);
    if (run.completed_at) return run;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Runs work for each number below count, eight at a time, and returns the results in order. */
export async function times<T>(count: number, work: (i: number) => Promise<T>): Promise<T[]> {
  const results: T[] = [];
  let next = 0;
  const worker = async () => {
    while (next < count) {
      const i = next++;
      results[i] = await work(i);
    }
  };
  await Promise.all(Array.from({ length: 8 }, worker));
  return results;
}

export async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

/** The text of a message's content. */
export function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  return (content as { text?: string }[]).map((part) => part.text ?? '').join('');
}

export { notServed } from './unserved.js';
export { assert, test };
