package lab_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/loci-memory/loci/compaction/lab"
	"github.com/loci-memory/loci/compaction/lab/transcript"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/db/dbtest/scale"
)

var updatePage = flag.Bool("update", false, "write the lab's tables of docs/policies.md")

const (
	docsPath  = "../../docs/policies.md"
	docsBegin = "<!-- begin: written by a test from replays of compaction/lab/testdata/parcels.jsonl -->\n"
	docsEnd   = "<!-- end of the replays -->\n"
)

// parcels returns the session in the repository: an agent repairs a service that follows parcels.
func parcels(t testing.TB) *lab.Session {
	t.Helper()
	f, err := os.Open("testdata/parcels.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := transcript.Read("parcels.jsonl", f)
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	return lab.NewSession(all[0])
}

// labTables returns the tables of the page.
func labTables(t testing.TB) string {
	t.Helper()
	session := parcels(t)
	var b strings.Builder
	fmt.Fprintf(&b, "\n%d messages; a prompt with all of them takes %d tokens.\n", session.Messages(), session.Tokens())
	for _, window := range []int{8_000, 16_000} {
		fmt.Fprintf(&b, "\nA window of %d tokens:\n\n| policy | tokens | largest prompt | cost, cached | cost | "+
			"prefix kept | compactions | edits | in view | expand | search | lost |\n|%s\n",
			window, strings.Repeat(" --- |", 12))
		var sources strings.Builder
		for _, p := range policy.Presets() {
			r, err := lab.ReplayOf(t.Context(), session, lab.Settings{Name: p.Name, Policy: p.Policy(), Window: window,
				Prices: policy.UsualPrices})
			if err != nil || r.PairErrors+r.TooLarge > 0 {
				t.Errorf("%s: %d pair errors, %d too large, %v", p.Name, r.PairErrors, r.TooLarge, err)
			}
			fmt.Fprintf(&b, "| `%s` | %d | %d | %.2f | %.2f | %.0f %% | %d | %d | %.1f %% | %d | %d | %d |\n", r.Policy,
				r.Tokens, r.Most, r.CachedCost, r.Cost, 100*r.KeptShare, r.Compactions, r.Edits, 100*r.Evidence.Share(),
				r.Evidence.Expand, r.Evidence.Search, r.Evidence.Lost)
			fmt.Fprintf(&sources, "| `%s` |", r.Policy)
			for _, source := range lab.Sources {
				of := r.Sources[source]
				fmt.Fprintf(&sources, " %.0f %% of %d |", 100*of.Share(), of.Total())
			}
			sources.WriteString("\n")
		}
		fmt.Fprintf(&b, "\nIn view, by the kinds of messages that had said it:\n\n| policy | requests | decisions | files | "+
			"commands | errors |\n|%s\n%s", strings.Repeat(" --- |", 6), sources.String())
	}
	return b.String() + "\n"
}

// docs/policies.md shows what the lab measures for the session in the repository.
func TestThePageShowsWhatTheLabMeasures(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	pageHas(t, docsBegin, docsEnd, labTables(t))
}

// page is locked while a test reads and writes docs/policies.md.
var page sync.Mutex

// pageHas checks that docs/policies.md has a text between two lines, or writes it there.
func pageHas(t *testing.T, begin, end, text string) {
	t.Helper()
	page.Lock()
	defer page.Unlock()
	raw, err := os.ReadFile(docsPath)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(raw), begin)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for the tables", docsPath)
	}
	want := head + begin + text + end + tail
	if want == string(raw) {
		return
	}
	if !*updatePage {
		t.Fatalf("%s has other tables: run this test with -update", docsPath)
	}
	if err := os.WriteFile(docsPath, []byte(want), 0o600); err != nil {
		t.Fatal(err)
	}
}

// What a session says becomes no element and no attribute of the report.
func TestTheReportRunsNothingOfASession(t *testing.T) {
	t.Parallel()
	const hostile = `"'><hostile></title></style></pre></script><script>hostile()</script>`
	r := lab.Result{Session: hostile, Policy: hostile, Turns: []lab.Turn{{Compacted: true}, {}},
		Missing: []lab.Missing{{Entity: hostile, Kind: hostile, Where: hostile, Excerpt: hostile}}}
	report := lab.Report{Policies: []lab.Compared{{Name: hostile, Asked: []byte(`{"note":"<script>"}`)}},
		Sessions: []lab.Reported{{Name: hostile, LeftOut: map[string]int{hostile: 1},
			Texts: []lab.QuotedMessage{{Role: hostile, Text: hostile}}}}, Results: []lab.Result{r}}
	var page strings.Builder
	if err := report.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	if shown := strings.Count(page.String(), "&lt;hostile&gt;"); shown < 10 ||
		strings.Contains(page.String(), "<hostile") || strings.Contains(page.String(), "<script") {
		t.Errorf("%d hostile texts are shown in %s", shown, page.String())
	}
}
