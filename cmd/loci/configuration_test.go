package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write docs/configuration.md from the flags")

const configurationHead = `# Configuration

Each setting is an environment variable and a flag of ` + "`loci serve`" + `. An empty variable counts as unset.
This page is generated from the flags: ` + "`go test ./cmd/loci -run TestConfigurationIsDocumented -update`" + `.

| variable | flag | default | meaning |
| --- | --- | --- | --- |
`

func TestConfigurationIsDocumented(t *testing.T) {
	t.Parallel()
	var doc strings.Builder
	doc.WriteString(configurationHead)
	commandNamed(t, "serve").Flags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || len(f.Annotations[variables]) == 0 {
			return
		}
		preset := "none"
		if f.DefValue != "" {
			preset = "`" + f.DefValue + "`"
		}
		fmt.Fprintf(&doc, "| `%s` | `--%s` | %s | %s |\n", f.Annotations[variables][0], f.Name, preset, f.Usage)
	})
	doc.WriteString(retentionDoc)
	const path = "../../docs/configuration.md"
	if *update {
		if err := os.WriteFile(path, []byte(doc.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	stored, err := os.ReadFile(path)
	if err != nil || string(stored) != doc.String() {
		t.Errorf("%s does not list the flags as they are (%v): run this test with -update", path, err)
	}
}

// commandNamed returns a command of the program.
func commandNamed(t *testing.T, words ...string) *cobra.Command {
	t.Helper()
	command, rest, err := newProgram(nil).Find(words)
	if err != nil || len(rest) > 0 {
		t.Fatalf("there is no command %q: %v", words, err)
	}
	return command
}

// retentionDoc is the section of the settings page about the settings of each organization.
const retentionDoc = `
## Retention

Each organization keeps these for a time that its administrator sets, over REST (/v1/admin/retention) or with 'loci orgs
keep NAME'. A sweep every minute deletes what is older, in small batches. 0 keeps for good.

| setting | default | what it is |
| --- | --- | --- |
| prompts_days | 30 | stored prompts, which GET …/context?at_seq= shows; the newest of each conversation stays |
| prompts_kept | 1,000 | the most stored prompts of a conversation |
| long_results_days | 0 | long results of tools, stored outside of the log; the log keeps their beginnings |
| vectors_days | 0 | vectors of messages, counted from when they were said; words still find them |
| replays_days | 30 | [replays of the lab](policies.md#comparing-on-recorded-sessions), with sessions and reports |
| run_events_hours | 3 | stored events of background runs, from the run's end: a client can attach to it until then |
| runs_days | 0 | records of runs and of their steps, with usage and feedback, from the run's end; its messages stay |

Not set by an organization: vectors of models that no server uses are kept for a week, the places of deleted items in
lists for a day, and long results that no message has any more for an hour. The log with its events, which are positions
without a text, passages, files, blocks and memory files are kept until they are deleted or
[erased](concepts.md#the-log).
`
