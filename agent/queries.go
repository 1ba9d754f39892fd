package agent

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// ForPolicy returns the tools of an agent whose compaction settings are set: with query_result if their policy shows
// data in part. Nil if the agent's tools stay as they are.
func (a Agent) ForPolicy(settings json.RawMessage) []string {
	if a.HasTool(QueryResult) || !showDataInPart(settings) {
		return nil
	}
	return a.withQueries().Settings.Tools
}

// In returns an agent with the tools that it has in a conversation.
func (s *Store) In(ctx context.Context, org db.Org, a Agent, c recall.Conversation) (Agent, error) {
	of, err := s.PolicyInForce(ctx, org, a, c)
	return a.queriesUnder(of.Policy, c.Compaction), err
}

// queriesUnder returns an agent with query_result if the policy in force shows data in part, and if nobody chose the
// agent's tools or one of these compaction settings, of a conversation or a call, says so.
func (a Agent) queriesUnder(inForce policy.Policy, nearer ...json.RawMessage) Agent {
	if a.HasTool(QueryResult) || !showsDataInPart(inForce) ||
		a.Settings.Tools != nil && !slices.ContainsFunc(nearer, showDataInPart) {
		return a
	}
	return a.withQueries()
}

func (a Agent) withQueries() Agent {
	if a.Settings.Tools == nil {
		a.Settings.Tools = []string{EveryTool, QueryResult}
	} else {
		a.Settings.Tools = append(slices.Clone(a.Settings.Tools), QueryResult)
	}
	return a
}

// showDataInPart reports whether compaction settings name a policy that shows data in part.
func showDataInPart(settings json.RawMessage) bool {
	of, err := policy.Layered(policy.Layer{Place: policy.OfAgent, Policy: policyIn(settings)})
	return err == nil && showsDataInPart(of.Policy)
}

// showsDataInPart reports whether a policy shows previews or rows of what tools return.
func showsDataInPart(of policy.Policy) bool {
	return slices.ContainsFunc(of.Steps, func(step policy.Step) bool {
		switch step.(type) {
		case *policy.JSONPreview, *policy.LargestSlice:
			return true
		}
		return false
	})
}
