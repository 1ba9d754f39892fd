package summary_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// fact is said among the first 60 messages of a conversation. It survives if one line of the summary has all its keys.
type fact struct {
	role recall.Role
	text string
	keys []string
	was  string // what the fact corrects, said three facts before; may be empty
}

func (f fact) in(summary string) bool {
	for line := range strings.Lines(strings.ToLower(summary)) {
		has := 0
		for _, key := range f.keys {
			if strings.Contains(line, strings.ToLower(strings.TrimSpace(key))) {
				has++
			}
		}
		if has == len(f.keys) {
			return true
		}
	}
	return false
}

// talk is an endless conversation: facts first, and then chatter from templates.
type talk struct {
	*rand.Rand
	messages []recall.Message
	position int
	seq      int64
	calls    int

	facts                             []fact
	users, assistants, outputs, nouns []string

	embedded bool // facts stand in the midst of chatter
}

func newTalk(seed uint64) *talk {
	return &talk{Rand: rand.New(rand.NewPCG(seed, 7)), position: 1, seq: 3}
}

// add appends a message. Positions and seqs have gaps for messages that the model does not see, and for other events.
func (k *talk) add(role recall.Role, parts ...recall.Part) {
	k.position += 1 + k.IntN(12)/11
	k.seq += 1 + int64(k.IntN(4))
	m := recall.Message{ID: fmt.Sprintf("message-%08d-0000-4000-8000-000000000000", k.position), Seq: k.seq,
		Position: k.position, Role: role, Content: parts, Tokens: 4}
	for _, p := range parts {
		m.Tokens += tokens.Estimate(p.Text) + tokens.Estimate(p.Name) + tokens.Estimate(p.Input)
	}
	k.messages = append(k.messages, m)
}

// readTalk reads testdata/facts/<name>.txt.
func readTalk(t *testing.T, name string) *talk {
	t.Helper()
	file, err := os.ReadFile(filepath.Join("testdata", "facts", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	k := newTalk(1)
	section := ""
	for line := range strings.SplitSeq(strings.TrimSpace(string(file)), "\n") {
		if rest, ok := strings.CutPrefix(line, "# "); ok {
			section, _, _ = strings.Cut(rest, ":")
			continue
		}
		switch section {
		case "facts":
			f := strings.Split(line, " | ")
			keys := strings.FieldsFunc(f[2], func(r rune) bool { return r == ',' })
			if strings.TrimSpace(f[2]) == "" {
				keys = nil
			}
			said := fact{recall.Role(f[0]), strings.NewReplacer(`\n`, "\n", `\|`, "|").Replace(f[1]), keys, ""}
			if len(f) > 3 {
				said.was = f[3]
				k.facts = slices.Insert(k.facts, max(len(k.facts)-3, 0), fact{role: said.role, text: said.was})
			}
			k.facts = append(k.facts, said)
		case "users":
			k.users = append(k.users, line)
		case "assistants":
			k.assistants = append(k.assistants, line)
		case "tools":
			k.outputs = append(k.outputs, line)
		case "words":
			k.nouns = append(k.nouns, strings.Fields(line)...)
		}
	}
	return k
}

// chatter returns lines from templates.
func (k *talk) chatter(templates []string, lines int, separator string) string {
	all := make([]string, lines)
	for i := range all {
		line := templates[k.IntN(len(templates))]
		for strings.Contains(line, "{w}") {
			line = strings.Replace(line, "{w}", k.nouns[k.IntN(len(k.nouns))], 1)
		}
		for strings.Contains(line, "{n}") {
			line = strings.Replace(line, "{n}", strconv.Itoa(2+k.IntN(900)), 1)
		}
		all[i] = line
	}
	return strings.Join(all, separator)
}

// turn adds a user's message, a tool call and an answer. A fact stands among other sentences or alone.
func (k *talk) turn(f *fact) {
	said := func(role recall.Role, templates []string, sentences int) {
		text := k.chatter(templates, sentences, " ")
		if f != nil && f.role == role {
			text = []string{f.text, f.text + " " + text, text + " " + f.text}[k.IntN(3)]
		}
		k.add(role, recall.Part{Type: recall.Text, Text: text})
	}
	said(recall.User, k.users, 1+k.IntN(2))
	for range k.IntN(3) {
		k.calls++
		id := fmt.Sprint("call-", k.calls)
		k.add(recall.Assistant, called(id, fmt.Sprintf(`{"query":%q}`, k.nouns[k.IntN(len(k.nouns))])))
		k.add(recall.Tool, result(id, k.chatter(k.outputs, 1+k.IntN(12), "\n")))
	}
	if f != nil && f.role == recall.Tool {
		k.calls++
		id := fmt.Sprint("call-", k.calls)
		k.add(recall.Assistant, called(id, fmt.Sprintf(`{"query":%q}`, k.nouns[k.IntN(len(k.nouns))])))
		k.add(recall.Tool, result(id, k.chatter(k.outputs, k.IntN(4), "\n")+"\n"+f.text))
	}
	said(recall.Assistant, k.assistants, 1+k.IntN(3))
}

// compactions is how often a conversation is compacted before its summary is checked.
const compactions = 32

// surviving counts the facts in a conversation's summary after its last compaction, and names the lost ones.
func (k *talk) surviving(t *testing.T, window int, m *summary.Model) (kept int, lost []string, last string) {
	t.Helper()
	view := clip.View{Window: window, Fixed: window / 8}
	told, done := 0, 0
	for turns := 0; done < compactions; turns++ {
		before := len(k.messages)
		var f *fact
		if told < len(k.facts) && turns%3 != 0 {
			f = &k.facts[told]
			told++
		}
		k.turn(f)
		view.Messages = append(view.Messages, k.messages[before:]...)
		if f != nil && len(k.messages) > 60 && len(k.facts) < 10 {
			t.Fatalf("the fact %q is told after %d messages", f.text, len(k.messages))
		}
		if clip.Estimate(view)*10 < window*9 {
			continue
		}
		planned, err := plan.MakePlan(view, plan.Defaults())
		if err != nil {
			t.Fatal(err)
		}
		summary, err := summary.Summarize(t.Context(), planned.Evict(view), plan.Defaults(), m)
		if err != nil {
			t.Fatal(err)
		}
		view = planned.View(view, &summary)
		done++
	}
	last = view.Summary.Text
	for _, f := range k.facts {
		if f.in(last) {
			kept++
		} else {
			lost = append(lost, f.text)
		}
	}
	return kept, lost, last
}

// forgetful returns a model that writes about the newest messages and ignores the previous summary.
func forgetful() *summary.Model {
	rng := rand.New(rand.NewPCG(3, 3))
	topics := strings.Fields("files queries tests lists offers names prices pages tables notes")
	return &summary.Model{Name: "forgetful", Summarizer: &writer{answer: func(context.Context, int,
		summary.Request) (summary.Reply, error) {
		topic := func() string { return topics[rng.IntN(len(topics))] }
		return reply(fmt.Sprintf("The user and I went through some %s and %s. I looked things up, answered what was asked, "+
			"and we moved on to %s. Nothing else of note came up, and the user seemed content.", topic(), topic(), topic()))
	}}}
}

func TestFactsSurviveThirtyTwoCompactions(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	for _, c := range []struct {
		name  string
		model func() *summary.Model
	}{
		{"by extraction", func() *summary.Model { return nil }},
		{"by repair of a model that ignores the summary before", forgetful},
	} {
		for _, about := range []string{"warehouse", "household", "weather"} {
			for _, window := range []int{8192, 16_384, 32_768}[:scale.Of(1, 3)] {
				t.Run(fmt.Sprintf("%s, %s, window %d", c.name, about, window), func(t *testing.T) {
					t.Parallel()
					k := readTalk(t, about)
					kept, lost, last := k.surviving(t, window, c.model())
					t.Logf("%d of %d facts survive; lost: %q", kept, len(k.facts), lost)
					if kept < 7 {
						t.Errorf("%d of %d facts survive, lost: %q\n%s", kept, len(k.facts), lost, last)
					}
				})
			}
		}
	}
}

// Without a model, short statements of the user are kept rather than questions and chatter.
func TestShortFactsSurvive(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	all := []string{"I am vegetarian.", "I'm vegan.", "I am diabetic.", "Call me Zed.",
		"Never sign letters as 'T. Okonkwo'.", "Please always sign letters as 'T. Okonkwo'.",
		"My flight is at 5 p.m. on Tuesday.", "Never ship to the U.S. office.", "Never use bus No. 7 on Sundays.",
		"I never fly to St. Petersburg.", "I'm vegan. What do you cook tonight?", "I am diabetic. Any idea for Monday?",
		"Call me Zed. And what is next?"}
	for told := range slices.Chunk(all, scale.Of(5, 1)) { // facts in one conversation
		var facts []fact
		for _, said := range told {
			facts = append(facts, fact{role: recall.User, text: said, keys: []string{prose.Sentences(said)[0]}})
		}
		for seed := range uint64(scale.Pure(1, 3)) {
			k := newTalk(seed)
			k.facts, k.users = facts, []string{"Question {n}.{n} on {w}?", "What about {w} and {w}?"}
			k.assistants = []string{"Answer {n} on {w} is a long one that goes on about {w}.", "The {w} are well."}
			k.outputs, k.nouns = []string{"{w} {n} {w}"}, strings.Fields("pasta rice bread soup salad cake tea water")
			if _, lost, last := k.surviving(t, 8192, nil); len(lost) > 0 {
				t.Errorf("%q are lost:\n%s", lost, last)
			}
		}
	}
}

// work adds a turn of an agent that works: a request, reads of long sources and short results, remarks between them,
// and an answer. A fact stands among other sentences or alone. One of a tool stands among few other lines.
func (k *talk) work(f *fact) {
	said := func(role recall.Role, templates []string, sentences int) {
		text := k.chatter(templates, sentences, " ")
		if f != nil && f.role == role {
			text = []string{f.text, f.text + " " + text, text + " " + f.text, text + "\n" + f.text}[k.IntN(4)]
			if k.embedded {
				text = k.chatter(templates, 3, " ") + " " + f.text + " " + k.chatter(templates, 3, " ")
			}
		}
		k.add(role, recall.Part{Type: recall.Text, Text: text})
	}
	uses := func(returns string) {
		k.calls++
		id := fmt.Sprint("call-", k.calls)
		k.add(recall.Assistant, called(id, fmt.Sprintf(`{"path":"src/%s/%s"}`, k.nouns[k.IntN(len(k.nouns))],
			k.nouns[k.IntN(len(k.nouns))])))
		k.add(recall.Tool, result(id, returns))
	}
	said(recall.User, k.users, 1+k.IntN(2))
	for range k.IntN(4) {
		if k.IntN(3) == 0 {
			k.add(recall.Assistant, recall.Part{Type: recall.Text, Text: k.chatter(k.assistants, 1, " ")})
		}
		uses(k.chatter(k.outputs, []int{2, 6, 15, 40}[k.IntN(4)], "\n"))
	}
	if f != nil && f.role == recall.Tool {
		before, after := k.chatter(k.outputs, k.IntN(3), "\n"), k.chatter(k.outputs, k.IntN(3), "\n")
		if k.embedded {
			before, after = k.chatter(k.outputs, 10, "\n"), k.chatter(k.outputs, 10, "\n")
		}
		uses(strings.TrimSpace(before + "\n" + f.text + "\n" + after))
	}
	said(recall.Assistant, k.assistants, 1+k.IntN(4))
}

// survivingUnder is surviving for a session of work under a policy.
func (k *talk) survivingUnder(t *testing.T, p policy.Policy, window int) (kept int, lost []string, last string) {
	t.Helper()
	view := clip.View{Window: window, Fixed: window / 8}
	state := plan.TriggerState{}
	now := time.Date(2026, 5, 4, 9, 0, 0, 0, time.UTC)
	told, done := 0, 0
	for turns := 0; done < compactions; turns++ {
		before := len(k.messages)
		var f *fact
		if told < len(k.facts) && turns%3 != 0 {
			f = &k.facts[told]
			told++
		}
		k.work(f)
		view.Messages = append(view.Messages, k.messages[before:]...)
		now = now.Add(time.Minute)
		at := policy.Moment{Now: now, Touched: now.Add(-time.Minute)}
		view, _ = p.Prune(view, at)
		var due plan.Decision
		if due, state = p.Check(view, at, state); !due.Compact {
			continue
		}
		planned, err := p.PlanAndRestore(view, at)
		if _, nothing := errors.AsType[*plan.Nothing](err); nothing {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		made := view.Summary
		if planned.Evicted > 0 {
			summary, err := summary.Summarize(t.Context(), planned.Evict(view), plan.Defaults(), nil)
			if err != nil {
				t.Fatal(err)
			}
			made = &summary
			done++
		}
		view = planned.View(view, made)
		state.Disarmed, state.Base = true, clip.Estimate(view)
	}
	last = view.Summary.Text
	for _, m := range view.Messages { // a policy may keep messages, as errors
		for _, part := range m.Content {
			last += "\n\n" + part.Text
		}
	}
	for _, f := range k.facts {
		if len(f.keys) == 0 {
			continue
		}
		if f.in(last) {
			kept++
		} else {
			lost = append(lost, f.text)
		}
	}
	return kept, lost, last
}

// Without a model, what people say as they do, in many languages, survives a long session of work under policies that
// summarize: prohibitions, decisions, values, errors, progress, preferences, open questions and corrections.
func TestFactsSurviveWork(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	for about, leasts := range map[string]map[int]int{"zoo": {8192: 18, 16_000: 19}, "clinic": {8192: 18, 16_000: 20},
		"vineyard": {8192: 18, 16_000: 19}, "harbour": {8192: 18, 16_000: 19}, "archive": {8192: 18, 16_000: 19},
		"guild": {8192: 18, 16_000: 19}, "novel": {8192: 18, 16_000: 19}} {
		for window, least := range leasts {
			for _, preset := range []string{policy.Default, "pi"} {
				for seed := range uint64(scale.Pure(1, 4)) {
					t.Run(fmt.Sprintf("%s, %s, window %d, %d", about, preset, window, seed), func(t *testing.T) {
						t.Parallel()
						p, err := policy.Preset(preset)
						if err != nil {
							t.Fatal(err)
						}
						k := readTalk(t, about)
						k.Rand = rand.New(rand.NewPCG(seed, 12))
						kept, lost, last := k.survivingUnder(t, p, window)
						if kept < least {
							t.Errorf("%d of 20 facts survive, lost: %q\n%s", kept, lost, last)
						}
					})
				}
			}
		}
	}
}

// Under each policy, facts survive that stand in the midst of chatter, in any language, and values in tables and lists.
// What was corrected is not shown without its correction.
func TestFactsSurviveUnderEachPolicy(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	for _, about := range []string{"observatory", "tailor"} {
		for _, preset := range []string{policy.Default, "claude-code", "pi", "four-layers"} {
			for window, least := range map[int]int{8192: 18, 16_000: 19} {
				for _, embedded := range []bool{false, true} {
					for seed := range uint64(scale.Pure(1, 3)) {
						name := fmt.Sprintf("%s, %s, window %d, %t, %d", about, preset, window, embedded, seed)
						t.Run(name, func(t *testing.T) {
							t.Parallel()
							p, err := policy.Preset(preset)
							if err != nil {
								t.Fatal(err)
							}
							k := readTalk(t, about)
							k.Rand, k.embedded = rand.New(rand.NewPCG(seed, 13)), embedded
							kept, lost, last := k.survivingUnder(t, p, window)
							if kept < least {
								t.Errorf("%d of 20 facts survive, lost: %q\n%s", kept, lost, last)
							}
							for _, f := range k.facts {
								if f.was != "" && strings.Contains(last, f.was) && !f.in(last) {
									t.Errorf("%q is shown without its correction\n%s", f.was, last)
								}
							}
						})
					}
				}
			}
		}
	}
}

// Without a model, what is told in any script, prohibitions, progress, corrections and errors survive.
func TestFactsOfAllKindsSurvive(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	for _, about := range []string{"kinds", "sources"} { // small talk, and an agent that reads sources
		for window, least := range map[int]int{8192: 18, 16_000: 20} {
			for seed := range uint64(scale.Pure(2, 6)) {
				k := readTalk(t, about)
				k.Rand = rand.New(rand.NewPCG(seed, 11))
				kept, lost, last := k.surviving(t, window, nil)
				if kept < least {
					t.Errorf("%s, window %d, seed %d: %d of %d facts survive, lost: %q\n%s", about, window, seed, kept,
						len(k.facts), lost, last)
				}
			}
		}
	}
}
