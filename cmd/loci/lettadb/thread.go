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
	context  map[string]bool // ids of the messages that the model sees; nil if Letta does not say
	first    string          // of these, which is the system prompt if it is of that role
	count    int             // of stored messages
	prompts  []int
	ordinary []bool // by position: a model could see the message
	seen     []bool // by position: the model sees it
	summary  *int
	hidden   clip.Summary // the range of messages so far that the model does not see
	own      bool         // it began with the system prompt as Loci compiles it
	last     time.Time
}

// sees says which messages the model sees.
func (t *thread) sees(ids []string) {
	t.context = map[string]bool{}
	for n, id := range ids {
		t.context[id] = true
		if n == 0 {
			t.first = id
		}
	}
}

// contextOf reads which messages of a conversation its model sees.
func (r *run) contextOf(ctx context.Context, of *thread) error {
	if !r.from.has("conversation_messages") {
		return nil
	}
	type place struct {
		ID   string `db:"message_id"`
		Seen bool   `db:"in_context"`
	}
	places, err := db.All[place](ctx, r.from.tx, `
		SELECT message_id, in_context FROM conversation_messages
		WHERE conversation_id = $1 AND NOT is_deleted ORDER BY position, id`, of.id)
	if err != nil || len(places) == 0 {
		return err
	}
	seen := []string{}
	for _, p := range places {
		if p.Seen {
			seen = append(seen, p.ID)
		}
	}
	of.sees(seen)
	return nil
}

// summarized returns a draft. A summary gets the range that it is of; one of nothing becomes a message of the user,
// which is how older servers stored summaries.
func (t *thread) summarized(d recall.Draft) recall.Draft {
	if d.Role != recall.Summary {
		return d
	}
	if t.hidden.To == 0 || len(d.Content) == 0 || store.MarkSummary(&d, t.hidden) != nil {
		d.Role = recall.User
	}
	return d
}
