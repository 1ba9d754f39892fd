package backup

import (
	"context"

	"github.com/loci-memory/loci/db/migrations"
)

// lastFormer is the last version before the baseline. Earlier ones have quotas in the table of organizations.
const lastFormer = 90

// isFormer reports whether a file is of a schema before the baseline that can be restored.
func (h Header) isFormer() bool {
	return h.Schema.Version >= migrations.Oldest && h.Schema.Version <= lastFormer
}

// takeFormer makes the tables take the rows of a former schema.
func (l *loading) takeFormer(ctx context.Context) error {
	if l.manifest.Schema.Version >= lastFormer {
		return nil
	}
	_, err := l.tx.Exec(ctx, `
		ALTER TABLE quotas RENAME TO quotas_later;
		ALTER TABLE organizations ADD COLUMN quotas jsonb NOT NULL DEFAULT '{}'`)
	return err
}

// convert converts the rows of a former schema to the present one.
func (l *loading) convert(ctx context.Context) error {
	if l.manifest.Schema.Version >= lastFormer {
		return nil
	}
	_, err := l.tx.Exec(ctx, `
		ALTER TABLE quotas_later RENAME TO quotas;
		INSERT INTO quotas (org, agents, stored_bytes, requests_per_month)
		SELECT org, (quotas ->> 'agents')::bigint, (quotas ->> 'stored_bytes')::bigint,
		       (quotas ->> 'requests_per_month')::bigint
		FROM organizations WHERE quotas <> '{}';
		ALTER TABLE organizations DROP COLUMN quotas`)
	return err
}
