package server_test

import (
	"strings"
	"testing"
)

// If a filter or a position in a list is invalid, the console says so, and does not ignore it.
func TestTheConsoleRefusesFiltersThatMeanNothing(t *testing.T) {
	t.Parallel()
	m := newMatrix(t)
	agent := "/console/agents/" + m.alice.has["agent_id"]
	folder := "/console/folders/" + m.alice.has["folder_id"]
	block := "/console/blocks/" + m.alice.has["block_id"]
	for _, row := range []struct{ target, wrong, right string }{
		{"/console/files?status=", "hatching", "completed"},
		{folder + "?status=", "hatching", "error"},
		{folder + "/files/" + m.alice.has["file_id"] + "?line=", "third", "1"},
		{"/console/jobs?status=", "hatching", "completed"},
		{"/console/search?q=secret&in=", "dreams", "passages"},
		{"/console/archives/" + m.alice.has["archive_id"] + "?match=", "some", "all"},
		{block + "?from=", "x", ""}, {block + "?to=", "-3", "1"},
		{agent + "/prompt?at=", "yesterday", ""}, {agent + "/prompt?with=", "0", ""},
		{agent + "/history?before=", "yesterday", ""}, {"/console/files?after=", "hatching", ""},
		{"/console/agents?after=", "hatching", ""}, {"/console/keys?after=", "hatching", ""},
		{agent + "/events/stream?after=", "hatching", ""},
	} {
		got := m.alice.browse("GET", row.target+row.wrong, nil)
		if !strings.Contains(got.Text, `role="alert"`) && got.Code != 422 {
			t.Errorf("%s%s: nothing is said to be wrong: %d %.3000s", row.target, row.wrong, got.Code, got.Text)
		}
		if row.right == "" {
			continue
		}
		got = m.alice.browse("GET", row.target+row.right, nil)
		if got.Code != 200 || strings.Contains(got.Text, `role="alert"`) {
			t.Errorf("%s%s: got %d %.3000s", row.target, row.right, got.Code, got.Text)
		}
	}
	page := m.alice.browse("GET", "/console/files?status=hatching", nil)
	for _, want := range []string{"the status &#34;hatching&#34;",
		"one of pending, parsing, embedding, completed, error"} {
		if !strings.Contains(page.Text, want) {
			t.Errorf("the page of files does not say %s: %s", want, page.Text)
		}
	}
}
