package server_test

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db/dbtest/golden"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/servertest"
)

// inPath matches a path's parameters.
var inPath = regexp.MustCompile(`\{[^}]*\}`)

// Each of Letta's routes is served or explains in a sentence why not. No client gets a bare 404 or 405, or is told to
// try again. docs/letta.md lists the routes.
func TestLettasRoutesAreServedOrExplained(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	var table strings.Builder
	table.WriteString("| route | method of the SDKs | |\n| --- | --- | --- |\n")
	counts := map[string]int{}
	for _, r := range letta.Routes() {
		path := strings.NewReplacer("{conversation_id}", "conv-123e4567-e89b-42d3-8456-426614174000", "{agent_id}",
			"agent-123e4567-e89b-42d3-8456-426614174000").Replace(r.Path)
		if strings.Contains(r.Path, "path:path") || strings.Contains(r.Path, "endpoint:path") {
			checkNotServed(t, r, c.call(r.Method, inPath.ReplaceAllString(path, "x/y.git/z"), ""))
		}
		got := c.call(r.Method, inPath.ReplaceAllString(path, "x"), "")
		treatment := "served"
		switch otherwise := letta.Otherwise[r.Method+" "+r.Path]; {
		case got.Code == http.StatusNotImplemented:
			treatment = "not served: " + strings.TrimSuffix(lowered(r.WhyNot()), ".")
			checkNotServed(t, r, got)
		case otherwise != "":
			treatment = "otherwise: " + otherwise
		case got.Code == http.StatusMethodNotAllowed ||
			got.Code == http.StatusNotFound && strings.Contains(got.Text, `"unknown_route"`):
			t.Errorf("%s %s: got %d %s", r.Method, r.Path, got.Code, got.Text)
		}
		word, _, _ := strings.Cut(treatment, ":")
		counts[word]++
		fmt.Fprintf(&table, "| `%s %s` | %s | %s |\n", r.Method, r.Path, sdkMethod(r.SDK), treatment)
	}
	fmt.Fprintf(&table, "\nOf %d routes %d are served, %d of them otherwise than by Letta, and %d are not.\n",
		len(letta.Routes()), counts["served"]+counts["otherwise"], counts["otherwise"], counts["not served"])
	checkTable(t, "../docs/letta.md", "<!-- routes -->\n", table.String())
}

func sdkMethod(name string) string {
	if name == "" {
		return ""
	}
	return "`" + name + "`"
}

func lowered(sentence string) string {
	if strings.HasPrefix(sentence, "Loci") || strings.HasPrefix(sentence, "MCP") {
		return sentence
	}
	return strings.ToLower(sentence[:1]) + sentence[1:]
}

func checkNotServed(t *testing.T, r letta.Route, got servertest.Reply) {
	t.Helper()
	if r.Method != http.MethodHead {
		servertest.CheckProblem(t, got, http.StatusNotImplemented, map[string]any{"detail": r.WhyNot() +
			" GET /openapi.json of this server lists the routes that it serves"})
	}
	if retry := got.Header().Get("X-Should-Retry"); retry != "false" {
		t.Errorf("%s %s: x-should-retry is %q: Letta's clients would try three times", r.Method, r.Path, retry)
	}
}

// checkTable compares the table after a mark in a documentation page, up to <!-- end -->, with the wanted table.
func checkTable(t *testing.T, page, mark, want string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), mark)
	old, after, end := strings.Cut(rest, "<!-- end -->")
	if !found || !end {
		t.Fatalf("%s has no place for the table", page)
	}
	if golden.Updating() {
		err = os.WriteFile(page, []byte(before+mark+want+"<!-- end -->"+after), 0o600)
	}
	if err != nil || !golden.Updating() && old != want {
		t.Errorf("%s has another table: run this test with -update (%v)", page, err)
	}
}
