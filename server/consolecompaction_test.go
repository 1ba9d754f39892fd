package server_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// A compaction's page shows everything that the compaction covers, page by page, however much it is.
func TestTheConsoleShowsAllThatACompactionCovers(t *testing.T) {
	t.Parallel()
	c := newServerClient(t)
	c.work()
	alice := newTenant(c, "alice")
	agent := alice.made("/v1/agents", `{"context_window_limit":32000}`)
	alice.capture(agent, chatter(1, 90, strings.Repeat("What is said takes room. ", 20)))
	compaction := alice.compact("/v1/agents/"+agent+"/summarize", `{}`).Compaction
	first := "/console/agents/" + agent + "/compactions/" + compaction.ID
	next := regexp.MustCompile(`href="(\?from=\d+)" rel="next"`)
	var text strings.Builder
	pages := 0
	about := alice.browse("GET", first+"?card=compaction-about", nil)
	if !strings.Contains(about.Text, "<dd>sliding_window</dd>") {
		t.Errorf("got %d %.5000s", about.Code, about.Text)
	}
	for page, more := first+"?card=compaction-covers", true; more; pages++ {
		got := alice.browse("GET", page, nil)
		if got.Code != 200 {
			t.Fatalf("%s: got %d %.5000s", page, got.Code, got.Text)
		}
		text.WriteString(got.Text)
		link := next.FindStringSubmatch(got.Text)
		if more = link != nil; more {
			page = first + link[1] + "&card=compaction-covers"
		}
	}
	for i := range *compaction.ToPosition/2 - 1 {
		if want := fmt.Sprintf("Question %d:", i+1); !strings.Contains(text.String(), want) {
			t.Errorf("%d pages do not show %q", pages, want)
		}
	}
	if pages < 2 {
		t.Errorf("%d pages, want several", pages)
	}
	got := alice.browse("GET", first+"?card=compaction-covers&from=yesterday", nil)
	if !strings.Contains(got.Text, `role="alert"`) {
		t.Errorf("a position that is none: got %d %.3000s", got.Code, got.Text)
	}
}
