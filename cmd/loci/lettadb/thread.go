package lettadb

import (
	"context"
	"time"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/store"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// thread is a conversation that is being stored.
type thread struct {
	id       string
	context  map[string]bool // ids of the messages in the model's view; nil if Letta does not say
	first    string          // the first of context, which may be a system prompt
	count    int             // number of stored messages
	prompts  []int
	ordinary []bool // by position: a model could see the message
	seen     []bool // by position: the model sees the message
	summary  *int
	hidden   clip.Summary // the range of earlier messages that are out of the model's view
	own      bool         // the conversation began with a system prompt in Loci's form
	last     time.Time
}

// sees sets the messages in the model's view.
func (t *thread) sees(ids []string) {
	t.context = map[string]bool{}
	for n, id := range ids {
		t.context[id] = true
		if n == 0 {
			t.first = id
		}
	}
}

// contextOf reads which messages of a conversation are in its model's view.
func (r *run) contextOf(ctx context.Context, target *thread) error {
	if !r.from.has("conversation_messages") {
		return nil
	}
	type place struct {
		ID   string `db:"message_id"`
		Seen bool   `db:"in_context"`
	}
	places, err := db.All[place](ctx, r.from.tx, `
		SELECT message_id, in_context FROM conversation_messages
		WHERE conversation_id = $1 AND NOT is_deleted ORDER BY position, id`, target.id)
	if err != nil || len(places) == 0 {
		return err
	}
	visible := []string{}
	for _, p := range places {
		if p.Seen {
			visible = append(visible, p.ID)
		}
	}
	target.sees(visible)
	return nil
}

// summarized returns a draft, changed if it is a summary. A summary gets the range that it covers. A summary of nothing
// becomes a message of the user, because older servers stored summaries that way.
func (t *thread) summarized(d recall.Draft) recall.Draft {
	if d.Role != recall.Summary {
		return d
	}
	if t.hidden.To == 0 || len(d.Content) == 0 || store.MarkSummary(&d, t.hidden) != nil {
		d.Role = recall.User
	}
	return d
}
