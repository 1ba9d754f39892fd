package clip_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/recall"
)

// script returns messages by their names: u is a user's message, a an answer, c1 an answer with the call 1, r1 its
// result, n a notice of the system. A name that ends in a prime belongs to the step of the message before it.
func script(names string) []recall.Message {
	var all []recall.Message
	step := ""
	for i, name := range strings.Fields(names) {
		name, same := strings.CutSuffix(name, "'")
		if !same {
			step = "step-" + string(rune('a'+i))
		}
		var m recall.Message
		switch name[0] {
		case 'u':
			m = recall.Message{Role: recall.User, Content: []recall.Part{{Type: recall.Text, Text: name}}}
		case 'n':
			m = recall.Message{Role: recall.System, Content: []recall.Part{{Type: recall.Text, Text: name}}}
		case 'a':
			m = recall.Message{Role: recall.Assistant, StepID: new(step),
				Content: []recall.Part{{Type: recall.Text, Text: name}}}
		case 'c':
			m = recall.Message{Role: recall.Assistant, StepID: new(step)}
			for _, id := range name[1:] {
				m.Content = append(m.Content, recall.Part{Type: recall.ToolCall, CallID: string(id), Name: "run", Input: "{}"})
			}
		case 'r':
			m = recall.Message{Role: recall.Tool}
			for _, id := range name[1:] {
				m.Content = append(m.Content, recall.Part{Type: recall.ToolReturn, CallID: string(id), Text: "result"})
			}
		}
		all = append(all, m)
	}
	return viewOf(all...).Messages
}

// Where a view may be cut: neither between a call and its result nor within a step, nor before the last group's end.
func TestWhereAViewMayBeCut(t *testing.T) {
	t.Parallel()
	for names, want := range map[string]struct {
		cuts     []int // indexes before which a cut is allowed
		last     int   // the last cut
		unseen   [2]int
		openCall int
	}{
		"":                     {[]int{0}, 0, [2]int{0, 0}, 0},
		"u":                    {[]int{0, 1}, 0, [2]int{1, 1}, 1},
		"u a u":                {[]int{0, 1, 2, 3}, 2, [2]int{3, 3}, 3},
		"u c1 r1 a":            {[]int{0, 1, 3, 4}, 3, [2]int{4, 4}, 4},
		"u c12 r1 r2 a u":      {[]int{0, 1, 4, 5, 6}, 5, [2]int{6, 6}, 6},
		"u c1 r1":              {[]int{0, 1, 3}, 1, [2]int{1, 3}, 3},
		"u c1 c2' r1 r2":       {[]int{0, 1, 5}, 1, [2]int{1, 5}, 5},
		"u a c1' r1":           {[]int{0, 1, 4}, 1, [2]int{1, 4}, 4},
		"u c1":                 {[]int{0, 1, 2}, 1, [2]int{1, 2}, 1},
		"u c12 r1":             {[]int{0, 1, 3}, 1, [2]int{1, 3}, 1},
		"u c1 n r1 a":          {[]int{0, 1, 4, 5}, 4, [2]int{5, 5}, 5},
		"u c1 u":               {[]int{0, 1, 2, 3}, 1, [2]int{1, 2}, 1},
		"u c1 u u":             {[]int{0, 1, 2, 3, 4}, 3, [2]int{1, 2}, 4},
		"u c1 u r1":            {[]int{0, 1, 2, 3, 4}, 3, [2]int{1, 2}, 4},
		"u c1 r1 a c2 r2 a u":  {[]int{0, 1, 3, 4, 6, 7, 8}, 7, [2]int{8, 8}, 8},
		"r9 u a":               {[]int{0, 1, 2, 3}, 2, [2]int{3, 3}, 3},
		"u c1 r1 c1 r1 a":      {[]int{0, 1, 3, 5, 6}, 5, [2]int{6, 6}, 6},
		"u c1 a c2 r2 r1 a":    {[]int{0, 1, 2, 3, 5, 6, 7}, 6, [2]int{7, 7}, 7},
		"u c1 r1 a' c2' r2 u3": {[]int{0, 1, 3, 6, 7}, 6, [2]int{3, 6}, 7},
	} {
		messages := script(names)
		c := clip.CutPointsOf(messages)
		var cuts []int
		for i, inside := range c.Inside {
			if !inside {
				cuts = append(cuts, i)
			}
		}
		if !slices.Equal(cuts, want.cuts) || c.Last() != want.last || c.OpenCall != want.openCall {
			t.Errorf("%q: got the cuts %v, the last %d, the open call %d; want %v, %d, %d", names, cuts, c.Last(), c.OpenCall,
				want.cuts, want.last, want.openCall)
		}
		if from, to := (clip.View{Messages: messages}).Unanswered(); [2]int{from, to} != want.unseen {
			t.Errorf("%q: not answered are %d to %d, want %v", names, from, to, want.unseen)
		}
		if open := (clip.View{Messages: messages}).Open(); open != (want.openCall < len(messages)) {
			t.Errorf("%q: open is %t", names, open)
		}
		for i := range messages {
			if before, after := c.Before(i), c.After(i); c.Inside[before] || before > i || c.Inside[after] ||
				after > c.Last() || after < min(i, c.Last()) {
				t.Errorf("%q: the cuts around %d are %d and %d", names, i, before, after)
			}
		}
	}
}

// A late result may stay when its call leaves; it stays while its call does.
func TestLateResults(t *testing.T) {
	t.Parallel()
	messages := script("u c1 u a r1 a u")
	c := clip.CutPointsOf(messages)
	if !slices.Equal(c.Late, []clip.LatePair{{Call: 1, Result: 4}}) {
		t.Errorf("late are %v", c.Late)
	}
	c.Keep([]int{1})
	var stays []int
	for i := range messages {
		if c.Stays(i) {
			stays = append(stays, i)
		}
	}
	if !slices.Equal(stays, []int{1, 4, 6}) {
		t.Errorf("with the call kept, %v stay", stays)
	}
}

func TestWhatStays(t *testing.T) {
	t.Parallel()
	for names, c := range map[string]struct {
		keep      []int
		stays     []int
		abandoned bool
		released  []int // what stays after Release
	}{
		"u a u a":           {nil, []int{2}, false, []int{2}},
		"u c1 r1":           {nil, []int{0, 1, 2}, false, []int{0}},
		"u c1 r1 u":         {nil, []int{1, 2, 3}, true, []int{3}},
		"u c1 u":            {nil, []int{1, 2}, false, []int{2}},
		"u a c1 r1 a u a":   {[]int{3}, []int{2, 3, 5}, false, []int{2, 3, 5}},
		"u a u a u":         {[]int{-1, 1, 9}, []int{1, 4}, false, []int{1, 4}},
		"a c1 u r1":         {nil, []int{1, 2, 3}, false, []int{2}},
		"u c1 u r1 u":       {nil, []int{1, 3, 4}, true, []int{4}},
		"u c1 r1 a u c2 r2": {nil, []int{4, 5, 6}, false, []int{4}},
	} {
		messages := script(names)
		points := clip.CutPointsOf(messages)
		points.Keep(c.keep)
		stay := func() (all []int) {
			for i := range messages {
				if points.Stays(i) {
					all = append(all, i)
				}
			}
			return all
		}
		if got := stay(); !slices.Equal(got, c.stays) || points.Abandoned() != c.abandoned {
			t.Errorf("%q: %v stay, abandoned %t; want %v, %t", names, got, points.Abandoned(), c.stays, c.abandoned)
		}
		points.Release()
		if got := stay(); !slices.Equal(got, c.released) {
			t.Errorf("%q: after the release %v stay, want %v", names, got, c.released)
		}
	}
}
