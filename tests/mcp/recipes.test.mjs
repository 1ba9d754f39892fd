// Drives a running Loci (LOCI_URL) over MCP with the published TypeScript SDK, and the recipes of docs/mcp.md with the
// published agent SDKs against a scripted model.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import http from 'node:http'
import { after, before, test } from 'node:test'

import { Client as ClientOf2026, StreamableHTTPClientTransport as HTTPOf2026 } from '@modelcontextprotocol/client'
import { StdioClientTransport as StdioOf2026 } from '@modelcontextprotocol/client/stdio'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import Ajv from 'ajv'
import addFormats from 'ajv-formats'

const loci = process.env.LOCI_URL
const program = process.env.LOCI_PROGRAM

// call sends a request to Loci, and returns its JSON.
async function call(method, path, body) {
  const answer = await fetch(loci + path, {
    method,
    headers: { 'Content-Type': 'application/json' },
    body: body && JSON.stringify(body),
  })
  const text = await answer.text()
  assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`)
  return JSON.parse(text)
}

const toolSets = [
  'search_memory',
  'ask_session',
  'query_result',
  'query_log',
  'request_erasure',
  'update_working_memory',
  'memory_files',
]
const newAgent = async (name) => (await call('POST', '/v1/agents', { name, tool_set: 'all', tools: toolSets })).id
const passages = async (agent) =>
  (await call('GET', `/v1/agents/${agent}/archival-memory`)).map((passage) => passage.text)

// model is a scripted model with the API of OpenAI's chat completions: it stores what the user says as a passage, and
// then answers.
const model = http.createServer((request, response) => {
  let raw = ''
  request.on('data', (piece) => (raw += piece))
  request.on('end', () => {
    const { messages, tools = [] } = JSON.parse(raw)
    const last = messages.at(-1)
    const message = { role: 'assistant', content: 'It is stored.' }
    if (last.role !== 'tool') {
      const store = tools.find((tool) => tool.function.name.endsWith('archival_memory_insert'))
      const said = typeof last.content === 'string' ? last.content : last.content[0].text
      message.content = null
      message.tool_calls = [
        {
          id: 'call_1',
          type: 'function',
          function: { name: store?.function.name ?? 'none', arguments: JSON.stringify({ content: said }) },
        },
      ]
    }
    response.setHeader('Content-Type', 'application/json')
    response.end(
      JSON.stringify({
        id: `answer-${messages.length}`,
        object: 'chat.completion',
        created: 1,
        model: 'scripted',
        choices: [{ index: 0, message, finish_reason: message.tool_calls ? 'tool_calls' : 'stop' }],
        usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
      }),
    )
  })
})
let modelURL

before(async () => {
  await new Promise((resolve) => model.listen(0, '127.0.0.1', resolve))
  modelURL = `http://127.0.0.1:${model.address().port}/v1`
})
after(() => {
  model.closeAllConnections()
  model.close()
})

// calls are arguments with which each tool does something, or says what it lacks.
const calls = {
  open_files: { file_requests: [{ file_name: 'f/ode.txt' }] },
  grep_files: { pattern: 'moon' },
  semantic_search_files: { query: 'moon' },
  list_files: {},
  close_files: { file_names: ['f/ode.txt'] },
  conversation_search: { query: 'x' },
  expand: { id: 'seq 1-3' },
  query_result: { id: 'clip-1', query: '.' },
  query_log: { jq: 'length' },
  search_memory: { query: 'tea' },
  ask_session: { conversation_id: 'conv-1', question: '?' },
  core_memory_append: { label: 'human', content: 'figs' },
  core_memory_replace: { label: 'human', old_content: 'figs', new_content: 'dates' },
  memory_insert: { label: 'human', new_string: 'She sails.' },
  memory_replace: { label: 'human', old_string: 'sails', new_string: 'swims' },
  memory_rethink: { label: 'human', new_memory: 'Ada likes tea.' },
  memory_apply_patch: { label: 'human', patch: '@@\n-Ada likes tea.\n+Ada likes figs.' },
  memory: { command: 'create', path: '/memories/a', file_text: 'x' },
  update_working_memory: { task: 'Write' },
  memory_files: { command: 'view', path: '/memories' },
  archival_memory_insert: { content: 'A passage' },
  archival_memory_search: { query: 'passage' },
  archival_memory_update: { id: 'passage-1', content: 'x' },
  archival_memory_delete: { id: 'passage-1' },
  request_erasure: { texts: ['words of nobody'], reason: 'test' },
  remember_turns: { turns: [{ role: 'user', text: 'Good night' }] },
}

const endpoint = (agent) => new URL(`${loci}/mcp/agents/${agent}`)
const onStdio = (agent) => ({ command: program, args: ['mcp', '--agent', agent], env: { LOCI_ADDR: loci } })
const implementation = { name: 'test', version: '1' }
const of2026 = (mode) => new ClientOf2026(implementation, { versionNegotiation: { mode } })

// drivers are the published clients, each with a transport.
const drivers = {
  'the SDK over HTTP': [new Client(implementation), (agent) => new StreamableHTTPClientTransport(endpoint(agent))],
  'the SDK over stdio': [new Client(implementation), (agent) => new StdioClientTransport(onStdio(agent))],
}
for (const [how, mode] of Object.entries({ pinned: { pin: '2026-07-28' }, negotiating: 'auto' })) {
  drivers[`the client of 2026-07-28, ${how}, over HTTP`] = [of2026(mode), (agent) => new HTTPOf2026(endpoint(agent))]
  drivers[`the client of 2026-07-28, ${how}, over stdio`] = [of2026(mode), (agent) => new StdioOf2026(onStdio(agent))]
}

for (const [how, [client, transport]] of Object.entries(drivers)) {
  test(`${how} drives every tool, a resource and a prompt`, async () => {
    const agent = await newAgent('ts ' + how)
    const folder = await call('POST', '/v1/folders', { name: 'f ' + how })
    await call('PATCH', `/v1/agents/${agent}/folders/attach/${folder.id}`)
    const block = await call('POST', '/v1/blocks', { label: 'human', value: 'Ada' })
    await call('PATCH', `/v1/agents/${agent}/core-memory/blocks/attach/${block.id}`)
    await client.connect(transport(agent))
    try {
      if (client instanceof ClientOf2026) assert.equal(client.getNegotiatedProtocolVersion(), '2026-07-28')
      const { tools } = await client.listTools()
      assert.deepEqual(tools.map((tool) => tool.name).sort(), Object.keys(calls).sort())
      for (const tool of tools) {
        const result = await client.callTool({ name: tool.name, arguments: calls[tool.name] })
        assert.equal(result.content[0].type, 'text', tool.name)
        if (!result.isError) assert.equal(result.structuredContent.text, result.content[0].text)
      }
      assert.deepEqual(await passages(agent), ['A passage'])
      const { resources } = await client.listResources()
      assert.ok(resources.some((resource) => resource.uri === `loci://${agent}/blocks/human`))
      const read = await client.readResource({ uri: `loci://${agent}/blocks/human` })
      assert.equal(read.contents[0].text, 'Ada likes figs.')
      const prompt = await client.getPrompt({ name: 'context', arguments: {} })
      assert.match(prompt.messages[0].content.text, /Ada likes figs\./)
      await assert.rejects(client.readResource({ uri: `loci://${agent}/blocks/none` }), /not found/)
    } finally {
      await client.close()
    }
  })
}

test('the OpenAI Agents SDK stores what it is told', async () => {
  const { Agent, MCPServerStreamableHttp, OpenAIProvider, Runner, setTracingDisabled } = await import('@openai/agents')
  setTracingDisabled(true)
  const agent = await newAgent('openai')
  const memory = new MCPServerStreamableHttp({ name: 'memory', url: `${loci}/mcp/agents/${agent}?tools=archival` })
  await memory.connect()
  try {
    const runner = new Runner({
      modelProvider: new OpenAIProvider({ apiKey: 'none', baseURL: modelURL, useResponses: false }),
    })
    const result = await runner.run(
      new Agent({ name: 'scribe', model: 'scripted', mcpServers: [memory] }),
      'Ada likes tea.',
    )
    assert.equal(result.finalOutput, 'It is stored.')
    assert.deepEqual(await passages(agent), ['Ada likes tea.'])
  } finally {
    await memory.close()
  }
})

test('LangChain stores what it is told', async () => {
  const { MultiServerMCPClient } = await import('@langchain/mcp-adapters')
  const { ChatOpenAI } = await import('@langchain/openai')
  const { createAgent } = await import('langchain')
  const agent = await newAgent('langchain')
  const memory = new MultiServerMCPClient({
    memory: { transport: 'http', url: `${loci}/mcp/agents/${agent}?tools=archival` },
  })
  try {
    const scribe = createAgent({
      model: new ChatOpenAI({ model: 'scripted', apiKey: 'none', configuration: { baseURL: modelURL } }),
      tools: await memory.getTools(),
    })
    const result = await scribe.invoke({ messages: [{ role: 'user', content: 'Ada likes figs.' }] })
    assert.equal(result.messages.at(-1).content, 'It is stored.')
    assert.deepEqual(await passages(agent), ['Ada likes figs.'])
  } finally {
    await memory.close()
  }
})

test('the Vercel AI SDK stores what it is told', async () => {
  const { createMCPClient } = await import('@ai-sdk/mcp')
  const { createOpenAI } = await import('@ai-sdk/openai')
  const { generateText, stepCountIs } = await import('ai')
  const agent = await newAgent('vercel')
  const memory = await createMCPClient({
    transport: { type: 'http', url: `${loci}/mcp/agents/${agent}?tools=archival` },
  })
  try {
    const result = await generateText({
      model: createOpenAI({ apiKey: 'none', baseURL: modelURL }).chat('scripted'),
      tools: await memory.tools(),
      stopWhen: stepCountIs(3),
      prompt: 'Ada likes dates.',
    })
    assert.equal(result.text, 'It is stored.')
    assert.deepEqual(await passages(agent), ['Ada likes dates.'])
  } finally {
    await memory.close()
  }
})

test("server.json is an entry of the public registry's schema", () => {
  const schema = JSON.parse(readFileSync(process.env.LOCI_REGISTRY_SCHEMA, 'utf8'))
  const entry = JSON.parse(readFileSync('../../server.json', 'utf8'))
  assert.equal(entry.$schema, schema.$id)
  const ajv = new Ajv({ allErrors: true, strict: false })
  addFormats(ajv)
  const isEntry = ajv.compile(schema)
  assert.ok(isEntry(entry), JSON.stringify(isEntry.errors, null, 1))
  assert.ok(!isEntry({ ...entry, remotes: [{ type: 'http' }] }), 'the schema refuses nothing')
})
