package lab

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loci-memory/loci/recall"
)

// Report is what replays of sessions measured.
type Report struct {
	Policies []Compared `json:"policies"` // without the ratios
	Sessions []Reported `json:"sessions"`
	Results  []Result   `json:"results"`
	Answers  []Answer   `json:"answers,omitempty"`      // to the agent's questions, with shares of the context
	Broken   []string   `json:"broken_lines,omitempty"` // what was not read of the files, and why
	Partial  bool       `json:"partial,omitempty"`      // the replays were interrupted
}

// Reported is a session in a report.
type Reported struct {
	Name     string          `json:"name"`
	Messages int             `json:"messages"`
	Tokens   int             `json:"tokens"`           // of a prompt that shows everything
	LeftOut  map[string]int  `json:"left_out"`         // what was not replayed from the recording, by kind
	Counts   *Counts         `json:"counts,omitempty"` // what the provider counted, if the recording says; Tokens has it
	Texts    []QuotedMessage `json:"texts"`            // the messages that Missing lists name
}

// QuotedMessage is a message as a report shows it.
type QuotedMessage struct {
	Position int         `json:"position"`
	Role     recall.Role `json:"role"`
	Text     string      `json:"text"` // at most quotedChars
}

// quotedChars bounds the text of a message in a report.
const quotedChars = 4_000

// Quote returns the session as a report shows it with these results.
func (s *Session) Quote(results []Result) Reported {
	out := Reported{Name: s.name, Messages: len(s.messages), Tokens: s.Tokens(), LeftOut: s.leftOut, Counts: s.counts,
		Texts: []QuotedMessage{}}
	named := map[int]bool{}
	for _, r := range results {
		for _, m := range r.Missing {
			if r.Session == s.name {
				named[m.Position], named[m.First], named[m.Newest] = true, true, true
			}
		}
	}
	for _, m := range s.messages {
		if named[m.Position] {
			out.Texts = append(out.Texts, QuotedMessage{m.Position, m.Role, clipped(spoken(m), quotedChars)})
		}
	}
	return out
}

// LeftOutText says in words what was not replayed from the recording; empty if nothing.
func (r Reported) LeftOutText() string {
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(r.LeftOut)) {
		kinds = append(kinds, fmt.Sprintf("%d %s", r.LeftOut[kind], cmp.Or(kind, "without a type")))
	}
	return strings.Join(kinds, ", ")
}

// Changed returns the report's policies that are more than a name.
func (r Report) Changed() (all []Compared) {
	for _, p := range r.Policies {
		if len(p.Asked) > 0 && p.Asked[0] != '"' {
			all = append(all, p)
		}
	}
	return all
}

// Write writes the report into a directory: report.json for programs, and report.html, which needs no network.
func (r Report) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return fmt.Errorf("make the directory of the report: %w", err)
	}
	return errors.Join(writeFile(filepath.Join(dir, "report.json"), r.WriteJSON),
		writeFile(filepath.Join(dir, "report.html"), r.WriteHTML))
}

func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path) // #nosec G304 -- the caller names it
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if err := errors.Join(write(f), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// WriteJSON writes the report for programs.
func (r Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// group is a section of the page: the replays of a session in one window, or at ratios.
type group struct {
	Anchor  string // prefix for the ids of its messages
	Session Reported
	Window  int // 0: at ratios
	Results []Result
	Most    int     // most tokens of a prompt
	Turns   int     // most turns of a replay
	Dearest float64 // highest cached cost
	Least   float64 // lowest share in view, rounded down to a tenth
}

// groups returns the results by session and window, in their order.
func (r Report) groups() (all []group) {
	for _, result := range r.Results {
		window := result.Window
		if result.Ratio > 0 {
			window = 0
		}
		i := slices.IndexFunc(all, func(g group) bool { return g.Session.Name == result.Session && g.Window == window })
		if i < 0 {
			i = len(all)
			index := slices.IndexFunc(r.Sessions, func(s Reported) bool { return s.Name == result.Session })
			session := Reported{Name: result.Session}
			if index >= 0 {
				session = r.Sessions[index]
			}
			all = append(all, group{Anchor: fmt.Sprintf("s%d", index+1), Session: session, Window: window,
				Most: 1, Turns: 1, Least: 1})
		}
		g := &all[i]
		g.Results = append(g.Results, result)
		g.Most, g.Turns = max(g.Most, result.Most), max(g.Turns, len(result.Turns))
		g.Dearest = max(g.Dearest, result.CachedCost)
		g.Least = min(g.Least, float64(int(10*result.Evidence.Share()))/10)
	}
	for i := range all {
		all[i].Least = min(all[i].Least, 0.9)
	}
	return all
}

// onFront reports whether no other replay is both cheaper and has more in view.
func (g group) onFront(r Result) bool {
	return !slices.ContainsFunc(g.Results, func(o Result) bool {
		return o.CachedCost <= r.CachedCost && o.Evidence.Share() >= r.Evidence.Share() &&
			(o.CachedCost < r.CachedCost || o.Evidence.Share() > r.Evidence.Share())
	})
}
