package policy_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/db/dbtest/scale"
)

// randomPipeline returns a policy of some steps of each kind, whose numbers are anywhere in their ranges, and often at
// their ends: a trigger that is never due, a cutter that would keep all.
func randomPipeline(r *rand.Rand) policy.Policy {
	var steps []any
	cuts := false
	for len(steps) == 0 {
		for _, m := range policy.Mechanisms() {
			each := 12
			switch m.New().(type) {
			case *policy.When: // its triggers are steps themselves
				continue
			case policy.Trigger, policy.Gate:
				each = 4
			case policy.Cutter:
				each = 6
			}
			if m.Stage == policy.Compact && cuts { // a policy has one
				continue
			}
			if r.IntN(each) == 0 {
				cuts = cuts || m.Stage == policy.Compact
				steps = append(steps, randomStep(r, m))
			}
		}
	}
	return parsed(map[string]any{"steps": steps})
}

// randomStep returns a step whose numbers are anywhere in their ranges, and often the greatest.
func randomStep(r *rand.Rand, m policy.Mechanism) map[string]any {
	step := settingsFor(r, m)
	for _, s := range policy.Settings(m.New()) {
		switch s.Value.(type) {
		case int, float64:
			if r.IntN(3) == 0 {
				step[s.Name] = s.Max
			}
		}
	}
	return step
}

// summarySlack is what a summary may take that a plan with next to no budget for it does not count.
const summarySlack = plan.MinBudget + 200

// windowLife is a conversation whose prompts a server hands out under a policy.
type windowLife struct {
	*cutLife
	state plan.TriggerState
}

// prompt does what happens before a prompt: it edits and compacts until nothing is due. It returns whether something
// defers a compaction, and whether what must stay does not fit.
func (l *windowLife) prompt() (waits, tooBig bool, err error) {
	for range 20 {
		pruned, _ := l.policy.Prune(l.View, l.at)
		if err := invariants(l.View, pruned); err != nil {
			return false, false, fmt.Errorf("before the prompt: %w", err)
		}
		l.View = pruned
		due, now := plan.Check(clip.Estimate(l.View), l.Window, l.Open(), l.set, l.state)
		if l.policy.Triggers() {
			due, now = l.policy.Check(l.View, l.at, l.state)
		}
		l.state = now
		if !due.Compact {
			return due.Deferred, false, nil
		}
		plan, err := l.policy.PlanAndRestore(l.View, l.at)
		if errors.Is(err, errNothing(err)) || isTooBig(err) {
			return false, true, l.sound(err)
		}
		if err == nil {
			err = l.apply(plan)
		}
		if err != nil {
			return false, false, fmt.Errorf("%+v: %w", plan, err)
		}
		l.plans++
		l.state.Disarmed, l.state.Base = true, clip.Estimate(l.View)
	}
	return false, false, errors.New("compactions never end")
}

// run lets the conversation go on, and checks each prompt.
func (l *windowLife) run() error {
	for round := range 8 {
		waits, tooBig, err := l.prompt()
		if err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		used, crowded := clip.Estimate(l.View), clip.Crowding(l.Fixed, l.Window) > 0
		used -= summarySlack
		if l.Window > 0 && used > l.set.Limit(l.Window) {
			rests := l.state.Disarmed && l.state.Base > l.set.Limit(l.Window) // a summary left it there: it may grow by 5 %
			if !waits && !tooBig && !crowded && !rests {
				return fmt.Errorf("round %d: a prompt has %d tokens, and the trigger is at %d; %+v", round, used,
					l.set.Limit(l.Window), l.state)
			}
			if used > l.set.Most(l.Window) && !tooBig {
				return fmt.Errorf("round %d: a prompt has %d tokens, and none may have more than %d", round, used,
					l.set.Most(l.Window))
			}
		}
		if err := l.accounted(); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		n := 1 + l.IntN(12)
		l.goOn(n, max(l.Window, 4_000)*n/24+1)
		l.Usage = nil
	}
	return nil
}

// Whatever a policy's triggers and cutters say, whatever the window, and however late results come: a prompt is larger
// than the trigger of the settings only where a call is open or something else defers the compaction, where what must
// stay takes more, or where the last compaction's summary left it above.
func TestPromptsFitTheirWindows(t *testing.T) {
	t.Parallel()
	lives := uint64(scale.Pure(150, 6_000))
	var lock sync.Mutex
	var group sync.WaitGroup
	plans := 0
	for lane := range uint64(4) {
		group.Go(func() {
			seeds := []uint64{9_730 + lane, 11_360 + lane} // of which some failed once
			for seed := lane; seed < lives; seed += 4 {
				seeds = append(seeds, seed)
			}
			for _, seed := range seeds {
				if t.Failed() {
					return
				}
				p := randomPipeline(rand.New(rand.NewPCG(seed, 23)))
				l := &windowLife{cutLife: newCutLife(seed, p)}
				l.at.Forced, l.write = false, false
				if err := l.run(); err != nil {
					raw, _ := json.Marshal(p.Steps)
					names := ""
					for _, s := range p.Steps {
						names += " " + policy.NameOf(s)
					}
					t.Errorf("seed %d, window %d, trigger %v,%s %s: %v", seed, l.Window, l.set.Trigger, names, raw, err)
				}
				lock.Lock()
				plans += l.plans
				lock.Unlock()
			}
		})
	}
	group.Wait()
	if !t.Failed() && plans < int(lives)/4 {
		t.Errorf("only %d plans of %d lives: the conversations do not try them", plans, lives)
	}
}
