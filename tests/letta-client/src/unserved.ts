// The methods of the client that Loci does not serve.

/** Methods that Loci answers with 501, and words of the reason it gives. A name that ends in a dot is a resource. */
const unserved: Record<string, string> = {
  'agents.schedule.': 'sends no messages at set times',
  'mcpServers.': 'calls no MCP servers',
  'runs.trace.': 'keeps no traces of steps',
  'steps.trace.': 'keeps no traces of steps',
  'templates.': 'has no templates',
  'environments.': "belong to Letta's cloud",
  'accessTokens.': "belong to Letta's cloud",
};

/** Methods of these resources that Loci serves all the same. */
const served = ['mcpServers.list'];

/** The reason why Loci does not serve a method; undefined if it does. */
export function notServed(name: string): string | undefined {
  if (served.includes(name)) return undefined;
  return unserved[name] ?? Object.entries(unserved).find(([of]) => of.endsWith('.') && name.startsWith(of))?.[1];
}
