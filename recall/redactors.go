package recall

import (
	"sync"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall/redact"
)

// redactors are those of the organizations that were met so far.
type redactors struct {
	mu   sync.Mutex
	have map[db.Org]*redact.Redactor
}

func (r *redactors) of(org db.Org, load func() (*redact.Redactor, error)) (*redact.Redactor, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.have[org]; known != nil {
		return known, nil
	}
	made, err := load()
	if err != nil {
		return nil, err
	}
	if r.have == nil {
		r.have = map[db.Org]*redact.Redactor{}
	}
	r.have[org] = made
	return made, nil
}
