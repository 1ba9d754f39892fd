package recall

import (
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// conversationEnd is a locked conversation. Its counts change as messages are appended.
type conversationEnd struct {
	Conversation
	Session   int        `db:"session"`    // position of the first message of the last session
	SessionAt *time.Time `db:"session_at"` // time of the last session's last message
	Quota     *int64     `db:"quota"`      // of the organization's stored bytes
	org       db.Org

	added added // since it was locked, and not yet counted
}

// added is what messages add to what an organization stores.
type added struct {
	messages, bytes int
	asked           int64 // bytes that a quota may refuse: those of users and systems
}

func (s *Store) lockEnd(ctx context.Context, org db.Org, agentID, conversation string) (conversationEnd, error) {
	condition, args := named(ctx, org, agentID, conversation)
	end, err := db.One[conversationEnd](ctx, s.db, `
		SELECT `+conversationColumns+`, c.session, c.session_at,
		       (SELECT q.stored_bytes FROM quotas q WHERE q.org = @org) AS quota`+fromConversations+` AND `+condition+`
		FOR NO KEY UPDATE OF c`, args)
	end.org = org
	if user := db.UserOf(ctx); err == nil && user != 0 && end.UserKey != user {
		return end, db.NotFound("Conversation with ID %s is not with the user of the request", db.Short(end.ID))
	}
	return end, s.conversationError(ctx, org, err, agentID, conversation)
}

// A session is a run of at most sessionMessages messages with no gap longer than sessionGap.
const (
	sessionGap      = time.Hour
	sessionMessages = 200
)

// extend counts a message at the conversation's end. The message belongs to the last session or starts a new one.
func (end *conversationEnd) extend(e *entry) {
	end.Messages++
	end.Tokens += int64(e.tokens)
	createdAt := *e.CreatedAt
	if end.SessionAt == nil || createdAt.Sub(*end.SessionAt).Abs() > sessionGap ||
		end.Messages-end.Session >= sessionMessages {
		end.Session = end.Messages
	}
	end.SessionAt = &createdAt
	if end.LastMessageAt == nil || createdAt.After(*end.LastMessageAt) {
		end.LastMessageAt = &createdAt
	}
}

// beyond returns the provenance without the agent and the conversation, if these are the message's own.
func (end *conversationEnd) beyond(p *db.Provenance) *db.Provenance {
	if p == nil {
		return nil
	}
	rest := *p
	if rest.AgentID == end.AgentID {
		rest.AgentID = ""
	}
	if rest.ConversationID == end.ID {
		rest.ConversationID = ""
	}
	return rest.Known()
}

func (end *conversationEnd) queueMessage(batch *pgx.Batch, e *entry, seq int64) error {
	end.queueLongResults(batch, e.longResults)
	content, err := json.Marshal(e.Content)
	if err != nil {
		return err
	}
	end.added.messages++
	end.added.bytes += len(content)
	if e.Role == User || e.Role == System {
		end.added.asked += int64(len(content))
	}
	weights, passages := weigh(end.AgentKey, e)
	batch.Queue(`
		INSERT INTO messages (id, org, agent_key, seq, conversation_key, position, session, role, name, content, otid,
		                      otid_sha256, step_id, run_id, sender_id, group_id, model, is_err, tokens, length, created_at,
		                      lex, terms, purpose, refused, provenance)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23,
		        $24, $25, $26)`,
		e.id, end.org, end.AgentKey, seq, end.Key, end.Messages, end.Session, e.Role, e.Name, content, e.OTID,
		e.digest, e.StepID, e.RunID, e.SenderID, e.GroupID, e.Model, e.IsErr, e.tokens, e.length, e.CreatedAt,
		weights.lex, weights.terms, e.Purpose, e.Refused, e.Provenance)
	for _, p := range passages {
		batch.Queue(`
			INSERT INTO message_pieces (org, message_key, agent_key, conversation_key, role, created_at, lex, terms,
			                            at)
			SELECT org, key, agent_key, conversation_key, role, created_at, $4, $5, $6
			FROM messages WHERE org = $1 AND conversation_key = $2 AND position = $3`,
			end.org, end.Key, end.Messages, p.lex, p.terms, p.at)
	}
	return nil
}

// queue queues the statements that count the new messages and store the conversation's new end. They are two, because a
// cluster keeps the result of a CTE that inserts before it goes on, which takes longer than a statement.
func (end *conversationEnd) queue(batch *pgx.Batch) {
	batch.Queue(`INSERT INTO stored_usage (org, kind, items, bytes) VALUES ($1, 'messages', $2, $3)`, end.org,
		end.added.messages, end.added.bytes)
	batch.Queue(`
		UPDATE conversations
		SET messages = $3, tokens = $4, session = $5, session_at = $6, last_message_at = $7, unembedded = true
		WHERE org = $1 AND key = $2`,
		end.org, end.Key, end.Messages, end.Tokens, end.Session, end.SessionAt, end.LastMessageAt)
}

// queueLongResults queues the statements that store the long results in the conversation's last message.
func (end *conversationEnd) queueLongResults(batch *pgx.Batch, results []longResult) {
	for _, r := range results {
		batch.Queue(storeText, end.org, r.sha256[:], r.size, r.zstd, r.bytes)
		batch.Queue(`
			INSERT INTO clips (id, org, sha256, agent_key, conversation_key, position, part)
			VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			r.clip, end.org, r.sha256[:], end.AgentKey, end.Key, end.Messages, r.part)
	}
}
