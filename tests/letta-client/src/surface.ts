// Finds the methods of the client, and the routes that they call, by reflection.
import Letta from '@letta-ai/letta-client';

/** A method of the client, such as agents.blocks.retrieve, and the requests it sends. */
export interface Operation {
  name: string;
  method: string;
  path: RegExp;
}

type Resource = Record<string, unknown>;
type Call = (...parameters: unknown[]) => PromiseLike<unknown>;

function isResource(value: unknown, client: Letta): value is Resource {
  return typeof value === 'object' && value !== null && (value as Resource)['_client'] === client;
}

/** The methods of a resource and of those within it, by their names. */
function* methods(resource: Resource, client: Letta, prefix: string): Generator<[string, Call]> {
  for (const name of Object.getOwnPropertyNames(Object.getPrototypeOf(resource))) {
    const method = resource[name];
    if (name !== 'constructor' && typeof method === 'function') yield [prefix + name, method.bind(resource) as Call];
  }
  for (const [name, within] of Object.entries(resource)) {
    if (isResource(within, client)) yield* methods(within, client, `${prefix}${name}.`);
  }
}

/** The methods of a client: those of its resources, and health, the only one of its own that sends a request. */
export function calls(client: Letta): Map<string, Call> {
  const all = new Map<string, Call>([['health', client.health.bind(client) as Call]]);
  for (const [name, resource] of Object.entries(client)) {
    if (!isResource(resource, client)) continue;
    for (const [method, call] of methods(resource, client, `${name}.`)) all.set(method, call);
  }
  return all;
}

const segment = '\u0001';

/** A value that each parameter of a path, and each field of a request, can have. */
export function anything(): unknown {
  return new Proxy(
    {},
    {
      get: (_, name) => {
        if (name === 'toString' || name === Symbol.toPrimitive) return () => segment;
        return typeof name === 'symbol' || ['then', 'toJSON', 'headers'].includes(name) ? undefined : segment;
      },
      has: (_, name) => typeof name === 'string',
      ownKeys: () => [],
    },
  );
}

/** Calls each method with meaningless parameters, and reads the route from the request that it would send. */
export async function operations(): Promise<Operation[]> {
  let request: { method: string; path: string } | undefined;
  const client = new Letta({
    baseURL: 'http://localhost',
    apiKey: null,
    maxRetries: 0,
    fetch: async (url, init) => {
      request = { method: init?.method ?? 'GET', path: decodeURIComponent(new URL(String(url)).pathname) };
      return new Response('null', { headers: { 'content-type': 'application/json' } });
    },
  });
  const all: Operation[] = [];
  for (const [name, call] of calls(client)) {
    request = undefined;
    await Promise.resolve(call(anything(), anything())).catch(() => undefined);
    if (!request) throw new Error(`${name} sends no request when it is called by reflection`);
    const { method, path } = request as { method: string; path: string };
    const pattern = path.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replaceAll(segment, '[^/]+');
    all.push({ name, method, path: new RegExp(`^${pattern}$`) });
  }
  return all;
}

/** The operation that sends a request, the one with the most literal path if several could. */
export function operationOf(all: Operation[], method: string, path: string): Operation | undefined {
  const literal = (o: Operation) => o.path.source.replaceAll('[^/]+', '').length;
  return all.filter((o) => o.method === method && o.path.test(path)).sort((a, b) => literal(b) - literal(a))[0];
}
