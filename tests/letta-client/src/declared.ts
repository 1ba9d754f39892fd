// The types of the answers, and those of the requests that prompts are, taken from the declarations of the clients.
import type { Declarations } from './types.js';
import type { Operation } from './surface.js';

/** Methods whose streams are not events, or whose types are not those of their answers: a file is an object. */
const narrower: Record<string, string> = {
  'agents.messages.create': 'LettaResponse',
  'agents.exportFile': 'unknown',
};

function indexed(name: string): string {
  return name
    .split('.')
    .map((part) => `['${part}']`)
    .join('');
}

/** The type of each method's answer and parameters, of an event of a stream, and of the requests of models. */
export function declarations(all: Operation[]): Declarations {
  const answers = all.map(({ name }) => {
    return `  '${name}': ${narrower[name] ?? `Body<Awaited<ReturnType<Letta${indexed(name)}>>>`};`;
  });
  const parameters = all.map(({ name }) => `  'parameters of ${name}': Parameters<Letta${indexed(name)}>;`);
  return {
    name: 'Declared',
    source: `
import type Letta from '@letta-ai/letta-client';
import type { ArrayPage, NextFilesPage } from '@letta-ai/letta-client/core/pagination';
import type { LettaResponse, LettaStreamingResponse } from '@letta-ai/letta-client/resources/agents/messages';
import type { ChatCompletionCreateParamsNonStreaming } from 'openai/resources/chat/completions';
import type { ResponseCreateParamsNonStreaming } from 'openai/resources/responses/responses';
import type { MessageCreateParamsNonStreaming } from '@anthropic-ai/sdk/resources/messages';

type Body<R> = R extends ArrayPage<infer I> ? I[]
  : R extends NextFilesPage<infer I> ? { files: I[]; next_cursor: string | null; has_more: boolean } : R;

export interface Declared {
${answers.join('\n')}
${parameters.join('\n')}
  event: LettaStreamingResponse;
  openai: ChatCompletionCreateParamsNonStreaming;
  responses: ResponseCreateParamsNonStreaming;
  anthropic: MessageCreateParamsNonStreaming;
}
`,
  };
}
