package lab

import (
	"fmt"
	"slices"
	"strings"
)

// Equal is policies under which a session was replayed equally, to the token.
type Equal struct {
	Session  string   `json:"session"`
	Window   int      `json:"window_tokens"`
	Policies []string `json:"policies"`
	Why      string   `json:"why"`
}

// Equals returns the policies that do not differ in a session and a window.
func (r Report) Equals() (all []Equal) {
	for _, g := range r.groups() {
		if g.Window == 0 {
			continue
		}
		for _, same := range g.equals() {
			all = append(all, equalOf(same))
		}
	}
	return all
}

func equalOf(same []Result) Equal {
	e := Equal{Session: same[0].Session, Window: same[0].Window, Why: why(same)}
	for _, r := range same {
		e.Policies = append(e.Policies, r.Policy)
	}
	return e
}

// equals returns the results of a group that are equal, in lists of at least two.
func (g group) equals() (all [][]Result) {
	var lists [][]Result
	for _, r := range g.Results {
		i := slices.IndexFunc(lists, func(list []Result) bool { return equalTo(list[0], r) })
		if i < 0 {
			lists = append(lists, []Result{r})
			continue
		}
		lists[i] = append(lists[i], r)
	}
	for _, list := range lists {
		if len(list) > 1 {
			all = append(all, list)
		}
	}
	return all
}

// equalTo reports whether two replays sent prompts of the same sizes and had the same evidence in view.
func equalTo(a, b Result) bool {
	return slices.Equal(a.Turns, b.Turns) && a.Evidence == b.Evidence && a.CachedCost == b.CachedCost &&
		a.Partial == b.Partial
}

// why says why replays are equal.
func why(same []Result) string {
	var fired []string
	for _, r := range same {
		for _, step := range r.Fired() {
			if !slices.Contains(fired, step) {
				fired = append(fired, step)
			}
		}
	}
	first := same[0]
	if len(fired) == 0 {
		return fmt.Sprintf("their steps did not fire: the largest prompt has %d of the window's %d tokens", first.Most,
			first.Window)
	}
	return "what fired did the same in each: " + strings.Join(fired, ", ")
}

// Text says in a sentence which policies are equal, and why.
func (e Equal) Text() string {
	return fmt.Sprintf("Equal here: %s, because %s", listed(e.Policies), e.Why)
}

// listed joins names by commas, the last by and.
func listed(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}
