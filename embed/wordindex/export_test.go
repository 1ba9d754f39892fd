package wordindex

import (
	"context"

	"github.com/loci-memory/loci/db"
)

// PruneOrg is Prune for one organization.
func (x *Index) PruneOrg(ctx context.Context, d db.DB, org db.Org) (segments int, err error) {
	return x.pruneOrg(ctx, d, org)
}
