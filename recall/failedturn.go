package recall

import (
	"bytes"
	"context"
	"slices"

	"github.com/loci-memory/loci/db"
)

// unanswered is a message of a failed turn.
type unanswered struct {
	Called   bool    `db:"called"` // an answer with calls came after it
	Position int     `db:"position"`
	Tokens   int     `db:"tokens"`
	Role     Role    `db:"role"`
	Name     *string `db:"name"`
	Sender   *string `db:"sender_id"`
	Content  []Part  `db:"content"`
}

// replaceFailed makes sure that a text stands only once in the view if its turn failed and a new entry repeats it. The
// failed message leaves the view; if its turn goes on, the new entry stays out of the view instead. The log keeps both.
func (a *appending) replaceFailed(ctx context.Context, fresh []*entry) error {
	if a.restores || a.end.Refusal == nil || a.end.Refusal.Failed == nil {
		return nil
	}
	failed, err := a.unanswered(ctx)
	if err != nil || len(failed) == 0 {
		return err
	}
	answers := slices.ContainsFunc(fresh, func(e *entry) bool { return e.Role == Assistant })
	again, leaving := Refused{Status: a.end.Refusal.Failed.Status, Again: true,
		Message: "The turn failed, and the text was sent again."}, []int{}
	for _, m := range failed {
		e := saidAgain(m, fresh)
		switch {
		case e == nil || m.Called && answers:
		case m.Called || !answers && a.end.Refusal.Part && a.end.Refusal.At == a.end.Refusal.Failed.At:
			e.Refused = &again
			a.end.HiddenTokens += int64(e.tokens)
		default:
			leaving, a.end.HiddenTokens = append(leaving, m.Position), a.end.HiddenTokens+int64(m.Tokens)
		}
	}
	if len(leaving) == 0 && !slices.ContainsFunc(fresh, func(e *entry) bool { return e.Refused == &again }) {
		return nil
	}
	a.end.Version++
	_, err = a.db.Exec(ctx, endFlushes("$1", "$2")+`, hidden AS (
			UPDATE messages SET refused = $4 WHERE org = $1 AND conversation_key = $2 AND position = ANY ($3)
		)
		UPDATE conversations
		SET frame = frame + 1, hidden_tokens = $5, reported_tokens = 0, reported_position = 0
		WHERE org = $1 AND key = $2`, a.org, a.end.Key, leaving, again, min(a.end.HiddenTokens, a.end.Tokens))
	return db.Error(err)
}

// unanswered returns the messages of the view if their turns failed without a final answer; none if the last failed
// turn has since gone on.
func (a *appending) unanswered(ctx context.Context) ([]unanswered, error) {
	const ofView = ` WHERE org = $1 AND conversation_key = $2 AND NOT is_err AND purpose = '' AND refused IS NULL`
	failed := a.end.Refusal.Failed
	return db.All[unanswered](ctx, a.db, `
		WITH answers AS (
			SELECT coalesce((SELECT position FROM messages`+ofView+` AND role = 'assistant' AND position <= $3
				ORDER BY position DESC LIMIT 1), 0) AS newest,
			coalesce((SELECT position FROM messages`+ofView+` AND role = 'assistant' AND position <= $3 AND NOT EXISTS (
				SELECT FROM json_array_elements(content) AS part WHERE part ->> 'type' = 'tool_call')
				ORDER BY position DESC LIMIT 1), 0) AS last
		)
		SELECT position, tokens, role, name, sender_id, content, position < answers.newest AS called
		FROM messages, answers`+ofView+` AND position <= $3 AND role IN ('user', 'system')
		  AND (position >= $4 OR position = ANY ($5)) AND position > answers.last
		  AND coalesce((
			SELECT role FROM messages`+ofView+` AND position > $3 AND role IN ('user', 'assistant')
			ORDER BY position LIMIT 1), 'user') <> 'assistant'
		ORDER BY position`, a.org, a.end.Key, failed.At, a.end.FirstVisible, a.end.Kept)
}

// saidAgain returns the first entry that says the same as m and has the same sender; nil if there is none.
func saidAgain(m unanswered, fresh []*entry) *entry {
	for _, e := range fresh {
		if e.Role == m.Role && e.Refused == nil && sameText(e.SenderID, m.Sender) &&
			bytes.Equal(digestSpelled(e.Role, e.Name, e.Content), digestSpelled(m.Role, m.Name, m.Content)) {
			return e
		}
	}
	return nil
}

func sameText(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }
