package recall_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/loci-memory/loci/recall"
)

// parallel returns an answer with n calls of a tool.
func parallel(n int, tool string) recall.Draft {
	d := recall.Draft{Role: recall.Assistant}
	for i := range n {
		d.Content = append(d.Content,
			recall.Part{Type: recall.ToolCall, CallID: fmt.Sprintf("p%d", i), Name: tool, Input: "{}"})
	}
	return d
}

// The results of one answer's calls have at most 200,000 characters in the log together, in however many appends they
// come; and a client that sends them again stores nothing.
func TestResultsOfOneAnswerAreBoundedTogether(t *testing.T) {
	t.Parallel()
	results := make([]recall.Draft, 6)
	for i := range results {
		results[i] = returned(fmt.Sprintf("p%d", i), strings.Repeat(fmt.Sprintf("row %d é\n", i), 45_000/8))
	}
	for name, appends := range map[string][][]recall.Draft{
		"all at once":                {results},
		"one at a time":              {results[:1], results[1:2], results[2:3], results[3:4], results[4:5], results[5:]},
		"each time all so far":       {results[:1], results[:2], results[:3], results[:4], results[:5], results},
		"all, then each once more":   {results, results[:1], results[1:2], results[5:], results[3:4]},
		"four, then two, then again": {results[:4], results[4:], results[2:5]},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.append(say(recall.User, "Get them."), parallel(len(results), "fetch_page"))
			for _, drafts := range appends {
				f.append(drafts...)
			}
			if n := f.inLog(); n > recall.MaxResultsChars || n < recall.MaxResultsChars-50_000 {
				t.Errorf("the log has %d characters of results", n)
			}
			f.append(say(recall.Assistant, "Two more."), parallel(2, "fetch_page"))
			f.append(returned("p0", strings.Repeat("x", 45_000)), returned("p1", strings.Repeat("y", 45_000)))
			if n := f.inLog(); n < recall.MaxResultsChars-50_000+90_000 {
				t.Errorf("results of another answer count as well: %d characters", n)
			}
		})
	}
}

// inLog returns the characters of the results that the log holds; each call has one result.
func (f *fixture) inLog() (chars int) {
	f.Helper()
	seen := map[string]bool{}
	for _, m := range f.messages() {
		for _, p := range m.Content {
			if p.Type == recall.ToolReturn {
				chars += utf8.RuneCountInString(p.Text)
				if key := p.CallID + p.Text[:5]; seen[key] {
					f.Errorf("the result of %s is stored twice", p.CallID)
				} else {
					seen[key] = true
				}
			}
		}
	}
	return chars
}

// What a policy lets a model read of a file stays in the log: its bounds are beyond those of other results.
func TestAReadOfAFileMayBeLong(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		tool  string
		chars int
		whole bool
	}{
		{"open_files", 60_000, true},
		{"open_files", 200_000, true},
		{"open_files", 200_001, false},
		{"fetch_page", 50_000, true},
		{"fetch_page", 50_001, false},
	} {
		f := newFixture(t)
		f.append(say(recall.User, "Read it."), parallel(1, tt.tool), returned("p0", strings.Repeat("r", tt.chars)))
		if n := f.inLog(); n >= tt.chars != tt.whole {
			t.Errorf("%s, %d characters: the log has %d, want whole: %t", tt.tool, tt.chars, n, tt.whole)
		}
	}
}
