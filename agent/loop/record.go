package loop

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// RunByID returns a run; ErrNotFound if it does not exist.
func (l *Loop) RunByID(ctx context.Context, org db.Org, id string) (Run, error) {
	r, err := db.One[Run](ctx, l.DB, runRows+` AND r.id = @id`, pgx.StrictNamedArgs{"org": org, "id": id})
	return r, db.OrNotFound(err, "Run with ID %s not found", id)
}

// Filter selects runs; an empty field selects all.
type Filter struct {
	AgentIDs     []string
	Conversation string // an id, or recall.DefaultConversation for each agent's
	Statuses     []string
	StopReason   string
	Background   *bool
	Active       bool // only runs that have not ended
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

// endedBefore returns the two newest runs of a conversation that ended before run r began.
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

// DeleteRun deletes the record of a finished run; its messages stay. ErrConflict if it has not ended.
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

// insert stores a new run of this server. ErrConflict if another run is working in the conversation.
func (l *Loop) insert(ctx context.Context, tx pgx.Tx, org db.Org, r Run, c recall.Conversation) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO runs (org, id, agent_key, conversation_key, background, request, owner)
		VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		org, r.ID, c.AgentKey, c.Key, r.Background, r.Options, l.Server)
	return db.Error(err)
}

// Step is one answer of a model, or one failure to get an answer.
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

// SetFeedback stores a client's opinion about a step. A nil feedback deletes it; nil tags leave the tags.
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

// UsageOf returns what the models of a run have counted so far.
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

// FirstSteps returns the id of each run's first step, by the run's id. Runs without a step are left out.
func (l *Loop) FirstSteps(ctx context.Context, org db.Org, runs []string) (map[string]string, error) {
	type row struct {
		Run  string `db:"run"`
		Step string `db:"step"`
	}
	rows, err := db.All[row](ctx, l.DB, `
		SELECT DISTINCT ON (r.key) r.id AS run, s.id AS step
		FROM runs r JOIN steps s ON s.org = r.org AND s.run_key = r.key
		WHERE r.org = $1 AND r.id = ANY ($2)
		ORDER BY r.key, s.created_at, s.key`, org, runs)
	first := make(map[string]string, len(rows))
	for _, r := range rows {
		first[r.Run] = r.Step
	}
	return first, err
}

// mayStore returns errCancelled or errTaken if a run may not store anything more. Until the transaction ends, nobody
// cancels the run or takes it over. The transaction must have locked the conversation.
func (l *Loop) mayStore(ctx context.Context, tx pgx.Tx, org db.Org, r Run) error {
	return l.standing(ctx, tx, org, r, ` FOR SHARE OF r`)
}

// standing returns an error if a run does not go on here: errTaken if another server works on it or has ended it;
// errCancelled if it was cancelled, or its agent, conversation or organization is gone. lock is the end of the query.
func (l *Loop) standing(ctx context.Context, d db.DB, org db.Org, r Run, lock string) error {
	taken, err := db.One[*bool](ctx, d, `
		SELECT CASE WHEN r.status <> 'running' OR r.owner <> $3 THEN true
		            WHEN r.cancelled_at IS NOT NULL OR c.deleted_at IS NOT NULL OR o.deleted_at IS NOT NULL THEN false
		       END
		FROM runs r
		JOIN conversations c ON c.org = r.org AND c.key = r.conversation_key
		JOIN organizations o ON o.org = r.org
		WHERE r.org = $1 AND r.key = $2`+lock, org, r.Key, l.Server)
	switch {
	case errors.Is(err, db.ErrNotFound):
		return errCancelled
	case err != nil || taken == nil:
		return err
	case *taken:
		return errTaken
	}
	return errCancelled
}
