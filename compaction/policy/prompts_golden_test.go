package policy_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/recall"
)

// The golden files show what a model is sent in one session under each preset, in a window that holds nearly everything
// and in a smaller one: what each prompt changed, and the prompts after the repair and at the end. Summaries and lines
// are made without a model. A person must read the files after a change.
func TestPromptsOfASession(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	for _, preset := range policy.Presets() {
		t.Run(preset.Name, func(t *testing.T) {
			t.Parallel()
			got := promptsUnder(t, preset.Policy(), doubleCharges(200_000)) + "\n" +
				promptsUnder(t, preset.Policy(), doubleCharges(32_000))
			path := filepath.Join("testdata", "prompts", preset.Name+".golden")
			if *updatePage {
				if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("the prompts differ; go test ./compaction/policy -run TestPromptsOfASession -update writes them\n%s",
					diff)
			}
		})
	}
}

// sessionReplay replays a session under a policy.
type sessionReplay struct {
	*testing.T
	policy  policy.Policy
	view    clip.View
	trigger plan.TriggerState
	touched time.Time // when the previous prompt was sent
	sent    int       // position of the previous prompt's last message
	changes strings.Builder
}

// promptsUnder replays a session under a policy.
func promptsUnder(t *testing.T, p policy.Policy, session *shopSession) string {
	t.Helper()
	r := &sessionReplay{T: t, policy: p, view: clip.View{Window: session.Window, Fixed: session.Fixed}}
	var middle strings.Builder
	for _, m := range session.Messages {
		if m.Role == recall.Assistant {
			at := policy.Moment{Now: m.CreatedAt, Busy: m.Position >= session.plan[0] && m.Position <= session.plan[1]}
			if m.Position > session.pointed {
				at.Noted, at.Notes = session.pointed, "Task: mend SHOP-4417. Refunds: queue refunds-batch, 50 an hour, no gift "+
					"cards.\nNever write to the table ledger.\nNext: list the refunds."
			}
			r.prompt(at)
			if m.Position == session.pointed+2 {
				writePrompt(&middle, r.view)
			}
		}
		r.view.Messages = append(r.view.Messages, m)
	}
	r.prompt(policy.Moment{Now: session.now.Add(time.Second)})
	var end strings.Builder
	writePrompt(&end, r.view)
	return fmt.Sprintf("===== A window of %d tokens\n%s\n----- The prompt after #%d\n%s\n----- The prompt at the end\n%s",
		session.Window, r.changes.String(), session.pointed+1, middle.String(), end.String())
}

// prompt changes the view as the policy does before a prompt.
func (r *sessionReplay) prompt(at policy.Moment) {
	r.Helper()
	at.Touched, at.Sent = r.touched, r.sent
	last := r.view.Messages[len(r.view.Messages)-1].Position
	when := fmt.Sprintf("after #%d (%s):", last, at.Now.Format("15:04"))
	pruned, edits := r.policy.Prune(r.view, at)
	if err := invariants(r.view, pruned); err != nil {
		r.Fatalf("%s %v", when, err)
	}
	for _, c := range (plan.Pruning{Edits: edits, Before: r.view, After: pruned}).Steps() {
		fmt.Fprintf(&r.changes, "%s %s edits %d parts, which saves %d tokens: %s\n", when, c.Step, c.Edits, c.Tokens,
			positions(edits, c.Step))
	}
	r.view, r.touched, r.sent = pruned, at.Now, last
	due, state := r.policy.Check(pruned, at, r.trigger)
	if r.trigger = state; due.Compact {
		r.compact(when, at)
	}
}

// compact compacts the view.
func (r *sessionReplay) compact(when string, at policy.Moment) {
	r.Helper()
	planned, err := r.policy.PlanAndRestore(r.view, at)
	if errors.Is(err, db.ErrInvalid) {
		planned, err = r.policy.Truncate(r.view, at)
	}
	if err != nil {
		r.Fatalf("%s %v", when, err)
	}
	evicted := planned.Evict(r.view)
	var written *clip.Summary
	if planned.Evicted > 0 {
		made, err := summary.Summarize(r.Context(), evicted, plan.Defaults(), nil)
		if err != nil {
			r.Fatalf("%s %v", when, err)
		}
		made.Tokens = clip.SummaryTokens(made)
		written = &made
	}
	after := planned.View(r.view, written)
	if err := plan.CheckNothingLost(r.view, evicted, after); err != nil {
		r.Fatalf("%s %v", when, err)
	}
	was, is := clip.Estimate(r.view), clip.Estimate(after)
	fmt.Fprintf(&r.changes, "%s compaction of %d tokens: %d messages leave, %d stay, %d tokens\n", when, was,
		planned.Evicted,
		len(after.Messages), is)
	r.view, r.trigger = after, plan.TriggerState{Warned: r.trigger.Warned, Disarmed: true, Base: is}
}

// positions returns the positions of a step's edits.
func positions(edits []clip.Edit, step string) string {
	var all []string
	for _, e := range edits {
		if e.Step == step {
			all = append(all, fmt.Sprint("#", e.Position))
		}
	}
	return strings.Join(all, " ")
}

// writePrompt writes a prompt without the middles of long texts.
func writePrompt(out *strings.Builder, v clip.View) {
	fmt.Fprintf(out, "%d tokens\n", clip.Estimate(v))
	for _, m := range v.AsShown() {
		for _, p := range m.Content {
			fmt.Fprintf(out, "#%d %s", m.Position, m.Role)
			switch {
			case p.Type == recall.ToolCall:
				fmt.Fprintf(out, " calls %s: %s\n", p.Name, excerpt(p.Input, p.NoteAt))
			case p.IsError:
				fmt.Fprintf(out, " error: %s\n", excerpt(p.Text, p.NoteAt))
			case p.Type == recall.Reasoning:
				fmt.Fprintf(out, " thinks: %s\n", ends(p.Text))
			case m.Role == recall.Summary:
				fmt.Fprintf(out, ":\n%s\n", p.Text)
			default:
				fmt.Fprintf(out, ": %s\n", excerpt(p.Text, p.NoteAt))
			}
		}
	}
}

// excerpt returns a text without the middles of its long pieces: the piece before the note of an edit and the piece
// behind it, or the whole text if there is no note.
func excerpt(text string, note [2]int) string {
	if note[1] == 0 {
		return ends(text)
	}
	return ends(text[:note[0]]) + "«" + text[note[0]:note[1]] + "»" + ends(text[note[1]:])
}

// ends returns the beginning and the end of a text on one line.
func ends(text string) string {
	const each = 60
	all := []rune(strings.NewReplacer("\n", "⏎", "\t", " ").Replace(text))
	if len(all) <= 3*each {
		return string(all)
	}
	return fmt.Sprintf("%s ⟨%d characters⟩ %s", string(all[:each]), len(all)-2*each, string(all[len(all)-each:]))
}
