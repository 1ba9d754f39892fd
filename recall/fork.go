package recall

import (
	"context"
	"encoding/json"
	"iter"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
)

// Fork describes a copy of a conversation.
type Fork struct {
	ID     string      // the copy's id
	To     int         // position of the last copied message
	View   ContextView // what the model sees in the copy
	Prompt string      // the copy's own system prompt; it replaces the last copied one
	Hidden bool

	// Delegated says that a sub-agent works in the copy. Its messages have exactly the texts of the originals, including
	// the ids of long results and the positions that summaries cite. OnlyTools lists the tools that may be called in the
	// copy; nil allows all.
	Delegated bool
	OnlyTools []string
	Depth     int // depth of that sub-agent; a copy of a sub-agent's conversation is as deep as its original

	// Results are appended after the copied messages. They are results that stood behind To in the original, for calls
	// among the copied messages to the server's own tools. Those tools have run, and must not run again for the copy.
	Results []Message

	// Stats returns a summary's Stats for the copy. seqAt returns the Seq of the copy's message at a position.
	Stats func(stats json.RawMessage, seqAt func(position int) int64) (json.RawMessage, error)
}

// Of returns the copy as a Conversation without a key.
func (f Fork) Of(c Conversation) Conversation {
	f.View.Version = c.Version
	c.Key, c.ID, c.IsDefault, c.Messages, c.ContextView = 0, f.ID, false, f.To, f.View
	if c.Refusal != nil {
		c.Refusal = new(*c.Refusal)
		if c.Refusal.At > f.To {
			c.Refusal.At, c.Refusal.Closed, c.Refusal.Part = f.To, false, false
		}
		if c.Refusal.Unconfirmed = nil; c.Refusal.Failed != nil {
			c.Refusal.Failed = &FailedTurn{min(c.Refusal.Failed.At, f.To), c.Refusal.Failed.Status}
		}
	}
	c.Prompts = slices.DeleteFunc(slices.Clone(c.Prompts), func(position int) bool { return position > f.To })
	return c
}

// Fork copies a conversation up to a position into a new conversation of the same agent, with the same settings but
// without Conversation.Summary. Fork.Results follow the copied messages. The copied messages keep their positions and
// texts, except the system prompt; they get new ids, and have no otids and no runs. A search over several conversations
// finds only one of the copies, and Expand finds copies by the places of their originals. Later changes in one
// conversation do not affect the other. Fork returns the copy and the function seqAt that Fork.Stats also gets.
// ErrNotFound if the conversation was deleted.
func (s *Store) Fork(ctx context.Context, org db.Org, c Conversation, f Fork) (
	forked Conversation, seqAt func(position int) int64, err error) {
	err = db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		store := s.With(tx)
		if err := store.insertFork(ctx, org, c, f); err != nil {
			return err
		}
		head, err := event.Lock(ctx, tx, org, c.AgentID)
		if err != nil {
			return err
		}
		seqAt = func(position int) int64 { return head + int64(position) } // no other messages are appended after the head
		copying := copying{Store: store, org: org, from: c, Fork: f, seqAt: seqAt}
		if f.To > 0 {
			target := appending{Store: store, org: org, agentID: c.AgentID, conversation: f.ID, secondResults: true}
			if _, _, err := store.appendEach(ctx, target, copying.all(ctx)); err != nil {
				if _, goneErr := store.Conversation(ctx, org, c.AgentID, c.ID); isNotFound(goneErr) {
					return goneErr // nothing was copied, or not everything
				}
				return err
			}
		}
		if err := store.setView(ctx, org, f.Of(c)); err != nil {
			return err
		}
		forked, err = store.Conversation(ctx, org, c.AgentID, f.ID)
		if err == nil && forked.Messages != f.To+len(f.Results) { // the original was deleted meanwhile
			err = s.conversationError(ctx, org, db.ErrNotFound, c.AgentID, c.ID)
		}
		return err
	})
	return forked, seqAt, err
}

// insertFork creates the copy without its messages.
func (s *Store) insertFork(ctx context.Context, org db.Org, c Conversation, f Fork) error {
	err := db.Exec(ctx, s.db, `
		INSERT INTO conversations (id, org, agent_key, description, model, model_settings, context_window_limit,
		                           compaction_settings, hidden, forked_from, forked_to, delegated, only_tools,
		                           depth)
		SELECT $3, org, agent_key, description, model, model_settings, context_window_limit, compaction_settings, $4, key,
		       $5, $6, $7, greatest(depth, $8)
		FROM conversations WHERE org = $1 AND key = $2 AND deleted_at IS NULL`, org, c.Key, f.ID, f.Hidden, f.To,
		f.Delegated, f.OnlyTools, f.Depth)
	return s.conversationError(ctx, org, err, c.AgentID, c.ID)
}

// setView stores the view of a copy that already has its messages.
func (s *Store) setView(ctx context.Context, org db.Org, v Conversation) error {
	if v.Kept == nil {
		v.Kept = []int{}
	}
	if v.Clipped == nil {
		v.Clipped = []byte(`[]`)
	}
	return db.Exec(ctx, s.db, `
		UPDATE conversations
		SET prompts = @prompts, frame = @frame, first_visible = @first, kept = @kept, summary_position = @summary,
		    clipped = @clipped, hidden_tokens = @hidden, refusal = @refusal
		WHERE org = @org AND id = @id`,
		pgx.StrictNamedArgs{"org": org, "id": v.ID, "prompts": v.Prompts, "frame": v.Version, "first": v.FirstVisible,
			"kept": v.Kept, "summary": v.SummaryAt, "clipped": v.Clipped, "hidden": v.HiddenTokens, "refusal": v.Refusal})
}

// copiedAtOnce is the most messages in one read, pageBytes their most bytes.
const (
	copiedAtOnce = 100
	pageBytes    = 4 << 20
)

// copying holds what the steps of a fork share.
type copying struct {
	*Store
	Fork
	org   db.Org
	from  Conversation
	seqAt func(position int) int64
}

// all yields drafts of the copied messages, and then of the results that follow them.
func (c copying) all(ctx context.Context) iter.Seq2[Draft, error] {
	return func(yield func(Draft, error) bool) {
		for d, err := range c.drafts(ctx, 1, c.To) {
			if !yield(d, err) || err != nil {
				return
			}
		}
		results, err := c.whole(ctx, c.org, c.Results)
		if err != nil {
			yield(Draft{}, err)
			return
		}
		for _, m := range results {
			d, err := c.draft(m)
			if !yield(d, err) || err != nil {
				return
			}
		}
	}
}

// drafts yields drafts of the original's messages between two positions.
func (c copying) drafts(ctx context.Context, from, to int) iter.Seq2[Draft, error] {
	return func(yield func(Draft, error) bool) {
		for messages, err := range c.Pages(ctx, c.org, c.from, from, to) {
			if err == nil && !c.Delegated {
				messages, err = c.whole(ctx, c.org, messages)
			}
			if err != nil {
				yield(Draft{}, err)
				return
			}
			for _, m := range messages {
				d, err := c.draft(m)
				if !yield(d, err) || err != nil {
					return
				}
			}
		}
	}
}

// draft returns the draft that copies a message. The message's results must be whole.
func (c copying) draft(m Message) (Draft, error) {
	d := Draft{Role: m.Role, Name: m.Name, SenderID: m.SenderID, GroupID: m.GroupID, Model: m.Model, IsErr: m.IsErr,
		Purpose: m.Purpose, CreatedAt: &m.CreatedAt, Refused: m.Refused, Provenance: m.Provenance}
	if prompts := c.Of(c.from).Prompts; m.Position == prompts[len(prompts)-1] {
		d.Content = instruct(c.Prompt).Content
		return d, nil
	}
	if c.Delegated {
		d.Content = m.Content
		d.SharedClips = sharedClips(m.Content)
		return d, nil
	}
	for _, p := range m.Content {
		p.Clip = nil // Append makes a new Clip
		if m.Role == Summary && p.Stats != nil {
			var err error
			if p.Stats, err = c.Stats(p.Stats, c.seqAt); err != nil {
				return d, err
			}
		}
		d.Content = append(d.Content, p)
	}
	return d, nil
}

// sharedClips returns the Clips of parts in a copy that shares its long results with the original.
func sharedClips(parts []Part) []*Clip {
	clips := make([]*Clip, len(parts))
	for i, p := range parts {
		clips[i] = p.Clip
	}
	return clips
}

// Between returns a conversation's messages between two positions, in order. Long results are cut to their beginnings.
func (s *Store) Between(ctx context.Context, org db.Org, c Conversation, from, to int) ([]Message, error) {
	return db.All[Message](ctx, s.db, `
		SELECT `+messageColumns+` FROM `+messageTables+`
		WHERE m.org = $1 AND m.conversation_key = $2 AND m.position BETWEEN $3 AND $4
		ORDER BY m.position`, org, c.Key, from, to)
}

// Pages yields what Between returns, page by page. An error is the last item.
func (s *Store) Pages(ctx context.Context, org db.Org, c Conversation, from, to int) iter.Seq2[[]Message, error] {
	return func(yield func([]Message, error) bool) {
		for most := copiedAtOnce; from <= to; {
			page, whole, err := db.Within(ctx, s.db, db.Budget[Message]{Bytes: pageBytes}, `
				SELECT `+messageColumns+` FROM `+messageTables+`
				WHERE m.org = $1 AND m.conversation_key = $2 AND m.position BETWEEN $3 AND $4
				ORDER BY m.position
				LIMIT $5`, org, c.Key, from, to, most)
			if len(page) == 0 && err == nil || !yield(page, err) || err != nil {
				return
			}
			from, most = page[len(page)-1].Position+1, nextPage(most, len(page), copiedAtOnce, whole)
		}
	}
}

// nextPage returns how many messages to read next. most were asked for and had were read; whole is false if a limit of
// bytes cut the page. Messages are similar in size, so asking for as many as fitted wastes little reading.
func nextPage(most, had, limit int, whole bool) int {
	if !whole {
		return had
	}
	return min(2*most, limit)
}

// ResultsBehind returns the results, behind a position, of calls at or before it. It reads up to the next message of
// the user or the assistant. It returns only results of tools for which ran reports that the server itself ran them.
// Long results are cut to their beginnings.
func (s *Store) ResultsBehind(ctx context.Context, org db.Org, c Conversation, position int,
	ran func(tool string) bool) (all []Message, err error) {
	for from := position + 1; from <= c.Messages; from += copiedAtOnce {
		messages, err := s.Between(ctx, org, c, from, from+copiedAtOnce-1)
		if err != nil {
			return nil, err
		}
		for _, m := range messages {
			if m.Role == User || m.Role == Assistant {
				return all, nil
			}
			calls, err := s.calledBefore(ctx, org, c, m, position)
			if err != nil {
				return nil, err
			}
			m.Content = slices.DeleteFunc(m.Content, func(p Part) bool {
				tool, found := calls[p.CallID]
				return p.Type != ToolReturn || p.Approval == Returned || p.Approval == Denied || !found || !ran(tool)
			})
			if m.Role == Tool && len(m.Content) > 0 {
				all = append(all, m)
			}
		}
	}
	return all, nil
}

// calledBefore maps call id → tool name for the calls up to position that m answers.
func (s *Store) calledBefore(ctx context.Context, org db.Org, c Conversation, m Message, position int) (
	map[string]string, error) {
	rows, err := db.All[toolCall](ctx, s.db, `
		SELECT call_id, name, position FROM tool_calls
		WHERE org = $1 AND conversation_key = $2 AND result_position = $3 AND position <= $4`,
		org, c.Key, m.Position, position)
	tools := make(map[string]string, len(rows))
	for _, r := range rows {
		tools[r.ID] = r.Name
	}
	return tools, err
}

// PositionOf returns the position in a conversation of the message with this seq in the agent's log. ErrNotFound if the
// conversation has no such message.
func (s *Store) PositionOf(ctx context.Context, org db.Org, c Conversation, seq int64) (int, error) {
	return db.One[int](ctx, s.db, `
		SELECT position FROM messages WHERE org = $1 AND agent_key = $2 AND seq = $3 AND conversation_key = $4`,
		org, c.AgentKey, seq, c.Key)
}
