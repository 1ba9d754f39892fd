package policy_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/recall/tokens"
)

// planners returns the policies that the property tests plan with: each cutter alone, with default and other settings,
// and each preset.
func planners(t *testing.T) (names []string, all map[string]policy.Policy) {
	all = map[string]policy.Policy{}
	parse := func(name string, raw []byte) {
		p, err := policy.Parse(raw)
		if err != nil {
			t.Fatal(name, err)
		}
		all[name] = p
	}
	for _, m := range policy.Mechanisms() {
		if _, ok := m.New().(policy.Cutter); ok {
			parse(m.Name, policyOf(map[string]any{"step": m.Name}))
		}
	}
	for name, step := range map[string]map[string]any{
		"keep nothing":  {"step": "keep_recent", "keep_recent_tokens": 0},
		"never split":   {"step": "keep_recent", "keep_recent_tokens": 500, "split_turns": false, "summary": "loci"},
		"keep tail":     {"step": "provider", "keep_turns": 2},
		"small share":   {"step": "safeguard", "history_share": 0.1, "safety_factor": 1},
		"small notes":   {"step": "notes", "min_tokens": 100, "min_messages": 1, "max_tokens": 200},
		"strict table":  {"step": "auto_compact", "threshold_share": 0.1, "keep_user_messages": 50, "keep_results": 50},
		"all of letta":  {"step": "slide", "mode": "all"},
		"self of letta": {"step": "slide", "mode": "self_compact_sliding_window", "goal_share": 0.3},
		"small hard":    {"step": "hard_truncate", "above_share": 0.5},
	} {
		parse(name, policyOf(step))
	}
	for _, p := range policy.Presets() {
		all[p.Name] = p.Policy()
	}
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, all
}

// asker is a model that lets a function give the n-th answer, from 1.
type asker struct {
	answer func(n int, r summary.Request) (summary.Reply, error)
	asked  []summary.Request
}

func (a *asker) Complete(_ context.Context, r summary.Request) (summary.Reply, error) {
	a.asked = append(a.asked, r)
	return a.answer(len(a.asked), r)
}

// faulty are models that each fail in another way.
var faulty = []func(n int, r summary.Request) (summary.Reply, error){
	func(int, summary.Request) (summary.Reply, error) {
		return summary.Reply{Text: "The user wants it, and we decided on plan B."}, nil
	},
	func(int, summary.Request) (summary.Reply, error) {
		return summary.Reply{Text: "<analysis>secret thought</analysis><summary>We work on plan B.</summary>"}, nil
	},
	func(int, summary.Request) (summary.Reply, error) { return summary.Reply{}, errors.New("down") },
	func(int, summary.Request) (summary.Reply, error) { return summary.Reply{}, nil },
	func(int, summary.Request) (summary.Reply, error) {
		return summary.Reply{}, &summary.Overflow{Reason: "too long"}
	},
	func(n int, r summary.Request) (summary.Reply, error) {
		if n%2 == 1 {
			return summary.Reply{}, &summary.Overflow{Window: 3_000, Sent: 9_000}
		}
		return summary.Reply{Text: "It went on."}, nil
	},
	func(_ int, r summary.Request) (summary.Reply, error) {
		return summary.Reply{Text: r.Messages[len(r.Messages)-1].Content}, nil
	},
	func(int, summary.Request) (summary.Reply, error) {
		return summary.Reply{Text: strings.Repeat("On and on it goes. ", 3_000)}, nil
	},
	func(int, summary.Request) (summary.Reply, error) {
		return summary.Reply{Text: "We work on plan B with the token " + madeUpSecret + "."}, nil
	},
}

// madeUpSecret is a secret that a model makes up.
var madeUpSecret = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"

// cutLife is a conversation that a policy compacts again and again.
type cutLife struct {
	*talk
	policy policy.Policy
	others []policy.Policy // in each round one of these replaces the policy; empty: the policy stays
	at     policy.Moment
	model  *summary.Model
	set    plan.Settings
	write  bool // Summarize makes summaries; otherwise they are made up, which takes less time
	gone   map[int]bool
	plans  int
}

func newCutLife(seed uint64, p policy.Policy) *cutLife {
	l := &cutLife{talk: randomTalk(seed, int(seed%37)), policy: p, gone: map[int]bool{}}
	l.write = l.IntN(12) == 0
	l.set = plan.Defaults()
	switch l.IntN(6) {
	case 0, 1:
		l.set.Trigger = plan.MaxTrigger
	case 2:
		l.set.Trigger, l.set.Goal = plan.MinTrigger, 0.3
	}
	l.at = policy.Moment{Now: time.Unix(1e9, 0), Touched: time.Unix(1e9-int64(l.IntN(10_000)), 0),
		Busy: l.IntN(3) == 0, Forced: l.IntN(4) == 0, Settings: l.set}
	if l.IntN(2) == 0 {
		l.at.Notes, l.at.Noted = "Task: make plan B work in src/main.go.", l.IntN(40)
	}
	if l.IntN(5) > 0 {
		l.model = &summary.Model{Summarizer: &asker{answer: faulty[l.IntN(len(faulty))]}, Name: "fake",
			Window: []int{0, 3_000, 20_000, 200_000}[l.IntN(4)], Patience: time.Hour}
	}
	return l
}

// run compacts, lets the conversation go on, and repeats.
func (l *cutLife) run() error {
	for round := range 3 {
		if len(l.others) > 0 {
			l.policy = l.others[l.IntN(len(l.others))]
		}
		pruned, _ := l.policy.Prune(l.View, l.at)
		if err := invariants(l.View, pruned); err != nil {
			return fmt.Errorf("round %d, before the prompt: %w", round, err)
		}
		l.View = pruned
		for _, plan := range []func(clip.View, policy.Moment) (plan.Plan, error){l.policy.Plan,
			l.policy.Truncate} {
			if err := l.compactAll(plan); err != nil {
				return fmt.Errorf("round %d: %w", round, err)
			}
		}
		if err := l.accounted(); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		l.goOn(1+l.IntN(20), max(l.Window, 8_000)/2)
		l.Usage = nil
	}
	return nil
}

// compactAll plans until there is nothing more to do.
func (l *cutLife) compactAll(plan func(clip.View, policy.Moment) (plan.Plan, error)) error {
	for range 60 {
		p, err := plan(l.View, l.at)
		if errors.Is(err, errNothing(err)) || isTooBig(err) {
			return l.sound(err)
		}
		if err != nil {
			return err
		}
		if again, _ := plan(l.View, l.at); !reflect.DeepEqual(p, again) {
			return fmt.Errorf("the same view has two plans: %+v, %+v", p, again)
		}
		if err := l.apply(p); err != nil {
			return fmt.Errorf("%+v: %w", p, err)
		}
		l.plans++
	}
	return errors.New("it never ends")
}

func errNothing(err error) error {
	if n, ok := errors.AsType[*plan.Nothing](err); ok {
		return n
	}
	return errors.New("another")
}

func isTooBig(err error) bool {
	_, ok := errors.AsType[*plan.TooBig](err)
	return ok
}

// sound checks that a cutter returns a *TooBig only if the messages that must stay exceed their room.
func (l *cutLife) sound(err error) error {
	big, ok := errors.AsType[*plan.TooBig](err)
	if ok && big.Least <= big.Limit {
		return fmt.Errorf("%d tokens of %d are called too big", big.Least, big.Limit)
	}
	return nil
}

// apply carries out a plan, and checks the properties of every plan.
func (l *cutLife) apply(p plan.Plan) error {
	evicted := p.Evict(l.View)
	if evicted.Self != nil {
		evicted.Self.System = "You are an agent."
	}
	var summary *clip.Summary
	if p.Evicted > 0 {
		var err error
		if summary, err = l.summary(p, evicted); err != nil {
			return err
		}
	}
	after := p.View(l.View, summary)
	after.Has = l.Has
	limit := l.settings().Limit(l.Window)
	size := clip.Estimate(after)
	switch {
	case p.Evicted == 0 && p.After >= p.Before:
		return errors.New("no progress")
	case p.Evicted == 0 && len(p.Edits) == 0:
		return errors.New("nothing leaves, and nothing is clipped")
	case p.After > p.Goal && p.Goal > 0:
		return errors.New("it misses its goal")
	case l.Window > 0 && size > limit+plan.MinBudget+200:
		return fmt.Errorf("after it there are %d tokens, above %d", size, limit)
	}
	if err := plan.CheckNothingLost(l.View, evicted, after); err != nil {
		return err
	}
	if err := invariants(l.View, after); err != nil {
		return err
	}
	for _, m := range evicted.Messages {
		if l.gone[m.Position] {
			return fmt.Errorf("message %d leaves twice", m.Position)
		}
		l.gone[m.Position] = true
	}
	l.View = after
	return nil
}

// summary returns a checked summary by the life's model, or a made-up one that is as long as allowed or shorter.
func (l *cutLife) summary(p plan.Plan, evicted clip.Evicted) (*clip.Summary, error) {
	if !l.write {
		s := summaryOf(evicted)
		s.Text = filler[:min(4*(1+l.IntN(max(p.Budget, 1))), len(filler))]
		if f := p.Format; f != nil {
			s.Before, s.After = f.Before, f.After
		}
		s.Tokens = clip.SummaryTokens(*s)
		return s, nil
	}
	model := l.model
	if !p.NeedsModel {
		model = nil
	}
	s, err := summary.Summarize(context.Background(), evicted, l.settings(), model)
	if err == nil {
		err = soundSummary(s, evicted, p)
	}
	return &s, err
}

func (l *cutLife) settings() plan.Settings { return l.set }

// soundSummary checks a summary's size, range and text.
func soundSummary(s clip.Summary, evicted clip.Evicted, p plan.Plan) error {
	last := evicted.Messages[len(evicted.Messages)-1]
	shown := clip.SummaryMessage(s, true, nil)
	switch {
	case tokens.Estimate(s.Text) > max(p.Budget, plan.MinBudget):
		return fmt.Errorf("the summary has %d tokens, and its budget is %d", tokens.Estimate(s.Text), p.Budget)
	case strings.TrimSpace(s.Text) == "" || !utf8.ValidString(s.Text):
		return errors.New("the summary is empty or no text")
	case s.To < last.Position || s.From > evicted.Messages[0].Position:
		return fmt.Errorf("the summary is of %d to %d", s.From, s.To)
	case strings.Contains(s.Text, "secret thought"):
		return errors.New("the summary has the model's thoughts")
	case strings.Contains(s.Text, madeUpSecret): // I12
		return errors.New("the summary has a secret")
	case !strings.Contains(shown, clip.Range(s.FromSeq, s.ToSeq)):
		return errors.New("the summary's message does not name its range")
	case tokens.Estimate(shown)+tokens.PerMessage > tokens.Estimate(s.Text)+130:
		return fmt.Errorf("the words around the summary have %d tokens", tokens.Estimate(shown)-tokens.Estimate(s.Text))
	case (s.Model == "") != (s.How == clip.Extracted || s.How == summary.Noted || s.How == summary.Unreported):
		return fmt.Errorf("the summary is made as %s by %q", s.How, s.Model)
	}
	return nil
}

// accounted checks that no message is both in view and with the summarizer.
func (l *cutLife) accounted() error {
	if l.Summary == nil && len(l.gone) > 0 {
		return errors.New("messages left, and there is no summary")
	}
	for _, m := range l.Messages {
		if l.gone[m.Position] {
			return fmt.Errorf("message %d is in view, and left", m.Position)
		}
	}
	return nil
}

// Whatever was said, whatever the model answers and whatever the window, each cutter and each preset loses nothing,
// reaches its goal or says what is too big, and comes to an end.
func TestCuttersConserveFitAndEnd(t *testing.T) {
	t.Parallel()
	names, all := planners(t)
	lives := uint64(scale.Pure(200, 20_000))
	plans := map[string]int{}
	var others []policy.Policy
	for _, name := range names {
		others = append(others, all[name])
	}
	var lock sync.Mutex
	var group sync.WaitGroup
	for lane := range uint64(4) {
		group.Go(func() {
			for seed := lane; seed < lives && !t.Failed(); seed += 4 {
				name := names[seed%uint64(len(names))]
				l := newCutLife(seed, all[name])
				if seed%7 == 6 { // the policy changes during the conversation
					l.others = others
				}
				if err := l.run(); err != nil {
					t.Errorf("%s, seed %d, window %d: %v", name, seed, l.Window, err)
				}
				lock.Lock()
				plans[name] += l.plans
				lock.Unlock()
			}
		})
	}
	group.Wait()
	for _, name := range names {
		if !t.Failed() && plans[name] < int(lives)/len(names)/10 {
			t.Errorf("only %d plans of %s: the conversations do not try it", plans[name], name)
		}
	}
	t.Log(plans)
}
