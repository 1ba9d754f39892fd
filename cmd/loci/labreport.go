package main

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/loci-memory/loci/compaction/lab"
)

// printLab prints a report for people.
func printLab(s streams, report lab.Report) error {
	if report.Partial {
		fmt.Fprintln(s.out, "PARTIAL: the replays were interrupted. This is what was done until then.")
	}
	if err := printReplays(s, report.Results); err != nil {
		return err
	}
	printAdvice(s, report)
	printLayers(s, report.Results)
	printRereads(s, report.Results)
	printAnswers(s, report)
	title(s, "MEANING")
	for _, m := range lab.Meanings() {
		fmt.Fprintf(s.out, "%s: %s\n", m.Name, m.Words)
	}
	return nil
}

// title begins a part of the report.
func title(s streams, words string) { fmt.Fprintf(s.out, "\n%s\n", words) }

func printReplays(s streams, results []lab.Result) error {
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SESSION\tWINDOW\tPOLICY\tTURNS\tTOKENS\tMOST\tTOO LARGE\tCACHED COST\tCOST\tPREFIX KEPT\t"+
		"CACHE BREAKS\tRECORDED COST\tCOMPACTIONS\tMODEL CALLS\tMODEL TOKENS\tFAILED\tIN VIEW\tEXPAND\tSEARCH\tLOST\t"+
		"READ AGAIN\tSECONDS")
	for _, r := range results {
		policy := r.Policy
		if r.Partial {
			policy += " (partial)"
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%d\t%d\t%d\t%d\t%.2f\t%.2f\t%.0f %%\t%d\t%s\t%d\t%d\t%d\t%d\t%s\t%d\t%d\t%d\t%d\t%.2f\n",
			r.Session, r.Window, policy, len(r.Turns), r.Tokens, r.Most, r.TooLarge, r.CachedCost, r.Cost, 100*r.KeptShare,
			r.Breaks, r.RecordedText(), r.Compactions, r.ModelCalls, r.ModelTokens, r.ModelFailures, r.Evidence.InViewText(),
			r.Evidence.Expand, r.Evidence.Search, r.Evidence.Lost, r.Rereads, r.Wall.Seconds())
	}
	return w.Flush()
}

// printAdvice prints which policy is best for what, which are equal, and what the provider counted.
func printAdvice(s streams, report lab.Report) {
	type place struct {
		session string
		window  int
	}
	said := map[place]bool{} // where the advice says which are equal
	if all := report.Advise(); len(all) > 0 {
		title(s, "ADVICE")
		for _, a := range all {
			fmt.Fprintf(s.out, "%s, window %d: %s.\n", printable(a.Session), a.Window, printable(a.Text))
			said[place{a.Session, a.Window}] = len(a.Winners) == 0
		}
	}
	for _, e := range report.Equals() {
		if !said[place{e.Session, e.Window}] {
			fmt.Fprintf(s.out, "%s, window %d: %s.\n", printable(e.Session), e.Window, printable(e.Text()))
		}
	}
	for _, of := range report.Sessions {
		if of.Counts != nil {
			fmt.Fprintf(s.out, "%s: %s.\n", printable(of.Name), of.Counts.Text())
		}
	}
}

// printLayers prints what each layer of a policy saved, and its steps that never fired.
func printLayers(s streams, results []lab.Result) {
	title(s, "LAYERS: tokens of the last prompt after each, and the share in view")
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	for _, r := range results {
		never := "all steps fired"
		if steps := r.NeverFired(); len(steps) > 0 {
			never = "never fired: " + strings.Join(steps, ", ")
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\n", printable(r.Session), r.Window, printable(r.Policy), r.ChainText(), never)
	}
	_ = w.Flush() // the next line to the same stream fails, too
}

// mostNamed bounds the results that are named of a replay. The report as files has more.
const mostNamed = 5

// printRereads prints which results were read again when they were out of view.
func printRereads(s streams, results []lab.Result) {
	titled := false
	for _, r := range results {
		if r.Rereads == 0 {
			continue
		}
		if !titled {
			title(s, "READ AGAIN: results that were out of view")
			titled = true
		}
		var named []string
		for _, again := range r.Reread[:min(len(r.Reread), mostNamed)] {
			named = append(named, printable(fmt.Sprintf("%s by %s in message %d (that of message %d was %s by %s)", again.What,
				again.Tool, again.Position, again.Result, again.How, again.Step)))
		}
		if more := r.Rereads - len(named); more > 0 {
			named = append(named, fmt.Sprintf("and %d more", more))
		}
		fmt.Fprintf(s.out, "%s, window %d, %s: %d: %s\n", printable(r.Session), r.Window, printable(r.Policy), r.Rereads,
			strings.Join(named, "; "))
	}
}

// printAnswers prints how a model's answers with shares of the context agree with that from all of it.
func printAnswers(s streams, report lab.Report) {
	scores := report.Scores()
	if len(scores) == 0 {
		return
	}
	title(s, "ANSWERS to the agent's questions, asked again with a share of the context")
	calls, read, written := 0, 0, 0
	for _, a := range report.Answers {
		calls, read, written = calls+a.Calls, read+a.Read, written+a.Written
		if a.Failed != "" {
			fmt.Fprintf(s.out, "%s, message %d at %.2f: no answer: %s\n", printable(a.Session), a.Position, a.Ratio,
				printable(a.Failed))
		}
	}
	for _, of := range scores {
		fmt.Fprintf(s.out, "%.2f of the context, %d tokens: %d of %d answers are the same; agreement %.2f, with the "+
			"recorded answers %.2f\n", of.Ratio, of.Tokens, of.Same, of.Answers, of.Agreement, of.Recorded)
	}
	fmt.Fprintf(s.out, "The model was asked %d times; it read %d tokens and wrote %d.\n", calls, read, written)
}
