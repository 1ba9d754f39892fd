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

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/memory/block"
	"github.com/loci-memory/loci/recall"
)

// anyText generates texts with markup, all kinds of line ends, and any other characters.
func anyText() *rapid.Generator[string] {
	return rapid.OneOf(rapid.String(), rapid.StringMatching(`([<>&"'/ \n\r\v\x00-\x1f]|</value>|</memory_blocks>|<!--|`+
		`<system>|</metadata>|<file status="open"|\]\]>|&lt;|x){0,8}`))
}

func anyState() *rapid.Generator[agent.State] {
	return rapid.Custom(func(t *rapid.T) agent.State {
		s := agent.State{System: rapid.StringMatching(`[a-z.]{0,20}`).Draw(t, "system"),
			Counts: "- 1\n"}
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

// frameTag matches the tags by which a model tells the parts of a prompt apart: closing tags, and any tag that could
// open a part.
var frameTag = regexp.MustCompile(`(?i)<\s*(?:/\s*(?:memory_blocks|block|description|metadata|value|directories|` +
	`directory|file|file_limits|instructions|memory_metadata|tool_usage_rules|tool_rule|system)|` +
	`memory_blocks|directories|` +
	`directory name|file status|block label|memory_metadata|tool_usage_rules|system)\b`)

// shownValue matches the value of a block in a prompt.
var shownValue = regexp.MustCompile(`(?s)- chars_limit=0\n</metadata>\n<value>\n(.*?)\n</value>\n`)

// plain returns the state with every text that is not empty replaced by a plain text.
func plain(s agent.State) agent.State {
	x := func(text string) string { return strings.Repeat("x", min(len(text), 1)) }
	p := agent.State{System: s.System, Counts: s.Counts, Rules: s.Rules}
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

// Whatever the texts of blocks, rules and documents contain, a prompt has the same tags as with plain texts, and the
// values of blocks can be read back from it. The same state always gives the same bytes.
func TestNoTextChangesTheStructure(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := anyState().Draw(t, "state")
		prompt := s.Text()
		got := frameTag.FindAllString(prompt, -1)
		want := frameTag.FindAllString(plain(s).Text(), -1)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("tags (-plain +got):\n%s\n%s", diff, prompt)
		}
		values := shownValue.FindAllStringSubmatch(prompt, -1)
		if len(values) != len(s.Blocks) {
			t.Fatalf("%d blocks have %d values:\n%s", len(s.Blocks), len(values), prompt)
		}
		for i, b := range s.Blocks {
			if got := frame.Restore(values[i][1]); got != b.Value {
				t.Fatalf("the value %q is shown as %q, and restored as %q", b.Value, values[i][1], got)
			}
		}
		if prompt != s.Text() {
			t.Fatal("two prompts of one state differ")
		}
	})
}

// An edit of one part does not change the bytes of the parts before it, neither in the prompt nor in the requests.
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
				after.Directories = other.Directories
			case 3:
				after.Counts = "- 2\n"
			}
			for _, f := range []agent.Format{agent.OpenAI, agent.Anthropic, agent.Responses} {
				a, b := s.Request(f, messages), after.Request(f, messages)
				if n := len(same); len(a) < n || len(b) < n || !slices.EqualFunc(a[:n], b[:n], bytes.Equal) {
					t.Fatalf("part %d: the pieces of the %s request before it differ", changed, f)
				}
				before, _, found := bytes.Cut(bytes.Join(a, nil), []byte(frame.State))
				if changed >= 2 && (!found || !bytes.HasPrefix(bytes.Join(b, nil), before)) {
					t.Fatalf("part %d: the %s request differs before its state", changed, f)
				}
			}
		}
	})
}

// A turn that is appended to a settled conversation does not change the earlier pieces, except the last two: the
// messages of a piece that grows, and the state.
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
		if n := len(before) - 2; !slices.EqualFunc(before[:n], after[:n], bytes.Equal) || len(after) > n+3 {
			t.Errorf("%s: of %d pieces then %d, want all but the last two shared", f, len(before), len(after))
		}
	}
}
