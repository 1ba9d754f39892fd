package endpoint

import "cmp"

// MostTexts and MostTokens are the most that a job embeds at once. It is enough for the requests to take longer than
// the statements before and after them.
const (
	MostTexts  = 128
	MostTokens = 38_400
)

// growAfter is how many jobs in a row must succeed at a size before the size doubles.
const growAfter = 16

func (d *Endpoint) grow() {
	if d.streak++; d.limit == 0 || d.streak < growAfter {
		return
	}
	if d.streak, d.limit = 0, d.limit*2; d.limit >= d.most() {
		d.limit = 0
	}
}

// Size returns how many texts a job may now embed at once.
func (d *Endpoint) Size() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return min(cmp.Or(d.limit, MostTexts), d.most())
}

// most returns how many texts a job may embed at once when the endpoint is fast.
func (d *Endpoint) most() int { return cmp.Or(d.source().of.JobTexts, MostTexts) }
