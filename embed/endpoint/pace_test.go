package endpoint_test

import (
	"testing"
	"time"

	"github.com/loci-memory/loci/embed/endpoint"
)

func TestThePaceIsOfTheTimeAtWork(t *testing.T) {
	t.Parallel()
	var p endpoint.Pace
	at := func(second float64) time.Time {
		return time.Unix(0, 0).Add(time.Duration(second * float64(time.Second)))
	}
	if got := p.PerSecond(); got != 0 {
		t.Errorf("before any text: got %g", got)
	}
	p.Begin(at(0))
	p.Begin(at(1)) // while the first runs
	p.End(at(2), 30)
	p.End(at(4), 10)
	if got := p.PerSecond(); got != 10 {
		t.Errorf("40 texts in 4 seconds: got %g a second", got)
	}
	p.Begin(at(1000)) // idle time does not count
	p.End(at(1001), 60)
	if got := p.PerSecond(); got != 20 {
		t.Errorf("100 texts in 5 seconds at work: got %g a second", got)
	}
	for i := range 200 {
		p.Begin(at(2000 + float64(i)))
		p.End(at(2001+float64(i)), 50)
	}
	if got := p.PerSecond(); got < 48 || got > 50 {
		t.Errorf("after minutes at 50 a second: got %g", got)
	}
}
