package recall_test

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

func (f *fixture) window() recall.Window {
	f.Helper()
	window, err := f.store.Window(f.Context(), f.org, f.agent, "")
	if err != nil {
		f.Fatal(err)
	}
	return window
}

func (f *fixture) visible() []string {
	f.Helper()
	c := f.conversation()
	ids, err := f.store.VisibleIDs(f.Context(), f.org, c)
	if err != nil {
		f.Fatal(err)
	}
	all, err := f.store.MessagesByID(f.Context(), f.org, ids[c.Key])
	if err != nil {
		f.Fatal(err)
	}
	return texts(all)
}

func (f *fixture) instruct(text string) {
	f.Helper()
	if err := f.store.SetSystemPrompt(f.Context(), f.org, f.agent, "", text); err != nil {
		f.Fatal(err)
	}
}

// A model sees the current system prompt first, and no earlier one. System messages of others stay in place.
func TestTheViewBeginsWithThePromptInForce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.append(say(recall.User, "hi"), say(recall.System, "Mind the time."), called("c1", "look", "{}"),
		returned("c1", "sky"), returned("c9", "whose?"))
	f.instruct("You remember.") // the current prompt: nothing is appended
	if c := f.conversation(); c.Messages != 6 {
		t.Errorf("there are %d messages, want 6", c.Messages)
	}
	f.instruct("You count.")
	f.append(say(recall.User, "bye"))
	f.instruct("You forget.")
	want := []string{"You forget.", "hi", "Mind the time.", "{}", "sky", "bye"}
	if diff := cmp.Diff(want, f.view()); diff != "" {
		t.Errorf("the view (-want +got):\n%s", diff)
	}
	listed := append([]string{"You remember."}, want[1:]...) // lists show the current prompt in the first one's place
	if diff := cmp.Diff(listed, f.visible()); diff != "" {
		t.Errorf("its ids (-want +got):\n%s", diff)
	}
	tokens := func(texts ...string) (n int) {
		for _, text := range texts {
			n += tokens.Estimate(text) + 4
		}
		return n
	}
	whole := f.window()
	if diff := cmp.Diff(want, texts(whole.Messages)); diff != "" || whole.Count != 7 ||
		whole.Tokens != tokens("hi", "Mind the time.", "look{}", "sky", "whose?", "bye") {
		t.Errorf("the window has %d messages of %d tokens (-want +got):\n%s", whole.Count, whole.Tokens, diff)
	}
	// Messages that a summary replaces are no longer seen.
	f.exec(`UPDATE conversations SET first_visible = 8 WHERE org = $1 AND is_default`)
	want = []string{"You forget.", "bye"}
	listed = []string{"You remember.", "bye"}
	if diff := cmp.Diff([][]string{want, listed}, [][]string{f.view(), f.visible()}); diff != "" {
		t.Errorf("summarised (-want +got):\n%s", diff)
	}
	if rest := f.window(); rest.Count != 2 || rest.Tokens != tokens("bye") {
		t.Errorf("summarised, the window has %d messages of %d tokens, want 2 of %d", rest.Count, rest.Tokens, tokens("bye"))
	}
	if n, err := f.store.CountMessages(t.Context(), f.org, f.agent); err != nil || n != 9 {
		t.Errorf("the agent has %d messages (%v), want 9", n, err)
	}
}

func TestPromptsThatArePutInForceAtOnceFollowOneAnother(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var group sync.WaitGroup
	for _, text := range []string{"a", "b", "a", "b", "a", "b"} {
		group.Go(func() {
			if err := f.store.SetSystemPrompt(t.Context(), f.org, f.agent, "", text); err != nil {
				t.Errorf("instruct %s: %v", text, err)
			}
		})
	}
	group.Wait()
	if c := f.conversation(); len(c.Prompts) != c.Messages {
		t.Errorf("of %d messages %v are prompts", c.Messages, c.Prompts)
	}
	if view := f.view(); len(view) != 1 {
		t.Errorf("the view is %q, want one prompt", view)
	}
}

// A huge window is counted whole but shown only in part.
func TestAWindowIsBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	many := make([]recall.Draft, recall.MaxWindow+5)
	for i := range many {
		many[i] = say(recall.User, "word")
	}
	f.append(many...)
	window := f.window()
	if len(window.Messages) != recall.MaxWindow+1 || window.Count != len(many)+1 || window.Tokens != 5*len(many) ||
		window.Messages[0].Role != recall.System ||
		window.Messages[1].Position != 7 {
		t.Errorf("got %d messages of %d, %d tokens, from %d on", len(window.Messages), window.Count, window.Tokens,
			window.Messages[1].Position)
	}
	if ids := f.visible(); len(ids) != recall.MaxWindow+1 || ids[0] != "You remember." {
		t.Errorf("got %d ids, the first of %q", len(ids), ids[0])
	}
}

// If a view is too large for a prompt, either only its newest messages are read, or all with the texts of older ones
// cut.
func TestALargeViewIsReadInPart(t *testing.T) {
	t.Parallel()
	scale.Long(t)
	f := newFixture(t)
	text := strings.Repeat("All that was said. ", 500_000)
	f.append(say(recall.User, "first "+text), say(recall.User, "short"), say(recall.User, "second "+text),
		say(recall.Assistant, "third "+text), say(recall.User, "newest"))
	c := f.conversation()
	newest, whole, err := f.store.NewestView(t.Context(), f.org, c)
	if got := positions(newest); whole || err != nil || !slices.Equal(got, []int{1, 3, 4, 5, 6}) {
		t.Errorf("of the newest view: %v, whole: %t, %v", got, whole, err)
	}
	view, err := f.store.AbridgedView(t.Context(), f.org, c)
	if got := positions(view); err != nil || !slices.Equal(got, []int{1, 2, 3, 4, 5, 6}) {
		t.Fatalf("of the abridged view: %v, %v", got, err)
	}
	all, err := f.store.View(t.Context(), f.org, c)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range view {
		given, isOld := all[i].Text(), m.Position == 2
		if m.Abridged != isOld || m.Tokens != all[i].Tokens || !strings.HasPrefix(given, m.Text()) ||
			isOld && len(m.Text()) != min(len(given), 1<<10) || !isOld && m.Text() != given {
			t.Errorf("at %d: abridged: %t, %d of %d bytes", m.Position, m.Abridged, len(m.Text()), len(given))
		}
	}
	other := newFixture(t)
	if _, whole, err := other.store.NewestView(t.Context(), other.org, other.conversation()); err != nil || !whole {
		t.Errorf("of a small view: whole: %t, %v", whole, err)
	}
}

func positions(messages []recall.Message) (all []int) {
	for _, m := range messages {
		all = append(all, m.Position)
	}
	return all
}

func TestMessagesAreFiltered(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	other, err := f.store.CreateConversation(t.Context(), f.org, f.agent, recall.NewConversation{Instructions: "Other."})
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, err := f.store.Append(t.Context(), f.org, f.agent, other.ID, []recall.Draft{say(recall.User, "elsewhere")})
	if err != nil {
		t.Fatal(err)
	}
	broken := say(recall.Assistant, "broken")
	broken.IsErr, broken.GroupID = true, new("g")
	thought := recall.Draft{Role: recall.Assistant, Content: []recall.Part{{Type: recall.Reasoning, Text: "hm"},
		{Type: recall.Text, Text: "yes"}}}
	f.append(say(recall.User, "hi"), say(recall.Assistant, "hello"), thought, called("c", "look", "{}"),
		returned("c", "sky"), broken,
		recall.Draft{Role: recall.Assistant, Content: []recall.Part{}})
	for _, c := range []struct {
		name   string
		filter recall.MessageFilter
		page   db.Page
		want   []int // positions
	}{
		{"all", recall.MessageFilter{}, db.Page{Ascending: true}, []int{1, 2, 3, 4, 5, 6, 8}},
		{"errors too", recall.MessageFilter{WithErrors: true, GroupID: "g"}, db.Page{}, []int{7}},
		{"of roles", recall.MessageFilter{Roles: []recall.Role{recall.User, recall.Tool}}, db.Page{}, []int{6, 2}},
		{"with parts, or none", recall.MessageFilter{Roles: []recall.Role{recall.Assistant},
			Parts: []recall.PartType{recall.Reasoning}}, db.Page{Ascending: true}, []int{4, 8}},
		{"parts are the assistant's", recall.MessageFilter{Parts: []recall.PartType{recall.ToolCall}},
			db.Page{Ascending: true}, []int{1, 2, 5, 6, 8}},
		{"after another conversation's", recall.MessageFilter{}, db.Page{After: elsewhere[0].ID, Ascending: true}, []int{}},
		{"before what is no id", recall.MessageFilter{}, db.Page{Before: "message-1", Ascending: true}, []int{}},
	} {
		c.filter.AgentID, c.filter.Conversation = f.agent, recall.DefaultConversation
		list, err := f.store.Messages(t.Context(), f.org, c.filter, c.page)
		got := []int{}
		for _, m := range list {
			got = append(got, m.Position)
		}
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s (%v) (-want +got):\n%s", c.name, err, diff)
		}
	}
	all, err := f.store.Messages(t.Context(), f.org, recall.MessageFilter{AgentID: f.agent}, db.Page{Ascending: true})
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]int{}
	for _, m := range all {
		for _, name := range m.ToolNames {
			named[name]++
		}
	}
	if diff := cmp.Diff(map[string]int{"look": 1}, named); diff != "" {
		t.Errorf("the tools whose results are listed (-want +got):\n%s", diff)
	}
}

// A view is read from its first message on, however long the conversation is.
func viewIsReadFromItsFirstMessage(f *fixture) {
	f.Helper()
	f.exec(`UPDATE conversations SET first_visible = messages - 11 WHERE org = $1`)
	if _, err := dbtest.Owner(f, f.pool).Exec(f.Context(), `VACUUM ANALYZE messages`); err != nil {
		f.Fatal(err)
	}
	window, err := f.store.Window(f.Context(), f.org, f.agent, "")
	if err != nil || len(window.Messages) != 13 || window.Count != 13 {
		f.Fatalf("got %d messages, count %d, %v, want the prompt and 12", len(window.Messages), window.Count, err)
	}
	plan, err := f.store.ViewPlan(f.Context(), f.org, f.agent)
	if err != nil || !regexp.MustCompile(`Index Cond: .*"position" >= `).MatchString(plan) {
		f.Errorf("the view is read by another plan, %v:\n%s", err, plan)
	}
}
