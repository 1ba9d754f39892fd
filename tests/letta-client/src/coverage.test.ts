// Each method of the client is driven by a test, or is named here with the reason why Loci does not serve it.
import { InternalServerError } from '@letta-ai/letta-client';
import { all, assert, client, notServed, test, watch } from './fixture.js';
import { anything, calls } from './surface.js';

test('each method of the client is driven, or says why it is not served', async () => {
  const driven = watch.driven();
  const unplaced = all.map((o) => o.name).filter((name) => !driven.has(name) && !notServed(name));
  assert.deepEqual(unplaced, [], 'these methods are neither driven by a test nor listed as not served');
  const both = all.map((o) => o.name).filter((name) => driven.has(name) && notServed(name));
  assert.deepEqual(both, [], 'these methods are driven, and listed as not served');
  for (const [name, call] of calls(client)) {
    const reason = notServed(name);
    if (!reason) continue;
    let caught: unknown;
    const sent = await watch.during(() =>
      Promise.resolve(call(anything(), anything())).catch((err) => (caught = err)),
    );
    assert.ok(caught instanceof InternalServerError, `${name}: ${String(caught)}`);
    assert.deepEqual(
      sent.map((s) => [s.status, s.retry]),
      [[501, 'false']],
      name,
    );
    assert.ok(caught.message.includes(reason), `${name} says: ${caught.message}`);
  }
});
