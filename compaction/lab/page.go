package lab

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// Size of the plots, in units of their view boxes.
const (
	plotWidth  = 760
	plotHeight = 220
)

// WriteHTML writes the report as a page that needs no other files.
func (r Report) WriteHTML(w io.Writer) error { return reportPage(r).Render(context.Background(), w) }

// color is the class of the color of a group's replay.
func color(i int) string { return fmt.Sprintf("c%d", i%10) }

func tenth(n float64) string { return fmt.Sprintf("%.1f", n) }

// windowText says in which windows the session was replayed.
func (g group) windowText() string {
	if g.Window == 0 {
		return "shares of the session"
	}
	return "a window of " + thousands(g.Window) + " tokens"
}

// cells are the numbers of a row of the table of results, in the order of its columns.
func (r Result) cells() []string {
	return []string{fmt.Sprint(len(r.Turns)), thousands(r.Tokens), thousands(r.Most), fmt.Sprint(r.TooLarge),
		money(r.CachedCost), money(r.Cost), tenth(100*r.KeptShare) + " %", fmt.Sprint(r.Breaks), fmt.Sprint(r.Compactions),
		fmt.Sprint(r.Edits),
		fmt.Sprint(r.ModelCalls), thousands(r.ModelTokens), fmt.Sprint(r.ModelFailures), fmt.Sprint(r.PairErrors),
		r.Evidence.InViewText(), fmt.Sprint(r.Evidence.Expand), fmt.Sprint(r.Evidence.Search), fmt.Sprint(r.Evidence.Lost),
		fmt.Sprint(r.Rereads), fmt.Sprintf("%.2f", r.Wall.Seconds())}
}

// cells are the numbers of a row of the table of answers.
func (s Score) cells() []string {
	return []string{fmt.Sprintf("%.2f", s.Ratio), thousands(s.Tokens), fmt.Sprint(s.Answers), fmt.Sprint(s.Same),
		fmt.Sprintf("%.2f", s.Agreement), fmt.Sprintf("%.2f", s.Recorded), fmt.Sprint(s.Failed)}
}

// verdict says how an answer agrees with the one from the whole context.
func (a Answer) verdict() string {
	switch {
	case a.Failed != "":
		return "failed: " + a.Failed
	case a.Ratio >= 1:
		return "agrees with the recording at " + fmt.Sprintf("%.2f", a.Recorded)
	case a.Same:
		return fmt.Sprintf("the same, %.2f", a.Agreement)
	}
	return fmt.Sprintf("another, %.2f", a.Agreement)
}

// shareOf returns the share of uses that were in view, and the number of uses; a dash if there are none.
func shareOf(e Evidence) string {
	if e.Total() == 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f %% of %d", 100*e.Share(), e.Total())
}

// thousands formats a number with spaces between groups of three digits.
func thousands(n int) string {
	digits := fmt.Sprint(n)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteRune('\u202f')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// line returns the points of a plot of a replay's tokens by turn.
func (g group) line(r Result) string {
	points := make([]string, len(r.Turns))
	for i, t := range r.Turns {
		points[i] = fmt.Sprintf("%.1f,%.1f", g.x(i), g.y(t.Tokens))
	}
	return strings.Join(points, " ")
}

func (g group) x(turn int) float64 { return float64(turn) * plotWidth / float64(max(g.Turns-1, 1)) }

func (g group) y(tokens int) float64 { return plotHeight * (1 - float64(tokens)/float64(g.Most)) }

// point is a replay in the plot of cost against evidence. Replays at the same place share a label.
type point struct {
	X, Y, LabelX, LabelY float64
	Color                int
	Title, Anchor, Label string // only replays on the front have a Label
}

// points returns where the replays are in the plot. Those on the front have labels that do not cover each other.
func (g group) points() (all []point) {
	for i, r := range g.Results {
		x := r.CachedCost / max(g.Dearest, 1e-9) * (plotWidth - 160)
		y := (1 - r.Evidence.Share()) / max(1-g.Least, 1e-9) * plotHeight
		same := slices.IndexFunc(all, func(p point) bool { return math.Hypot(p.X-x, p.Y-y) < 4 })
		if same >= 0 {
			all[same].Title += ", " + r.Policy
			if g.onFront(r) {
				all[same].Label = strings.TrimPrefix(all[same].Label+", "+r.Policy, ", ")
			}
			continue
		}
		p := point{X: x, Y: y, Color: i % 10, Title: r.Policy}
		if g.onFront(r) {
			p.Label = r.Policy
		}
		all = append(all, p)
	}
	slices.SortStableFunc(all, func(a, b point) int { return int(a.Y*1000 - b.Y*1000) })
	for i := range all {
		p := &all[i]
		p.LabelX, p.LabelY, p.Anchor = p.X+9, p.Y+4, "start"
		if p.X > plotWidth/2 {
			p.LabelX, p.Anchor = p.X-9, "end"
		}
		for _, o := range all[:i] {
			if o.Label != "" && math.Abs(o.LabelY-p.LabelY) < 13 && math.Abs(o.X-p.X) < 260 {
				p.LabelY = o.LabelY + 13
			}
		}
	}
	return all
}

// tick is a horizontal line of a plot, labelled with its share.
type tick struct {
	Y     float64
	Label string
}

// ticks returns the lines in the plot of cost against evidence.
func (g group) ticks() (all []tick) {
	for i := range 5 {
		share := 1 - float64(i)/4*(1-g.Least)
		all = append(all, tick{float64(i) / 4 * plotHeight, fmt.Sprintf("%.0f %%", 100*share)})
	}
	return all
}
