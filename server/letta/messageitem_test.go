package letta_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

// item is what the tests read of an item.
type item struct {
	Type      string          `json:"message_type"`
	ID        string          `json:"id"`
	OTID      string          `json:"otid"`
	Content   json.RawMessage `json:"content"`
	Reasoning string          `json:"reasoning"`
	Source    string          `json:"source"`
	State     string          `json:"state"`
	ToolCalls []struct {
		ID string `json:"tool_call_id"`
	} `json:"tool_calls"`
	ToolReturns []struct {
		ID     string `json:"tool_call_id"`
		Status string `json:"status"`
	} `json:"tool_returns"`
}

// describe returns an item in a line.
func (i item) describe() string {
	line := strings.TrimSuffix(i.Type, "_message")
	for _, c := range i.ToolCalls {
		line += " " + c.ID
	}
	for _, r := range i.ToolReturns {
		line += " " + r.ID + "=" + r.Status
	}
	if len(i.Content) > 0 {
		line += " " + string(i.Content)
	}
	return strings.TrimSpace(line + " " + i.Reasoning + i.State + " " + i.Source)
}

func itemsOf(t *testing.T, o letta.ItemOptions, m recall.Message) (items []item, lines []string) {
	t.Helper()
	m.ID = "message-00000000-0000-4000-8000-0000000000ff"
	raw, err := json.Marshal(o.Items(m))
	if err == nil && string(raw) != "null" {
		err = json.Unmarshal(raw, &items)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range items {
		lines = append(lines, i.describe())
	}
	return items, lines
}

func call(id, name, input string, approval recall.Approval) recall.Part {
	return recall.Part{Type: recall.ToolCall, CallID: id, Name: name, Input: input, Approval: approval}
}

// A message is listed as items: thoughts, then its text, then its calls, then those that wait for the client.
func TestItemsOfAMessage(t *testing.T) {
	t.Parallel()
	speaker := letta.ItemOptions{Speaker: "send_message", Argument: "message"}
	results := recall.Message{Role: recall.Tool, ToolNames: map[string]string{"1": "send_message", "2": "grep"},
		Content: []recall.Part{{Type: recall.ToolReturn, CallID: "1", Text: "ok"},
			{Type: recall.ToolReturn, CallID: "2", Text: "no", IsError: true}}}
	spoken := recall.Message{Role: recall.Assistant, Content: []recall.Part{call("1", "a", `{}`, ""),
		call("2", "b", `{}`, ""), call("3", "send_message", `{"message":"Hi"}`, ""), call("4", "c", `{}`, "")}}
	for _, c := range []struct {
		name string
		o    letta.ItemOptions
		m    recall.Message
		want []string
	}{
		{"an answer", letta.ItemOptions{}, recall.Message{Role: recall.Assistant, Content: []recall.Part{
			{Type: recall.Text, Text: "A"}, {Type: recall.Reasoning, Text: "R", Native: true},
			{Type: recall.RedactedReasoning, Data: "D"}, {Type: recall.OmittedReasoning},
			call("1", "a", `{}`, recall.Asked), call("2", "b", `{}`, "")}},
			[]string{"reasoning R reasoner_model", "hidden_reasoning redacted", "hidden_reasoning omitted",
				`assistant "A"`, "tool_call 2", "approval_request 1"}},
		{"an empty answer", letta.ItemOptions{}, recall.Message{Role: recall.Assistant}, []string{`assistant ""`}},
		{"only the wanted types", letta.ItemOptions{Types: []string{"tool_call_message"}}, spoken,
			[]string{"tool_call 1 2 3 4"}},
		{"calls of the speaker are texts", speaker, spoken, []string{"tool_call 1 2",
			`assistant "Hi"`, "tool_call 4"}},
		{"results of the speaker are left out", speaker, results, []string{"tool_return 2=error"}},
		{"results of the speaker are wanted", letta.ItemOptions{Speaker: "send_message", WithSpoken: true}, results,
			[]string{"tool_return 1=success 2=error"}},
		{"a user's text in the envelope of an older server", letta.ItemOptions{}, recall.Message{Role: recall.User,
			Content: []recall.Part{{Type: recall.Text, Text: `{"type":"user_message","message":"M"}`}}},
			[]string{`user "M"`}},
		{"a user's text that is another object", letta.ItemOptions{}, recall.Message{Role: recall.User,
			Content: []recall.Part{{Type: recall.Text, Text: `{"type":"x"}`}}},
			[]string{`user "{\"type\":\"x\"}"`}},
	} {
		if _, got := itemsOf(t, c.o, c.m); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// Each item of a message has an id of its own. What a client said keeps the client's id.
func TestItemsHaveIDs(t *testing.T) {
	t.Parallel()
	var parts []recall.Part
	for range 300 {
		parts = append(parts, recall.Part{Type: recall.Reasoning, Text: "r"})
	}
	items, _ := itemsOf(t, letta.ItemOptions{}, recall.Message{Role: recall.Assistant, Content: parts})
	seen := map[string]bool{}
	for _, i := range items {
		seen[i.OTID] = true
	}
	if len(items) != 300 || len(seen) != 300 || items[0].OTID != "00000000-0000-4000-8000-000000000080" {
		t.Errorf("%d items have %d ids, the first %s", len(items), len(seen), items[0].OTID)
	}
	own := "own"
	said, _ := itemsOf(t, letta.ItemOptions{}, recall.Message{Role: recall.User, OTID: &own,
		Content: []recall.Part{{Type: recall.Text, Text: "a"}}})
	if len(said) != 1 || said[0].OTID != "own" {
		t.Errorf("the client's message: %+v", said)
	}
}

// At most 5 passages are named that a request did not store, each with at most 10 of the tags that it lacks.
func TestWarningsAboutPassages(t *testing.T) {
	t.Parallel()
	left := archival.Inserted{LeftTags: make([]string, 11), LeftFields: []string{"created_at"}, Duplicate: true}
	left.ID = "passage-1"
	got := letta.LeftWarnings([]archival.Inserted{left, {}, left, left, left, left, left, left}, 2, "/p/")
	if len(got) != 6 || !strings.HasPrefix(got[5], "4 more texts") {
		t.Fatalf("got %q, want 5 names and the number of the other 4", got)
	}
	if strings.Count(got[0], `""`) != 10 || !strings.Contains(got[0], "and 1 more") ||
		!strings.Contains(got[0], "PATCH /p/passage-1 changes it but for created_at") {
		t.Errorf("got %q", got[0])
	}
	if got := letta.LeftWarnings([]archival.Inserted{{}}, 0, "/p/"); len(got) != 0 {
		t.Errorf("if nothing is left: got %q", got)
	}
}

// Null removes a bound, and an absent one stays. A date alone ends with its day.
func TestBoundsOfValidity(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("", 2*3600)
	set := func(text string) rest.Opt[string] { return rest.Opt[string]{Set: true, Value: text} }
	from, until, err := letta.NewValidity{ValidUntil: set("2024-05-01")}.Bounds(zone)
	if err != nil || from != nil || until == nil || !until.At.Equal(time.Date(2024, 5, 2, 0, 0, 0, 0, zone)) {
		t.Errorf("got %v, %+v, %v, want the end of the day", from, until, err)
	}
	from, until, err = letta.NewValidity{ValidFrom: set("2024-05-01"), ValidUntil: rest.Opt[string]{Set: true,
		Null: true}}.Bounds(zone)
	if err != nil || from == nil || !from.At.Equal(time.Date(2024, 5, 1, 0, 0, 0, 0, zone)) || until == nil ||
		until.At != nil {
		t.Errorf("got %+v, %+v, %v, want the beginning of the day, and no end", from, until, err)
	}
	for _, text := range []string{"", "soon"} {
		if _, _, err := (letta.NewValidity{ValidFrom: set(text)}).Bounds(zone); err == nil {
			t.Errorf("%q is taken for a time", text)
		}
	}
	if _, err := (letta.HeldAt{AsOf: "2024-05-01", Ended: true}).Held(zone); err == nil {
		t.Error("as_of and ended are taken together")
	}
	if held, err := (letta.HeldAt{AsOf: "2024-05-01"}).Held(zone); err != nil || held.All || held.AsOf == nil {
		t.Errorf("as_of: got %+v, %v", held, err)
	}
}
