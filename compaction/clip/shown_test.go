package clip_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

func result(text string) recall.Message {
	return recall.Message{Role: recall.Tool,
		Content: []recall.Part{{Type: recall.ToolReturn, CallID: "a", Text: text}}}
}

// noTools is the toolset of a model without tools.
var noTools recall.Toolset = func(string) bool { return false }

// shownWith returns a part of a message as a model sees it with an edit.
func shownWith(m recall.Message, e clip.Edit, has recall.Toolset) recall.Part {
	m.Position, m.Seq, e.Position = 1, 7, 1
	v := clip.View{Messages: []recall.Message{m}, Has: has}
	return v.ShownPart(m, e)
}

// A clip keeps whole lines where that costs at most half of its characters, and cuts neither characters nor escape
// sequences of a terminal. Its note has the place of the rest in bytes.
func TestWhereATextIsCut(t *testing.T) {
	t.Parallel()
	const many = 4000
	dots := strings.Repeat(".", many)
	for name, c := range map[string]struct {
		text        string
		edit        clip.Edit
		begins, end string // of what is shown, before and after the note
	}{
		"whole lines of the beginning": {"one\ntwo\nthree\n" + dots, clip.Edit{Kind: clip.Head, Chars: 10}, "one\ntwo\n\n[",
			"]\n"},
		"a line that is too long": {"one\n" + dots, clip.Edit{Kind: clip.Head, Chars: 10}, "one\n......\n[", "]\n"},
		"whole lines of the end": {dots + "\nlast\nline", clip.Edit{Kind: clip.Ending, Chars: 12}, "\n[",
			"]\nlast\nline"},
		"both ends":  {"begin" + dots + "end..", clip.Edit{Chars: 10}, "begin\n[", "]\nend.."},
		"characters": {strings.Repeat("ä", many), clip.Edit{Chars: 5}, "äää\n[", "]\nää"},
		"an escape at the beginning's end": {"red\x1b[31mtext" + dots, clip.Edit{Kind: clip.Head, Chars: 6}, "red\n[",
			"]\n"},
		"an escape at the end's beginning": {dots + "\x1b[31mtext", clip.Edit{Kind: clip.Ending, Chars: 7}, "\n[",
			"]\ntext"},
		"an escape that is whole": {"\x1b[31mred" + dots, clip.Edit{Kind: clip.Head, Chars: 8}, "\x1b[31mred\n[", "]\n"},
	} {
		p := shownWith(result(c.text), c.edit, nil)
		if !strings.HasPrefix(p.Text, c.begins) || !strings.HasSuffix(p.Text, c.end) || !utf8.ValidString(p.Text) {
			t.Errorf("%s: got %q, want %q … %q", name, p.Text, c.begins, c.end)
		}
		note := p.Text[p.NoteAt[0]:p.NoteAt[1]]
		head := p.Text[:p.NoteAt[0]-1]
		if !strings.HasPrefix(note, "[") || !strings.HasSuffix(note, "]") || !strings.HasPrefix(c.text, head) {
			t.Errorf("%s: the note is %q, the beginning %q", name, note, head)
		}
	}
}

// What a note says of the rest: how much is left out of how much, and the call that reads on.
func TestNotesOfClips(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("0123456789", 400)
	two := recall.Message{Role: recall.Assistant, Content: []recall.Part{{Type: recall.Text, Text: "before"},
		{Type: recall.Text, Text: text}}}
	for name, c := range map[string]struct {
		message recall.Message
		edit    clip.Edit
		has     recall.Toolset
		want    string
	}{
		"a beginning": {result(text), clip.Edit{Kind: clip.Head, Chars: 200}, nil,
			`[3800 of 4000 characters left out: call expand(id="7", offset=200, limit=200)]`},
		"a small one": {result(text), clip.Edit{Kind: clip.Head, Chars: 10}, nil,
			`[3990 of 4000 characters left out: call expand(id="7", offset=10, limit=100)]`},
		"behind another part": {two, clip.Edit{Part: 1, Kind: clip.Head, Chars: 200}, nil,
			`[3800 of 4000 characters left out: call expand(id="7", offset=207, limit=200)]`},
		"without expand": {result(text), clip.Edit{Kind: clip.Head, Chars: 200}, noTools,
			`[3800 of 4000 characters left out]`},
		"with words": {result(text), clip.Edit{Kind: clip.Head, Chars: 200, Text: "cut by age"}, noTools,
			`[cut by age; 3800 of 4000 characters left out]`},
		"nothing":                {result(text), clip.Edit{}, nil, `[cut: expand(id=7)]`},
		"nothing of a second":    {two, clip.Edit{Part: 1}, nil, `[cut: expand(id=7, offset=7)]`},
		"nothing without expand": {result(text), clip.Edit{}, noTools, `[cut]`},
	} {
		p := shownWith(c.message, c.edit, c.has)
		if note := p.Text[p.NoteAt[0]:p.NoteAt[1]]; note != c.want {
			t.Errorf("%s: got %q, want %q", name, note, c.want)
		}
	}
	if p := shownWith(result("short"), clip.Edit{Chars: 4}, nil); p.Text != "short" || p.NoteAt != [2]int{} {
		t.Errorf("a clip that saves nothing: got %+v", p)
	}
	pictured := result(text)
	pictured.Content[0].Images = []json.RawMessage{nil, nil}
	if p := shownWith(pictured, clip.Edit{}, nil); !strings.HasSuffix(p.Text, "\n[Images left out here: 2]") ||
		p.Images != nil {
		t.Errorf("of a result with images: got %+v", p)
	}
	if p := shownWith(pictured, clip.Edit{Chars: 200}, nil); len(p.Images) != 2 {
		t.Errorf("a clip that shows characters has lost the images: %+v", p)
	}
}

// Clipped arguments stay JSON with the same fields; only long strings are cut.
func TestClippedArgumentsStayJSON(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("line of code\n", 300)
	input, err := json.Marshal(map[string]any{"path": "a.go", "text": long, "n": 7,
		"deep": []any{map[string]any{"x": long}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		input string
		edit  clip.Edit
	}{"together": {string(input), clip.Edit{Chars: 400}},
		"each": {string(input), clip.Edit{Kind: clip.Head, Chars: 100}}} {
		m := recall.Message{Role: recall.Assistant, Content: []recall.Part{{Type: recall.ToolCall, CallID: "a",
			Name: "write", Input: c.input}}}
		shown := shownWith(m, c.edit, nil).Input
		var got struct {
			Path, Text string
			N          int
			Deep       []struct{ X string }
		}
		if err := json.Unmarshal([]byte(shown), &got); err != nil {
			t.Fatalf("%s: %q: %v", name, shown, err)
		}
		if got.Path != "a.go" || got.N != 7 || len(got.Deep) != 1 || len(shown) > 900 ||
			!strings.HasPrefix(got.Text, "line of code\n") ||
			!strings.Contains(got.Text, "characters left out: call expand(id=") ||
			!strings.Contains(got.Deep[0].X, "characters left out") {
			t.Errorf("%s: got %q", name, shown)
		}
	}
	for name, c := range map[string]struct {
		input string
		chars int
		want  string // what it contains
	}{"no JSON": {strings.Repeat("x", 4000), 100, `{"clipped":"xxx`},
		"nothing":      {string(input), 0, `{"cut":"expand(id=7)"}`},
		"many numbers": {"[" + strings.Repeat("1,", 2000) + "1]", 100, `{"clipped":"[1,1`}} {
		m := recall.Message{Role: recall.Assistant, Content: []recall.Part{{Type: recall.ToolCall, CallID: "a",
			Name: "write", Input: c.input}}}
		shown := shownWith(m, clip.Edit{Chars: c.chars}, nil).Input
		if !strings.Contains(shown, c.want) || !json.Valid([]byte(shown)) {
			t.Errorf("%s: got %q, want %q", name, shown, c.want)
		}
	}
	m := recall.Message{Role: recall.Assistant, Content: []recall.Part{{Type: recall.ToolCall, CallID: "a", Name: "write",
		Input: string(input)}}}
	if got := shownWith(m, clip.Edit{Kind: clip.Stub, Text: clip.NoArguments}, nil).Input; got != "{}" {
		t.Errorf("a stub that says nothing: got %q", got)
	}
}

// A page that expand showed is cut to a shorter page of the same text, so that the model reads on in the original.
func TestAPageOfExpandIsCutToAPage(t *testing.T) {
	t.Parallel()
	page := recall.ExpandPage{ID: "12", Offset: 100, Total: 9000, Text: strings.Repeat("a line of it\n", 300)}
	call := recall.Message{Role: recall.Assistant, Content: []recall.Part{{Type: recall.ToolCall, CallID: "a",
		Name: "expand", Input: `{"id":"12"}`}}}
	v := viewOf(call, result(page.Format("[more]")))
	short := v.ShownPart(v.Messages[1], clip.Edit{Position: 2, Chars: 400}).Text
	got, ok := recall.ParseExpandPage(short)
	if !ok || got.ID != "12" || got.Offset != 100 || !strings.HasPrefix(page.Text, got.Text) || len(got.Text) < 200 ||
		len(got.Text) > 400 || !strings.Contains(short, `[cut here] To read on, call: expand(id="12", offset=`) {
		t.Errorf("got %q", short)
	}
	short = v.ShownPart(v.Messages[1], clip.Edit{Position: 2}).Text
	if short != `[cut: expand(id="12", offset=100, limit=100)]` {
		t.Errorf("with no room: got %q", short)
	}
	v.Messages[0].Content[0].Name = "run" // whose result only looks like a page
	if short = v.ShownPart(v.Messages[1], clip.Edit{Position: 2, Chars: 400}).Text; !strings.Contains(short,
		"characters left out: call expand(id=\"2\"") {
		t.Errorf("of another tool: got %q", short)
	}
}

// A view's tokens: the provider's count of the part it has seen, our count of the rest, edits counted as shown.
func TestTokensOfAView(t *testing.T) {
	t.Parallel()
	v := viewOf(result(strings.Repeat("word ", 400)), recall.Message{Role: recall.User,
		Content: []recall.Part{{Type: recall.Text, Text: "And now?"}}})
	v.Fixed = 100
	first, second := v.Messages[0].Tokens, v.Messages[1].Tokens
	if got := clip.Estimate(v); got != 100+first+second {
		t.Errorf("counted: got %d, want %d", got, 100+first+second)
	}
	v.Usage = &clip.Usage{PromptTokens: 1000, Position: 1}
	if got := clip.Estimate(v); got != 1000+second || clip.Counted(v) != 100+first+second {
		t.Errorf("reported: got %d and %d, want %d and %d", got, clip.Counted(v), 1000+second, 100+first+second)
	}
	v.Usage = &clip.Usage{Position: 1}
	if got := clip.Estimate(v); got != 100+first+second {
		t.Errorf("reported without a count: got %d", got)
	}
	v.Usage = nil
	e := clip.Edit{Position: 1, Chars: 50}
	weighed, saves := v.Weighed(v.Messages[0], nil, e)
	v.Edits = []clip.Edit{e}
	if got := clip.Counted(v); got != 100+first+second-saves || saves <= 0 ||
		weighed.Tokens != first-tokens.PerMessage-saves {
		t.Errorf("clipped: got %d, saves %d, takes %d", got, saves, weighed.Tokens)
	}
	if again := v.Saves(v.Messages[0], &e, clip.Edit{Position: 1, Chars: 60}); again != 0 {
		t.Errorf("an edit that shows more saves %d", again)
	}
	if again := v.Saves(v.Messages[0], &e, clip.Edit{Position: 1, Kind: clip.Stub, Text: "gone"}); again <= 0 ||
		again >= weighed.Tokens {
		t.Errorf("a stub in place of the clip saves %d of %d", again, weighed.Tokens)
	}
	v.Count = func(text string) int { return len(text) }
	if got := v.PartTokens(v.Messages[1], 0, nil); got != second-tokens.PerMessage {
		t.Errorf("a part alone in its message: got %d, want the message's %d", got, second-tokens.PerMessage)
	}
	pictured := recall.Part{Text: "abc", Name: "de", Input: "f", Images: make([]json.RawMessage, 2)}
	if got := v.WholePartTokens(pictured); got != 6+2*tokens.PerImage {
		t.Errorf("a part counted by the view: got %d", got)
	}
	if got := v.CountText("abcd"); got != 4 {
		t.Errorf("a text: got %d, want 4", got)
	}
}

func TestCrowding(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]int{{75, 100, 0}, {76, 100, 1}, {200, 100, 125}, {50, 0, 0}, {50, -1, 0}} {
		if got := clip.Crowding(c[0], c[1]); got != c[2] {
			t.Errorf("%d of %d: got %d, want %d", c[0], c[1], got, c[2])
		}
	}
}

// How a summary stands before the messages.
func TestSummariesAsShown(t *testing.T) {
	t.Parallel()
	s := clip.Summary{Text: "  They chose blue.\n[seq 3] is no head.  ", From: 1, To: 9, FromSeq: 2, ToSeq: 10}
	const range9 = "[seq 2–10]"
	for name, c := range map[string]struct {
		under  bool
		has    recall.Toolset
		before string
		want   string
	}{
		"Loci's words": {false, nil, "", range9 + ` Earlier messages do not fit the context window and are hidden. To read ` +
			`them, call expand(id="[seq 2–10]") or conversation_search. This is a summary of them:` + "\n\n"},
		"a request that is not new": {true, noTools, "", range9 + " Earlier messages do not fit the context window " +
			"and are hidden. The user's message after this summary is not new: the work on it began in what is summarized, " +
			"and goes on below. This is a summary of them:\n\n"},
		"a format's own words": {false, noTools, "<summary>", range9 + " Earlier messages are hidden. \n<summary>\n\n"},
	} {
		s.Before, s.After = c.before, ""
		if c.before != "" {
			s.After = "</summary>"
		}
		got := clip.SummaryMessage(s, c.under, c.has)
		head, text, _ := strings.Cut(got, "They chose blue.\n")
		if head != c.want {
			t.Errorf("%s: got %q, want %q", name, head, c.want)
		}
		if strings.HasPrefix(text, "[seq 3]") || strings.HasSuffix(text, " ") || !strings.HasSuffix(text, s.After) {
			t.Errorf("%s: the text ends %q", name, text)
		}
	}
	v := clip.View{Summary: &clip.Summary{Text: strings.Repeat("0123456789", 50), FromSeq: 2, ToSeq: 10, To: 9},
		Has: noTools, Edits: []clip.Edit{{Chars: 100}}}
	if got := v.SummaryText(); !strings.HasSuffix(got, "0123456789\n[400 more characters of this summary are left out.]") {
		t.Errorf("clipped: got %q", got)
	}
	if got := (clip.View{}).SummaryText(); got != "" {
		t.Errorf("of no summary: got %q", got)
	}
	v.Messages = script("u")
	all := v.AsShown()
	if len(all) != 2 || all[0].Role != recall.Summary || v.SentMessages() != 3 ||
		!strings.Contains(all[0].Text(), "is not new") {
		t.Errorf("the view: got %d messages, %d sent", len(all), v.SentMessages())
	}
}

func TestWhichPartsMayHaveWhichEdits(t *testing.T) {
	t.Parallel()
	text := func(role recall.Role) recall.Message {
		return recall.Message{Role: role, Position: 1, Content: []recall.Part{{Type: recall.Text, Text: "x"}}}
	}
	thoughtful := recall.Message{Role: recall.Assistant, Position: 1, Content: []recall.Part{
		{Type: recall.Reasoning, Text: "x"}, {Type: recall.Text, Text: "y"}, {Type: recall.ToolCall, CallID: "a"}}}
	only := recall.Message{Role: recall.Assistant, Position: 1, Content: thoughtful.Content[:1]}
	tool := result("x")
	tool.Position = 1
	for name, c := range map[string]struct {
		message recall.Message
		edit    clip.Edit
		want    bool
	}{
		"a clip of a result":              {tool, clip.Edit{}, true},
		"a clip of another message":       {tool, clip.Edit{Position: 2}, false},
		"of a part that is not there":     {tool, clip.Edit{Part: 1}, false},
		"of a part before the first":      {tool, clip.Edit{Part: -1}, false},
		"to less than nothing":            {tool, clip.Edit{Chars: -1}, false},
		"of an unknown kind":              {tool, clip.Edit{Kind: "blurred"}, false},
		"a clip of a user's text":         {text(recall.User), clip.Edit{}, true},
		"a clip of an answer":             {text(recall.Assistant), clip.Edit{}, true},
		"a clip of a system message":      {text(recall.System), clip.Edit{}, false},
		"a clip of a thought":             {thoughtful, clip.Edit{}, false},
		"a removed thought":               {thoughtful, clip.Edit{Kind: clip.Removed}, true},
		"a removed thought with words":    {thoughtful, clip.Edit{Kind: clip.Removed, Text: "x"}, false},
		"a thought that is all":           {only, clip.Edit{Kind: clip.Removed}, false},
		"a removed text":                  {thoughtful, clip.Edit{Part: 1, Kind: clip.Removed}, false},
		"a removed call":                  {thoughtful, clip.Edit{Part: 2, Kind: clip.Removed, Text: "x"}, true},
		"a removed result":                {tool, clip.Edit{Kind: clip.Removed}, true},
		"a removed result with words":     {tool, clip.Edit{Kind: clip.Removed, Text: "x"}, false},
		"a current text for a result":     {tool, clip.Edit{Kind: clip.Current, Text: "x"}, true},
		"a current text for an answer":    {text(recall.Assistant), clip.Edit{Kind: clip.Current, Text: "x"}, false},
		"a stub of the arguments of call": {thoughtful, clip.Edit{Part: 2, Kind: clip.Stub}, true},
	} {
		if c.edit.Position == 0 {
			c.edit.Position = 1
		}
		if got := clip.IsEditOf(c.edit, c.message); got != c.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

func TestEditsReplaceEdits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		now, was clip.Edit
		want     bool
	}{
		{clip.Edit{Chars: 5}, clip.Edit{Chars: 5}, true}, {clip.Edit{Chars: 6}, clip.Edit{Chars: 5}, false},
		{clip.Edit{Kind: clip.Ending, Chars: 4}, clip.Edit{Kind: "clip", Chars: 5}, true},
		{clip.Edit{Kind: clip.Line}, clip.Edit{Chars: 5}, true}, {clip.Edit{Chars: 5}, clip.Edit{Kind: clip.Line}, false},
		{clip.Edit{Kind: clip.Pointer}, clip.Edit{Kind: clip.Line}, true},
		{clip.Edit{Kind: clip.Stub}, clip.Edit{Kind: clip.Current}, true},
		{clip.Edit{Kind: clip.Current}, clip.Edit{Kind: clip.Stub}, false},
		{clip.Edit{Kind: clip.Removed}, clip.Edit{Kind: clip.Stub}, true},
	} {
		if got := c.now.ShowsNoMoreThan(c.was); got != c.want {
			t.Errorf("%+v for %+v: got %t", c.now, c.was, got)
		}
	}
	edits := []clip.Edit{{Position: 1, Chars: 9}, {Position: 2, Part: 1, Chars: 9}}
	got := clip.MergeEdits(edits, []clip.Edit{{Position: 2, Part: 1, Kind: clip.Stub}, {Position: 2, Chars: 3}})
	want := []clip.Edit{{Position: 1, Chars: 9}, {Position: 2, Part: 1, Kind: clip.Stub}, {Position: 2, Chars: 3}}
	if diff := cmp.Diff(want, got); diff != "" || edits[1].Kind != "" {
		t.Errorf("merged (-want +got):\n%s", diff)
	}
	if by := clip.EditsByPosition(got); len(by) != 2 || len(by[2]) != 2 {
		t.Errorf("by position: %v", by)
	}
	if got[1].Compare(got[2]) <= 0 || got[0].Compare(got[1]) >= 0 || got[0].Compare(got[0]) != 0 {
		t.Error("edits are not ordered by their parts")
	}
}
