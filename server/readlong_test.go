package server_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// fileText returns the text of the files in a result of open_files: its numbered lines, without their numbers.
func fileText(result string) string {
	var lines []string
	for _, line := range regexp.MustCompile(`(?m)^\d+: (.*)$`).FindAllStringSubmatch(result, -1) {
		lines = append(lines, line[1])
	}
	return strings.Join(lines, "\n")
}

// A policy's bounds of reads are the ones that are reached: Pi's 50 KB of text, and 25,000 tokens of the model's count
// as in Claude Code. The usual bound of a result does not come before.
func TestReadsReachThePolicysBounds(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	folder := c.made("/v1/folders", `{"name":"docs"}`)
	c.uploaded(folder, "prose.txt", strings.Repeat("the river walks under the green lamp while paper waits near "+
		"the old bridge, and nobody asks\n", 1_990))
	c.uploaded(folder, "digits.txt", strings.Repeat("4815162342 1618033988 2718281828 3141592653 5772156649 14142\n",
		1_990))
	agentOf := func(policy string) string {
		return c.made("/v1/agents", fmt.Sprintf(`{"name":"a","folder_ids":[%q],"tools":["open_files"],
			"model":"openai/gpt-4o","context_window_limit":200000,"compaction_settings":{"policy":%q}}`, folder, policy))
	}
	open := func(agent, file string) string {
		return c.tool(agent, "open_files", fmt.Sprintf(`{"file_requests":["docs/%s"],"include_content":true}`, file))
	}
	tokens := func(agent, text string) int {
		return c.fit(agent, text, "").TotalTokens
	}
	pi, claude, small := agentOf("pi"), agentOf("claude-code"), agentOf("pi")
	c.must("PATCH", "/v1/agents/"+small, `{"context_window_limit":16000}`)
	for _, file := range []string{"prose.txt", "digits.txt"} {
		text := open(pi, file)
		if n := len(fileText(text)); n > 50<<10 || n < 50<<10-100 || !strings.Contains(text, "Showing lines 1-") {
			t.Errorf("pi shows %d bytes of %s, want up to %d: %.300s", n, file, 50<<10, text)
		}
		text = open(claude, file)
		if n := tokens(claude, text); n > 25_300 || n < 24_900 || !strings.Contains(text, "the most that one call shows") {
			t.Errorf("claude-code shows %d tokens of %s, want up to 25,000: %.300s", n, file, text)
		}
		if n := len(open(small, file)); n > 16_000 || n < 15_800 {
			t.Errorf("a window of 16,000 tokens: %d characters", n)
		}
	}
}

// A line that is longer than one call shows can be read to its end: each result names the character to go on from.
func TestALongLineIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	folder := c.made("/v1/folders", `{"name":"docs"}`)
	var b strings.Builder
	for i := range 13_000 {
		fmt.Fprintf(&b, "wörd%05d ", i)
	}
	line := b.String()
	c.uploaded(folder, "line.txt", line)
	c.uploaded(folder, "more.txt", line+"\nlast line\n")
	for _, tt := range []struct {
		policy, file, sentence string
		calls                  int
	}{
		{"pi", "line.txt", "characters of line 1 of 1. Use line=1, char=", 3},
		{"pi", "more.txt", "characters of line 1 of 2. Use line=1, char=", 3},
		{"claude-code", "line.txt", "characters of line 1 of 1, the most that one call shows", 65},
		{"letta", "more.txt", "stops within line 1, behind ", 3},
	} {
		agent := c.made("/v1/agents", fmt.Sprintf(`{"name":"a","folder_ids":[%q],"tools":["open_files"],
			"model":"openai/gpt-4o","context_window_limit":200000,"compaction_settings":{"policy":%q}}`, folder, tt.policy))
		args := fmt.Sprintf(`{"file_requests":[{"file_name":"docs/%s"}],"include_content":true}`, tt.file)
		var read strings.Builder
		calls := 0
		for args != "" && calls < 80 {
			text := c.tool(agent, "open_files", args)
			part := strings.ReplaceAll(strings.ReplaceAll(fileText(text), "...[TRUNCATED]", ""), "... [truncated]", "")
			read.WriteString(part)
			calls++
			call := regexp.MustCompile(`open_files\(file_requests=(\[.*?\]), include_content=true\)`).FindStringSubmatch(text)
			args = ""
			if call != nil {
				args = fmt.Sprintf(`{"file_requests":%s,"include_content":true}`, call[1])
				if !strings.Contains(text, tt.sentence) {
					t.Fatalf("%s: %.300s", tt.policy, text)
				}
			}
		}
		if got := strings.TrimSuffix(read.String(), "\nlast line"); got != line || calls != tt.calls ||
			tt.file == "more.txt" && got == read.String() {
			t.Errorf("%s, %s: %d calls gave %d of %d bytes", tt.policy, tt.file, calls, len(got), len(line))
		}
		for _, wrong := range [][2]string{
			{`{"file_name":"docs/line.txt","char":200000}`, "Line 1 has only 130000 characters"},
			{`{"file_name":"docs/line.txt","char":-1}`, "must be >= 0"},
		} {
			args := fmt.Sprintf(`{"file_requests":[%s],"include_content":true}`, wrong[0])
			got := c.must("POST", "/v1/agents/"+agent+"/tools/open_files/run", `{"args":`+args+`}`)
			if !strings.Contains(got, wrong[1]) || !strings.Contains(got, `"status":"error"`) {
				t.Errorf("%s: got %.300s", wrong[0], got)
			}
		}
		got := c.must("POST", "/v1/agents/"+agent+"/tools/open_files/run",
			`{"args":{"file_requests":[{"file_name":"docs/line.txt","char":5}]}}`)
		if !strings.Contains(got, "needs include_content=true") {
			t.Errorf("without the content: got %.300s", got)
		}
	}
}
