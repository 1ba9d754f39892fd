package endpoint

import "time"

// Pace exposes the pace of jobs to tests.
type Pace struct{ pace }

func (p *Pace) Begin(now time.Time)          { p.begin(now) }
func (p *Pace) End(now time.Time, texts int) { p.end(now, texts) }
func (p *Pace) PerSecond() float64           { return p.perSecond() }
