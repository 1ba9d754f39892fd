package policy_test

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/recall"
)

// subject is a policy that a property is checked for.
type subject struct {
	name string
	of   func(h *history) policy.Policy
}

// subjects returns each step that edits, with settings anywhere in their ranges, and each preset.
func subjects() (all []subject) {
	for _, m := range policy.Mechanisms() {
		_, edits := m.New().(policy.Editor)
		if edits {
			all = append(all, subject{m.Name, func(h *history) policy.Policy { return alone(h, m) }})
		}
	}
	for _, p := range policy.Presets() {
		all = append(all, subject{p.Name, func(h *history) policy.Policy { return held(h, p.Policy()) }})
	}
	return all
}

// alone returns a policy of one step with random settings.
func alone(h *history, m policy.Mechanism) policy.Policy {
	return parsed(map[string]any{"steps": []any{settingsFor(h.Rand, m)}})
}

// settingsFor returns settings anywhere in their ranges for a step.
func settingsFor(h *rand.Rand, m policy.Mechanism) map[string]any {
	step := map[string]any{"step": m.Name}
	for _, s := range policy.Settings(m.New()) {
		if h.IntN(3) == 0 {
			continue
		}
		switch s.Value.(type) {
		case int:
			step[s.Name] = int(s.Min) + int(math.Pow(min(s.Max-s.Min, 5000)+1, h.Float64())) - 1
		case float64:
			step[s.Name] = s.Min + (s.Max-s.Min)*h.Float64()
		case bool:
			step[s.Name] = h.IntN(2) == 0
		case string:
			step[s.Name] = s.OneOf[h.IntN(len(s.OneOf))]
		case []string:
			step[s.Name] = [][]string{{}, {"*"}, {"read*", "*files"}}[h.IntN(3)]
		case policy.Duration:
			step[s.Name] = []string{"0s", "30s", "5m", "2h"}[h.IntN(4)]
		}
	}
	return step
}

// held returns a preset that now and then holds back its changes for the provider's cache.
func held(h *history, p policy.Policy) policy.Policy {
	modes := []string{"always", "only_if_cold", "under_pressure", "break_even"}
	gate := map[string]any{"when": modes[h.IntN(4)], "turns_left": h.IntN(40)}
	if len(p.Steps) == 0 || h.IntN(2) == 0 {
		return p
	}
	return parsed(map[string]any{"preset": p.Preset, "steps": map[string]any{"apply_if": gate}})
}

func parsed(written any) policy.Policy {
	raw, err := json.Marshal(written)
	if err != nil {
		panic(err)
	}
	p, err := policy.Parse(raw)
	if err != nil {
		panic(fmt.Errorf("%s: %w", raw, err))
	}
	return p
}

// In random histories and windows, a policy's edits lose nothing and obey its settings.
func TestPruningLosesNothing(t *testing.T) {
	t.Parallel()
	cases := uint64(scale.Pure(100, 20_000))
	all := subjects()
	var mu sync.Mutex
	edited := map[string]int{}
	for i, s := range all {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			for seed := uint64(i); seed < cases && !t.Failed(); seed += uint64(len(all)) {
				n, err := prunes(seed, s.of)
				if err != nil {
					t.Errorf("seed %d: %v", seed, err)
				}
				mu.Lock()
				edited[s.name] += n
				mu.Unlock()
			}
		})
	}
	t.Cleanup(func() {
		if cases < uint64(10*len(all)) {
			return // with so few cases there may be no edit
		}
		for _, s := range all {
			if p, err := policy.Preset(s.name); edited[s.name] == 0 && (err != nil || hasEditor(p)) && !t.Failed() {
				t.Errorf("%s edited nothing: the cases do not try it", s.name)
			}
		}
	})
}

func hasEditor(p policy.Policy) bool {
	return slices.ContainsFunc(p.Steps, func(s policy.Step) bool {
		if b, ok := s.(*policy.ReadBounds); ok {
			return b.UnchangedStub
		}
		_, ok := s.(policy.Editor)
		return ok
	})
}

// prunes lets a history go on for some rounds under a policy. It returns the number of edits, and the first property
// that does not hold.
func prunes(seed uint64, policyFor func(*history) policy.Policy) (edits int, err error) {
	h := newHistory(seed)
	p := policyFor(h)
	h.Window = 4000 << h.IntN(9)
	h.Fixed = h.IntN(h.Window / 4)
	at := policy.Moment{}
	for round := range 4 {
		h.live(1 + h.IntN(40))
		at.Now = h.now
		if h.IntN(3) > 0 {
			at.Write = failing(seed)
		}
		after, fresh := p.Prune(h.View, at)
		if err := pruned(p, at, h.View, after, fresh); err != nil {
			raw, _ := json.Marshal(p.Steps)
			return edits, fmt.Errorf("round %d of %s, window %d: %w", round, raw, h.Window, err)
		}
		edits += len(fresh)
		h.Edits, at.Touched = after.Edits, h.now
		h.leave()
	}
	return edits, nil
}

// leave lets the oldest messages leave the view now and then, as a compaction does.
func (h *history) leave() {
	if h.IntN(4) > 0 {
		return
	}
	cut := h.IntN(len(h.Messages))
	if i := slices.IndexFunc(h.Messages[cut:], func(m recall.Message) bool { return m.Role == recall.User }); i >= 0 {
		h.Messages = h.Messages[cut+i:]
	}
	h.Edits = slices.DeleteFunc(slices.Clone(h.Edits), func(e clip.Edit) bool {
		return e.Position < h.Messages[0].Position
	})
}

// failing returns a model that writes lines. It fails now and then, always for the same requests.
func failing(seed uint64) func([]policy.LineRequest) []policy.Line {
	return func(requests []policy.LineRequest) []policy.Line {
		lines := make([]policy.Line, len(requests))
		for i, r := range requests {
			if (uint64(r.Hash[0])+seed)%3 > 0 {
				lines[i] = policy.Line{Text: "a line\nabout " + r.Hash[:8], Unasked: r.Hash[1]%8 == 0}
			}
		}
		return lines
	}
}

// pruned checks what a policy made of a view.
func pruned(p policy.Policy, at policy.Moment, before, after clip.View, fresh []clip.Edit) error {
	if again, same := p.Prune(before, at); !reflect.DeepEqual(again, after) || !reflect.DeepEqual(same, fresh) {
		return fmt.Errorf("it is not deterministic: %v, then %v", fresh, same)
	}
	if _, more := p.Prune(after, at); len(more) > 0 {
		return fmt.Errorf("it edits what it edited: %+v after %+v", more, fresh)
	}
	if err := plan.CheckNothingLost(before, clip.Evicted{}, after); err != nil {
		return err
	}
	tokensBefore, tokensAfter := sum(clip.ShownTokens(before)), sum(clip.ShownTokens(after))
	saves := func(e clip.Edit) bool { return e.Kind != clip.Pointer }
	if tokensAfter > tokensBefore || tokensAfter == tokensBefore && slices.ContainsFunc(fresh, saves) {
		return fmt.Errorf("%d tokens become %d with %+v", tokensBefore, tokensAfter, fresh)
	}
	if before.Summary != after.Summary || !reflect.DeepEqual(before.Messages, after.Messages) {
		return fmt.Errorf("more than edits changed")
	}
	if err := invariants(before, after); err != nil {
		return err
	}
	return leads(after)
}

func sum(all []int) (n int) {
	for _, x := range all {
		n += x
	}
	return n
}

// legible checks that each message of a view is shown as valid text, with its calls and results in order, and that
// thoughts are whole or gone.
func legible(v clip.View) error {
	shown, whole := clip.Shown(v.Messages, v.Edits), v.Messages
	for i, m := range shown {
		if m.Role != whole[i].Role || len(m.Content) == 0 {
			return fmt.Errorf("message %d is shown as one of %s with %d parts", m.Position, m.Role, len(m.Content))
		}
		parts := whole[i].Content
		for _, p := range m.Content {
			for p.Type != parts[0].Type && parts[0].Type == recall.Reasoning {
				parts = parts[1:]
			}
			if p.Type != parts[0].Type || p.CallID != parts[0].CallID || p.Name != parts[0].Name ||
				p.IsError != parts[0].IsError {
				return fmt.Errorf("message %d: a part is %v, not %v", m.Position, p, parts[0])
			}
			if p.Type == recall.Reasoning && !reflect.DeepEqual(p, parts[0]) {
				return fmt.Errorf("message %d: a thought is changed", m.Position)
			}
			if !utf8.ValidString(p.Text) || p.Text == "" && parts[0].Text != "" ||
				p.Type == recall.ToolCall && !json.Valid([]byte(p.Input)) && json.Valid([]byte(parts[0].Input)) {
				return fmt.Errorf("message %d shows %q", m.Position, p.Text+p.Input)
			}
			parts = parts[1:]
		}
	}
	return nil
}

// leads checks that each edited part says how to read the whole, that each pointer leads to a text that is shown, and
// that no note is within a note.
func leads(after clip.View) error {
	shown := clip.Shown(after.Messages, after.Edits)
	edits := map[int64][]clip.Edit{}
	for i, m := range after.Messages {
		for _, e := range after.Edits {
			if e.Position == m.Position {
				edits[m.Seq] = append(edits[m.Seq], e)
				if content := shown[i].Content; e.Kind != clip.Removed && !strings.Contains(textOf(content), "expand(id=") {
					return fmt.Errorf("message %d does not say how to read it: %s", m.Position, textOf(content))
				}
			}
		}
	}
	for _, e := range after.Edits {
		if e.Kind != clip.Pointer {
			continue
		}
		i := slices.IndexFunc(after.Messages, func(m recall.Message) bool { return m.Seq == e.CopySeq })
		if i < 0 {
			return fmt.Errorf("%+v leads to a message that left", e)
		}
		results := 0
		for _, p := range after.Messages[i].Content {
			if p.Type == recall.ToolReturn {
				results++
			}
		}
		hidden := 0
		for _, to := range edits[e.CopySeq] {
			if to.Kind == clip.Pointer || to.Kind == clip.Stub || to.Kind == clip.Line {
				hidden++
			}
		}
		if hidden == results {
			return fmt.Errorf("%+v leads to no text: %+v", e, edits[e.CopySeq])
		}
	}
	return nil
}

func textOf(parts []recall.Part) (s string) {
	for _, p := range parts {
		s += p.Text + p.Input
	}
	return s
}
