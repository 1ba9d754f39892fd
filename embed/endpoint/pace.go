package endpoint

import (
	"sync"
	"time"
)

// Backlog counts texts by the state of their vectors in the active space.
type Backlog struct {
	Waiting  int64 `json:"waiting" db:"waiting" doc:"That wait for their vectors, and are found by their words."`
	Embedded int64 `json:"embedded" db:"embedded" doc:"That have a vector."`
	Refused  int64 `json:"refused" db:"refused" doc:"That get no vector, and are found by their words alone."`
}

// Add adds the counts of another Backlog.
func (b *Backlog) Add(other Backlog) {
	b.Waiting, b.Embedded, b.Refused = b.Waiting+other.Waiting, b.Embedded+other.Embedded, b.Refused+other.Refused
}

// paceSeconds is the half-life of older measurements, in seconds of work.
const paceSeconds = 60

// pace measures how many texts jobs embed per second. Only seconds in which a job runs count.
type pace struct {
	mu      sync.Mutex
	working int
	since   time.Time // time of the last change of working
	seconds float64
	texts   float64
}

func (p *pace) begin(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pass(now)
	p.working++
}

func (p *pace) end(now time.Time, texts int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pass(now)
	p.working--
	if p.texts += float64(texts); p.seconds > paceSeconds {
		p.texts, p.seconds = p.texts/2, p.seconds/2
	}
}

// pass adds the time since the last change.
func (p *pace) pass(now time.Time) {
	if p.working > 0 {
		p.seconds += now.Sub(p.since).Seconds()
	}
	p.since = now
}

// perSecond returns the pace, or 0 before any text is embedded.
func (p *pace) perSecond() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seconds == 0 {
		return 0
	}
	return p.texts / p.seconds
}

// TimeLeft returns how long this server takes for a number of texts at its latest pace. It returns false if it has
// embedded none yet.
func (d *Endpoint) TimeLeft(texts int64) (time.Duration, bool) {
	if texts == 0 {
		return 0, true
	}
	if d == nil || d.pace.perSecond() == 0 {
		return 0, false
	}
	return time.Duration(float64(texts) / d.pace.perSecond() * float64(time.Second)), true
}
