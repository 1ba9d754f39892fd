-- An empty text stands for the default instructions, which name the tools that an agent has. Earlier versions stored this text.
UPDATE agents SET system = ''
WHERE system = 'You are an agent with a memory of your own. Part of it stands below: what your documents are, and the views of them that you have open. Open a document with open_files to see it here; find text with grep_files and meaning with semantic_search_files. Only so many documents stay open: the one you used least recently is closed first, so keep open what you need.';

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
