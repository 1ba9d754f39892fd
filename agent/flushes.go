package agent

import (
	"context"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// The statuses of a flush.
const (
	FlushOpen      = "open"
	FlushDone      = "done"      // the model wrote something
	FlushNothing   = "nothing"   // the model wrote nothing
	FlushFailed    = "failed"    // the model did not answer
	FlushExpired   = "expired"   // no answer came in time
	FlushOvertaken = "overtaken" // the conversation went on
	FlushSkipped   = "skipped"   // the turn did not fit the window
)

// Flush is a silent turn in which an agent's model writes down what must survive. There is at most one per view of a
// conversation; a view lasts from one compaction to the next.
type Flush struct {
	ID               string     `db:"id" json:"id"`
	AgentID          string     `db:"agent_id" json:"agent_id"`
	ConversationID   string     `db:"conversation_id" json:"conversation_id"`
	Kind             string     `db:"kind" json:"kind" enum:"flush,checkpoint" doc:"As the agent's settings name it."`
	Reason           string     `db:"reason" json:"reason" enum:"compaction,tokens" doc:"What began it."`
	ByCaller         bool       `db:"by_caller" json:"by_caller" doc:"A program's own loop was handed the turn."`
	Status           string     `db:"status" json:"status" enum:"open,done,nothing,failed,expired,overtaken,skipped"`
	Why              *string    `db:"why" json:"why" doc:"Why it failed."`
	Position         int        `db:"position" json:"position" doc:"Of its first message in the conversation."`
	Steps            int        `db:"steps" json:"steps" doc:"Answers of the model."`
	Calls            int        `db:"calls" json:"calls" doc:"Of tools, that succeeded."`
	PromptTokens     int        `db:"prompt_tokens" json:"prompt_tokens"`
	CompletionTokens int        `db:"completion_tokens" json:"completion_tokens"`
	Deadline         time.Time  `db:"deadline" json:"deadline" doc:"When the turn ends, whatever comes back."`
	CreatedAt        time.Time  `db:"created_at" json:"created_at"`
	EndedAt          *time.Time `db:"ended_at" json:"ended_at" doc:"Null while it is open."`

	View    int  `db:"view" json:"-"`
	Settled bool `db:"settled" json:"-"`
}

// overtaking selects the messages by which a conversation went on after an open flush f began. In SQL, org is the
// parameter with the organization.
func overtaking(org string) string {
	return `
	FROM messages m
	WHERE m.org = ` + org + ` AND m.conversation_key = f.conversation_key AND m.position > f.position AND f.status = 'open'
	  AND m.purpose = '' AND m.role IN ('user', 'assistant', 'tool')`
}

var flushRows = `
	SELECT f.id, a.id AS agent_id, c.id AS conversation_id, f.kind, f.reason, f.by_caller,
	       CASE WHEN f.status <> 'open' THEN f.status WHEN went_on.at < f.deadline THEN 'overtaken'
	            WHEN f.deadline <= now() THEN 'expired' ELSE 'open' END AS status, f.why,
	       f.position, f.steps, f.calls, f.prompt_tokens, f.completion_tokens, f.deadline, f.created_at,
	       CASE WHEN f.status <> 'open' THEN f.ended_at WHEN went_on.at < f.deadline THEN went_on.at
	            WHEN f.deadline <= now() THEN f.deadline END AS ended_at, f.view, f.settled
	FROM flushes f
	JOIN conversations c ON c.org = f.org AND c.key = f.conversation_key
	JOIN agents a ON a.org = f.org AND a.key = f.agent_key
	LEFT JOIN LATERAL (
		SELECT greatest(f.created_at, least(m.created_at, now())) AS at` + overtaking("$1") + `
		ORDER BY m.position
		LIMIT 1) went_on ON true
	WHERE f.org = $1 AND f.conversation_key = $2 `

// Flushes lists the flushes of a conversation, the newest first.
func (s *Store) Flushes(ctx context.Context, org db.Org, c recall.Conversation, limit int) ([]Flush, error) {
	return db.All[Flush](ctx, s.DB, flushRows+`ORDER BY f.view DESC LIMIT $3`, org, c.Key, limit)
}

// flushOf returns the flush of the conversation's present view; ErrNotFound if there is none.
func (s *Store) flushOf(ctx context.Context, org db.Org, c recall.Conversation) (Flush, error) {
	return db.One[Flush](ctx, s.DB, flushRows+`AND f.view = $3`, org, c.Key, c.Version)
}

// FlushTurn is a flush with what its model is asked.
type FlushTurn struct {
	Flush
	Instructions string   `json:"instructions" doc:"The last message of the turn's first request."`
	Tools        []string `json:"tools" doc:"The only ones that the model has for this turn."`
	Must         string   `json:"must_call,omitempty" doc:"The tool that the model must call; the request says so too."`
	StepsLeft    int      `json:"steps_left" doc:"Answers of the model, this one included."`
}

// outcome returns the status of a flush after its model has nothing more to do.
func (f Flush) outcome() string {
	if f.Calls > 0 {
		return FlushDone
	}
	return FlushNothing
}

// FlushProgress is what a step adds to a flush.
type FlushProgress struct {
	Steps, Calls, Prompt, Completion int
	Ends                             bool // it is the turn's last step
}
