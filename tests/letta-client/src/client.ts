// The client under test: each of its requests is counted, and each answer is checked against the client's types.
import Letta, { type ClientOptions } from '@letta-ai/letta-client';
import { operationOf, type Operation } from './surface.js';
import type { Types } from './types.js';

/** A request that a client sent, and the status that it was answered with; 0 if the request failed. */
export interface Sent {
  operation: string;
  path: string;
  status: number;
  retry: string | null;
}

/** Keeps what the clients of a run sent, and what was wrong in the answers. */
export class Watch {
  readonly sent: Sent[] = [];
  readonly problems: string[] = [];
  private reading = 0;

  constructor(
    private readonly all: Operation[],
    private readonly types: Types,
  ) {}

  /** A client of a server. Its options are those of the published client. */
  client(baseURL: string, options: ClientOptions = {}): Letta {
    const send = options.fetch ?? fetch;
    return new Letta({
      apiKey: null,
      ...options,
      baseURL,
      fetch: async (url, init) => {
        const path = new URL(String(url)).pathname;
        const operation = operationOf(this.all, init?.method ?? 'GET', path)?.name ?? '';
        const sent: Sent = { operation, path, status: 0, retry: null };
        this.sent.push(sent);
        const response = await send(url, init);
        sent.status = response.status;
        sent.retry = response.headers.get('x-should-retry');
        const warnings = response.headers.get('x-loci-warnings');
        if (warnings) this.problems.push(`${operation}: ${warnings}`);
        return operation && response.ok ? this.checked(response, operation) : response;
      },
    });
  }

  /** The names of the operations that were answered with success. */
  driven(): Set<string> {
    return new Set(this.sent.filter((s) => s.status >= 200 && s.status < 300).map((s) => s.operation));
  }

  /** The requests sent while work runs. */
  async during(work: () => Promise<unknown>): Promise<Sent[]> {
    const before = this.sent.length;
    await work();
    return this.sent.slice(before);
  }

  /** Waits until each answer is checked, and takes the problems that were found. */
  async takeProblems(): Promise<string[]> {
    while (this.reading > 0) await new Promise((resolve) => setTimeout(resolve, 10));
    return this.problems.splice(0);
  }

  /** The same response. Events are checked as they pass, other answers as a whole. */
  private checked(response: Response, operation: string): Response {
    if (response.body && response.headers.get('content-type')?.startsWith('text/event-stream')) {
      return new Response(response.body.pipeThrough(this.events(operation)), response);
    }
    this.reading++;
    void this.read(response.clone(), operation).finally(() => this.reading--);
    return response;
  }

  private async read(response: Response, operation: string): Promise<void> {
    try {
      const text = await response.text();
      if (response.status !== 204) this.add(operation, JSON.parse(text), operation);
      else if (text !== '') this.problems.push(`${operation}: a 204 with a body`);
    } catch (err) {
      this.problems.push(`${operation}: ${String(err)}`);
    }
  }

  private events(operation: string): TransformStream<Uint8Array, Uint8Array> {
    const decoder = new TextDecoder();
    let rest = '';
    return new TransformStream({
      transform: (piece, controller) => {
        controller.enqueue(piece);
        const events = (rest + decoder.decode(piece, { stream: true })).split('\n\n');
        rest = events.pop() ?? '';
        for (const event of events) {
          const data = /^data: (.*)$/m.exec(event)?.[1];
          if (data && data !== '[DONE]') this.add('event', JSON.parse(data), `${operation}: `);
        }
      },
    });
  }

  private add(type: string, value: unknown, at: string): void {
    this.problems.push(...this.types.problems(value, type).map((p) => (at === type ? p : at + p)));
  }
}
