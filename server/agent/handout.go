package agent

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// HandedOut is a prompt as it was handed out: the request that is ready to be sent, and what is known of it.
type HandedOut struct {
	AgentID        string          `json:"agent_id"`
	ConversationID string          `json:"conversation_id"`
	Format         Format          `json:"format" enum:"openai,anthropic"`
	Seq            int64           `json:"seq" doc:"Position of the agent's newest event when the prompt was handed out; the first time, where it was again."`
	Window         int             `json:"context_window" doc:"In tokens; 0 if the model's is not known."`
	Tokens         Tokens          `json:"tokens" doc:"What the parts of the request take of the window."`
	SHA256         string          `json:"sha256" doc:"Of the request's bytes, in hexadecimal digits."`
	Request        json.RawMessage `json:"-"` // as the provider takes it: tools, system prompt, messages
}

// HandOut assembles the next prompt of a conversation, makes room in its window where it does not fit, and keeps it, to be shown again by HandedOutAt. One that was the last to be handed out
// already is not kept twice. ErrInvalid if the view is too long for any window.
func (s *Store) HandOut(ctx context.Context, org db.Org, agentID, conversation string, f Format) (HandedOut, error) {
	p, err := s.fitting(ctx, org, agentID, conversation, f)
	if err != nil {
		return HandedOut{}, err
	}
	if p.unread.Count > 0 {
		return HandedOut{}, db.Invalid("the conversation has %d messages in view, about %d tokens; a prompt may have at most %d messages. "+
			"Compact the conversation, or begin another", p.unread.Count+len(p.Messages), p.Tokens.Messages, maxView)
	}
	r := newRequest(p.format, modelName(p.Agent.model()), p.tools, p.system, p.messages)
	sum := sha256.Sum256(r.written.Bytes())
	out := HandedOut{AgentID: p.Agent.ID, ConversationID: p.Conversation.ID, Format: p.format, Seq: p.Seq, Window: p.Agent.Window(),
		Tokens: p.Tokens, SHA256: hex.EncodeToString(sum[:]), Request: r.written.Bytes()}
	err = db.Tx(ctx, s.DB, func(tx pgx.Tx) error { return s.with(tx).keep(ctx, org, p, out, r) })
	if errors.Is(err, db.ErrNotFound) {
		return HandedOut{}, db.NotFound("Agent with ID %s not found", agentID)
	}
	return out, err
}

// keep keeps a prompt: its pieces by their hashes, those that the agent has no equal of already, and a row that names them.
func (s *Store) keep(ctx context.Context, org db.Org, p Prompt, out HandedOut, r *request) error {
	pieces := r.pieces()
	sums := make([][]byte, len(pieces))
	for i, piece := range pieces {
		sum := sha256.Sum256(piece)
		sums[i] = sum[:]
	}
	has, err := db.All[[]byte](ctx, s.DB, `
		SELECT sha256 FROM prompt_parts WHERE org = $1 AND agent_key = $2 AND sha256 = ANY ($3)`, org, p.Agent.Key, sums)
	if err != nil {
		return err
	}
	known := make(map[string]bool, len(has))
	for _, sum := range has {
		known[string(sum)] = true
	}
	var fresh, freshSums [][]byte
	for i, sum := range sums {
		if !known[string(sum)] {
			fresh, freshSums = append(fresh, pieces[i]), append(freshSums, sum)
			known[string(sum)] = true
		}
	}
	if len(fresh) > 0 {
		if _, err := s.DB.Exec(ctx, `
			INSERT INTO prompt_parts (agent_key, sha256, org, bytes)
			SELECT $1, part.sha256, $2, part.bytes FROM unnest($3::bytea[], $4::bytea[]) AS part (sha256, bytes)
			ORDER BY part.sha256 -- as everyone does, so that nobody waits for another who waits for it
			ON CONFLICT DO NOTHING`, p.Agent.Key, org, freshSums, fresh); err != nil {
			return err
		}
	}
	return s.record(ctx, org, p, out, sums)
}

// record keeps the row of a prompt, unless the one before it is the same.
func (s *Store) record(ctx context.Context, org db.Org, p Prompt, out HandedOut, parts [][]byte) error {
	first, last := 0, 0
	if n := len(p.Messages); n > 0 {
		first, last = p.Messages[0].Position, p.Messages[n-1].Position
	}
	_, err := s.DB.Exec(ctx, `
		INSERT INTO prompts (org, agent_key, conversation_key, format, seq, context_window, tokens, sha256, parts, first_position, last_position)
		SELECT @org, @agent, @conversation, @format, @seq, @window, @tokens, decode(@sha256, 'hex'), @parts, @first, @last
		WHERE (
			SELECT sha256 FROM prompts
			WHERE org = @org AND conversation_key = @conversation AND seq <= @seq AND format = @format
			ORDER BY seq DESC, key DESC LIMIT 1
		) IS DISTINCT FROM decode(@sha256, 'hex')
		ON CONFLICT DO NOTHING`,
		pgx.StrictNamedArgs{"org": org, "agent": p.Agent.Key, "conversation": p.Conversation.Key, "format": out.Format, "seq": out.Seq,
			"window": out.Window, "tokens": out.Tokens, "sha256": out.SHA256, "parts": parts, "first": first, "last": last})
	return db.Error(err)
}

// HandedOutAt returns the last prompt that was handed out in a conversation (the default one if it is empty) when the agent's newest event
// stood at a position or before it, byte for byte. ErrNotFound if none was.
func (s *Store) HandedOutAt(ctx context.Context, org db.Org, agentID, conversation string, seq int64) (HandedOut, error) {
	c, err := s.Recall.Conversation(ctx, org, agentID, conversation)
	if err != nil {
		return HandedOut{}, err
	}
	type row struct {
		Format Format   `db:"format"`
		Seq    int64    `db:"seq"`
		Window int      `db:"context_window"`
		Tokens Tokens   `db:"tokens"`
		SHA256 []byte   `db:"sha256"`
		Parts  [][]byte `db:"parts"`
	}
	r, err := db.One[row](ctx, s.DB, `
		SELECT format, seq, context_window, tokens, sha256, parts FROM prompts
		WHERE org = $1 AND conversation_key = $2 AND seq <= $3
		ORDER BY seq DESC, key DESC LIMIT 1`, org, c.Key, seq)
	if errors.Is(err, db.ErrNotFound) {
		return HandedOut{}, db.NotFound("No prompt of this conversation was handed out at position %d of the agent's events or before; "+
			"GET /v1/agents/%s/prompt hands one out and keeps it", seq, agentID)
	}
	if err != nil {
		return HandedOut{}, err
	}
	request, err := s.parts(ctx, org, c.AgentKey, r.Parts)
	if sum := sha256.Sum256(request); err == nil && !bytes.Equal(sum[:], r.SHA256) {
		err = fmt.Errorf("a prompt of agent %s at position %d is kept incompletely", agentID, r.Seq)
	}
	return HandedOut{AgentID: c.AgentID, ConversationID: c.ID, Format: r.Format, Seq: r.Seq, Window: r.Window, Tokens: r.Tokens,
		SHA256: hex.EncodeToString(r.SHA256), Request: request}, err
}

// parts reads pieces of an agent's prompts and puts them together in the order of their hashes.
func (s *Store) parts(ctx context.Context, org db.Org, agent int64, sums [][]byte) ([]byte, error) {
	pieces, err := db.All[[]byte](ctx, s.DB, `
		SELECT part.bytes
		FROM unnest($3::bytea[]) WITH ORDINALITY AS wanted (sha256, place)
		JOIN prompt_parts part ON part.org = $1 AND part.agent_key = $2 AND part.sha256 = wanted.sha256
		ORDER BY wanted.place`, org, agent, sums)
	return bytes.Join(pieces, nil), err
}
