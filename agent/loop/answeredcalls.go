package loop

import (
	"bytes"
	"context"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// answeredAlike returns the id of the run that was made from the same answers to the same calls, whatever their otids;
// empty if there is none, or if it also had other messages. A client sends an answer again when it did not get ours.
// If the run had the same approvals and other messages, what is left of the request is those: answeredAlike takes the
// approvals out of it.
func (l *Loop) answeredAlike(ctx context.Context, tx pgx.Tx, org db.Org, c recall.Conversation, r *Request) (string,
	error) {
	calls, err := l.callsIn(ctx, tx, org, c, *r)
	if err != nil || len(calls) == 0 {
		return "", err
	}
	type result struct {
		CallID  string        `db:"call_id"`
		RunID   *string       `db:"run_id"` // nil if the call waits, or its result came without a run
		Content []recall.Part `db:"content"`
	}
	results, err := db.All[result](ctx, tx, `
		SELECT newest.call_id, m.run_id, m.content
		FROM (
			SELECT DISTINCT ON (call_id) call_id, result_position FROM tool_calls
			WHERE org = $1 AND conversation_key = $2 AND call_id = ANY ($3)
			ORDER BY call_id, position DESC
		) newest
		LEFT JOIN messages m ON m.org = $1 AND m.conversation_key = $2 AND m.position = newest.result_position`,
		org, c.Key, slices.Collect(maps.Keys(calls)))
	if err != nil || len(results) < len(calls) {
		return "", err
	}
	for _, answered := range results {
		i := slices.IndexFunc(answered.Content, func(p recall.Part) bool { return p.CallID == answered.CallID })
		if answered.RunID == nil || *answered.RunID != *results[0].RunID || i < 0 {
			return "", nil
		}
		if sent := calls[answered.CallID]; sent != nil && sent.Text != answered.Content[i].Text {
			return "", nil
		}
	}
	run, err := l.with(tx).RunByID(ctx, org, *results[0].RunID)
	if err != nil || !slices.Equal(withoutOTIDs(run.Options.Approvals), withoutOTIDs(r.Approvals)) {
		return "", ignoreNotFound(err)
	}
	if len(r.Approvals) == 0 || bytes.Equal(run.Options.InputSHA256, r.Options.InputSHA256) {
		return run.ID, nil
	}
	r.Approvals, r.Options.Approvals, r.Options.InputSHA256 = nil, nil, nil
	return "", nil
}

// callsIn returns the calls that a request answers, with the results that it has for them; nil for an approval or
// denial. It returns nothing for a request that says texts and has no approvals.
func (l *Loop) callsIn(ctx context.Context, tx pgx.Tx, org db.Org, c recall.Conversation, r Request) (
	map[string]*recall.Part, error) {
	calls := map[string]*recall.Part{}
	for _, a := range r.Approvals {
		if a.CallID != "" {
			calls[a.CallID] = nil
			continue
		}
		m, err := l.Recall.With(tx).Message(ctx, org, a.MessageID)
		if err != nil || m.AgentID != c.AgentID {
			return nil, ignoreNotFound(err)
		}
		for _, p := range m.Content {
			if p.Type == recall.ToolCall && p.Approval == recall.Asked {
				calls[p.CallID] = nil
			}
		}
	}
	for _, d := range r.Input {
		if d.Role != recall.Tool && len(r.Approvals) == 0 {
			return nil, nil
		}
		for _, p := range d.Content {
			if p.Type == recall.ToolReturn {
				calls[p.CallID] = &p
			}
		}
	}
	return calls, nil
}

func withoutOTIDs(approvals []Approval) (all []Approval) {
	for _, a := range approvals {
		a.OTID = ""
		all = append(all, a)
	}
	return all
}
