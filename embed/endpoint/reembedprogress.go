package endpoint

import (
	"context"
	"errors"
	"time"

	"github.com/loci-memory/loci/db"
)

// States of a ReembedProgress.
const (
	NotReembedding = "none"      // no run was ever started
	Reembedding    = "running"   // searches rank by the old space
	Switched       = "switched"  // searches rank by the new space
	Cancelled      = "cancelled" // searches rank by the old space
)

// ReembedProgress is the progress of the vectors of a new space.
type ReembedProgress struct {
	State      string     `db:"state" json:"state" enum:"none,running,switched,cancelled"`
	From       string     `db:"from_model" json:"from_model" doc:"The model that searches rank by until the switch."`
	FromDim    int        `db:"from_dimension" json:"from_dimension" doc:"How many numbers its vectors have."`
	To         string     `db:"to_model" json:"to_model" doc:"The model that they rank by after it."`
	ToDim      int        `db:"to_dimension" json:"to_dimension" doc:"How many numbers its vectors have."`
	Done       int64      `db:"done" json:"done" doc:"Texts that have a vector of the new model."`
	Total      *int64     `db:"total" json:"total" doc:"Texts with one of the old model at the start; null until counted."`
	Refused    int64      `db:"refused" json:"refused" doc:"Texts that the new model's endpoint refused; words find them."`
	Error      *string    `db:"error" json:"error" doc:"Why it does not go on now; null while it does."`
	StartedAt  *time.Time `db:"started_at" json:"started_at" doc:"When it was started."`
	FinishedAt *time.Time `db:"finished_at" json:"finished_at" doc:"When it was switched or cancelled."`
}

// Progress returns the progress of the latest run.
func (r *Reembed) Progress(ctx context.Context) (ReembedProgress, error) {
	p, err := db.One[ReembedProgress](ctx, r.DB, `
		SELECT r.state, a.model AS from_model, a.dimension AS from_dimension, b.model AS to_model,
		       b.dimension AS to_dimension,
		       r.done, r.total, r.refused, r.error, r.started_at, r.finished_at
		FROM reembedding r JOIN embedding_spaces a ON a.id = r.from_space JOIN embedding_spaces b ON b.id = r.to_space`)
	if errors.Is(err, db.ErrNotFound) {
		return ReembedProgress{State: NotReembedding}, nil
	}
	return p, err
}
