// What becomes of each field that the client can send: Loci does what it asks for, refuses it, or has a reason why it
// changes nothing. A field that is in none of these lists, and one that the client does not have any more, fails the
// run.

/** The fields that Loci serves, by the methods that have them. */
export const honoured: Record<string, string> = {
  'agents.create':
    'agent_type block_ids compaction_settings context_window_limit description enable_reasoner folder_ids hidden ' +
    'identity_ids include_base_tool_rules include_base_tools initial_message_sequence llm_config max_files_open ' +
    'max_reasoning_tokens message_buffer_autoclear ' +
    'max_tokens memory_blocks metadata model model_settings name parallel_tool_calls ' +
    'per_file_view_window_char_limit reasoning response_format source_ids system tags timezone tool_ids ' +
    'tool_rules tools',
  'agents.update':
    'block_ids compaction_settings context_window_limit description folder_ids hidden identity_ids ' +
    'last_run_completion last_run_duration_ms last_stop_reason llm_config max_files_open max_tokens ' +
    'message_buffer_autoclear metadata ' +
    'model model_settings name parallel_tool_calls per_file_view_window_char_limit reasoning response_format ' +
    'source_ids system tags timezone tool_ids tool_rules',
  'agents.list':
    'after ascending base_template_id before created_by_id identifier_keys identity_id include ' +
    'include_relationships last_stop_reason limit match_all_tags name order order_by project_id query_text ' +
    'sort_by tags template_id',
  'agents.exportFile': 'conversation_id scrub_messages',
  'agents.importFile':
    'append_copy_suffix embedding file model name override_embedding_handle override_existing_tools ' +
    'override_model_handle override_name strip_messages',
  'agents.recompile': 'dry_run',
  'agents.messages.create':
    'assistant_message_tool_kwarg assistant_message_tool_name background client_skills client_tools ' +
    'include_compaction_messages include_pings include_return_message_types input max_steps messages ' +
    'override_model override_system stream_tokens streaming use_assistant_message',
  'agents.messages.list':
    'after assistant_message_tool_kwarg assistant_message_tool_name before conversation_id group_id include_err ' +
    'include_return_message_types limit order order_by use_assistant_message',
  'agents.messages.cancel': 'run_ids',
  'agents.messages.compact': 'compaction_settings',
  'agents.messages.createAsync':
    'assistant_message_tool_kwarg assistant_message_tool_name client_skills client_tools ' +
    'include_compaction_messages include_return_message_types input max_steps messages override_model ' +
    'override_system use_assistant_message',
  'agents.messages.stream':
    'assistant_message_tool_kwarg assistant_message_tool_name background client_skills client_tools ' +
    'include_compaction_messages include_pings include_return_message_types input max_steps messages ' +
    'override_model override_system stream_tokens streaming use_assistant_message',
  'agents.blocks.retrieve': 'agent_id',
  'agents.blocks.update': 'agent_id description hidden label limit metadata read_only tags value',
  'agents.blocks.list': 'after before limit order order_by',
  'agents.blocks.attach': 'agent_id',
  'agents.blocks.detach': 'agent_id',
  'agents.tools.list': 'after before limit order order_by',
  'agents.tools.attach': 'agent_id',
  'agents.tools.detach': 'agent_id',
  'agents.tools.run': 'agent_id args',
  'agents.tools.updateApproval': 'agent_id body_requires_approval query_requires_approval',
  'agents.folders.list': 'after before limit order order_by',
  'agents.folders.attach': 'agent_id',
  'agents.folders.detach': 'agent_id',
  'agents.files.list': 'after before cursor is_open limit order order_by',
  'agents.files.close': 'agent_id',
  'agents.files.open': 'agent_id',
  'agents.archives.attach': 'agent_id',
  'agents.archives.detach': 'agent_id',
  'agents.passages.create': 'created_at tags text',
  'agents.passages.list': 'after ascending before limit search',
  'agents.passages.delete': 'agent_id',
  'agents.passages.search': 'end_datetime query start_datetime tag_match_mode tags top_k',
  'agents.identities.attach': 'agent_id',
  'agents.identities.detach': 'agent_id',
  'tools.create': 'args_json_schema description json_schema source_code source_type tags',
  'tools.update': 'args_json_schema description json_schema metadata_ source_code source_type tags',
  'tools.list':
    'after before exclude_tool_types limit name names order order_by return_only_letta_tools search tool_ids ' +
    'tool_types',
  'tools.search': 'limit query search_mode tags tool_types',
  'tools.upsert': 'args_json_schema description json_schema source_code source_type tags',
  'blocks.create': 'description hidden is_template label limit metadata read_only tags template_name value',
  'blocks.update': 'description hidden label limit metadata read_only tags value',
  'blocks.list':
    'after before connected_to_agents_count_eq connected_to_agents_count_gt connected_to_agents_count_lt ' +
    'description_search identifier_keys identity_id label label_search limit match_all_tags name order order_by ' +
    'project_id tags templates_only value_search',
  'blocks.agents.list': 'after before include include_relationships limit order order_by',
  'archives.create': 'description name',
  'archives.update': 'description name',
  'archives.list': 'after agent_id before limit name order order_by',
  'archives.passages.create': 'created_at metadata tags text',
  'archives.passages.delete': 'archive_id',
  'archives.passages.createMany': 'passages',
  'folders.create': 'description instructions metadata name',
  'folders.update': 'description instructions metadata name',
  'folders.list': 'after before limit name order order_by',
  'folders.files.retrieve': 'folder_id include_content',
  'folders.files.list': 'after before include_content limit order order_by',
  'folders.files.delete': 'folder_id',
  'folders.files.upload': 'duplicate_handling file name',
  'folders.agents.list': 'after before limit order order_by',
  'models.list': 'provider_category provider_name provider_type',
  'runs.list':
    'active after agent_id agent_ids ascending background before conversation_id limit order order_by statuses ' +
    'stop_reason',
  'runs.messages.list': 'after before limit order order_by',
  'runs.messages.stream': 'agent_id batch_size include_pings otid poll_interval run_id starting_after',
  'runs.steps.list': 'after before limit order order_by',
  'steps.list':
    'after agent_id before end_date feedback has_feedback limit model order order_by project_id start_date tags ' +
    'trace_ids',
  'steps.feedback.create': 'feedback tags',
  'steps.messages.list': 'after before limit order order_by',
  'tags.list': 'after before limit name order order_by query_text',
  'messages.list': 'after before conversation_id include_return_message_types limit order',
  'messages.search': 'agent_id conversation_id end_date limit query search_mode start_date',
  'passages.search': 'agent_id archive_id end_date limit query start_date tag_match_mode tags',
  'conversations.create': 'agent_id context_window_limit description hidden model model_settings summary',
  'conversations.update': 'archived context_window_limit description last_message_at model model_settings summary',
  'conversations.list': 'after agent_id archive_status limit order order_by summary_search',
  'conversations.cancel': 'agent_id',
  'conversations.fork': 'agent_id hidden message_id',
  'conversations.recompile': 'agent_id dry_run',
  'conversations.messages.create':
    'agent_id assistant_message_tool_kwarg assistant_message_tool_name background client_skills client_tools ' +
    'include_compaction_messages include_pings include_return_message_types input max_steps messages ' +
    'override_model override_system stream_tokens streaming use_assistant_message',
  'conversations.messages.list':
    'after agent_id before group_id include_err include_return_message_types limit order order_by',
  'conversations.messages.compact': 'agent_id compaction_settings',
  'conversations.messages.stream': 'agent_id batch_size include_pings otid poll_interval run_id starting_after',
};

const ofTemplates = {
  base_template_id: 'template-1',
  deployment_id: 'deployment-1',
  entity_id: 'entity-1',
  project_id: 'project-1',
  template_id: 'template-1',
  preserve_on_migration: true,
};
const ofBlocks = { ...ofTemplates, is_template: true, template_name: 'a template' };
const ofAgents = {
  base_template_id: 'template-1',
  template_id: 'template-1',
};
const ofRuns = { enable_thinking: 'true', return_logprobs: true, return_token_ids: true, top_logprobs: 2 };

/** The fields that Loci refuses, each with a value that asks for something. */
export const refused: Record<string, Record<string, unknown>> = {
  'agents.create': {
    ...ofAgents,
    from_template: 'template-1',
    template: true,
    memory_variables: { name: 'value' },
  },
  'agents.update': { ...ofAgents, message_ids: ['message-1'] },
  'agents.exportFile': { max_steps: 5, use_legacy_format: true },
  'agents.importFile': { env_vars_json: '{"KEY":"value"}', project_id: 'project-1', secrets: '{"KEY":"value"}' },
  'agents.recompile': { update_timestamp: true },
  'agents.messages.create': ofRuns,
  'agents.messages.stream': ofRuns,
  'agents.messages.createAsync': { ...ofRuns, callback_url: 'http://localhost/' },
  'conversations.messages.create': ofRuns,
  'agents.blocks.update': ofBlocks,
  'blocks.create': ofTemplates,
  'blocks.update': ofBlocks,
  'conversations.recompile': { compaction_settings: { mode: 'all' } },
};

const vectors = 'the operator chooses the model of vectors, which the answer shows';
const ofProgram = 'it is kept for the program that runs the tool';
const ofTools = {
  default_requires_approval: 'calls of custom tools stop the run in any case',
  enable_parallel_execution: ofProgram,
  npm_requirements: ofProgram,
  pip_requirements: ofProgram,
  return_char_limit: ofProgram,
};

const warned = 'the agent is made without it, and a warning says so';
const leftOut = {
  enable_sleeptime: warned,
  project_id: warned,
  secrets: warned,
  tool_exec_environment_variables: warned,
};

/** The fields that change nothing, each with the reason. docs/letta.md says so, too. */
export const inert: Record<string, Record<string, string>> = {
  'agents.create': {
    ...leftOut,
    embedding: vectors,
    embedding_chunk_size: vectors,
    embedding_config: vectors,
    include_default_source: warned,
    project: warned,
  },
  'agents.retrieve': {
    include: 'an agent is shown with all its relations',
    include_relationships: 'an agent is shown with all its relations',
  },
  'agents.importFile': { 'x-override-embedding-model': 'the older name of embedding' },
  'agents.update': { ...leftOut, embedding: vectors, embedding_config: vectors },
  'agents.messages.reset': { add_default_initial_messages: 'the only default message is the system prompt' },
  'archives.create': { embedding: vectors, embedding_config: vectors },
  'folders.create': { embedding: vectors, embedding_chunk_size: vectors, embedding_config: vectors },
  'folders.update': { embedding_config: vectors },
  'tools.create': ofTools,
  'tools.update': ofTools,
  'tools.upsert': ofTools,
};

/** Fields whose names in requests differ from those in the client. */
export const renamed: Record<string, string> = { query_requires_approval: 'requires_approval' };
