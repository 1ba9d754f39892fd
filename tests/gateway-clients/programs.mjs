// Programs with JavaScript packages of providers and frameworks. Each collects what it was answered, and the program that
// the arguments name prints it: programs.mjs NAME URL HEADERS.
import Anthropic from '@anthropic-ai/sdk';
import {createAnthropic} from '@ai-sdk/anthropic';
import {createOpenAI} from '@ai-sdk/openai';
import {ChatAnthropic} from '@langchain/anthropic';
import {tool as langchainTool} from '@langchain/core/tools';
import {ToolMessage} from '@langchain/core/messages';
import {ChatOpenAI} from '@langchain/openai';
import {generateText, Output, stepCountIs, streamText, tool} from 'ai';
import OpenAI from 'openai';
import {z} from 'zod';

const [name, url, headersText] = process.argv.slice(2);
const defaultHeaders = JSON.parse(headersText);
const seen = [];
globalThis.AI_SDK_LOG_WARNINGS = false; // they go to the standard output

const fact = 'My cat is called Pixel and she is seven years old.';
const question = 'How old is my cat Pixel?';
const weather = 'How is the weather in Paris and Rome?';
const schema = {type: 'object', properties: {city: {type: 'string'}}, required: ['city'], additionalProperties: false};

async function all(stream) {
  const items = [];
  for await (const item of stream) items.push(item);
  return items;
}

async function openai() {
  const client = new OpenAI({baseURL: `${url}/openai/v1`, apiKey: 'sk-own', defaultHeaders, maxRetries: 0});
  const messages = [{role: 'user', content: fact}];
  const first = await client.chat.completions.create({model: 'gpt-4o', messages});
  const tools = [{type: 'function', function: {name: 'weather', parameters: schema}}];
  messages.push(first.choices[0].message, {role: 'user', content: weather});
  const second = await client.chat.completions.create({model: 'gpt-4o', messages, tools});
  messages.push(second.choices[0].message);
  for (const call of second.choices[0].message.tool_calls) {
    messages.push({role: 'tool', tool_call_id: call.id, content: 'warm'});
  }
  const third = await client.chat.completions.stream({model: 'gpt-4o', messages, tools}).finalChatCompletion();
  seen.push(first, second, third);
  const events = await all(await client.responses.create({model: 'gpt-4o', input: fact, stream: true}));
  const before = events.at(-1).response.id;
  const next = await client.responses.create({model: 'gpt-4o', input: 'Go on.', previous_response_id: before});
  seen.push(events.map((event) => event.type), next.output_text);
  const last = await client.chat.completions.create({model: 'gpt-4o', messages: [{role: 'user', content: question}]});
  seen.push(last);
}

async function anthropic() {
  const client = new Anthropic({baseURL: `${url}/anthropic`, apiKey: 'sk-ant-own', defaultHeaders, maxRetries: 0});
  const ask = {model: 'claude-test', max_tokens: 2000};
  const messages = [{role: 'user', content: fact}];
  const first = await client.messages.create({...ask, messages});
  messages.push({role: 'assistant', content: first.content}, {role: 'user', content: weather});
  const tools = [{name: 'weather', input_schema: schema}];
  const thinking = {type: 'enabled', budget_tokens: 1024};
  const second = await client.messages.stream({...ask, messages, tools, thinking}).finalMessage();
  const results = second.content.filter((block) => block.type === 'tool_use')
    .map((call) => ({type: 'tool_result', tool_use_id: call.id, content: 'warm'}));
  messages.push({role: 'assistant', content: second.content}, {role: 'user', content: results});
  const third = await client.messages.create({...ask, messages, tools, thinking});
  const count = await client.messages.countTokens({model: ask.model, messages, tools});
  const last = await client.messages.create({...ask, messages: [{role: 'user', content: question}]});
  seen.push(first, second, third, count, last);
}

async function vercel() {
  const models = [
    createOpenAI({baseURL: `${url}/openai/v1`, apiKey: 'sk-own', headers: defaultHeaders}).chat('gpt-4o'),
    createOpenAI({baseURL: `${url}/openai/v1`, apiKey: 'sk-own', headers: defaultHeaders}).responses('gpt-4o'),
    createAnthropic({baseURL: `${url}/anthropic/v1`, apiKey: 'sk-ant-own', headers: defaultHeaders})('claude-test'),
  ];
  const tools = {
    weather: tool({description: 'The weather of a city.', inputSchema: z.object({city: z.string()}), execute: async () => 'warm'}),
  };
  for (const model of models) {
    const ask = {model, maxRetries: 0};
    const first = await generateText({...ask, prompt: fact});
    const messages = [{role: 'user', content: fact}, ...first.response.messages, {role: 'user', content: weather}];
    const second = await generateText({...ask, messages, tools, stopWhen: stepCountIs(3)});
    const stream = streamText({...ask, messages: [...messages, ...second.response.messages, {role: 'user', content: 'Go on.'}]});
    const third = await all(stream.textStream);
    const cat = z.object({name: z.string(), age: z.number()});
    const fourth = await generateText({...ask, prompt: 'Which cat?', output: Output.object({schema: cat})});
    const last = await generateText({...ask, prompt: question});
    seen.push(first.text, second.text, second.steps.length, third, fourth.output, last.text);
  }
}

async function langchain() {
  const models = [
    new ChatOpenAI({model: 'gpt-4o', apiKey: 'sk-own', maxRetries: 0, configuration: {baseURL: `${url}/openai/v1`, defaultHeaders}}),
    new ChatAnthropic({model: 'claude-test', apiKey: 'sk-ant-own', maxRetries: 0, anthropicApiUrl: `${url}/anthropic`,
      clientOptions: {defaultHeaders}}),
  ];
  const weatherTool = langchainTool(async () => 'warm', {name: 'weather', description: 'Of a city.', schema: z.object({city: z.string()})});
  for (const model of models) {
    const messages = [{role: 'user', content: fact}];
    const first = await model.invoke(messages);
    messages.push(first, {role: 'user', content: weather});
    const second = await model.bindTools([weatherTool]).invoke(messages);
    messages.push(second);
    for (const call of second.tool_calls) messages.push(new ToolMessage({content: 'warm', tool_call_id: call.id}));
    const third = await all(await model.bindTools([weatherTool]).stream(messages));
    const last = await model.invoke(question);
    seen.push(first.content, second.tool_calls, third.map((chunk) => chunk.content), last.content);
  }
}

await {openai, anthropic, vercel, langchain}[name]();
console.log(JSON.stringify(seen));
