package lab

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Advice says which policy is best in a session and a window, for each goal.
type Advice struct {
	Session string   `json:"session"`
	Window  int      `json:"window_tokens"`
	Winners []Winner `json:"winners"` // none if no policy can be told from the others
	Text    string   `json:"advice"`  // a sentence, with the reasons
}

// Winner is the best policy for a goal.
type Winner struct {
	Goal   string `json:"goal"`
	Policy string `json:"policy"`
	Equal  int    `json:"equal,omitempty"` // how many others do as well
	Why    string `json:"why"`
}

// goal is something that a policy can be best at.
type goal struct {
	name    string
	compare func(a, b Result) int // negative if a is better
	why     func(best, worst Result) string
}

// goals are the goals of advice. What is equal for a goal is told apart by the next.
var goals = []goal{
	{"to pay least", func(a, b Result) int { return cmp.Compare(a.CachedCost, b.CachedCost) },
		func(r, worst Result) string {
			return fmt.Sprintf("it costs %s, and %s %s, because %s and a cache has %.0f %% of its prompts", price(r.CachedCost),
				worst.Policy, price(worst.CachedCost), r.saves(), 100*r.KeptShare)
		}},
	{"to keep most in view", func(a, b Result) int { return cmp.Compare(b.Evidence.Share(), a.Evidence.Share()) },
		func(r, worst Result) string {
			return fmt.Sprintf("%s of what answers used was in view, and under %s %s, because %s", r.Evidence.InViewText(),
				worst.Policy, worst.Evidence.InViewText(), r.keeps())
		}},
	{"for the fewest cache breaks", func(a, b Result) int { return cmp.Compare(a.Breaks, b.Breaks) },
		func(r, worst Result) string {
			return fmt.Sprintf("%d of its %d prompts change what was sent before, and under %s %d, because %s", r.Breaks,
				len(r.Turns), worst.Policy, worst.Breaks, r.breaks())
		}},
}

// price writes a cost with the digits that tell policies apart.
func price(cost float64) string {
	if cost < 1 {
		return fmt.Sprintf("%.4f", cost)
	}
	return money(cost)
}

// saves says what took most out of view.
func (r Result) saves() string {
	most := Layer{}
	for _, l := range r.Layers {
		if l.Saved > most.Saved {
			most = l
		}
	}
	if most.Saved == 0 {
		return nothingLeft
	}
	times := "once"
	if most.Fired > 1 {
		times = fmt.Sprintf("%d times", most.Fired)
	}
	return fmt.Sprintf("%s acted %s and took %d tokens out of view", most.Step, times, most.Saved)
}

// keeps says why what answers used was in view.
func (r Result) keeps() string {
	out := r.Evidence.Total() - r.Evidence.InView
	switch {
	case r.saves() == nothingLeft:
		return nothingLeft
	case out == 0:
		return "what left the view was not used again, or its summaries name it"
	}
	return fmt.Sprintf("only %d of %d uses were of what had left the view", out, r.Evidence.Total())
}

// nothingLeft is the reason of a policy that took nothing out of view.
const nothingLeft = "nothing left the view"

// breaks says what changed what was sent before.
func (r Result) breaks() string {
	switch {
	case r.Breaks == 0 && r.Compactions+r.Edits == 0:
		return nothingLeft
	case r.Breaks == 0:
		return "its steps only shorten what was not sent yet"
	case r.Edits == 0 || r.Breaks <= r.Compactions:
		return fmt.Sprintf("only its %s did", counted(r.Compactions, "compaction"))
	}
	return fmt.Sprintf("it made %s and %s", counted(r.Compactions, "compaction"), counted(r.Edits, "edit"))
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Advise returns advice for each session and window in which policies were compared.
func (r Report) Advise() (all []Advice) {
	for _, g := range r.groups() {
		switch {
		case g.Window <= 0 || len(g.Results) < 2:
		case r.Partial && (len(g.Results) < len(r.Policies) || slices.ContainsFunc(g.Results, Result.isPartial)):
			all = append(all, Advice{Session: g.Session.Name, Window: g.Window, Winners: []Winner{},
				Text: "There is no advice, because the replays were interrupted before all policies had replayed the session"})
		default:
			all = append(all, g.advise())
		}
	}
	return all
}

func (r Result) isPartial() bool { return r.Partial }

func (g group) advise() Advice {
	a := Advice{Session: g.Session.Name, Window: g.Window, Winners: []Winner{}}
	var sound []Result // that can be used: their prompts fit, and they lost nothing
	for _, r := range g.Results {
		if r.TooLarge == 0 && r.PairErrors == 0 && !r.Partial {
			sound = append(sound, r)
		}
	}
	switch {
	case len(sound) == 0:
		a.Text = fmt.Sprintf("Take a larger window, because under no policy all prompts fit %d tokens", g.Window)
		return a
	case !slices.ContainsFunc(sound, func(r Result) bool { return !equalTo(sound[0], r) }):
		a.Text = g.alike(sound)
		return a
	}
	for i, goal := range goals {
		if !slices.ContainsFunc(sound, func(r Result) bool { return goal.compare(sound[0], r) != 0 }) {
			continue // they are equal for this goal
		}
		order := append(slices.Clone(goals[i:]), goals[:i]...)
		best := slices.MinFunc(sound, func(a, b Result) int {
			for _, by := range order {
				if c := by.compare(a, b); c != 0 {
					return c
				}
			}
			return 0
		})
		w := Winner{Goal: goal.name, Policy: best.Policy, Why: goal.why(best, slices.MaxFunc(sound, goal.compare))}
		for _, r := range sound {
			if r.Policy != best.Policy && equalTo(best, r) {
				w.Equal++
			}
		}
		a.Winners = append(a.Winners, w)
	}
	if a.Text = sentence(a.Winners); a.Text == "" {
		a.Text = "Take any, because they cost the same, keep as much in view, and break a cache as often"
	}
	return a
}

// alike says that all policies are equal, and what would tell them apart.
func (g group) alike(sound []Result) string {
	if len(sound) == 1 {
		return fmt.Sprintf("Take %s, because under the others some prompts do not fit %d tokens", sound[0].Policy, g.Window)
	}
	text := fmt.Sprintf("Take any of the %d policies, because they are equal here: %s", len(sound), why(sound))
	if len(sound[0].Fired()) == 0 {
		text += fmt.Sprintf("; a window below %d tokens, or a longer session, would tell them apart", sound[0].Most)
	}
	return text
}

// sentence says who wins in one sentence. A policy that wins several goals is named once.
func sentence(winners []Winner) string {
	var parts []string
	named := map[string]bool{}
	for _, w := range winners {
		if named[w.Policy] {
			continue
		}
		named[w.Policy] = true
		var goals, reasons []string
		for _, other := range winners {
			if other.Policy == w.Policy {
				goals, reasons = append(goals, other.Goal), append(reasons, other.Why)
			}
		}
		policy := w.Policy
		if w.Equal > 0 {
			policy += fmt.Sprintf(" (%d others do the same)", w.Equal)
		}
		parts = append(parts, fmt.Sprintf("%s take %s: %s", listed(goals), policy, strings.Join(reasons, ", and ")))
	}
	text := strings.Join(parts, "; ")
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}
