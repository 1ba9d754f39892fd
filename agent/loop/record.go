package loop

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// Statuses of runs and steps.
const (
	Running   = "running"
	Completed = "completed"
	Failed    = "failed"
	Cancelled = "cancelled"
	Succeeded = "success"
)

// The reasons for which a run stops, under Letta's names.
const (
	EndTurn          = "end_turn"
	MaxSteps         = "max_steps"
	ToolRule         = "tool_rule"
	RequiresApproval = "requires_approval"
	StopCancelled    = "cancelled"
	MaxTokens        = "max_tokens_exceeded" //nolint:gosec // no credential
	StopError        = "error"
	ModelError       = "llm_api_error"
	BrokenAnswer     = "invalid_llm_response"
	BrokenCalls      = "invalid_tool_call"
	NoToolCall       = "no_tool_call"
	NoCredits        = "insufficient_credits"
	PromptTooLarge   = "context_window_overflow_in_system_prompt"
)

// statusOf returns the status of a run that stopped for a reason, as Letta has it.
func statusOf(stop string) string {
	switch stop {
	case EndTurn, MaxSteps, ToolRule, RequiresApproval:
		return Completed
	case StopCancelled:
		return Cancelled
	}
	return Failed
}

// Options are what a request asks of its run.
type Options struct {
	MaxSteps     int             `json:"max_steps"`
	ClientTools  []ClientTool    `json:"client_tools,omitempty"`
	Model        *string         `json:"model,omitempty"`  // a handle, in place of the conversation's
	System       *string         `json:"system,omitempty"` // instructions, in place of the agent's
	Skills       []Skill         `json:"skills,omitempty"`
	Compactions  bool            `json:"compactions,omitempty"` // show the summaries that the run makes
	StreamTokens bool            `json:"stream_tokens,omitempty"`
	Approved     []string        `json:"approved,omitempty"`     // ids of calls that the client approved
	Approvals    []Approval      `json:"approvals,omitempty"`    // and denials, as the client sent them
	Waiting      *Waiting        `json:"waiting,omitempty"`      // calls of an earlier run that were shown again
	OTIDs        []string        `json:"otids,omitempty"`        // of the approvals and of the messages with them
	InputSHA256  []byte          `json:"input_sha256,omitempty"` // of the messages with approvals, as the client sent them
	Following    []recall.Draft  `json:"following,omitempty"`    // messages that follow the approved calls' results
	View         json.RawMessage `json:"view,omitempty"`         // how the client wants to see messages; the caller's
	KeyID        string          `json:"key_id,omitempty"`       // of the API key of the request
	Resumes      string          `json:"resumes,omitempty"`      // the first run of the same request, which failed
	Retried      []string        `json:"retried,omitempty"`      // otids of messages that say what those of Resumes do
	Follows      []string        `json:"follows,omitempty"`      // failed runs whose messages the request began with
	Refused      *Refused        `json:"refused,omitempty"`      // its prompt was refused: the run ends so
}

// Waiting is a message with calls that wait for the client.
type Waiting struct {
	MessageID string   `json:"message_id"`
	Calls     []string `json:"calls"` // their ids
}

// of returns the event that shows the calls of the message.
func (w Waiting) of(m recall.Message) Event {
	m.Content = slices.DeleteFunc(slices.Clone(m.Content), func(p recall.Part) bool {
		return p.Type != recall.ToolCall || !slices.Contains(w.Calls, p.CallID)
	})
	for i := range m.Content {
		m.Content[i].Approval = recall.Asked
	}
	return Event{Message: &m}
}

// ClientTool is a tool that the client runs.
type ClientTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

// Skill is a text that the client has, of which the model is told.
type Skill struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Location    string `json:"location"`
}

// Run is the work on one request.
type Run struct {
	Key          int64      `db:"key"`
	ID           string     `db:"id"`
	AgentID      string     `db:"agent_id"`
	AgentKey     int64      `db:"agent_key"`
	Conversation string     `db:"conversation"` // its id
	IsDefault    bool       `db:"is_default"`   // the conversation is the agent's default one
	Status       string     `db:"status"`
	StopReason   *string    `db:"stop_reason"`
	ErrorType    *string    `db:"error_type"`
	Error        *string    `db:"error"`
	ErrorStatus  *int       `db:"error_status"`
	ErrorDetail  *string    `db:"error_detail"`
	Background   bool       `db:"background"`
	Options      Options    `db:"request"`
	FirstTokenAt *time.Time `db:"first_token_at"`
	CancelledAt  *time.Time `db:"cancelled_at"`
	CreatedAt    time.Time  `db:"created_at"`
	CompletedAt  *time.Time `db:"completed_at"`
}

const runColumns = `r.key, r.id, a.id AS agent_id, r.agent_key, c.id AS conversation, c.is_default, r.status,
	r.stop_reason, r.error_type, r.error, r.error_status, r.error_detail, r.background, r.request, r.first_token_at,
	r.cancelled_at, r.created_at, r.completed_at`

const runRows = `SELECT ` + runColumns + `
	FROM runs r
	JOIN agents a ON a.org = r.org AND a.key = r.agent_key
	JOIN conversations c ON c.org = r.org AND c.key = r.conversation_key
	WHERE r.org = @org`

// RunByID returns a run; ErrNotFound if it does not exist.
func (l *Loop) RunByID(ctx context.Context, org db.Org, id string) (Run, error) {
	r, err := db.One[Run](ctx, l.DB, runRows+` AND r.id = @id`, pgx.StrictNamedArgs{"org": org, "id": id})
	return r, db.OrNotFound(err, "Run with ID %s not found", id)
}

// Filter selects runs; an empty field selects all.
type Filter struct {
	AgentIDs     []string
	Conversation string // an id, or recall.DefaultConversation of each agent
	Statuses     []string
	StopReason   string
	Background   *bool
	Active       bool // only those that have not ended
}

// Runs lists runs.
func (l *Loop) Runs(ctx context.Context, org db.Org, f Filter, p db.Page) ([]Run, error) {
	return db.List[Run](ctx, l.DB, p, runRows+`
		AND (@agents::text[] IS NULL OR a.id = ANY (@agents))
		AND (@conversation IN ('', c.id) OR @conversation = 'default' AND c.is_default)
		AND (@statuses::text[] IS NULL OR r.status = ANY (@statuses)) AND @stop_reason IN ('', r.stop_reason)
		AND (@background::boolean IS NULL OR r.background = @background) AND (NOT @active OR r.status = 'running')`,
		pgx.StrictNamedArgs{"org": org, "agents": f.AgentIDs, "conversation": f.Conversation, "statuses": f.Statuses,
			"stop_reason": f.StopReason, "background": f.Background, "active": f.Active})
}

// activeIn returns the run that works in a conversation; ErrNotFound if there is none.
func activeIn(ctx context.Context, d db.DB, org db.Org, conversation string) (Run, error) {
	return db.One[Run](ctx, d, runRows+` AND c.id = @conversation AND r.status = 'running'`,
		pgx.StrictNamedArgs{"org": org, "conversation": conversation})
}

// CheckIdle returns a *BusyError if a run works in a conversation.
func (l *Loop) CheckIdle(ctx context.Context, org db.Org, conversation string) error {
	r, err := activeIn(ctx, l.DB, org, conversation)
	if errors.Is(err, db.ErrNotFound) {
		return nil
	}
	return cmp.Or(err, error(&BusyError{r.ID}))
}

// endedBefore returns the two newest runs of a conversation that ended before another one began.
func (l *Loop) endedBefore(ctx context.Context, org db.Org, r Run, conversation int64) ([]Run, error) {
	return db.All[Run](ctx, l.DB, runRows+` AND c.key = @conversation AND r.status <> 'running' AND r.id <> @run
		ORDER BY r.created_at DESC, r.key DESC LIMIT 2`,
		pgx.StrictNamedArgs{"org": org, "conversation": conversation, "run": r.ID})
}

// HasRun reports whether a conversation has a run, ended or not.
func (l *Loop) HasRun(ctx context.Context, org db.Org, conversation string) (bool, error) {
	return db.One[bool](ctx, l.DB, `
		SELECT EXISTS (SELECT FROM runs r JOIN conversations c ON c.org = r.org AND c.key = r.conversation_key
		               WHERE r.org = $1 AND c.org = $1 AND c.id = $2)`, org, conversation)
}

// DeleteRun deletes the record of a run that has ended; its messages stay. ErrConflict if it has not.
func (l *Loop) DeleteRun(ctx context.Context, org db.Org, id string) (Run, error) {
	r, err := l.RunByID(ctx, org, id)
	if err != nil {
		return r, err
	}
	if r.Status == Running {
		return r, db.Conflict("Run %s is still running: cancel it first (POST /v1/agents/%s/messages/cancel)", id, r.AgentID)
	}
	return r, db.Exec(ctx, l.DB, `DELETE FROM runs WHERE org = $1 AND id = $2 AND status <> 'running'`, org, id)
}

// insert stores a new run of this server. ErrConflict if another one runs in the conversation.
func (l *Loop) insert(ctx context.Context, tx pgx.Tx, org db.Org, r Run, c recall.Conversation) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO runs (org, id, agent_key, conversation_key, background, request, owner)
		VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		org, r.ID, c.AgentKey, c.Key, r.Background, r.Options, l.Server)
	return db.Error(err)
}

// setOptions stores the options of a run.
func setOptions(ctx context.Context, d db.DB, org db.Org, r Run) error {
	return db.Exec(ctx, d, `UPDATE runs SET request = $3 WHERE org = $1 AND id = $2`, org, r.ID, r.Options)
}

// Failure returns why the run failed; nil if it did not.
func (r Run) Failure() *Failure {
	if r.ErrorType == nil {
		return nil
	}
	f := Failure{Type: *r.ErrorType, Text: *r.Error}
	if r.ErrorStatus != nil {
		f.Status = *r.ErrorStatus
	}
	if r.ErrorDetail != nil {
		f.Detail = *r.ErrorDetail
	}
	return &f
}

// Step is one answer of a model, or a failure to get one.
type Step struct {
	Key           int64     `db:"key"`
	ID            string    `db:"id"`
	RunID         string    `db:"run_id"`
	AgentID       string    `db:"agent_id"`
	Model         string    `db:"model"`
	Handle        string    `db:"handle"`
	Provider      string    `db:"provider"`
	EndpointType  string    `db:"endpoint_type"`
	ContextWindow int       `db:"context_window"`
	Status        string    `db:"status"`
	StopReason    *string   `db:"stop_reason"`
	ErrorType     *string   `db:"error_type"`
	Error         *string   `db:"error"`
	Prompt        int       `db:"prompt_tokens"`
	Completion    int       `db:"completion_tokens"`
	Cached        int       `db:"cached_tokens"`
	CacheWrite    int       `db:"cache_write_tokens"`
	Reasoning     int       `db:"reasoning_tokens"`
	ModelNS       int64     `db:"model_ns"`
	Feedback      *string   `db:"feedback"`
	Tags          []string  `db:"tags"`
	CreatedAt     time.Time `db:"created_at"`
}

const stepRows = `SELECT s.key, s.id, r.id AS run_id, a.id AS agent_id, s.model, s.handle, s.provider, s.endpoint_type,
		s.context_window, s.status, s.stop_reason, s.error_type, s.error, s.prompt_tokens, s.completion_tokens,
		s.cached_tokens, s.cache_write_tokens, s.reasoning_tokens, s.model_ns, s.feedback, s.tags, s.created_at
	FROM steps s
	JOIN runs r ON r.org = s.org AND r.key = s.run_key
	JOIN agents a ON a.org = s.org AND a.key = s.agent_key
	WHERE s.org = @org`

// StepByID returns a step; ErrNotFound if it does not exist.
func (l *Loop) StepByID(ctx context.Context, org db.Org, id string) (Step, error) {
	s, err := db.One[Step](ctx, l.DB, stepRows+` AND s.id = @id`, pgx.StrictNamedArgs{"org": org, "id": id})
	return s, db.OrNotFound(err, "Step with ID %s not found", id)
}

// StepFilter selects steps; an empty field selects all.
type StepFilter struct {
	RunID, AgentID, Model, Feedback string
	From, To                        *time.Time
	HasFeedback                     *bool
	Tags                            []string
}

// Steps lists steps.
func (l *Loop) Steps(ctx context.Context, org db.Org, f StepFilter, p db.Page) ([]Step, error) {
	return db.List[Step](ctx, l.DB, p, stepRows+`
		AND @run IN ('', r.id) AND @agent IN ('', a.id) AND @model IN ('', s.model)
		AND @feedback IN ('', coalesce(s.feedback, '-'))
		AND (@from::timestamptz IS NULL OR s.created_at >= @from) AND (@to::timestamptz IS NULL OR s.created_at <= @to)
		AND (@has::boolean IS NULL OR (s.feedback IS NOT NULL) = @has) AND (@tags::text[] IS NULL OR s.tags && @tags)`,
		pgx.StrictNamedArgs{"org": org, "run": f.RunID, "agent": f.AgentID, "model": f.Model, "feedback": f.Feedback,
			"from": f.From, "to": f.To, "has": f.HasFeedback, "tags": f.Tags})
}

// SetFeedback stores what a client thinks of a step. A nil feedback deletes it; nil tags stay.
func (l *Loop) SetFeedback(ctx context.Context, org db.Org, id string, feedback *string, tags []string) (Step, error) {
	err := db.Exec(ctx, l.DB, `
		UPDATE steps SET feedback = $3, tags = coalesce($4, tags) WHERE org = $1 AND id = $2`, org, id, feedback, tags)
	if err != nil {
		return Step{}, db.OrNotFound(err, "Step with ID %s not found", id)
	}
	return l.StepByID(ctx, org, id)
}

func insertStep(ctx context.Context, d db.DB, org db.Org, r Run, s Step) error {
	_, err := d.Exec(ctx, `
		INSERT INTO steps (org, id, run_key, agent_key, model, handle, provider, endpoint_type, context_window, status,
		                   stop_reason, error_type, error, prompt_tokens, completion_tokens, cached_tokens,
		                   cache_write_tokens, reasoning_tokens, model_ns)
		VALUES (@org, @id, @run, @agent, @model, @handle, @provider, @endpoint_type, @window, @status,
		        @stop, @error_type, @error, @prompt, @completion, @cached, @cache_write, @reasoning, @model_ns)`,
		pgx.StrictNamedArgs{"org": org, "id": s.ID, "run": r.Key, "agent": r.AgentKey, "model": s.Model,
			"handle": s.Handle, "provider": s.Provider, "endpoint_type": s.EndpointType, "window": s.ContextWindow,
			"status": s.Status, "stop": s.StopReason, "error_type": s.ErrorType, "error": s.Error, "prompt": s.Prompt,
			"completion": s.Completion, "cached": s.Cached, "cache_write": s.CacheWrite, "reasoning": s.Reasoning,
			"model_ns": s.ModelNS})
	return db.Error(err)
}

// UsageOf returns what the models of a run counted so far.
func (l *Loop) UsageOf(ctx context.Context, org db.Org, r Run) (Usage, error) {
	return db.One[Usage](ctx, l.DB, `
		SELECT count(*) FILTER (WHERE status = 'success')::integer AS steps,
		       coalesce(sum(prompt_tokens), 0)::integer AS prompt_tokens,
		       coalesce(sum(completion_tokens), 0)::integer AS completion_tokens,
		       coalesce(sum(cached_tokens), 0)::integer AS cached_tokens,
		       coalesce(sum(cache_write_tokens), 0)::integer AS cache_write_tokens,
		       coalesce(sum(reasoning_tokens), 0)::integer AS reasoning_tokens,
		       coalesce((array_agg(prompt_tokens + completion_tokens ORDER BY created_at DESC, key DESC)
		                 FILTER (WHERE status = 'success'))[1], 0)::integer AS context_tokens
		FROM steps WHERE org = $1 AND run_key = $2`, org, r.Key)
}

// storeEnd stores the end of the run. ErrNotFound if it is gone, has ended, or is another server's; errCancelled if
// calls were to wait for the client and the run was cancelled. All transactions lock in this order: conversations,
// agents, runs.
func (w *worker) storeEnd(ctx context.Context, tx pgx.Tx, e End) error {
	var failure Failure
	if e.Failure != nil {
		failure = *e.Failure
	}
	durationMS, err := db.One[int64](ctx, tx, `
		SELECT round(extract(epoch FROM now() - created_at) * 1000)::bigint
		FROM runs WHERE org = $1 AND key = $2 AND status = 'running' AND owner = $3`, w.org, w.run.Key, w.Server)
	if err != nil {
		return err
	}
	if err := w.Recall.With(tx).RunEnded(ctx, w.org, w.run.Conversation); err != nil {
		return err
	}
	last := agent.LastRun{DurationMS: &durationMS, StopReason: &e.StopReason}
	if err := agent.RunEnded(ctx, tx, w.org, w.run.AgentKey, last); err != nil {
		return err
	}
	err = db.Exec(ctx, tx, `
		UPDATE runs SET status = @status, stop_reason = @reason, completed_at = now(), error_type = nullif(@type, ''),
		       error = nullif(@error, ''), error_status = nullif(@error_status, 0),
		       error_detail = nullif(@error_detail, '')
		WHERE org = @org AND key = @key AND status = 'running' AND owner = @server
		  AND (cancelled_at IS NULL OR @reason <> 'requires_approval')`,
		pgx.StrictNamedArgs{"org": w.org, "key": w.run.Key, "status": statusOf(e.StopReason), "reason": e.StopReason,
			"type": failure.Type, "error": failure.Text, "error_status": failure.Status, "error_detail": failure.Detail,
			"server": w.Server})
	if e.StopReason == RequiresApproval && errors.Is(err, db.ErrNotFound) {
		return errCancelled
	}
	return err
}

// errCancelled means that a run was cancelled, or has ended.
var errCancelled = errors.New("the run was cancelled")

// errTaken means that another server works on a run.
var errTaken = errors.New("another server has taken the run over")

// mayStore returns an error if a run may store nothing more: errCancelled or errTaken. Until the transaction ends,
// nobody cancels the run or takes it over. The transaction has locked the conversation.
func (l *Loop) mayStore(ctx context.Context, tx pgx.Tx, org db.Org, r Run) error {
	owner, err := db.One[string](ctx, tx, `
		SELECT r.owner FROM runs r JOIN organizations o ON o.org = r.org AND o.deleted_at IS NULL
		WHERE r.org = $1 AND r.key = $2 AND r.status = 'running' AND r.cancelled_at IS NULL
		FOR SHARE OF r`,
		org, r.Key)
	switch {
	case errors.Is(err, db.ErrNotFound):
		return errCancelled
	case err == nil && owner != l.Server:
		return errTaken
	}
	return err
}
