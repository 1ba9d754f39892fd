package agent

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/db"
)

// checkOver returns ErrInvalid unless the policy that a place sets for an agent works together with the policies of the
// farther places.
func (s *Store) checkOver(ctx context.Context, org db.Org, agentID, place string, set json.RawMessage) error {
	if len(set) == 0 {
		return nil
	}
	a, err := s.Agent(ctx, org, agentID)
	if err != nil {
		return err
	}
	layers, err := s.layers(ctx, org, a, nil)
	if err != nil {
		return err
	}
	index := slices.IndexFunc(layers, func(l policy.Layer) bool { return l.Place == place })
	return policy.CheckOver(set, place, layers[:index]...)
}
