package agent

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
	"github.com/loci-memory/loci/recall/tokens"
)

// StoredPrompt is a prompt that was handed out and stored: the request, ready to be sent, and facts about it.
type StoredPrompt struct {
	AgentID        string `json:"agent_id"`
	ConversationID string `json:"conversation_id"`
	Format         Format `json:"format" enum:"openai,anthropic,responses"`
	Seq            int64  `json:"seq" doc:"Position of the agent's newest event when it was first handed out."`
	Window         int    `json:"context_window" doc:"In tokens; 32768 is assumed if the model's is not known."`
	Tokens         Tokens `json:"tokens" doc:"What the parts of the request take of the window."`
	SHA256         string `json:"sha256" doc:"Of the request's bytes, in hexadecimal digits."`

	Pending []chat.PendingCall `json:"pending_tool_calls" doc:"Calls at the end without a result, which providers want."`

	LeftOut []string `json:"settings_left_out,omitempty" doc:"Settings of the model that the format has no name for."`

	Purpose string     `json:"purpose,omitempty" enum:"flush" doc:"Of a silent turn, for callers that accept it."`
	Flush   *FlushTurn `json:"flush,omitempty" doc:"The silent turn: the next step is its answer."`

	Request json.RawMessage `json:"-"` // in the format: tools, system prompt, messages

	Answered bool `json:"-"` // the model spoke last, and called no tool; set by NextPrompt only
	Unasked  bool `json:"-"` // nobody has spoken since the last summary; set by NextPrompt only
}

// NextPrompt assembles the next prompt of a conversation, and compacts the conversation if the prompt does not fit. It
// stores the prompt for PromptAt, unless the last stored one is the same or storing is impossible. ErrInvalid if the
// view is too long for any window; ErrConflict if it has no message and the target wants one.
func (s *Store) NextPrompt(ctx context.Context, org db.Org, target PromptTarget) (StoredPrompt, error) {
	if err := s.recallFor(ctx, org, target); err != nil {
		return StoredPrompt{}, orNoAgent(err, target.AgentID)
	}
	p, err := s.assembleFitting(ctx, org, target)
	if err == nil && target.NotEmpty && len(p.Messages) == 0 && p.summary == "" {
		err = noMessage(p.Conversation)
	}
	if err != nil {
		return StoredPrompt{}, err
	}
	r, leftOut, err := p.request()
	if err != nil {
		return StoredPrompt{}, err
	}
	out := p.with(r, leftOut)
	err = db.UnlessFull(db.Tx(ctx, s.DB, func(tx pgx.Tx) error { return s.With(tx).storePrompt(ctx, org, p, out, r) }))
	if errors.Is(err, errErased) {
		return s.NextPrompt(ctx, org, target)
	}
	if err == nil {
		err = db.UnlessFull(errors.Join(s.noteGrowth(ctx, org, p), s.checkWhenIdle(ctx, org, p)))
	}
	return out, orNoAgent(err, target.AgentID)
}

// CheckNotEmpty returns an ErrConflict if nobody has said anything in a conversation, so that it has no prompt.
func CheckNotEmpty(c recall.Conversation) error {
	if c.Messages > len(c.Prompts) {
		return nil
	}
	return noMessage(c)
}

func noMessage(c recall.Conversation) error {
	return db.Conflict("the conversation %s has no message in view, and a model can answer none: append one first "+
		"with POST /v1/agents/%s/step or …/messages/capture", c.ID, c.AgentID)
}

// with returns the prompt together with its request.
func (p Prompt) with(r *request, leftOut []string) StoredPrompt {
	sum := sha256.Sum256(r.written.Bytes())
	return StoredPrompt{AgentID: p.Agent.ID, ConversationID: p.Conversation.ID, Format: p.format, Seq: p.Seq,
		Window: p.window(), Tokens: p.Tokens, SHA256: hex.EncodeToString(sum[:]), Pending: p.Pending,
		LeftOut: leftOut, Request: r.written.Bytes(), Answered: answered(p.Messages), Unasked: unasked(p.Messages)}
}

// storable returns the prompt together with its request, without storing it.
func (p Prompt) storable() (StoredPrompt, error) {
	r, leftOut, err := p.request()
	if err != nil {
		return StoredPrompt{}, err
	}
	return p.with(r, leftOut), nil
}

// request returns the prompt's request, and the model settings that its format has no name for.
func (p Prompt) request() (r *request, leftOut []string, err error) {
	if p.unread.Count > 0 {
		return nil, nil, db.Invalid("the conversation has %d messages in view, about %d tokens; a prompt may have at most "+
			"%d messages and 24 MiB of them. Compact the conversation, or begin another",
			p.unread.Count+len(p.Messages), p.Tokens.Messages, plan.MaxMessages)
	}
	options, leftOut := p.Agent.options(p.format, len(p.tools) > 0)
	thinking, _ := options["thinking"].(Thinking)
	if p.must != "" && (thinking.Type == "" || thinking.Type == "disabled") {
		options["tool_choice"] = mustCall(p.format, p.must) // a model that thinks cannot be forced to call a tool
	}
	if p.Agent.Settings.Prompt.keyed(p.format, p.Agent.model()) {
		options["prompt_cache_key"] = p.Conversation.ID
	}
	management := p.policy.ContextManagement(namesOf(p.definitions), p.window())
	if p.format == Anthropic && management != nil {
		options["context_management"] = management
	}
	if _, name, found := strings.Cut(p.Agent.model(), "/"); found {
		options["model"] = name // the name may contain slashes, as with routers
	} else if p.Agent.model() != "" {
		options["model"] = p.Agent.model()
	}
	return newRequest(p, options), leftOut, nil
}

var errNotStored = errors.New("what a preview appended is not stored")

// Preview returns the request that a conversation would make after drafts are appended, without a compaction; nil
// appends none. It stores nothing.
func (s *Store) Preview(ctx context.Context, org db.Org, target PromptTarget, drafts iter.Seq2[recall.Draft, error]) (
	request json.RawMessage, err error) {
	return s.previewAfter(ctx, org, target, func(inTx *Store) error {
		if drafts == nil {
			return nil
		}
		_, _, err := inTx.Recall.AppendTo(ctx, org, target.AgentID, target.Conversation, drafts)
		return err
	})
}

// PreviewWithout returns the request of a conversation without some of its messages, and without a compaction. It
// stores nothing.
func (s *Store) PreviewWithout(ctx context.Context, org db.Org, at PromptTarget, c recall.Conversation,
	left []recall.Message) (json.RawMessage, error) {
	return s.previewAfter(ctx, org, at, func(in *Store) error {
		return in.Recall.Hide(ctx, org, c, left)
	})
}

// previewAfter returns the request of a conversation after a change. The change is not stored.
func (s *Store) previewAfter(ctx context.Context, org db.Org, target PromptTarget, change func(inTx *Store) error) (
	request json.RawMessage, err error) {
	err = db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		inTx := s.With(tx)
		if err := change(inTx); err != nil {
			return err
		}
		p, err := inTx.assemble(ctx, org, target)
		if err != nil {
			return err
		}
		r, _, err := p.request()
		if err != nil {
			return err
		}
		request = r.written.Bytes()
		return errNotStored
	})
	if errors.Is(err, errNotStored) {
		err = nil
	}
	return request, orNoAgent(err, target.AgentID)
}

// answered reports whether the last message, not counting system messages, is the model's and calls no tool.
func answered(messages []recall.Message) bool {
	for _, m := range slices.Backward(messages) {
		if m.Role != recall.System {
			return m.Role == recall.Assistant && !slices.ContainsFunc(m.Content, func(p recall.Part) bool {
				return p.Type == recall.ToolCall
			})
		}
	}
	return false
}

// unasked reports whether the last message, not counting system messages, is a summary, or there is none.
func unasked(messages []recall.Message) bool {
	for _, m := range slices.Backward(messages) {
		if m.Role != recall.System {
			return m.Role == recall.Summary
		}
	}
	return true
}

// storePrompt stores those pieces of a prompt that are not stored for the agent yet, by their hashes, and a row that
// names all pieces.
func (s *Store) storePrompt(ctx context.Context, org db.Org, p Prompt, out StoredPrompt, r *request) error {
	pieces := r.pieces()
	sums := make([][]byte, len(pieces))
	for i, piece := range pieces {
		sum := sha256.Sum256(piece)
		sums[i] = sum[:]
	}
	has, newest, err := s.storedFor(ctx, org, p, out.Format, sums)
	if err != nil {
		return err
	}
	known := make(map[string]bool, len(has))
	var old [][]byte
	for _, piece := range has {
		if piece.Old {
			old = append(old, piece.SHA256)
		} else {
			known[string(piece.SHA256)] = true
		}
	}
	used, err := s.usePieces(ctx, org, p.Agent.Key, old)
	if err != nil {
		return err
	}
	for _, sum := range used {
		known[string(sum)] = true
	}
	var fresh, freshSums [][]byte
	for i, sum := range sums {
		if !known[string(sum)] {
			fresh, freshSums = append(fresh, pieces[i]), append(freshSums, sum)
			known[string(sum)] = true
		}
	}
	var batch pgx.Batch
	queuePieces(&batch, org, p.Agent.Key, freshSums, fresh)
	if newest != nil && hex.EncodeToString(newest.SHA256) == out.SHA256 {
		// A provider's cache lasts longer after each use.
		batch.Queue(`UPDATE prompts SET handed_out_at = now() WHERE org = $1 AND key = $2`, org, newest.Key)
	} else {
		queuePrompt(&batch, org, p, out, sums)
	}
	return db.Error(s.DB.SendBatch(ctx, &batch).Close())
}

// errErased means that an erasure has ended since a prompt was assembled, which may show the text that was erased.
var errErased = errors.New("an erasure has ended since the prompt was assembled")

// newestPrompt is the last prompt of a conversation in a format.
type newestPrompt struct {
	Key    int64  `db:"key"`
	SHA256 []byte `db:"sha256"`
}

// storedFor returns which pieces are stored for the agent, and the conversation's newest prompt in the format up to the
// prompt's seq; nil if there is none. It returns errErased if an erasure of the organization found nothing more at a
// time after the prompt was assembled. Until the transaction ends, no erasure comes to that point: an erasure that does
// so later deletes what was stored before.
func (s *Store) storedFor(ctx context.Context, org db.Org, p Prompt, format Format, sums [][]byte) (has []storedPiece,
	newest *newestPrompt, err error) {
	var batch pgx.Batch
	batch.Queue(`
		SELECT coalesce(clean_since > $2, false) FROM erasures
		WHERE org = $1 AND (status = 'running' OR ended_at > $2)
		FOR SHARE`, org, p.assembled).Query(
		func(rows pgx.Rows) error {
			clean, err := pgx.CollectRows(rows, pgx.RowTo[bool])
			if err == nil && slices.Contains(clean, true) {
				err = errErased
			}
			return err
		})
	batch.Queue(`
		SELECT sha256, used_at < now() - interval '1 hour' AS old FROM prompt_parts
		WHERE org = $1 AND agent_key = $2 AND sha256 = ANY ($3)`, org, p.Agent.Key, sums).Query(
		func(rows pgx.Rows) (err error) {
			has, err = pgx.CollectRows(rows, pgx.RowToStructByName[storedPiece])
			return err
		})
	batch.Queue(`
		SELECT key, sha256 FROM prompts
		WHERE org = $1 AND conversation_key = $2 AND seq <= $3 AND format = $4
		ORDER BY seq DESC, key DESC LIMIT 1`, org, p.Conversation.Key, p.Seq, format).Query(
		func(rows pgx.Rows) error {
			list, err := pgx.CollectRows(rows, pgx.RowToAddrOfStructByName[newestPrompt])
			if len(list) > 0 {
				newest = list[0]
			}
			return err
		})
	return has, newest, db.Error(s.DB.SendBatch(ctx, &batch).Close())
}

// fewPieces is the number of pieces up to which each is stored by a statement of its own. A cluster sends these to the
// node as they are; for one statement with all, it takes the rows to the coordinator first.
const fewPieces = 8

// queuePieces queues the statements that store pieces, in the same order in all transactions, which avoids deadlocks.
func queuePieces(batch *pgx.Batch, org db.Org, agent int64, sums, pieces [][]byte) {
	if len(sums) > fewPieces {
		batch.Queue(`
			INSERT INTO prompt_parts (agent_key, sha256, org, bytes)
			SELECT $1, part.sha256, $2, part.bytes FROM unnest($3::bytea[], $4::bytea[]) AS part (sha256, bytes)
			ORDER BY part.sha256
			ON CONFLICT DO NOTHING`, agent, org, sums, pieces)
		return
	}
	order := make([]int, len(sums))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return bytes.Compare(sums[i], sums[j]) })
	for _, i := range order {
		batch.Queue(`
			INSERT INTO prompt_parts (agent_key, sha256, org, bytes) VALUES ($1, $2, $3, $4)
			ON CONFLICT DO NOTHING`, agent, sums[i], org, pieces[i])
	}
}

// storedPiece is a stored piece of an agent's prompts.
type storedPiece struct {
	SHA256 []byte `db:"sha256"`
	Old    bool   `db:"old"` // a sweep may delete it soon, unless usePieces marks it as used
}

// usePieces marks pieces as used, so that sweeps do not delete them, and returns the hashes of those that are still
// stored. Sweeps spare pieces that were used within the last hours.
func (s *Store) usePieces(ctx context.Context, org db.Org, agent int64, sums [][]byte) ([][]byte, error) {
	if len(sums) == 0 {
		return nil, nil
	}
	return db.All[[]byte](ctx, s.DB, `
		UPDATE prompt_parts part SET used_at = now()
		FROM (
			SELECT sha256 FROM prompt_parts
			WHERE org = $1 AND agent_key = $2 AND sha256 = ANY ($3)
			ORDER BY sha256 -- the same order in all transactions avoids deadlocks
			FOR UPDATE
		) old
		WHERE part.org = $1 AND part.agent_key = $2 AND part.sha256 = old.sha256
		RETURNING part.sha256`, org, agent, sums)
}

// queuePrompt queues the statement that stores a prompt's row.
func queuePrompt(batch *pgx.Batch, org db.Org, p Prompt, out StoredPrompt, parts [][]byte) {
	first, last := 0, 0
	if n := len(p.Messages); n > 0 {
		first, last = p.Messages[0].Position, p.Messages[n-1].Position
	}
	batch.Queue(`
		INSERT INTO prompts (org, agent_key, conversation_key, format, seq, context_window, tokens, sha256, parts,
		                     pending, first_position, last_position)
		VALUES (@org, @agent, @conversation, @format, @seq, @window, @tokens, decode(@sha256, 'hex'), @parts, @pending,
		        @first, @last)
		ON CONFLICT DO NOTHING`,
		pgx.StrictNamedArgs{"org": org, "agent": p.Agent.Key, "conversation": p.Conversation.Key, "format": out.Format,
			"seq": out.Seq, "window": out.Window, "tokens": storedTokens{out.Tokens, out.Tokens.Classes},
			"sha256": out.SHA256, "parts": parts,
			"pending": out.Pending, "first": first, "last": last})
}

// storedTokens are a prompt's tokens as they are stored: with the classes, from which reports of usage calibrate.
type storedTokens struct {
	Tokens
	Of tokens.Composition `json:"classes"`
}

// PromptAt returns, byte for byte, the last prompt of a conversation (the default one if empty) that was handed out
// before or when the agent's newest event had this seq. ErrNotFound if there is none.
func (s *Store) PromptAt(ctx context.Context, org db.Org, agentID, conversation string, seq int64) (StoredPrompt,
	error) {
	c, err := s.Recall.Conversation(ctx, org, agentID, conversation)
	if err != nil {
		return StoredPrompt{}, err
	}
	type row struct {
		Format Format       `db:"format"`
		Seq    int64        `db:"seq"`
		Window int          `db:"context_window"`
		Tokens storedTokens `db:"tokens"`
		SHA256 []byte       `db:"sha256"`
		Parts  [][]byte     `db:"parts"`

		Pending []chat.PendingCall `db:"pending"`
	}
	r, err := db.One[row](ctx, s.DB, `
		SELECT format, seq, context_window, tokens, sha256, parts, pending FROM prompts
		WHERE org = $1 AND conversation_key = $2 AND seq <= $3
		ORDER BY seq DESC, key DESC LIMIT 1`, org, c.Key, seq)
	if err != nil {
		return StoredPrompt{}, db.OrNotFound(err, "No prompt of this conversation was handed out at position %d of the "+
			"agent's events or before; GET /v1/agents/%s/prompt hands one out and keeps it", seq, agentID)
	}
	request, err := s.readPieces(ctx, org, c.AgentKey, r.Parts)
	if sum := sha256.Sum256(request); err == nil && !bytes.Equal(sum[:], r.SHA256) {
		err = fmt.Errorf("the stored prompt of agent %s at position %d lacks pieces", agentID, r.Seq)
	}
	r.Tokens.Classes = r.Tokens.Of
	return StoredPrompt{AgentID: c.AgentID, ConversationID: c.ID, Format: r.Format, Seq: r.Seq,
		Window: cmp.Or(r.Window, assumedWindow), Tokens: r.Tokens.Tokens, SHA256: hex.EncodeToString(r.SHA256),
		Pending: r.Pending, Request: request}, err
}

// readPieces reads pieces of an agent's prompts, and joins them in the order of the hashes.
func (s *Store) readPieces(ctx context.Context, org db.Org, agent int64, sums [][]byte) ([]byte, error) {
	pieces, err := db.All[[]byte](ctx, s.DB, `
		SELECT part.bytes
		FROM unnest($3::bytea[]) WITH ORDINALITY AS wanted (sha256, place)
		JOIN prompt_parts part ON part.org = $1 AND part.agent_key = $2 AND part.sha256 = wanted.sha256
		ORDER BY wanted.place`, org, agent, sums)
	return bytes.Join(pieces, nil), err
}
