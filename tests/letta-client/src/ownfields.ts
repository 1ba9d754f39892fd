// The fields that Loci adds to Letta's types. An answer with any other field that a type does not have fails the run.

const makers = ['made_by', 'changed_by'];
const block = ['version', 'created_at', 'updated_at', 'attached_by'];
const message = ['agent_id', 'conversation_id', 'position', 'seq', 'purpose', 'refused', 'provenance'];
const result = ['score', 'position', 'seq', 'context'];
const validity = ['valid_from', 'valid_until', 'superseded_by', 'ended'];
const file = ['total_lines', 'total_pages', 'pages_read', 'omitted', 'read_by', 'sha256', 'metadata', 'encoding', 'encoding_confidence',
  'language', 'language_given', 'provenance'];

export const ownFields: Record<string, string[]> = {
  AgentState: ['context_window_limit', 'tool_set', 'made_for', 'prompt', 'recall_scope', 'open_on_attach', 'working_memory', 'flush', 'handover',
    'skills', 'gateway', 'recall'],
  Block: block,
  BlockResponse: block,
  SystemMessage: message,
  UserMessage: message,
  AssistantMessage: message,
  ReasoningMessage: message,
  HiddenReasoningMessage: message,
  ToolCallMessage: message,
  ToolReturnMessage: message,
  ApprovalRequestMessage: message,
  ApprovalResponseMessage: message,
  SummaryMessage: message,
  'SummaryMessage.CompactionStats': ['how', 'model', 'from_position', 'to_position', 'from_seq', 'to_seq'],
  'LettaStreamingResponse.LettaStopReason': ['seq_id'],
  'LettaStreamingResponse.LettaUsageStatistics': ['seq_id'],
  AgentImportFileResponse: ['left_out'],
  Passage: ['stored_at', 'similar', 'language', 'language_given', 'provenance', ...validity],
  'PassageSearchResponse.Result': ['relevance', ...validity],
  Archive: ['embedding_status', 'user_id', ...makers],
  Folder: ['vector_db_provider', 'skills', 'user_id', ...makers],
  FolderListResponse: ['skills', 'user_id', ...makers],
  Tool: makers,
  Identity: makers,
  'AgentState.Identity': makers,
  'AgentState.Source': ['skills', 'user_id', ...makers],
  FileUploadResponse: file,
  FileRetrieveResponse: file,
  FileListResponse: [...file, 'is_pinned'],
  Conversation: ['hidden', 'compaction_settings', 'identity_id', 'message_count', 'embedding_status', 'held_until',
    'isolated_block_ids'],
  Run: ['job_type', 'user_id'],
  Step: ['created_at'],
  CompactionResponse: ['plan', 'compaction', 'unchanged'],
  'MessageSearchResponse.UserMessageListResult': result,
  'MessageSearchResponse.AssistantMessageListResult': result,
  LettaResponse: ['run_id', 'error'],
  // A reasoning goes back in the field in which a model's server sent it, which is none of OpenAI's own.
  ChatCompletionAssistantMessageParam: ['reasoning_content'],
};
