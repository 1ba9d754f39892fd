package agentfile

import (
	"context"
	"fmt"

	"github.com/loci-memory/loci/db"
)

// records are the numbers of what an agent has, and no file carries.
type records struct {
	Handovers int `db:"handovers"`
	Waiting   int `db:"waiting"` // updates of hand-overs, for an operator's approval
	Children  int `db:"children"`
	Flushes   int `db:"flushes"`
}

func (e *export) countRecords(ctx context.Context) (records, error) {
	return db.One[records](ctx, e.Agents.DB, `
		WITH a AS (SELECT key FROM agents WHERE org = $1 AND id = $2),
		     h AS (SELECT h.key FROM handovers h JOIN a ON h.org = $1 AND h.agent_key = a.key)
		SELECT (SELECT count(*) FROM h) AS handovers,
		       (SELECT count(*) FROM handover_updates u JOIN h ON u.handover_key = h.key
		        WHERE u.org = $1 AND u.status = 'proposed') AS waiting,
		       (SELECT count(*) FROM children c JOIN a ON c.org = $1 AND c.parent_key = a.key) AS children,
		       (SELECT count(*) FROM flushes f JOIN a ON f.org = $1 AND f.agent_key = a.key) AS flushes`, e.org, e.AgentID)
}

// leftOut says what is left out of a full file, and why, as sentences.
func (r records) leftOut() (said []string) {
	for _, one := range []struct {
		n         int
		what, why string
	}{
		{r.Handovers, "Hand-overs", "what they wrote is in working memory and memory files."},
		{r.Waiting, "Updates that wait for an operator's approval", "decide on them before the export."},
		{r.Children, "Sub-agents", "they are agents of their own, and their results are in the messages."},
		{r.Flushes, "Records of silent turns", "their messages are in the file."},
	} {
		if one.n > 0 {
			said = append(said, fmt.Sprintf("%s (%d) are left out: %s", one.what, one.n, one.why))
		}
	}
	return said
}
