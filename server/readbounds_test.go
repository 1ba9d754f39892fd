package server_test

import (
	"fmt"
	"strings"
	"testing"
)

// The output of open_files and grep_files is within the bounds of the policy that applies to the conversation, and
// contains the policy's sentence. A change of the policy applies to the next call.
func TestReadsKeepToThePolicy(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	folder := c.made("/v1/folders", `{"name":"docs"}`)
	agent := c.made("/v1/agents", fmt.Sprintf(
		`{"name":"a","folder_ids":[%q],"tools":["open_files","grep_files","close_files"]}`,
		folder))
	var b strings.Builder
	for i := range 3_000 {
		fmt.Fprintf(&b, "entry %d\n", i+1)
	}
	c.uploaded(folder, "long.txt", b.String()+"wide "+strings.Repeat("w", 600))
	open := func(conversation, request string) string {
		body := fmt.Sprintf(`{"args":{"file_requests":[%s],"include_content":true},"conversation_id":%q}`, request,
			conversation)
		got, _, _ := strings.Cut(c.must("POST", "/v1/agents/"+agent+"/tools/open_files/run", body), `"files":`)
		return got // without the open files, which are for callers who keep their own prompt
	}
	grep := func(pattern string) string {
		return c.tool(agent, "grep_files", fmt.Sprintf(`{"pattern":%q,"context_lines":0}`, pattern))
	}
	checkContains := func(label, got string, want ...string) {
		t.Helper()
		for _, w := range want {
			if !strings.Contains(got, w) {
				t.Errorf("%s lacks %q: %.300s … %s", label, w, got, got[max(len(got)-300, 0):])
			}
		}
	}
	policy := func(path, policy string) {
		c.must("PATCH", path, `{"compaction_settings":{"policy":`+policy+`}}`)
	}
	if got := open("default", `"docs/long.txt"`); !strings.Contains(got, "3000: entry 3000") ||
		!strings.Contains(grep("wide"), strings.Repeat("w", 600)) {
		t.Fatalf("without bounds: %.200s", got)
	}
	policy("/v1/agents/"+agent, `"pi"`)
	const rest = `{\"file_name\":\"docs/long.txt\",\"line\":2001}`
	checkContains("pi", open("default", `"docs/long.txt"`), "2000: entry 2000",
		"[docs/long.txt: Showing lines 1-2000 of 3001. Use "+
			`line=2001 to continue: open_files(file_requests=[`+rest+`], include_content=true)]`)
	if got := open("default", `"docs/long.txt"`); strings.Contains(got, "2001: entry 2001") {
		t.Error("pi shows more than 2,000 lines")
	}
	checkContains("the rest", open("default", `{"file_name":"docs/long.txt","line":2001}`), "2001: entry 2001",
		"3000: entry 3000")
	if got := grep("wide"); strings.Contains(got, strings.Repeat("w", 501)) || !strings.Contains(got, "... [truncated]") {
		t.Errorf("a wide line among matches: %s", got)
	}
	bounded := c.made("/v1/conversations?agent_id="+agent, `{}`)
	policy("/v1/conversations/"+bounded, `{"preset":"claude-code","steps":{"read_bounds":{"max_lines":10}}}`)
	checkContains("the conversation's own policy", open(bounded, `"docs/long.txt"`), "10: entry 10",
		"lines 1-10 of 3001, the most that one call shows")
	checkContains("the agent's", open("default", `"docs/long.txt"`), "2000: entry 2000")
	policy("/v1/agents/"+agent, `{"preset":"pi","steps":{"read_bounds":{"max_lines":20,"max_bytes":600}}}`)
	if got := grep("entry"); len(got) > 700 || !strings.Contains(got, "To see more matches, call: grep_files(") {
		t.Errorf("a page of matches: %d bytes: %s", len(got), got)
	}
	policy("/v1/agents/"+agent, `{"preset":"pi","steps":{"read_bounds":{"max_match_chars":20,"max_line_chars":8}}}`)
	if got := grep("wide"); !strings.Contains(got, "=== docs/long.txt:3001 ===") ||
		!strings.Contains(got, "3001: wide "+strings.Repeat("w", 15)+"... [truncated]") {
		t.Errorf("short bounds cut more than the file's own text: %s", got)
	}
	checkContains("short lines", open("default", `{"file_name":"docs/long.txt","line":2990}`), "[Viewing lines 2990 to ",
		"2990: entry 29... [truncated]", "3001: wide www... [truncated]")
	policy("/v1/agents/"+agent,
		`{"preset":"claude-code","steps":{"read_bounds":{"on_exceed":"refuse","max_tokens":2000}}}`)
	c.must("POST", "/v1/agents/"+agent+"/tools/close_files/run", `{"args":{"all":true}}`)
	checkContains("a read above the gate", open("default", `"docs/long.txt"`), `"status":"error"`,
		"docs/long.txt was not opened", "256 KB or 2,000 tokens", "3001 lines", `grep_files(pattern=\"…\", include=`,
		`\"line\":1,\"length\":`)
	if list := c.must("GET", "/v1/agents/"+agent+"/files", ""); strings.Contains(list, `"is_open":true`) {
		t.Errorf("the file was opened: %s", list)
	}
	checkContains("a part of it", open("default", `{"file_name":"docs/long.txt","line":100,"length":20}`),
		`"status":"success"`, "119: entry 119")
	checkContains("the description", c.must("GET", "/v1/agents/"+agent+"/tools?limit=50", ""),
		"Above 256 KB or 2,000 tokens a read is refused")
	c.uploaded(folder, "line.json", `{"list":[`+strings.Repeat(`{"name":"cobra"},`, 3_000)+`{"name":"needle"},`+
		strings.Repeat(`{"name":"cobra"},`, 3_000)+`0]}`)
	c.uploaded(folder, "short.txt", "one\ntwo\n")
	policy("/v1/agents/"+agent,
		`{"preset":"claude-code","steps":{"read_bounds":{"on_exceed":"refuse","max_tokens":2000,"max_line_chars":0}}}`)
	line := open("default", `"docs/line.json"`)
	checkContains("a file of one long line", line, `"status":"error"`, "docs/line.json was not opened",
		"1 line. Line 1 alone",
		`grep_files(pattern=\"…\", include=\"docs/line.json\")`,
		`{\"file_name\":\"docs/line.json\",\"line\":1,\"length\":1}`)
	checkContains("the call that it names", open("default", `{"file_name":"docs/line.json","line":1,"length":1}`),
		`"status":"success"`, `1: {\"list\":[{`)
	checkContains("the other call", grep("needle"), `{"name":"needle"}`)
	c.must("POST", "/v1/agents/"+agent+"/tools/close_files/run", `{"args":{"all":true}}`)
	batch := open("default", `"docs/long.txt","docs/short.txt","docs/line.json"`)
	checkContains("a batch", batch, "docs/long.txt was not opened",
		"docs/line.json was not opened, for the same reason (1 line)",
		"docs/short.txt was not opened, either, but fits", `open_files(file_requests=[{\"file_name\":\"docs/short.txt\"}])`)
	checkContains("a batch with a name of no file", open("default", `"docs/short.txt","docs/none.txt"`),
		`"status":"error"`, "No file was opened.")
	if list := c.must("GET", "/v1/agents/"+agent+"/files", ""); strings.Contains(list, `"is_open":true`) {
		t.Errorf("a file of the batch was opened: %s", list)
	}
	part := open("default", `"docs/long.txt"`)
	_, part, _ = strings.Cut(part, "To read a part, call: open_files(file_requests=[")
	part, _, _ = strings.Cut(part, "])")
	checkContains("the part that a refusal names", open("default", strings.ReplaceAll(part, `\"`, `"`)),
		`"status":"success"`, "1: entry 1")
	policy("/v1/agents/"+agent, `{"preset":"pi","steps":{"read_bounds":{"max_match_chars":60}}}`)
	checkContains("a match in the middle of a long line", grep("needle"), `{"name":"needle"}`)
	policy("/v1/agents/"+agent, `"letta"`)
	checkContains("letta", open("default", `"docs/long.txt"`), "3000: entry 3000")
}
