package agent_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
	"github.com/loci-memory/loci/server/agent"
	"github.com/loci-memory/loci/server/block"
)

// anyText is text with markup, line ends of all kinds and whatever else there is.
func anyText() *rapid.Generator[string] {
	return rapid.OneOf(rapid.String(), rapid.StringMatching(`([<>&"'/ \n\r\v\x00-\x1f]|</value>|</memory_blocks>|<!--|`+
		`<system>|</metadata>|<file status="open"|\]\]>|&lt;|x){0,8}`))
}

func anyState() *rapid.Generator[agent.State] {
	return rapid.Custom(func(t *rapid.T) agent.State {
		s := agent.State{System: rapid.StringMatching(`[a-z.]{0,20}`).Draw(t, "system"),
			Metadata: "<memory_metadata>\n</memory_metadata>"}
		for range rapid.IntRange(0, 3).Draw(t, "blocks") {
			s.Blocks = append(s.Blocks, block.Block{Label: rapid.StringMatching(`[a-zA-Z0-9_/-]{1,8}`).Draw(t, "label"),
				Value: anyText().Draw(t, "value"), Description: new(anyText().Draw(t, "description")),
				ReadOnly: rapid.Bool().Draw(t, "read only")})
		}
		var rules []map[string]any
		for range rapid.IntRange(0, 2).Draw(t, "rules") {
			rules = append(rules, map[string]any{"type": rapid.SampledFrom([]string{"exit_loop", "run_first",
				"constrain_child_tools", "max_count_per_step", "odd"}).Draw(t, "type"),
				"tool_name": anyText().Draw(t, "tool"), "children": []string{anyText().Draw(t, "child")}})
		}
		s.Rules, _ = json.Marshal(rules)
		for range rapid.IntRange(0, 2).Draw(t, "folders") {
			d := files.Directory{Folder: files.Folder{Name: anyText().Draw(t, "folder"),
				Instructions: new(anyText().Draw(t, "instructions"))}}
			for range rapid.IntRange(0, 2).Draw(t, "files") {
				d.Files = append(d.Files, files.DirectoryFile{FileName: anyText().Draw(t, "file"),
					IsOpen: rapid.Bool().Draw(t, "open"), Text: anyText().Draw(t, "text")})
			}
			s.Directories = append(s.Directories, d)
		}
		return s
	})
}

// frameTag matches the tags by which a model tells the parts of a prompt: those that end one, and those that could
// begin one anywhere.
var frameTag = regexp.MustCompile(`(?i)<\s*(?:/\s*(?:memory_blocks|block|description|metadata|value|directories|` +
	`directory|file|file_limits|instructions|memory_metadata|tool_usage_rules|tool_rule|system)|` +
	`memory_blocks|directories|` +
	`directory name|file status|block label|memory_metadata|tool_usage_rules|system)\b`)

// shownValue matches the value of a block in a prompt.
var shownValue = regexp.MustCompile(`(?s)- chars_limit=0\n</metadata>\n<value>\n(.*?)\n</value>\n`)

// plain is a state whose texts are plain, where they are not empty.
func plain(s agent.State) agent.State {
	x := func(text string) string { return strings.Repeat("x", min(len(text), 1)) }
	p := agent.State{System: s.System, Metadata: s.Metadata, Rules: s.Rules}
	for _, b := range s.Blocks {
		b.Value, b.Description = x(b.Value), new(x(*b.Description))
		p.Blocks = append(p.Blocks, b)
	}
	var rules []map[string]any
	if json.Unmarshal(s.Rules, &rules) == nil {
		for _, r := range rules {
			r["tool_name"], r["children"] = x(r["tool_name"].(string)), []string{"x"}
		}
		p.Rules, _ = json.Marshal(rules)
	}
	for _, d := range s.Directories {
		d.Folder.Name, d.Folder.Instructions = "x", new("x")
		var all []files.DirectoryFile
		for _, f := range d.Files {
			f.FileName, f.Text = "x", "x"
			all = append(all, f)
		}
		d.Files = all
		p.Directories = append(p.Directories, d)
	}
	return p
}

// Whatever texts of blocks, rules and documents say, a prompt has the tags that it has with plain texts in their place,
// and the values of blocks can be read from it. The same state gives the same bytes.
func TestNoTextChangesTheStructure(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := anyState().Draw(t, "state")
		prompt := strings.Join(s.Parts(), "")
		got := frameTag.FindAllString(prompt, -1)
		want := frameTag.FindAllString(strings.Join(plain(s).Parts(), ""), -1)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("tags (-plain +got):\n%s\n%s", diff, prompt)
		}
		values := shownValue.FindAllStringSubmatch(prompt, -1)
		if len(values) != len(s.Blocks) {
			t.Fatalf("%d blocks have %d values:\n%s", len(s.Blocks), len(values), prompt)
		}
		for i, b := range s.Blocks {
			if got := chat.Restore(values[i][1]); got != b.Value {
				t.Fatalf("the value %q is shown as %q, and restored as %q", b.Value, values[i][1], got)
			}
		}
		if prompt != strings.Join(s.Parts(), "") {
			t.Fatal("two prompts of one state differ")
		}
	})
}

// An edit of one part leaves the bytes of those before it as they were, in the prompt and in the requests.
func TestAnEditLeavesWhatIsBeforeIt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, other := anyState().Draw(t, "state"), anyState().Draw(t, "other")
		s.System, other.System = "system", "system"
		messages := []recall.Message{{Role: recall.User, Position: 2,
			Content: []recall.Part{{Type: recall.Text, Text: "hi"}}}}
		for changed := range 4 {
			after, same := s, []string{"system"}
			switch changed {
			case 0:
				after.Blocks = other.Blocks
			case 1:
				after.Rules, same = other.Rules, append(same, agent.State{Blocks: s.Blocks}.Parts()...)
			case 2:
				after.Directories, same = other.Directories, append(same, agent.State{Blocks: s.Blocks, Rules: s.Rules}.Parts()...)
			case 3:
				after.Metadata, same = "<memory_metadata/>", append(same, agent.State{Blocks: s.Blocks, Rules: s.Rules,
					Directories: s.Directories}.Parts()...)
			}
			prefix := 0
			for i, part := range same {
				prefix += len(strings.TrimPrefix(part, "\n\n"))
				if i > 0 {
					prefix += 2
				}
			}
			if a, b := strings.Join(s.Parts(), ""), strings.Join(after.Parts(), ""); a[:prefix] != b[:prefix] {
				t.Fatalf("part %d: the bytes before it differ:\n%q\n%q", changed, a[:prefix], b[:prefix])
			}
			for _, f := range []agent.Format{agent.OpenAI, agent.Anthropic} {
				a, b := s.Request(f, messages), after.Request(f, messages)
				if n := len(same); len(a) < n || len(b) < n || !slices.EqualFunc(a[:n], b[:n], bytes.Equal) {
					t.Fatalf("part %d: the pieces of the %s request before it differ", changed, f)
				}
			}
		}
	})
}

// anyView is a log as callers write it: calls without results, results without calls, ids that come again, blanks.
func anyView() *rapid.Generator[[]recall.Message] {
	text := rapid.SampledFrom([]string{"", " \n", "word", "two words", "<markup>&"})
	id := rapid.SampledFrom([]string{"a", "b", "function:f", strings.Repeat("long", 20)})
	return rapid.Custom(func(t *rapid.T) []recall.Message {
		var view []recall.Message
		for i := range rapid.IntRange(0, 40).Draw(t, "messages") {
			m := recall.Message{Role: rapid.SampledFrom([]recall.Role{recall.System, recall.User, recall.Assistant,
				recall.Assistant, recall.Tool, recall.Tool, "summary"}).Draw(t, "role"), Position: i + 2}
			if m.Role == recall.Tool {
				for _, id := range rapid.SliceOfNDistinct(id, 1, 2, rapid.ID[string]).Draw(t, "results") {
					m.Content = append(m.Content, recall.Part{Type: recall.ToolReturn, CallID: id, Text: text.Draw(t, "text")})
				}
				view = append(view, m)
				continue
			}
			for range rapid.IntRange(0, 2).Draw(t, "parts") {
				m.Content = append(m.Content, rapid.SampledFrom([]recall.Part{{Type: recall.Text, Text: text.Draw(t, "text")},
					{Type: recall.Image, Source: []byte(pixel)},
					{Type: recall.Reasoning, Text: "hm", Signature: text.Draw(t, "signature")}}).Draw(t, "part"))
			}
			if m.Role == recall.Assistant {
				for _, id := range rapid.SliceOfNDistinct(id, 0, 3, rapid.ID[string]).Draw(t, "calls") {
					m.Content = append(m.Content, recall.Part{Type: recall.ToolCall, CallID: id, Name: text.Draw(t, "name") + "f",
						Input: text.Draw(t, "input")})
				}
			}
			view = append(view, m)
		}
		return view
	})
}

// wire is what both formats have in common of a message.
type wire struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	CallID  string          `json:"tool_call_id"`
	Calls   []struct {
		ID string `json:"id"`
	} `json:"tool_calls"`
}

type wireBlock struct {
	Type, Text, ID string
	CallID         string `json:"tool_use_id"`
}

func messagesOf(t *rapid.T, f agent.Format, view []recall.Message) []wire {
	var r struct{ Messages []wire }
	if err := json.Unmarshal(bytes.Join(agent.State{System: "s"}.Request(f, view), nil), &r); err != nil {
		t.Fatalf("the request is not JSON: %v", err)
	}
	return r.Messages
}

// Whatever stands in a log, providers take the request: OpenAI wants the results of all calls directly after them.
func TestOpenAITakesAnyView(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		messages := messagesOf(t, agent.OpenAI, anyView().Draw(t, "view"))
		var waiting []string
		seen := map[string]bool{}
		for i, m := range messages {
			if m.Role == "tool" {
				if len(waiting) == 0 || !slices.Contains(waiting, m.CallID) {
					t.Fatalf("message %d is the result of %q; waiting are %q", i, m.CallID, waiting)
				}
				waiting = slices.DeleteFunc(waiting, func(id string) bool { return id == m.CallID })
			} else if len(waiting) > 0 {
				t.Fatalf("message %d of role %s stands before the results of %q", i, m.Role, waiting)
			}
			if text := string(m.Content); len(m.Calls) == 0 && (text == "" || text == `""` || text == "[]" || text == "null") {
				t.Fatalf("message %d of role %s is empty", i, m.Role)
			}
			for _, c := range m.Calls {
				if seen[c.ID] || len(c.ID) > 40 {
					t.Fatalf("message %d has a call %q that is there already, or too long", i, c.ID)
				}
				seen[c.ID], waiting = true, append(waiting, c.ID)
			}
		}
	})
}

// Anthropic wants the user's message first, roles in turn, and results first in the message after their calls.
func TestAnthropicTakesAnyView(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		messages := messagesOf(t, agent.Anthropic, anyView().Draw(t, "view"))
		var waiting []string
		for i, m := range messages {
			if want := []string{"user", "assistant"}[i%2]; m.Role != want {
				t.Fatalf("message %d is of role %s, want %s", i, m.Role, want)
			}
			var blocks []wireBlock
			if err := json.Unmarshal(m.Content, &blocks); err != nil || len(blocks) == 0 {
				t.Fatalf("message %d has content %s (%v)", i, m.Content, err)
			}
			var calls, results []string
			for n, b := range blocks {
				if b.Type == "text" && strings.TrimSpace(b.Text) == "" {
					t.Fatalf("message %d has a blank text", i)
				}
				if b.Type == "tool_use" {
					calls = append(calls, b.ID)
				}
				if b.Type == "tool_result" {
					if n != len(results) {
						t.Fatalf("message %d has a result after something else", i)
					}
					results = append(results, b.CallID)
				}
			}
			if diff := cmp.Diff(waiting, results); diff != "" && i < len(messages)-1 {
				t.Fatalf("message %d: calls and results (-want +got):\n%s", i, diff)
			}
			for _, id := range results {
				if !slices.Contains(waiting, id) {
					t.Fatalf("message %d has a result of no call: %q", i, id)
				}
			}
			waiting = calls
		}
	})
}

// A turn that is added to a settled conversation leaves the pieces before it as they were, but for the last.
func TestATurnLeavesThePiecesBeforeIt(t *testing.T) {
	t.Parallel()
	var view []recall.Message
	for i := range 300 {
		view = append(view, recall.Message{Role: []recall.Role{recall.User, recall.Assistant}[i%2], Position: i + 2,
			Content: []recall.Part{{Type: recall.Text, Text: fmt.Sprint("message ", i)}}})
	}
	for _, f := range []agent.Format{agent.OpenAI, agent.Anthropic} {
		before := agent.State{System: "s"}.Request(f, view[:298])
		after := agent.State{System: "s"}.Request(f, view)
		if n := len(before) - 1; !slices.EqualFunc(before[:n], after[:n], bytes.Equal) || len(after) > n+2 {
			t.Errorf("%s: of %d pieces then %d, want all but the last shared", f, len(before), len(after))
		}
	}
}
