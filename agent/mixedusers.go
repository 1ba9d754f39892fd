package agent

import (
	"context"
	"fmt"
	"strings"

	"github.com/loci-memory/loci/db"
)

// MixedAgent is an agent that shows each of its users what the others said: its recall scope is ScopeAgent, and several
// users have talked with it.
type MixedAgent struct {
	ID    string `db:"id" json:"id"`
	Name  string `db:"name" json:"name"`
	Users int    `db:"users" json:"users" doc:"Whose conversations with the agent have messages."`
}

// maxMixed is how many agents of an organization are named.
const maxMixed = 20

// Mixed lists the agents of an organization that mix users, the oldest first, 20 at most.
func Mixed(ctx context.Context, d db.DB, org db.Org) ([]MixedAgent, error) {
	return db.All[MixedAgent](ctx, d, `
		SELECT a.id, a.name, count(DISTINCT x.identity_key)::integer AS users
		FROM agents a
		JOIN conversation_identities x ON x.org = $1 AND x.agent_key = a.key
		JOIN conversations c ON c.org = $1 AND c.agent_key = a.key AND c.key = x.conversation_key
		WHERE a.org = $1 AND coalesce(nullif(a.settings ->> 'recall_scope', ''), 'agent') = 'agent'
		  AND c.deleted_at IS NULL AND c.messages > 0
		GROUP BY a.key, a.id, a.name
		HAVING count(DISTINCT x.identity_key) > 1
		ORDER BY a.key
		LIMIT $2`, org, maxMixed)
}

// ExamineUsers says which agents of all organizations mix users.
func ExamineUsers(ctx context.Context, d db.DB) []db.Finding {
	var named []string
	err := db.EachOrg(ctx, d, func(org db.Org) error {
		list, err := Mixed(ctx, d, org)
		for _, a := range list {
			named = append(named, fmt.Sprintf("%s (%s) of %d", a.Name, a.ID, a.Users))
		}
		return err
	}, `SELECT org FROM organizations WHERE deleted_at IS NULL ORDER BY org`)
	switch {
	case err != nil:
		return []db.Finding{{Of: "users", State: db.Broken, Text: err.Error(), Remedy: "see what it says, and Postgres' log"}}
	case len(named) == 0:
		return nil
	}
	return []db.Finding{db.MakeFinding("users", db.Advice, "agents that show each user what the others said: "+
		db.Beginning(strings.Join(named, ", "), 2_000), "set their recall_scope to user (PATCH /v1/agents/{id}), unless "+
		"their users are to share one memory: see docs/users.md")}
}
