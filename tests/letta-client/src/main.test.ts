// All tests, in one process, because they share a server. The last one needs those before it.
import './agents.test.js';
import './messages.test.js';
import './conversations.test.js';
import './memory.test.js';
import './errors.test.js';
import './fields.test.js';
import './providers.test.js';
import './paging.test.js';
import './coverage.test.js';
