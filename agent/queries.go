package agent

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// ForPolicy returns the agent's tools after these compaction settings are set: if their policy shows data only in part,
// query_result is added. It returns nil if the tools stay as they are.
func (a Agent) ForPolicy(settings json.RawMessage) []string {
	if a.HasTool(QueryResult) || !showDataInPart(settings) {
		return nil
	}
	return a.withQueries().Settings.Tools
}

// In returns an agent with the tools that it has in a conversation, and the policy in force there.
func (s *Store) In(ctx context.Context, org db.Org, a Agent, c recall.Conversation) (Agent, error) {
	of, err := s.PolicyInForce(ctx, org, a, c)
	a.InForce = of.Policy
	return a.queriesUnder(of.Policy, c.Compaction), err
}

// queriesUnder returns an agent with query_result if the policy in force shows data only in part. If somebody chose the
// agent's tools, then nearer settings (the conversation's or the call's) must have set such a policy.
func (a Agent) queriesUnder(inForce policy.Policy, nearer ...json.RawMessage) Agent {
	if a.HasTool(QueryResult) || !showsDataInPart(inForce) ||
		a.ChoseTools() && !slices.ContainsFunc(nearer, showDataInPart) {
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

// showDataInPart reports whether compaction settings name a policy that shows data only in part.
func showDataInPart(settings json.RawMessage) bool {
	of, err := policy.Layered(policy.Layer{Place: policy.OfAgent, Policy: policyIn(settings)})
	return err == nil && showsDataInPart(of.Policy)
}

// showsDataInPart reports whether a policy shows only previews or rows of tools' results.
func showsDataInPart(p policy.Policy) bool {
	return slices.ContainsFunc(p.Steps, func(step policy.Step) bool {
		switch step.(type) {
		case *policy.JSONPreview, *policy.LargestSlice:
			return true
		}
		return false
	})
}
