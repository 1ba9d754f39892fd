package lab_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/compaction/lab"
	"github.com/loci-memory/loci/compaction/policy"
)

// A result that is read again when a policy has cleared, shortened or summarized it is named, with the step. One that
// is in view, or that a change of its file explains, is not.
func TestWhatIsReadAgainIsNamed(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a line of it\\n", 200)
	call := func(n int, tool, input string) []string {
		id := fmt.Sprintf("c%d", n)
		return []string{calls("", id, tool, input),
			fmt.Sprintf(`{"role":"tool","tool_call_id":%q,"content":"%d %s"}`, id, n, long)}
	}
	lines := []string{`{"role":"user","content":"Look."}`}
	for i, c := range [][2]string{
		{"read_file", `{"path":"a.go"}`},                     // 1
		{"bash", `{"command":"ls"}`},                         // 2
		{"read_file", `{"path":"b.go"}`},                     // 3
		{"read_file", `{"path":"a.go", "limit":10}`},         // 4: a.go again, cleared
		{"bash", `{ "command" : "ls" }`},                     // 5: ls again, cleared
		{"edit_file", `{"path":"b.go","old":"x","new":"y"}`}, // 6
		{"read_file", `{"path":"b.go"}`},                     // 7: b.go was changed
		{"bash", `{"command":"ls"}`},                         // 8: a file was changed
		{"bash", `{"command":"ls"}`},                         // 9: still in view
		{"action", `{"action":"edit 1:2 x"}`},                // 10
		{"bash", `{"command":"ls"}`},                         // 11: some file was changed
	} {
		lines = append(lines, call(i+1, c[0], c[1])...)
	}
	session := lab.NewSession(transcriptOf(t, append(lines, `{"role":"assistant","content":"Done."}`)...))
	for name, c := range map[string]struct {
		policy string
		window int
		want   []lab.Reread
	}{
		"cleared": {`{"steps":[{"step":"clear_tool_uses","trigger_tokens":10,"keep":1}]}`, 1_000_000, []lab.Reread{
			{Position: 8, Tool: "read_file", What: "a.go", Result: 3, Step: "clear_tool_uses", How: "cleared"},
			{Position: 10, Tool: "bash", What: `{ "command" : "ls" }`, Result: 5, Step: "clear_tool_uses", How: "cleared"}}},
		"shortened": {`{"steps":[{"step":"snip","max_chars":500}]}`, 1_000_000, []lab.Reread{
			{Position: 8, Tool: "read_file", What: "a.go", Result: 3, Step: "snip", How: "shortened"},
			{Position: 10, Tool: "bash", What: `{ "command" : "ls" }`, Result: 5, Step: "snip", How: "shortened"},
			{Position: 18, Tool: "bash", What: `{"command":"ls"}`, Result: 17, Step: "snip", How: "shortened"}}},
		"in view": {`"letta"`, 1_000_000, []lab.Reread{}},
		"summarized": {`{"steps":[{"step":"tokens","above_tokens":1500},{"step":"keep_recent","keep_recent_tokens":10}]}`,
			16_000, []lab.Reread{
				{Position: 8, Tool: "read_file", What: "a.go", Result: 3, Step: "keep_recent", How: "summarized"},
				{Position: 10, Tool: "bash", What: `{ "command" : "ls" }`, Result: 5, Step: "keep_recent", How: "summarized"},
				{Position: 18, Tool: "bash", What: `{"command":"ls"}`, Result: 17, Step: "keep_recent", How: "shortened"}}},
	} {
		p, err := policy.Parse([]byte(c.policy))
		if err != nil {
			t.Fatal(err)
		}
		r, err := lab.ReplayOf(t.Context(), session, lab.Settings{Policy: p, Window: c.window})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, r.Reread); diff != "" || r.Rereads != len(c.want) {
			t.Errorf("%s: %d (-want +got): %s", name, r.Rereads, diff)
		}
	}
}
