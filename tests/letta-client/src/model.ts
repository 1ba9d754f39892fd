// A scripted language model: OpenAI's chat completions and Responses API, and Anthropic's messages, whole and streamed.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Call {
  id: string;
  name: string;
  input: Record<string, unknown>;
}

/** What the model answers. One without a text and calls says "Understood.". */
export interface Answer {
  text?: string;
  thought?: string;
  calls?: Call[];
  /** An error of this status in place of an answer. */
  status?: number;
  /** The answer waits for this. */
  after?: Promise<void>;
  promptTokens?: number;
}

/** A request that the model received. */
export interface Asked {
  path: string;
  key: string | undefined;
  body: Record<string, any>;
}

type Pieces = { text: string[]; calls: Call[]; thought: string; answer: Answer; model: string };

export class Model {
  readonly asked: Asked[] = [];
  /** What was wrong with the requests: a provider would refuse them. */
  readonly faults: string[] = [];
  private script: Answer[] = [];
  private next: ((asked: Asked) => Answer | undefined) | undefined;
  private made = 0;

  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {}

  static async start(): Promise<Model> {
    let model: Model;
    const server = createServer((request, response) => {
      model.serve(request, response).catch((err: unknown) => {
        model.faults.push(String(err));
        response.destroy();
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    model = new Model(server, `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    return model;
  }

  /** The model's next answers, in place of those that were not asked for. */
  says(...answers: Answer[]): void {
    this.script = answers;
    this.next = undefined;
  }

  /** The model answers each request by a function. */
  answers(by: (asked: Asked) => Answer | undefined): void {
    this.script = [];
    this.next = by;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections?.();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = '';
    for await (const piece of request) text += piece;
    const path = (request.url ?? '').replace(/\?.*/, '');
    if (request.method === 'GET')
      return send(response, 200, { object: 'list', data: [{ id: 'scripted', object: 'model' }] });
    const key = request.headers.authorization ?? request.headers['x-api-key']?.toString();
    const asked: Asked = { path, key, body: JSON.parse(text) as Asked['body'] };
    this.asked.push(asked);
    this.faults.push(...openCalls(asked).map((id) => `${path}: the call ${id} has no result`));
    const answer = this.next?.(asked) ?? this.script.shift() ?? {};
    await answer.after;
    if (answer.status) return send(response, answer.status, { error: { message: 'The model is out of order.' } });
    const said = answer.text ?? (answer.calls ? '' : 'Understood.');
    const pieces: Pieces = {
      text: said.split(/(?<= )/),
      calls: answer.calls ?? [],
      thought: answer.thought ?? '',
      answer,
      model: String(asked.body['model']),
    };
    const speak = { '/v1/chat/completions': chat, '/v1/responses': responses, '/v1/messages': messages }[path];
    if (!speak) return send(response, 404, { error: { message: `no ${path}` } });
    const { whole, events } = speak(pieces, `answer-${++this.made}`);
    if (!asked.body['stream']) return send(response, 200, whole);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const event of events) {
      const name = typeof event['type'] === 'string' ? `event: ${event['type']}\n` : '';
      response.write(`${name}data: ${JSON.stringify(event)}\n\n`);
    }
    response.end(path === '/v1/chat/completions' ? 'data: [DONE]\n\n' : undefined);
  }
}

function send(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(value));
}

/** The ids of calls without a result; every provider refuses such a request. */
function openCalls({ path, body }: Asked): string[] {
  const open = new Set<string>();
  for (const m of (body['messages'] ?? body['input'] ?? []) as Record<string, any>[]) {
    if (path === '/v1/chat/completions') {
      for (const call of m['tool_calls'] ?? []) open.add(call.id as string);
      if (m['role'] === 'tool') open.delete(m['tool_call_id'] as string);
    } else if (path === '/v1/responses') {
      if (m['type'] === 'function_call') open.add(m['call_id'] as string);
      if (m['type'] === 'function_call_output') open.delete(m['call_id'] as string);
    } else if (Array.isArray(m['content'])) {
      for (const block of m['content'] as Record<string, any>[]) {
        if (block['type'] === 'tool_use') open.add(block['id'] as string);
        if (block['type'] === 'tool_result') open.delete(block['tool_use_id'] as string);
      }
    }
  }
  return [...open];
}

interface Spoken {
  whole: Record<string, unknown>;
  events: Record<string, unknown>[];
}

function chat({ text, calls, thought, answer, model }: Pieces, id: string): Spoken {
  const toolCalls = calls.map((c) => ({
    id: c.id,
    type: 'function',
    function: { name: c.name, arguments: JSON.stringify(c.input) },
  }));
  const usage = {
    prompt_tokens: answer.promptTokens ?? 100,
    completion_tokens: 20,
    total_tokens: (answer.promptTokens ?? 100) + 20,
  };
  const finish = calls.length > 0 ? 'tool_calls' : 'stop';
  const head = { id, created: 1700000000, model };
  const chunk = (delta: object, finish_reason: string | null = null) => ({
    ...head,
    object: 'chat.completion.chunk',
    choices: [{ index: 0, delta, finish_reason }],
  });
  const message = {
    role: 'assistant',
    content: text.join('') || null,
    refusal: null,
    ...(thought ? { reasoning_content: thought } : {}),
    ...(calls.length ? { tool_calls: toolCalls } : {}),
  };
  return {
    whole: {
      ...head,
      object: 'chat.completion',
      usage,
      choices: [{ index: 0, message, finish_reason: finish, logprobs: null }],
    },
    events: [
      chunk({ role: 'assistant' }),
      ...(thought ? [chunk({ reasoning_content: thought })] : []),
      ...text.filter(Boolean).map((piece) => chunk({ content: piece })),
      ...toolCalls.flatMap((c, index) => [
        chunk({ tool_calls: [{ ...c, index, function: { name: c.function.name, arguments: '' } }] }),
        ...halves(c.function.arguments).map((a) => chunk({ tool_calls: [{ index, function: { arguments: a } }] })),
      ]),
      chunk({}, finish),
      { ...head, object: 'chat.completion.chunk', choices: [], usage },
    ],
  };
}

function halves(text: string): string[] {
  const middle = Math.ceil(text.length / 2);
  return [text.slice(0, middle), text.slice(middle)];
}

function messages({ text, calls, thought, answer, model }: Pieces, id: string): Spoken {
  const content: Record<string, unknown>[] = [
    ...(thought ? [{ type: 'thinking', thinking: thought, signature: 'c2lnbmVk' }] : []),
    ...(text.join('') ? [{ type: 'text', text: text.join(''), citations: null }] : []),
    ...calls.map((c) => ({ type: 'tool_use', id: c.id, name: c.name, input: c.input })),
  ];
  const usage = { input_tokens: answer.promptTokens ?? 100, output_tokens: 20 };
  const message = { id, type: 'message', role: 'assistant', model, stop_sequence: null };
  const stop_reason = calls.length > 0 ? 'tool_use' : 'end_turn';
  const events: Record<string, unknown>[] = [
    {
      type: 'message_start',
      message: { ...message, content: [], stop_reason: null, usage: { ...usage, output_tokens: 1 } },
    },
  ];
  content.forEach((block, index) => {
    events.push({ type: 'content_block_start', index, content_block: beginning(block) });
    events.push(...deltas(block, text).map((delta) => ({ type: 'content_block_delta', index, delta })));
    events.push({ type: 'content_block_stop', index });
  });
  events.push({ type: 'message_delta', delta: { stop_reason, stop_sequence: null }, usage: { output_tokens: 20 } });
  events.push({ type: 'message_stop' });
  return { whole: { ...message, content, stop_reason, usage }, events };
}

function beginning(block: Record<string, unknown>): Record<string, unknown> {
  switch (block['type']) {
    case 'thinking':
      return { type: 'thinking', thinking: '', signature: '' };
    case 'text':
      return { type: 'text', text: '', citations: null };
    default:
      return { ...block, input: {} };
  }
}

function deltas(block: Record<string, unknown>, text: string[]): Record<string, unknown>[] {
  switch (block['type']) {
    case 'thinking':
      return [
        { type: 'thinking_delta', thinking: block['thinking'] },
        { type: 'signature_delta', signature: block['signature'] },
      ];
    case 'text':
      return text.map((piece) => ({ type: 'text_delta', text: piece }));
    default:
      return halves(JSON.stringify(block['input'])).map((json) => ({ type: 'input_json_delta', partial_json: json }));
  }
}

function responses({ text, calls, thought, answer, model }: Pieces, id: string): Spoken {
  const reasoning = {
    type: 'reasoning',
    id: `rs_${id}`,
    summary: [{ type: 'summary_text', text: thought }],
    encrypted_content: 'ZW5j',
  };
  const output: Record<string, unknown>[] = [
    ...(thought ? [reasoning] : []),
    ...(text.join('')
      ? [
          {
            type: 'message',
            id: `msg_${id}`,
            role: 'assistant',
            status: 'completed',
            content: [{ type: 'output_text', text: text.join(''), annotations: [], logprobs: [] }],
          },
        ]
      : []),
    ...calls.map((c) => ({
      type: 'function_call',
      id: `fc_${c.id}`,
      call_id: c.id,
      name: c.name,
      status: 'completed',
      arguments: JSON.stringify(c.input),
    })),
  ];
  const input = answer.promptTokens ?? 100;
  const whole = {
    id,
    object: 'response',
    created_at: 1700000000,
    status: 'completed',
    model,
    output,
    error: null,
    incomplete_details: null,
    instructions: null,
    metadata: {},
    parallel_tool_calls: true,
    temperature: 1,
    tool_choice: 'auto',
    tools: [],
    top_p: 1,
    usage: {
      input_tokens: input,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: 20,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: input + 20,
    },
  };
  return { whole, events: [{ type: 'response.completed', sequence_number: 0, response: whole }] };
}
