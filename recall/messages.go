package recall

import (
	"context"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Message returns a message by its id.
func (s *Store) Message(ctx context.Context, org db.Org, id string) (Message, error) {
	m, err := db.One[Message](ctx, s.db, `
		SELECT `+messageColumns+` FROM `+messageTables+`
		WHERE m.org = $1 AND m.id = $2`, org, uuidOf(id))
	if err != nil {
		return m, messageError(err, id)
	}
	one := []Message{m}
	err = s.nameReturns(ctx, org, one)
	return one[0], err
}

// MessageFilter selects messages; an empty field selects all.
type MessageFilter struct {
	AgentID      string
	Conversation string // an id, or DefaultConversation of AgentID
	GroupID      string
	RunID        string
	StepID       string
	WithErrors   bool // include messages that report an error
	WithFlushes  bool // include messages of silent turns
	WithReset    bool // include messages that Reset hid, unless Conversation is an id
	NotRefused   bool // leave out messages that left the view because a provider refused them
	Roles        []Role
	Parts        []PartType // a message of the assistant passes only with a part of one of these types, or with no part
}

// where returns the filter, except its agent and conversation, as a condition on messages m. It adds the arguments to
// args.
func (f MessageFilter) where(args pgx.StrictNamedArgs) string {
	where := ""
	if f.GroupID != "" {
		where += ` AND m.group_id = @group`
		args["group"] = f.GroupID
	}
	if f.RunID != "" {
		where += ` AND m.run_id = @run`
		args["run"] = f.RunID
	}
	if f.StepID != "" {
		where += ` AND m.step_id = @step`
		args["step"] = f.StepID
	}
	if !f.WithErrors {
		where += ` AND NOT m.is_err`
	}
	if f.NotRefused {
		where += ` AND m.refused IS NULL`
	}
	if !f.WithFlushes {
		where += ` AND m.purpose = ''`
	}
	if len(f.Roles) > 0 {
		where += ` AND m.role = ANY (@roles)`
		args["roles"] = f.Roles
	}
	if len(f.Parts) > 0 {
		where += ` AND (m.role <> 'assistant' OR json_array_length(m.content) = 0
			OR EXISTS (SELECT FROM json_array_elements(m.content) AS part WHERE part ->> 'type' = ANY (@parts)))`
		args["parts"] = f.Parts
	}
	return where
}

// Messages lists the messages of a conversation, a run, a step, an agent or the organization, in the order in which
// they were appended. Lists of an agent or the organization leave out the forks in which sub-agents work. The page's
// Before and After are message ids; an id that is not in the list gives an empty page. New messages come after all
// listed ones. Only in a list of the organization, a message that was being appended may appear before messages that
// were listed meanwhile. ErrNotFound if the agent or the conversation does not exist.
func (s *Store) Messages(ctx context.Context, org db.Org, f MessageFilter, p db.Page) ([]Message, error) {
	order, where, args := "m.key", "", pgx.StrictNamedArgs{"org": org}
	switch {
	case f.Conversation == DefaultConversation && f.WithReset:
		agent, err := db.AgentKey(ctx, s.db, org, f.AgentID)
		if err != nil {
			return nil, err
		}
		order, where, args["of"] = "m.seq", " AND m.agent_key = @of AND (c.is_default OR c.reset_at IS NOT NULL)", agent
	case f.Conversation != "":
		c, err := s.Conversation(ctx, org, f.AgentID, f.Conversation)
		if err != nil {
			return nil, err
		}
		order, where, args["of"] = "m.position", " AND m.conversation_key = @of", c.Key
	case f.AgentID != "":
		agent, err := db.AgentKey(ctx, s.db, org, f.AgentID)
		if err != nil {
			return nil, err
		}
		order, where, args["of"] = "m.seq", " AND m.agent_key = @of", agent
	}
	if f.Conversation == "" && f.RunID == "" && f.StepID == "" {
		where += ` AND NOT c.delegated`
	}
	place := `SELECT ` + order + ` FROM ` + tablesOf(f.WithReset) + `
		WHERE m.org = @org AND m.id = @place::uuid` + where
	page := p.ByUUID("message-").Clauses(order, place, args)
	rows, err := db.All[Message](ctx, s.db, `
		SELECT `+messageColumns+` FROM `+tablesOf(f.WithReset)+`
		WHERE m.org = @org`+where+f.where(args)+` AND `+page.Where+page.Order, args)
	if err != nil {
		return nil, err
	}
	if page.Reversed {
		slices.Reverse(rows)
	}
	return rows, s.nameReturns(ctx, org, rows)
}

// MessagesByID returns the messages with these ids, in the order of the ids. It leaves out ids without a message.
func (s *Store) MessagesByID(ctx context.Context, org db.Org, ids []string) ([]Message, error) {
	uuids := make([]uuid.UUID, len(ids))
	for i, id := range ids {
		uuids[i] = uuidOf(id)
	}
	return db.All[Message](ctx, s.db, `
		SELECT `+messageColumns+` FROM unnest($2::uuid[]) WITH ORDINALITY AS wanted (id, place)
		JOIN `+messageTables+` ON m.id = wanted.id
		WHERE m.org = $1
		ORDER BY wanted.place`, org, uuids)
}
