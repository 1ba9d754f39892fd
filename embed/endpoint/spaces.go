package endpoint

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loci-memory/loci/db"
)

// Space is a set of vectors that may be compared with each other: the vectors of one model at one provider in one
// dimension.
type Space struct {
	ID        int16  `db:"id"`
	Provider  string `db:"provider"`
	Model     string `db:"model"`
	Dimension int    `db:"dimension"` // 1 to MaxDimension
}

// IdleSpace is how long no server must have used a space before a running server takes over its vectors. A server notes
// more often than that that it uses a space.
const IdleSpace = 5 * time.Minute

// spaceLife is how long the vectors of an unused space are kept, for a server that goes back to its model.
const spaceLife = 7 * 24 * time.Hour

// UseSpace returns the space of a provider's model and dimension, makes it if it is missing, and notes that it is used.
// Concurrent callers get the same space. db.ErrInvalid if the dimension is out of range.
func UseSpace(ctx context.Context, d db.DB, provider, model string, dimension int) (Space, error) {
	if dimension < 1 || dimension > MaxDimension {
		return Space{}, db.Invalid("The embedding dimension is %d: it must lie between 1 and %d.", dimension, MaxDimension)
	}
	const use = `
		UPDATE embedding_spaces SET used_at = now()
		WHERE provider = $1 AND model = $2 AND dimension = $3
		RETURNING id, provider, model, dimension`
	space, err := db.One[Space](ctx, d, use, provider, model, dimension)
	if errors.Is(err, db.ErrNotFound) {
		// Insert only now: an insert uses up one of the 32,767 ids even if it adds no row.
		if _, err = d.Exec(ctx, `
			INSERT INTO embedding_spaces (provider, model, dimension) VALUES ($1, $2, $3)
			ON CONFLICT ON CONSTRAINT embedding_spaces_key DO NOTHING`, provider, model, dimension); err == nil {
			space, err = db.One[Space](ctx, d, use, provider, model, dimension)
		}
	}
	if err != nil {
		return Space{}, fmt.Errorf("use the embedding space of %s: %w", model, db.Error(err))
	}
	return space, nil
}

// KnownSpace returns the newest space of a provider's model, of any dimension. ErrNotFound if there is none yet.
func KnownSpace(ctx context.Context, d db.DB, provider, model string) (Space, error) {
	return db.One[Space](ctx, d, `
		SELECT id, provider, model, dimension FROM embedding_spaces
		WHERE provider = $1 AND model = $2
		ORDER BY id DESC
		LIMIT 1`, provider, model)
}

// unusedSpaces notes that a space is used. It returns the ids of the spaces that no server has used for spaceLife.
func unusedSpaces(ctx context.Context, d db.DB, used Space) ([]int16, error) {
	if _, err := d.Exec(ctx, `UPDATE embedding_spaces SET used_at = now() WHERE id = $1`, used.ID); err != nil {
		return nil, err
	}
	return db.All[int16](ctx, d, `
		SELECT id FROM embedding_spaces WHERE used_at < now() - $1::interval ORDER BY id`, spaceLife)
}
