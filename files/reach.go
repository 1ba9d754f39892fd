package files

import (
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Reach is an agent, and whose files of its folders are seen: those in nobody's folders and in the folders of the
// users. The zero value sees nothing.
type Reach struct {
	AgentID string
	Users   db.UserScope
}

// Of is the reach of an agent's operator, who sees the folders of all users.
func Of(agentID string) Reach { return Reach{agentID, db.AllUsers()} }

// sees returns the condition that the attachment a of a folder is within the reach, and args with its argument.
func (r Reach) sees(args ...any) (condition string, all []any) {
	if r.Users.All() {
		return "true", args
	}
	args = append(args, r.Users.User())
	return fmt.Sprintf("(a.user_key IS NULL OR a.user_key = $%d)", len(args)), args
}

// opened returns the condition that the entry o of an agent's list of open files is one of the user's; for a user who
// has no list of their own yet, one of nobody's. It adds its argument to args, which have @org and @agent.
func (r Reach) opened(args pgx.StrictNamedArgs) string {
	if r.Users.User() == 0 {
		return "o.user_key = 0"
	}
	args["opened_for"] = r.Users.User()
	return `o.user_key = (
		SELECT max(s.user_key) FROM agent_files s
		WHERE s.org = @org AND s.agent_id = @agent AND s.user_key IN (0, @opened_for))`
}
