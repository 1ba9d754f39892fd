package lab

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed report.html
var reportPage embed.FS

// WriteReport writes the results to a directory: report.json for programs, and report.html, which needs no network.
func WriteReport(dir string, results []Result) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("make the directory of the report: %w", err)
	}
	return errors.Join(writeFile(filepath.Join(dir, "report.json"), results, writeJSON),
		writeFile(filepath.Join(dir, "report.html"), results, writeHTML))
}

func writeFile(path string, results []Result, write func(io.Writer, []Result) error) error {
	f, err := os.Create(path) // #nosec G304 -- the caller names it
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if err := errors.Join(write(f, results), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func writeJSON(w io.Writer, results []Result) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(results)
}

// group is what the report shows together: the replays of a session in a window.
type group struct {
	Session string
	Window  int
	Results []Result
	Most    int     // tokens
	Turns   int     // the most of a replay
	Dearest float64 // cached cost
}

// Size of the plots in the units of their view boxes.
const (
	plotWidth  = 760
	plotHeight = 220
)

func writeHTML(w io.Writer, results []Result) error {
	var groups []group
	for _, r := range results {
		i := slices.IndexFunc(groups, func(g group) bool { return g.Session == r.Session && g.Window == r.Window })
		if i < 0 {
			i = len(groups)
			groups = append(groups, group{Session: r.Session, Window: r.Window, Most: 1, Turns: 1})
		}
		g := &groups[i]
		g.Results = append(g.Results, r)
		g.Most, g.Turns, g.Dearest = max(g.Most, r.Most), max(g.Turns, len(r.Turns)), max(g.Dearest, r.CachedCost)
	}
	page, err := template.New("report.html").Funcs(template.FuncMap{
		"line": func(g group, r Result) string { return g.line(r) },
		"x":    func(g group, i int) string { return fmt.Sprintf("%.1f", g.x(i)) },
		"y":    func(g group, tokens int) string { return fmt.Sprintf("%.1f", g.y(tokens)) },
		"color": func(i int) template.CSS {
			return template.CSS(fmt.Sprintf("hsl(%d 65%% 45%%)", i*137%360)) // #nosec G203 -- a number
		},
		"percent": func(share float64) string { return fmt.Sprintf("%.1f", 100*share) },
		"money":   func(n float64) string { return fmt.Sprintf("%.2f", n) },
		"costX": func(g group, cost float64) string {
			return fmt.Sprintf("%.1f", cost/max(g.Dearest, 1e-9)*(plotWidth-40))
		},
		"shareY": func(share float64) string { return fmt.Sprintf("%.1f", (1-share)*plotHeight) },
		"front":  func(g group, r Result) bool { return g.onFront(r) },
	}).ParseFS(reportPage, "report.html")
	if err != nil {
		return err
	}
	return page.Execute(w, groups)
}

// line returns the points of a replay's tokens by turn.
func (g group) line(r Result) string {
	points := make([]string, len(r.Turns))
	for i, t := range r.Turns {
		points[i] = fmt.Sprintf("%.1f,%.1f", g.x(i), g.y(t.Tokens))
	}
	return strings.Join(points, " ")
}

func (g group) x(turn int) float64 { return float64(turn) * plotWidth / float64(max(g.Turns-1, 1)) }

func (g group) y(tokens int) float64 { return plotHeight * (1 - float64(tokens)/float64(g.Most)) }

// onFront reports whether no other replay is both cheaper and keeps more in view.
func (g group) onFront(r Result) bool {
	return !slices.ContainsFunc(g.Results, func(o Result) bool {
		return o.CachedCost <= r.CachedCost && o.Evidence.Share() >= r.Evidence.Share() &&
			(o.CachedCost < r.CachedCost || o.Evidence.Share() > r.Evidence.Share())
	})
}
